"""Messages as readers on other computers get them: the packet and the headers behind it.

[MQRR 2.2.5, 2.2.6]

A body that the reader does not want whole cuts the packet in two: all up to what it wants of the
body, and all behind the body. The padding behind the body belongs to the second part, so that the
two are the packet again where the whole body has its place (R-15). BaseHeader.PacketSize counts the
headers behind the packet, as it does where messages are kept (R-16).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.extensions import (
    dead_letter_header,
    dead_letter_path,
    extended,
    read_subqueue_header,
    separated,
    without_extensions,
)
from openmsmq.wire.fields.cursor import ZEROS
from openmsmq.wire.message_bytes import for_remote_reader
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import headers_end
from openmsmq.wire.rpc.ndr_types import REFERENT_FIRST, REFERENT_STEP
from openmsmq.wire.rpc.remote_read import (
    RECEIVED,
    SECTION_MAX_BYTES,
    Received,
    Section,
    SectionType,
    Standing,
)

_ONE_SECTION: Final = struct.Struct("<I4xQIIIHxxIIII")
"""All before the bytes of the one section of a message. [MQRR 3.1.4.7]"""
_SUCCESS: Final = bytes(4)
_SUBQUEUE: Final = struct.Struct("<IIIII64s64s")
_ADDRESS: Final = struct.Struct("<IHHI16s")
_NO_ADDRESS: Final = _ADDRESS.pack(_ADDRESS.size, 0, 0, 0, b"")
"""The store does not keep from where a message came: a type of 0 says so (R-9)."""
_CUT: Final = ((SectionType.BINARY_FIRST,), (SectionType.BINARY_FIRST, SectionType.BINARY_SECOND))
_NAME_BYTES: Final = 64
_WHERE: Final = "message for a remote reader"


def write(packet: bytes, standing: Standing) -> bytes:
    """Return the packet as a remote reader gets it, with the headers behind it (R-10)."""
    name = b""
    if standing.subqueue:
        name = standing.subqueue.encode("utf-16-le")[: _NAME_BYTES - 2]
    try:
        subqueue = _SUBQUEUE.pack(
            _SUBQUEUE.size,
            0,
            standing.abort_count,
            standing.move_count,
            standing.moved_time_s,
            name,
            b"",
        )
    except struct.error as error:
        raise EncodeError(_WHERE, f"a count does not fit its field: {error}") from None
    plain, tail = separated(packet)
    path = dead_letter_path(tail)
    dead_letter = dead_letter_header(path) if path else b""
    return extended(for_remote_reader(plain), subqueue, dead_letter, _NO_ADDRESS)


def sections(packet: bytes, standing: Standing, max_body_bytes: int) -> tuple[Section, ...]:
    """Cut a message into what a reader wants. [MQRR 3.1.4.7]"""
    whole = write(packet, standing)
    if max_body_bytes >= len(packet):
        # Whoever wants more than there is wants all of it.
        return (Section(SectionType.FULL_PACKET, len(whole), whole),)
    found = outline(packet)
    if found.body_end - found.body_start <= max_body_bytes:
        return (Section(SectionType.FULL_PACKET, len(whole), whole),)
    first = whole[: found.body_start + max_body_bytes]
    rest = whole[found.body_end :]
    return (
        Section(SectionType.BINARY_FIRST, found.body_end, first),
        Section(SectionType.BINARY_SECOND, len(rest), rest),
    )


def received(arrived_unix_s: int, sequence_id: int, parts: tuple[Section, ...]) -> bytes:
    """Return the results of a read that has found a message, as `RECEIVED` writes them.

    Nearly every message is one section: then all before its bytes is one layout.
    """
    if len(parts) == 1 and parts[0].data:
        [part] = parts
        size = len(part.data)
        try:
            head = _ONE_SECTION.pack(
                arrived_unix_s,
                sequence_id,
                1,
                REFERENT_FIRST,
                1,
                part.kind,
                part.size_alloc,
                size,
                REFERENT_FIRST + REFERENT_STEP,
                size,
            )
        except struct.error:
            # The table says what is wrong.
            head = b""
        if head and size <= SECTION_MAX_BYTES:
            return b"".join((head, part.data, ZEROS[-size & 3], _SUCCESS))
    return RECEIVED.encode(Received(arrived_unix_s, sequence_id, parts, 0))


def joined(parts: Sequence[Section]) -> bytes:
    """Put the sections of a message together; what was not transferred of its body is zeros."""
    kinds = [part.kind for part in parts]
    if kinds == [SectionType.FULL_PACKET]:
        return parts[0].data
    if tuple(kinds) not in _CUT:
        raise DecodeError(_WHERE, 0, f"sections {kinds} are no message")
    missing = parts[0].size_alloc - len(parts[0].data)
    if not 0 <= missing <= PACKET_MAX_BYTES:
        raise DecodeError(_WHERE, 0, f"{missing} bytes of a section were not transferred")
    return b"".join((parts[0].data, bytes(missing), *(part.data for part in parts[1:])))


def read(data: bytes) -> tuple[bytes, Standing]:
    """Read what `write` has written: the packet, and what the queue knows of the message."""
    header = read_subqueue_header(data[headers_end(data) :])
    if len(header) < _SUBQUEUE.size:
        return without_extensions(data), Standing()
    _, _, aborts, moves, moved_s, name, _ = _SUBQUEUE.unpack_from(header)
    text = name.decode("utf-16-le", "replace").partition("\0")[0]
    return without_extensions(data), Standing(aborts, moves, moved_s, text)
