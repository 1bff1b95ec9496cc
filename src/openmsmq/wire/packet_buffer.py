"""A session's bytes: cutting what arrives into packets, and letting acknowledgments ride along.

User messages are cut by their BaseHeader alone and handed on in runs, because a session carries
many thousands of them in a second; what is inside them is looked at by those who need it. Only a
message that announces a SessionHeader is measured, for its end cannot be known otherwise (C-1).
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.model.message import MessageClass
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import base, establish, internal, session
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.message_bytes import MESSAGE_MIN_BYTES, unladen
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    decode,
    encode,
    headers_end,
    measure,
)

_HEAD: Final = struct.Struct("<BxHII")
_CLASS: Final = struct.Struct("<2xH")
_NOT_PLAIN: Final = base.INTERNAL | base.SESSION

GREETING_BYTES: Final = base.SIZE + internal.SIZE + establish.SIZE
"""What a queue manager says to a peer before their session is open; more means that it is."""

INTERNAL_MAX_BYTES: Final = 4096
"""The session's own packets are small; a longer one is not worth waiting for. [ours]"""

PIECE_BYTES: Final = 64 * 1024
"""A packet that has not come whole is kept in pieces that grow up to this, and one read more."""

_ACK_START: Final = encode(SessionAck(SessionHeader()))[: base.SIZE + internal.SIZE]

StreamEvent: TypeAlias = list[bytes] | SessionHeader | EstablishConnection | ConnectionParameters
"""User messages in a row, an acknowledgment that stands alone or rode on the last of them, …"""


class PacketBuffer:
    """Cuts a byte stream into packets, however its bytes come. [MQQB 3.1.5.1]

    User messages come without SessionHeader, and as if they never had one: what is passed on to
    another session must not carry the acknowledgments of this one.
    """

    __slots__ = ("_events", "_pieces", "_run", "held_bytes", "problem", "wanted_bytes")

    def __init__(self) -> None:
        self.problem = ""
        """What was wrong with the bytes; the stream has lost its place and gives no more."""
        # A packet that comes slowly is kept in pieces: one long array that grows is copied again
        # and again, and what it leaves behind in the heap adds up over many who do that at once.
        self._pieces: list[bytearray] = []
        self.held_bytes = 0
        """How many bytes wait for the rest of their packet."""
        self.wanted_bytes = base.SIZE
        """How many bytes that packet has, as far as is known yet."""
        self._run: list[bytes] = []
        self._events: list[StreamEvent] = []

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Take the next bytes and give what is whole by now, in order."""
        if self.held_bytes:
            self._keep(data)
            if self.held_bytes < self.wanted_bytes:
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
            self.held_bytes = 0
        self.wanted_bytes = base.SIZE
        try:
            start = self._cut(data)
        except DecodeError as error:
            self.problem = str(error)
            start = len(data)
        if start < len(data):
            self._keep(data[start:] if start else data)
        self._end_run()
        events, self._events = self._events, []
        return events

    def _keep(self, data: bytes) -> None:
        self.held_bytes += len(data)
        pieces = self._pieces
        if pieces and len(pieces[-1]) < PIECE_BYTES:
            pieces[-1] += data
        else:
            pieces.append(bytearray(data))

    def _cut(self, data: bytes) -> int:
        """Cut all that is whole; give where the rest begins."""
        unpack = _HEAD.unpack_from
        start, end = 0, len(data)
        while end - start >= base.SIZE:
            version, flags, signature, size = unpack(data, start)
            if (
                version != base.VERSION
                or signature != base.SIGNATURE
                or not MESSAGE_MIN_BYTES <= size <= PACKET_MAX_BYTES
                or flags & _NOT_PLAIN
            ):
                stop = self._cut_other(data, start)
                if stop == start:
                    break
                start = stop
                continue
            stop = start + size
            if stop > end:
                self.wanted_bytes = size
                break
            self._run.append(data[start:stop])
            start = stop
        return start

    def _cut_other(self, data: bytes, start: int) -> int:
        """Cut one packet that is no plain user message; give where it ends, or its start."""
        _, flags, size = base.read(data[start : start + base.SIZE])
        if flags & base.INTERNAL:
            if size > INTERNAL_MAX_BYTES:
                raise DecodeError("BaseHeader", 8, f"an internal packet of {size} bytes")
            if not self._is_whole(data, start, size):
                return start
            packet = decode(data[start : start + size])
            self._end_run()
            if isinstance(packet, SessionAck):
                self._events.append(packet.session)
            else:
                assert isinstance(packet, EstablishConnection | ConnectionParameters)
                self._events.append(packet)
            return start + size
        if size < MESSAGE_MIN_BYTES:
            raise DecodeError("BaseHeader", 8, f"packet size {size} of a user message")
        return self._cut_laden(data, start, size)

    def _cut_laden(self, data: bytes, start: int, size: int) -> int:
        """Cut one user message that carries a SessionHeader, and part the two."""
        if not self._is_whole(data, start, size):
            return start
        message = data[start : start + size]
        header_start = headers_end(message)
        counted = size - header_start >= session.SIZE
        stop = start + size
        if counted:
            header = session.read(message, header_start)[0]
            message = message[:header_start] + message[header_start + session.SIZE :]
        else:
            stop += session.SIZE
            if not self._is_whole(data, start, stop - start):
                return start
            header = session.read(data, start + size)[0]
        self._run.append(unladen(message))
        self._end_run()
        self._events.append(header)
        return stop

    def _is_whole(self, data: bytes, start: int, size: int) -> bool:
        if len(data) - start >= size:
            return True
        self.wanted_bytes = size
        return False

    def _end_run(self) -> None:
        if self._run:
            self._events.append(self._run)
            self._run = []


def session_ack(header: bytes) -> bytes:
    """Return the SessionAck packet around the bytes of a SessionHeader. [MQQB 2.2.6]"""
    return _ACK_START + header


def can_carry(packet: bytes) -> bool:
    """Whether a SessionHeader may ride on this user message.

    Not on order and final acknowledgments, whose flags are all zero (C-2), and not behind an
    unknown tail, which a reader would take for it (C-1). Reports travel without one for simplicity.
    """
    try:
        properties_offset, end = measure(packet)
        (message_class,) = _CLASS.unpack_from(packet, properties_offset)
        return message_class == MessageClass.NORMAL and len(packet) - end < session.SIZE
    except DecodeError:
        return False
