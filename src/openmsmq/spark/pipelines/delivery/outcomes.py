"""The outcome of a message: what follows from everything that is known about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.model.message import AckRequest, MessageClass
from openmsmq.spark.pipelines.delivery import names as naming
from openmsmq.spark.pipelines.delivery.evidence import is_end_in_queue
from openmsmq.spark.pipelines.delivery.paths import path_of


class Outcome(StrEnum):
    """What became of a message. The first that fits is taken, in this order.

    | Value | Meaning |
    |---|---|
    | `received` | somebody took it from its queue |
    | `waiting` | it is in its queue |
    | `dead_letter` | it failed, and its copy is in a dead-letter queue |
    | `failed` | it failed, as a negative acknowledgment says; no copy of it was found |
    | `reached` | it reached its queue; nothing says whether somebody took it |
    | `in_transit` | it was sent, and has time left to reach its queue |
    | `lost` | the positive acknowledgment that it asked for is overdue, and no failure was told |
    | `unknown` | its time is over, and it asked for nothing that would tell more |
    """

    RECEIVED = "received"
    WAITING = "waiting"
    DEAD_LETTER = "dead_letter"
    FAILED = "failed"
    REACHED = "reached"
    IN_TRANSIT = "in_transit"
    LOST = "lost"
    UNKNOWN = "unknown"


DELIVERED: Final = (Outcome.RECEIVED, Outcome.WAITING, Outcome.REACHED)
"""Outcomes of messages that reached their queue, and did not fail there."""

UNDELIVERED: Final = (Outcome.DEAD_LETTER, Outcome.FAILED, Outcome.LOST)
"""Outcomes of messages that nobody will receive any more: the loss."""

OPEN: Final = (Outcome.IN_TRANSIT, Outcome.UNKNOWN)
"""Outcomes of messages of which neither is known."""


def asked_to_be_told(acknowledge: Column) -> Column:
    """Whether a message asked to be told when it arrives or is received."""
    positive = F.lit(int(AckRequest.POSITIVE_ARRIVAL | AckRequest.POSITIVE_RECEIVE))
    return F.coalesce(acknowledge, F.lit(0)).bitwiseAND(positive) != 0


def judged(facts: DataFrame, lost_after_s: int | None) -> DataFrame:
    """Decide the outcome of each message, and draw its path."""
    return _judged(_reduced(facts), lost_after_s)


def _reduced(traced: DataFrame) -> DataFrame:
    """Draw what follows from several proofs together."""
    last = F.try_element_at("hops", F.lit(-1))
    # The destination reports a message when it has taken it.
    came = F.when((last["rank"] == 1) & (last["name"] == F.col("surely_to")), last["time"])
    identity = naming.owner_identity(F.col("destination"))
    elsewhere = F.coalesce(
        identity != F.col("source_qm"), F.col("surely_from") != F.col("surely_to"), F.lit(False)
    )
    # The source keeps its copy of a transactional message to another queue manager only when it
    # has heard that the message was received.
    final = F.col("sender_has_copy") & F.coalesce("transactional", F.lit(False)) & elsewhere
    ended_there = is_end_in_queue(F.coalesce("nack.class", F.lit(0))) | is_end_in_queue(
        F.coalesce("dead.class", F.lit(0))
    )
    received = F.col("receive_told") | F.col("was_taken") | final
    reached = received | F.col("reach_told") | F.col("was_there") | ended_there | came.isNotNull()
    return traced.withColumns(
        {
            "reached_time": F.least("reached_time", came),
            "sent_time": F.coalesce("sent_time", "left_time"),
            "ended_there": ended_there,
            "was_received": received,
            "was_reached": reached,
        }
    ).withColumn("path", path_of(F.col("was_reached"), F.col("reached_time")))


def _judged(facts: DataFrame, lost_after_s: int | None) -> DataFrame:
    """Decide the outcome of each message."""
    received, ended_there = F.col("was_received"), F.col("ended_there")
    waiting = F.col("was_there") & ~ended_there & ~received
    dead, nack = F.col("dead").isNotNull(), F.col("nack").isNotNull()
    on_its_way, overdue = _due(lost_after_s)
    outcome = (
        F.when(received, Outcome.RECEIVED.value)
        .when(waiting, Outcome.WAITING.value)
        .when(dead, Outcome.DEAD_LETTER.value)
        .when(nack, Outcome.FAILED.value)
        .when(F.col("was_reached"), Outcome.REACHED.value)
        .when(on_its_way, Outcome.IN_TRANSIT.value)
        .when(overdue, Outcome.LOST.value)
        .otherwise(Outcome.UNKNOWN.value)
    )
    told_reach = F.col("outcome").isin(Outcome.WAITING, Outcome.REACHED) & F.col("reach_told")
    reason = (
        F.when(received & F.col("receive_told"), MessageClass.ACK_RECEIVE.name)
        .when(told_reach, MessageClass.ACK_REACH_QUEUE.name)
        .when(F.col("outcome") == Outcome.DEAD_LETTER, F.coalesce("dead.name", "nack.name"))
        .when(F.col("outcome") == Outcome.FAILED, F.col("nack.name"))
    )
    in_doubt = (dead | nack) & (received | waiting | (F.col("was_reached") & ~ended_there))
    return facts.withColumn("outcome", outcome).withColumns(
        {
            "reason": reason,
            "in_doubt": in_doubt,
            "arrived": F.col("was_reached"),
            "dead_letter_reason": F.when(dead, F.coalesce("dead.name", "nack.name")),
            "latency_reach_s": _seconds(F.col("reached_time")),
            "latency_receive_s": _seconds(F.col("received_time")),
        }
    )


def _due(lost_after_s: int | None) -> tuple[Column, Column]:
    """Whether a message has time left, and whether an acknowledgment of it is overdue."""
    sent_s, now_s = F.unix_seconds("sent_time"), F.unix_seconds("as_of")
    limit = F.lit(lost_after_s).cast("bigint")
    reach_s = F.least(
        sent_s + F.col("time_to_reach_queue_s"),
        sent_s + F.col("time_to_be_received_s"),
        sent_s + limit,
    )
    receive_s = F.least(sent_s + F.col("time_to_be_received_s"), sent_s + limit)
    asked = F.coalesce(F.col("acknowledge"), F.lit(0))
    due_s = F.when(asked.bitwiseAND(F.lit(int(AckRequest.POSITIVE_ARRIVAL))) != 0, reach_s).when(
        asked.bitwiseAND(F.lit(int(AckRequest.POSITIVE_RECEIVE))) != 0, receive_s
    )
    return reach_s.isNull() | (now_s <= reach_s), F.coalesce(now_s > due_s, F.lit(False))


def _seconds(moment: Column) -> Column:
    return (F.unix_micros(moment) - F.unix_micros("sent_time")) / 1_000_000
