"""The numbers of the report from the rows of `delivery`, in three passes of Spark.

The first sums up, and tells which time and which links are worth drawing; the second counts what
is drawn; the third takes messages that are worth a look. Each gives a bounded number of rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from openmsmq.spark.pipelines.delivery.outcomes import (
    DELIVERED,
    UNDELIVERED,
    Outcome,
    asked_to_be_told,
)
from openmsmq.spark.pipelines.delivery.rollups import PERCENTILES, Sum, known_reason, links, sums
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
_FAILED: Final = (Outcome.DEAD_LETTER.value, Outcome.FAILED.value)
_SLOW: Final = "slow"
_BETWEEN: Final = "\x1f"
"""Between two names that make one; no computer's name has it."""


def collect(
    deliveries: DataFrame, *, events: Sequence[Event] = (), before: tuple[str, DataFrame] | None
) -> ReportData:
    """Compute the numbers from what the pipeline `delivery` gives."""
    summed = _Summed(deliveries)
    if not summed.rows[Sum.ALL]:
        return ReportData()
    (total,) = summed.rows[Sum.ALL]
    loads = tuple(map(_load, summed.rows[Sum.LINK]))
    axis = _axis(total)
    counted = _counted(deliveries, axis, loads[:LANES_MAX_COUNT])
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
        queues=tuple(Group(_place(row), _counts(row)) for row in summed.rows[Sum.QUEUE]),
        hours=tuple(
            Group(f"{_utc(row['hour']):%Y-%m-%d %H:00}", _counts(row))
            for row in sorted(summed.rows[Sum.HOUR], key=lambda row: row["hour"])
        ),
        ledger=_ledger(counted),
        slowest=slowest,
        examples=examples,
        before=None if before is None else _before(*before),
        queue_count=summed.count(Sum.QUEUE),
        link_count=summed.count(Sum.LINK),
        hour_count=summed.count(Sum.HOUR),
    )


# The first pass.


class _Summed:
    """The sums: all, the busiest queues and links, the latest hours, and how many there are."""

    def __init__(self, deliveries: DataFrame, kinds: Sequence[Sum] = tuple(Sum)) -> None:
        sent_s = F.unix_seconds("sent_time")
        ends = F.percentile_approx(sent_s, F.lit([0.005, 0.995]), F.lit(1000)).alias("ends_s")
        rank = F.when(F.col("kind") == Sum.HOUR.value, F.unix_seconds("hour")).otherwise(
            F.col("message_count")
        )
        order = Window.partitionBy("kind").orderBy(F.desc(rank), "first", "second")
        # Times that are not known are no hour.
        found = sums(deliveries, kinds, [ends]).where(
            (F.col("kind") != Sum.HOUR.value) | F.col("hour").isNotNull()
        )
        numbered = found.withColumns(
            {
                "place": F.row_number().over(order),
                "kind_count": F.count("*").over(Window.partitionBy("kind")),
            }
        )
        limits = F.create_map(
            *(F.lit(value) for pair in _LIMITS.items() for value in (pair[0].value, pair[1]))
        )
        self.rows: dict[Sum, list[Any]] = defaultdict(list)
        for row in numbered.where(F.col("place") <= limits[F.col("kind")]).collect():
            self.rows[Sum(row["kind"])].append(row)
        for rows in self.rows.values():
            rows.sort(key=lambda row: row["place"])

    def count(self, kind: Sum) -> int:
        """How many of a kind there are, shown or not."""
        return self.rows[kind][0]["kind_count"] if self.rows[kind] else 0


