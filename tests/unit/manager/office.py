"""A queue manager and one application, for tests of single operations."""

from __future__ import annotations

from typing import Any

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.model.error_catalogue import CATALOGUE
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.wire.packets import UserMessage, decode
from tests.property.driver import Driver
from tests.strategies.messages import Draft

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
START_S = 1_000_000


class Office:
    """Calls in, answers out; `orders` is a plain queue, `ledger` a transactional one."""

    def __init__(self, **config: Any) -> None:
        self.driver = Driver(ManagerConfig(name="ALPHA", **config), Instant(0, START_S))
        self.app = self.driver.connect()
        for name in (ORDERS, LEDGER):
            self.ok(api.CreateQueue(name, transactional=name == LEDGER))

    def ask(self, request: api.AnyRequest, app: int | None = None) -> api.AnyReply | None:
        """Make a call; None while it has no answer."""
        return self.driver.call(self.app if app is None else app, request)

    def ok(self, request: api.AnyRequest, app: int | None = None) -> Any:
        """Make a call that must not fail."""
        reply = self.ask(request, app)
        assert not isinstance(reply, api.Failed), error_name(reply)
        return reply

    def error(self, request: api.AnyRequest, app: int | None = None) -> str:
        """Make a call that must fail; gives the name of its error."""
        reply = self.ask(request, app)
        assert isinstance(reply, api.Failed), reply
        assert reply.detail, "an error says what it is about"
        return error_name(reply)

    def open(
        self,
        name: str = ORDERS,
        access: AccessMode = AccessMode.RECEIVE,
        share: ShareMode = ShareMode.DENY_NONE,
        app: int | None = None,
    ) -> int:
        """Open a queue; gives the handle."""
        handle = self.ok(api.OpenQueue(name, access, share), app).handle
        assert isinstance(handle, int)
        return handle

    def send(self, *bodies: bytes, name: str = ORDERS, **wishes: Any) -> list[int]:
        """Send messages to a queue; gives their numbers."""
        inside = name.startswith(LEDGER)
        packets = [Draft(body=body, transactional=inside, **wishes).packet() for body in bodies]
        handle = self.open(name, AccessMode.SEND)
        own = api.OWN_TRANSACTION if inside else 0
        numbers = self.ok(api.Send(handle, packets, own)).numbers
        self.ok(api.CloseQueue(handle))
        return list(numbers)

    def bodies(self, name: str = ORDERS) -> list[bytes]:
        """Browse a queue without taking anything."""
        handle = self.open(name, AccessMode.PEEK)
        reply = self.ask(api.Receive(handle, 1000, 0, peek=True))
        self.ok(api.CloseQueue(handle))
        return bodies(reply) if isinstance(reply, api.Entries) else []

    def classes(self, name: str) -> list[int]:
        """Browse an administration queue: which acknowledgments came."""
        handle = self.open(name, AccessMode.PEEK)
        reply = self.ask(api.Receive(handle, 1000, 0, peek=True))
        if not isinstance(reply, api.Entries):
            return []
        return [message(entry).properties.message_class for entry in reply.entries]

    def lookup_ids(self, name: str = ORDERS) -> list[int]:
        """Return the lookup identifiers of a queue, held messages included."""
        handle = self.open(name, AccessMode.PEEK)
        entries = self.ok(api.FetchRange(handle, 0, 1 << 56)).entries
        self.ok(api.CloseQueue(handle))
        return sorted(entry.lookup_id for entry in entries)

    def begin(self) -> int:
        """Begin a transaction; gives its number."""
        number = self.ok(api.Begin()).transaction
        assert isinstance(number, int)
        return number

    def pass_time(self, seconds: int) -> None:
        """Let both clocks go on, and everything happen that is due."""
        now = self.driver.now
        self.driver.now = Instant(now.ticks_ms + seconds * 1000, now.unix_s + seconds)
        self.driver.pump()

    def restart(self, *, committed: bool = True) -> None:
        """Lose power and start again, with a new connection."""
        self.driver.crash(committed=committed)
        self.driver.take_answers()
        self.app = self.driver.connect()

    def fail(self, *requests: api.AnyRequest) -> list[str]:
        """Make calls in one turn that the full disk refuses; gives what became of each."""
        calls = [self.driver.request(self.app, request) for request in requests]
        assert self.driver.pump(fail=True), "the turn needed no disk"
        answers = self.driver.take_answers()
        return [error_name(answers[self.app, call]) for call in calls]


def message(entry: api.Entry) -> UserMessage:
    """Read an entry's packet."""
    packet = decode(entry.packet)
    assert isinstance(packet, UserMessage)
    return packet


def bodies(reply: Any) -> list[bytes]:
    """Return the bodies of the messages in a reply."""
    assert isinstance(reply, api.Entries), reply
    return [message(entry).properties.body for entry in reply.entries]


def error_name(reply: Any) -> str:
    """Return the name of a failure, or of the reply."""
    return CATALOGUE[reply.code].name if isinstance(reply, api.Failed) else type(reply).__name__
