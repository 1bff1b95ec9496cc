"""What systemd is told, over a real socket."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.runtime.operating_system.supervisor import FEEDINGS_PER_LIMIT, Supervisor


class Systemd:
    """Listens as systemd does."""

    def __init__(self, address: str) -> None:
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.channel.bind("\0" + address[1:] if address.startswith("@") else address)
        self.channel.settimeout(10)
        self.environment = {"NOTIFY_SOCKET": address}

    def heard(self) -> list[str]:
        return self.channel.recv(1000).decode().splitlines()

    def has_more(self) -> bool:
        self.channel.setblocking(False)
        try:
            self.channel.recv(1000)
        except BlockingIOError:
            return False
        return True


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    is_path = request.param == "path"
    listener = Systemd(str(tmp_path / "notify") if is_path else f"@openmsmq-{secrets.token_hex(8)}")
    yield listener
    listener.channel.close()


def test_systemd_hears_how_far_we_are(systemd: Systemd) -> None:
    supervisor = Supervisor(systemd.environment)
    supervisor.ready("ALPHA serves")
    assert systemd.heard() == ["READY=1", "STATUS=ALPHA serves"]
    supervisor.status("one\nalarm=1")
    assert systemd.heard() == ["STATUS=one alarm=1"]
    supervisor.reloading()
    assert systemd.heard()[0] == "RELOADING=1"
    supervisor.stopping()
    assert systemd.heard() == ["STOPPING=1", "STATUS=stopping"]


def test_the_watchdog_is_fed_while_the_loop_turns_and_not_while_it_hangs(systemd: Systemd) -> None:
    patience_s = 0.3
    environment = systemd.environment | {
        "WATCHDOG_USEC": str(int(patience_s * 1_000_000)),
        "WATCHDOG_PID": str(os.getpid()),
    }

    async def live() -> None:
        loop = asyncio.get_running_loop()
        supervisor = Supervisor(environment)
        supervisor.feed_watchdog(loop.call_later)
        for _ in range(2 * FEEDINGS_PER_LIMIT):
            assert await asyncio.to_thread(systemd.heard) == ["WATCHDOG=1"]
        # The loop hangs for longer than the watchdog waits.
        time.sleep(1.1 * patience_s)  # noqa: ASYNC251 -- it is what is tested
        assert not systemd.has_more()
        supervisor.close()

    asyncio.run(live())


@pytest.mark.parametrize("limit", ["", "0", "many"])
def test_without_a_watchdog_nothing_is_fed(systemd: Systemd, limit: str) -> None:
    supervisor = Supervisor(systemd.environment | {"WATCHDOG_USEC": limit})
    supervisor.feed_watchdog(_nobody_waits)
    assert not systemd.has_more()


def test_the_watchdog_of_another_process_is_not_ours(systemd: Systemd) -> None:
    theirs = {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid() + 1)}
    Supervisor(systemd.environment | theirs).feed_watchdog(_nobody_waits)
    assert not systemd.has_more()


def test_a_supervisor_that_does_not_listen_does_not_matter(tmp_path: Path) -> None:
    Supervisor({"NOTIFY_SOCKET": str(tmp_path / "absent")}).ready("x")
    Supervisor({}).ready("x")


def _nobody_waits(*_: object) -> asyncio.TimerHandle:
    raise AssertionError("a watchdog is fed")
