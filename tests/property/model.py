"""A queue manager as plain lists: slow, short, and meant to be obviously right.

Queues are lists of places; a place is a message and what happened to it there. Everything that
needs the disk is noted with `later`: what to do when the turn is durable, and what when it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from openmsmq.model import errors
from openmsmq.model.limits import INFINITE_S, UNLIMITED_KB
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode, SeekAction, ShareMode
from tests.strategies.messages import Draft

Reply = tuple[Any, ...]
DONE: Reply = ("done",)
NOBODY = ("", 0, 0)
"""A reservation: its reader, and the places between two numbers in order of arrival."""
FULL = errors.InsufficientResources.code


def failed(kind: type[errors.MsmqError]) -> Reply:
    return ("failed", kind.code)


class Refused(Exception):
    """An answer, not a defect."""

    def __init__(self, kind: type[errors.MsmqError]) -> None:
        super().__init__(kind.__name__)
        self.reply = failed(kind)


class Message:
    """A message; the queue manager tells its number, and for acknowledgments its size."""

    def __init__(self, draft: Draft, sent_s: int, size: int) -> None:
        self.draft = draft
        self.sent_s = sent_s
        self.size = size
        self.number: int | None = None
        self.about: tuple[int, Message] | None = None
        """For an acknowledgment: its class and the message it tells of."""

    @property
    def durable(self) -> bool:
        return self.draft.recoverable

    @property
    def deadline_s(self) -> int:
        within = self.draft.time_to_be_received_s
        return INFINITE_S if within == INFINITE_S else self.sent_s + within


class Place:
    """A message in a queue."""

    def __init__(self, message: Message, order: tuple[int, int], arrived_s: int) -> None:
        self.message = message
        self.order = order
        self.arrived_s = arrived_s
        self.deadline_s = INFINITE_S
        self.asks = False
        """Whether its end has consequences; copies in journals have none."""
        self.ended_as = 0
        """In a dead-letter queue: the class that says why it is there."""
        self.aborts = 0
        self.moves = 0
        self.state = "coming"
        """Then "here"; "going" while its removal waits for the disk, "expired" when that failed."""
        self.holder: Transaction | None = None
        self.doom: MessageClass | None = None
        self.lookup_id: int | None = None

    @property
    def free(self) -> bool:
        return self.state == "here" and self.holder is None


class Queue:
    """A queue with its journal and subqueues."""

    def __init__(self, number: int, name: str, role: str, *, transactional: bool) -> None:
        self.number = number
        self.name = name
        self.role = role
        self.transactional = transactional
        self.journaling = False
        self.quota_kb = UNLIMITED_KB
        self.parent: Queue | None = None
        self.journal: Queue | None = None
        self.subqueues: list[Queue] = []
        self.places: list[Place] = []
        self.reserved = NOBODY
        self.releasing = False
        self.handles: list[Handle] = []
        self.waiting: list[Read] = []

    @property
    def in_order(self) -> list[Place]:
        return sorted(self.places, key=lambda place: place.order)

    @property
    def here(self) -> list[Place]:
        """What can be looked up: also what a transaction has, until it is ended."""
        return [place for place in self.in_order if place.state == "here"]

    def is_reserved(self, place: Place) -> bool:
        _, start, stop = self.reserved
        return start <= place.order[1] < stop

    def is_free(self, place: Place) -> bool:
        return place.free and not self.is_reserved(place)

    @property
    def free(self) -> list[Place]:
        return [place for place in self.in_order if self.is_free(place)]

    def stored(self, start: int, stop: int) -> list[Place]:
        """What the store has in a range, in order of arrival, whoever holds it."""
        found = [place for place in self.places if start <= place.order[1] < stop]
        found = [place for place in found if place.state != "coming"]
        return sorted(found, key=lambda place: place.order[1])

    @property
    def counted(self) -> list[Place]:
        return [place for place in self.places if place.state not in ("going", "moving")]

    @property
    def size(self) -> int:
        return sum(place.message.size for place in self.counted)

    def has_room(self, size: int) -> bool:
        owner = self.parent if self.role == "subqueue" and self.parent else self
        used = owner.size + sum(sub.size for sub in owner.subqueues)
        return owner.quota_kb == UNLIMITED_KB or used + size <= owner.quota_kb * 1024


class Handle:
    """An open queue of an application."""

    def __init__(self, connection: int, queue: Queue, access: AccessMode, share: ShareMode) -> None:
        self.connection = connection
        self.queue = queue
        self.access = access
        self.share = share
        self.number = 0
        """As the queue manager named it; 0 until it has."""
        self.cursors: list[Cursor] = []

    @property
    def reads(self) -> bool:
        return self.access in (AccessMode.RECEIVE, AccessMode.PEEK)


class Cursor:
    """A place in a queue, remembered by its order."""

    def __init__(self) -> None:
        self.number = 0
        self.order: tuple[int, int] | None = None
        self.taken = False


class Transaction:
    """Sends, receives and moves that take effect together."""

    def __init__(self, connection: int) -> None:
        self.connection: int | None = connection
        self.maker: int | None = connection
        self.number = 0
        self.unit_of_work = b""
        self.state = "active"
        self.sends: list[tuple[Queue, Message]] = []
        self.receives: list[tuple[Queue, Place]] = []
        self.moves: list[tuple[Queue, Place, Queue]] = []
        self.received_count = 0
        self.prepared_s = 0
        self.query = ""
        self.batch = 0

    @property
    def held(self) -> list[tuple[Queue, Place]]:
        return self.receives + [(queue, place) for queue, place, _ in self.moves]


class Read:
    """A receive, peek or find, perhaps waiting."""

    def __init__(
        self,
        handle: Handle,
        timeout_ms: int | None,
        *,
        peek: bool,
        transaction: Transaction | None,
        count: int = 1,
        cursor: Cursor | None = None,
        move_on: bool = False,
        wanted: Callable[[Place], bool] | None = None,
    ) -> None:
        self.call = 0
        self.handle = handle
        self.timeout_ms = timeout_ms
        self.peek = peek
        self.transaction = transaction
        self.count = count
        self.cursor = cursor
        self.move_on = move_on
        self.wanted = wanted
        self.deadline_ms: int | None = None


class Model:
    """The queue manager."""

    def __init__(self) -> None:
        self.ticks_ms = 0
        self.unix_s = 0
        self.connections: set[int] = set()
        self.transactions: list[Transaction] = []
        self.batches: dict[str, tuple[int, str]] = {}
        self._handles: list[Handle] = []
        self.replies: dict[tuple[int, int], Reply] = {}
        self._turn: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._order = 0
        self._news: list[Queue] = []
        self._to_empty: list[Queue] = []
        self._to_sweep: list[Queue] = []
        self._again: list[tuple[Queue, Place]] = []
        self._remains: list[Queue] = []
        """Deleted queues of which the store still has something."""
        self._numbers = 16
        self.queues: dict[str, Queue] = {}
        for number, name in enumerate(("journal", "deadletter", "deadxact"), 1):
            full = f"system$;{name}"
            self.queues[full] = Queue(number, full, "system", transactional=name == "deadxact")

    # Turns.

    def later(self, done: Callable[[], None], undone: Callable[[], None]) -> None:
        self._turn.append((done, undone))

    def answer(self, connection: int, call: int, reply: Reply) -> None:
        if connection in self.connections:
            self.replies[connection, call] = reply

    def answer_later(self, connection: int, call: int, reply: Reply) -> None:
        self.later(
            lambda: self.answer(connection, call, reply),
            lambda: self.answer(connection, call, ("failed", FULL)),
        )

    def pump(self, *, fail: int = 0) -> None:
        """Make the turn durable, or not; then everything that follows, until nothing does.

        The first `fail` turns fail. After that the long work waits for a while.
        """
        self.end_turn(fail=fail > 0)
        self.serve()
        failures = fail
        while self._turn or not fail:
            if self._turn:
                failures -= 1
                self.end_turn(fail=failures > 0)
                self.serve()
                continue
            self.wake()
            if not self._turn and not self._to_empty and not self._to_sweep:
                return

    def end_turn(self, *, fail: bool = False) -> None:
        turn, self._turn = self._turn, []
        for done, _ in () if fail else turn:
            done()
        for _, undone in reversed(turn) if fail else ():
            undone()

    def wake(self) -> None:
        again, self._again = self._again, []
        for read in sorted(self._waiting(), key=lambda read: (read.deadline_ms or 0, read.call)):
            if read.deadline_ms is not None and read.deadline_ms <= self.ticks_ms:
                self._end_read(read, failed(errors.ReceiveTimeout))
        for queue, place in again:
            self._expire(queue, place)
        self.expire()
        self._go_on_deleting()
        if self._to_empty:
            queue = self._to_empty.pop(0)
            self._empty(queue, MessageClass.NACK_QUEUE_DELETED)
            self.later(lambda: None, lambda: self._to_empty.append(queue))
        elif self._to_sweep:
            for place in self._to_sweep.pop().in_order:
                if place.asks:
                    self.tell(place.message, MessageClass.NACK_QUEUE_DELETED)
        self.serve()

    def _go_on_deleting(self) -> None:
        for queue in [queue for queue in self._remains if not queue.places]:
            self._remains.remove(queue)
        for queue in self._remains:
            given_back = all(place.free for place in queue.places)
            if given_back and queue not in self._to_empty:
                self._to_empty.append(queue)

    def _waiting(self) -> list[Read]:
        queues = dict.fromkeys(handle.queue for handle in self._handles)
        return [read for queue in queues for read in queue.waiting]

    def all_queues(self) -> Iterable[Queue]:
        return list(self.queues.values())

    # Messages come and go.

    def _next_order(self, level: int) -> tuple[int, int]:
        self._order += 1
        return 7 - level, self._order

    def add(self, queue: Queue, message: Message, *, asks: bool, ended_as: int = 0) -> None:
        level = 0 if queue.transactional else message.draft.priority
        place = Place(message, self._next_order(level), self.unix_s)
        place.ended_as = ended_as
        if asks:
            place.deadline_s, place.asks = message.deadline_s, True
        self._add_place(queue, place)

    def _add_place(self, queue: Queue, place: Place) -> None:
        queue.places.append(place)

        def here() -> None:
            place.state = "here"
            self._news.append(queue)

        self.later(here, lambda: queue.places.remove(place))

    def copy(self, queue: Queue, message: Message, ended_as: int = 0) -> None:
        if queue.has_room(message.size):
            self.add(queue, message, asks=False, ended_as=ended_as)

    def remove(self, queue: Queue, place: Place, reason: MessageClass) -> None:
        place.state = "going"

        def still_here() -> None:
            place.state = "here"
            self._news.append(queue)

        self.later(lambda: queue.places.remove(place), still_here)
        journal = queue.journal
        received = reason is MessageClass.ACK_RECEIVE
        if received and queue.journaling and journal in self.all_queues():
            assert journal is not None
            self.copy(journal, place.message)
        if place.asks:
            self.tell(place.message, reason)

    def tell(self, message: Message, reason: MessageClass) -> None:
        """Dead letter and acknowledgment, as the sender wished."""
        draft = message.draft
        negative = bool(reason & 0x8000)
        if negative and draft.journal_on_failure:
            name = "system$;deadxact" if draft.transactional else "system$;deadletter"
            self.copy(self.queues[name], message, reason)
        receiving = bool(reason & 0x4000)
        bit = (8 if receiving else 4) if negative else (2 if receiving else 1)
        if draft.acknowledge & bit and draft.admin_queue is not None:
            self._acknowledge(message, reason)

    def _acknowledge(self, message: Message, reason: MessageClass) -> None:
        name = str(message.draft.admin_queue).partition("\\")[2].lower()
        queue = self.queues.get(name)
        if queue is None or queue.role != "queue" or queue.transactional:
            return
        draft = Draft(recoverable=message.draft.recoverable)
        about = Message(draft, self.unix_s, 0)
        about.about = int(reason), message
        self.add(queue, about, asks=True)

    def put(self, queue: Queue, messages: list[Message]) -> None:
        for message in messages:
            self.add(queue, message, asks=True)
        for message in messages:
            if message.draft.journal_on_success:
                self.copy(self.queues["system$;journal"], message)
        for message in messages:
            self.tell(message, MessageClass.ACK_REACH_QUEUE)

    def _hand_over(self, queue: Queue, messages: list[Message]) -> bool:
        """Return plain messages to the reads that wait for any; say whether that was possible.

        It is when nothing else is on its way into the queue and nothing has to be kept or told.
        """
        drafts = [message.draft for message in messages]
        plain = len({draft.recoverable for draft in drafts}) == 1 and not any(
            draft.admin_queue is not None
            or draft.journal_on_failure
            or draft.journal_on_success
            or draft.time_to_be_received_s != INFINITE_S
            for draft in drafts
        )
        coming = any(place.state == "coming" for place in queue.places)
        if not plain or coming or queue.journaling or not queue.waiting:
            return False
        places = []
        for message in messages:
            order = self._next_order(message.draft.priority)
            places.append(Place(message, order, self.unix_s))
            places[-1].asks = True
        places.sort(key=lambda place: place.order)
        for read in list(queue.waiting):
            picky = read.cursor is not None or read.wanted is not None
            if picky or read.peek or read.transaction is not None or not places:
                break
            mine, places = places[: read.count], places[read.count :]
            queue.waiting.remove(read)
            self._answer_or_wait(read, ("entries", [self.view(place) for place in mine]))
        for place in places:
            self._add_place(queue, place)
        return True

    def _answer_or_wait(self, read: Read, reply: Reply) -> None:
        def wait_again() -> None:
            if read.handle in self._handles:
                read.handle.queue.waiting.append(read)
            else:
                cancelled = failed(errors.OperationCancelled)
                self.answer(read.handle.connection, read.call, cancelled)

        self.later(lambda: self.answer(read.handle.connection, read.call, reply), wait_again)

    def expire(self) -> None:
        due = [
            (place.deadline_s, queue.number, place.order, queue, place)
            for queue in self.all_queues()
            for place in queue.free
            if place.deadline_s <= self.unix_s
        ]
        for _, _, _, queue, place in sorted(due, key=lambda found: found[:3]):
            self._expire(queue, place)

    def _expire(self, queue: Queue, place: Place) -> None:
        def hidden() -> None:
            place.state = "expired"
            self._again.append((queue, place))

        self.later(lambda: None, hidden)
        self.remove(queue, place, MessageClass.NACK_RECEIVE_TIMEOUT)

    # Queues.

    def create(
        self,
        call: int,
        connection: int,
        name: str,
        *,
        transactional: bool,
        journaling: bool,
        quota_kb: int,
    ) -> Reply | None:
        if name in self.queues:
            raise Refused(errors.QueueExists)
        queue = self._new(name, "queue", transactional=transactional)
        queue.journaling, queue.quota_kb = journaling, quota_kb
        queue.journal = self._new(f"{name};journal", "journal", transactional=transactional)
        queue.journal.parent = queue
        queue.journal.quota_kb = quota_kb
        self.answer_later(connection, call, ("queues", self.status(queue)))
        return None

    def _new(self, name: str, role: str, *, transactional: bool) -> Queue:
        queue = Queue(self._numbers, name, role, transactional=transactional)
        self._numbers += 1
        self.queues[name] = queue
        self.later(lambda: None, lambda: self._unlist(queue))
        return queue

    def _unlist(self, queue: Queue) -> None:
        del self.queues[queue.name]
        if queue.role == "subqueue" and queue.parent is not None:
            queue.parent.subqueues.remove(queue)

    def find(self, name: str, *, create: bool = False) -> Queue:
        if name in self.queues:
            return self.queues[name]
        parent = self.queues.get(name.partition(";")[0])
        if not create or parent is None:
            raise Refused(errors.QueueNotFound)
        queue = self._new(name, "subqueue", transactional=parent.transactional)
        queue.parent = parent
        parent.subqueues.append(queue)
        return queue

    def change(
        self, call: int, connection: int, name: str, *, journaling: bool, quota_kb: int
    ) -> Reply | None:
        queue = self.find(name)
        if queue.role != "queue":
            raise Refused(errors.PropertyNotAllowed)
        before = queue.journaling, queue.quota_kb
        queue.journaling, queue.quota_kb = journaling, quota_kb

        def undone() -> None:
            queue.journaling, queue.quota_kb = before

        self.later(lambda: None, undone)
        self.answer_later(connection, call, ("queues", self.status(queue)))
        return None

    def delete(self, call: int, connection: int, name: str) -> Reply | None:
        queue = self.find(name)
        if queue.role != "queue":
            raise Refused(errors.AccessDenied)
        family = [queue, *queue.subqueues]
        if queue.journal is not None:
            family.append(queue.journal)
        kept = [member.reserved for member in family]
        for member in family:
            del self.queues[member.name]
            member.reserved = NOBODY

        def done() -> None:
            for member in family:
                for read in list(member.waiting):
                    self._end_read(read, failed(errors.QueueDeleted))
            self._to_empty += family
            self._remains += family
            self.answer(connection, call, DONE)

        def undone() -> None:
            for member, reserved in zip(family, kept, strict=True):
                self.queues[member.name] = member
                member.reserved = reserved
            self.answer(connection, call, ("failed", FULL))

        self.later(done, undone)
        return None

    def status(self, queue: Queue) -> Reply:
        journal = queue.journal
        return (
            queue.name,
            queue.transactional,
            queue.journaling,
            queue.quota_kb,
            len(queue.counted),
            0 if journal is None else len(journal.counted),
            len(queue.handles),
            len(queue.waiting),
        )

    def open(
        self, call: int, connection: int, name: str, access: AccessMode, share: ShareMode
    ) -> Handle:
        creates = access in (AccessMode.RECEIVE, AccessMode.PEEK, AccessMode.MOVE)
        queue = self.find(name, create=creates)
        handle = Handle(connection, queue, access, share)
        if access is AccessMode.SEND and queue.role != "queue":
            raise Refused(errors.AccessDenied)
        if access is AccessMode.MOVE and queue.role not in ("queue", "subqueue"):
            raise Refused(errors.AccessDenied)
        exclusive = share is ShareMode.DENY_RECEIVE
        if exclusive and not handle.reads:
            raise Refused(errors.UnsupportedAccessMode)
        readers = [other for other in queue.handles if other.reads]
        denied = any(other.share is ShareMode.DENY_RECEIVE for other in readers)
        if handle.reads and (denied or (exclusive and readers)):
            raise Refused(errors.SharingViolation)
        queue.handles.append(handle)
        self._handles.append(handle)
        self.later(lambda: None, lambda: self._shut(handle, ("failed", FULL)))
        self.answer_later(connection, call, ("opened", queue.name, queue.transactional))
        return handle

    def close(self, handle: Handle) -> Reply:
        self._shut(handle, failed(errors.OperationCancelled))
        return DONE

    def _shut(self, handle: Handle, reply: Reply) -> None:
        if handle in self._handles:
            self._handles.remove(handle)
            handle.queue.handles.remove(handle)
            for read in [read for read in handle.queue.waiting if read.handle is handle]:
                self._end_read(read, reply)
        handle.number = 0

    # Sending and reading.

    def send(
        self,
        call: int,
        handle: Handle,
        drafts: list[tuple[Draft, int]],
        transaction: Transaction | None,
        *,
        own: bool,
    ) -> tuple[Reply | None, list[Message]]:
        queue = handle.queue
        if handle.access is not AccessMode.SEND:
            raise Refused(errors.AccessDenied)
        self._require_there(queue)
        if transaction is not None:
            self._require_active(transaction, handle.connection)
        inside = own or transaction is not None
        if inside is not queue.transactional or any(
            draft.transactional is not inside for draft, _ in drafts
        ):
            raise Refused(errors.TransactionUsage)
        if not queue.has_room(sum(size for _, size in drafts)):
            raise Refused(errors.InsufficientResources)
        messages = [Message(draft, self.unix_s, size) for draft, size in drafts]
        if transaction is None:
            if own or not self._hand_over(queue, messages):
                self.put(queue, messages)
            self.answer_later(handle.connection, call, ("sent", len(messages)))
            return None, messages
        transaction.sends += [(queue, message) for message in messages]
        return ("sent", len(messages)), messages

    def read(self, read: Read) -> Reply | None:
        self._require_readable(read.handle, peek=read.peek, transaction=read.transaction)
        if self._try(read):
            return None
        if read.timeout_ms == 0:
            raise Refused(errors.ReceiveTimeout)
        if read.timeout_ms is not None:
            read.deadline_ms = self.ticks_ms + read.timeout_ms
        read.handle.queue.waiting.append(read)
        return None

    def _try(self, read: Read) -> bool:
        places = self._meant(read)
        if not places:
            return False
        views = ("entries", [self.view(place) for place in places])
        queue, connection = read.handle.queue, read.handle.connection
        if not read.peek:
            self._take(queue, places, read.transaction, connection)
            if read.cursor is not None:
                read.cursor.taken = True
        if read.peek or read.transaction is not None:
            self.answer(connection, read.call, views)
        else:
            self.answer_later(connection, read.call, views)
        return True

    def _meant(self, read: Read) -> list[Place]:
        queue, cursor = read.handle.queue, read.cursor
        if read.wanted is not None:
            return [place for place in queue.free if read.wanted(place)][:1]
        if cursor is None:
            return queue.free[: read.count]
        if cursor.order is None:
            if read.move_on:
                raise Refused(errors.IllegalCursorAction)
            found = queue.free[:1]
        elif read.move_on or cursor.taken:
            found = [place for place in queue.free if place.order > cursor.order][:1]
        else:
            found = [place for place in queue.free if place.order == cursor.order]
            if not found:
                raise Refused(errors.MessageAlreadyReceived)
        if found:
            cursor.order, cursor.taken = found[0].order, False
        return found

    def _take(
        self, queue: Queue, places: list[Place], transaction: Transaction | None, connection: int
    ) -> None:
        if transaction is not None:
            self._require_active(transaction, connection)
            for place in places:
                place.holder = transaction
                transaction.receives.append((queue, place))
            transaction.received_count += len(places)
            return
        for place in places:
            self.remove(queue, place, MessageClass.ACK_RECEIVE)

    def seek(
        self,
        call: int,
        handle: Handle,
        action: SeekAction,
        order: tuple[int, int] | None,
        *,
        peek: bool,
        transaction: Transaction | None,
    ) -> Reply | None:
        queue = handle.queue
        self._require_readable(handle, peek=peek, transaction=transaction)
        position = order or (8, 0)
        if action is SeekAction.CURRENT:
            found = [place for place in queue.here if place.order == order]
        elif action in (SeekAction.FIRST, SeekAction.LAST):
            found = queue.free if action is SeekAction.FIRST else queue.free[::-1]
        elif action is SeekAction.NEXT:
            found = [place for place in queue.free if place.order > position]
        else:
            found = [place for place in queue.free if place.order < position][::-1]
        if not found:
            raise Refused(errors.MessageNotFound)
        place = found[0]
        if not queue.is_free(place):
            raise Refused(errors.TransactionUsage if peek else errors.MessageLocked)
        views = ("entries", [self.view(place)])
        if not peek:
            self._take(queue, [place], transaction, handle.connection)
        if peek or transaction is not None:
            return views
        self.answer_later(handle.connection, call, views)
        return None

    def remove_range(self, call: int, handle: Handle, first: int, last: int) -> Reply | None:
        """Remove by arrival, from and up to the places with these numbers in order of arrival."""
        self._require_readable(handle, peek=False, transaction=None)
        queue = handle.queue
        found = [place for place in queue.free if first <= place.order[1] < last]
        found.sort(key=lambda place: place.order[1])
        for place in found:
            self.remove(queue, place, MessageClass.ACK_RECEIVE)
        self.answer_later(handle.connection, call, ("removed", len(found)))
        return None

    def purge(self, call: int, handle: Handle) -> Reply | None:
        self._require_readable(handle, peek=False, transaction=None)
        count = self._empty(handle.queue, MessageClass.NACK_QUEUE_PURGED)
        self.answer_later(handle.connection, call, ("removed", count))
        return None

    def _empty(self, queue: Queue, reason: MessageClass) -> int:
        free = queue.free
        held = [place for place in queue.places if place.holder and place.state == "here"]
        assert not any(map(queue.is_reserved, held)), "what is held cannot be reserved"
        for place in held:
            place.doom = reason

        def forgive() -> None:
            for place in held:
                place.doom = None

        self.later(lambda: None, forgive)
        for place in free:
            self.remove(queue, place, reason)
        return len(free)

    def move(
        self,
        call: int,
        handle: Handle,
        target: Handle,
        lookup_id: int,
        transaction: Transaction | None,
    ) -> Reply | None:
        if target.access is not AccessMode.MOVE:
            raise Refused(errors.AccessDenied)
        self._require_readable(handle, peek=False, transaction=transaction)
        source, into = handle.queue, target.queue
        if source is into or _family(source) is not _family(into):
            raise Refused(errors.InvalidParameter)
        place = next((each for each in source.here if each.lookup_id == lookup_id), None)
        if place is None:
            raise Refused(errors.MessageNotFound)
        if not source.is_free(place):
            raise Refused(errors.MessageLocked)
        if transaction is not None:
            place.holder = transaction
            transaction.moves.append((source, place, into))
            return DONE
        self._carry(source, place, into)
        self.answer_later(handle.connection, call, DONE)
        return None

    def _carry(self, source: Queue, place: Place, into: Queue) -> None:
        there = Place(place.message, place.order, place.arrived_s)
        there.deadline_s, there.asks = place.deadline_s, place.asks
        there.aborts, there.moves, there.lookup_id = place.aborts, place.moves + 1, place.lookup_id
        if into.is_reserved(place):
            there.order, there.lookup_id = self._next_order(7 - place.order[0]), None
        place.state = "moving"

        def still_here() -> None:
            place.state = "here"
            self._news.append(source)

        self.later(lambda: source.places.remove(place), still_here)
        self._add_place(into, there)

    # Reservations.

    def reserve(
        self, call: int, handle: Handle, reader: str, start: int, count: int, below: int
    ) -> Reply | None:
        self._require_readable(handle, peek=False, transaction=None)
        queue = handle.queue
        if queue.releasing:
            raise Refused(errors.SharingViolation)
        before = queue.reserved
        kept_start, kept_stop = start, start
        if queue.stored(*before[1:]):
            if reader != before[0] or not before[1] <= start <= before[2]:
                raise Refused(errors.SharingViolation)
            _, kept_start, kept_stop = before
        found = queue.stored(start, min([below, *self._held_from(queue, kept_stop)]))
        if count:
            found = found[:count]
        last = found[-1] if found else None
        if last is not None and last.order[1] >= kept_stop:

            def undone() -> None:
                queue.reserved = before
                self._news.append(queue)

            queue.reserved = reader, kept_start, last.order[1] + 1
            self.later(lambda: None, undone)
        self.answer_later(handle.connection, call, ("reserved", last))
        return None

    def _held_from(self, queue: Queue, start: int) -> list[int]:
        """Return where messages are that may come back while this reservation stands."""
        return [
            place.order[1]
            for place in queue.places
            if place.order[1] >= start
            and (place.state == "expired" or (place.holder and place.state == "here"))
        ]

    def complete(self, call: int, handle: Handle, reader: str, stop: int) -> Reply | None:
        self._require_readable(handle, peek=False, transaction=None)
        queue = handle.queue
        before = owner, start, end = queue.reserved
        stop = min(stop, end)
        found: list[Place] = []
        if stop > start and not queue.releasing:
            if reader != owner:
                raise Refused(errors.SharingViolation)

            def undone() -> None:
                queue.reserved = before

            queue.reserved = (owner, stop, end) if stop < end else NOBODY
            self.later(lambda: None, undone)
            found = [place for place in queue.stored(start, stop) if place.free]
            for place in found:
                self.remove(queue, place, MessageClass.ACK_RECEIVE)
        self.answer_later(handle.connection, call, ("completed", len(found), False))
        return None

    def release(self, call: int, connection: int, name: str) -> Reply | None:
        queue = self.find(name)
        if queue.reserved[2] and not queue.releasing:
            queue.releasing = True

            def done() -> None:
                queue.releasing, queue.reserved = False, NOBODY
                self._news.append(queue)

            def undone() -> None:
                queue.releasing = False

            self.later(done, undone)
        self.answer_later(connection, call, DONE)
        return None

    # Waiting.

    def serve(self) -> None:
        while self._news:
            self.expire()
            queue = self._news.pop(0)
            for read in list(queue.waiting):
                try:
                    served = self._try(read)
                except Refused as refused:
                    self._end_read(read, refused.reply)
                    continue
                if served:
                    queue.waiting.remove(read)

    def cancel(self, connection: int, call: int) -> Reply:
        for read in self._waiting():
            if (read.handle.connection, read.call) == (connection, call):
                self._end_read(read, failed(errors.OperationCancelled))
                return DONE
        raise Refused(errors.InvalidParameter)

    def _end_read(self, read: Read, reply: Reply) -> None:
        read.handle.queue.waiting.remove(read)
        self.answer(read.handle.connection, read.call, reply)

    # Cursors.

    def create_cursor(self, handle: Handle) -> Cursor:
        self._require_readable(handle, peek=True, transaction=None)
        cursor = Cursor()
        handle.cursors.append(cursor)
        return cursor

    def close_cursor(self, handle: Handle, cursor: Cursor) -> Reply:
        for read in [read for read in handle.queue.waiting if read.cursor is cursor]:
            self._end_read(read, failed(errors.OperationCancelled))
        return DONE

    # Transactions.

    def begin(self, call: int, connection: int) -> Transaction:
        work = Transaction(connection)
        self.transactions.append(work)
        self.later(lambda: None, lambda: self._drop(work))
        self.answer_later(connection, call, ("begun",))
        return work

    def _drop(self, work: Transaction) -> None:
        if work in self.transactions:
            self.transactions.remove(work)

    def prepare(
        self,
        call: int,
        connection: int,
        work: Transaction,
        query: str = "",
        batch: int = 0,
        checkpoint: str = "",
    ) -> Reply | None:
        self._require_active(work, connection)
        if query and self._is_again(query, batch, checkpoint):
            raise Refused(errors.TransactionSequence)
        work.state, work.prepared_s = "prepared", self.unix_s
        work.query, work.batch = query, batch

        def done() -> None:
            work.connection = None
            self.answer(connection, call, DONE)

        def undone() -> None:
            self.answer(connection, call, ("failed", FULL))
            work.query = ""
            self._back_to(work, "active")

        self.later(done, undone)
        return None

    def commit(self, call: int, connection: int, work: Transaction) -> Reply | None:
        self._require_open(work, connection)
        return self._commit(call, connection, work)

    def _commit(self, call: int, connection: int, work: Transaction) -> None:
        if work.query:
            raise Refused(errors.TransactionSequence)
        self._end_commit(work)
        self.answer_later(connection, call, DONE)

    def _end_commit(self, work: Transaction) -> None:
        before, work.state = work.state, "committed"
        self.later(lambda: self.transactions.remove(work), lambda: self._back_to(work, before))
        self._carry_out(work)

    def _carry_out(self, work: Transaction) -> None:
        listed = list(self.all_queues())
        for queue in dict.fromkeys(queue for queue, _ in work.sends):
            messages = [message for sent_to, message in work.sends if sent_to is queue]
            if queue in listed:
                self.put(queue, messages)
            else:
                for message in messages:
                    self.tell(message, MessageClass.NACK_QUEUE_DELETED)
        for queue in dict.fromkeys(queue for queue, _ in work.receives):
            for source, place in work.receives:
                if source is queue and place in queue.places:
                    self.remove(queue, place, MessageClass.ACK_RECEIVE)
        for queue, place, target in work.moves:
            if place in queue.places and target in listed:
                self._carry(queue, place, target)
            elif place in queue.places:
                self.remove(queue, place, MessageClass.NACK_QUEUE_DELETED)

    def abort(self, call: int, connection: int, work: Transaction) -> Reply | None:
        self._require_open(work, connection)
        return self._abort(call, connection, work)

    def _abort(self, call: int, connection: int, work: Transaction) -> None:
        lasting = work.state == "prepared"
        self._undo(work)
        self.later(
            lambda: self.answer(connection, call, DONE),
            lambda: self.answer(connection, call, ("failed", FULL) if lasting else DONE),
        )

    def _undo(self, work: Transaction) -> None:
        before, work.state = work.state, "aborted"
        if before == "prepared":
            self.later(lambda: self.transactions.remove(work), lambda: self._back_to(work, before))
        else:
            self.transactions.remove(work)
        doomed = [(queue, place) for queue, place in work.held if place.doom is not None]
        received = [place for _, place in work.receives]

        def give_back(*, counted: bool) -> None:
            for queue, place in work.held:
                place.holder = None
                if counted and place in received:
                    place.aborts += 1
                if place.state == "here":
                    self._back_in(queue, place, may_go=counted)

        def undone() -> None:
            if before != "prepared":
                give_back(counted=False)

        if before != "prepared" and not received and not doomed:
            give_back(counted=False)
            return
        self.later(lambda: give_back(counted=True), undone)
        for queue, place in doomed:
            assert place.doom is not None
            self.remove(queue, place, place.doom)

    def _back_in(self, queue: Queue, place: Place, *, may_go: bool) -> None:
        reason, place.doom = place.doom, None
        if reason is not None and may_go:
            # A purge came while the abort waited for the disk.
            self.remove(queue, place, reason)
        else:
            self._news.append(queue)

    def _back_to(self, work: Transaction, state: str) -> None:
        work.state = state
        if state == "active" and work.connection not in self.connections:
            self._undo(work)

    def resolve(
        self, call: int, connection: int, work: Transaction | None, *, commit: bool
    ) -> Reply | None:
        if work is None or work not in self.transactions or work.state != "prepared":
            raise Refused(errors.TransactionSequence)
        end = self._commit if commit else self._abort
        return end(call, connection, work)

    # Batches.

    def _is_again(self, query: str, batch: int, checkpoint: str) -> bool:
        if query not in self.batches:
            return False
        last, known = self.batches[query]
        if batch < last or known not in ("", checkpoint):
            raise Refused(errors.TransactionSequence)
        return batch == last

    def get_batch(
        self, call: int, connection: int, query: str, batch: int, checkpoint: str
    ) -> Reply | None:
        if batch >= 0:
            self._is_again(query, batch, checkpoint)
        last, _ = self.batches.get(query, (-1, ""))
        self.answer_later(connection, call, ("batch", last))
        return None

    def commit_batch(
        self,
        call: int,
        connection: int,
        query: str,
        batch: int,
        named: list[bytes],
        checkpoint: str,
    ) -> Reply | None:
        last = self.batches.get(query, (-1, ""))
        again = self._is_again(query, batch, checkpoint)
        if not again:
            parts = {work.unit_of_work: work for work in self._parts(query) if work.batch == batch}
            if len(set(named)) < len(named) or not parts.keys() >= set(named):
                raise Refused(errors.TransactionSequence)
            self.batches[query] = batch, checkpoint
            self.later(lambda: None, lambda: self.batches.update({query: last}))
            for unit_of_work in named:
                self._end_commit(parts[unit_of_work])
        self._abort_parts(query, batch)
        self.answer_later(connection, call, ("committed", again))
        return None

    def abort_batch(
        self, call: int, connection: int, query: str, batch: int, checkpoint: str
    ) -> Reply | None:
        _, known = self.batches.get(query, (-1, ""))
        if known in ("", checkpoint):
            self._abort_parts(query, batch)
        self.answer_later(connection, call, DONE)
        return None

    def _parts(self, query: str) -> list[Transaction]:
        return [
            work for work in self.transactions if work.state == "prepared" and work.query == query
        ]

    def _abort_parts(self, query: str, batch: int) -> None:
        for work in self._parts(query):
            if work.batch <= batch:
                self._undo(work)

    def _require_active(self, work: Transaction, connection: int) -> None:
        if work not in self.transactions or work.state != "active" or work.connection != connection:
            raise Refused(errors.TransactionSequence)

    def _require_open(self, work: Transaction, connection: int) -> None:
        if work.state == "prepared" and work.maker == connection:
            return
        self._require_active(work, connection)

    # Checks.

    def _require_there(self, queue: Queue) -> None:
        if self.queues.get(queue.name) is not queue:
            raise Refused(errors.QueueDeleted)

    def _require_readable(
        self, handle: Handle, *, peek: bool, transaction: Transaction | None
    ) -> None:
        self._require_there(handle.queue)
        if not handle.reads or (not peek and handle.access is not AccessMode.RECEIVE):
            raise Refused(errors.AccessDenied)
        if transaction is not None:
            self._require_active(transaction, handle.connection)
            if not handle.queue.transactional:
                raise Refused(errors.TransactionUsage)

    # Connections and restarts.

    def lose(self, connection: int) -> None:
        self.connections.discard(connection)
        for handle in [each for each in self._handles if each.connection == connection]:
            self._shut(handle, DONE)
        for work in list(self.transactions):
            if work.connection == connection and work.state in ("active", "prepared"):
                self._undo(work)

    def crash(self) -> None:
        """Keep what is durable; what was deleted goes on being deleted."""
        self._turn, self._news, self._to_empty, self._handles = [], [], [], []
        self._again = []
        # A queue manager leaves out numbers then: what comes next is not right behind what was.
        self._order += 1
        self.connections.clear()
        self.transactions = [work for work in self.transactions if work.state == "prepared"]
        for work in self.transactions:
            work.connection = work.maker = None
        for queue in [*self.all_queues(), *self._remains]:
            queue.handles, queue.waiting, queue.releasing = [], [], False
            queue.places = [place for place in queue.places if place.message.durable]
            for place in queue.places:
                place.state, place.doom = "here", None
                if place.holder is not None and place.holder.state != "prepared":
                    place.holder = None
        self._to_sweep = sorted(self._remains, key=lambda queue: queue.number)
        for work in self.transactions:
            gone = self._remains
            work.receives = [(queue, place) for queue, place in work.receives if queue not in gone]
            work.moves = [move for move in work.moves if move[0] not in gone]
            work.received_count = len(work.receives)
        self._remains = []

    def view(self, place: Place) -> Reply:
        """What a reader sees of a message."""
        return (place.message, place.aborts, place.moves, place.arrived_s, place.ended_as)


def _family(queue: Queue) -> Queue:
    return queue.parent if queue.role == "subqueue" and queue.parent else queue
