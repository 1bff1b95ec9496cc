"""How Spark's processes reach queue managers: certificates, and sentences when TLS does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.spark.connecting import connected
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.options import Place
from openmsmq.spark.source.options import read_source_options
from openmsmq.storage.memory import MemoryStore
from tests.contracts.certificates import write_certificate
from tests.runtime.test_access import Authority
from tests.server_thread import start_server


def place(**options: str) -> Place:
    return read_source_options({"queue": "*", "reconnectWithin": "600"} | options).place


pytestmark = pytest.mark.timeout(60)
"""Far less than the time for which a lost queue manager would be tried again."""


def test_tls_with_a_port_that_has_none_is_told_at_once(tmp_path: Path) -> None:
    with (
        start_server(str(tmp_path), store=MemoryStore()) as server,
        pytest.raises(BadOption, match=r"^option tls: port .* does not speak TLS: leave out"),
        connected(place(tls="true"), f"127.0.0.1:{server.port}"),
    ):
        pass


def test_a_port_that_speaks_only_tls_is_told_at_once(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "alpha.pem")
    with start_server(str(tmp_path), store=MemoryStore(), tls_cert=certificate) as server:
        address = f"127.0.0.1:{server.port}"
        with (
            pytest.raises(BadOption, match=r"^option tls: port .* speaks only TLS: set tls to"),
            connected(place(), address),
        ):
            pass
        with connected(place(ca=certificate), address) as manager:
            assert manager.name == "ALPHA"


@pytest.mark.parametrize("own_file", [False, True])
def test_a_certificate_opens_the_door_instead_of_a_token(tmp_path: Path, own_file: bool) -> None:
    ours = Authority(tmp_path, "ours")
    own, _ = ours.certificate("localhost")
    alice, der = ours.certificate("alice", rsa_bits=2048)
    key = ""
    if own_file:
        text = alice.read_text()
        cut = text.index("-----BEGIN PRIVATE")
        end = text.index("\n", text.index("-----END PRIVATE")) + 1
        (tmp_path / "alice.key").write_text(text[cut:end])
        alice.write_text(text[:cut] + text[end:])
        key = str(tmp_path / "alice.key")
    with start_server(
        str(tmp_path),
        store=MemoryStore(),
        directory_server=True,
        tls_cert=str(own),
        tls_client_ca=str(ours.file),
    ) as server:
        address = f"localhost:{server.port}"
        shown = {"ca": str(ours.file), "certificate": str(alice), "key": key}
        with (
            pytest.raises(QueueProblem, match=r"refuses access .* check the options .*certificate"),
            connected(place(**shown), address),
        ):
            pass
        with connected(place(ca=str(ours.file)), address) as manager:
            manager.register_certificate(der)
        with connected(place(**shown), address) as manager:
            assert manager.caller().user


def test_files_that_tls_cannot_use_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    nothing = str(tmp_path / "empty.pem")
    given = place(tls="true", certificate=nothing, key=nothing)
    with (
        pytest.raises(BadOption, match=r"^option certificate, key: .*empty\.pem, .* cannot be"),
        connected(given, "localhost:1"),
    ):
        pass
    with pytest.raises(BadOption, match=r"^option ca: "), connected(place(ca=nothing), "localhost"):
        pass
