"""What a turn does with transactions: they begin, are prepared, and end; batches are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.api import messages as api
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.transactions.states import TransactionEvent, TransactionState
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.storage import records
from openmsmq.storage.records import BatchRecord, VoucherRecord

if TYPE_CHECKING:
    from openmsmq.manager.queues.connections import Connection
    from openmsmq.manager.transactions.requests import TransactionRequests
    from openmsmq.manager.transactions.vouchers import Vouchers
    from openmsmq.manager.transactions.work import Transaction, TransactionWork


class TransactionBegun(Effect):
    """A transaction is under way; its number is told when the numbers it took are durable."""

    __slots__ = ("call", "connection", "replies", "requests", "work")

    def __init__(
        self,
        requests: TransactionRequests,
        replies: Replies,
        connection: int,
        call: int,
        work: Transaction,
    ) -> None:
        self.requests = requests
        self.replies = replies
        self.connection = connection
        self.call = call
        self.work = work

    def follow(self) -> None:
        """Tell its number."""
        begun = api.Begun(self.work.number, bytes(self.work.unit_of_work))
        self.replies.answer(self.connection, self.call, begun)

    def revert(self, error: MsmqError, /) -> None:
        """Forget it; who guessed its number may have received something in it."""
        self.requests.never_began(self.work)
        self.replies.fail(self.connection, self.call, error)

    def describe(self) -> dict[str, Plain]:
        """Return which it is, and whose."""
        return {"transaction": self.work.number, "connection": self.connection}


class TransactionPrepared(Effect):
    """A transaction waits for its coordinator's word, and survives until then."""

    __slots__ = ("call", "now", "owner", "replies", "requests", "state", "work")

    def __init__(
        self,
        requests: TransactionRequests,
        replies: Replies,
        state: Connection,
        call: int,
        work: Transaction,
        now: Instant,
    ) -> None:
        self.requests = requests
        self.replies = replies
        self.state = state
        self.call = call
        self.work = work
        self.now = now
        self.owner = state.caller.owner_name

    def apply(self) -> None:
        """Let only a coordinator decide about it."""
        self.work.prepare(self.now.unix_s)

    def store(self, writes: Writes) -> None:
        """Write what it will do and what it holds."""
        if self.work.aside:
            writes.set_aside(self.work.key, self.work.marked)
        writes.put(self.work.key, records.encode_record(self.work.record(self.now)))

    def follow(self) -> None:
        """Let it belong to its coordinator, and not to the connection."""
        if self.work.connection is not None:
            self.requests.leave(self.work)
        if self.work.aside:
            self.work.keep_aside()
            self.requests.staged.take_up(self.work)
        self.replies.answer(self.state.id, self.call, api.Done())

    def revert(self, error: MsmqError, /) -> None:
        """Let it be active again, and its application's."""
        self.replies.fail(self.state.id, self.call, error)
        self.work.unprepare()
        self.requests.give(self.work, self.owner)
        self.requests.go_back(self.work, self.now)

    def describe(self) -> dict[str, Plain]:
        """Return which it is, and of which batch."""
        return {
            "transaction": self.work.number,
            "messages": self.work.message_count,
            "query": self.work.query,
            "batch": self.work.batch,
            "xid": str(self.work.xid or ""),
        }


class TransactionEnded(Effect):
    """A transaction is committed, or a prepared one aborted.

    It is added before what follows from that, so that it is taken back after it: by then the
    transaction holds its messages again.
    """

    __slots__ = ("event", "now", "requests", "was_prepared", "work")

    def __init__(
        self,
        requests: TransactionRequests,
        work: Transaction,
        event: TransactionEvent,
        now: Instant,
    ) -> None:
        self.requests = requests
        self.work = work
        self.event = event
        self.now = now
        self.was_prepared = work.state is TransactionState.PREPARED

    def apply(self) -> None:
        """Let nobody else end it."""
        self.work.happen(self.event)

    def store(self, writes: Writes) -> None:
        """Forget that it was prepared."""
        if self.was_prepared:
            writes.delete(self.work.key)
        if self.work.aside:
            writes.drop(self.work.key)

    def follow(self) -> None:
        """Forget it."""
        self.work.happen(TransactionEvent.SETTLE)
        self.requests.forget(self.work)

    def revert(self, _: MsmqError, /) -> None:
        """Let it be as it was."""
        self.requests.go_back(self.work, self.now)

    def describe(self) -> dict[str, Plain]:
        """Return which it is, and how it ends."""
        return {
            "transaction": self.work.number,
            "event": self.event.value,
            "was_prepared": self.was_prepared,
        }


