"""The queue manager against a model of plain lists, over long random histories.

`OPENMSMQ_MODEL_EXAMPLES=10000` looks much longer than the default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.messages.housekeeping import RETRY_MS
from openmsmq.model.clock import Instant
from openmsmq.model.limits import INFINITE_S, UNLIMITED_KB
from openmsmq.model.queue import AccessMode, SeekAction, ShareMode
from openmsmq.security.access.sids import LOCAL_SYSTEM
from openmsmq.wire.packets import UserMessage, decode
from tests.property.driver import Driver
from tests.property.model import (
    Cursor,
    Handle,
    Message,
    Model,
    Place,
    Queue,
    Read,
    Refused,
    Reply,
    Transaction,
)
from tests.strategies.messages import Draft

T = TypeVar("T")

EXAMPLES = int(os.environ.get("OPENMSMQ_MODEL_EXAMPLES", "50"))
STEPS = 40
START_S = 1_000_000
EVERYTHING = 1 << 56
ADMIN = "OS:ALPHA\\private$\\admin"

PLAIN, SMALL, ORDERS = "private$\\plain", "private$\\small", "private$\\orders"
SUBQUEUES = [f"{ORDERS};retry", f"{PLAIN};retry", f"{ORDERS};poison"]
JOURNALS = [f"{PLAIN};journal", f"{ORDERS};journal"]
SYSTEM = ["system$;journal", "system$;deadletter", "system$;deadxact"]
TOP = [PLAIN, SMALL, ORDERS, "private$\\admin"]
NAMES = [*TOP, *TOP, *SUBQUEUES, *JOURNALS, *SYSTEM]


class Choices:
    """One drawn number, spent on one choice after the other; 0 always takes the first."""

    def __init__(self, value: int) -> None:
        self._value = value

    def of(self, options: Sequence[T]) -> T:
        self._value, index = divmod(self._value, len(options))
        return options[index]

    def yes(self, one_in: int = 2) -> bool:
        """Say yes once in so many times."""
        return self.of(range(one_in)) == one_in - 1


Bind = Callable[[Any], None]

READERS = ["stream", "stream", "stream", "other"]
QUERIES = ["hourly", "daily"]
CHECKPOINTS = ["", "one", "one", "one", "other"]
TIMEOUTS = [0, 0, 100, 5000, None]
ACCESSES = [AccessMode.RECEIVE, AccessMode.SEND] * 4 + [AccessMode.PEEK, AccessMode.MOVE]
OPERATIONS = [
    *["send"] * 10,
    *["receive"] * 10,
    *["begin"] * 4,
    *["end_transaction"] * 2,
    *["read_at_cursor", "seek"] * 2,
    *["move"] * 4,
    *["find", "remove_range", "purge", "resolve", "cancel"],
    *["reserve"] * 6,
    *["complete"] * 3,
    "release",
    *["prepare_part"] * 4,
    *["commit_batch"] * 2,
    *["abort_batch", "get_batch"],
    *["open_queue", "open_queue", "open_family", "close_queue", "create_cursor", "close_cursor"],
    *["create_queue", "change_queue", "delete_queue", "lose_connection"],
]
SIMPLE = {
    api.Done: ["done"],
    api.CursorCreated: ["cursor"],
    api.Begun: ["begun"],
    api.Removed: ["removed", "count"],
    api.Completed: ["completed", "count", "more"],
    api.LastBatch: ["batch", "batch"],
    api.BatchCommitted: ["committed", "before"],
}
"""How the model calls a reply, and what of it is compared."""
ENDS = [
    *["done"] * 9,
    *["time passes"] * 4,
    *["disk is full", "disk stays full"],
    *["power fails after the commit"] * 2,
    "power fails before the commit",
]
turns = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.binary(min_size=10, max_size=10)),
    min_size=1,
    max_size=5,
)


def _nothing(_: Any) -> None:
    pass


class ManagerMachine(RuleBasedStateMachine):
    """Hands every input to the queue managers and to the model, and compares all they say."""

    nodes = 1
    plain = False
    """Whether most messages cause nothing when they end, so that many can go together."""

    def __init__(self) -> None:
        super().__init__()
        config = ManagerConfig(name="ALPHA", range_removal_min=1, aside_min_bytes=1)
        self.driver = Driver(config, Instant(0, START_S), self.nodes)
        self.model = Model()
        self.model.unix_s = START_S
        self.binds: dict[tuple[int, int], Bind] = {}
        self.asked: dict[tuple[int, int], api.AnyRequest] = {}
        self.handles: list[Handle] = []
        self.transactions: list[Transaction] = []
        self.known: list[Place] = []
        self.numbers: dict[int, Message] = {}
        self.lookups: set[int] = set()
        self.starts: set[int] = set()
        """Where reservations were asked to begin."""
        self.reserved_from: dict[Queue, tuple[int, int]] = {}
        self.tags = 0
        self.looks = 0
        self.apps = [self.connect(), self.connect()]
        self.observer = self.connect()
        for name in TOP:
            journaling = name == ORDERS and not self.plain
            self.create(name, transactional=name == ORDERS, journaling=journaling)
        for app in (0, 1):
            self.open_usual(app)
        self.pump()

    # The two worlds.

    def connect(self) -> int:
        connection = self.driver.connect()
        self.model.connections.add(connection)
        return connection

    def issue(
        self,
        connection: int,
        request: api.AnyRequest,
        act: Callable[[int], Reply | None],
        bind: Bind = _nothing,
    ) -> None:
        """Give one request to both."""
        call = self.driver.request(connection, request)
        self.model.expire()
        try:
            reply = act(call)
        except Refused as refused:
            reply = refused.reply
        if reply is not None:
            self.model.answer(connection, call, reply)
        self.model.serve()
        self.binds[connection, call], self.asked[connection, call] = bind, request

    def pump(self, *, fail: int = 0) -> None:
        """Let both carry out everything, and compare the answers."""
        failed = self.driver.pump(fail=fail)
        if failed:
            self.model.pump(fail=fail)
            self.advance(RETRY_MS, 0)
        else:
            self.model.pump()
        self.compare_answers()

    def advance(self, ticks_ms: int, unix_s: int) -> None:
        now = self.driver.now
        self.driver.now = Instant(now.ticks_ms + ticks_ms, max(0, now.unix_s + unix_s))
        self.model.ticks_ms, self.model.unix_s = self.driver.now.ticks_ms, self.driver.now.unix_s
        self.driver.pump()
        self.model.pump()

    def compare_answers(self) -> None:
        real = self.driver.take_answers()
        expected, self.model.replies = self.model.replies, {}
        assert real.keys() == expected.keys()
        for key, reply in real.items():
            assert self.normal(reply, expected[key]) == expected[key], self.asked[key]
            if not isinstance(reply, api.Failed):
                self.binds[key](reply)

    def normal(self, reply: api.AnyReply, expected: Reply) -> Reply:
        """Say a reply in the model's words."""
        match reply:
            case api.Failed(code, _):
                return ("failed", code)
            case api.Sent(numbers, _):
                return ("sent", len(numbers))
            case api.Opened():
                return ("opened", reply.path_name.lower(), reply.transactional)
            case api.Entries(entries):
                views = expected[1] if expected[0] == "entries" else []
                assert len(entries) == len(views)
                pairs = zip(entries, views, strict=True)
                return ("entries", [self.seen(entry, view[0]) for entry, view in pairs])
            case api.Reserved(stop):
                return ("reserved", self.last_reserved(stop, expected))
            case api.Queues(queues):
                return ("queues", _status(queues[0]))
            case _:
                name, *fields = SIMPLE[type(reply)]
                return (name, *(getattr(reply, field) for field in fields))

    def last_reserved(self, stop: int, expected: Reply) -> Place | None:
        """Return the place behind which a reservation ends; None if it has none."""
        place = expected[-1]
        if not isinstance(place, Place):
            assert stop in self.starts, "a reservation of nothing ends where it begins"
            return None
        assert place.lookup_id in (None, place.order[0] << 56 | stop - 1)
        return place

    def seen(self, entry: api.Entry, message: Message) -> Reply:
        """Check that an entry is this message; learn what only the queue manager knows."""
        packet = decode(entry.packet)
        assert isinstance(packet, UserMessage)
        number = packet.user.message_number
        if message.number is None:
            assert number not in self.numbers, "a message number was given twice"
            message.number = number
            self.numbers[number] = message
        assert number == message.number
        assert packet.user.sent_time_s == message.sent_s
        ended_as = 0
        if message.about is None:
            assert packet.properties.body == message.draft.body
            ended_as = packet.properties.message_class
        else:
            reason, original = message.about
            message.size = len(entry.packet)
            assert packet.properties.message_class == reason
            assert packet.properties.body == (original.draft.body if reason & 0x8000 else b"")
            told = int.from_bytes(packet.properties.correlation_id[16:], "little")
            assert original.number in (None, told)
        assert len(entry.packet) == message.size
        return (message, entry.abort_count, entry.move_count, entry.arrived_time_s, ended_as)

    # What is there to choose from.

    def handle(self, c: Choices, *accesses: AccessMode) -> Handle | None:
        """Choose a handle, most often one with such an access."""
        known = [handle for handle in self.handles if handle.number]
        fitting = [handle for handle in known if handle.access in accesses]
        busy = {work.connection for work in self.model.transactions if work.state == "active"}
        favourite = [
            handle for handle in fitting if handle.queue.transactional and handle.connection in busy
        ]
        found = known if c.yes(16) or not fitting else fitting
        if favourite and c.yes():
            found = favourite
        return c.of(found) if found else None

    def transaction(self, c: Choices, connection: int) -> Transaction | None:
        """Choose a transaction, most often one of this connection that is active."""
        known = [work for work in self.transactions if work.number]
        mine = [work for work in known if work.connection == connection and work.state == "active"]
        found = known if c.yes(16) else mine
        return c.of(found) if found else None

    def transaction_for(self, c: Choices, handle: Handle) -> tuple[Transaction | None, int]:
        """Choose whether to work in a transaction: usually as the queue wants it."""
        wanted = handle.queue.transactional is not c.yes(12) and not c.yes(6)
        work = self.transaction(c, handle.connection) if wanted else None
        return (None, 0) if work is None else (work, work.number)

    def place(self, c: Choices, queue: Queue) -> Place | None:
        """Choose a place, most often one in this queue."""
        here = [place for place in queue.places if place.lookup_id is not None]
        found = self.known if c.yes(8) or not here else here
        return c.of(found) if found else None

    # Queues.

    def create(self, name: str, *, transactional: bool, journaling: bool) -> None:
        quota_kb = 2 if name == SMALL else UNLIMITED_KB
        app = self.apps[0]
        self.issue(
            app,
            api.CreateQueue(name, transactional, journaling, quota_kb, quota_kb),
            lambda call: self.model.create(
                call,
                app,
                name,
                transactional=transactional,
                journaling=journaling,
                quota_kb=quota_kb,
            ),
        )

    def create_queue(self, c: Choices) -> None:
        name = c.of([PLAIN, SMALL, ORDERS])
        transactional = (name == ORDERS) is not c.yes(4)
        self.create(name, transactional=transactional, journaling=c.yes())

    def change_queue(self, c: Choices) -> None:
        name = c.of([SMALL, PLAIN, ORDERS, JOURNALS[0]])
        quota_kb = c.of([1, 2, 3]) if name == SMALL else UNLIMITED_KB
        app, journaling = self.apps[0], c.yes()
        self.issue(
            app,
            api.ChangeQueue(name, journaling=journaling, quota_kb=quota_kb),
            lambda call: self.model.change(
                call, app, name, journaling=journaling, quota_kb=quota_kb
            ),
        )

    def delete_queue(self, c: Choices) -> None:
        app, name = c.of(self.apps), c.of(TOP + SUBQUEUES)
        self.issue(app, api.DeleteQueue(name), lambda call: self.model.delete(call, app, name))
        if name in TOP and not c.yes(3):
            self.create(name, transactional=name == ORDERS, journaling=c.yes())
            self.open_usual(c.of([0, 1]))

    def open(self, app: int, name: str, access: AccessMode, share: ShareMode) -> None:
        made: list[Handle] = []

        def act(call: int) -> None:
            made.append(self.model.open(call, app, name, access, share))

        def bind(reply: api.Opened) -> None:
            if made[0] in made[0].queue.handles:
                made[0].number = reply.handle
                self.handles.append(made[0])

        self.issue(app, api.OpenQueue(name, access, share), act, bind)

    def open_queue(self, c: Choices) -> None:
        app, name = c.of(self.apps), c.of(NAMES)
        access = c.of(list(ACCESSES))
        self.open(app, name, access, c.of([ShareMode.DENY_NONE] * 3 + [ShareMode.DENY_RECEIVE]))

    def open_family(self, c: Choices) -> None:
        """Open a queue and a subqueue so that messages can move between them."""
        app, name = c.of(self.apps), c.of(SUBQUEUES)
        parent = name.partition(";")[0]
        for source, target in ((parent, name), (name, parent)):
            self.open(app, source, AccessMode.RECEIVE, ShareMode.DENY_NONE)
            self.open(app, target, AccessMode.MOVE, ShareMode.DENY_NONE)

    def close_queue(self, c: Choices) -> None:
        handle = self.handle(c)
        if handle is not None:
            self.handles.remove(handle)
            self.issue(
                handle.connection,
                api.CloseQueue(handle.number),
                lambda _: self.model.close(handle),
            )

    # Messages.

    def draft(self, c: Choices, *, transactional: bool) -> Draft:
        self.tags += 1
        if self.plain and not c.yes(12):
            body, priority = b"m%d" % self.tags, c.of([3, 0, 7])
            return Draft(
                body=body, priority=priority, recoverable=True, transactional=transactional
            )
        return Draft(
            body=b"m%d" % self.tags,
            priority=c.of([3, 0, 7]),
            recoverable=not c.yes(3) or transactional,
            time_to_be_received_s=c.of([INFINITE_S, INFINITE_S, 5, 1, 60, 0]),
            admin_queue=c.of([ADMIN, None]),
            acknowledge=c.of([0, 0xF, 0xE, 0x8]),
            journal_on_failure=c.yes(),
            journal_on_success=c.yes(4),
            transactional=transactional,
        )

    def send(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.SEND)
        if handle is None:
            return
        transaction, number = self.transaction_for(c, handle)
        own = transaction is None and handle.queue.transactional is not c.yes(12)
        number = api.OWN_TRANSACTION if own else number
        inside = (own or transaction is not None) is not c.yes(32)
        wanted = [self.draft(c, transactional=inside) for _ in range(c.of([1, 2, 3]))]
        packets = [draft.packet() for draft in wanted]
        sizes = [len(packet) for packet in packets]
        made: list[Message] = []

        def act(call: int) -> Reply | None:
            batch = list(zip(wanted, sizes, strict=True))
            reply, messages = self.model.send(call, handle, batch, transaction, own=own)
            made.extend(messages)
            return reply

        def bind(reply: api.Sent) -> None:
            for message, number in zip(made, reply.numbers, strict=True):
                assert message.number in (None, number)
                assert self.numbers.setdefault(number, message) is message
                message.number = number

        self.issue(handle.connection, api.Send(handle.number, packets, number), act, bind)

    def read(self, handle: Handle, request: Callable[[int], api.AnyRequest], read: Read) -> None:
        """Issue a read; `request` gets the number of the transaction."""
        work = read.transaction

        def act(call: int) -> Reply | None:
            read.call = call
            return self.model.read(read)

        self.issue(handle.connection, request(0 if work is None else work.number), act)

    def receive(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.RECEIVE)
        if handle is None:
            return
        timeout_ms, peek, count = c.of(TIMEOUTS), c.yes(6), c.of([1, 2, 3])
        work = None if peek else self.transaction_for(c, handle)[0]
        self.read(
            handle,
            lambda number: api.Receive(handle.number, count, timeout_ms, peek, transaction=number),
            Read(handle, timeout_ms, peek=peek, transaction=work, count=count),
        )

    def find(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.RECEIVE, AccessMode.PEEK)
        place = None if handle is None else self.place(c, handle.queue)
        if handle is None or place is None or place.message.number is None:
            return
        wanted, timeout_ms, peek = place.message, c.of(TIMEOUTS), c.yes()
        manager = bytes(self.driver.manager.identifier)
        identifier = manager + place.message.number.to_bytes(4, "little")
        self.read(
            handle,
            lambda number: api.Find(handle.number, identifier, None, timeout_ms, peek, number),
            Read(
                handle,
                timeout_ms,
                peek=peek,
                transaction=None if peek else self.transaction_for(c, handle)[0],
                wanted=lambda place: place.message is wanted,
            ),
        )

    def seek(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.RECEIVE, AccessMode.PEEK)
        place = None if handle is None else self.place(c, handle.queue)
        if handle is None or place is None or place.lookup_id is None:
            return
        action, peek = c.of([SeekAction.CURRENT, *SeekAction]), c.yes()
        transaction, number = (None, 0) if peek else self.transaction_for(c, handle)
        self.issue(
            handle.connection,
            api.Seek(handle.number, action.value, place.lookup_id, peek, number),
            lambda call: self.model.seek(
                call, handle, action, place.order, peek=peek, transaction=transaction
            ),
        )

    def remove_range(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.RECEIVE)
        low = None if handle is None else self.place(c, handle.queue)
        high = None if handle is None else self.place(c, handle.queue)
        if handle is None or low is None or high is None:
            return
        assert low.lookup_id is not None
        assert high.lookup_id is not None
        start, stop = low.lookup_id % EVERYTHING, high.lookup_id % EVERYTHING
        self.issue(
            handle.connection,
            api.RemoveRange(handle.number, start, stop),
            lambda call: self.model.remove_range(call, handle, low.order[1], high.order[1]),
        )

    def number(self, c: Choices, queue: Queue) -> tuple[int, int]:
        """Choose an arrival number: as the queue manager has it, and its place in order."""
        place = self.place(c, queue)
        if place is None or place.lookup_id is None or c.yes(3):
            return 0, 0
        behind = int(c.yes())
        return place.lookup_id % EVERYTHING + behind, place.order[1] + behind

    def stream_handle(self, c: Choices) -> Handle | None:
        """Choose a handle, most often of a queue in which something is reserved, or could be."""
        open_ones = [
            handle
            for handle in self.handles
            if handle.number and handle.access is AccessMode.RECEIVE and handle.queue.places
        ]
        reserved = [handle for handle in open_ones if handle.queue.reserved[2]]
        found = reserved if reserved and not c.yes(3) else open_ones
        return c.of(found) if found and not c.yes(8) else self.handle(c, AccessMode.RECEIVE)

    def reserve(self, c: Choices) -> None:
        handle = self.stream_handle(c)
        if handle is None:
            return
        start, first = self.number(c, handle.queue)
        reserved = [place for place in handle.queue.places if handle.queue.is_reserved(place)]
        if reserved and c.yes():
            # As a reader does that begins again with what it has.
            start, first = self.reserved_from.get(handle.queue, (start, first))
        reader, count = c.of(READERS), c.of([0, 0, 1, 2])
        below, end = self.number(c, handle.queue) if c.yes(4) else (0, 0)
        self.starts.add(start)

        def act(call: int) -> Reply | None:
            before = handle.queue.reserved
            self.model.reserve(call, handle, reader, first, count, end or EVERYTHING)
            if handle.queue.reserved[1] != before[1]:
                self.reserved_from[handle.queue] = start, first
            return None

        request = api.Reserve(handle.number, reader, start, count, 0, below)
        self.issue(handle.connection, request, act)

    def complete(self, c: Choices) -> None:
        handle = self.stream_handle(c)
        if handle is None:
            return
        stop, end = self.number(c, handle.queue)
        if not stop or c.yes():
            stop = end = EVERYTHING
        reader = c.of(READERS)
        self.issue(
            handle.connection,
            api.Complete(handle.number, reader, stop),
            lambda call: self.model.complete(call, handle, reader, end),
        )

    def release(self, c: Choices) -> None:
        reserved = [name for name, queue in self.model.queues.items() if queue.reserved[2]]
        app, name = c.of(self.apps), c.of(NAMES if c.yes(4) or not reserved else reserved)
        self.issue(app, api.Release(name), lambda call: self.model.release(call, app, name))

    def purge(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.RECEIVE)
        if handle is not None:
            self.issue(
                handle.connection,
                api.Purge(handle.number),
                lambda call: self.model.purge(call, handle),
            )

    def move(self, c: Choices) -> None:
        target = self.handle(c, AccessMode.MOVE)
        if target is None:
            return
        mine = [
            each for each in self.handles if each.number and each.connection == target.connection
        ]
        near = [
            each
            for each in mine
            if each.queue.name.partition(";")[0] == target.queue.name.partition(";")[0]
            and each.queue is not target.queue
            and each.access is AccessMode.RECEIVE
        ]
        handle = c.of(mine if c.yes(12) or not near else near)
        place = self.place(c, handle.queue)
        if place is None or place.lookup_id is None:
            return
        lookup_id = place.lookup_id
        transaction, number = self.transaction_for(c, handle)
        self.issue(
            handle.connection,
            api.Move(handle.number, lookup_id, target.number, number),
            lambda call: self.model.move(call, handle, target, lookup_id, transaction),
        )

    # Cursors, waiting reads.

    def create_cursor(self, c: Choices) -> None:
        handle = self.handle(c, AccessMode.RECEIVE, AccessMode.PEEK)
        if handle is None:
            return
        made: list[Cursor] = []

        def act(_: int) -> Reply:
            made.append(self.model.create_cursor(handle))
            return ("cursor",)

        def bind(reply: api.CursorCreated) -> None:
            made[0].number = reply.cursor

        self.issue(handle.connection, api.CreateCursor(handle.number), act, bind)

    def cursors(self) -> list[tuple[Handle, Cursor]]:
        return [
            (handle, cursor)
            for handle in self.handles
            for cursor in handle.cursors
            if handle.number and cursor.number
        ]

    def read_at_cursor(self, c: Choices) -> None:
        if not self.cursors():
            self.create_cursor(c)
            return
        handle, cursor = c.of(self.cursors())
        timeout_ms, peek, move_on = c.of(TIMEOUTS), not c.yes(3), c.yes()
        self.read(
            handle,
            lambda number: api.Receive(
                handle.number, 1, timeout_ms, peek, cursor.number, move_on, transaction=number
            ),
            Read(
                handle,
                timeout_ms,
                peek=peek,
                cursor=cursor,
                move_on=move_on,
                transaction=None if peek else self.transaction_for(c, handle)[0],
            ),
        )

    def close_cursor(self, c: Choices) -> None:
        if self.cursors():
            handle, cursor = c.of(self.cursors())
            handle.cursors.remove(cursor)
            self.issue(
                handle.connection,
                api.CloseCursor(cursor.number),
                lambda _: self.model.close_cursor(handle, cursor),
            )

    def cancel(self, c: Choices) -> None:
        reads = [
            (read.handle.connection, read.call)
            for queue in self.model.queues.values()
            for read in queue.waiting
        ]
        connection, call = c.of(reads) if reads else (self.apps[0], 1)
        self.issue(connection, api.Cancel(call), lambda _: self.model.cancel(connection, call))

    # Transactions.

    def begin(self, c: Choices) -> None:
        connection = c.of(self.apps)
        if sum(work.connection == connection for work in self.model.transactions) > 1:
            return
        made: list[Transaction] = []

        def act(call: int) -> None:
            made.append(self.model.begin(call, connection))

        def bind(reply: api.Begun) -> None:
            made[0].number, made[0].unit_of_work = reply.transaction, reply.unit_of_work
            self.transactions.append(made[0])

        self.issue(connection, api.Begin(), act, bind)

    def end_transaction(self, c: Choices) -> None:
        known = [work for work in self.transactions if work.number]
        open_ones = [work for work in known if work in self.model.transactions]
        found = known if c.yes(16) or not open_ones else open_ones
        if not found:
            return
        work = c.of(found)
        connection = work.connection if work.connection in self.apps else c.of(self.apps)
        assert connection is not None
        request, act = c.of(
            [
                (api.Commit, self.model.commit),
                (api.Abort, self.model.abort),
                (api.Prepare, self.model.prepare),
                (api.Prepare, self.model.prepare),
            ]
        )
        self.issue(connection, request(work.number), lambda call: act(call, connection, work))

    # Batches.

    def batch(self, c: Choices) -> tuple[str, int]:
        """Choose a batch, most often the next one of a query."""
        query = c.of(QUERIES)
        last, _ = self.model.batches.get(query, (-1, ""))
        return query, max(0, last + c.of([1, 1, 1, 2, 0, -1]))

    def prepare_part(self, c: Choices) -> None:
        mine = [work for work in self.transactions if work.number and work.state == "active"]
        if not mine:
            self.begin(c)
            return
        work, (query, batch), origin = c.of(mine), self.batch(c), c.of(CHECKPOINTS)
        app = work.connection if work.connection in self.apps else c.of(self.apps)
        assert app is not None
        self.issue(
            app,
            api.Prepare(work.number, query, batch, origin),
            lambda call: self.model.prepare(call, app, work, query, batch, origin),
        )

    def commit_batch(self, c: Choices) -> None:
        query, batch = self.batch(c)
        waiting = [
            work for work in self.model.transactions if work.query and work.state == "prepared"
        ]
        if waiting and not c.yes(4):
            chosen = c.of(waiting)
            query, batch = chosen.query, chosen.batch
        parts = [
            work.unit_of_work
            for work in waiting
            if (work.query, work.batch) == (query, batch) and not c.yes(4)
        ]
        if c.yes(8):
            parts += c.of([[bytes(16)], parts[:1], [work.unit_of_work for work in waiting[:1]]])
        if c.yes():
            parts.reverse()
        app, origin = c.of(self.apps), c.of(CHECKPOINTS)
        self.issue(
            app,
            api.CommitBatch(query, batch, parts, origin),
            lambda call: self.model.commit_batch(call, app, query, batch, parts, origin),
        )

    def abort_batch(self, c: Choices) -> None:
        app, (query, batch), origin = c.of(self.apps), self.batch(c), c.of(CHECKPOINTS)
        self.issue(
            app,
            api.AbortBatch(query, batch, origin),
            lambda call: self.model.abort_batch(call, app, query, batch, origin),
        )

    def get_batch(self, c: Choices) -> None:
        app, (query, batch), origin = c.of(self.apps), self.batch(c), c.of(CHECKPOINTS)
        batch = c.of([batch, -1])
        self.issue(
            app,
            api.GetBatch(query, batch, origin),
            lambda call: self.model.get_batch(call, app, query, batch, origin),
        )

    def resolve(self, c: Choices) -> None:
        found = [work for work in self.model.transactions if work.state == "prepared"]
        work = c.of(found) if found else None
        app, commit = c.of(self.apps), c.yes()
        name = bytes(16) if work is None else work.unit_of_work
        self.issue(
            app,
            api.Resolve(name, commit),
            lambda call: self.model.resolve(call, app, work, commit=commit),
        )

    # The world outside.

    def lose_connection(self, c: Choices) -> None:
        app = c.of([0, 1])
        lost = self.apps[app]
        self.driver.lose(lost)
        self.model.lose(lost)
        self.handles = [handle for handle in self.handles if handle.connection != lost]
        self.apps[app] = self.connect()
        self.open_usual(app)

    def open_usual(self, app: int) -> None:
        """Applications begin by opening a few queues."""
        for name in (PLAIN, ORDERS, SMALL)[: 3 - app]:
            self.open(self.apps[app], name, AccessMode.SEND, ShareMode.DENY_NONE)
            self.open(self.apps[app], name, AccessMode.RECEIVE, ShareMode.DENY_NONE)
        self.open_family(Choices(app))

    @rule(turn=turns, end=st.sampled_from(ENDS))
    def applications_ask(self, turn: list[tuple[str, bytes]], end: str) -> None:
        """Several requests share a turn; the disk takes it or is full, or the power fails."""
        for name, pick in turn:
            c = Choices(int.from_bytes(pick, "little"))
            if end != "power fails before the commit":
                getattr(self, name)(c)
            elif name != "lose_connection":
                self.only_ask(name, c)
        if end == "power fails before the commit":
            self.driver.crash(committed=False)
            self.start_again()
        elif end == "power fails after the commit":
            self.driver.crash(committed=True)
            self.model.end_turn()
            self.start_again()
        else:
            self.pump(fail={"disk is full": 1, "disk stays full": EVERYTHING}.get(end, 0))
            if end == "time passes":
                c = Choices(int.from_bytes(turn[0][1], "big"))
                self.advance(c.of([100, 1, 5000]), c.of([1, 0, 5, 60, 5, -10]))
                self.compare_answers()

    def only_ask(self, name: str, c: Choices) -> None:
        issue, self.issue = self.issue, self.ask  # type: ignore[method-assign]
        handles = list(self.handles)
        getattr(self, name)(c)
        self.issue, self.handles = issue, handles  # type: ignore[method-assign]

    def ask(self, connection: int, request: api.AnyRequest, *_: Any) -> None:
        self.driver.request(connection, request)

    def start_again(self) -> None:
        self.model.crash()
        self.model.pump()
        self.model.replies.clear()
        self.driver.take_answers()
        self.handles, self.transactions = [], []
        self.apps = [self.connect(), self.connect()]
        self.observer = self.connect()
        for app in (0, 1):
            self.open_usual(app)
        self.pump()

    @rule(turn=turns)
    def woken_early_and_twice(self, turn: list[tuple[str, bytes]]) -> None:
        self.driver.wake()
        self.driver.wake()
        for name, pick in turn:
            getattr(self, name)(Choices(int.from_bytes(pick, "little")))
            self.driver.wake()
            self.model.wake()
        self.pump()

    # What must always be so.

    @invariant()
    def same_state(self) -> None:
        """Look at everything through an observer's connection."""
        names = list(self.model.queues)
        self.model.expire()
        statuses = self.observe([api.GetQueue(name) for name in names])
        opened = self.observe([api.OpenQueue(name, AccessMode.PEEK) for name in names])
        self.model.pump()
        handles = [reply.handle if isinstance(reply, api.Opened) else 0 for reply in opened]
        rows = self.observe([api.FetchRange(handle, 0, EVERYTHING, 1000) for handle in handles])
        free = self.observe([api.Receive(handle, 1000, 0, peek=True) for handle in handles])
        for handle, status, found in zip(handles, statuses, rows, strict=True):
            self.fetch_reserved(handle, status, found)
        self.observe([api.CloseQueue(handle) for handle in handles])
        assert not self.model.replies
        for index, name in enumerate(names):
            queue, status = self.model.queues[name], statuses[index]
            assert isinstance(status, api.Queues)
            assert _status(status.queues[0]) == self.model.status(queue)
            denied = any(handle.share is ShareMode.DENY_RECEIVE for handle in queue.handles)
            assert denied is (handles[index] == 0)
            if not denied:
                self.compare_places(queue, rows[index], free[index])
                self.compare_reservation(queue, status.queues[0])
                assert status.queues[0].message_bytes == queue.size
        self.compare_doubt()

    def fetch_reserved(self, handle: int, status: api.AnyReply, rows: api.AnyReply) -> None:
        """Fetch what is reserved as its reader would, on most looks, in answers of any size."""
        self.looks += 1
        if not handle or self.looks % 4 == 0:
            return
        assert isinstance(status, api.Queues)
        assert isinstance(rows, api.Entries)
        start, stop = status.queues[0].reserved_start, status.queues[0].reserved_stop
        inside = [
            row.lookup_id for row in rows.entries if start <= row.lookup_id % EVERYTHING < stop
        ]
        found: list[bytes] = []
        while start < stop:
            request = api.FetchPackets(handle, start, stop, (1, 2, 1000)[self.looks % 3])
            [reply] = self.observe([request])
            assert isinstance(reply, api.Packets)
            assert start < reply.next_start <= stop
            found.append(reply.lookup_ids)
            start = reply.next_start
        assert b"".join(found) == b"".join(number.to_bytes(8, "big") for number in inside)

    def observe(self, requests: Sequence[api.AnyRequest]) -> list[api.AnyReply]:
        calls = [self.driver.request(self.observer, request) for request in requests]
        self.driver.pump()
        answers = self.driver.take_answers()
        return [answers[self.observer, call] for call in calls]

    def compare_places(self, queue: Queue, rows: api.AnyReply, free: api.AnyReply) -> None:
        assert isinstance(rows, api.Entries)
        expected = sorted(queue.places, key=lambda place: place.order[1])
        assert len(rows.entries) == len(expected)
        for entry, place in zip(rows.entries, expected, strict=True):
            self.compare_place(entry, place)
        available = [place.lookup_id for place in queue.free]
        if available:
            assert isinstance(free, api.Entries)
            assert [entry.lookup_id for entry in free.entries] == available
        else:
            assert isinstance(free, api.Failed)

    def compare_reservation(self, queue: Queue, status: api.QueueStatus) -> None:
        assert status.reserved_for == queue.reserved[0]
        for place in queue.places:
            assert place.lookup_id is not None
            arrival = place.lookup_id % EVERYTHING
            reserved = status.reserved_start <= arrival < status.reserved_stop
            assert reserved is queue.is_reserved(place)

    def compare_place(self, entry: api.Entry, place: Place) -> None:
        assert self.seen(entry, place.message) == self.model.view(place)
        if place.lookup_id is None:
            assert entry.lookup_id not in self.lookups, "a lookup identifier was given twice"
            self.lookups.add(entry.lookup_id)
            place.lookup_id = entry.lookup_id
            self.known = [*self.known[-20:], place]
        assert entry.lookup_id == place.lookup_id
        assert entry.lookup_id >> 56 == place.order[0]

    def compare_doubt(self) -> None:
        found, status = self.observe([api.ListTransactions(), api.GetStatus()])
        assert isinstance(found, api.Transactions)
        expected = [
            api.InDoubt(
                work.unit_of_work,
                work.prepared_s,
                len(work.sends),
                len(work.receives),
                work.query,
                work.batch,
                str(LOCAL_SYSTEM),
            )
            for work in self.model.transactions
            if work.state == "prepared"
        ]
        by_name = sorted(found.transactions, key=lambda each: each.unit_of_work)
        assert by_name == sorted(expected, key=lambda each: each.unit_of_work)
        assert isinstance(status, api.Status)
        assert status.transaction_count == len(self.model.transactions)
        assert status.message_count == sum(
            len(queue.counted) for queue in self.model.queues.values()
        )


class PlainMachine(ManagerMachine):
    """The same with messages that readers complete as ranges."""

    plain = True


class TwinMachine(ManagerMachine):
    """The same, with a second queue manager in lock step: same inputs, same outputs."""

    nodes = 2


def _status(queue: api.QueueStatus) -> Reply:
    return (
        queue.path_name.lower(),
        queue.transactional,
        queue.journaling,
        queue.quota_kb,
        queue.message_count,
        queue.journal_message_count,
        queue.open_count,
        queue.waiting_count,
    )


TestManagerModel = ManagerMachine.TestCase
TestPlainMessages = PlainMachine.TestCase
TestPlainMessages.settings = settings(max_examples=max(EXAMPLES // 2, 1), stateful_step_count=STEPS)
TestManagerModel.settings = settings(max_examples=EXAMPLES, stateful_step_count=STEPS)
TestDeterminism = TwinMachine.TestCase
TestDeterminism.settings = settings(max_examples=max(EXAMPLES // 10, 1), stateful_step_count=STEPS)
