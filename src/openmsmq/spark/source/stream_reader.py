"""Queues as streams: each message is read in exactly one batch, however often that is repeated.

A stream that consumes reserves the messages of a batch before it tells Spark where the batch
ends. So a batch that is planned or read again finds the same messages, also after the driver or
the queue manager was killed. When Spark has committed a batch, its messages are taken out; if that
word is lost, the next plan does it, because it begins where the committed batch ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from openmsmq.api.messages import QueueStatus
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.connecting import connected, explained
from openmsmq.spark.errors import QueueGone
from openmsmq.spark.source.offsets import (
    Offset,
    Spot,
    data_lost,
    from_offset,
    problem_with,
    spot_of,
    to_offset,
)
from openmsmq.spark.source.options import Mode, SourceOptions
from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.queues import find_queues
from openmsmq.spark.source.reading import first_arrival, read_range, split


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver; `read` runs in the tasks and needs nothing but its range."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._targets: dict[str, int] | None = None

    # Where a stream begins, and how far it could go.

    def initialOffset(self) -> Offset:
        """Give where a new query begins."""
        spots: list[Spot] = []
        for address, manager, status in self._all_queues(needed=True):
            with explained(address, status.path_name):
                begin = self._beginning(manager, status)
                spots.append(spot_of(address, status, begin, begin))
        return to_offset(spots)

    def _beginning(self, manager: QueueManager, status: QueueStatus) -> int:
        """Give where to begin; not behind what is reserved, which was never processed."""
        stop = status.last_arrival_number + 1
        if self._options.starting_time_s is not None:
            begin = _first_since(manager, status.path_name, stop, self._options.starting_time_s)
        else:
            begin = stop if self._options.starting_offsets == "latest" else 0
        return min(begin, status.reserved_start) if self._has_reserved(status) else begin

    def _has_reserved(self, status: QueueStatus) -> bool:
        is_mine = status.reserved_for == self._options.reader
        return is_mine and self._options.mode is Mode.CONSUME

    def reportLatestOffset(self) -> Offset:
        """Tell how far the queues have come, and how many messages wait in each: the lag."""
        offset: Offset = {}
        for address, _, status in self._all_queues():
            spot = spot_of(address, status, status.last_arrival_number + 1)
            offset |= to_offset([spot])
            offset[spot.key]["waiting"] = status.message_count
        return offset

    def getDefaultReadLimit(self) -> ReadLimit:
        """Give the limit that the options set; `latestOffset` knows them both."""
        if self._options.max_messages:
            return ReadMaxRows(self._options.max_messages)
        if self._options.max_bytes:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Note how far the queues have come: the query ends there."""
        # Whether the query is new is not known here, so a queue that is missing was not lost.
        queues = self._all_queues(needed=self._options.fail_on_data_loss)
        self._targets = {
            spot_of(address, status, 0).key: status.last_arrival_number + 1
            for address, _, status in queues
        }

    # One batch.

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Give where the next batch ends; what it reads is the reader's from now on."""
        known = from_offset(start)
        # Those that are gone stay as they were, if the options say that this does not matter.
        found = dict(known)
        count = max(1, len(known))
        for address, manager, status in self._all_queues():
            spot = self._continued(known, address, status)
            stop = self._next_stop(manager, spot, limit, count)
            if stop > spot.next:
                begin = spot.begin if spot.begin == spot.next else None
                spot = msgspec.structs.replace(spot, next=stop, begin=begin)
            found[spot.key] = spot
        return to_offset(list(found.values()))

    def _continued(self, known: dict[str, Spot], address: str, status: QueueStatus) -> Spot:
        """Give where a queue is read on: where it was, or at its beginning if it is new."""
        begin = 0
        spot = known.get(spot_of(address, status, 0).key)
        if spot is not None:
            problem = problem_with(spot, status)
            if problem is None:
                return spot
            self._bear(problem)
            if self._has_reserved(status):
                # It is an older copy of the store, and knows what this reader was about to read.
                begin = status.reserved_start
        return spot_of(address, status, begin, begin)

    def _bear(self, problem: str) -> None:
        """Let messages be gone, if the options say so."""
        if self._options.fail_on_data_loss:
            raise data_lost(problem) from None

    def _next_stop(self, manager: QueueManager, spot: Spot, limit: ReadLimit, queues: int) -> int:
        """Give where a batch ends in one queue; several queues share the limits evenly."""
        below = 0 if self._targets is None else self._targets.get(spot.key, spot.next)
        ended = self._targets is not None and below <= spot.next
        limits = {"below": below}
        if not isinstance(limit, ReadAllAvailable):
            limits["count"] = _share(self._options.max_messages, queues)
            limits["bytes_max"] = _share(self._options.max_bytes, queues)
        queue, reader, start = manager.queue(spot.queue), self._options.reader, spot.next
        with explained(spot.address, spot.queue):
            if self._options.mode is Mode.CONSUME:
                # What is below was committed, though Spark may not have said so: it says it only
                # when it plans another batch, and not at all if it was killed.
                queue.complete(reader, start)
            if ended:
                return start
            if self._options.mode is Mode.BROWSE:
                return queue.measure(start, **limits)
            return queue.reserve(reader, start, **limits)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split a batch among tasks."""
        begun = from_offset(start)
        found: list[QueueRange] = []
        for key, spot in from_offset(end).items():
            before = begun.get(key)
            # Spark asks again where a new query begins whenever it plans the first batch, and the
            # answer may have changed: what was reserved counts.
            first = spot.begin
            if first is None or spot == before:
                first = 0 if before is None else before.next
            if first < spot.next:
                found += self._ranges(spot, first)
        return found

    def _ranges(self, spot: Spot, first: int) -> list[QueueRange]:
        try:
            with connected(self._options.place, spot.address, spot.queue) as manager:
                stop = self._still_mine(manager, spot, first)
                low = first_arrival(manager, spot.queue, first, stop)
        except QueueGone as error:
            self._bear(str(error))
            return []
        return split(spot.address, spot.queue, low, stop, self._options.partitions)

    def _still_mine(self, manager: QueueManager, spot: Spot, first: int) -> int:
        """Give where the messages of a batch end of which nobody can have taken any out."""
        queue = manager.queue(spot.queue)
        status = queue.properties()
        problem = problem_with(spot, status)
        if problem is not None:
            self._bear(problem)
            return first
        reader = self._options.reader
        if self._options.mode is Mode.BROWSE or (
            status.reserved_for == reader
            and status.reserved_start <= first
            and spot.next <= status.reserved_stop
        ):
            return spot.next
        self._bear(f"what the reader {reader!r} had reserved in {spot.key} was released")
        return queue.reserve(reader, first, below=spot.next)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the messages of one range; nothing of this object changes."""
        assert isinstance(partition, QueueRange)
        return read_range(self._options, partition)

    def commit(self, end: Offset) -> None:
        """Take out what Spark is done with."""
        if self._options.mode is Mode.BROWSE:
            return
        for spot in from_offset(end).values():
            try:
                with connected(self._options.place, spot.address, spot.queue) as manager:
                    queue = manager.queue(spot.queue)
                    # In a queue that was made again, and in another store, these numbers belong
                    # to messages that nobody has read yet.
                    if problem_with(spot, queue.properties()) is None:
                        queue.complete(self._options.reader, spot.next)
            except QueueGone:
                # It was read to the end of the batch; the next plan says what is the matter.
                continue

    # The queues.

    def _all_queues(
        self, *, needed: bool = False
    ) -> Iterator[tuple[str, QueueManager, QueueStatus]]:
        """Give the queues as they are now, with a connection to each queue manager.

        Where a stream begins is asked again when its first batch is repeated, so no call here is
        surely the first contact: a queue manager that restarts is always waited for.
        """
        for address in self._options.place.addresses:
            with connected(self._options.place, address) as manager:
                for name in self._options.queues:
                    for status in self._named(manager, address, name, needed):
                        yield address, manager, status

    def _named(
        self, manager: QueueManager, address: str, name: str, needed: bool
    ) -> list[QueueStatus]:
        try:
            with explained(address, name):
                return find_queues(manager, name)
        except QueueGone:
            if needed:
                raise
            self._bear(f"queue {name} at {address} was deleted")
            return []


def _share(limit: int, queues: int) -> int:
    """Give a queue's part of a limit, at least one; 0 stays what it is, no limit."""
    return max(1, limit // queues) if limit else 0


def _first_since(manager: QueueManager, queue: str, stop: int, time_s: int) -> int:
    """Find the lowest arrival number of a message that arrived at a time or later."""
    handle = manager.queue(queue)
    low, high = 0, stop
    while low < high:
        middle = (low + high) // 2
        found = handle.fetch_range(middle, high, 1, 1)
        if not found or found[0].arrived_time_s >= time_s:
            high = middle
        else:
            low = found[0].arrival_number + 1
    return low
