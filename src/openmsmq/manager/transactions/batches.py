"""Batches of queries: prepared transactions of many senders that commit together, exactly once.

A query of Spark writes a batch from several computers. Each writer prepares its part, and then
one of them commits the whole batch. Whoever failed meanwhile does it again, so parts may be there
twice, and a batch may be committed a second time: only the parts named in the commit take effect,
and the number of the last batch, stored with them, tells a repetition from a new one. Only the last
batch can come again. An older one, or one of another checkpoint, is refused with a sentence: it
might have rows that were never written, and others that were.

A query belongs to who first prepared or committed something for it. Nobody else but those who look
after the queue manager may ask for it, add to it or end it. A name that is another's is refused,
and never quietly begun anew, because a batch could then be written twice.
"""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.transactions.effects import LastBatchChanged
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transactions.staged import share_of
from openmsmq.manager.transactions.work import Transaction
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.batches import BatchMark, Succession, refusal, succession
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidParameter,
    TransactionSequence,
)
from openmsmq.model.limits import (
    QUERIES_LISTED_MAX_COUNT,
    QUERIES_OVER_MAX_COUNT,
    QUERY_IDLE_S,
    QUERY_NAME_MAX_BYTES,
    QUERY_SINGLE_IDLE_S,
)
from openmsmq.security.access.callers import Caller
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader
from openmsmq.storage.records import BatchRecord

_ROWS: Final = 1000
_BATCH_MAX: Final = (1 << 63) - 1


