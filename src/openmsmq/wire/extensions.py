r"""What may stand behind the headers of a stored message: its own dead-letter queue. [MQRR 2.2.5.2]

A queue manager that keeps a message, or gives it to a reader on another computer, puts extension
headers behind it. They are no part of a packet between queue managers: `without_extensions` takes
them off before a message leaves.
"""

from __future__ import annotations

import struct
from typing import Final

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import ZEROS, padding_size
from openmsmq.wire.packets import headers_end

DEAD_LETTER: Final = 0x01
"""A DeadLetterHeader follows (DL)."""
SUBQUEUE: Final = 0x02
"""A SubqueueHeader follows (SQ)."""
ADDRESS: Final = 0x10
"""An ExtendedAddressHeader follows (EA)."""

_EXTENSION: Final = struct.Struct("<IIB3x")
_U32: Final = struct.Struct("<I")
_SIZE_OFFSET: Final = 8
_SIZE_END: Final = 12
_WHERE: Final = "DeadLetterHeader"


def dead_letter_extension(path: str) -> bytes:
    """Return the extension that names a dead-letter queue. [MQRR 2.2.5.4]"""
    header = dead_letter_header(path)
    return _EXTENSION.pack(_EXTENSION.size, len(header), DEAD_LETTER) + header


def dead_letter_header(path: str) -> bytes:
    """Return the header that names a dead-letter queue. [MQRR 2.2.5.4]"""
    text = utf16.write(path, _WHERE)
    text += ZEROS[padding_size(len(text))]
    return _U32.pack(_U32.size + len(text)) + text


def extended(packet: bytes, subqueue: bytes, dead_letter: bytes, address: bytes) -> bytes:
    """Put headers behind a message that has none, and count them in its size. [MQRR 2.2.5.2]"""
    flags = SUBQUEUE | ADDRESS | (DEAD_LETTER if dead_letter else 0)
    rest = len(subqueue) + len(dead_letter) + len(address)
    extension = _EXTENSION.pack(_EXTENSION.size, rest, flags)
    size = _U32.pack(len(packet) + len(extension) + rest)
    head = (packet[:_SIZE_OFFSET], size, packet[_SIZE_END:])
    return b"".join((*head, extension, subqueue, dead_letter, address))


def read_subqueue_header(tail: bytes) -> bytes:
    """Return the SubqueueHeader behind the headers of a message; empty if there is none."""
    flags, offset = _extension(tail)
    return tail[offset : offset + _header_size(tail, offset)] if flags & SUBQUEUE else b""


def dead_letter_path(tail: bytes) -> str:
    """Read which dead-letter queue the bytes behind the headers name; empty if they name none."""
    flags, offset = _extension(tail)
    if not flags & DEAD_LETTER:
        return ""
    if flags & SUBQUEUE:
        offset += _header_size(tail, offset)
    size = _header_size(tail, offset)
    try:
        return utf16.read(tail, offset + _U32.size, offset + size, _WHERE)[0]
    except DecodeError:
        return ""


def dead_letter_path_of(packet: bytes) -> str:
    """Read which dead-letter queue a stored message names; empty if it names none."""
    try:
        end = headers_end(packet)
    except DecodeError:
        return ""
    return dead_letter_path(packet[end:]) if end < len(packet) else ""


def without_extensions(packet: bytes) -> bytes:
    """Return a stored message as it travels between queue managers."""
    return separated(packet)[0]


def separated(packet: bytes) -> tuple[bytes, bytes]:
    """Return a stored message as it travels, and the bytes behind its headers."""
    end = headers_end(packet)
    if end == len(packet):
        return packet, b""
    tail = packet[end:]
    if not _extension(tail)[0]:
        return packet, tail
    size = _U32.pack(end)
    return b"".join((packet[:_SIZE_OFFSET], size, packet[_SIZE_END:end])), tail


def _extension(tail: bytes) -> tuple[int, int]:
    """Return the flags of an ExtensionHeader and what follows it; no flags if there is none."""
    if len(tail) < _EXTENSION.size:
        return 0, 0
    size, rest, flags = _EXTENSION.unpack_from(tail)
    if size < _EXTENSION.size or size + rest != len(tail):
        return 0, 0
    return flags, size


def _header_size(tail: bytes, offset: int) -> int:
    """Return the size of the header at `offset`, within the bytes there are."""
    if offset + _U32.size > len(tail):
        return 0
    size: int = _U32.unpack_from(tail, offset)[0]
    return min(size, len(tail) - offset)
