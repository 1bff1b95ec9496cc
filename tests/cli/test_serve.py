"""`openmsmq serve` as an operator and a supervisor see it: a full disk, SIGHUP, exit codes."""

from __future__ import annotations

import configparser
import contextlib
import re
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.client.settings import API_PORT
from openmsmq.runtime.server import ExitCode
from tests.cli.conftest import (
    ADDRESSES,
    CommandLine,
    ServerProcess,
    command_line,
    environment,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
JOURNAL_BYTES = 1 << 20


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that a test may treat badly."""
    process = ServerProcess(tmp_path / "data", f"--checkpoint-bytes={JOURNAL_BYTES}")
    yield process
    if process.process.poll() is None:
        process.kill()


def start_and_fail(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command_line("serve", "--log-level=error", *options),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_status_says_that_the_disk_is_full_and_since_when(
    openmsmq: CommandLine, own_server: ServerProcess, tmp_path: Path
) -> None:
    at = ("--qm", own_server.address)
    large = tmp_path / "large"
    large.write_bytes(bytes(300_000))
    openmsmq(*at, "queue", "create", r"private$\orders")
    assert openmsmq(*at, "status", "--json").object["store_problem"] == ""
    assert openmsmq(*at, "status", "--ready").out == "ALPHA takes messages\n"
    number = own_server.process.pid
    _, most = resource.prlimit(number, resource.RLIMIT_FSIZE)
    # What stands in the journals has its place already; no file can grow beyond their size.
    journal = max(file.stat().st_size for file in own_server.data.glob("store/*"))
    resource.prlimit(number, resource.RLIMIT_FSIZE, (journal, most))
    sending = (*at, "send", r"private$\orders", "--body-file", str(large), "--recoverable")
    refused = openmsmq.refused(*sending, "--count", "20")

    full = openmsmq(*at, "status", "--json").object
    words = openmsmq(*at, "status").out
    unready = openmsmq.refused(*at, "status", "--ready")

    assert "MQ_ERROR_INSUFFICIENT_RESOURCES" in refused
    assert "ALPHA takes nothing since" in unready
    assert "free some space" in full["store_problem"]
    assert full["started_time"] <= full["store_problem_since"]
    assert f"takes nothing since {full['store_problem_since']}: no space" in words
    resource.prlimit(number, resource.RLIMIT_FSIZE, (most, most))
    openmsmq(*sending)
    found = openmsmq(*at, "status", "--json").object
    assert (found["store_problem"], found["store_problem_since"]) == ("", None)
    assert "takes messages" in openmsmq(*at, "status").out


def test_a_command_waits_for_a_queue_manager_that_is_just_starting(
    offline: CommandLine, tmp_path: Path
) -> None:
    address = next(ADDRESSES)
    with subprocess.Popen(
        command_line("serve", f"--data={tmp_path}", f"--address={address}", "--log-level=error"),
        env=environment(),
        stdout=subprocess.DEVNULL,
    ) as starting:
        try:
            made = offline("--qm", address, "queue", "create", r"private$\orders")
        finally:
            starting.terminate()

    assert made.out.startswith("created")


def test_sighup_does_not_end_a_server(openmsmq: CommandLine, own_server: ServerProcess) -> None:
    at = ("--qm", own_server.address)
    before = openmsmq(*at, "status", "--json").object["started_time"]

    own_server.process.send_signal(signal.SIGHUP)

    assert openmsmq(*at, "status", "--json").object["started_time"] == before
    own_server.stop()


def test_a_port_in_use_is_tried_again_by_a_supervisor(
    server: ServerProcess, tmp_path: Path
) -> None:
    ran = start_and_fail(f"--data={tmp_path / 'other'}", f"--address={server.address}")

    assert ran.returncode == ExitCode.NOT_YET == 75
    assert ran.stderr.startswith(f"openmsmq: cannot listen on {server.address} port")


def test_a_store_in_use_is_tried_again_by_a_supervisor(server: ServerProcess) -> None:
    ran = start_and_fail(f"--data={server.data}", "--address=127.0.63.1")

    assert ran.returncode == 75
    assert "is in use by process" in ran.stderr


def test_a_mistake_in_the_configuration_is_not_tried_again(tmp_path: Path) -> None:
    ran = start_and_fail(f"--data={tmp_path}", "--quota-kb=-1")

    assert ran.returncode == 2


def test_systemd_gives_up_after_mistakes_only() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(EXAMPLES / "openmsmq.service")

    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == str(int(ExitCode.NOT_STARTED))
    # Otherwise systemd gives up after a few attempts, whatever the status was.
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["ExecReload"].endswith("-HUP $MAINPID")
    # Without this nobody listens to what the server tells.
    assert unit["Service"]["Type"] == "notify"
    assert int(unit["Service"]["WatchdogSec"]) >= 30


@pytest.mark.spec("MQDMPR-3.1.1.1-09")
def test_systemd_hears_that_a_server_is_ready_lives_reloads_and_stops(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(60)
        options = [f"--data={tmp_path / 'data'}", "--name=ALPHA", "--no-api-tcp", "--no-transfer"]
        started = subprocess.Popen(
            command_line("serve", "--log-level=error", *options),
            env={
                **environment(),
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
                "WATCHDOG_USEC": "300000",
            },
            stdout=subprocess.DEVNULL,
        )

        def hears(wanted: str) -> str:
            while wanted not in (heard := systemd.recv(1000).decode().splitlines()):
                assert heard == ["WATCHDOG=1"]
            return heard[-1]

        assert hears("READY=1") == "STATUS=ALPHA serves"
        hears("WATCHDOG=1")
        hears("WATCHDOG=1")
        # While its loop does not turn, the watchdog hears nothing.
        started.send_signal(signal.SIGSTOP)
        with contextlib.suppress(TimeoutError):
            systemd.settimeout(0.3)
            while True:
                systemd.recv(1000)
        with pytest.raises(TimeoutError):
            systemd.recv(1000)
        systemd.settimeout(60)
        started.send_signal(signal.SIGCONT)
        hears("WATCHDOG=1")
        started.send_signal(signal.SIGHUP)
        assert hears("RELOADING=1").startswith("MONOTONIC_USEC=")
        hears("READY=1")
        started.send_signal(signal.SIGTERM)
        hears("STOPPING=1")
        assert started.wait(timeout=30) == 0


def test_the_container_opens_every_port_that_a_queue_manager_listens_on() -> None:
    text = (EXAMPLES / "Containerfile").read_text(encoding="utf-8")
    (exposed,) = re.findall(r"^EXPOSE (.*)$", text, re.MULTILINE)

    assert set(exposed.split()) == {
        "1801/tcp",
        "1801/udp",
        f"{API_PORT}/tcp",
        "1803/tcp",
        "3527/udp",
    }