def _before(name: str, deliveries: DataFrame) -> Before | None:
    summed = _Summed(deliveries, (Sum.ALL, Sum.QUEUE, Sum.LINK))
    if not summed.rows[Sum.ALL]:
        return None
    loads = map(_load, summed.rows[Sum.LINK])
    return Before(
        name,
        _counts(summed.rows[Sum.ALL][0]),
        {_place(row): _counts(row) for row in summed.rows[Sum.QUEUE]},
        {(load.source, load.target): load for load in loads},
        all(len(summed.rows[kind]) == summed.count(kind) for kind in (Sum.QUEUE, Sum.LINK)),
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


def _axis(total: Any) -> Axis | None:
    """Choose the time to draw: that of sending, and until most messages had arrived."""
    first, last = _utc(total["first_sent_time"]), _utc(total["last_sent_time"])
    if first is None or last is None:
        return None
    bounds = time_range(int(first.timestamp()), int(last.timestamp()), *total["ends_s"])
    took_s = [total[f"latency_{what}_p{PERCENTILES[-1]}_s"] for what in ("reach", "receive")]
    start_s, end_s = bounds[0], bounds[1] + int(max((took or 0 for took in took_s), default=0))
    step_s = step_for(end_s - start_s)
    start_s -= start_s % step_s
    return Axis(datetime.fromtimestamp(start_s, UTC), step_s, (end_s - start_s) // step_s + 1)


def _utc(time: datetime | None) -> datetime | None:
    # Spark gives times without a zone, in the time of this computer.
    return None if time is None else time.astimezone(UTC)


# The second pass: counts by a kind, some names, an hour and two numbers.


class _Key(NamedTuple):
    names: tuple[str, ...]
    hour: datetime | None
    x: int | None
    y: int | None


_Counted = Mapping[str, Mapping[_Key, int]]


def _counted(deliveries: DataFrame, axis: Axis | None, lanes: Sequence[LinkLoad]) -> _Counted:
    keys = [*_latency_keys(), _fate_key(), _ledger_key()]
    if axis is not None:
        arrived = F.coalesce("reached_time", "received_time")
        keys += [
            _key("sent", [_group()], x=_step(axis, F.col("sent_time"))),
            F.when(F.col("arrived"), _key("arrived", [], x=_step(axis, arrived))),
        ]
    found = F.array_compact(F.array(*keys))
    if axis is not None and lanes:
        found = F.concat(found, _crossing_keys(axis, lanes))
    rows = (
        deliveries.select(F.explode(found).alias("key"))
        .groupBy("key")
        .count()
        .orderBy(F.col("key.kind") == "ledger", F.desc("count"), "key")
        .limit(COUNTED_MAX_COUNT)
        .collect()
    )
    counted: dict[str, dict[_Key, int]] = defaultdict(dict)
    for row in rows:
        key = row["key"]
        names = tuple(name or "" for name in key["names"])
        counted[key["kind"]][_Key(names, _utc(key["hour"]), key["x"], key["y"])] = row["count"]
    return counted


def _key(
    kind: str,
    names: Sequence[Column] | Column,
    *,
    hour: Column | None = None,
    x: Column | None = None,
    y: Column | None = None,
) -> Column:
    texts = names if isinstance(names, Column) else F.array(*names)
    return F.struct(
        F.lit(kind).alias("kind"),
        texts.cast("array<string>").alias("names"),
        (F.lit(None) if hour is None else hour).cast("timestamp").alias("hour"),
        (F.lit(None) if x is None else x).cast("int").alias("x"),
        (F.lit(None) if y is None else y).cast("int").alias("y"),
    )


def _step(axis: Axis, time: Column) -> Column:
    """The number of a time's step; null if it is not drawn, or not known."""
    start_s = int(axis.start.timestamp())
    number = F.floor((F.unix_seconds(time) - start_s) / axis.step_s)
    return F.when(number.between(0, axis.step_count - 1), number)


def _group() -> Column:
    good, bad = ([one.value for one in group] for group in (DELIVERED, UNDELIVERED))
    outcome = F.col("outcome")
    return (
        F.when(F.col("sent_time").isNull(), "untimed")
        .when(outcome.isin(*good), "delivered")
        .when(outcome.isin(*bad), "undelivered")
        .otherwise("open")
    )


def _latency_keys() -> list[Column]:
    edges = F.array(*(F.lit(float(edge)) for edge in EDGES_S))

    def key(name: str) -> Column:
        seconds = F.col(f"latency_{name}_s")
        bar = F.size(F.filter(edges, lambda edge: edge <= seconds))
        return F.when(seconds.isNotNull(), _key("latency", [F.lit(name)], x=bar))

    return [key("reach"), key("receive")]


def _reason() -> Column:
    failed = F.col("outcome").isin(*_FAILED)
    return F.when(failed, known_reason(F.col("reason"))).otherwise("")


def _fate_key() -> Column:
    return _key("fate", [F.col("outcome"), _reason()])


def _ledger_key() -> Column:
    queue = F.concat_ws("\\", "destination_queue_manager", "destination_queue")
    asked = asked_to_be_told(F.col("acknowledge")).cast("string")
    names = F.array(_short(queue), F.col("outcome"), _reason(), asked)
    path = F.transform(F.slice("path.queue_manager", 1, HOPS_MAX_COUNT), _short)
    return _key("ledger", F.concat(names, path), hour=F.date_trunc("hour", "sent_time"))


def _crossing_keys(axis: Axis, lanes: Sequence[LinkLoad]) -> Column:
    drawn = F.array(*(F.lit(f"{one.source}{_BETWEEN}{one.target}") for one in lanes))
    destination = F.col("destination_queue_manager")

    def crossing(link: Column) -> Column:
        # Who was not told of the arrival may know of the receiving.
        last = F.when(link["target"] == destination, F.col("received_time"))
        came = F.when(link["arrived"], F.coalesce(link["came"], last))
        return F.struct(
            link["source"].alias("source"),
            link["target"].alias("target"),
            _step(axis, link["left"]).alias("left"),
            _step(axis, came).alias("came"),
        )

    def key(crossed: Column) -> Column:
        left, came = crossed["left"], crossed["came"]
        ends = F.concat_ws(_BETWEEN, crossed["source"], crossed["target"])
        # Where it came at once, it does not matter when it left.
        start = F.when(came - left <= 1, came).otherwise(F.coalesce(left, came))
        found = _key("crossing", [crossed["source"], crossed["target"]], x=start, y=came)
        return F.when(came.isNotNull() & F.array_contains(drawn, ends), found)

    return F.array_compact(F.transform(F.transform(links(), crossing), key))


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
        LedgerRow(key.hour, queue, tuple(path), outcome, reason, asked == "true", count)
        for key, count in counted.get("ledger", {}).items()
        for queue, outcome, reason, asked, *path in [key.names]
    ]
    return tuple(rows[:LEDGER_MAX_COUNT])


# The third pass.


def _examples(deliveries: DataFrame) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Return the slowest messages, and some of each fate that somebody should look at."""
    outcome, in_doubt = F.col("outcome"), F.col("in_doubt")
    slow_s = F.greatest("latency_receive_s", "latency_reach_s")
    fine = outcome.isin(*(one.value for one in (*DELIVERED, Outcome.IN_TRANSIT)))
    fate = F.when(in_doubt, "in doubt").when(~fine, F.concat_ws(" ", outcome, _reason()))
    kinds = F.array_compact(
        F.array(
            F.when(slow_s.isNotNull(), _ranked(F.lit(_SLOW), slow_s)),
            F.when(fate.isNotNull(), _ranked(fate, F.unix_seconds("sent_time").cast("double"))),
        )
    )
    order = F.struct("kind.rank", "message_id")
    limits = max(SLOWEST_MAX_COUNT, EXAMPLES_MAX_COUNT)
    rows = (
        deliveries.select(F.explode(kinds).alias("kind"), "message_id", _shown().alias("shown"))
        .groupBy("kind.name")
        .agg(F.max_by(F.col("shown"), order, limits).alias("shown"))
        .collect()
    )
    found = {row["name"]: row["shown"] for row in rows}
    slowest = tuple(map(_example, found.pop(_SLOW, [])[:SLOWEST_MAX_COUNT]))
    return slowest, tuple(
        _example(shown) for name in sorted(found) for shown in found[name][:EXAMPLES_MAX_COUNT]
    )


def _ranked(name: Column, rank: Column) -> Column:
    return F.struct(name.alias("name"), F.coalesce(rank, F.lit(0.0)).alias("rank"))


def _shown() -> Column:
    queue = F.concat_ws("\\", "destination_queue_manager", "destination_queue")
    path = F.transform(
        F.slice("path", 1, HOPS_MAX_COUNT),
        lambda hop: F.struct(_short(hop["queue_manager"]).alias("name"), hop["time"].alias("time")),
    )
    return F.struct(
        "message_id",
        _short(F.col("label")).alias("label"),
        "outcome",
        _reason().alias("reason"),
        _short(queue).alias("queue"),
        _short(F.col("destination")).alias("destination"),
        "sent_time",
        path.alias("path"),
        asked_to_be_told(F.col("acknowledge")).alias("asked"),
        "in_doubt",
        "latency_reach_s",
        "latency_receive_s",
    )


def _example(row: Any) -> Example:
    return Example(
        row["message_id"],
        row["label"] or "",
        row["outcome"],
        row["reason"],
        row["queue"],
        row["destination"] or "",
        _utc(row["sent_time"]),
        tuple(Hop(hop["name"] or "?", _utc(hop["time"])) for hop in row["path"]),
        row["asked"],
        row["in_doubt"],
        row["latency_reach_s"],
        row["latency_receive_s"],
    )


def _short(text: Column) -> Column:
    return F.substring(text, 1, TEXT_MAX_CHARACTERS)
