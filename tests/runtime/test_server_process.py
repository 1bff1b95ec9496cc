"""`openmsmq serve` as a process: its ready line, its signals, its crashes, its refusals."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.runtime.raw_client import RawClient, connect, packet
from tests.runtime.test_access import Authority
from tests.server_thread import start_server

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "openmsmq.cli.app", "serve"]


class Process:
    """A server that has said it is ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        self.ready = process.stdout.readline()
        assert self.ready.startswith("ready "), process.communicate()
        self.facts = dict(fact.split("=", 1) for fact in self.ready.split()[1:])
        host, _, port = self.facts["address"].rpartition(":")
        self.host, self.port = host, int(port)

    def connect(self) -> RawClient:
        return connect(self.host, self.port)

    def end(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


def environment() -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OPENMSMQ_")}
    return clean | {"PYTHONPATH": str(SOURCE)}


@contextmanager
def serving(data: Path, *flags: str) -> Iterator[Process]:
    command = [*COMMAND, "--data", str(data), "--name", "ALPHA", "--api-port", "0"]
    command += ["--no-transfer", *flags]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            yield Process(process)
        finally:
            if process.poll() is None:
                process.kill()


def refused(*arguments: str, options: tuple[str, ...] = (), status: int = 2) -> str:
    """Run a server that must not start; give its only line of explanation."""
    run = subprocess.run(
        [sys.executable, *options, *COMMAND[1:], "--no-transfer", "--log-level=error", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=environment(),
    )
    assert (run.returncode, run.stdout) == (status, ""), run
    (line,) = run.stderr.splitlines()
    return line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_ready_and_a_signal_stops_it_cleanly(tmp_path, number):
    data = tmp_path / "data"
    with serving(data, "--address", "127.0.0.2", "--log-format", "json") as server:
        assert server.facts["name"] == "ALPHA"
        assert server.host == "127.0.0.2"
        assert server.facts["socket"] == str(data / "api.sock")
        assert data.stat().st_mode & 0o777 == 0o700
        with server.connect() as client:
            assert str(client.call(api.GetStatus()).manager_name) == "ALPHA"
            status, errors = server.end(number)
            assert client.is_hung_up_on()
    assert status == 0
    events = [json.loads(line)["event"] for line in errors.splitlines()]
    assert events == ["starting", "listening", "listening", "ready", "stopping", "stopped"]
    assert not (data / "api.sock").exists()


def test_sighup_takes_a_new_certificate_and_keeps_the_old_one_if_the_new_one_is_no_good(tmp_path):
    authority = Authority(tmp_path, "authority")
    first, first_der = authority.certificate("localhost")
    second, second_der = authority.certificate("new")
    renewed = second.read_bytes()
    with serving(
        tmp_path / "data", "--tls-cert", str(first), "--log-format", "json", "--log-level=info"
    ) as server:
        assert shown_certificate(server) == first_der
        for content, event, der in (
            (renewed, "reloaded", second_der),
            (b"no certificate", "reload-failed", second_der),
        ):
            first.write_bytes(content)
            server.process.send_signal(signal.SIGHUP)
            assert server.process.stderr is not None
            while json.loads(server.process.stderr.readline())["event"] != event:
                pass
            assert shown_certificate(server) == der
        status, _ = server.end(signal.SIGTERM)
    assert status == 0


def shown_certificate(server: Process) -> bytes:
    """Return the certificate with which a server greets."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((server.host, server.port)) as plain,
        context.wrap_socket(plain) as made,
    ):
        found = made.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_recoverable_messages_and_the_identity_survive_kill_9_and_express_ones_do_not(tmp_path):
    with serving(tmp_path) as server, server.connect() as client:
        identity = server.facts["id"]
        client.create()
        opened = client.open(AccessMode.SEND)
        kept = [packet(opened.direct_name, b"kept %d" % number) for number in range(100)]
        lost = packet(opened.direct_name, b"lost", recoverable=False)
        assert isinstance(client.call(api.Send(opened.handle, [*kept, lost])), api.Sent)
        server.end(signal.SIGKILL)
    with serving(tmp_path) as server, server.connect() as client:
        assert server.facts["id"] == identity
        received = client.receive_bodies(client.open(AccessMode.RECEIVE))
        assert received == [b"kept %d" % number for number in range(100)]
        server.end(signal.SIGKILL)
    with serving(tmp_path) as server, server.connect() as client:
        assert client.receive_bodies(client.open(AccessMode.RECEIVE)) == []


def test_a_second_signal_ends_it_at_once(tmp_path):
    with serving(tmp_path, "--stop-timeout-ms", "60000") as server, server.connect() as client:
        client.create()
        opened = client.open(AccessMode.SEND)
        for _ in range(5):
            client.send(opened, *[b"x" * 1_000_000] * 10)
        reading = client.open(AccessMode.RECEIVE)
        # Nobody reads these answers, so the stop waits for its timeout.
        client.submit(*[api.Receive(reading.handle)] * 50)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.stderr is not None
        while " stopping " not in server.process.stderr.readline():
            pass
        status, _ = server.end(signal.SIGTERM)
    assert status == 128 + signal.SIGTERM


def test_the_unix_socket_is_for_its_owner_and_knows_who_connects(tmp_path):
    with serving(tmp_path, "--log-level", "debug", "--log-format", "json") as server:
        path = Path(server.facts["socket"])
        assert path.stat().st_mode & 0o777 == 0o600
        with RawClient.unix(path) as client:
            assert isinstance(client.hello(), api.Welcome)
            client.create()
            client.send(client.open(AccessMode.SEND), b"by the socket")
        with server.connect() as client:
            opened = client.open(AccessMode.RECEIVE)
            assert client.receive_bodies(opened) == [b"by the socket"]
        _, errors = server.end(signal.SIGTERM)
    connected = [
        line for line in map(json.loads, errors.splitlines()) if line["event"] == "connected"
    ]
    assert connected[0]["peer"] == f"process {os.getpid()} of user {os.geteuid()}"


def test_a_socket_left_by_a_crash_is_replaced(tmp_path):
    with serving(tmp_path) as server:
        server.end(signal.SIGKILL)
    assert (tmp_path / "api.sock").exists()
    with serving(tmp_path) as server, RawClient.unix(tmp_path / "api.sock") as client:
        assert isinstance(client.hello(), api.Welcome)


def test_it_can_be_set_up_by_a_file_and_variables(tmp_path):
    file = tmp_path / "openmsmq.toml"
    file.write_text('name = "BETA"\napi_tcp = true\naddress = "127.0.0.3"\n', encoding="utf-8")
    run = subprocess.Popen(
        [*COMMAND, "--config", str(file), "--address", "127.0.0.4"],
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
        env=environment()
        | {
            "OPENMSMQ_DATA": str(tmp_path / "data"),
            "OPENMSMQ_API_PORT": "0",
            "OPENMSMQ_ALSO_KNOWN_AS": "beta.example.org",
        },
    )
    with run:
        server = Process(run)
        assert (server.facts["name"], server.host) == ("BETA", "127.0.0.4")
        with server.connect() as client:
            client.create()
            opened = client.call(
                api.OpenQueue(r"DIRECT=OS:beta.example.org\private$\orders", AccessMode.SEND)
            )
            assert isinstance(opened, api.Opened), opened
        run.terminate()
    assert run.returncode == 0


def test_tokens_are_never_logged(tmp_path):
    (tmp_path / "token").write_text("s3cret\n", encoding="utf-8")
    flags = ["--token-file", str(tmp_path / "token"), "--log-level", "debug"]
    with serving(tmp_path / "data", *flags) as server:
        connect(server.host, server.port, "s3cret").socket.close()
        with RawClient.tcp(server.host, server.port) as stranger:
            assert isinstance(stranger.hello("guess-9"), api.Failed)
        _, errors = server.end(signal.SIGTERM)
    assert "connection-refused" in errors
    assert "s3cret" not in errors
    assert "guess-9" not in errors


# Refusals.


def test_data_that_is_in_use_is_refused_in_one_sentence(tmp_path):
    with start_server(str(tmp_path)):
        line = refused("--data", str(tmp_path), "--api-port", "0", status=75)
    assert "in use by process" in line


def test_a_port_that_is_taken_is_refused_in_one_sentence(tmp_path):
    with start_server(str(tmp_path / "one"), address="127.0.0.5") as server:
        flags = ["--address", "127.0.0.5", "--api-port", str(server.port)]
        line = refused("--data", str(tmp_path / "two"), *flags, status=75)
    assert f"cannot listen on 127.0.0.5 port {server.port} (address already in use)" in line
    # What it had opened before is closed again.
    with start_server(str(tmp_path / "two")):
        pass


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "--data DIRECTORY"),
        (["--data", "DATA", "--address", "192.0.2.1"], "a token is needed"),
        (["--data", "DATA", "--token-file", "absent"], "cannot read the token from absent"),
        (["--data", "DATA", "--tls-cert", "absent.pem"], "cannot use the certificate in absent"),
        (["--data", "DATA", "--api-socket-group", "no-such-group"], "no group 'no-such-group'"),
        (["--data", "DATA", "--api-socket", "x" * 120], "longer than 107 bytes"),
        (["--data", "DATA", "--config", "absent.toml"], "absent.toml: No such file"),
        (["--data", "DATA", "--log-format", "xml"], "--log-format = 'xml' is wrong"),
        (["--data", "/dev/null/x"], "cannot create the data directory"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(tmp_path, flags, words):
    arguments = [str(tmp_path) if flag == "DATA" else flag for flag in flags]
    if "--api-port" not in arguments:
        arguments += ["--api-port", "0"]
    assert words in refused(*arguments)


def test_an_address_that_the_computer_does_not_have_yet_is_tried_again(tmp_path):
    flags = ["--address", "192.0.2.1", "--allow-remote-without-token", "--api-port", "0"]

    line = refused("--data", str(tmp_path), *flags, status=75)

    assert "give an address that this computer has" in line


def test_python_without_assertions_is_refused(tmp_path):
    assert "python -O" in refused("--data", str(tmp_path), options=("-O",))
