"""Opens encrypted packets that are like one before: same headers, same session key.

A sender encrypts many messages with one key, and in a row they differ only in time, number, place
in sequence and body. Then only the body has to be decrypted, and the rest is known.
"""

from __future__ import annotations

from typing import Final

from openmsmq.security.ciphers import BodyCipher
from openmsmq.security.packet_parts import PacketParts
from openmsmq.wire.headers import message_properties, transaction, user
from openmsmq.wire.outline import outline, transaction_offset

_TIME_AND_NUMBER: Final = slice(52, 60)
_UNUSUAL_IN_SEQUENCE: Final = transaction.FINAL_ACK | transaction.CONNECTOR
"""Wishes of one message, and what would move the headers behind."""


class Opener:
    """What packets have in common with one that was opened."""

    __slots__ = (
        "_body",
        "_body_size",
        "_cipher",
        "_fixed_end",
        "_head",
        "_hole",
        "_is_in_sequence",
        "_middle",
        "_opened_head",
        "_opened_middle",
        "_opened_padding",
        "_opened_tail",
        "_rest",
        "_size",
        "_tail",
        "opened",
    )

    def __init__(self, parts: PacketParts, opened: bytes, cipher: BodyCipher) -> None:
        packet = parts.packet
        found = outline(opened)
        self.opened = opened
        """The first one, opened."""
        self._cipher = cipher
        self._size = len(packet)
        fixed_end = parts.properties_at + message_properties.FIXED_SIZE
        opened_fixed_end = found.properties_offset + message_properties.FIXED_SIZE
        # The place in a sequence stands before what is protected, in both at the same offset.
        start = end = parts.security_at
        if parts.flags & user.TRANSACTION:
            start = transaction_offset(packet)
            end = start + transaction.FIXED_SIZE
        self._hole = slice(start, end)
        self._is_in_sequence = end > start
        self._head = packet[:52]
        self._middle = packet[60:start]
        self._tail = packet[end:fixed_end]
        self._fixed_end = fixed_end
        self._body = slice(parts.body_at, parts.body_end)
        self._body_size = parts.body_size
        self._rest = parts.body_end + (parts.properties_at - parts.body_end & 3)
        self._opened_head = opened[:52]
        self._opened_middle = opened[60:start]
        self._opened_tail = opened[end:opened_fixed_end]
        following = len(opened) - (len(packet) - self._rest)
        self._opened_padding = opened[found.body_end : following]

    def fits(self, packet: bytes) -> bool:
        """Whether a packet is like the first one."""
        return (
            len(packet) == self._size
            and packet[:52] == self._head
            and packet[60 : self._hole.start] == self._middle
            and packet[self._hole.stop : self._fixed_end] == self._tail
            and not (self._is_in_sequence and packet[self._hole.start] & _UNUSUAL_IN_SEQUENCE)
        )

    def open(self, packet: bytes) -> bytes | None:
        """Give a packet that fits with its body decrypted; None if that cannot be."""
        body = self._cipher.decrypt(packet[self._body], self._body_size)
        if body is None:
            return None
        return b"".join(
            (
                self._opened_head,
                packet[_TIME_AND_NUMBER],
                self._opened_middle,
                packet[self._hole],
                self._opened_tail,
                packet[self._fixed_end : self._body.start],
                body,
                self._opened_padding,
                packet[self._rest :],
            )
        )
