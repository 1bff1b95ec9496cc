"""The headers of NServiceBus that a message has in its extension, as pairs of key and value.

They are XML, written by whoever sent the message: what is too large is not even parsed.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import pyarrow as pa

from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.formatters.nservicebus import read_headers
from openmsmq.spark.schema import arrow_type

HEADERS_MAX_BYTES: Final = 1 << 20
"""The longest extension that is read as headers; a stack trace among them has some 10 KB."""

HEADERS_MAX_COUNT: Final = 1000
"""The most headers of one message; NServiceBus itself adds some twenty."""

Pairs: TypeAlias = list[tuple[str, str]]


def headers_of(extension: bytes) -> Pairs | None:
    """Give the headers, or None if the extension is no list of headers, or too large."""
    if len(extension) > HEADERS_MAX_BYTES or not extension.strip(b"\0"):
        return None
    try:
        headers = read_headers(extension)
    except FormatterError:
        return None
    return list(headers.items()) if len(headers) <= HEADERS_MAX_COUNT else None


def header_column(extensions: pa.Array) -> pa.Array:
    """Give the headers of many messages; equal extensions are read once."""
    distinct = extensions.dictionary_encode()
    read = [headers_of(extension) for extension in distinct.dictionary.to_pylist()]
    return pa.array(read, arrow_type("headers")).take(distinct.indices)
