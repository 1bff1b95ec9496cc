"""The numbers of the report from the rows of `delivery`, in three passes of Spark.

The first sums up, and tells which time and which links are worth drawing; the second counts what
is drawn; the third takes messages that are worth a look. Each gives a bounded number of rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from openmsmq.spark.pipelines.delivery.facts import SECOND, first, known
from openmsmq.spark.pipelines.delivery.outcomes import (
    DELIVERED,
    UNDELIVERED,
    Delivery,
    Outcome,
    asked_to_be_told,
)
from openmsmq.spark.pipelines.delivery.rollups import (
    PERCENTILES,
    Sum,
    hours_of,
    known_reason,
    links_of,
    sums,
)
from openmsmq.spark.pipelines.few import is_here, table_of
from openmsmq.spark.pipelines.plain_rows import batches_of, tuples_of
from openmsmq.spark.pipelines.report.data import (
    EDGES_S,
    EXAMPLES_MAX_COUNT,
    HOPS_MAX_COUNT,
    HOURS_MAX_COUNT,
    LANES_MAX_COUNT,
    LEDGER_MAX_COUNT,
    LINKS_MAX_COUNT,
    QUEUES_MAX_COUNT,
    SLOWEST_MAX_COUNT,
    TEXT_MAX_CHARACTERS,
    Axis,
    Before,
    Counts,
    Course,
    Event,
    Example,
    Fate,
    Group,
    Hop,
    Lane,
    Latencies,
    LedgerRow,
    LinkLoad,
    ReportData,
    Times,
    step_for,
    time_range,
)
from openmsmq.spark.pipelines.report.gaps import find_gaps

COUNTED_MAX_COUNT: Final = 40_000
"""Rows of the second pass: the fullest, and what is drawn before what is listed."""

_LIMITS: Final = {
    Sum.ALL: 1,
    Sum.QUEUE: QUEUES_MAX_COUNT,
    Sum.HOUR: HOURS_MAX_COUNT,
    Sum.LINK: LINKS_MAX_COUNT,
}
_FAILED: Final = (Outcome.DEAD_LETTER, Outcome.FAILED)
_FINE: Final = (*DELIVERED, Outcome.IN_TRANSIT)
_SLOW: Final = "slow"
_OUTSIDE: Final = 0.005
"""The share of messages at either end of time that may be far from all others."""


def collect(
    deliveries: DataFrame, *, events: Sequence[Event] = (), before: tuple[str, DataFrame] | None
) -> ReportData:
    """Compute the numbers from what the pipeline `delivery` gives."""
    if not is_here(deliveries):
        deliveries = deliveries.select(*Delivery._fields)
    summed = _Summed(deliveries)
    if not summed.of(Sum.ALL):
        return ReportData()
    (total,) = summed.of(Sum.ALL)
    loads = tuple(map(_load, summed.of(Sum.LINK)))
    axis = _axis(total, summed)
    lanes = frozenset((one.source, one.target) for one in loads[:LANES_MAX_COUNT])
    counted = _counted(deliveries, _Counter(axis, lanes))
    slowest, examples = _examples(deliveries)
    return ReportData(
        totals=_counts(total),
        in_doubt_count=total["in_doubt_count"],
        first_sent=_utc(total["first_sent_time"]),
        last_sent=_utc(total["last_sent_time"]),
        course=None if axis is None else _course(axis, counted, loads),
        events=tuple(
            event for event in events if axis is not None and axis.start <= event.time <= axis.end
        ),
        latencies=_latencies(counted),
        fates=_fates(counted),
        links=loads,
        queues=tuple(Group(_place(row), _counts(row)) for row in summed.of(Sum.QUEUE)),
        hours=tuple(
            Group(f"{_utc(row['hour']):%Y-%m-%d %H:00}", _counts(row))
            for row in reversed(summed.of(Sum.HOUR))
        ),
        ledger=_ledger(counted),
        slowest=slowest,
        examples=examples,
        before=None if before is None else _before(*before),
        queue_count=summed.counts[Sum.QUEUE],
        link_count=summed.counts[Sum.LINK],
        hour_count=summed.counts[Sum.HOUR],
    )


# The first pass.


class _Summed:
    """The sums: all, the busiest queues and links, the latest hours, and how many there are."""

    def __init__(self, deliveries: DataFrame, kinds: Sequence[Sum] = tuple(Sum)) -> None:
        self.counts: Counter[str] = Counter()
        self.hours: Counter[int] = Counter()
        """How many messages were sent in each hour."""
        self.rows: dict[str, list[Any]] = {kind: [] for kind in kinds}
        for row in _rows_of(sums(deliveries, kinds)):
            kind, rank = row["kind"], row["message_count"]
            if kind == Sum.HOUR:
                # Times that are not known are no hour.
                if row["hour"] is None:
                    continue
                rank = row["hour"]
                self.hours[rank] += row["message_count"]
            self.counts[kind] += 1
            # The fullest and latest first, then by name.
            place = (-rank, *((name is not None, name) for name in (row["first"], row["second"])))
            insort(self.rows[kind], (place, row), key=itemgetter(0))
            del self.rows[kind][_LIMITS[Sum(kind)] :]

    def of(self, kind: Sum) -> list[Any]:
        """Return the rows that are shown of a kind."""
        return [row for _, row in self.rows[kind]]

    def most_sent(self) -> tuple[int, int]:
        """Return between which hours nearly all messages were sent, in seconds."""
        hours = sorted(self.hours)
        ends = list(accumulate(self.hours[hour] for hour in hours))
        outside = ends[-1] * _OUTSIDE
        low, high = (hours[bisect_left(ends, share)] for share in (outside, ends[-1] - outside))
        return low // SECOND, high // SECOND + 3600


def _rows_of(found: DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows, and not all at once if there are many; times are in microseconds."""
    if is_here(found):
        table = table_of(found)
        names = table.column_names
        yield from tuples_of(table, lambda values: dict(zip(names, values, strict=True)))
        return
    for row in found.toLocalIterator():
        yield {
            # Spark gives times without a zone, in the time of this computer.
            name: round(value.timestamp() * SECOND) if isinstance(value, datetime) else value
            for name, value in row.asDict().items()
        }


