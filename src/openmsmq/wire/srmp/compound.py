"""Messages in several parts: an envelope, a body and an extension. [MQSRM 2.2.2, 4]

Windows writes no line break before a boundary, so a reader that looks for one finds no part. Each
part says how long it is: by that it is cut, and the boundary has to follow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.limits import ATTACHMENT_HEADER_MAX_BYTES, ENVELOPE_MAX_BYTES

ENVELOPE_TYPE: Final = "text/xml"
_ENVELOPE_TYPE: Final = ENVELOPE_TYPE.encode()
_WHERE: Final = "attachment"
_PARTS: Final = re.compile(
    r'multipart/related\s*(;[^"]*)?;\s*boundary="([^"\r\n]{1,70})"(.*)', re.I
)
_BARE: Final = re.compile(r"multipart/related\s*(?:;.*)?;\s*boundary=([^\s;\"]{1,70})(;.*)?", re.I)
_LENGTH: Final = re.compile(rb"[0-9]{1,8}")
_PARTS_MAX_COUNT: Final = 3
_TYPE_MAX_CHARACTERS: Final = 400
_DELIMITER: Final = b"MSMQ - SOAP boundary, %d"
_PART: Final = (
    b"--%b\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n"
    b"Content-Id: %b@%b\r\n\r\n"
)


class Compound(NamedTuple):
    """A message in its parts."""

    envelope: bytes
    body: bytes = b""
    extension: bytes = b""


def read_compound(content_type: str, data: bytes) -> Compound:
    """Cut a message by what its header says of it."""
    if len(content_type) > _TYPE_MAX_CHARACTERS:
        raise DecodeError(_WHERE, 0, f"a type of content of {len(content_type)} characters")
    boundary = _boundary_in(content_type)
    if boundary is None:
        return Compound(_checked_envelope(data))
    parts = _cut(data, boundary)
    kind, _, first = parts[0]
    if kind != _ENVELOPE_TYPE:
        raise DecodeError(_WHERE, 0, "the first part is no envelope")
    found: dict[str, bytes] = {}
    for _, name, content in parts[1:]:
        if name in found:
            raise DecodeError(_WHERE, 0, f"two parts {name}")
        found[name] = content
    return Compound(_checked_envelope(first), found.get("body", b""), found.get("extension", b""))


def write_compound(compound: Compound, manager: Guid, number: int) -> tuple[str, bytes]:
    """Return the type of the content, and the content: an envelope, and what belongs to it.

    `number` makes the boundary; another one is taken if that stands in the message.
    """
    envelope, body, extension = compound
    delimiter = _DELIMITER % number
    while delimiter in envelope or delimiter in body or delimiter in extension:
        number += 1
        delimiter = _DELIMITER % number
    text = str(manager).encode()
    lines = [
        b"--%b\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: %d\r\n\r\n"
        % (delimiter, len(envelope)),
        envelope,
        _PART % (delimiter, len(body), b"body", text),
        body,
    ]
    if extension:
        lines += (_PART % (delimiter, len(extension), b"extension", text), extension)
    lines.append(b"--%b--\r\n" % delimiter)
    kind = f'multipart/related; boundary="{delimiter.decode()}"; type=text/xml'
    return kind, b"".join(lines)


@lru_cache(maxsize=64)
def _boundary_in(content_type: str) -> bytes | None:
    """Return what stands between parts; None for an envelope alone.

    Who sends many messages has the same type of content for many of them.
    """
    if content_type.partition(";")[0].strip().lower() == ENVELOPE_TYPE:
        return None
    quoted = _PARTS.fullmatch(content_type)
    bare = None if quoted is not None else _BARE.fullmatch(content_type)
    if quoted is not None:
        boundary = quoted[2]
    elif bare is not None:
        boundary = bare[1]
    else:
        raise DecodeError(_WHERE, 0, f"content of type {content_type[:80]!r}")
    return b"--" + boundary.encode("utf-8", "replace")


def _checked_envelope(data: bytes) -> bytes:
    if len(data) > ENVELOPE_MAX_BYTES:
        raise DecodeError(_WHERE, 0, f"an envelope of {len(data)} bytes")
    return data


def _cut(data: bytes, boundary: bytes) -> list[tuple[bytes, str, bytes]]:
    """Return the type, the name and the content of each part."""
    parts: list[tuple[bytes, str, bytes]] = []
    offset = 0
    while True:
        # Who writes a line break before a boundary, as others do, is understood too.
        if parts and data.startswith(b"\r\n" + boundary, offset):
            offset += 2
        if not data.startswith(boundary, offset):
            raise DecodeError(_WHERE, offset, "a part ends without a boundary")
        offset += len(boundary)
        if data.startswith(b"--", offset) and parts:
            if data[offset + 2 : offset + 5] not in (b"", b"\r\n"):
                raise DecodeError(_WHERE, offset, "something stands behind the last part")
            return parts
        if len(parts) == _PARTS_MAX_COUNT or not data.startswith(b"\r\n", offset):
            raise DecodeError(_WHERE, offset, "a boundary with neither a part nor the end behind")
        offset += 2
        end = data.find(b"\r\n\r\n", offset, offset + ATTACHMENT_HEADER_MAX_BYTES)
        if end < 0:
            raise DecodeError(_WHERE, offset, "a part without a header of at most 1 KiB")
        header = _header(data[offset:end])
        if isinstance(header, str):
            raise DecodeError(_WHERE, offset, header)
        kind, name, size = header
        offset = end + 4
        if offset + size > len(data):
            raise DecodeError(_WHERE, offset, f"a part of {size} bytes that are not there")
        parts.append((kind, name, data[offset : offset + size]))
        offset += size


@lru_cache(maxsize=256)
def _header(data: bytes) -> tuple[bytes, str, int] | str:
    """Return the type, the name and the size of a part, or what is wrong with it.

    Parts of the same size have the same header, from one sender.
    """
    found: dict[bytes, bytes] = {}
    for line in data.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        key = name.strip().lower()
        if not colon or key in found:
            return "a part whose header cannot be read"
        found[key] = value.strip()
    length = found.get(b"content-length", b"")
    if _LENGTH.fullmatch(length) is None or int(length) > PACKET_MAX_BYTES:
        return "a part that does not say how long it is"
    kind = found.get(b"content-type", b"").partition(b";")[0].strip().lower()
    id = found.get(b"content-id", b"").strip(b"<>").partition(b"@")[0].lower()
    return kind, id.decode("ascii", "replace"), int(length)
