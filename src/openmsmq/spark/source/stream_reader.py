"""Queues as streams: each message is read in exactly one batch, however often that is repeated.

A stream that consumes reserves the messages of a batch before it tells Spark where the batch
ends. So a batch that is planned or read again finds the same messages, also after the driver or
the queue manager was killed. When Spark has committed a batch, its messages are taken out; if that
word is lost, the next plan does it, because it begins where the committed batch ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from time import monotonic  # noqa: TID251 -- Spark's processes are no part of the core

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from openmsmq.api.messages import QueueStatus
from openmsmq.client.blocking import Queue, QueueManager
from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import QueueGone, QueueProblem
from openmsmq.spark.source.filters import ARRIVALS_END
from openmsmq.spark.source.offsets import (
    Offset,
    Reached,
    Spot,
    data_lost,
    from_offset,
    problem_with,
    to_offset,
)
from openmsmq.spark.source.options import Mode, SourceOptions
from openmsmq.spark.source.queue_range import Piece, QueueRange, Task, pieces_of, tasks_of
from openmsmq.spark.source.queues import Managers, Source, home_of, queues_at, starting_number
from openmsmq.spark.source.reading import read_ranges
from openmsmq.spark.source.reservations import LeftOut, Reservations, shares


class _Place(msgspec.Struct, frozen=True):
    """A queue while a batch is planned."""

    source: Source
    queue: Queue
    spot: Spot
    is_new: bool
    """Whether the query has not read it before."""
    below: int
    """The arrival number at which the query ends; 0 for none."""
    is_ended: bool
    again: Spot | None
    """Where it ends with what a batch has left out before; nothing else is planned then."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver; `read` runs in the tasks and needs nothing but its ranges."""

    def __init__(self, options: SourceOptions, clock: Callable[[], float] = monotonic) -> None:
        self._options = options
        self._clock = clock
        self._began: float | None = None
        """When the last batch was planned that was not put off."""
        self._reached: dict[str, int] = {}
        """How far the last batch goes that this driver knows of, by queue."""
        self._consumes = options.mode is Mode.CONSUME
        self._managers = Managers(options.place)
        self._reservations = Reservations(options)
        self._left_out = LeftOut(options.reader)
        self._targets: dict[str, int] | None = None

    def stop(self) -> None:
        """End the connections; what is reserved stays so for the next driver of the query."""
        self._managers.close()

    # Where a stream begins, and how far it could go.

    def initialOffset(self) -> Offset:
        """Return where a new query begins."""
        spots: list[Spot] = []
        for source, status in self._all_queues(self._managers.now(), needed=True):
            with explained(source.address, status.path_name):
                begin = self._beginning(source, status)
                spots.append(source.spot(status, begin, begin))
        return to_offset(spots, secrets.token_hex(16) if self._consumes else "", is_new=True)

    def _beginning(self, source: Source, status: QueueStatus) -> int:
        """Return where to begin; not behind what is reserved, which was never processed."""
        stop = status.last_arrival_number + 1
        if self._options.starting_time_s is not None:
            time_s = self._options.starting_time_s
            begin = _first_since(source.manager, status.path_name, stop, time_s)
        else:
            begin = starting_number(self._options.starting_offsets, status, source)
        return min(begin, status.reserved_start) if self._has_reserved(status) else begin

    def _has_reserved(self, status: QueueStatus) -> bool:
        return self._consumes and self._reservations.is_mine(status)

    def reportLatestOffset(self) -> Offset:
        """Return how far the queues have come, and how many messages wait in each: the lag."""
        offset: Offset = {}
        for source, status in self._all_queues(self._managers.now()):
            spot = source.spot(status, status.last_arrival_number + 1)
            offset |= to_offset([spot])
            begin = self._reached.get(spot.key, status.reserved_stop)
            # Of one that is deleted just now, the next plan says so.
            with (
                suppress(QueueGone),
                explained(source.address, spot.queue),
                source.manager.queue(spot.queue) as queue,
            ):
                behind = sum(part.count for part in queue.survey(begin, spot.next))
                offset[spot.key] |= {"waiting": status.message_count, "behind": behind}
        return offset

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the options set; `latestOffset` knows them both."""
        if self._options.max_messages:
            return ReadMaxRows(self._options.max_messages)
        if self._options.max_bytes:
            return ReadMaxBytes(self._options.max_bytes)
        if self._options.min_messages:
            return ReadMinRows(self._options.min_messages)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Note how far the queues have come: the query ends there."""
        # Whether the query is new is not known here, so a queue that is missing was not lost.
        queues = self._all_queues(self._managers.now(), needed=self._options.fail_on_data_loss)
        self._targets = {
            source.spot(status, 0).key: status.last_arrival_number + 1 for source, status in queues
        }

    # One batch.

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return where the next batch ends; what it reads is the reader's from now on."""
        sources = self._managers.now()
        reached = self._placed(from_offset(start), sources)
        checkpoint = reached.query if self._consumes else ""
        # Those that are gone stay as they were, if the options say that this does not matter.
        found = dict(reached.spots)
        with ExitStack() as opened:
            places = [
                self._opened(reached, source, status, opened, sources)
                for source, status in self._all_queues(sources)
            ]
            for place in places:
                self._complete(place, checkpoint)
            backlogs = self._backlogs(places, limit)
            if self._is_too_early(backlogs, limit):
                return to_offset(found.values(), checkpoint)
            limits = self._limits(limit, backlogs, len(places))
            for place, its_limits in zip(places, limits, strict=True):
                spot = self._planned(place, checkpoint, its_limits)
                found[spot.key] = spot
        self._reached = {key: spot.next for key, spot in found.items()}
        return to_offset(found.values(), checkpoint)

    def _opened(
        self,
        reached: Reached,
        source: Source,
        status: QueueStatus,
        opened: ExitStack,
        sources: list[Source],
    ) -> _Place:
        known = reached.spots.get(source.spot(status, 0).key)
        spot = self._continued(known, source, status)
        with explained(source.address, spot.queue):
            queue = opened.enter_context(source.manager.queue(spot.queue))
        below = 0 if self._targets is None else self._targets.get(spot.key, spot.next)
        goes_on = self._consumes and spot is known
        return _Place(
            source,
            queue,
            spot,
            is_new=reached.is_new or known is None,
            below=below,
            is_ended=self._targets is not None and below <= spot.next,
            again=self._left_out.again(sources, reached.query, spot) if goes_on else None,
        )

    def _complete(self, place: _Place, checkpoint: str) -> None:
        """Take out what was committed, though Spark may not have said so.

        It says it only when it plans another batch, and not at all if it was killed.
        """
        if self._consumes and not place.is_new and place.again is None:
            self._reservations.complete(place.queue, place.spot, checkpoint)

    def _backlogs(self, places: list[_Place], limit: ReadLimit) -> list[tuple[int, int]] | None:
        """Return messages and bytes that wait in each queue; None if nobody needs to know."""
        limits = self._options.max_messages or self._options.max_bytes
        is_shared = limits and len(places) > 1
        if isinstance(limit, ReadAllAvailable) or not (is_shared or self._options.min_messages):
            return None
        return [self._backlog(place) for place in places]

    def _backlog(self, place: _Place) -> tuple[int, int]:
        if place.is_ended:
            return 0, 0
        with explained(place.source.address, place.spot.queue):
            parts = place.queue.survey(place.spot.next, place.below or ARRIVALS_END)
        return sum(part.count for part in parts), sum(part.size for part in parts)

    def _is_too_early(self, backlogs: list[tuple[int, int]] | None, limit: ReadLimit) -> bool:
        """Whether to wait for more messages, as the options say."""
        options, now = self._options, self._clock()
        if options.min_messages and backlogs is not None and self._targets is None:
            waiting = sum(count for count, _ in backlogs)
            is_recent = self._began is not None and now - self._began < options.max_trigger_delay_s
            if waiting < options.min_messages and is_recent:
                return True
        if not isinstance(limit, ReadAllAvailable):
            self._began = now
        return False

    def _limits(
        self, limit: ReadLimit, backlogs: list[tuple[int, int]] | None, queues: int
    ) -> list[dict[str, int]]:
        """Return the limits of each queue; several share them by what they have."""
        if isinstance(limit, ReadAllAvailable):
            return [{}] * queues
        found = []
        for name, whole, place in (
            ("count", self._options.max_messages, 0),
            ("bytes_max", self._options.max_bytes, 1),
        ):
            parts = [whole] * queues
            if whole and backlogs is not None:
                parts = shares(whole, [backlog[place] for backlog in backlogs])
            found.append([{name: part} for part in parts])
        return [counts | sizes for counts, sizes in zip(*found, strict=True)]

    def _placed(self, reached: Reached, sources: list[Source]) -> Reached:
        """Return an offset with its queues where they are now, whatever their address was."""
        spots: dict[str, Spot] = {}
        for spot in reached.spots.values():
            home = home_of(spot, sources)
            if home is None:
                self._bear(
                    f"the queue manager that was at {spot.address} is not in the option qm any "
                    f"more, and queue {spot.queue} was read there: put it back, or let the query "
                    "go on without it; what it has reserved there may then come twice"
                )
            elif not spot.manager:
                spot = msgspec.structs.replace(spot, manager=home.identity)
            spots[spot.key] = spot
        return msgspec.structs.replace(reached, spots=spots)

    def _continued(self, spot: Spot | None, source: Source, status: QueueStatus) -> Spot:
        """Return where a queue is read on: where it was, or at its beginning if it is new."""
        begin = 0
        if spot is not None:
            problem = problem_with(spot, status, source.epochs)
            if problem is None:
                return spot
            self._bear(problem)
            if self._has_reserved(status):
                # It is an older copy of the store, and knows what this reader was about to read.
                begin = status.reserved_start
        return source.spot(status, begin, begin)

    def _bear(self, problem: str) -> None:
        """Let messages be gone, if the options say so."""
        if self._options.fail_on_data_loss:
            raise data_lost(problem) from None

    def _planned(self, place: _Place, checkpoint: str, limits: dict[str, int]) -> Spot:
        """Return where a batch ends in one queue."""
        source, queue, spot = place.source, place.queue, place.spot
        if place.again is not None or place.is_ended:
            return place.again or spot
        limits = limits | {"below": place.below}
        with explained(source.address, spot.queue):
            if not self._consumes:
                return _advanced(spot, source, queue.measure(spot.next, epoch=spot.epoch, **limits))
            reply = self._reservations.reserve(queue, spot, checkpoint, limits, is_new=place.is_new)
            if reply.completed > spot.next:
                # Nothing is lost, so no option lets it pass: a sink that has seen the number of
                # the next batch would take other messages for those that it has.
                raise QueueProblem(
                    f"the checkpoint is an older copy: it has queue {spot.name} up to arrival "
                    f"number {spot.next}, and the query has completed all below {reply.completed}. "
                    "Put the newer checkpoint back. If that is gone, begin with a new "
                    "checkpointLocation and a new output"
                )
            return _advanced(spot, source, reply.stop)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split a batch among tasks."""
        sources = self._managers.now()
        reached = self._placed(from_offset(end), sources)
        begun = self._placed(from_offset(start), sources).spots
        self._reached = {key: spot.next for key, spot in reached.spots.items()}
        found: list[Piece] = []
        for key, spot in reached.spots.items():
            first = spot.first(begun.get(key))
            home = home_of(spot, sources)
            if first < spot.next and home is not None:
                found += self._pieces(home, spot, first, reached.checkpoint)
            elif first < spot.next and self._consumes:
                self._left_out.note(sources, reached.checkpoint, spot, first)
        return tasks_of(found, self._options.partitions)

    def _pieces(self, source: Source, spot: Spot, first: int, checkpoint: str) -> list[Piece]:
        whole = QueueRange(source.address, spot.queue, first, spot.next, source.identity)
        if self._consumes:
            whole = msgspec.structs.replace(
                whole, reader=self._options.reader, checkpoint=checkpoint
            )
        try:
            with (
                explained(source.address, spot.queue),
                source.manager.queue(spot.queue) as queue,
            ):
                stop = self._still_mine(queue, source, spot, first, checkpoint)
                return pieces_of(queue, whole.part(first, stop), self._options.partitions)
        except QueueGone as error:
            self._bear(str(error))
            return []

    def _still_mine(
        self, queue: Queue, source: Source, spot: Spot, first: int, checkpoint: str
    ) -> int:
        """Return where the messages of a batch end of which nobody can have taken any out."""
        status = queue.properties()
        problem = problem_with(spot, status, source.epochs)
        if problem is not None:
            self._bear(problem)
            return first
        if not self._consumes or self._reservations.covers(status, first, spot.next):
            return spot.next
        reader = self._options.reader
        self._bear(
            f"what the reader {reader!r} had reserved in {spot.name} was released, or the "
            "checkpoint is an older copy"
        )
        begin = msgspec.structs.replace(spot, next=first)
        limits = {"below": spot.next}
        return max(first, self._reservations.reserve(queue, begin, checkpoint, limits).stop)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the messages of one task; nothing of this object changes."""
        assert isinstance(partition, Task)
        return read_ranges(self._options, partition.ranges)

    def commit(self, end: Offset) -> None:
        """Take out what Spark is done with."""
        if not self._consumes:
            return
        sources = self._managers.now()
        reached = from_offset(end)
        for spot in reached.spots.values():
            home = home_of(spot, sources)
            if home is None or self._left_out.again(sources, reached.checkpoint, spot):
                continue
            try:
                with (
                    explained(home.address, spot.queue),
                    home.manager.queue(spot.queue) as queue,
                ):
                    # In a queue that was made again, and in another store, these numbers belong
                    # to messages that nobody has read yet.
                    if problem_with(spot, queue.properties(), home.epochs) is None:
                        self._reservations.complete(queue, spot, reached.checkpoint)
            except QueueGone:
                # It was read to the end of the batch; the next plan says what is the matter.
                continue

    # The queues.

    def _all_queues(
        self, sources: list[Source], *, needed: bool = False
    ) -> Iterator[tuple[Source, QueueStatus]]:
        """Yield the queues as they are now.

        Where a stream begins is asked again when its first batch is repeated, so no call here is
        surely the first contact: a queue manager that restarts is always waited for.
        """
        for source in sources:

            def gone(name: str, error: QueueGone, address: str = source.address) -> None:
                if needed:
                    raise error
                self._bear(f"queue {name} at {address} was deleted")

            for status in queues_at(source, self._options.queues, gone):
                yield source, status


def _advanced(spot: Spot, source: Source, stop: int) -> Spot:
    """Return the end of a batch; one that has nothing in a queue changes nothing there."""
    if stop <= spot.next:
        return spot
    begin = spot.begin if spot.begin == spot.next else None
    epoch = source.epochs[-1].identifier if source.epochs else ""
    return msgspec.structs.replace(
        spot, address=source.address, next=stop, begin=begin, epoch=epoch, turn=0
    )


def _first_since(manager: QueueManager, queue: str, stop: int, time_s: int) -> int:
    """Find the lowest arrival number of a message that arrived at a time or later."""
    with manager.queue(queue) as handle:
        low, high = 0, stop
        while low < high:
            middle = (low + high) // 2
            found = handle.fetch_range(middle, high, 1, 1)
            if not found or found[0].arrived_time_s >= time_s:
                high = middle
            else:
                low = found[0].arrival_number + 1
        return low
