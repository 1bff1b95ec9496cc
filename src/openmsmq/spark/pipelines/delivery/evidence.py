"""What each row of a queue tells, and of which message: the one place where rows are classified.

A row is a message as it was found in a queue. Its class and the name of the queue say what it
proves: a copy in a journal, a message that waits, a dead letter, an acknowledgment, a trace report.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.model.message import MessageClass
from openmsmq.model.names import SystemQueue
from openmsmq.spark.errors import QueueProblem

TAKEN: Final = "taken"
"""A column that input may have: true for a row that its reader took out of its queue."""

NEGATIVE: Final = 0x8000
RECEIVE_STAGE: Final = 0x4000

_SHOWN_COUNT: Final = 3
"""Missing columns that an error names."""

NEEDED: Final = (
    "queue_manager",
    "queue",
    "arrived_time",
    "message_id",
    "source_qm",
    "sent_time",
    "label",
    "body",
    "correlation_id",
    "message_class",
    "message_class_name",
    "priority",
    "transactional",
    "destination",
    "response_queue",
    "dead_letter_queue",
    "acknowledge",
    "time_to_reach_queue_s",
    "time_to_be_received_s",
)
"""The columns of `openmsmq.spark.schema` that delivery looks at."""


class Evidence(StrEnum):
    """What a row proves.

    | Value | Where such a row is found | What it proves |
    |---|---|---|
    | `sent` | `system$;journal` | its sender keeps a copy: it was sent |
    | `waiting` | an application's queue, or a subqueue | it reached its queue and is there |
    | `taken` | as before, but the reader took it out | it reached its queue and was received |
    | `journal` | `QUEUE;journal` | somebody received it from that queue |
    | `dead_letter` | a dead-letter queue | it failed; its class says why |
    | `acknowledgment` | an administration queue | what became of another message |
    | `trace` | a report queue | where another message came by |
    | `nothing` | anywhere | it cannot be read, or queue managers write it to each other |
    """

    SENT = "sent"
    WAITING = "waiting"
    TAKEN = "taken"
    JOURNAL = "journal"
    DEAD_LETTER = "dead_letter"
    ACKNOWLEDGMENT = "acknowledgment"
    TRACE = "trace"
    NOTHING = "nothing"


COPIES: Final = (
    Evidence.SENT,
    Evidence.WAITING,
    Evidence.TAKEN,
    Evidence.JOURNAL,
    Evidence.DEAD_LETTER,
)
"""Rows that are the message itself, and so have its label, size and lifetimes."""

ARRIVED: Final = (Evidence.WAITING, Evidence.TAKEN, Evidence.JOURNAL)
"""Rows that show in which queue a destination is."""


def classify(
    messages: DataFrame, *, taken: bool = False, columns: Sequence[str] | None = None
) -> DataFrame:
    """Add two columns: `evidence`, and `about`, the identifier of the message that a row is of.

    `taken` says whether the reader took the rows out of their queues, unless the column `taken`
    says it of each. `columns` are those of `messages`, for who must not ask Spark for them.
    """
    known = messages.columns if columns is None else columns
    require_columns(known)
    was_taken = F.col(TAKEN) if TAKEN in known else F.lit(taken)
    evidence = _evidence(was_taken)
    about = F.when(evidence == Evidence.ACKNOWLEDGMENT.value, F.col("correlation_id")).when(
        evidence.isin(*COPIES), F.col("message_id")
    )
    return messages.withColumns({"evidence": evidence, "about": about})


def without_bodies(classified: DataFrame) -> DataFrame:
    """Keep what delivery looks at: of bodies their size, and what is in those of trace reports.

    Bodies may be large, and a table that is small on disk may have many that are alike.
    """
    is_trace = F.col("evidence") == Evidence.TRACE.value
    return classified.select(
        *(name for name in NEEDED if name != "body"),
        *("evidence", "about"),
        F.octet_length("body").cast("bigint").alias("size_bytes"),
        F.when(is_trace, F.col("body")).alias("body"),
    )


def is_negative(message_class: Column) -> Column:
    """Whether a class tells of a failure."""
    return message_class.bitwiseAND(F.lit(NEGATIVE)) != 0


def is_end_in_queue(message_class: Column) -> Column:
    """Whether a class tells of a failure after the message had reached its queue.

    One of them comes from the sender, who only waited too long and does not know.
    """
    both = F.lit(NEGATIVE | RECEIVE_STAGE)
    at_sender = message_class == MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER
    return (message_class.bitwiseAND(both) == both) & ~at_sender


def require_columns(columns: Sequence[str]) -> None:
    """Refuse a table that is none of messages."""
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        more = f" and {len(missing) - _SHOWN_COUNT} more" if len(missing) > _SHOWN_COUNT else ""
        raise QueueProblem(
            f"the input has no column {', '.join(missing[:_SHOWN_COUNT])}{more}: give tables of "
            "messages, as openmsmq pipeline ingest writes them and the data source msmq reads them"
        )


def _evidence(was_taken: Column) -> Column:
    queue = F.lower("queue")
    message_class = F.col("message_class")
    negative = is_negative(message_class)
    # A message that names its own dead-letter queue says so wherever it is; acknowledgments never.
    dead = (
        queue.endswith(SystemQueue.DEAD_LETTER.path_text)
        | queue.endswith(SystemQueue.TRANSACTIONAL_DEAD_LETTER.path_text)
        | (negative & F.col("dead_letter_queue").isNotNull())
    )
    positive = message_class.isin(int(MessageClass.ACK_REACH_QUEUE), int(MessageClass.ACK_RECEIVE))
    acknowledgment = (positive | negative) & F.col("correlation_id").isNotNull()
    return (
        F.when(F.col("message_id").isNull(), Evidence.NOTHING.value)
        .when(dead, Evidence.DEAD_LETTER.value)
        .when(message_class == int(MessageClass.REPORT), Evidence.TRACE.value)
        .when(acknowledgment, Evidence.ACKNOWLEDGMENT.value)
        .when(message_class == int(MessageClass.ORDER_ACK), Evidence.NOTHING.value)
        .when(queue.endswith(SystemQueue.JOURNAL.path_text), Evidence.SENT.value)
        .when(queue.endswith(";journal"), Evidence.JOURNAL.value)
        .when(was_taken, Evidence.TAKEN.value)
        .otherwise(Evidence.WAITING.value)
    )
