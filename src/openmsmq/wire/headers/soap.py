"""SoapHeader: two texts of a message that once came over HTTP. [MQMQ 2.2.20.7]

We never make one; what arrives is kept and passed on. Whether the texts are padded to a multiple
of 4 is not said anywhere. Every other header is, so that form is tried first; the other one is
taken when only it fits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field, Pads, hex_field, keep_padding, need, utf16_text

LAYOUT: Final = struct.Struct("<HHI")
SECTION_SIZE: Final = LAYOUT.size
HEADER_SECTION: Final = 0x0320
BODY_SECTION: Final = 0x0384
_WHERE: Final = "SoapHeader"


class SoapHeader(msgspec.Struct, frozen=True, gc=False):
    """The texts as UTF-16 code units with their terminators, as they came."""

    header: bytes = b""
    body: bytes = b""
    reserved: int = 0
    body_reserved: int = 0
    padded: bool = True
    """Whether each text is followed by padding, as far as it needs any."""
    padding: bytes = b""

    def write(self) -> bytes:
        """Return the bytes of both sections."""
        if (len(self.header) | len(self.body)) & 1:
            raise EncodeError(_WHERE, "a text with half a UTF-16 code unit")
        pads = Pads(self.padding, _WHERE)
        parts = (
            LAYOUT.pack(HEADER_SECTION, self.reserved, len(self.header) // 2),
            self.header,
            pads.take(_gap(len(self.header), self.padded)),
            LAYOUT.pack(BODY_SECTION, self.body_reserved, len(self.body) // 2),
            self.body,
            pads.take(_gap(len(self.body), self.padded)),
        )
        pads.finish()
        return b"".join(parts)

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        pads = Pads(self.padding, _WHERE)
        for name, section, reserved_name, reserved, units in (
            ("Header", HEADER_SECTION, "Reserved", self.reserved, self.header),
            ("Body", BODY_SECTION, "Reserved1", self.body_reserved, self.body),
        ):
            yield Field(f"{name}SectionID", 2, section)
            yield Field(reserved_name, 2, reserved)
            yield Field(f"{name}DataLength", 4, len(units) // 2)
            if units:
                yield Field(name, len(units), utf16_text(units))
            yield from hex_field("padding", pads.take(_gap(len(units), self.padded)))


def _gap(size: int, padded: bool) -> int:
    return -size & 3 if padded else 0


def _text_end(data: bytes, offset: int, section: int) -> int:
    """Check the section at `offset`; give where its text ends."""
    need(data, offset, SECTION_SIZE, _WHERE)
    found, _, units = LAYOUT.unpack_from(data, offset)
    if found != section:
        raise DecodeError(_WHERE, offset, f"section {found:#06x}, not {section:#06x}")
    need(data, offset + SECTION_SIZE, 2 * units, _WHERE)
    return offset + SECTION_SIZE + 2 * int(units)


def _measure(data: bytes, offset: int) -> tuple[bool, int, int, int, int]:
    """Return the form and the ends: first text, second section, second text, whole header."""
    header_end = _text_end(data, offset, HEADER_SECTION)
    try:
        body = header_end + _gap(header_end - offset, True)
        body_end = _text_end(data, body, BODY_SECTION)
        following = body_end + _gap(body_end - body, True)
        need(data, following, 0, _WHERE)
        return True, header_end, body, body_end, following
    except DecodeError:
        body_end = _text_end(data, header_end, BODY_SECTION)
        return False, header_end, header_end, body_end, body_end


def skip(data: bytes, offset: int) -> int:
    """Check and pass over the header at `offset`; give the offset behind it."""
    return _measure(data, offset)[4]


def read(data: bytes, offset: int) -> tuple[SoapHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    padded, header_end, body, body_end, following = _measure(data, offset)
    _, reserved, _ = LAYOUT.unpack_from(data, offset)
    _, body_reserved, _ = LAYOUT.unpack_from(data, body)
    header = SoapHeader(
        data[offset + SECTION_SIZE : header_end],
        data[body + SECTION_SIZE : body_end],
        reserved,
        body_reserved,
        padded,
        keep_padding(data[header_end:body] + data[body_end:following]),
    )
    return header, following
