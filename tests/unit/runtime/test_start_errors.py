"""Why a server cannot start: sentences for people, also where a library has only codes."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from openmsmq.runtime.api.server import tls_context_of
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.http.sending.client import HttpClient
from openmsmq.runtime.start_errors import cannot_listen
from tests.runtime.session_certificates import Identity


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A certificate with and without its key, a key of another one, and something else."""
    one = Identity("one")
    made = {
        "chain": one.save(tmp_path / "chain.pem"),
        "key of another": Identity("other").save(tmp_path / "other.pem"),
    }
    for name, text in (("certificate", one.pem), ("junk", "junk\n")):
        (tmp_path / f"{name}.pem").write_text(text)
        made[name] = str(tmp_path / f"{name}.pem")
    return {**made, "absent": str(tmp_path / "absent.pem")}


@pytest.mark.parametrize(
    ("certificate", "key", "authorities", "what"),
    [
        ("absent", "", "", "no such file or directory"),
        ("junk", "", "", "is not there in PEM"),
        ("certificate", "", "", "is not there in PEM"),
        ("certificate", "key of another", "", "the key is that of another certificate"),
        ("chain", "", "junk", "it has no certificate in PEM"),
    ],
)
def test_files_of_tls_that_are_wrong_are_told_in_words(
    files: dict[str, str], certificate: str, key: str, authorities: str, what: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        tls_context_of(files[certificate], files.get(key, ""), files.get(authorities, ""))
    sentence = str(caught.value)
    assert files[authorities or certificate] in sentence
    assert what in sentence
    assert "_ssl.c" not in sentence


def test_so_are_those_with_which_posts_leave(files: dict[str, str]) -> None:
    for table in ({"send_cert": files["junk"]}, {"send_authorities": files["absent"]}):
        with pytest.raises(ConfigError) as caught:
            HttpClient(HttpTable(sends=True, **table), "", None)  # type: ignore[arg-type]
        assert not any(word in str(caught.value) for word in ("_ssl.c", "Errno"))


def test_a_port_in_use_is_told_with_the_key_of_another_one() -> None:
    error = cannot_listen(
        OSError(errno.EADDRINUSE, ""), "127.0.0.1", 8080, key="[http] port", switch="x = false"
    )
    assert "another process listens there: give another [http] port" in str(error)
