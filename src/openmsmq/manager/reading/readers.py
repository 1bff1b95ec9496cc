"""Who reads queues by arrival numbers: which query under which name, how far, and whether it lives.

The name of a reader is chosen by people, and two queries may have the same by mistake. A query is
known by its checkpoint, a random word that it keeps with its offsets. Of each reader the store has
the checkpoint of the query that reads under its name, and how far that has completed. A new query
may follow one that is gone; one that was followed does not come back unnoticed.

Which query lives is known by its connection, and only in memory; one from which nothing is heard
for long may be on a computer that is gone. Nothing is lost or read twice if that is wrong: what one
query has reserved and read is never given to another one.
"""

from __future__ import annotations

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.reading.effects import ReadersChanged
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.errors import AccessDenied, InvalidParameter, SharingViolation
from openmsmq.model.limits import READER_NAME_MAX_BYTES, READER_QUIET_S, READERS_MAX_COUNT
from openmsmq.storage.records import ReaderRecord


class _Holder:
    """A query that reads: its connection, its process, and when something was heard of it."""

    __slots__ = ("connection", "heard_ms", "process")

    def __init__(self, connection: int, process: str, heard_ms: int) -> None:
        self.connection = connection
        self.process = process
        self.heard_ms = heard_ms


class Readers:
    """Tells the queries apart that read queues by arrival numbers."""

    def __init__(self, ledger: Ledger, access: AccessControl) -> None:
        self._ledger = ledger
        self._access = access
        self._holders: dict[tuple[int, str], _Holder] = {}
        """Which query reads, by queue and reader."""

    # Who may.

    def require_names(self, request: api.Reserve | api.Complete) -> None:
        """Refuse names that could not be printed or stored."""
        for name in (request.reader, request.checkpoint or request.reader):
            if not 0 < len(name.encode()) <= READER_NAME_MAX_BYTES or not name.isprintable():
                raise InvalidParameter(
                    f"{name[:READER_NAME_MAX_BYTES]!r} is no name of a reader or checkpoint: it "
                    f"has 1 to {READER_NAME_MAX_BYTES} bytes, and can be printed"
                )

    def holder_of(self, queue: LocalQueue, request: api.Reserve, now: Instant) -> str:
        """Return which other query lives and reads under this name; empty if none does."""
        holder = self._holders.get((queue.id, request.reader))
        if holder is None or holder.process == request.holder:
            return ""
        if now.ticks_ms - holder.heard_ms > READER_QUIET_S * 1000:
            return ""
        known = queue.readers.get(request.reader)
        if known is not None and known.checkpoint == request.checkpoint:
            return (
                f"{queue.name} is being read by {request.reader!r}, from the same checkpoint, by "
                "a query that runs: stop it first, or give a copy of the checkpoint up. If its "
                f"computer is gone, try again in {READER_QUIET_S // 60} minutes, or release the "
                "queue"
            )
        return (
            f"{queue.name} is being read by another query that runs and has the same name, "
            f"{request.reader!r}: give each query a name of its own with the option reader"
        )

    def heard(self, queue: LocalQueue, reader: str, checkpoint: str, now: Instant) -> None:
        """Note that a query lives, because its driver or a task has asked for something."""
        known, holder = queue.readers.get(reader), self._holders.get((queue.id, reader))
        if known is not None and known.checkpoint == checkpoint and holder is not None:
            holder.heard_ms = now.ticks_ms

    def require_current(
        self, queue: LocalQueue, request: api.Reserve | api.Complete, state: Connection
    ) -> None:
        """Refuse a query that another one has followed under its name."""
        known = queue.readers.get(request.reader)
        if not request.checkpoint or known is None or known.checkpoint == request.checkpoint:
            return
        if not isinstance(request, api.Reserve) or not request.is_new:
            raise SharingViolation(
                f"the reader {request.reader!r} of {queue.name} has another checkpoint since: "
                "another query uses its name, or began anew. Give this one a name of its own with "
                "the option reader; if it is the one to go on, release the queue"
            )
        if not self._access.may_use(state.caller, known.owner):
            raise AccessDenied(
                f"the reader {request.reader!r} of {queue.name} belongs to "
                f"{known.owner or 'administrators'}: choose another name"
            )

    def require_unread(self, queue: LocalQueue, request: api.Reserve) -> None:
        """Refuse to read again what another query has read, and perhaps processed."""
        if not request.is_new:
            raise SharingViolation(
                f"the reader {request.reader!r} of {queue.name} has reserved messages for another "
                "checkpoint: give this query a name of its own with the option reader"
            )
        if queue.reservation.is_read:
            raise SharingViolation(
                f"arrival numbers {queue.reservation.start} to {queue.reservation.stop - 1} of "
                f"{queue.name} were read by the query that {request.reader!r} had before, from "
                "another checkpoint, and it has not said whether it is done with them: start it "
                "once more with its checkpoint. If that is gone, look whether its output has "
                "them; to have them read again, release the queue"
            )

    # What is known.

    def completed(self, queue: LocalQueue, request: api.Reserve) -> int:
        """Return how far a query has completed; 0 for one that is not known."""
        known = queue.readers.get(request.reader)
        same = known is not None and known.checkpoint == request.checkpoint
        return known.completed if known is not None and same else 0

    def reserved(
        self, queue: LocalQueue, request: api.Reserve, state: Connection, now: Instant
    ) -> None:
        """Note which query reads under a name, and that it lives."""
        if not request.checkpoint:
            return
        self._holders[queue.id, request.reader] = _Holder(state.id, request.holder, now.ticks_ms)
        state.reads_as.add((queue.id, request.reader))
        known = queue.readers.get(request.reader)
        if known is None or known.checkpoint != request.checkpoint:
            owner = state.caller.owner_name
            self._note(
                queue, request.reader, ReaderRecord(request.checkpoint, 0, now.unix_s, owner)
            )

    def done(self, queue: LocalQueue, request: api.Complete, stop: int, now: Instant) -> None:
        """Note how far a query has completed."""
        known = queue.readers.get(request.reader)
        if not request.checkpoint or known is None or known.completed >= stop:
            return
        changed = msgspec.structs.replace(known, completed=stop, used_time_s=now.unix_s)
        self._note(queue, request.reader, changed)

    def _note(self, queue: LocalQueue, reader: str, record: ReaderRecord) -> None:
        readers = queue.readers | {reader: record}
        if len(readers) > READERS_MAX_COUNT:
            idle = [name for name in readers if name not in (reader, queue.reservation.reader)]
            del readers[min(idle, key=lambda name: readers[name].used_time_s)]
        self._ledger.add(ReadersChanged(queue, readers))

    def forget(self, queue: LocalQueue) -> None:
        """Forget the reader that has messages reserved, or all if none has."""
        if not queue.readers:
            return
        left = dict(queue.readers)
        for name in [queue.reservation.reader] if queue.reservation.reader else list(left):
            left.pop(name, None)
            self._holders.pop((queue.id, name), None)
        self._ledger.add(ReadersChanged(queue, left))

    def owners(self, queue: LocalQueue) -> set[str]:
        """Return whose readers `forget` would forget."""
        if queue.reservation.stop:
            return {queue.reservation.owner}
        return {known.owner for known in queue.readers.values()}

    def connection_lost(self, state: Connection) -> None:
        """Note that the queries of a connection do not live, or not there."""
        for key in state.reads_as:
            holder = self._holders.get(key)
            if holder is not None and holder.connection == state.id:
                del self._holders[key]
