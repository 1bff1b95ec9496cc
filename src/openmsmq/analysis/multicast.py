"""Multicast: packets of PGM become the messages that they carry, and what is missing is counted.

A packet may come twice, late, or as a repair: its number tells. A message is whole when all of its
parts are there, in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from openmsmq.analysis.events import Anomaly, Moment
from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.capture.link_layers import Endpoint, PgmDatagram
from openmsmq.capture.pieces import PIECE_COST_BYTES, Piece, Pieces
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.pgm.options import Fragment
from openmsmq.wire.pgm.packets import Data, SourceId, decode

SOURCES_MAX_COUNT: Final = 1_024
"""Sources that are followed; beyond it the one silent longest is forgotten."""
NUMBERS_MAX_COUNT: Final = 65_536
"""Packets of one source that are remembered, so that none counts twice."""
UNFINISHED_MAX_COUNT: Final = 64
"""Messages of one source of which parts are missing; beyond it the oldest is given up."""
HELD_BYTES_MAX: Final = 16 * 1024 * 1024
"""What the parts of all of them may take."""
MESSAGE_MAX_BYTES: Final = 65_536
"""No message of multicast is longer. [MQSRM 2.1.3.1]"""
_NUMBERS: Final = 1 << 32

_Key: TypeAlias = tuple[SourceId, bytes, bytes, int]


class FoundMessage(msgspec.Struct, frozen=True, gc=False):
    """A message that is whole."""

    at: Moment
    source: Endpoint
    destination: Endpoint
    data: bytes


class _Unfinished(msgspec.Struct):
    length: int
    pieces: Pieces

    @property
    def cost(self) -> int:
        return self.pieces.cost + PIECE_COST_BYTES


class _Source:
    """What was seen of one source in one group."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.lowest = self.highest = 0
        """The first and last number, counted from the one that was seen first."""
        self.count = 0
        self.numbers: dict[int, None] = {}
        self.unfinished: dict[int, _Unfinished] = {}
        self.last = Moment(0, 0)

    @property
    def missing_count(self) -> int:
        """Packets between the first and the last that nobody has seen."""
        return max(0, self.highest - self.lowest + 1 - self.count)

    @property
    def cost(self) -> int:
        """What the parts that it holds count."""
        return sum(each.cost for each in self.unfinished.values())

    def is_new(self, number: int) -> bool:
        """Note a number; return whether it was not seen before."""
        if number in self.numbers:
            return False
        self.numbers[number] = None
        if len(self.numbers) > NUMBERS_MAX_COUNT:
            del self.numbers[next(iter(self.numbers))]
        away = (number - self.first) % _NUMBERS
        away -= _NUMBERS * (away >= _NUMBERS // 2)
        self.lowest, self.highest = min(self.lowest, away), max(self.highest, away)
        self.count += 1
        return True


class MulticastReader:
    """Takes packets in the order of the capture and gives the messages that they complete."""

    def __init__(self, *, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        self._held_bytes_max = held_bytes_max
        self._sources: dict[_Key, _Source] = {}
        self._cost = 0

    def __len__(self) -> int:
        """How many bytes are held."""
        return self._cost

    def take(self, datagram: PgmDatagram, at: Moment) -> Iterator[FoundMessage | Anomaly]:
        """Take the next packet; yield what it completes."""
        try:
            packet = decode(datagram.payload)
        except DecodeError as error:
            yield Anomaly(
                AnomalyKind.MALFORMED_PACKET,
                f"a packet of multicast does not decode: {error}",
                *at,
            )
            return
        body = packet.body
        if not isinstance(body, Data):
            return
        group = datagram.destination
        key = (packet.source, datagram.source.address, group.address, packet.port)
        source = self._sources.pop(key, None) or _Source(body.number)
        self._sources[key] = source
        source.last = at
        if source.is_new(body.number):
            data = self._message(source, body)
            if data is not None:
                yield FoundMessage(at, datagram.source, Endpoint(group.address, packet.port), data)
        if len(self._sources) > SOURCES_MAX_COUNT:
            yield from self._forget(next(iter(self._sources)))

    def finish(self) -> Iterator[Anomaly]:
        """Yield what is missing: the capture is over."""
        while self._sources:
            yield from self._forget(next(iter(self._sources)))

    def _message(self, source: _Source, packet: Data) -> bytes | None:
        part = packet.options.fragment
        if part is None:
            return packet.data or None
        if not 0 < part.length <= MESSAGE_MAX_BYTES or not packet.data:
            return None
        return self._joined(source, part, packet.data)

    def _joined(self, source: _Source, part: Fragment, data: bytes) -> bytes | None:
        before = source.cost
        found = source.unfinished.get(part.first)
        if found is None or found.length != part.length:
            found = source.unfinished[part.first] = _Unfinished(part.length, Pieces())
        found.pieces.add(Piece(part.offset, data, 0, 0))
        whole = None
        if found.pieces.fill(found.length):
            whole = b"".join(piece.data for piece in found.pieces)
            del source.unfinished[part.first]
        elif len(source.unfinished) > UNFINISHED_MAX_COUNT:
            del source.unfinished[next(iter(source.unfinished))]
        self._cost += source.cost - before
        while self._cost > self._held_bytes_max:
            oldest = next(each for each in self._sources.values() if each.unfinished)
            self._cost -= oldest.cost
            oldest.unfinished.clear()
        return whole

    def _forget(self, key: _Key) -> Iterator[Anomaly]:
        source = self._sources.pop(key)
        self._cost -= source.cost
        if source.missing_count:
            yield Anomaly(
                AnomalyKind.MISSING_PACKETS,
                f"{source.missing_count} packets of multicast of source {key[0]} were seen neither "
                "when they were sent nor as repairs",
                *source.last,
            )
