"""The headers of NServiceBus that a message has in its extension, as pairs of key and value.

They are XML, written by whoever sent the message: what is too large is not even parsed.
"""

from __future__ import annotations

import re
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

# The way in which .NET writes them, if all texts are plain: then no parser of XML is needed, with
# which a message takes more than twice as long. Anything else goes to the parser.
_SPACE: Final = rb"[ \t\r\n]*"
_TEXT: Final = rb"([ -%'-;=?-~]*)"
_PAIR: Final = rb"<Key>%b</Key>%b(?:<Value>%b</Value>|<Value ?/>)" % (_TEXT, _SPACE, _TEXT)
_SCHEMA: Final = rb"http://www\.w3\.org/2001/XMLSchema"
_SPACES: Final = rb' xmlns:xsi="%b-instance" xmlns:xsd="%b"' % (_SCHEMA, _SCHEMA)
_SPACES_TURNED: Final = rb' xmlns:xsd="%b" xmlns:xsi="%b-instance"' % (_SCHEMA, _SCHEMA)
_USUAL: Final = re.compile(
    rb'<\?xml version="1\.0"\?>%b<ArrayOfHeaderInfo(?:%b|%b)?>'
    rb"(?:%b<HeaderInfo>%b%b%b</HeaderInfo>)*%b</ArrayOfHeaderInfo>"
    % (_SPACE, _SPACES, _SPACES_TURNED, _SPACE, _SPACE, _PAIR, _SPACE, _SPACE)
)
_PAIRS: Final = re.compile(_PAIR)


def headers_of(extension: bytes) -> Pairs | None:
    """Return the headers, or None if the extension is no list of headers, or too large."""
    document = extension.rstrip(b"\0")
    if len(extension) > HEADERS_MAX_BYTES or not document:
        return None
    headers = usual_headers(document)
    if headers is None:
        try:
            headers = read_headers(document)
        except FormatterError:
            return None
    return list(headers.items()) if len(headers) <= HEADERS_MAX_COUNT else None


def usual_headers(document: bytes) -> dict[str, str] | None:
    """Read headers that are written as usual; None for a document that needs a parser."""
    if _USUAL.fullmatch(document) is None:
        return None
    return {key.decode(): value.decode() for key, value in _PAIRS.findall(document)}


def header_column(extensions: pa.Array) -> pa.Array:
    """Return the headers of many messages; equal extensions are read once."""
    distinct = extensions.dictionary_encode()
    read = [headers_of(extension) for extension in distinct.dictionary.to_pylist()]
    return pa.array(read, arrow_type("headers")).take(distinct.indices)
