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
from openmsmq.manager.outputs import AskElsewhere, LeaveElsewhere, OpenElsewhere
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidHandle,
    QueueNotAvailable,
)
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.runtime.limits import (
    ELSEWHERE_QUEUES_MAX_COUNT,
    ELSEWHERE_QUEUES_PER_CALLER_MAX_COUNT,
)
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.rpc import elsewhere
from openmsmq.runtime.service import Server
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.security.access.sids import ADMINISTRATORS, Sid, identities
from openmsmq.storage.memory import MemoryStore
from openmsmq.wire.rpc.fragments import FragmentBuffer, read_body
from openmsmq.wire.rpc.pdus import (
    WHOLE,
    Bind,
    BindAck,
    Body,
    Flag,
    Header,
    Outcome,
    PduType,
    Request,
    Response,
    Result,
    write,
)
from openmsmq.wire.rpc.remote_read import OPENED, Opened, Operation
from openmsmq.wire.rpc.syntaxes import NDR

APP = 3


def user(number: int, *, administers: bool = True) -> Caller:
    sid = Sid.of(5, 21, 1, 2, 3, number)
    groups = frozenset({ADMINISTRATORS}) if administers else frozenset()
    return Caller(f"user {number}", sid, identities(sid) | groups)


def reading(data: Path, port: int) -> RpcTable:
    """Say who may be read, with a password."""
    secret = data / "password"
    secret.write_text("secret\n")
    secret.chmod(0o600)
    return RpcTable(
        remote_hosts=("127.0.0.1", "*.example.com"),
        remote_user="reader",
        remote_password_file="password",
        remote_port=port,
    )


class Desk:
    """What stands around the queues elsewhere; the computer there takes connections, and waits."""

    def __init__(self, data: Path, port: int) -> None:
        self.told: list[api.AnyReply] = []
        self.failed: list[int] = []
        self.heard = asyncio.Event()
        self.ended: list[int] = []
        self.lines: list[str] = []
        pump: Any = SimpleNamespace(
            engine=SimpleNamespace(
                identifier=Guid(16),
                elsewhere=SimpleNamespace(failed=lambda _, handle: self.failed.append(handle)),
            ),
            answer=self._answer,
            end_connection=lambda number, _: self.ended.append(number),
        )
        config: Any = SimpleNamespace(
            rpc=reading(data, port), data=str(data), parameters=SimpleNamespace(hosts={})
        )
        self.elsewhere = elsewhere.Elsewhere(config, pump, EventLog(write=self.lines.append))

    def open(self, handle: int, caller: Caller = UNLIMITED, host: str = "TCP:127.0.0.1") -> None:
        request = api.OpenQueue(rf"DIRECT={host}\private$\q", int(AccessMode.RECEIVE))
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


def test_a_name_that_no_computer_can_have_is_an_error_like_any_other(
    tmp_path: Path, silent: int
) -> None:
    async def run() -> None:
        desk = Desk(tmp_path, silent)
        desk.open(1, host=f"OS:{'x' * 64}.example.com")
        async with asyncio.timeout(20):
            await desk.heard.wait()
        assert desk.code() == QueueNotAvailable.code
        desk.elsewhere.close()

    asyncio.run(run())