class HoldsReleased(Effect):
    """What an aborted transaction held is given back, when its abort counts are durable.

    The locks of an active transaction go even when the disk cannot take those: nothing else depends
    on them, and a lock nobody owns would hide messages until the next start. A prepared one stays
    prepared: its coordinator will ask again.
    """

    __slots__ = ("is_lasting", "now", "transactions", "work")

    def __init__(
        self,
        transactions: TransactionWork,
        work: Transaction,
        now: Instant,
        *,
        is_lasting: bool,
    ) -> None:
        self.transactions = transactions
        self.work = work
        self.now = now
        self.is_lasting = is_lasting

    def follow(self) -> None:
        """Give back what was not purged until now: a purge may have come after the abort."""
        self.transactions.release_unpurged(self.work, self.now)

    def revert(self, _: MsmqError, /) -> None:
        """Give back everything, unless the transaction is still prepared."""
        if not self.is_lasting:
            self.transactions.release(self.work)

    def describe(self) -> dict[str, Plain]:
        """Return which transaction it is, and how much."""
        return {
            "transaction": self.work.number,
            "count": len(self.work.receives) + len(self.work.moves),
        }


class AbortAnswered(Effect):
    """Who asked for an abort hears of it."""

    __slots__ = ("call", "connection", "is_lasting", "replies")

    def __init__(self, replies: Replies, connection: int, call: int, *, is_lasting: bool) -> None:
        self.replies = replies
        self.connection = connection
        self.call = call
        self.is_lasting = is_lasting

    def follow(self) -> None:
        """Say that it is done."""
        self.replies.answer(self.connection, self.call, api.Done())

    def revert(self, error: MsmqError, /) -> None:
        """Refuse it. An active transaction is gone all the same: nothing of it was on the disk."""
        if self.is_lasting:
            self.replies.fail(self.connection, self.call, error)
        else:
            self.follow()

    def describe(self) -> dict[str, Plain]:
        """Return who hears of it."""
        return {"connection": self.connection, "call": self.call}


class LastBatchChanged(Effect):
    """The last batch of a query is another one, or the query is forgotten."""

    __slots__ = ("after", "before", "last", "query")

    def __init__(self, last: dict[str, BatchRecord], query: str, after: BatchRecord | None) -> None:
        self.last = last
        self.query = query
        self.before = last.get(query)
        self.after = after

    def apply(self) -> None:
        """Remember it, so that the same batch is not committed twice."""
        _set(self.last, self.query, self.after)

    def store(self, writes: Writes) -> None:
        """Write it, or remove it."""
        key = records.batch_key(self.query)
        if self.after is None:
            writes.delete(key)
        else:
            writes.put(key, records.encode_record(self.after))

    def revert(self, _: MsmqError, /) -> None:
        """Remember the one before."""
        _set(self.last, self.query, self.before)

    def describe(self) -> dict[str, Plain]:
        """Return which query it is, and its batch."""
        return {"query": self.query, "batch": None if self.after is None else self.after.batch}


class VoucherChanged(Effect):
    """There is a voucher for a key, or none any more."""

    __slots__ = ("after", "before", "owner", "place", "vouchers")

    def __init__(
        self,
        vouchers: Vouchers,
        owner: str,
        place: bytes,
        before: VoucherRecord | None,
        after: VoucherRecord | None,
    ) -> None:
        self.vouchers = vouchers
        self.owner = owner
        self.place = place
        self.before = before
        self.after = after

    def apply(self) -> None:
        """Know it, so that the same is not sent twice in one turn."""
        self.vouchers.changed(self.owner, self.place, self.after)

    def store(self, writes: Writes) -> None:
        """Write it, or remove it."""
        key = records.voucher_key(self.place)
        if self.after is None:
            writes.delete(key)
        else:
            writes.put(key, records.encode_record(self.after))

    def revert(self, _: MsmqError, /) -> None:
        """Know the one before."""
        if self.after is None and self.before is not None:
            self.vouchers.put_back(self.owner, self.place, self.before)
        else:
            self.vouchers.changed(self.owner, self.place, self.before)

    def describe(self) -> dict[str, Plain]:
        """Return whose it is, and the number of the message."""
        return {"owner": self.owner, "message": None if self.after is None else self.after.number}


def _set(last: dict[str, BatchRecord], query: str, record: BatchRecord | None) -> None:
    if record is None:
        last.pop(query, None)
    else:
        last[query] = record
