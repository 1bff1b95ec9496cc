"""Applications as Spark has them: one reads a queue as a stream, one writes batches in parts.

Unlike other applications they have a checkpoint that survives everything, so whatever happens to
their connection or their node, each message of the stream is processed once, and each batch takes
effect once. That it does is what they check.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from openmsmq.api import messages as api
from openmsmq.model.errors import InsufficientResources, MessageStorageFailed
from openmsmq.model.queue import AccessMode
from openmsmq.sim.applications.applications import Application, Ask, Script, outcome_unknown
from openmsmq.sim.applications.worker import Worker
from openmsmq.sim.checks.books import READING
from openmsmq.sim.checks.facts import Fate, Group, SimMessage, number_in
from openmsmq.sim.violation import Violation
from openmsmq.storage import records
from openmsmq.storage.port import head_bytes

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_RETRY_MS: Final = 500
_FETCH_COUNT: Final = 10_000
_PLACE_BYTES: Final = struct.calcsize(api.PLACE_FORMAT)
_DISK_TROUBLE: Final = frozenset({InsufficientResources.code, MessageStorageFailed.code})


Fetching: TypeAlias = Generator[Ask | int, Any, list[tuple[int, bytes]] | None]
"""Reads messages: their lookup identifiers and packets, or None if the disk was in the way."""


class Stream(Application):
    """Reserves messages of a queue, reads them, perhaps again, and completes them."""

    def __init__(self, world: World, node: Node, queue: str, round_count: int) -> None:
        super().__init__(world, node)
        self._queue = queue
        self._left = round_count
        self._pause_max_ms = max(2, 2 * world.scenario.duration_ms // round_count)
        self._start = 0
        """Everything below this arrival number is processed."""
        self._stop: int | None = None
        """Where the batch ends that is being processed."""
        self._batch: dict[int, SimMessage] | None = None
        """What was found in it the first time, by lookup identifier."""
        self._completing = False
        self._may_have_reserved = False
        self._is_reserving = False
        """Whether a reservation was asked for, and nothing good was heard of it."""
        self._may_have_more = False
        """Whether such a one may hold more than the batch that came of the next."""

    def script(self) -> Script:
        """Process one batch after the other; leave nothing reserved at the end."""
        while self._left > 0 or self._may_have_reserved:
            self._left -= 1
            yield self.rng.randrange(1, self._pause_max_ms)
            opened = yield from self.opened(self._queue, AccessMode.RECEIVE)
            if opened is None:
                continue
            if self._stop is None:
                yield from self._reserve(opened.handle)
            if self._stop is not None and not self._completing:
                yield from self._read(opened.handle, self._stop)
                if self.rng.random() < 0.3:
                    yield self.rng.choice((1, 100, 5_000))
                    yield from self._read(opened.handle, self._stop)
            if self._stop is not None and self._batch is not None:
                yield from self._complete(opened.handle, self._stop, self._batch)

    def _reserve(self, handle: int) -> Script:
        def begun() -> None:
            # The answer to the one before may have been lost with the queue manager.
            self._may_have_more |= self._is_reserving
            self._may_have_reserved = self._is_reserving = True

        count = self.rng.choice((0, 0, 1, 3))
        reply = yield Ask(api.Reserve(handle, self.name, self._start, count), begun)
        if not isinstance(reply, api.Reserved):
            self._require_trouble(reply)
            return
        self._is_reserving = False
        if reply.stop > self._start:
            self._stop = reply.stop
        else:
            self._may_have_reserved = self._may_have_more = False

    def _read(self, handle: int, stop: int) -> Script:
        """Look at the batch: a second time there is the same in it, but for lost express ones."""
        if self.rng.random() < 0.5:
            entries = yield from self._fetch_entries(handle, stop)
        else:
            entries = yield from self._fetch_packets(handle, stop)
        if entries is None:
            return
        found: dict[int, SimMessage] = {}
        for lookup_id, packet in entries:
            number = number_in(packet)
            if number is None and self.world.adversary is not None:
                continue
            message = self.books.messages[number or 0]
            if lookup_id & records.ARRIVAL_MASK < self._start:
                raise Violation(
                    f"{message} came into {self._queue} below what {self.name} has processed"
                )
            found[lookup_id] = message
        if self._batch is None:
            self._batch = found
        for lookup_id in found.keys() ^ self._batch.keys():
            message = (found | self._batch)[lookup_id]
            if lookup_id in found or message.certain:
                raise Violation(
                    f"{message} is in the batch of {self.name} the "
                    f"{'second' if lookup_id in found else 'first'} time only"
                )
        self.books.reserved(found.values(), self.name)

    def _fetch_entries(self, handle: int, stop: int) -> Fetching:
        """Read everything below the end of the batch; there must be nothing before its start."""
        reply = yield Ask(api.FetchRange(handle, 0, stop, _FETCH_COUNT, 1 << 30))
        if isinstance(reply, api.Entries):
            return [(entry.lookup_id, entry.packet) for entry in reply.entries]
        self._require_trouble(reply)
        return None

    def _fetch_packets(self, handle: int, stop: int) -> Fetching:
        """Read the batch in pieces, so that all that is plain in it goes as a range later."""
        found: list[tuple[int, bytes]] = []
        start, count = self._start, self.rng.choice((1, 2, _FETCH_COUNT))
        while start < stop:
            reply = yield Ask(api.FetchPackets(handle, start, stop, count, 1 << 30))
            if not isinstance(reply, api.Packets):
                self._require_trouble(reply)
                return None
            found += _entries_in(reply)
            start = reply.next_start
        return found

    def _complete(self, handle: int, stop: int, batch: dict[int, SimMessage]) -> Script:
        def begun() -> None:
            self._completing = True
            self.errand = self.books.errand(self.node, self._queue, READING)
            self.books.reserved(batch.values(), "")

        reply = yield Ask(api.Complete(handle, self.name, stop), begun)
        if self.errand is not None:
            self.books.errand_ends(self.errand, self.node, unknown=outcome_unknown(reply))
            self.errand = None
        if not isinstance(reply, api.Completed):
            self._require_trouble(reply)
            # After an ordinary refusal everything is as it was, and can be looked at again.
            self._completing = outcome_unknown(reply)
        elif not reply.more:
            self.books.processed(self.node, self._queue, batch)
            self._start, self._stop, self._batch = stop, None, None
            self._completing, self._may_have_reserved = False, self._may_have_more

    def _require_trouble(self, reply: api.AnyReply) -> None:
        if not isinstance(reply, api.Failed) or reply.code not in _DISK_TROUBLE:
            raise Violation(f"{self.node.name} refused {self.name} its own messages: {reply}")


def _entries_in(raw: api.Packets) -> Iterator[tuple[int, bytes]]:
    """Yield the lookup identifier and the packet of each message of an answer."""
    lookup_ids = struct.iter_unpack(">Q", raw.lookup_ids)
    end = 0
    for (lookup_id,), (size,) in zip(lookup_ids, struct.iter_unpack("<I", raw.sizes), strict=True):
        start, end = end + head_bytes(size) + _PLACE_BYTES, end + size
        yield lookup_id, bytes(raw.entries[start:end])


class Batches(Worker):
    """Writes batches: prepares parts, some of them in vain, and commits those that count."""

    def __init__(self, world: World, node: Node, round_count: int) -> None:
        super().__init__(world, node, 0, round_count)
        self.name = f"{node.name}.batches"
        self._batch = 0
        self._written: Group | None = None
        """What the batch sends, across its parts."""
        self._vain: list[Group] = []
        self._units: list[bytes] | None = None
        """The parts that count, once they are all prepared."""

    def script(self) -> Script:
        """Write one batch after the other; end first what is left of the last one."""
        yield from self._settle()
        while self._left > 0:
            self._left -= 1
            yield self.rng.randrange(self._pause_max_ms)
            yield from self._write()
            yield from self._settle()

    def _write(self) -> Script:
        self._written, self._vain, self._units = self.books.new_group(self.node), [], None
        units: list[bytes] = []
        for _ in range(self.rng.randrange(1, 4)):
            if self.rng.random() < 0.3:
                self._vain.append(self.books.new_group(self.node))
                yield from self._part(self._vain[-1])
            unit = yield from self._part(self._written)
            if unit is None:
                return
            units.append(unit)
        self._units = units
        yield self.rng.choice((0, 0, 100, 5_000))

    def _part(self, group: Group) -> Generator[Ask | int, Any, bytes | None]:
        begun = yield Ask(api.Begin())
        if not isinstance(begun, api.Begun):
            return None
        yield from self._stage(group, begun.transaction)
        reply = yield Ask(api.Prepare(begun.transaction, self.name, self._batch))
        return None if isinstance(reply, api.Failed) else begun.unit_of_work

    def _settle(self) -> Script:
        """Commit the batch, or give it up if it is not whole; ask until that is certain."""
        while self._written is not None:
            reply = yield Ask(api.GetBatch(self.name))
            if isinstance(reply, api.LastBatch):
                yield from self._end(self._written, reply.batch)
            if self._written is not None:
                yield _RETRY_MS

    def _end(self, group: Group, last: int) -> Script:
        if last >= self._batch:
            yield from self._ended_batch(group, committed=True)
        elif self._units is None:
            reply = yield Ask(api.AbortBatch(self.name, self._batch))
            if isinstance(reply, api.Done):
                yield from self._ended_batch(group, committed=False)
        else:
            request = api.CommitBatch(self.name, self._batch, self._units)
            reply = yield Ask(request, lambda: self.books.commits(group))
            if reply == api.BatchCommitted(False):
                yield from self._ended_batch(group, committed=True)
            elif not isinstance(reply, api.Failed) or reply.code not in _DISK_TROUBLE:
                raise Violation(f"{self.name} could not commit batch {self._batch}: {reply}")
            elif not outcome_unknown(reply):
                group.fate = Fate.STAGED

    def _ended_batch(self, group: Group, *, committed: bool) -> Script:
        if committed:
            self.books.acknowledged(group)
            self._batch += 1
        else:
            self.books.failed(group)
        for vain in self._vain:
            self.books.failed(vain)
        self._written = None
        reply = yield Ask(api.ListTransactions())
        if isinstance(reply, api.Transactions) and any(
            work.query == self.name for work in reply.transactions
        ):
            raise Violation(f"{self.node.name} keeps parts of a batch of {self.name} that ended")
