"""What each row of a queue tells, and of which message: the one place where rows are classified.

A row is a message as it was found in a queue. Its class and the name of the queue say what it
proves: a copy in a journal, a message that waits, a dead letter, an acknowledgment, a trace report.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.names import SystemQueue
from openmsmq.spark.errors import QueueProblem

TAKEN: Final = "taken"
"""A column that input may have: true for a row that its reader took out of its queue."""

_POSITIVE: Final = (MessageClass.ACK_REACH_QUEUE, MessageClass.ACK_RECEIVE)
_SENT: Final = SystemQueue.JOURNAL.path_text
_DEAD_LETTERS: Final = (
    SystemQueue.DEAD_LETTER.path_text,
    SystemQueue.TRANSACTIONAL_DEAD_LETTER.path_text,
)

_SHOWN_COUNT: Final = 3
"""Missing columns that an error names."""


class Seen(NamedTuple):
    """A message as it was found in a queue; times are in microseconds since 1970."""

    queue_manager: str | None
    queue: str | None
    arrived_time: int | None
    message_id: str | None
    source_qm: str | None
    sent_time: int | None
    label: str | None
    body: bytes | None
    """Of trace reports only: bodies may be large."""
    correlation_id: str | None
    message_class: int | None
    message_class_name: str | None
    priority: int | None
    transactional: bool | None
    destination: str | None
    response_queue: str | None
    dead_letter_queue: str | None
    acknowledge: int | None
    time_to_reach_queue_s: int | None
    time_to_be_received_s: int | None
    size_bytes: int | None
    taken: bool | None
    """Whether its reader took it out of its queue."""


NEEDED: Final = tuple(name for name in Seen._fields if name not in ("size_bytes", "taken"))
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


def require_columns(columns: Sequence[str]) -> None:
    """Refuse a table that is none of messages."""
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        more = f" and {len(missing) - _SHOWN_COUNT} more" if len(missing) > _SHOWN_COUNT else ""
        raise QueueProblem(
            f"the input has no column {', '.join(missing[:_SHOWN_COUNT])}{more}: give tables of "
            "messages, as openmsmq pipeline ingest writes them and the data source msmq reads them"
        )


def evidence_of(row: Seen) -> Evidence:
    """Decide what a row proves."""
    queue, message_class = (row.queue or "").lower(), row.message_class or 0
    negative = is_negative(message_class)
    if row.message_id is None:
        return Evidence.NOTHING
    # A message that names its own dead-letter queue says so wherever it is; acknowledgments never.
    if queue.endswith(_DEAD_LETTERS) or (negative and row.dead_letter_queue is not None):
        return Evidence.DEAD_LETTER
    if message_class == MessageClass.REPORT:
        return Evidence.TRACE
    if row.correlation_id is not None and (negative or message_class in _POSITIVE):
        return Evidence.ACKNOWLEDGMENT
    if message_class == MessageClass.ORDER_ACK:
        return Evidence.NOTHING
    if queue.endswith(_SENT):
        return Evidence.SENT
    if queue.endswith(";journal"):
        return Evidence.JOURNAL
    return Evidence.TAKEN if row.taken else Evidence.WAITING
