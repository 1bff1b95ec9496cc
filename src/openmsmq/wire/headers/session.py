"""SessionHeader: what one side of a session has received, stored and sent. [MQMQ 2.2.20.4]"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.wire.fields.cursor import Field, need

LAYOUT: Final = struct.Struct("<HHIHHHH")
SIZE: Final = LAYOUT.size
WINDOW_DEFAULT: Final = 64


class SessionHeader(msgspec.Struct, frozen=True, gc=False):
    """Acknowledges what came and numbers what went, all modulo 2^16."""

    received_count: int = 0
    """How many messages this side has received on the session (AckSequenceNumber)."""
    stored_base: int = 0
    """The recoverable message that bit 0 of `stored_bits` stands for."""
    stored_bits: int = 0
    """Bit k: the recoverable message `stored_base` + k is on disk."""
    sent_count: int = 0
    """How many messages this side has sent, the one that carries this header included."""
    recoverable_sent_count: int = 0
    window: int = WINDOW_DEFAULT
    reserved: int = 0

    def write(self) -> bytes:
        """Return the 16 bytes."""
        return LAYOUT.pack(*msgspec.structs.astuple(self))

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        yield Field("AckSequenceNumber", 2, self.received_count)
        yield Field("RecoverableMsgAckSeqNumber", 2, self.stored_base)
        yield Field("RecoverableMsgAckFlags", 4, self.stored_bits, f"{self.stored_bits:032b}")
        yield Field("UserMsgSequenceNumber", 2, self.sent_count)
        yield Field("RecoverableMsgSeqNumber", 2, self.recoverable_sent_count)
        yield Field("WindowSize", 2, self.window)
        yield Field("Reserved", 2, self.reserved)


def read(data: bytes, offset: int) -> tuple[SessionHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    need(data, offset, SIZE, "SessionHeader")
    return SessionHeader(*LAYOUT.unpack_from(data, offset)), offset + SIZE