class StagedBatches:
    """Knows the last batch of each query, and commits the next one."""

    def __init__(
        self,
        base: Foundation,
        transactions: TransactionRequests,
        replies: Replies,
        access: AccessControl,
    ) -> None:
        self._config = base.config
        self._ledger = base.ledger
        self._transactions = transactions
        self._replies = replies
        self._access = access
        self._last = _all_batches(base.reader)
        # Of each owner, in the order in which they ended. Not stored: who prepares a part late was
        # connected when its query ended, and has to begin again after a restart.
        self._over: dict[str, dict[str, None]] = {}

    def prepare(self, state: Connection, call: int, request: api.Prepare, now: Instant) -> None:
        """Prepare a transaction; one that is a part of a batch only if that can be committed."""
        if request.query:
            work = self._transactions.find(state, request.transaction)
            self._require_part(state.caller, request, work)
        self._transactions.prepare(state, call, request, now)

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.Prepare, self.prepare)
        handlers.add(api.GetBatch, self.get_batch)
        handlers.add(api.ListQueries, self.list_queries)
        handlers.add(api.CommitBatch, self.commit_batch)
        handlers.add(api.AbortBatch, self.abort_batch)
        handlers.add(api.ForgetQuery, self.forget_query)

    def get_batch(self, state: Connection, call: int, request: api.GetBatch, _: Instant) -> None:
        """Tell which batch a query has committed last; what is told is durable."""
        self._owner(state.caller, request.query)
        if request.batch >= 0:
            self._is_again(request.query, BatchMark(request.batch, request.checkpoint))
        reply = api.LastBatch(self._last_batch(request.query))
        self._replies.answer_when_done(state.id, call, reply)

    def list_queries(
        self, state: Connection, call: int, request: api.ListQueries, _: Instant
    ) -> None:
        """List the queries that the caller may forget."""
        everything = self._access.administers(state.caller)
        names = sorted(
            query
            for query, record in self._last.items()
            if query > request.after
            and query.startswith(request.prefix)
            and (everything or record.owner == state.caller.owner_name)
        )
        found: list[api.QueryStatus] = []
        for query in names[:QUERIES_LISTED_MAX_COUNT]:
            last = self._last[query]
            found.append(
                api.QueryStatus(
                    query, last.batch, last.committed_time_s, last.owner, last.checkpoint
                )
            )
        self._replies.answer_when_done(state.id, call, api.Queries(found))

    def commit_batch(
        self, state: Connection, call: int, request: api.CommitBatch, now: Instant
    ) -> None:
        """Commit a batch with the parts named, unless it was committed before."""
        query, batch = request.query, request.batch
        _require_number(batch)
        owner = self._owner(state.caller, query)
        mark = BatchMark(batch, request.checkpoint, request.row_count, request.end)
        before = self._is_again(query, mark)
        if not before:
            parts = self._named_parts(request)
            if query not in self._last:
                self._make_room(state.caller, owner, now)
            self._remember(
                query,
                BatchRecord(batch, now.unix_s, owner, mark.checkpoint, mark.row_count, mark.end),
            )
            for work in parts:
                self._transactions.end_commit(work, now)
        # What is left of this batch, or of an earlier one, was written by somebody who failed.
        self._abort_parts(query, self._last_batch(query), now)
        self._replies.answer_when_done(state.id, call, api.BatchCommitted(before))

    def abort_batch(
        self, state: Connection, call: int, request: api.AbortBatch, now: Instant
    ) -> None:
        """Abort the parts of a batch."""
        _require_number(request.batch)
        self._owner(state.caller, request.query)
        record = self._last.get(request.query)
        # Whose batches are refused has no parts here: those that wait are the other's.
        if record is None or record.checkpoint in ("", request.checkpoint):
            self._abort_parts(request.query, request.batch, now)
        self._replies.answer_when_done(state.id, call, api.Done())

    def forget_query(
        self, state: Connection, call: int, request: api.ForgetQuery, now: Instant
    ) -> None:
        """Forget a query, and abort what it has prepared."""
        owner = self._owner(state.caller, request.query)
        self._abort_parts(request.query, _BATCH_MAX, now)
        if request.is_over:
            self._end(owner, request.query)
        if request.query in self._last:
            self._forget(request.query)
        self._replies.answer_when_done(state.id, call, api.Done())

    def _owner(self, caller: Caller, query: str) -> str:
        """Return whose query it is, or will be; refuse a caller who may not use it."""
        _require_text("query", query, 1)
        record = self._last.get(query)
        owner = None if record is None else record.owner
        if owner is None:
            parts = (work.owner for work in self._transactions.prepared() if work.query == query)
            owner = next(parts, caller.owner_name)
        if owner != caller.owner_name and not self._access.administers(caller):
            whose = owner or "administrators, because an older version began it"
            raise AccessDenied(
                f"the query {query!r} belongs to {whose}: give yours another name, or connect as "
                "who began it"
            )
        return owner

    def _end(self, owner: str, query: str) -> None:
        """Remember that a query is over; who has ended most of them makes room."""
        self._over.setdefault(owner, {})[query] = None
        if sum(map(len, self._over.values())) > QUERIES_OVER_MAX_COUNT:
            most = max(self._over, key=lambda each: len(self._over[each]))
            del self._over[most][next(iter(self._over[most]))]

    def _last_batch(self, query: str) -> int:
        record = self._last.get(query)
        return -1 if record is None else record.batch

    def _is_again(self, query: str, mark: BatchMark) -> bool:
        """Return whether a batch is the last one; refuse one that is not and cannot follow it."""
        _require_text("checkpoint", mark.checkpoint, 0)
        _require_text("batch's end", mark.end, 0)
        record = self._last.get(query)
        if record is None:
            return False
        last = BatchMark(record.batch, record.checkpoint, record.row_count, record.end)
        follows = succession(last, mark)
        problem = refusal(query, last, mark, f"`openmsmq query forget {query!r}`")
        if problem is not None:
            raise TransactionSequence(problem)
        return follows is Succession.AGAIN

    def _named_parts(self, request: api.CommitBatch) -> list[Transaction]:
        """Find the parts that a commit names, in their order."""
        mine = {
            bytes(work.unit_of_work): work
            for work in self._transactions.prepared()
            if work.query == request.query and work.batch == request.batch
        }
        missing = [unit for unit in request.units_of_work if unit not in mine]
        if missing or len(set(request.units_of_work)) != len(request.units_of_work):
            raise TransactionSequence(
                f"batch {request.batch} of {request.query!r} has {len(missing)} parts that are "
                "not prepared here, or names one twice: write it again"
            )
        return [mine[unit] for unit in request.units_of_work]

    def _abort_parts(self, query: str, batch: int, now: Instant) -> None:
        for work in self._transactions.prepared():
            if work.query == query and work.batch <= batch:
                self._transactions.end_abort(work, now)

    def _require_part(self, caller: Caller, request: api.Prepare, work: Transaction) -> None:
        """Refuse a part that comes too late."""
        _require_number(request.batch)
        owner = self._owner(caller, request.query)
        if request.query in self._over.get(owner, ()):
            raise TransactionSequence(f"the query {request.query!r} is over")
        if self._is_again(request.query, BatchMark(request.batch, request.checkpoint)):
            raise TransactionSequence(
                f"batch {request.batch} of {request.query!r} is committed already"
            )
        self._transactions.give(work, owner)

    def _make_room(self, caller: Caller, owner: str, now: Instant) -> None:
        """Forget the query that has been idle for longest, of those for which that is enough."""
        most, everybodys = self._config.queries_max, self._last
        own = {query: each for query, each in everybodys.items() if each.owner == owner}
        share = share_of(most, len(everybodys) - len(own))
        if len(everybodys) >= most:
            candidates = everybodys
        elif len(own) >= share and not self._access.administers(caller):
            candidates = own
        else:
            return
        idle = {
            query: each.committed_time_s
            for query, each in candidates.items()
            if each.committed_time_s <= now.unix_s - _remembered_for_s(query, each)
        }
        if idle:
            self._forget(min(idle, key=lambda query: idle[query]))
            return
        raise InsufficientResources(
            f"the last batches of {len(everybodys)} queries are remembered, {len(own)} of them "
            f"yours, and there may be {most} in all; none has been idle for long enough. Write "
            "data frames that follow each other under one name, with their numbers in the option "
            "batch; `openmsmq query list` shows the names, and `openmsmq query forget` forgets one "
            "that will not come again"
        )

    def _forget(self, query: str) -> None:
        self._ledger.add(LastBatchChanged(self._last, query, None))

    def _remember(self, query: str, record: BatchRecord) -> None:
        self._ledger.add(LastBatchChanged(self._last, query, record))