def test_a_mistake_of_ours_in_opening_is_told(
    tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(_self: object, _host: str) -> str:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(elsewhere.Elsewhere, "address_of", mistaken)

    async def run() -> None:
        desk = Desk(tmp_path, silent)
        desk.open(1)
        assert desk.code() == QueueNotAvailable.code
        assert desk.failed == [1]
        assert "rpc-defect" in desk.lines[0]

    asyncio.run(run())


def test_a_mistake_of_ours_costs_the_application_that_met_it(tmp_path: Path, silent: int) -> None:
    class Strange:
        """Nothing that a request can be."""

        @property
        def transaction(self) -> int:
            raise RuntimeError("a mistake")

    async def run() -> None:
        desk = Desk(tmp_path, silent)
        desk.open(1)
        [channel] = desk.elsewhere._channels.values()  # noqa: SLF001 -- there is no other way in
        channel.queue._context = b"open"  # noqa: SLF001
        request: Any = Strange()
        desk.elsewhere.ask(AskElsewhere(APP, 7, 1, request))
        assert desk.ended == [APP]
        [line] = desk.lines
        assert "rpc-defect" in line
        desk.elsewhere.leave(LeaveElsewhere(APP, 1))
        desk.open(2)
        assert len(desk.ended) == 1
        desk.elsewhere.close()

    asyncio.run(run())


class HalfDead:
    """A computer that lets a queue be opened, and then says nothing any more."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = FragmentBuffer()
        while data := await reader.read(1 << 16):
            buffer.feed(data)
            for header, fragment in buffer.fragments():
                writer.write(self._answer(header, read_body(header, fragment)))
        writer.close()
        await writer.wait_closed()
        self.left.set()

    def _answer(self, header: Header, body: Body) -> bytes:
        if isinstance(body, Bind):
            result = Result(Outcome.ACCEPTED, 0, NDR)
            ack = BindAck(5840, 5840, 1, b"2103\0", (result,))
            return write(PduType.BIND_ACK, header.call, ack, None, WHOLE | Flag.CONCURRENT)
        if isinstance(body, Request) and body.operation == Operation.OPEN_QUEUE:
            stub = OPENED.encode(Opened(b"\x01" * 20))
            return write(PduType.RESPONSE, header.call, Response(0, stub, len(stub)))
        return b""


def test_a_read_with_an_end_ends_though_the_other_computer_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "ELSEWHERE_ANSWER_S", 0.2)
    monkeypatch.setattr(elsewhere, "protection", lambda _credentials, _host: None)

    async def run() -> None:
        far = HalfDead()
        server = await asyncio.start_server(far.play, "127.0.0.1", 0)
        desk = Desk(tmp_path, server.sockets[0].getsockname()[1])
        async with asyncio.timeout(20):
            desk.open(1)
            await desk.heard.wait()
            assert isinstance(desk.told.pop(), api.Opened)
            desk.heard.clear()
            desk.elsewhere.ask(AskElsewhere(APP, 2, 1, api.Receive(1, timeout_ms=10)))
            await desk.heard.wait()
            await far.left.wait()
        assert desk.code() == QueueNotAvailable.code
        desk.elsewhere.close()
        server.close()

    asyncio.run(run())


class Application:
    """An application that does not wait for answers before it asks for more."""

    def __init__(self) -> None:
        self.answers: dict[int, api.AnyReply] = {}

    def deliver(self, answers: list[api.Answer]) -> None:
        self.answers.update({each.id: each.reply for each in answers})

    def cut(self, reason: str) -> None:
        raise AssertionError(reason)

    def go_on(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_who_reads_a_queue_before_it_is_open_is_told_and_ends_nothing(
    tmp_path: Path, silent: int, host: str
) -> None:
    """With an address that may not be read, the handle is gone before the second request."""

    async def run() -> None:
        config = ServerConfig(
            data=str(tmp_path),
            api_port=0,
            api_tcp=True,
            api_socket="none",
            transfer=False,
            rpc=reading(tmp_path, silent),
        )
        log = EventLog(level="error")
        server = await Server.start(config, store=MemoryStore(), log=log)
        try:
            pump = server._pump  # noqa: SLF001 -- a whole server has the only real one
            application = Application()
            number = pump.connected(application, UNLIMITED)
            name = rf"DIRECT=TCP:{host}\private$\q"
            asked: list[api.AnyRequest] = [
                api.OpenQueue(name, int(AccessMode.RECEIVE)),
                api.Receive(1),
                api.GetStatus(),
            ]
            for call, request in enumerate(asked):
                pump.hand_in(pump.request, number, call, request)
            pump.schedule()
            for _ in range(20):
                await asyncio.sleep(0)
            told = application.answers[1]
            assert isinstance(told, api.Failed)
            assert told.code == InvalidHandle.code
            assert isinstance(application.answers[2], api.Status)
            assert pump.refusal is None
        finally:
            server.stop()
            await server.finished()

    asyncio.run(run())
