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
_PAIRS: Final = pa.map_(pa.string(), pa.string())


class Column(msgspec.Struct, frozen=True):
    """One column: its name, its Arrow type, and what it holds."""

    name: str
    type: pa.DataType
    meaning: str
    null: str = ""
    """When it is null although the message can be decoded; empty for never."""
    shows: tuple[str, ...] = ()
    """The properties of a message that it shows, by their names in MS-MQDMPR 3.1.1.12."""
    on_request: bool = False
    """Whether it is there only if the option `columns` names it."""


GROUPS: Final[dict[str, tuple[Column, ...]]] = {
    "Where it was found": (
        Column("queue_manager", _TEXT, "The name of the queue manager that has it."),
        Column("queue", _TEXT, "The path name of the queue there."),
        Column(
            "arrival_number", _NUMBER, "When it became available, as a number: what offsets count."
        ),
        Column(
            "lookup_id",
            _NUMBER,
            "Its place in the queue, for `--lookup-id`.",
            shows=("LookupIdentifier",),
        ),
        Column("arrived_time", _TIME, "When it came into the queue.", shows=("ArrivalTime",)),
        Column("abort_count", _SMALL, "How often a transaction that received it was aborted."),
        Column("move_count", _SMALL, "How often it was moved between a queue and its subqueues."),
        Column("moved_time", _TIME, "When it was last moved.", null="it was never moved"),
    ),
    "Who sent it, and when": (
        Column(
            "message_id",
            _TEXT,
            "The identifier: which queue manager sent it, its number there.",
            shows=("Identifier",),
        ),
        Column(
            "source_qm",
            _TEXT,
            "The identity of the queue manager that sent it.",
            shows=("SourceMachineIdentifier",),
        ),
        Column("sent_time", _TIME, "When it was sent.", shows=("SentTime",)),
        Column(
            "sender_id",
            _BYTES,
            "The security identifier of its sender.",
            null="it does not say",
            shows=("SenderIdentifier",),
        ),
        Column(
            "sender_certificate",
            _BYTES,
            "The certificate of its sender.",
            null="it has none",
            shows=("SenderCertificate",),
        ),
        Column(
            "authenticated",
            _YES_NO,
            "Whether its signature has proved its sender to the queue manager of its queue.",
            shows=("AuthenticationLevel",),
        ),
    ),
    "What the application said": (
        Column("label", _TEXT, "The label; empty if it has none.", shows=("Label",)),
        Column("body", _BYTES, "The body; ciphertext if it is encrypted.", shows=("Body",)),
        Column(
            "body_type",
            _NUMBER,
            "What the sender says the body is: a VARIANT type, 8 for text.",
            shows=("BodyType",),
        ),
        Column(
            "text", _TEXT, "The body as text, when it is text.", null="it is not", shows=("Body",)
        ),
        Column(
            "extension",
            _BYTES,
            "What the sender put beside the body; often empty.",
            shows=("Extension",),
        ),
        Column(
            "headers",
            _PAIRS,
            "The headers of NServiceBus in the extension, up to 1,000 in 1 MiB; only if the "
            "option `columns` names it, as in `*,headers`.",
            null="the extension is something else",
            shows=("Extension",),
            on_request=True,
        ),
        Column(
            "application_tag", _NUMBER, "A number that the sender chose.", shows=("ApplicationTag",)
        ),
        Column(
            "correlation_id",
            _TEXT,
            "The message that this one answers.",
            null="it answers none",
            shows=("CorrelationIdentifier",),
        ),
        Column(
            "message_class",
            _SMALL,
            "0 for an application's message; else a report or answer.",
            shows=("Class",),
        ),
        Column("message_class_name", _TEXT, "The name of the class.", shows=("Class",)),
    ),
    "How it was sent": (
        Column("priority", _SMALL, "0 to 7.", shows=("Priority",)),
        Column(
            "recoverable", _YES_NO, "Whether it survives a restart.", shows=("DeliveryGuarantee",)
        ),
        Column(
            "transactional",
            _YES_NO,
            "Whether it was sent in a transaction.",
            shows=("DeliveryGuarantee",),
        ),
        Column(
            "first_in_transaction",
            _YES_NO,
            "Whether it is the first of its transaction.",
            shows=("FirstInTransaction",),
        ),
        Column(
            "last_in_transaction",
            _YES_NO,
            "Whether it is the last one.",
            shows=("LastInTransaction",),
        ),
        Column(
            "transaction_id",
            _TEXT,
            "The transaction in which it was sent.",
            null="it is not transactional",
            shows=("TransactionIdentifier",),
        ),
        Column(
            "destination",
            _TEXT,
            "The format name to which it was sent.",
            null="it does not say",
            shows=(
                "DestinationQueueFormatName",
                "DestinationQueueType",
                "DestinationQueueManagerIdentifier",
            ),
        ),
        Column(
            "response_queue",
            _TEXT,
            "Where answers go.",
            null="it wants none",
            shows=("ResponseQueueFormatName", "ResponseQueueType"),
        ),
        Column(
            "admin_queue",
            _TEXT,
            "Where acknowledgments go.",
            null="it wants none",
            shows=("AdministrationQueueFormatName", "AdministrationQueueType"),
        ),
        Column(
            "dead_letter_queue",
            _TEXT,
            "Where its copy goes on failure, if not to the system's.",
            null="it names none",
            shows=("ApplicationDeadletterQueue",),
        ),
        Column(
            "acknowledge",
            _SMALL,
            "Which acknowledgments were asked for: bits of `AckRequest`.",
            shows=("AcknowledgementsRequested",),
        ),
        Column(
            "journal_on_failure",
            _YES_NO,
            "Whether a copy goes to a dead-letter queue on failure.",
            shows=("NegativeJournalingRequested",),
        ),
        Column(
            "journal_on_success",
            _YES_NO,
            "Whether its sender keeps a copy of it.",
            shows=("PositiveJournalingRequested",),
        ),
        Column(
            "time_to_reach_queue_s",
            _NUMBER,
            "How long it might travel, in seconds.",
            null="there is no limit",
            shows=("TimeToReachQueue",),
        ),
        Column(
            "time_to_be_received_s",
            _NUMBER,
            "How long it may wait to be received, in seconds.",
            null="there is no limit",
            shows=("TimeToBeReceived",),
        ),
        Column("encrypted", _YES_NO, "Whether the body is encrypted.", shows=("PrivacyLevel",)),
        Column("traced", _YES_NO, "Whether each hop reports it.", shows=("TracingRequested",)),
        Column("hop_count", _SMALL, "How many queue managers passed it on."),
        Column(
            "connector_type",
            _TEXT,
            "The foreign system for which some of its properties are.",
            null="there is none",
            shows=("ConnectorTypeIdentifier",),
        ),
    ),
    "When it cannot be read": (
        Column(
            "error",
            _TEXT,
            "Why its packet cannot be decoded; then `body` has the packet.",
            null="it can be decoded",
        ),
    ),
}
"""All columns in their order, by what they are about. Those a message has nothing for are null."""

