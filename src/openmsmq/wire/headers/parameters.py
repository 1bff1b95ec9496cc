"""ConnectionParametersHeader: how fast a session acknowledges. [MQQB 2.2.2.1]"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.wire.fields.cursor import Field, need

LAYOUT: Final = struct.Struct("<IIHH")
SIZE: Final = LAYOUT.size


class ParametersHeader(msgspec.Struct, frozen=True, gc=False):
    """The timeouts and the window one side asks for. Values out of range are read as they are."""

    recoverable_ack_timeout_ms: int
    ack_timeout_ms: int
    window: int
    reserved: int = 0

    def write(self) -> bytes:
        """Return the 12 bytes."""
        return LAYOUT.pack(
            self.recoverable_ack_timeout_ms, self.ack_timeout_ms, self.reserved, self.window
        )

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        yield Field("RecoverableAckTimeout", 4, self.recoverable_ack_timeout_ms, "ms")
        yield Field("AckTimeout", 4, self.ack_timeout_ms, "ms")
        yield Field("Reserved", 2, self.reserved)
        yield Field("WindowSize", 2, self.window)


def read(data: bytes, offset: int) -> tuple[ParametersHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    need(data, offset, SIZE, "ConnectionParametersHeader")
    recoverable, ack, reserved, window = LAYOUT.unpack_from(data, offset)
    return ParametersHeader(recoverable, ack, window, reserved), offset + SIZE
