"""EstablishConnectionHeader: two queue managers introduce themselves. [MQQB 2.2.3.1]"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.fields.cursor import Field, bits, need

LAYOUT: Final = struct.Struct("<16s16sIHH512s")
SIZE: Final = LAYOUT.size
PADDING_BYTES: Final = 512
PADDING: Final = b"\x5a" * PADDING_BYTES

RELEASE: Final = 0x00FF
RELEASE_VALUE: Final = 0x0010
NO_PING: Final = 0x0100
SERVER_CLASS: Final = 0x0200
QUALITY_OF_SERVICE: Final = 0x0400
SYSTEM_DEFAULT: Final = RELEASE_VALUE | NO_PING | SERVER_CLASS


class EstablishHeader(msgspec.Struct, frozen=True, gc=False):
    """Who asks, who is asked, and when the question left."""

    client: Guid
    server: Guid = NIL_GUID
    """The queue manager asked for; nil when it is known only by address."""
    ticks_ms: int = 0
    system: int = SYSTEM_DEFAULT
    reserved: int = 0
    padding: bytes = PADDING

    def write(self) -> bytes:
        """Return the 552 bytes."""
        if len(self.padding) != PADDING_BYTES:
            raise EncodeError(
                "EstablishConnectionHeader", f"{len(self.padding)} bytes of padding, not 512"
            )
        return LAYOUT.pack(
            self.client, self.server, self.ticks_ms, self.system, self.reserved, self.padding
        )

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        yield Field("ClientGuid", 16, str(self.client))
        yield Field("ServerGuid", 16, str(self.server))
        yield Field("TimeStamp", 4, self.ticks_ms, "ms since the sender started")
        yield Field("OperatingSystem", 2, self.system)
        yield from bits(
            self.system,
            ("RE release", RELEASE),
            ("SE no ping was sent", NO_PING),
            ("OS server class", SERVER_CLASS),
            ("QS quality of service", QUALITY_OF_SERVICE),
        )
        yield Field("Reserved", 2, self.reserved)
        same = self.padding.count(self.padding[:1]) == len(self.padding)
        shown = f"512 x {self.padding[:1].hex()}" if same else self.padding.hex()
        yield Field("Padding", PADDING_BYTES, shown)


def read(data: bytes, offset: int) -> tuple[EstablishHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    need(data, offset, SIZE, "EstablishConnectionHeader")
    client, server, ticks_ms, system, reserved, padding = LAYOUT.unpack_from(data, offset)
    header = EstablishHeader(Guid(client), Guid(server), ticks_ms, system, reserved, padding)
    return header, offset + SIZE
