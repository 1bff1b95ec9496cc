"""Fragments: IP packets that came in parts, put together again."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from openmsmq.capture.link_layers import Fragment, IpPacket, skip_extensions
from openmsmq.capture.pieces import PIECE_COST_BYTES, Piece, Pieces

FRAGMENT_BYTES_MAX: Final = 16 * 1024 * 1024
"""What all unfinished packets together may hold; beyond it the oldest is given up."""


_Key: TypeAlias = tuple[bytes, bytes, int]


class _Unfinished(msgspec.Struct):
    pieces: Pieces
    protocol: int = 0
    size: int | None = None

    @property
    def cost(self) -> int:
        """What it counts against the limit; a packet of which nothing came yet counts too."""
        return self.pieces.cost + PIECE_COST_BYTES


class FragmentTable:
    """Collects fragments until the packet they belong to is whole."""

    def __init__(self, held_bytes_max: int = FRAGMENT_BYTES_MAX) -> None:
        self._held_bytes_max = held_bytes_max
        self._unfinished: dict[_Key, _Unfinished] = {}
        self._cost = 0
        self.lost = 0
        """How many packets were given up, or are not whole yet when the capture ends."""

    def add(self, packet: IpPacket) -> IpPacket | None:
        """Take a packet; give it back if it is whole, or the whole that it completes, or None."""
        if packet.fragment is None:
            return packet
        key = (packet.source, packet.destination, packet.fragment.id)
        entry = self._unfinished.get(key)
        if entry is None:
            entry = self._unfinished[key] = _Unfinished(Pieces())
        else:
            self._cost -= entry.cost
        _place(entry, packet, packet.fragment)
        self._cost += entry.cost
        payload = _whole(entry)
        if payload is not None:
            self._forget(key)
            whole = IpPacket(packet.source, packet.destination, entry.protocol, payload)
            return skip_extensions(whole) if len(packet.source) == 16 else whole
        while self._cost > self._held_bytes_max:
            self._forget(next(iter(self._unfinished)))
            self.lost += 1
        return None

    def finish(self) -> None:
        """Give up what the capture did not complete."""
        self.lost += len(self._unfinished)
        self._unfinished.clear()
        self._cost = 0

    def _forget(self, key: _Key) -> None:
        self._cost -= self._unfinished.pop(key).cost


def _place(entry: _Unfinished, packet: IpPacket, fragment: Fragment) -> None:
    if packet.payload:
        entry.pieces.add(Piece(fragment.offset, packet.payload, 0, 0))
    if fragment.offset == 0:
        entry.protocol = packet.protocol
    if not fragment.more and not packet.missing:
        entry.size = fragment.offset + len(packet.payload)


def _whole(entry: _Unfinished) -> bytes | None:
    if entry.size is None or not entry.pieces.fill(entry.size):
        return None
    return b"".join(piece.data for piece in entry.pieces)
