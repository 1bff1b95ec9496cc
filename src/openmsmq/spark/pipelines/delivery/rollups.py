"""Deliveries summed up by queue, by hour and by link.

Percentiles are exact (Spark's `percentile`): times have a resolution of one second, so there are
few different latencies, and an exact answer costs no more than an approximate one.

`loss` is the share of messages that nobody will receive any more: dead letters, failures and lost
ones, of all messages of the row. Messages that are still on their way count as not lost.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.spark.pipelines.delivery.outcomes import DELIVERED, UNDELIVERED, Outcome

PERCENTILES: Final = (50, 95, 99)
REASONS: Final = tuple(member.name for member in MessageClass if is_negative(member))
OTHER_REASON: Final = "other"
"""Dead letters that do not say why, or with a number that has no name."""


def by_queue(deliveries: DataFrame) -> DataFrame:
    """Sum up by destination queue: counts by outcome, sizes, latencies, loss, reasons."""
    keys = ("destination_queue_manager", "destination_queue")
    return deliveries.groupBy(*keys).agg(*_measures())


def by_hour(deliveries: DataFrame) -> DataFrame:
    """Sum up by the hour of sending, in the time zone of the session; null if it is not known."""
    return deliveries.groupBy(F.date_trunc("hour", "sent_time").alias("hour")).agg(*_measures())


def by_link(deliveries: DataFrame) -> DataFrame:
    """Sum up by link: two queue managers of which one had a message after the other.

    Where hops do not report, a link spans several of them. A message that did not arrive counts
    on the link from the last queue manager known to have it to its destination. The latency is
    the time from when the first had it until the second had it.
    """
    link = F.explode(_links())
    links = deliveries.select("outcome", "size_bytes", "dead_letter_reason", link.alias("link"))
    arrived = F.col("link.arrived")
    undelivered = ~arrived & F.col("outcome").isin(*_values(UNDELIVERED))
    return links.groupBy(
        F.col("link.source").alias("source_queue_manager"),
        F.col("link.target").alias("target_queue_manager"),
    ).agg(
        F.count("*").alias("message_count"),
        F.count_if(arrived).alias("arrived_count"),
        F.count_if(undelivered).alias("undelivered_count"),
        F.sum("size_bytes").alias("size_bytes"),
        *_percentiles("latency", F.col("link.seconds")),
        F.try_divide(F.count_if(undelivered), F.count("*")).alias("loss"),
        _reasons(undelivered),
    )


def summary(deliveries: DataFrame) -> DataFrame:
    """Sum up everything in one row."""
    return deliveries.agg(
        *_measures(),
        F.count_if(F.col("in_doubt")).alias("in_doubt_count"),
        F.min("sent_time").alias("first_sent_time"),
        F.max("sent_time").alias("last_sent_time"),
    )


def _measures() -> list[Column]:
    outcome = F.col("outcome")
    undelivered = outcome.isin(*_values(UNDELIVERED))
    return [
        F.count("*").alias("message_count"),
        F.count_if(outcome.isin(*_values(DELIVERED))).alias("delivered_count"),
        *(F.count_if(outcome == one.value).alias(f"{one.value}_count") for one in Outcome),
        F.sum("size_bytes").alias("size_bytes"),
        *_percentiles("latency_reach", F.col("latency_reach_s")),
        *_percentiles("latency_receive", F.col("latency_receive_s")),
        F.try_divide(F.count_if(undelivered), F.count("*")).alias("loss"),
        _reasons(F.lit(True)),
    ]


def _percentiles(name: str, seconds: Column) -> list[Column]:
    return [
        F.percentile(seconds, percent / 100).alias(f"{name}_p{percent}_s")
        for percent in PERCENTILES
    ]


def _reasons(counted: Column) -> Column:
    """How many dead letters have which reason: a map without zeros."""
    dead = (F.col("outcome") == Outcome.DEAD_LETTER.value) & counted
    given = F.col("dead_letter_reason")
    reason = F.when(given.isin(*REASONS), given).otherwise(OTHER_REASON)
    # The reasons are few and known, so that all of them are counted in one pass.
    counts = [
        F.struct(F.lit(name).alias("key"), F.count_if(dead & (reason == name)).alias("value"))
        for name in (*REASONS, OTHER_REASON)
    ]
    found = F.filter(F.array(*counts), lambda entry: entry["value"] > 0)
    return F.map_from_entries(found).alias("dead_letter_reasons")


def _links() -> Column:
    path, to = F.col("path"), F.col("destination_queue_manager")
    last = F.element_at(path, -1)["queue_manager"]
    walked = F.transform(
        F.slice(path, 2, F.size(path)),
        lambda step, index: _link(
            F.get(path, index)["queue_manager"],
            step["queue_manager"],
            (F.unix_micros(step["time"]) - F.unix_micros(F.get(path, index)["time"])) / 1_000_000,
            arrived=True,
        ),
    )
    missing = F.array(_link(last, to, F.lit(None).cast("double"), arrived=False))
    return F.when(F.coalesce(last != to, F.lit(False)), F.concat(walked, missing)).otherwise(walked)


def _link(source: Column, target: Column, seconds: Column, *, arrived: bool) -> Column:
    return F.struct(
        source.alias("source"),
        target.alias("target"),
        seconds.alias("seconds"),
        F.lit(arrived).alias("arrived"),
    )


def _values(outcomes: tuple[Outcome, ...]) -> list[str]:
    return [one.value for one in outcomes]
