"""`--remote`: a queue manager with RPC, managed as any computer with MSMQ is."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.cli.options.connecting import PASSWORD_VARIABLE
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from tests.cli.conftest import ADDRESSES, CommandLine, ServerProcess

PASSWORD = "correct horse battery"
ORDERS = r"private$\orders"
FAR = r"DIRECT=TCP:127.0.0.99\PRIVATE$\far"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("alpha")
    for name in ("alice", "bob"):
        add_account(data / ACCOUNTS_FILE, name, PASSWORD, administrator=name == "alice", now_s=1)
    file = data / "alpha.toml"
    file.write_text("[rpc]\nenabled = true\n")
    process = ServerProcess(data, f"--config={file}")
    yield process
    process.stop()


@pytest.fixture
def remote(
    server: ServerProcess, openmsmq: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """Commands as alice, an administrator there. ORDERS has two messages, FAR one."""
    if not openmsmq("queue", "list", "--json").out:
        openmsmq("queue", "create", ORDERS)
        for body in ("one", "two"):
            openmsmq("send", ORDERS, "--body", body)
        openmsmq("queue", "create", r"private$\ledger", "--transactional")
        openmsmq("send", FAR, "--body", "three")
    # Nothing listens where other commands would ask.
    monkeypatch.setenv("OPENMSMQ_QM", "127.0.0.98")
    monkeypatch.setenv("OPENMSMQ_REMOTE", server.address)
    monkeypatch.setenv("OPENMSMQ_REMOTE_USER", "alice")
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    return openmsmq


@pytest.mark.spec("MQMR-3.2.3-01", "MQMR-3.2.4-01")
def test_queues_are_listed_with_what_is_in_them(remote: CommandLine) -> None:
    ledger, orders = remote("queue", "list", "--json").objects
    assert orders["path_name"] == rf"ALPHA\{ORDERS}"
    assert orders["format_name"] == r"DIRECT=OS:ALPHA\PRIVATE$\orders"
    assert (orders["message_count"], orders["transactional"]) == (2, False)
    assert orders["message_bytes"] > 0
    assert (ledger["message_count"], ledger["transactional"]) == (0, True)
    by_count = remote("queue", "list", "--sort", "messages", "--limit", "1", "--json")
    assert by_count.object == orders
    assert remote("queue", "list", "--filter", "LEDGER", "--json").object == ledger
    assert "orders" in remote("queue", "list").out


def test_one_queue_is_shown_by_path_name_or_format_name(remote: CommandLine) -> None:
    names = (ORDERS, rf"ALPHA\{ORDERS}", r"DIRECT=OS:ALPHA\PRIVATE$\orders")
    first, *others = (remote("queue", "show", name, "--json").object for name in names)
    assert first["state"] == "LOCAL CONNECTION"
    assert others == [first, first]
    assert "LOCAL CONNECTION" in remote("queue", "show", ORDERS).out


@pytest.mark.spec("MQMR-3.2.4-02", "MQMR-3.2.4-03")
def test_an_error_of_the_other_computer_is_said(remote: CommandLine) -> None:
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in remote.refused("queue", "show", r"private$\none")


def test_an_outgoing_queue_is_paused_and_resumed(remote: CommandLine) -> None:
    remote("outgoing", "pause", FAR)
    assert remote("outgoing", "list", "--json").object["state"] == "ONHOLD"
    remote("outgoing", "resume", FAR)
    found = remote("outgoing", "show", FAR, "--json").object
    assert found["state"] != "ONHOLD"
    assert (found["message_count"], found["is_local"]) == (1, False)
    remote("outgoing", "resend", FAR)


def test_the_queue_manager_is_looked_at_and_taken_offline(
    remote: CommandLine, server: ServerProcess
) -> None:
    found = remote("status", "--json").object
    assert found["host"] == server.address
    assert found["software"].startswith("OpenMSMQ")
    assert found["online"]
    assert found["private_queue_count"] == 2
    remote("offline")
    assert not remote("status", "--json").object["online"]
    remote("online")
    assert "online" in remote("status").out


def test_the_port_can_be_given_instead_of_asking_for_it(
    remote: CommandLine, server: ServerProcess
) -> None:
    remote("--remote", f"{server.address}:2103", "status")


def test_a_password_comes_from_a_file(
    remote: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE)
    sentence = remote.refused("status", code=2)
    assert "password of alice is missing" in sentence
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    remote("--password-file", str(file), "status")
    assert "cannot be read" in remote.refused(
        "--password-file", str(tmp_path / "no"), "status", code=2
    )


def test_whoever_is_not_believed_or_not_allowed_hears_it(
    remote: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "MQ_ERROR_ACCESS_DENIED" in remote.refused("--user", "bob", "outgoing", "pause", FAR)
    assert "give --user" in remote.refused("--user", "", "status")
    monkeypatch.setenv(PASSWORD_VARIABLE, "something else")
    assert "does not accept alice" in remote.refused("status")


def test_where_nobody_answers_that_is_said(remote: CommandLine, server: ServerProcess) -> None:
    nowhere = next(ADDRESSES)
    sentence = remote.refused("--remote", nowhere, "status", code=4)
    assert f"No endpoint mapper answers at {nowhere}, port 135" in sentence
    sentence = remote.refused("--remote", f"{server.address}:9", "status", code=4)
    assert f"Nobody answers at {server.address}, port 9" in sentence
    sentence = remote.refused("--remote", "nohost.invalid", "status", code=4)
    assert "nohost.invalid is not known" in sentence
    assert "no address" in remote.refused("--remote", "host:x", "status", code=2)


def test_what_does_not_speak_rpc_is_said(remote: CommandLine) -> None:
    with socket.create_server((next(ADDRESSES), 0)) as listener:
        address, port = listener.getsockname()

        def answer() -> None:
            taken, _ = listener.accept()
            with taken:
                taken.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
                taken.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        sentence = remote.refused("--remote", f"{address}:{port}", "status", code=4)
        thread.join()
    assert f"{address} cannot be used: the server" in sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ("queue", "purge", ORDERS),
        ("queue", "create", r"private$\new"),
        ("send", ORDERS, "--body", "x"),
        ("outgoing", "purge", FAR),
        ("queue", "list", "--watch"),
        ("status", "--ready"),
    ],
)
def test_what_cannot_be_done_from_afar_says_so(
    remote: CommandLine, arguments: tuple[str, ...]
) -> None:
    assert "--remote" in remote.refused(*arguments, code=2)
