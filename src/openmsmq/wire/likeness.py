"""What messages in a row have in common, so that only the first of them is looked at closely.

They differ in time, number, place in sequence and body, and in nothing else. Who encrypts or
decrypts such messages changes the first one, and then only the bodies of the others.
"""

from __future__ import annotations

from typing import Final

from openmsmq.wire.headers import message_properties, transaction, user
from openmsmq.wire.message_bytes import STAMP_END, STAMP_START
from openmsmq.wire.outline import Outline, outline
from openmsmq.wire.packet_parts import PacketParts

_UNUSUAL_IN_SEQUENCE: Final = transaction.FINAL_ACK | transaction.CONNECTOR
"""Wishes of one message, and what would move the headers behind."""


class Likeness:
    """What messages have in common with one that was looked at."""

    def __init__(self, packet: bytes, found: Outline) -> None:
        self.transactional = bool(found.flags & user.TRANSACTION)
        self._size = len(packet)
        self._fixed_end = found.properties_offset + message_properties.FIXED_SIZE
        self.hole_start = self._hole_end = self._fixed_end
        """Where the TransactionHeader starts, if there is one."""
        if self.transactional:
            self.hole_start = found.transaction_offset
            self._hole_end = found.transaction_offset + transaction.FIXED_SIZE
        self._head = packet[:STAMP_START]
        self._middle = packet[STAMP_END : self.hole_start]
        self._tail = packet[self._hole_end : self._fixed_end]

    def fits(self, packet: bytes) -> bool:
        """Whether a message needs no second look."""
        return (
            len(packet) == self._size
            and packet[:STAMP_START] == self._head
            and packet[STAMP_END : self.hole_start] == self._middle
            and packet[self._hole_end : self._fixed_end] == self._tail
            # Whoever wants to be told of the end of one message makes it an unusual one.
            and not (self.transactional and packet[self.hole_start] & _UNUSUAL_IN_SEQUENCE)
        )


class OpenedLikeness(Likeness):
    """The same of messages that are encrypted, and what they become."""

    def __init__(self, parts: PacketParts, opened: bytes) -> None:
        packet, sealed, found = parts.packet, parts.found, outline(opened)
        super().__init__(packet, sealed)
        opened_end = found.properties_offset + message_properties.FIXED_SIZE
        self._body_start = sealed.body_start
        self._body_end = sealed.body_end
        self._rest = sealed.body_end + (sealed.properties_offset - sealed.body_end & 3)
        # The place in a sequence stands before what is protected, in both at the same offset.
        hole_start = hole_end = opened_end
        if self.transactional:
            hole_start, hole_end = self.hole_start, self._hole_end
        self._opened_head = opened[:STAMP_START]
        self._opened_middle = opened[STAMP_END:hole_start]
        self._opened_tail = opened[hole_end:opened_end]
        self._opened_padding = opened[found.body_end : len(opened) - (len(packet) - self._rest)]

    def sealed_body(self, packet: bytes) -> bytes:
        """The encrypted body of a message that fits."""
        return packet[self._body_start : self._body_end]

    def opened(self, packet: bytes, body: bytes) -> bytes:
        """A message that fits, with its body decrypted."""
        return b"".join(
            (
                self._opened_head,
                packet[STAMP_START:STAMP_END],
                self._opened_middle,
                packet[self.hole_start : self._hole_end] if self.transactional else b"",
                self._opened_tail,
                packet[self._fixed_end : self._body_start],
                body,
                self._opened_padding,
                packet[self._rest :],
            )
        )


class SealedLikeness:
    """What messages have in common that differ in their bodies only, and what they become."""

    def __init__(self, parts: PacketParts, sealed: bytes) -> None:
        found = outline(sealed)
        self._body_start = parts.found.body_start
        self._body_end = parts.found.body_start + len(parts.plain_body)
        self._head = parts.packet[: self._body_start]
        self._rest = parts.packet[self._body_end :]
        self._sealed_head = sealed[: found.body_start]
        self._sealed_rest = sealed[found.body_end :]

    def fits(self, packet: bytes) -> bool:
        """Whether a message is like the first one."""
        return (
            len(packet) == self._body_end + len(self._rest)
            and packet.startswith(self._head)
            and packet.endswith(self._rest)
        )

    def plain_body(self, packet: bytes) -> bytes:
        """The body of a message that fits."""
        return packet[self._body_start : self._body_end]

    def sealed(self, body: bytes) -> bytes:
        """The message with its body encrypted."""
        return b"".join((self._sealed_head, body, self._sealed_rest))
