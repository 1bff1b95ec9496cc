"""The columns of a message in Spark: one list, from which Arrow's and Spark's schemas follow.

Names are those of `openmsmq receive --json`, so that a word means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

_TEXT: Final = pa.string()
_BYTES: Final = pa.binary()
_TIME: Final = pa.timestamp("us", "UTC")
_NUMBER: Final = pa.int64()
_SMALL: Final = pa.int32()
_YES_NO: Final = pa.bool_()


class Column(msgspec.Struct, frozen=True):
    """One column: its name, its Arrow type, and what it holds."""

    name: str
    type: pa.DataType
    meaning: str


COLUMNS: Final = (
    # Where it was found.
    Column("queue_manager", _TEXT, "The name of the queue manager that has it."),
    Column("queue", _TEXT, "The path name of the queue there."),
    Column("arrival_number", _NUMBER, "When it became available, as a number: what offsets count."),
    Column("lookup_id", _NUMBER, "Its place in the queue, for `--lookup-id`."),
    Column("arrived_time", _TIME, "When it came into the queue."),
    Column("abort_count", _SMALL, "How often a transaction that received it was aborted."),
    Column("move_count", _SMALL, "How often it was moved between a queue and its subqueues."),
    Column("moved_time", _TIME, "When it was last moved."),
    # Who sent it, and when.
    Column("message_id", _TEXT, "The identifier: which queue manager sent it, its number there."),
    Column("source_qm", _TEXT, "The identity of the queue manager that sent it."),
    Column("sent_time", _TIME, "When it was sent."),
    Column("sender_id", _BYTES, "The security identifier of its sender."),
    Column("sender_certificate", _BYTES, "The certificate of its sender."),
    # What the application said.
    Column("label", _TEXT, "The label."),
    Column("body", _BYTES, "The body; ciphertext if it is encrypted."),
    Column("body_type", _NUMBER, "What the sender says the body is: a VARIANT type, 8 for text."),
    Column("text", _TEXT, "The body as text, when it is text."),
    Column("extension", _BYTES, "What the sender put beside the body."),
    Column("application_tag", _NUMBER, "A number that the sender chose."),
    Column("correlation_id", _TEXT, "The message that this one answers."),
    Column("message_class", _SMALL, "0 for an application's message; else a report or answer."),
    Column("message_class_name", _TEXT, "The name of the class."),
    # How it was sent.
    Column("priority", _SMALL, "0 to 7."),
    Column("recoverable", _YES_NO, "Whether it survives a restart."),
    Column("transactional", _YES_NO, "Whether it was sent in a transaction."),
    Column("first_in_transaction", _YES_NO, "Whether it is the first of its transaction."),
    Column("last_in_transaction", _YES_NO, "Whether it is the last one."),
    Column("transaction_id", _TEXT, "The transaction in which it was sent."),
    Column("destination", _TEXT, "The format name to which it was sent."),
    Column("response_queue", _TEXT, "Where answers go."),
    Column("admin_queue", _TEXT, "Where acknowledgments go."),
    Column("dead_letter_queue", _TEXT, "Where its copy goes on failure, if not to the system's."),
    Column("acknowledge", _SMALL, "Which acknowledgments were asked for: bits of `AckRequest`."),
    Column("journal_on_failure", _YES_NO, "Whether a copy goes to a dead-letter queue on failure."),
    Column("journal_on_success", _YES_NO, "Whether its sender keeps a copy of it."),
    Column("time_to_reach_queue_s", _NUMBER, "How long it might travel, in seconds."),
    Column("time_to_be_received_s", _NUMBER, "How long it may wait to be received, in seconds."),
    Column("encrypted", _YES_NO, "Whether the body is encrypted."),
    Column("traced", _YES_NO, "Whether each hop reports it."),
    Column("hop_count", _SMALL, "How many queue managers passed it on."),
    Column("connector_type", _TEXT, "The foreign system for which some of its properties are."),
    # When it cannot be read.
    Column("error", _TEXT, "Why its packet cannot be decoded; then `body` has the packet."),
)
"""All columns in their order. Those that a message has nothing for are null."""

NAMES: Final = tuple(column.name for column in COLUMNS)
_BY_NAME: Final = {column.name: column for column in COLUMNS}


def arrow_schema(names: Iterable[str] = NAMES) -> pa.Schema:
    """Give Arrow's schema of some columns."""
    return pa.schema([pa.field(name, _BY_NAME[name].type) for name in names])


def spark_schema(names: Iterable[str] = NAMES) -> StructType:
    """Give Spark's schema of some columns."""
    return from_arrow_schema(arrow_schema(names))