_LISTS: Final = "only messages to several queues at once have it; each copy has its own names"
_SEQUENCE: Final = "queue managers keep the order with it; in a queue, `arrival_number` says it"
_CRYPTOGRAPHY: Final = "it serves the queue managers that check and decrypt messages"
_OVER_HTTP: Final = "only messages that came over HTTP have it, beside their `body`"
_CONNECTORS: Final = "it serves connectors to other systems"

LEFT_OUT: Final = {
    "AllowPeekWhenLocked": "it is about one read of the message, not about the message",
    "TracingQueueIdentifier": "queue managers report there; `traced` says whether they do",
    "ResponseMultiQueueFormatName": _LISTS,
    "DestinationMultiQueueFormatName": _LISTS,
    "AdministrationMultiQueueFormatName": _LISTS,
    "MultipleDestinationSignature": _CRYPTOGRAPHY,
    "HashAlgorithm": _CRYPTOGRAPHY,
    "EncryptionAlgorithm": _CRYPTOGRAPHY,
    "SymmetricKey": _CRYPTOGRAPHY,
    "Signature": _CRYPTOGRAPHY,
    "AuthenticationProviderType": _CRYPTOGRAPHY,
    "AuthenticationProviderName": _CRYPTOGRAPHY,
    "SenderIdentifierType": "it differs only in what queue managers send each other",
    "ConnectorQueueManagerIdentifier": _CONNECTORS,
    "TransactionStatusQueueFormatName": _CONNECTORS,
    "TransactionalMessageSequenceIdentifier": _SEQUENCE,
    "TransactionSequenceNumber": _SEQUENCE,
    "TransactionPreviousSequenceNumber": _SEQUENCE,
    "FinalAckRequired": "queue managers use it between them",
    "SoapEnvelope": _OVER_HTTP,
    "SoapCompoundMessage": _OVER_HTTP,
    "SoapBody": _OVER_HTTP,
    "SoapHeader": _OVER_HTTP,
    "MessagePositionReference": "`queue` and `lookup_id` say the place",
}
"""The properties of a message that no column shows, and why."""

COLUMNS: Final = tuple(column for columns in GROUPS.values() for column in columns)
ALL_NAMES: Final = tuple(column.name for column in COLUMNS)
NAMES: Final = tuple(column.name for column in COLUMNS if not column.on_request)
"""The columns that a message has if nobody chooses."""
_BY_NAME: Final = {column.name: column for column in COLUMNS}


def arrow_type(name: str) -> pa.DataType:
    """Return Arrow's type of a column."""
    return _BY_NAME[name].type


def arrow_schema(names: Iterable[str] = NAMES) -> pa.Schema:
    """Return Arrow's schema of some columns."""
    return pa.schema([pa.field(name, _BY_NAME[name].type) for name in names])


def spark_schema(names: Iterable[str] = NAMES) -> StructType:
    """Return Spark's schema of some columns."""
    return from_arrow_schema(arrow_schema(names))


def schema_tables() -> str:
    """Return the text of `docs/reference/spark-schema.md`: columns, and properties without one."""
    types = {field.name: field.dataType.simpleString() for field in spark_schema(ALL_NAMES)}
    parts: list[str] = []
    for title, columns in GROUPS.items():
        parts += [f"## {title}", "", "| Column | Type | Meaning | Null when | Property |"]
        parts.append("|---|---|---|---|---|")
        parts += [
            f"| `{column.name}` | {types[column.name]} | {column.meaning} | {column.null or '-'} "
            f"| {', '.join(column.shows) or '-'} |"
            for column in columns
        ]
        parts.append("")
    parts += ["## Properties without a column", "", "| Property | Why |", "|---|---|"]
    parts += [f"| {name} | {reason} |" for name, reason in sorted(LEFT_OUT.items())]
    return "\n".join(parts) + "\n"
