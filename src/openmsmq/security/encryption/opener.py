"""Opens encrypted packets that are like one before: same headers, same session key.

A sender encrypts many messages with one key, and in a row they differ only in time, number, place
in sequence and body. Then only the body has to be decrypted, and the rest is known.
"""

from __future__ import annotations

from openmsmq.security.encryption.ciphers import BodyCipher
from openmsmq.wire.likeness import OpenedLikeness
from openmsmq.wire.packet_parts import PacketParts


class Opener:
    """What packets have in common with one that was opened."""

    def __init__(self, parts: PacketParts, first: bytes, cipher: BodyCipher) -> None:
        self.first = first
        """The first one, opened."""
        self._cipher = cipher
        self._body_size = parts.body_size
        self._likeness = OpenedLikeness(parts, first)

    def fits(self, packet: bytes) -> bool:
        """Whether a packet is like the first one."""
        return self._likeness.fits(packet)

    def open(self, packet: bytes) -> bytes | None:
        """Return a packet that fits with its body decrypted; None if that cannot be."""
        body = self._cipher.decrypt(self._likeness.sealed_body(packet), self._body_size)
        return None if body is None else self._likeness.opened(packet, body)
