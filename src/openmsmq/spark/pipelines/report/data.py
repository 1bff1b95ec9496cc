"""The numbers of the report: small values that Spark computes from the tables of `delivery`.

Everything that comes to the driver has a limit, so that a report of a billion messages is as short
as one of a thousand.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.spark.pipelines.delivery.outcomes import DELIVERED, UNDELIVERED, Outcome
from openmsmq.spark.pipelines.delivery.rollups import OTHER_REASON, REASONS, summary

QUEUES_MAX_COUNT: Final = 50
HOURS_MAX_COUNT: Final = 48
LINKS_MAX_COUNT: Final = 60
WORST_MAX_COUNT: Final = 25
"""Messages in each list of messages worth a look."""

STEPS_MAX_COUNT: Final = 96
"""Bars of the plot of throughput."""

TEXT_MAX_CHARACTERS: Final = 200
"""Characters of a label or name that are shown."""

STEPS_S: Final = (
    *(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200),
    *(3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400, 30 * 86_400),
    *(365 * 86_400, 2 * 365 * 86_400),
)
"""Widths of a bar of throughput, in seconds."""

EDGES_S: Final = (
    *(0, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600),
    *(3 * 3600, 12 * 3600, 86_400, 7 * 86_400),
)
"""Where the bars of the latency distribution begin; before the first one clocks disagree."""

_FAR: Final = 4
"""Times that are so many times farther apart than most are those of wrong clocks."""


class Totals(msgspec.Struct, frozen=True):
    """All messages together."""

    message_count: int = 0
    delivered_count: int = 0
    outcomes: dict[str, int] = {}
    in_doubt_count: int = 0
    size_bytes: int = 0
    loss: float = 0.0
    reach_s: tuple[float, ...] = ()
    """p50, p95 and p99 of the time to reach the queue; empty if it is not known."""
    receive_s: tuple[float, ...] = ()
    first_sent: datetime | None = None
    last_sent: datetime | None = None

    @property
    def undelivered_count(self) -> int:
        """Messages that nobody will receive any more."""
        return sum(self.outcomes.get(one.value, 0) for one in UNDELIVERED)


class Step(msgspec.Struct, frozen=True):
    """One bar of the throughput."""

    start: datetime
    delivered_count: int
    open_count: int
    undelivered_count: int


class Throughput(msgspec.Struct, frozen=True):
    """Messages over the time of their sending."""

    step_s: int = 1
    steps: tuple[Step, ...] = ()
    outside_count: int = 0
    """Messages whose time is so far from the others that it is not drawn."""


class Latencies(msgspec.Struct, frozen=True):
    """How many messages took how long: one count for each bar, the first for times below zero."""

    reach: tuple[int, ...] = ()
    receive: tuple[int, ...] = ()


class Failure(msgspec.Struct, frozen=True):
    """A reason for which messages failed, with how many copies were found and how many not."""

    reason: str
    dead_letter_count: int
    failed_count: int


class LinkLoad(msgspec.Struct, frozen=True):
    """What went over one link."""

    source: str
    target: str
    message_count: int
    arrived_count: int
    undelivered_count: int
    latency_s: tuple[float, ...]


class Group(msgspec.Struct, frozen=True):
    """A row of the tables of queues and hours."""

    name: str
    message_count: int
    delivered_count: int
    undelivered_count: int
    size_bytes: int
    reach_s: tuple[float, ...]
    receive_s: tuple[float, ...]
    reasons: dict[str, int]


class Example(msgspec.Struct, frozen=True):
    """One message that is worth a look."""

    message_id: str
    label: str
    outcome: str
    reason: str
    queue: str
    sent: datetime | None
    path: tuple[str, ...]
    reach_s: float | None
    receive_s: float | None


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the report shows."""

    totals: Totals = Totals()
    throughput: Throughput = Throughput()
    latencies: Latencies = Latencies()
    failures: tuple[Failure, ...] = ()
    links: tuple[LinkLoad, ...] = ()
    queues: tuple[Group, ...] = ()
    hours: tuple[Group, ...] = ()
    slowest: tuple[Example, ...] = ()
    undelivered: tuple[Example, ...] = ()
    queue_count: int = 0
    link_count: int = 0
    hour_count: int = 0


