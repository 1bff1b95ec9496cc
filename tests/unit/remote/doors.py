"""A queue manager and callers of remote procedures, without the machine of RPC between them."""

from __future__ import annotations

import random
from typing import Any

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.names import parse_format_name
from openmsmq.remote.management import Management
from openmsmq.remote.ports import Ask, Interface, Output, Return, Throw
from openmsmq.remote.remote_read import RemoteRead
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.wire.packets import UserMessage, decode
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import joined, read
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.remote_read import Action, Operation
from tests.property.driver import Driver
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

PORT = 2103
WHOLE = 0xFFFF_FFFF
ORDERS_NAME = r"DIRECT=OS:ALPHA\private$\orders"


class Hall(Office):
    """An office whose queue manager has callers on other computers as well."""

    def __init__(self, **config: Any) -> None:
        self.doors: list[Door] = []
        self.driver = _Driver(ManagerConfig(name="ALPHA", **config), Instant(0, START_S), self)
        self.app = self.driver.connect()
        self._random = random.Random(1)
        for name in (ORDERS, LEDGER):
            self.ok(api.CreateQueue(name, transactional=name == LEDGER))

    def new_identifier(self) -> bytes:
        return self._random.randbytes(16)

    def reader(self, caller: Caller = UNLIMITED) -> Reader:
        """Let a remote reader in."""
        return Reader(self, RemoteRead(self.new_identifier, PORT), caller)

    def manager_program(self, caller: Caller = UNLIMITED) -> Door:
        """Let a managing program in."""
        return Door(self, Management("ALPHA"), caller)

    def settle(self, *, fail: int = 0) -> None:
        """Carry everything out, for applications and for callers, until nothing is left."""
        self.driver.pump(fail=fail)
        for _ in range(60):
            if not any([door.feed() for door in self.doors]):
                return
            self.driver.pump()
        raise AssertionError("never comes to rest")

    def pass_time(self, seconds: int) -> None:
        super().pass_time(seconds)
        self.settle()
        for door in list(self.doors):
            due_ms = door.interface.next_wake_ms
            if due_ms is not None and due_ms <= self.driver.now.ticks_ms:
                door.carry_out(door.interface.wake(self.driver.now))
        self.settle()


class _Driver(Driver):
    """Keeps answers to callers apart from those to applications."""

    def __init__(self, config: ManagerConfig, now: Instant, hall: Hall) -> None:
        self._hall = hall
        super().__init__(config, now)

    def pump(self, *, fail: int = 0) -> int:
        failed = super().pump(fail=fail)
        for door in self._hall.doors:
            mine = [key for key in self.node.answers if key[0] == door.connection]
            door.replies += [(key[1], self.node.answers.pop(key)) for key in mine]
        return failed

    def call(self, connection: int, request: api.AnyRequest) -> api.AnyReply | None:
        reply = super().call(connection, request)
        self._hall.settle()
        return reply


class Door:
    """One caller, its interface, and what its calls came to."""

    def __init__(self, hall: Hall, interface: Interface, caller: Caller = UNLIMITED) -> None:
        self.hall = hall
        self.interface = interface
        self.connection = hall.driver.connect(caller)
        self.replies: list[tuple[int, api.AnyReply]] = []
        self.ends: dict[int, Return | Throw] = {}
        self._calls = 0
        hall.doors.append(self)

    def feed(self) -> bool:
        """Hand in what the queue manager has answered."""
        replies, self.replies = self.replies, []
        for number, reply in replies:
            self.carry_out(self.interface.answered(number, reply, self.hall.driver.now))
        return bool(replies)

    def carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Ask):
                self.hall.driver.node.manager.request(
                    self.connection, output.number, output.request, self.hall.driver.now
                )
            else:
                assert output.call not in self.ends, "a call ends once"
                self.ends[output.call] = output

    def begin(self, operation: int, stub: bytes) -> int:
        """Make a call, and carry nothing out yet; gives its number."""
        self._calls += 1
        now = self.hall.driver.now
        self.carry_out(self.interface.called(self._calls, operation, stub, now))
        return self._calls

    def call(self, operation: int, stub: bytes) -> Return | Throw | None:
        """Make a call; None while it has no end."""
        number = self.begin(operation, stub)
        self.hall.settle()
        return self.ends.get(number)

    def stub(self, operation: int, stub: bytes) -> bytes:
        """Make a call that returns."""
        end = self.call(operation, stub)
        assert isinstance(end, Return), end
        return end.stub

    def fault(self, operation: int, stub: bytes) -> int:
        """Make a call that ends with a fault."""
        end = self.call(operation, stub)
        assert isinstance(end, Throw), end
        return end.status

    def die(self) -> None:
        """Lose the caller."""
        self.hall.doors.remove(self)
        self.hall.driver.lose(self.connection)
        self.hall.settle()


