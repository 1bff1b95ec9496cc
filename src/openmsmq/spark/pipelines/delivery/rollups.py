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

Percentiles are exact (Spark's `percentile`): times have a resolution of one second, so there are
few different latencies, and an exact answer costs no more than an approximate one. Each stands
beside the number of messages that it rests on, those whose time is known.

`loss` is the share of undelivered messages. Messages that are still on their way count as not lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.spark.pipelines.delivery.outcomes import (
    DELIVERED,
    OPEN,
    UNDELIVERED,
    Outcome,
    asked_to_be_told,
)
from openmsmq.spark.pipelines.few import of_table, table_of

PERCENTILES: Final = (50, 95, 99)
REASONS: Final = tuple(member.name for member in MessageClass if is_negative(member))
OTHER_REASON: Final = "other"
"""Dead letters that do not say why, or with a number that has no name."""


class Sum(StrEnum):
    """What deliveries are summed up by."""

    ALL = "all"
    QUEUE = "queue"
    HOUR = "hour"
    LINK = "link"


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


def summary(deliveries: DataFrame) -> DataFrame:
    """Sum up everything in one row."""
    # Without a group there is a row even if there are no messages.
    return (
        _facts(deliveries, (Sum.ALL,))
        .agg(*_measures())
        .select(*(name for name, _ in _shown(Sum.ALL)))
    )


def sums(
    deliveries: DataFrame, kinds: Sequence[Sum] = tuple(Sum), more: Sequence[Column] = ()
) -> DataFrame:
    """Sum up by all of these at once, in one pass; `part` takes each out of it.

    `more` are further measures, of the column `sent_time`.
    """
    keys = ("kind", "first", "second", "hour")
    return _facts(deliveries, kinds).groupBy(*keys).agg(*_measures(), *more)


def part(summed: DataFrame, kind: Sum) -> DataFrame:
    """Take one table out of what `sums` gives."""
    columns = (F.col(column).alias(name) for column, name in _columns(kind))
    return summed.where(F.col("kind") == kind.value).select(*columns)


def few_of(summed: DataFrame, kind: Sum) -> DataFrame:
    """Take one table out of few rows that `sums` gives, without asking Spark."""
    table = table_of(summed)
    columns = _columns(kind)
    chosen = table.filter(pc.field("kind") == kind.value).select([one for one, _ in columns])
    fields = [StructField(name, summed.schema[column].dataType) for column, name in columns]
    return of_table(
        summed.sparkSession,
        chosen.rename_columns([name for _, name in columns]),
        StructType(fields),
    )


def _columns(kind: Sum) -> list[tuple[str, str]]:
    """Return which columns of all sums one table has, and what it calls them."""
    names = {
        Sum.QUEUE: ("destination_queue_manager", "destination_queue"),
        Sum.LINK: ("source_queue_manager", "target_queue_manager"),
    }
    keys = [("hour", "hour")] if kind is Sum.HOUR else []
    if kind in names:
        keys = list(zip(("first", "second"), names[kind], strict=True))
    return [*keys, *_shown(kind)]


_LATENCIES: Final = ("latency_reach", "latency_receive")
_TIMES: Final = ("count", *(f"p{percent}_s" for percent in PERCENTILES))
_GROUPED: Final = (
    "message_count",
    "delivered_count",
    *(f"{one.value}_count" for one in Outcome),
    *("arrived_count", "failed_after_arrival_count", "untraced_count"),
    "size_bytes",
    *(f"{name}_{time}" for name in _LATENCIES for time in _TIMES),
    *("loss", "dead_letter_reasons"),
)
_MORE: Final = ("in_doubt_count", "first_sent_time", "last_sent_time")
_ON_LINK: Final = ("message_count", "arrived_count", "undelivered_count", "open_count")


def _shown(kind: Sum) -> list[tuple[str, str]]:
    if kind is not Sum.LINK:
        names = (*_GROUPED, *_MORE) if kind is Sum.ALL else _GROUPED
        return [(name, name) for name in names]
    # What took a link has the time to reach its end, and nothing is received there.
    times = [(f"latency_reach_{time}", f"latency_{time}") for time in _TIMES]
    names = (*_ON_LINK, "size_bytes")
    return [
        *((name, name) for name in names),
        *times,
        *((name, name) for name in ("loss", "dead_letter_reasons")),
    ]


def _facts(deliveries: DataFrame, kinds: Sequence[Sum]) -> DataFrame:
    """Return a row for each message and each of what it is summed up by; several for its links."""
    whole = {
        Sum.ALL: _fact(Sum.ALL),
        Sum.QUEUE: _fact(
            Sum.QUEUE,
            first=F.col("destination_queue_manager"),
            second=F.col("destination_queue"),
        ),
        Sum.HOUR: _fact(Sum.HOUR, hour=F.date_trunc("hour", "sent_time")),
    }
    found = F.array(*(fact for kind, fact in whole.items() if kind in kinds))
    if Sum.LINK in kinds:
        on_links = F.transform(links(), _link_fact)
        found = on_links if len(kinds) == 1 else F.concat(found, on_links)
    return deliveries.select(
        "size_bytes", "dead_letter_reason", "sent_time", F.explode(found).alias("fact")
    ).select("size_bytes", "dead_letter_reason", "sent_time", "fact.*")


def _fact(
    kind: Sum,
    *,
    first: Column | None = None,
    second: Column | None = None,
    hour: Column | None = None,
) -> Column:
    open_and_unasked = _among(OPEN) & ~asked_to_be_told(F.col("acknowledge"))
    return _struct(
        kind,
        (first, second, hour),
        outcome=F.col("outcome"),
        arrived=F.col("arrived"),
        untraced=open_and_unasked,
        in_doubt=F.col("in_doubt"),
        reach_s=F.col("latency_reach_s"),
        receive_s=F.col("latency_receive_s"),
    )


def _link_fact(link: Column) -> Column:
    return _struct(
        Sum.LINK,
        (link["source"], link["target"], None),
        # What went over a link well ended elsewhere.
        outcome=F.when(~link["arrived"], F.col("outcome")),
        arrived=link["arrived"],
        untraced=F.lit(False),
        in_doubt=F.lit(False),
        reach_s=link["seconds"],
        receive_s=F.lit(None),
    )


def _struct(kind: Sum, keys: tuple[Column | None, ...], **values: Column) -> Column:
    types = {"first": "string", "second": "string", "hour": "timestamp"}
    named = zip(types.items(), keys, strict=True)
    return F.struct(
        F.lit(kind.value).alias("kind"),
        *(
            (F.lit(None) if key is None else key).cast(type_name).alias(name)
            for (name, type_name), key in named
        ),
        *(
            (value.cast("double") if name.endswith("_s") else value).alias(name)
            for name, value in values.items()
        ),
    )


def _measures() -> list[Column]:
    outcome, undelivered, arrived = F.col("outcome"), _among(UNDELIVERED), F.col("arrived")
    return [
        F.count("*").alias("message_count"),
        F.count_if(_among(DELIVERED)).alias("delivered_count"),
        *(F.count_if(outcome == one.value).alias(f"{one.value}_count") for one in Outcome),
        F.count_if(undelivered).alias("undelivered_count"),
        F.count_if(_among(OPEN)).alias("open_count"),
        F.count_if(arrived).alias("arrived_count"),
        F.count_if(arrived & undelivered).alias("failed_after_arrival_count"),
        F.count_if(F.col("untraced")).alias("untraced_count"),
        F.sum("size_bytes").alias("size_bytes"),
        *_times("latency_reach", F.col("reach_s")),
        *_times("latency_receive", F.col("receive_s")),
        F.try_divide(F.count_if(undelivered), F.count("*")).alias("loss"),
        _reasons(),
        F.count_if(F.col("in_doubt")).alias("in_doubt_count"),
        F.min("sent_time").alias("first_sent_time"),
        F.max("sent_time").alias("last_sent_time"),
    ]


def _times(name: str, seconds: Column) -> list[Column]:
    percentiles = [
        F.percentile(seconds, percent / 100).alias(f"{name}_p{percent}_s")
        for percent in PERCENTILES
    ]
    return [F.count(seconds).alias(f"{name}_count"), *percentiles]


def _reasons() -> Column:
    """How many dead letters have which reason: a map without zeros."""
    dead = F.col("outcome") == Outcome.DEAD_LETTER.value
    reason = known_reason(F.col("dead_letter_reason"))
    # The reasons are few and known, so that all of them are counted in one pass.
    counts = [
        F.struct(F.lit(name).alias("key"), F.count_if(dead & (reason == name)).alias("value"))
        for name in (*REASONS, OTHER_REASON)
    ]
    found = F.filter(F.array(*counts), lambda entry: entry["value"] > 0)
    return F.map_from_entries(found).alias("dead_letter_reasons")


def known_reason(reason: Column) -> Column:
    """Return a reason by its name, or `OTHER_REASON`: so there are few different ones."""
    return F.when(reason.isin(*REASONS), reason).otherwise(OTHER_REASON)


def links() -> Column:
    """Return the links a message took, from columns `path` and `destination_queue_manager`."""
    path, to = F.col("path"), F.col("destination_queue_manager")
    last = F.element_at(path, -1)["queue_manager"]
    walked = F.transform(
        F.slice(path, 2, F.size(path)),
        lambda step, index: _link(F.get(path, index), step["queue_manager"], step["time"]),
    )
    missing = F.array(
        _link(F.element_at(path, -1), to, F.lit(None).cast("timestamp"), arrived=False)
    )
    return F.when(F.coalesce(last != to, F.lit(False)), F.concat(walked, missing)).otherwise(walked)


def _link(source: Column, target: Column, came: Column, *, arrived: bool = True) -> Column:
    left = source["time"]
    return F.struct(
        source["queue_manager"].alias("source"),
        target.alias("target"),
        left.alias("left"),
        came.alias("came"),
        ((F.unix_micros(came) - F.unix_micros(left)) / 1_000_000).alias("seconds"),
        F.lit(arrived).alias("arrived"),
    )


def _among(outcomes: tuple[Outcome, ...]) -> Column:
    return F.col("outcome").isin(*(one.value for one in outcomes))