def collect(
    deliveries: DataFrame, by_queue: DataFrame, by_hour: DataFrame, by_link: DataFrame
) -> ReportData:
    """Compute the numbers from what the pipeline `delivery` gives."""
    totals = _totals(deliveries)
    if not totals.message_count:
        return ReportData()
    place = F.concat_ws("\\", "destination_queue_manager", "destination_queue")
    hour = F.date_format(F.to_utc_timestamp("hour", F.current_timezone()), "yyyy-MM-dd HH:00")
    busiest = by_queue.orderBy(F.desc("message_count"), place)
    links = by_link.orderBy(F.desc("message_count"), "source_queue_manager", "target_queue_manager")
    latest = by_hour.where(F.col("hour").isNotNull()).orderBy(F.desc("hour"))
    undelivered = F.col("outcome").isin(*(one.value for one in UNDELIVERED))
    slow = F.greatest("latency_receive_s", "latency_reach_s")
    return ReportData(
        totals=totals,
        throughput=_throughput(deliveries),
        latencies=_latencies(deliveries),
        failures=_failures(deliveries),
        links=tuple(_link(row) for row in links.limit(LINKS_MAX_COUNT).collect()),
        queues=_groups(busiest.limit(QUEUES_MAX_COUNT), place),
        hours=_groups(latest.limit(HOURS_MAX_COUNT), hour)[::-1],
        slowest=_examples(deliveries.where(slow.isNotNull()), F.desc(slow)),
        undelivered=_examples(deliveries.where(undelivered), F.desc("sent_time")),
        queue_count=by_queue.count(),
        link_count=by_link.count(),
        hour_count=latest.count(),
    )


def _totals(deliveries: DataFrame) -> Totals:
    row = summary(deliveries).first()
    if row is None or not row["message_count"]:
        return Totals()
    return Totals(
        message_count=row["message_count"],
        delivered_count=row["delivered_count"],
        outcomes={one.value: row[f"{one.value}_count"] for one in Outcome},
        in_doubt_count=row["in_doubt_count"],
        size_bytes=row["size_bytes"] or 0,
        loss=row["loss"],
        reach_s=_percentiles(row, "latency_reach"),
        receive_s=_percentiles(row, "latency_receive"),
        first_sent=_utc(row["first_sent_time"]),
        last_sent=_utc(row["last_sent_time"]),
    )


def _percentiles(row: Any, name: str) -> tuple[float, ...]:
    found = [row[f"{name}_p{percent}_s"] for percent in (50, 95, 99)]
    return () if None in found else tuple(found)


def _utc(time: datetime | None) -> datetime | None:
    # Spark gives times without a zone, in the time of this computer.
    return None if time is None else time.astimezone(UTC)


# Plots.


def _throughput(deliveries: DataFrame) -> Throughput:
    sent_s = F.unix_seconds("sent_time")
    sent = deliveries.where(F.col("sent_time").isNotNull())
    bounds = sent.agg(
        F.min(sent_s), F.max(sent_s), F.percentile_approx(sent_s, [0.005, 0.995], 1000)
    ).first()
    if bounds is None or bounds[0] is None:
        return Throughput()
    start_s, end_s = time_range(bounds[0], bounds[1], *bounds[2])
    step_s = step_for(end_s - start_s)
    start_s -= start_s % step_s
    number = F.floor((sent_s - start_s) / step_s)
    inside = sent_s.between(start_s, end_s)
    counted = (
        sent.groupBy(F.when(inside, number).alias("number"))
        .agg(
            F.count_if(_among(DELIVERED)).alias("delivered"),
            F.count_if(_among(UNDELIVERED)).alias("undelivered"),
            F.count("*").alias("all"),
        )
        .collect()
    )
    steps = sorted((row for row in counted if row["number"] is not None), key=lambda r: r["number"])
    return Throughput(
        step_s,
        tuple(
            Step(
                datetime.fromtimestamp(start_s, UTC) + timedelta(seconds=step_s * row["number"]),
                row["delivered"],
                row["all"] - row["delivered"] - row["undelivered"],
                row["undelivered"],
            )
            for row in steps
        ),
        sum(row["all"] for row in counted if row["number"] is None),
    )