class Reader(Door):
    """A remote reader."""

    def open(self, name: str = ORDERS_NAME, access: int = 1, share: int = 0) -> bytes:
        stub = self.stub(Operation.OPEN_QUEUE, opening(name, access, share))
        return rpc.OPENED.decode(stub).context

    def open_for_move(self, name: str) -> rpc.OpenedForMove:
        stub = self.stub(Operation.OPEN_QUEUE_FOR_MOVE, opening(name, 4))
        return rpc.OPENED_FOR_MOVE.decode(stub)

    def close(self, context: bytes) -> rpc.Closed:
        stub = self.stub(Operation.CLOSE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(context)))
        return rpc.CLOSED.decode(stub)

    def cursor(self, context: bytes) -> rpc.CursorMade:
        stub = self.stub(Operation.CREATE_CURSOR, rpc.OF_QUEUE.encode(rpc.OfQueue(context)))
        return rpc.CURSOR_MADE.decode(stub)

    def close_cursor(self, context: bytes, cursor: int) -> int:
        request = rpc.CLOSE_CURSOR.encode(rpc.CloseCursor(context, cursor))
        return self.result(Operation.CLOSE_CURSOR, request)

    def result(self, operation: int, stub: bytes) -> int:
        return rpc.RESULT.decode(self.stub(operation, stub)).result

    def begin_receive(self, context: bytes, request: int = 1, **parameters: int) -> int:
        """Ask for a message, and carry nothing out yet; gives the number of the call."""
        return self.begin(Operation.START_RECEIVE, receiving(context, request, **parameters))

    def receive(self, context: bytes, request: int = 1, **parameters: int) -> rpc.Received:
        return rpc.RECEIVED.decode(
            self.stub(Operation.START_RECEIVE, receiving(context, request, **parameters))
        )

    def received(self, call: int) -> rpc.Received | None:
        """Return what a call came to; None while it waits."""
        end = self.ends.get(call)
        if end is None:
            return None
        assert isinstance(end, Return), end
        return rpc.RECEIVED.decode(end.stub)

    def peek(self, context: bytes, request: int = 1, **parameters: int) -> rpc.Received:
        return self.receive(context, request, action=Action.PEEK_CURRENT, **parameters)

    def end(self, context: bytes, verdict: int = rpc.Verdict.ACK, request: int = 1) -> int:
        stub = rpc.END_RECEIVE.encode(rpc.EndReceive(context, verdict, request))
        return self.result(Operation.END_RECEIVE, stub)

    def cancel(self, context: bytes, request: int = 1) -> int:
        stub = rpc.CANCEL_RECEIVE.encode(rpc.CancelReceive(context, request))
        return self.result(Operation.CANCEL_RECEIVE, stub)

    def purge(self, context: bytes) -> int:
        return self.result(Operation.PURGE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(context)))

    def move(self, context: bytes, target: int, lookup_id: int, unit: bytes = bytes(16)) -> int:
        stub = rpc.MOVE_MESSAGE.encode(rpc.MoveMessage(context, target, lookup_id, unit))
        return self.result(Operation.MOVE_MESSAGE, stub)

    def set_class(self, context: bytes, lookup_id: int, value: int) -> int:
        request = rpc.SetAcknowledgementClass(context, lookup_id, value)
        stub = rpc.SET_ACKNOWLEDGEMENT_CLASS.encode(request)
        return self.result(Operation.SET_USER_ACKNOWLEDGEMENT_CLASS, stub)


def opening(name: str | QueueFormat, access: int, share: int = 0) -> bytes:
    """The stub of a call that opens a queue."""
    queue = name if isinstance(name, QueueFormat) else QueueFormat.of(parse_format_name(name))
    return rpc.OPEN_QUEUE.encode(rpc.OpenQueue(queue, access, share, NIL_GUID, 1, 6, 1, 7600, 1))


def receiving(context: bytes, request: int = 1, **parameters: int) -> bytes:
    """The stub of a call that reads a message."""
    given = {
        "lookup_id": 0,
        "cursor": 0,
        "action": Action.RECEIVE,
        "timeout_ms": 0,
        "max_body_bytes": WHOLE,
        "max_compound_bytes": WHOLE,
        **parameters,
    }
    return rpc.START_RECEIVE.encode(rpc.StartReceive(context, request=request, **given))


def message(received: rpc.Received) -> UserMessage:
    """Read the message that a reader got."""
    assert received.result == 0, f"{received.result:#x}"
    packet = decode(read(joined(received.sections))[0])
    assert isinstance(packet, UserMessage)
    return packet


def body(received: rpc.Received) -> bytes:
    """Return the body of the message that a reader got."""
    return message(received).properties.body
