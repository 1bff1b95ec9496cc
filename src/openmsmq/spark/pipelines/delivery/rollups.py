"""Deliveries summed up: all of them, by queue, by hour and by link.

The words for counts, which add up in every row:

| Count | Which messages |
|---|---|
| `message_count` | all; the sum of the outcomes, and of delivered, undelivered and open ones |
| `delivered_count` | received, waiting or reached: in their queue, or taken from it |
| undelivered | dead letters, failed and lost ones: nobody will receive them any more |
| open | in transit or unknown: neither is known |
| `arrived_count` | those that reached their queue, whatever became of them there |
| `failed_after_arrival_count` | undelivered ones that had arrived: the rest of the arrived |
| `untraced_count` | open ones that asked for no positive acknowledgment: nothing can tell of them |

Percentiles are exact: times have a resolution of one second, so there are few different latencies,
and all of them can be counted. Each stands
beside the number of messages that it rests on, those whose time is known.

`loss` is the share of undelivered messages. Messages that are still on their way count as not lost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.spark.pipelines.delivery.facts import SECOND
from openmsmq.spark.pipelines.delivery.outcomes import (
    DELIVERED,
    OPEN,
    UNDELIVERED,
    Delivery,
    Outcome,
    asked_to_be_told,
)
from openmsmq.spark.pipelines.few import is_here, of_rows, of_table, table_of
from openmsmq.spark.pipelines.plain_rows import TIME, batches_of, in_tasks, one_by_one, tuples_of

PERCENTILES: Final = (50, 95, 99)
REASONS: Final = frozenset(member.name for member in MessageClass if is_negative(member))
OTHER_REASON: Final = "other"
"""Dead letters that do not say why, or with a number that has no name."""


class Sum(StrEnum):
    """What deliveries are summed up by."""

    ALL = "all"
    QUEUE = "queue"
    HOUR = "hour"
    LINK = "link"


class Group(NamedTuple):
    """One of what deliveries are summed up by: of a queue or a link two names."""

    kind: str
    first: str | None = None
    second: str | None = None
    hour: int | None = None


class Tally(msgspec.Struct):
    """What is counted of the messages of a group."""

    counts: dict[str, int] = {}
    """Messages by what is true of them, by outcome, and their bytes if any size is known."""
    reasons: dict[str, int] = {}
    reach: dict[float, int] = {}
    """How many took so many seconds to reach their queue, or the end of a link."""
    receive: dict[float, int] = {}
    first_sent: int | None = None
    last_sent: int | None = None

    def add(self, other: Tally) -> None:
        """Count what another one has counted."""
        for name in ("counts", "reasons", "reach", "receive"):
            own = getattr(self, name)
            for key, count in getattr(other, name).items():
                own[key] = own.get(key, 0) + count
        self._sent(other.first_sent)
        self._sent(other.last_sent)

    def message(
        self,
        one: Delivery,
        *,
        outcome: str | None,
        arrived: bool,
        reach_s: float | None,
        receive_s: float | None = None,
    ) -> None:
        """Count a message; without an outcome it went well here, and ended elsewhere."""
        counts = self.counts
        facts = {
            "messages": True,
            "arrived": arrived,
            "failed_after_arrival": arrived and outcome in UNDELIVERED,
            "untraced": outcome in OPEN and not asked_to_be_told(one.acknowledge),
            "in_doubt": one.in_doubt,
            outcome or "": outcome is not None,
        }
        for name, is_true in facts.items():
            if is_true:
                counts[name] = counts.get(name, 0) + 1
        if one.size_bytes is not None:
            counts["size_bytes"] = counts.get("size_bytes", 0) + one.size_bytes
        if outcome == Outcome.DEAD_LETTER:
            reason = known_reason(one.dead_letter_reason)
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
        for seconds, taken in ((reach_s, self.reach), (receive_s, self.receive)):
            if seconds is not None:
                taken[seconds] = taken.get(seconds, 0) + 1
        self._sent(one.sent_time)

    def _sent(self, time: int | None) -> None:
        if time is not None:
            self.first_sent = time if self.first_sent is None else min(self.first_sent, time)
            self.last_sent = time if self.last_sent is None else max(self.last_sent, time)

    def measures(self) -> tuple[Any, ...]:
        """Return what `MEASURES` names."""
        counts = self.counts
        messages = counts.get("messages", 0)
        undelivered = sum(counts.get(one, 0) for one in UNDELIVERED)
        return (
            messages,
            sum(counts.get(one, 0) for one in DELIVERED),
            *(counts.get(one, 0) for one in Outcome),
            undelivered,
            sum(counts.get(one, 0) for one in OPEN),
            counts.get("arrived", 0),
            counts.get("failed_after_arrival", 0),
            counts.get("untraced", 0),
            counts.get("size_bytes"),
            *_times(self.reach),
            *_times(self.receive),
            undelivered / messages if messages else None,
            list(self.reasons.items()),
            counts.get("in_doubt", 0),
            self.first_sent,
            self.last_sent,
        )


_TIMES: Final = ("count", *(f"p{percent}_s" for percent in PERCENTILES))
_COUNTS: Final = (
    *("message_count", "delivered_count"),
    *(f"{one.value}_count" for one in Outcome),
    *("undelivered_count", "open_count"),
    *("arrived_count", "failed_after_arrival_count", "untraced_count"),
    "size_bytes",
)
_LATENCIES: Final = tuple(
    f"latency_{what}_{time}" for what in ("reach", "receive") for time in _TIMES
)
_SUMS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "first", "second")),
        ("hour", TIME),
        *((name, pa.int64()) for name in _COUNTS),
        *((name, pa.int64() if name.endswith("count") else pa.float64()) for name in _LATENCIES),
        ("loss", pa.float64()),
        ("dead_letter_reasons", pa.map_(pa.string(), pa.int64())),
        ("in_doubt_count", pa.int64()),
        *((name, TIME) for name in ("first_sent_time", "last_sent_time")),
    ]
)
MEASURES: Final = tuple(_SUMS.names[len(Group._fields) :])
_PARTS: Final = pa.schema([("key", pa.binary()), ("tally", pa.binary())])


def by_queue(deliveries: DataFrame) -> DataFrame:
    """Sum up by destination queue: counts by outcome, sizes, latencies, loss, reasons."""
    return part(sums(deliveries, (Sum.QUEUE,)), Sum.QUEUE)


def by_hour(deliveries: DataFrame) -> DataFrame:
    """Sum up by the hour of sending, in the time zone of the session; null if it is not known."""
    return part(sums(deliveries, (Sum.HOUR,)), Sum.HOUR)


def by_link(deliveries: DataFrame) -> DataFrame:
    """Sum up by link: two queue managers of which one had a message after the other.

    Where hops do not report, a link spans several of them. A message that did not arrive counts
    on the link from the last queue manager known to have it to its destination. The latency is
    the time from when the first had it until the second had it.
    """
    return part(sums(deliveries, (Sum.LINK,)), Sum.LINK)


def sums(deliveries: DataFrame, kinds: Sequence[Sum] = tuple(Sum)) -> DataFrame:
    """Sum up by all of these at once, in one pass; `part` takes each out of it."""
    if is_here(deliveries):
        table = table_of(deliveries).select(Delivery._fields)
        return of_rows(deliveries.sparkSession, _rows(_tallied(kinds, [table])), _SUMS)
    parts = in_tasks(deliveries, one_by_one(Delivery._fields), partial(_tally, kinds), _PARTS)
    same = parts.groupBy("key").agg(F.collect_list(F.struct("key", "tally")).alias("parts"))
    return in_tasks(same, F.col("parts"), _merge, _SUMS)


def part(summed: DataFrame, kind: Sum) -> DataFrame:
    """Take one table out of what `sums` gives."""
    columns, names = zip(*_columns(kind), strict=True)
    if is_here(summed):
        table = table_of(summed).filter(pc.field("kind") == kind.value).select(columns)
        made = table.rename_columns(names)
        return of_table(summed.sparkSession, made, from_arrow_schema(made.schema))
    named = (F.col(column).alias(name) for column, name in zip(columns, names, strict=True))
    return summed.where(F.col("kind") == kind.value).select(*named)


def _columns(kind: Sum) -> list[tuple[str, str]]:
    """Return which columns of all sums one table has, and what it calls them."""
    if kind is Sum.LINK:
        # What took a link has the time to reach its end, and nothing is received there.
        return [
            ("first", "source_queue_manager"),
            ("second", "target_queue_manager"),
            *((name, name) for name in _ON_LINK),
            *((f"latency_reach_{time}", f"latency_{time}") for time in _TIMES),
            *((name, name) for name in ("loss", "dead_letter_reasons")),
        ]
    shown = MEASURES if kind is Sum.ALL else MEASURES[: MEASURES.index("in_doubt_count")]
    named = [(name, name) for name in shown if name not in ("undelivered_count", "open_count")]
    keys = {
        Sum.QUEUE: [("first", "destination_queue_manager"), ("second", "destination_queue")],
        Sum.HOUR: [("hour", "hour")],
    }
    return [*keys.get(kind, ()), *named]


_ON_LINK: Final = (
    *("message_count", "arrived_count", "undelivered_count", "open_count"),
    "size_bytes",
)


# In tasks, or here.


def _tally(kinds: Sequence[Sum], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = _tallied(kinds, batches)
    encode = msgspec.msgpack.encode
    return batches_of(((encode(key), encode(one)) for key, one in found.items()), _PARTS)


def _merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found: dict[Group, Tally] = {}
    read = msgspec.msgpack.Decoder(Tally).decode
    for key, tally in chain.from_iterable(tuples_of(batch, tuple) for batch in batches):
        group = msgspec.msgpack.decode(key, type=Group)
        found.setdefault(group, Tally()).add(read(tally))
    return batches_of(_rows(found), _SUMS)


def _rows(found: Mapping[Group, Tally]) -> Iterator[tuple[Any, ...]]:
    return ((*group, *tally.measures()) for group, tally in found.items())


def _tallied(
    kinds: Sequence[Sum], batches: Iterable[pa.RecordBatch | pa.Table]
) -> dict[Group, Tally]:
    found: dict[Group, Tally] = defaultdict(Tally)
    for batch in batches:
        hours = hours_of(batch.column("sent_time"))
        for one, hour in zip(tuples_of(batch, Delivery._make), hours, strict=True):
            groups = {
                Sum.ALL: Group(Sum.ALL),
                Sum.QUEUE: Group(Sum.QUEUE, one.destination_queue_manager, one.destination_queue),
                Sum.HOUR: Group(Sum.HOUR, hour=hour),
            }
            for kind, group in groups.items():
                if kind in kinds:
                    found[group].message(
                        one,
                        outcome=one.outcome,
                        arrived=one.arrived,
                        reach_s=one.latency_reach_s,
                        receive_s=one.latency_receive_s,
                    )
            for link in links_of(one) if Sum.LINK in kinds else ():
                found[Group(Sum.LINK, link.source, link.target)].message(
                    one,
                    outcome=None if link.arrived else one.outcome,
                    arrived=link.arrived,
                    reach_s=link.seconds,
                )
    return found


def hours_of(times: pa.Array | pa.ChunkedArray) -> list[int | None]:
    """Return the hours of times, in the zone that the column has, as microseconds."""
    hours: list[int | None] = pc.floor_temporal(times, unit="hour").cast(pa.int64()).to_pylist()
    return hours


def _times(seconds: Mapping[float, int]) -> Iterator[float | None]:
    """Yield a count and exact percentiles, between two values in proportion."""
    taken = sorted(seconds)
    ends = list(accumulate(seconds[one] for one in taken))
    count = ends[-1] if ends else 0
    yield count
    for percent in PERCENTILES:
        if not count:
            yield None
            continue
        place, rest = divmod((count - 1) * percent, 100)
        low, high = (
            taken[bisect_right(ends, min(number, count - 1))] for number in (place, place + 1)
        )
        yield low + (high - low) * rest / 100


def known_reason(reason: str | None) -> str:
    """Return a reason by its name, or `OTHER_REASON`: so there are few different ones."""
    return reason if reason in REASONS else OTHER_REASON


class Link(NamedTuple):
    """A link that a message took, or on which it ended."""

    source: str | None
    target: str | None
    left: int | None
    came: int | None
    arrived: bool

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        if self.left is None or self.came is None:
            return None
        return (self.came - self.left) / SECOND


def links_of(one: Delivery) -> list[Link]:
    """Return the links that a message took."""
    ends = [(step["queue_manager"], step["time"]) for step in one.path]
    found = [
        Link(source, target, left, came, True) for (source, left), (target, came) in pairwise(ends)
    ]
    (last, left), to = ends[-1], one.destination_queue_manager
    if None not in (last, to) and last != to:
        found.append(Link(last, to, left, None, False))
    return found