def _before(name: str, deliveries: DataFrame) -> Before | None:
    summed = _Summed(deliveries, (Sum.ALL, Sum.QUEUE, Sum.LINK))
    if not summed.of(Sum.ALL):
        return None
    loads = map(_load, summed.of(Sum.LINK))
    return Before(
        name,
        _counts(summed.of(Sum.ALL)[0]),
        {_place(row): _counts(row) for row in summed.of(Sum.QUEUE)},
        {(load.source, load.target): load for load in loads},
        all(len(summed.of(kind)) == summed.counts[kind] for kind in (Sum.QUEUE, Sum.LINK)),
    )


def _counts(row: Any) -> Counts:
    return Counts(
        row["message_count"],
        row["delivered_count"],
        {one.value: row[f"{one.value}_count"] for one in Outcome},
        row["arrived_count"],
        row["failed_after_arrival_count"],
        row["untraced_count"],
        row["size_bytes"] or 0,
        _times(row, "latency_reach"),
        _times(row, "latency_receive"),
    )


def _load(row: Any) -> LinkLoad:
    return LinkLoad(
        row["first"] or "",
        row["second"] or "",
        row["message_count"],
        row["arrived_count"],
        row["undelivered_count"],
        row["open_count"],
        _times(row, "latency_reach"),
    )


def _times(row: Any, name: str) -> Times:
    count = row[f"{name}_count"]
    found = tuple(row[f"{name}_p{percent}_s"] for percent in PERCENTILES)
    return Times(count, found) if count else Times()


def _place(row: Any) -> str:
    return "\\".join(part for part in (row["first"], row["second"]) if part is not None)


