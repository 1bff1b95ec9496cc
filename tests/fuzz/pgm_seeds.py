"""Where the targets of multicast start: what our own source sends; and checksums that are right."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from openmsmq.protocol.pgm.outputs import Profile
from openmsmq.protocol.pgm.source import Source
from openmsmq.wire.pgm.packets import SourceId, stamped
from tests.fuzz.pgm_targets import ADDRESS, GROUP
from tests.fuzz.registry import Repair
from tests.unit.protocol.pgm.network import GSI


def packets() -> list[bytes]:
    """Packets of all kinds that a source sends, and a large message in pieces."""
    source = Source(SourceId(GSI, 1), GROUP, ADDRESS, Profile(), 0, 0)
    found = []
    for now_ms in range(0, 5_000, 100):
        source.wake(now_ms)
        if now_ms in (1_000, 2_000):
            source.send(bytes(now_ms), now_ms)
        found += [each.data for each in source.take_outputs()]
    return found


def streams() -> list[bytes]:
    """The same, one behind the other, with a hole and turned round."""
    pieces = [len(each).to_bytes(2, "big") + each for each in packets()]
    return [b"".join(pieces), b"".join(pieces[:3] + pieces[4:]), b"".join(reversed(pieces))]


def right_packet(data: bytes, random: Random) -> bytes:
    """Give a packet the checksum that it should have, mostly."""
    if len(data) < 16 or random.random() < 0.1:
        return data
    return stamped(data[:6] + bytes(2) + data[8:])


def right_stream(data: bytes, random: Random) -> bytes:
    """Give all packets of a stream their checksums, mostly."""
    found = b""
    while len(data) > 2:
        size = int.from_bytes(data[:2], "big")
        found += data[:2] + right_packet(data[2 : 2 + size], random)
        data = data[2 + size :]
    return found + data


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "multicast-packets": packets,
    "multicast-streams": streams,
    "multicast-captures": streams,
}
REPAIRS: Final[dict[str, Repair]] = {
    "multicast-packets": right_packet,
    "multicast-streams": right_stream,
    "multicast-captures": right_stream,
}
