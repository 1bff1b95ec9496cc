"""Messages in several parts: an envelope, a body and an extension. [MQSRM 2.2.2, 4]

Windows writes no line break before a boundary, so a reader that looks for one finds no part. Each
part says how long it is: by that it is cut, and the boundary has to follow.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import ATTACHMENT_HEADER_MAX_BYTES, ENVELOPE_MAX_BYTES, PACKET_MAX_BYTES
from openmsmq.wire.errors import DecodeError

ENVELOPE_TYPE: Final = "text/xml"
_WHERE: Final = "attachment"
_PARTS: Final = re.compile(
    r'multipart/related\s*(;[^"]*)?;\s*boundary="([^"\r\n]{1,70})"(.*)', re.I
)
_BARE: Final = re.compile(r"multipart/related\s*(?:;.*)?;\s*boundary=([^\s;\"]{1,70})(;.*)?", re.I)
_LENGTH: Final = re.compile(rb"[0-9]{1,8}")
_PARTS_MAX_COUNT: Final = 3
_TYPE_MAX_CHARACTERS: Final = 400
_DELIMITER: Final = b"MSMQ - SOAP boundary, %d"


class Compound(msgspec.Struct, frozen=True):
    """A message in its parts."""

    envelope: bytes
    body: bytes = b""
    extension: bytes = b""


def read_compound(content_type: str, data: bytes) -> Compound:
    """Cut a message by what its header says of it."""
    if len(content_type) > _TYPE_MAX_CHARACTERS:
        raise DecodeError(_WHERE, 0, f"a type of content of {len(content_type)} characters")
    if content_type.partition(";")[0].strip().lower() == ENVELOPE_TYPE:
        return Compound(_checked_envelope(data))
    quoted = _PARTS.fullmatch(content_type)
    bare = None if quoted is not None else _BARE.fullmatch(content_type)
    if quoted is not None:
        boundary = quoted[2]
    elif bare is not None:
        boundary = bare[1]
    else:
        raise DecodeError(_WHERE, 0, f"content of type {content_type[:80]!r}")
    parts = _cut(data, b"--" + boundary.encode("utf-8", "replace"))
    kind, _, first = parts[0]
    if kind.partition(b";")[0].strip().lower() != ENVELOPE_TYPE.encode():
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
    content = (compound.envelope, compound.body, compound.extension)
    while any(_DELIMITER % number in part for part in content):
        number += 1
    boundary = b"--" + _DELIMITER % number
    lines = [boundary, b"\r\nContent-Type: text/xml; charset=UTF-8\r\nContent-Length: "]
    lines += (b"%d\r\n\r\n" % len(compound.envelope), compound.envelope)
    for name, part in ((b"body", compound.body), (b"extension", compound.extension)):
        if part or name == b"body":
            lines += (
                boundary,
                b"\r\nContent-Type: application/octet-stream\r\nContent-Length: ",
                b"%d\r\nContent-Id: %s@%s\r\n\r\n" % (len(part), name, str(manager).encode()),
                part,
            )
    lines += (boundary, b"--\r\n")
    text = boundary[2:].decode()
    return f'multipart/related; boundary="{text}"; type=text/xml', b"".join(lines)


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
        kind, name, size = _header(data[offset:end], offset)
        offset = end + 4
        if offset + size > len(data):
            raise DecodeError(_WHERE, offset, f"a part of {size} bytes that are not there")
        parts.append((kind, name, data[offset : offset + size]))
        offset += size


def _header(data: bytes, offset: int) -> tuple[bytes, str, int]:
    """Return the type, the name and the size of a part."""
    found: dict[bytes, bytes] = {}
    for line in data.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        key = name.strip().lower()
        if not colon or key in found:
            raise DecodeError(_WHERE, offset, "a part whose header cannot be read")
        found[key] = value.strip()
    length = found.get(b"content-length", b"")
    if _LENGTH.fullmatch(length) is None or int(length) > PACKET_MAX_BYTES:
        raise DecodeError(_WHERE, offset, "a part that does not say how long it is")
    id = found.get(b"content-id", b"").strip(b"<>").partition(b"@")[0].lower()
    return found.get(b"content-type", b""), id.decode("ascii", "replace"), int(length)
