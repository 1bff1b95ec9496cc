"""How many queues of other computers are open at a time, and for how long they are waited for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import LeaveElsewhere, OpenElsewhere
from openmsmq.model.errors import AccessDenied, InsufficientResources, QueueNotAvailable
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.runtime.limits import (
    ELSEWHERE_QUEUES_MAX_COUNT,
    ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT,
)
from openmsmq.runtime.rpc import elsewhere
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, identities

APP = 3


def user(number: int, *, administers: bool = True) -> Caller:
    sid = Sid.of(5, 21, 1, 2, 3, number)
    groups = frozenset({ADMINISTRATORS}) if administers else frozenset()
    return Caller(f"user {number}", sid, identities(sid) | groups)


class Desk:
    """What stands around the queues elsewhere; the computer there takes connections, and waits."""

    def __init__(self, data: Path, port: int) -> None:
        self.told: list[api.AnyReply] = []
        self.failed: list[int] = []
        self.heard = asyncio.Event()
        pump: Any = SimpleNamespace(
            engine=SimpleNamespace(
                identifier=Guid(16),
                elsewhere=SimpleNamespace(failed=lambda _, handle: self.failed.append(handle)),
            ),
            answer=self._answer,
        )
        secret = data / "password"
        secret.write_text("secret\n")
        secret.chmod(0o600)
        table = RpcTable(
            remote_hosts=("127.0.0.1",),
            remote_user="reader",
            remote_password_file="password",
            remote_port=port,
        )
        config: Any = SimpleNamespace(
            rpc=table, data=str(data), parameters=SimpleNamespace(hosts={})
        )
        self.elsewhere = elsewhere.Elsewhere(config, pump)

    def open(self, handle: int, caller: Caller = UNLIMITED) -> None:
        request = api.OpenQueue(r"DIRECT=TCP:127.0.0.1\private$\q", int(AccessMode.RECEIVE))
        self.elsewhere.open(OpenElsewhere(APP, handle, handle, request, caller))

    def _answer(self, _connection: int, _call: int, reply: api.AnyReply) -> None:
        self.told.append(reply)
        self.heard.set()

    def code(self) -> int:
        [reply] = self.told
        assert isinstance(reply, api.Failed)
        return reply.code


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a computer that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_only_so_many_queues_are_open(tmp_path: Path, silent: int) -> None:
    async def run() -> None:
        desk = Desk(tmp_path, silent)
        each = ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT
        for number in range(ELSEWHERE_QUEUES_MAX_COUNT):
            desk.open(number, user(number // each))
        assert desk.told == []
        desk.open(1000, user(999))
        assert desk.code() == InsufficientResources.code
        assert desk.failed == [1000]
        desk.elsewhere.close()

    asyncio.run(run())


def test_one_user_has_only_so_many_and_gets_room_back(tmp_path: Path, silent: int) -> None:
    async def run() -> None:
        desk = Desk(tmp_path, silent)
        for number in range(ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT):
            desk.open(number, user(1))
        desk.open(1000, user(1))
        assert desk.code() == InsufficientResources.code
        desk.told.clear()
        desk.elsewhere.leave(LeaveElsewhere(APP, 0))
        desk.open(1001, user(1))
        assert desk.told == []
        desk.elsewhere.close()

    asyncio.run(run())


def test_only_administrators_use_the_account(tmp_path: Path, silent: int) -> None:
    async def run() -> None:
        desk = Desk(tmp_path, silent)
        desk.open(1, user(1, administers=False))
        assert desk.code() == AccessDenied.code
        desk.elsewhere.close()

    asyncio.run(run())


def test_a_computer_that_says_nothing_is_not_waited_for(
    tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "ELSEWHERE_CONNECT_S", 0.2)

    async def run() -> None:
        desk = Desk(tmp_path, silent)
        desk.open(1)
        async with asyncio.timeout(20):
            await desk.heard.wait()
        assert desk.code() == QueueNotAvailable.code
        assert desk.failed == [1]
        desk.elsewhere.close()

    asyncio.run(run())
