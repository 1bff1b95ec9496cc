"""What applications ask about transactions. [MQDMPR 3.1.4]"""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.transactions.effects import (
    AbortAnswered,
    TransactionBegun,
    TransactionEnded,
    TransactionPrepared,
)
from openmsmq.manager.transactions.staged import Staged, share_of
from openmsmq.manager.transactions.states import UNDER_WAY, TransactionEvent, TransactionState
from openmsmq.manager.transactions.work import Transaction, TransactionWork
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    InvalidParameter,
    NoTransactionCoordinator,
    TransactionSequence,
)
from openmsmq.model.identity import Guid
from openmsmq.model.transaction import Xid
from openmsmq.security.access.callers import Caller


class TransactionRequests:
    """Begins transactions and ends them; those that are prepared outlive their connection."""

    def __init__(
        self,
        base: Foundation,
        work: TransactionWork,
        replies: Replies,
        access: AccessControl,
        staged: Staged,
    ) -> None:
        self._config = base.config
        self.staged: Final = staged
        self._counters = base.counters
        self._ledger = base.ledger
        self._rng = base.rng
        self._work = work
        self._replies = replies
        self._access = access
        self._transactions: dict[int, Transaction] = {}
        self._owned_count: dict[str, int] = {}
        """How many transactions each owner has under way."""
        self._next_transaction = 1
        self._shown: dict[int, set[tuple[int, int]]] = {}
        """What others may look at though a transaction holds it: queue numbers, lookup ids."""

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.Begin, self.begin)
        handlers.add(api.Commit, self.commit)
        handlers.add(api.Abort, self.abort)
        handlers.add(api.ListTransactions, self.list_in_doubt)
        handlers.add(api.Resolve, self.resolve)

    def __len__(self) -> int:
        """How many transactions are under way."""
        return len(self._transactions)

    def begin(self, state: Connection, call: int, request: api.Begin, _: Instant) -> None:
        """Begin a transaction; there is no coordinator for distributed ones. [MQDMPR 3.1.7.1.8]"""
        if request.distributed:
            raise NoTransactionCoordinator(
                "transactions are those of this queue manager; `prepare` lets a coordinator of "
                "your own decide"
            )
        self._require_share(state.caller)
        work = self.adopt(Guid(self._rng.randbytes(16)), state.id, state.caller.owner_name)
        state.transactions.add(work.number)
        self._ledger.add_waiting(TransactionBegun(self, self._replies, state.id, call, work))

    def _require_share(self, caller: Caller) -> None:
        """Refuse a transaction that there is no room for, or that would leave others none."""
        most = self._config.transactions_max
        if len(self._transactions) >= most:
            raise InsufficientResources(f"{most} transactions are open")
        own = self._owned_count.get(caller.owner_name, 0)
        share = share_of(most, len(self._transactions) - own)
        if own >= share and not self._access.administers(caller):
            raise InsufficientResources(
                f"{caller.name} has {own} transactions open or prepared, and may have {share} "
                "while others have theirs: end some first"
            )

    def sends_to(self, queue: LocalQueue) -> bool:
        """Whether a transaction under way will put something into a queue."""
        return any(work.sends_to(queue.id) for work in self._transactions.values())

    def adopt(self, unit_of_work: Guid, connection: int | None, owner: str) -> Transaction:
        """Take up a transaction: a new one, or one that the store has."""
        number, wire_number = self.take_holder(), self._counters.take_transaction()
        work = Transaction(number, wire_number, unit_of_work, connection, owner)
        self._transactions[number] = work
        self._owned_count[owner] = self._owned_count.get(owner, 0) + 1
        return work

    def give(self, work: Transaction, owner: str) -> None:
        """Let a transaction belong to somebody else."""
        if owner != work.owner:
            self._disown(work.owner)
            self._owned_count[owner] = self._owned_count.get(owner, 0) + 1
            work.change_owner(owner)
            self.staged.take_up(work)

    def _disown(self, owner: str) -> None:
        """Count one transaction less for an owner; who has none is forgotten."""
        left = self._owned_count[owner] - 1
        if left:
            self._owned_count[owner] = left
        else:
            del self._owned_count[owner]

    def take_holder(self) -> int:
        """Return a number for somebody who holds messages: a transaction, or a connection."""
        self._next_transaction += 1
        return self._next_transaction - 1

    def show(self, work: Transaction, queue: LocalQueue, lookup_id: int) -> None:
        """Let others look at a message until the transaction that holds it has ended."""
        self._shown.setdefault(work.number, set()).add((queue.id, lookup_id))

    def shown_in(self, queue: LocalQueue) -> set[int]:
        """Return the lookup identifiers of held messages of a queue that others may look at."""
        return {
            lookup_id
            for places in self._shown.values()
            for number, lookup_id in places
            if number == queue.id and queue.entries.doom_of(lookup_id) is None
        }

    def commit(self, state: Connection, call: int, request: api.Commit, now: Instant) -> None:
        """Commit a transaction of this connection, or a prepared one."""
        work = self.find(state, request.transaction, prepared=True)
        self._require_own(work)
        self._commit_work(work, state.id, call, now)

    def _commit_work(self, work: Transaction, connection: int, call: int, now: Instant) -> None:
        self.end_commit(work, now)
        self._replies.answer_when_done(connection, call, api.Done())

    def end_commit(self, work: Transaction, now: Instant) -> None:
        """Commit a transaction, or a part of a batch, with this turn."""
        self._ledger.add(TransactionEnded(self, work, TransactionEvent.COMMIT, now))
        self._counters.cover_transactions()
        self.staged.drop(work)
        self._work.commit(work, now)

    def abort(self, state: Connection, call: int, request: api.Abort, now: Instant) -> None:
        """Abort a transaction of this connection, or a prepared one."""
        self._abort_work(self.find(state, request.transaction, prepared=True), state.id, call, now)

    def _abort_work(self, work: Transaction, connection: int, call: int, now: Instant) -> None:
        lasting = work.state is TransactionState.PREPARED
        self.end_abort(work, now)
        self._ledger.add_waiting(AbortAnswered(self._replies, connection, call, is_lasting=lasting))

    def abort_all(self, state: Connection, now: Instant) -> None:
        """Abort what a connection that is gone has under way."""
        for number in list(state.transactions):
            self.end_abort(self._transactions[number], now)

    def end_abort(self, work: Transaction, now: Instant) -> None:
        """Abort a transaction because its application asks for it, or is gone."""
        if work.state not in UNDER_WAY:
            # Somebody has ended it, and that waits for the disk.
            return
        if work.state is TransactionState.PREPARED:
            self._ledger.add(TransactionEnded(self, work, TransactionEvent.ABORT, now))
        else:
            work.happen(TransactionEvent.ABORT)
            self.forget(work)
        self.staged.drop(work)
        self._work.abort(work, now)

    def go_back(self, work: Transaction, now: Instant) -> None:
        """Undo a change of state; an active transaction whose application is gone aborts."""
        work.happen(TransactionEvent.REFUSE)
        self.staged.take_up(work)
        gone = work.connection not in self._replies.connections
        if work.state is TransactionState.ACTIVE and gone:
            self.end_abort(work, now)

    def prepare(self, state: Connection, call: int, request: api.Prepare, now: Instant) -> None:
        """Prepare a transaction: from then on only its coordinator decides."""
        work = self.find(state, request.transaction)
        if request.query:
            work.join(request.query, request.batch)
        if request.xid is not None:
            _require_free(request.xid, work, self.prepared())
            work.be_called(request.xid)
        if work.bytes >= self._config.aside_min_bytes:
            self._work.set_aside(work)
            # What is set aside has the transaction's number.
            self._counters.cover_transactions()
        self._ledger.add(TransactionPrepared(self, self._replies, state, call, work, now))

    def list_in_doubt(
        self, state: Connection, call: int, _: api.ListTransactions, _now: Instant
    ) -> None:
        """List the prepared transactions that the caller may end; what is told is durable."""
        everything = self._access.administers(state.caller)
        found = [
            api.InDoubt(
                bytes(work.unit_of_work),
                work.prepared_time_s,
                work.send_count,
                len(work.receives),
                work.query,
                work.batch,
                work.owner,
                work.xid,
            )
            for work in self.prepared()
            if everything or work.owner == state.caller.owner_name
        ]
        self._replies.answer_when_done(state.id, call, api.Transactions(found))

    def resolve(self, state: Connection, call: int, request: api.Resolve, now: Instant) -> None:
        """Commit or abort a prepared transaction by its lasting name."""
        for work in self._transactions.values():
            if work.unit_of_work == request.unit_of_work:
                break
        else:
            raise _unknown()
        if not self._access.may_use(state.caller, work.owner):
            # The same words as for one that is not there: who guesses learns nothing.
            raise _unknown()
        if work.state is not TransactionState.PREPARED:
            raise TransactionSequence(f"the transaction is {work.state.value}, not prepared")
        if request.commit:
            self._require_own(work)
            self._commit_work(work, state.id, call, now)
        else:
            self._abort_work(work, state.id, call, now)

    def prepared(self) -> list[Transaction]:
        """Return the transactions that wait for somebody's word."""
        return [
            work for work in self._transactions.values() if work.state is TransactionState.PREPARED
        ]

    def _require_own(self, work: Transaction) -> None:
        if work.query:
            raise TransactionSequence(
                f"it is a part of batch {work.batch} of {work.query!r}, which commits as a whole; "
                "it can only be aborted alone"
            )

    def find(self, state: Connection, number: int, *, prepared: bool = False) -> Transaction:
        """Find a transaction that this connection has begun; its number is good for no other."""
        work = self._transactions.get(number)
        if work is None or work.maker != state.id:
            raise TransactionSequence(f"this connection has no transaction {number}")
        if work.state is TransactionState.ACTIVE and work.connection == state.id:
            return work
        if prepared and work.state is TransactionState.PREPARED:
            return work
        raise TransactionSequence(f"transaction {number} is {work.state.value}")

    def leave(self, work: Transaction) -> None:
        """Let a transaction belong to no connection."""
        state = self._replies.connections.get(work.connection or 0)
        if state is not None:
            state.transactions.discard(work.number)
        work.leave_connection()

    def never_began(self, work: Transaction) -> None:
        """Forget a transaction that nobody has heard of, and give back what it holds all the same.

        A lock nobody owns would hide messages until the next start.
        """
        self.forget(work)
        if work.state is TransactionState.ACTIVE:
            self._work.release(work)

    def forget(self, work: Transaction) -> None:
        """Forget a transaction that has ended, or never began."""
        self.leave(work)
        if self._transactions.pop(work.number, None) is not None:
            self._disown(work.owner)
        self.staged.drop(work)
        self._shown.pop(work.number, None)

    def require_room(self, work: Transaction, count: int) -> None:
        """Refuse messages that a transaction has no room for."""
        if work.message_count + count > self._config.transaction_messages_max:
            raise InsufficientResources(
                f"a transaction may hold {self._config.transaction_messages_max} messages"
            )


def _require_free(xid: Xid, work: Transaction, prepared: list[Transaction]) -> None:
    """Refuse what a coordinator calls a transaction if it could not find it again by that."""
    xid.require_valid()
    if work.query:
        raise InvalidParameter(
            f"it is a part of batch {work.batch} of {work.query!r}, by which it is known: prepare "
            "it without xid"
        )
    if any(other.xid == xid and other.owner == work.owner for other in prepared):
        raise TransactionSequence(
            f"another prepared transaction of yours has the xid {xid}: end that first, or choose "
            "another"
        )


def _unknown() -> TransactionSequence:
    return TransactionSequence(
        "no prepared transaction of yours has this unit of work: in-doubt ones are listed by "
        "`openmsmq transaction list`"
    )
