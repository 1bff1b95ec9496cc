"""The columns of a message in Spark: its properties, and where it was found.

Names are those of `openmsmq receive --json`, so that a word means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from openmsmq.client.messages.properties import FOUND, PROPERTIES
from openmsmq.client.messages.property import Kind

SCHEMAS_KEPT_MAX_COUNT: Final = 16
"""Choices of columns whose schema is kept: each record batch of a task asks for the same one."""

_TYPES: Final = {
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.TIME: pa.timestamp("us", "UTC"),
    Kind.NUMBER: pa.int64(),
    Kind.SMALL: pa.int32(),
    Kind.YES_NO: pa.bool_(),
    Kind.PAIRS: pa.map_(pa.string(), pa.string()),
}


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


def _groups() -> dict[str, list[Column]]:
    text = _TYPES[Kind.TEXT]
    groups = {
        FOUND: [
            Column("queue_manager", text, "The name of the queue manager that has it."),
            Column("queue", text, "The path name of the queue there."),
        ]
    }
    for row in PROPERTIES.values():
        if row.is_column:
            column = Column(
                row.key, _TYPES[row.kind], row.meaning, row.null, row.shows, row.on_request
            )
            groups.setdefault(row.group, []).append(column)
    why = "Why its packet cannot be decoded; then `body` has the packet."
    return groups | {"When it cannot be read": [Column("error", text, why, "it can be decoded")]}


GROUPS: Final = _groups()
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
    return _schema(tuple(names))


@lru_cache(SCHEMAS_KEPT_MAX_COUNT)
def _schema(names: tuple[str, ...]) -> pa.Schema:
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