def _axis(total: Any, summed: _Summed) -> Axis | None:
    """Choose the time to draw: that of sending, and until most messages had arrived."""
    if total["first_sent_time"] is None:
        return None
    first_s, last_s = (total[f"{end}_sent_time"] // SECOND for end in ("first", "last"))
    start_s, end_s = time_range(first_s, last_s, *summed.most_sent())
    took_s = (total[f"latency_{what}_p{PERCENTILES[-1]}_s"] for what in ("reach", "receive"))
    end_s += int(max(took or 0 for took in took_s))
    step_s = step_for(end_s - start_s)
    start_s -= start_s % step_s
    return Axis(datetime.fromtimestamp(start_s, UTC), step_s, (end_s - start_s) // step_s + 1)


def _utc(time: int | None) -> datetime | None:
    return None if time is None else datetime.fromtimestamp(time / SECOND, UTC)


# The second pass: counts by a kind, some names, an hour and two numbers.


class _Key(NamedTuple):
    kind: str
    names: tuple[str, ...] = ()
    hour: int | None = None
    x: int | None = None
    y: int | None = None


_Counted = Mapping[str, Mapping[_Key, int]]
_COUNTS: Final = pa.schema([("is_listed", pa.bool_()), ("key", pa.binary()), ("count", pa.int64())])


class _Counter(NamedTuple):
    """Counts what is drawn and listed: in tasks, or here."""

    axis: Axis | None
    lanes: frozenset[tuple[str, str]]

    def counted(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> Counter[_Key]:
        counts: Counter[_Key] = Counter()
        for batch in batches:
            hours = hours_of(batch.column("sent_time"))
            for one, hour in zip(tuples_of(batch, Delivery._make), hours, strict=True):
                counts.update(self._keys(one, hour))
        return counts

    def task(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        counts = self.counted(batches).items()
        encode = msgspec.msgpack.encode
        rows = ((_is_listed(key), encode(key), count) for key, count in counts)
        return batches_of(rows, _COUNTS)

    def _keys(self, one: Delivery, hour: int | None) -> Iterator[_Key]:
        for name, seconds in (("reach", one.latency_reach_s), ("receive", one.latency_receive_s)):
            if seconds is not None:
                yield _Key("latency", (name,), x=bisect_right(EDGES_S, seconds))
        reason, asked = _reason(one), str(asked_to_be_told(one.acknowledge))
        yield _Key("fate", (one.outcome, reason))
        path = (_short(step["queue_manager"]) for step in one.path[:HOPS_MAX_COUNT])
        yield _Key("ledger", (_short(_queue(one)), one.outcome, reason, asked, *path), hour)
        if self.axis is not None:
            yield _Key("sent", (_sent_as(one),), x=self._step(one.sent_time))
            if one.arrived:
                arrived = first(one.reached_time, one.received_time)
                yield _Key("arrived", x=self._step(arrived))
            yield from self._crossings(one)

    def _crossings(self, one: Delivery) -> Iterator[_Key]:
        for link in links_of(one):
            ends = (link.source or "", link.target or "")
            if link.arrived and ends in self.lanes:
                # Who was not told of the arrival may know of the receiving.
                is_last = link.target == one.destination_queue_manager
                came = self._step(first(link.came, one.received_time if is_last else None))
                left = self._step(link.left)
                if came is not None:
                    # Where it came at once, it does not matter when it left.
                    start = came if left is None or came - left <= 1 else left
                    yield _Key("crossing", ends, x=start, y=came)

    def _step(self, time: int | None) -> int | None:
        """Return the number of a time's step; None if it is not drawn, or not known."""
        if time is None or self.axis is None:
            return None
        start_s = int(self.axis.start.timestamp())
        number = (time // SECOND - start_s) // self.axis.step_s
        return number if 0 <= number < self.axis.step_count else None


def _counted(deliveries: DataFrame, counter: _Counter) -> _Counted:
    if is_here(deliveries):
        rows: Iterable[tuple[_Key, int]] = counter.counted([table_of(deliveries)]).items()
    else:
        found = (
            deliveries.mapInArrow(counter.task, from_arrow_schema(_COUNTS))
            .groupBy("is_listed", "key")
            .agg(F.sum("count").alias("count"))
            .orderBy("is_listed", F.desc("count"), "key")
            .limit(COUNTED_MAX_COUNT)
        )
        read = msgspec.msgpack.Decoder(_Key).decode
        rows = [(read(row["key"]), row["count"]) for row in found.collect()]
    counted: dict[str, dict[_Key, int]] = defaultdict(dict)
    for key, count in sorted(rows, key=_fullest_first)[:COUNTED_MAX_COUNT]:
        counted[key.kind][key] = count
    return counted


def _is_listed(key: _Key) -> bool:
    return key.kind == "ledger"


def _fullest_first(row: tuple[_Key, int]) -> tuple[Any, ...]:
    key, count = row
    numbers = (-1 if number is None else number for number in key[2:])
    return _is_listed(key), -count, key.kind, key.names, *numbers


def _sent_as(one: Delivery) -> str:
    if one.sent_time is None:
        return "untimed"
    if one.outcome in DELIVERED:
        return "delivered"
    return "undelivered" if one.outcome in UNDELIVERED else "open"


def _reason(one: Delivery) -> str:
    return known_reason(one.reason) if one.outcome in _FAILED else ""


def _queue(one: Delivery) -> str:
    names = (one.destination_queue_manager, one.destination_queue)
    return "\\".join(name for name in names if name is not None)


def _short(text: str | None) -> str:
    return (text or "")[:TEXT_MAX_CHARACTERS]


def _course(axis: Axis, counted: _Counted, loads: Sequence[LinkLoad]) -> Course:
    sent: dict[str, list[int]] = {
        name: [0] * axis.step_count for name in ("delivered", "open", "undelivered")
    }
    outside = untimed = 0
    for key, count in counted.get("sent", {}).items():
        if key.names[0] == "untimed":
            untimed += count
        elif key.x is None:
            outside += count
        else:
            sent[key.names[0]][key.x] += count
    arrived = [0] * axis.step_count
    for key, count in counted.get("arrived", {}).items():
        if key.x is not None:
            arrived[key.x] += count
    crossings: dict[tuple[str, str], dict[tuple[int, int], int]] = defaultdict(dict)
    for key, count in counted.get("crossing", {}).items():
        if key.x is not None and key.y is not None:
            crossings[key.names[0], key.names[1]][key.x, key.y] = count
    drawn = [(one.source, one.target) for one in loads if (one.source, one.target) in crossings]
    return Course(
        axis,
        tuple(sent["delivered"]),
        tuple(sent["open"]),
        tuple(sent["undelivered"]),
        tuple(arrived),
        tuple(_lane(axis, link, crossings[link]) for link in drawn),
        find_gaps(axis, crossings),
        outside,
        untimed,
    )


def _lane(axis: Axis, link: tuple[str, str], crossings: Mapping[tuple[int, int], int]) -> Lane:
    counts = [0] * axis.step_count
    for (_, came), count in crossings.items():
        counts[came] += count
    return Lane(*link, tuple(counts))


def _latencies(counted: _Counted) -> Latencies:
    series = {name: [0] * (len(EDGES_S) + 1) for name in ("reach", "receive")}
    for key, count in counted.get("latency", {}).items():
        series[key.names[0]][key.x or 0] += count
    return Latencies(*(tuple(each) if any(each) else () for each in series.values()))


def _fates(counted: _Counted) -> tuple[Fate, ...]:
    found = [
        Fate(outcome, reason, count)
        for key, count in counted.get("fate", {}).items()
        for outcome, reason in [key.names]
    ]
    return tuple(sorted(found, key=lambda one: (-one.message_count, one.outcome, one.reason)))


def _ledger(counted: _Counted) -> tuple[LedgerRow, ...]:
    rows = [
        LedgerRow(_utc(key.hour), queue, tuple(path), outcome, reason, asked == "True", count)
        for key, count in counted.get("ledger", {}).items()
        for queue, outcome, reason, asked, *path in [key.names]
    ]
    return tuple(rows[:LEDGER_MAX_COUNT])


# The third pass.

_SHOWN: Final = pa.schema([("name", pa.string()), ("one", pa.binary())])
_Ranked = dict[str, list[tuple[tuple[float, str], Delivery]]]


def _examples(deliveries: DataFrame) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return the slowest messages, and some of each fate that somebody should look at."""
    if is_here(deliveries):
        found = _ranked(tuples_of(table_of(deliveries), Delivery._make))
    else:
        rows = deliveries.mapInArrow(_rank, from_arrow_schema(_SHOWN)).collect()
        read = msgspec.msgpack.Decoder(Delivery).decode
        # A message may stand under several names; it is ranked under all of them again.
        found = _ranked({row["one"]: read(row["one"]) for row in rows}.values())
    shown = {name: [_example(one) for _, one in reversed(ones)] for name, ones in found.items()}
    slowest = shown.pop(_SLOW, [])[:SLOWEST_MAX_COUNT]
    return tuple(slowest), tuple(
        one for name in sorted(shown) for one in shown[name][:EXAMPLES_MAX_COUNT]
    )


def _rank(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = _ranked(one for batch in batches for one in tuples_of(batch, Delivery._make))
    rows = ((name, msgspec.msgpack.encode(one)) for name, ones in found.items() for _, one in ones)
    return batches_of(rows, _SHOWN)


def _ranked(deliveries: Iterable[Delivery]) -> _Ranked:
    """Choose by name those that are worth a look, the slowest and the latest last."""
    found: _Ranked = defaultdict(list)
    for one in deliveries:
        for name, rank in _looks(one):
            ones = found[name]
            insort(ones, ((rank, one.message_id), one), key=itemgetter(0))
            del ones[:-SLOWEST_MAX_COUNT]
    return found


def _looks(one: Delivery) -> Iterator[tuple[str, float]]:
    slow_s = known(max, (one.latency_receive_s, one.latency_reach_s))
    if slow_s is not None:
        yield _SLOW, slow_s
    if one.in_doubt or one.outcome not in _FINE:
        fate = "in doubt" if one.in_doubt else f"{one.outcome} {_reason(one)}"
        yield fate, (one.sent_time or 0) // SECOND


def _example(one: Delivery) -> Example:
    return Example(
        one.message_id,
        _short(one.label),
        one.outcome,
        _reason(one),
        _short(_queue(one)),
        _short(one.destination),
        _utc(one.sent_time),
        tuple(
            Hop(_short(step["queue_manager"]) or "?", _utc(step["time"]))
            for step in one.path[:HOPS_MAX_COUNT]
        ),
        asked_to_be_told(one.acknowledge),
        one.in_doubt,
        one.latency_reach_s,
        one.latency_receive_s,
    )