def _all_batches(reader: StoreReader) -> dict[str, BatchRecord]:
    found: dict[str, BatchRecord] = {}
    start, stop = records.kind_range(b"B")
    while rows := reader.scan(start, stop, _ROWS):
        for key, value in rows:
            found[records.batch_of(key)] = records.decode_record(value, records.BatchRecord)
        start = rows[-1][0] + b"\0"
    return found


def _remembered_for_s(query: str, last: BatchRecord) -> int:
    """Return how long a query is surely remembered.

    A name that has had one batch, and is not the checkpoint itself, was most likely made up for
    one data frame. It protects that from being written again by who tried and heard no answer,
    which happens soon or never. A query with more batches may be stopped for weeks.
    """
    is_single = last.batch == 0 and query != last.checkpoint
    return QUERY_SINGLE_IDLE_S if is_single else QUERY_IDLE_S


def _require_number(batch: int) -> None:
    if not 0 <= batch <= _BATCH_MAX:
        raise InvalidParameter(f"batch {batch}; batches are numbered from 0")


def _require_text(what: str, text: str, shortest: int) -> None:
    if not shortest <= len(text.encode()) <= QUERY_NAME_MAX_BYTES or not text.isprintable():
        raise InvalidParameter(
            f"{text[:QUERY_NAME_MAX_BYTES]!r} is no name of a {what}: it has {shortest} to "
            f"{QUERY_NAME_MAX_BYTES} bytes, and can be printed"
        )