def time_range(first_s: int, last_s: int, low_s: int, high_s: int) -> tuple[int, int]:
    """Choose the time to draw: all of it, unless a few messages with wrong clocks stretch it."""
    if last_s - first_s > _FAR * (high_s - low_s + 3600):
        return low_s, high_s
    return first_s, last_s


def step_for(span_s: int) -> int:
    """Choose the width of the bars, so that there are not too many."""
    fitting = (step for step in STEPS_S if span_s / step < STEPS_MAX_COUNT - 1)
    # Times are 32 bits on the wire: the widest step always fits.
    return next(fitting, STEPS_S[-1])


def _latencies(deliveries: DataFrame) -> Latencies:
    edges = F.array(*(F.lit(float(edge)) for edge in EDGES_S))
    names = ("latency_reach_s", "latency_receive_s")

    def bar(name: str) -> Column:
        number = F.size(F.filter(edges, lambda edge: edge <= F.col(name)))
        return F.struct(
            F.lit(name).alias("name"), F.when(F.col(name).isNotNull(), number).alias("bar")
        )

    rows = (
        deliveries.select(F.explode(F.array(*map(bar, names))).alias("found"))
        .where(F.col("found.bar").isNotNull())
        .groupBy("found.name", "found.bar")
        .count()
        .collect()
    )
    counts = {(row["name"], row["bar"]): row["count"] for row in rows}
    bars = range(len(EDGES_S) + 1)
    series = [tuple(counts.get((name, number), 0) for number in bars) for name in names]
    return Latencies(*(each if any(each) else () for each in series))


def _failures(deliveries: DataFrame) -> tuple[Failure, ...]:
    dead, failed = Outcome.DEAD_LETTER.value, Outcome.FAILED.value
    reason = F.when(F.col("reason").isin(*REASONS), F.col("reason")).otherwise(OTHER_REASON)
    rows = (
        deliveries.where(F.col("outcome").isin(dead, failed))
        .groupBy(reason.alias("reason"))
        .agg(
            F.count_if(F.col("outcome") == dead).alias("dead"),
            F.count_if(F.col("outcome") == failed).alias("failed"),
        )
        .collect()
    )
    found = [Failure(row["reason"], row["dead"], row["failed"]) for row in rows]
    found.sort(key=lambda each: (-each.dead_letter_count - each.failed_count, each.reason))
    return tuple(found)


# Tables.


def _link(row: Any) -> LinkLoad:
    return LinkLoad(
        row["source_queue_manager"] or "",
        row["target_queue_manager"] or "",
        row["message_count"],
        row["arrived_count"],
        row["undelivered_count"],
        _percentiles(row, "latency"),
    )


def _groups(rows: DataFrame, name: Column) -> tuple[Group, ...]:
    return tuple(
        Group(
            row["name"] or "",
            row["message_count"],
            row["delivered_count"],
            sum(row[f"{one.value}_count"] for one in UNDELIVERED),
            row["size_bytes"] or 0,
            _percentiles(row, "latency_reach"),
            _percentiles(row, "latency_receive"),
            dict(row["dead_letter_reasons"] or {}),
        )
        for row in rows.withColumn("name", name).collect()
    )


def _examples(deliveries: DataFrame, order: Column) -> tuple[Example, ...]:
    rows = (
        deliveries.orderBy(order, "message_id")
        .limit(WORST_MAX_COUNT)
        .select(
            "message_id",
            _short("label"),
            "outcome",
            "reason",
            F.concat_ws("\\", "destination_queue_manager", "destination_queue").alias("queue"),
            "sent_time",
            F.slice("path.queue_manager", 1, 12).alias("path"),
            "latency_reach_s",
            "latency_receive_s",
        )
    )
    return tuple(
        Example(
            row["message_id"],
            row["label"] or "",
            row["outcome"],
            row["reason"] or "",
            row["queue"],
            _utc(row["sent_time"]),
            tuple(name or "?" for name in row["path"]),
            row["latency_reach_s"],
            row["latency_receive_s"],
        )
        for row in rows.collect()
    )


def _short(name: str) -> Column:
    return F.substring(name, 1, TEXT_MAX_CHARACTERS).alias(name)


def _among(outcomes: tuple[Outcome, ...]) -> Column:
    return F.col("outcome").isin(*(one.value for one in outcomes))
