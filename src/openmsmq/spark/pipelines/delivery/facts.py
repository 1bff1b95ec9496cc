"""Everything that the rows say about each message, put together in one row per message."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.model.message import MessageClass
from openmsmq.spark.pipelines.delivery.evidence import COPIES, Evidence, is_negative
from openmsmq.spark.pipelines.delivery.paths import departures, short_of


def facts_of(evidence: DataFrame, as_of: datetime | None) -> DataFrame:
    """Put together what all classified rows say about each message; `as_of` is the moment."""
    nothing = F.lit(None)
    rows = evidence.where(F.col("about").isNotNull()).select(
        "about",
        "evidence",
        F.col("evidence").isin(*COPIES).alias("is_copy"),
        "queue_manager",
        "queue",
        "arrived_time",
        "label",
        "sent_time",
        "priority",
        "transactional",
        "message_class",
        "message_class_name",
        "destination",
        "response_queue",
        "acknowledge",
        "time_to_reach_queue_s",
        "time_to_be_received_s",
        "size_bytes",
        nothing.cast("timestamp").alias("left_time"),
    )
    left = departures(evidence).select(
        "about",
        F.lit(Evidence.TRACE.value).alias("evidence"),
        F.lit(False).alias("is_copy"),
        # An acknowledgment has its message's destination in the same place.
        F.col("target").alias("response_queue"),
        "left_time",
    )
    # By the short name, and not by the identifier: so everything that follows finds what it needs
    # in the same partition, and the rows move only once.
    together = (
        rows.unionByName(left, allowMissingColumns=True)
        .withColumn("short", short_of(F.col("about")))
        .repartition("short")
        .groupBy("short", "about")
    )
    facts = together.agg(*_descriptions(), *_proofs()).withColumnRenamed("about", "message_id")
    return facts.crossJoin(_moment(evidence, as_of))


def _moment(evidence: DataFrame, as_of: datetime | None) -> DataFrame:
    """The moment of judgment. Times that senders wrote are not trusted for it."""
    last = F.max("arrived_time") if as_of is None else F.first(F.lit(as_of).cast("timestamp"))
    return F.broadcast(evidence.agg(last.alias("as_of")))


def _descriptions() -> list[Column]:
    """Properties of the message: from its copies, else from acknowledgments, which repeat some."""
    copy = F.col("is_copy")
    own = ("sent_time", "priority", "transactional", "acknowledge", "size_bytes")
    lifetimes = ("time_to_reach_queue_s", "time_to_be_received_s")
    place = F.struct("queue_manager", F.substring_index("queue", ";", 1).alias("queue"))
    where = F.concat_ws("\\", "queue_manager", "queue")
    return [
        *(F.max(F.when(copy, F.col(name))).alias(name) for name in (*own, *lifetimes)),
        *(_own_or_told(name, other) for name, other in _TOLD.items()),
        F.min(F.when(_is(Evidence.WAITING, Evidence.TAKEN, Evidence.JOURNAL), place)).alias(
            "place"
        ),
        F.array_sort(F.collect_set(F.when(copy, where))).alias("found_in"),
        F.min("left_time").alias("left_time"),
    ]


_TOLD: Final = {"label": "label", "destination": "response_queue"}
"""What acknowledgments say of a message, and the column in which they say it."""


def _own_or_told(name: str, other: str) -> Column:
    copy = F.col("is_copy")
    return F.coalesce(F.max(F.when(copy, F.col(name))), F.max(F.when(~copy, F.col(other)))).alias(
        name
    )


def _proofs() -> list[Column]:
    """What the rows about one message prove, and when it happened."""
    acknowledgment = _is(Evidence.ACKNOWLEDGMENT)
    message_class = F.col("message_class")
    reach = acknowledgment & (message_class == int(MessageClass.ACK_REACH_QUEUE))
    receive = acknowledgment & (message_class == int(MessageClass.ACK_RECEIVE))
    dead = _is(Evidence.DEAD_LETTER)
    failure = F.struct(
        F.coalesce(F.when(acknowledgment, F.col("sent_time")), F.col("arrived_time")).alias("time"),
        F.when(is_negative(message_class), message_class)
        .when(_outlived(), int(MessageClass.NACK_RECEIVE_TIMEOUT))
        .alias("class"),
        F.when(is_negative(message_class), F.col("message_class_name"))
        .when(_outlived(), MessageClass.NACK_RECEIVE_TIMEOUT.name)
        .alias("name"),
    )
    there = _is(Evidence.WAITING, Evidence.TAKEN)
    return [
        F.bool_or(reach).alias("reach_told"),
        F.bool_or(receive).alias("receive_told"),
        F.bool_or(_is(Evidence.JOURNAL, Evidence.TAKEN)).alias("was_taken"),
        F.bool_or(there).alias("was_there"),
        F.bool_or(_is(Evidence.SENT)).alias("sender_has_copy"),
        F.max(F.when(dead, failure)).alias("dead"),
        F.max(F.when(acknowledgment & is_negative(message_class), failure)).alias("nack"),
        F.min(F.when(reach, F.col("sent_time")).when(there, F.col("arrived_time"))).alias(
            "reached_time"
        ),
        F.min(
            F.when(receive, F.col("sent_time")).when(_is(Evidence.JOURNAL), F.col("arrived_time"))
        ).alias("received_time"),
    ]


def _outlived() -> Column:
    """Whether a dead letter was older than it might become: other systems do not give a class."""
    age_s = F.unix_seconds("arrived_time") - F.unix_seconds("sent_time")
    return age_s >= F.col("time_to_be_received_s")


def _is(*kinds: Evidence) -> Column:
    return F.col("evidence").isin(*kinds)
