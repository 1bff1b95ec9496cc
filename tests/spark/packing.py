"""Messages side by side, as a queue manager answers with them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import msgspec

from openmsmq.api.messages import PLACE_FORMAT, Packets

Place = tuple[int, int, int, int]
"""arrived_time_s, moved_time_s, abort_count, move_count"""

SOME_PLACE: Place = (1_790_000_000, 0, 0, 0)


def pack(
    packets: Sequence[bytes],
    places: Sequence[Place] = (),
    lookup_ids: Sequence[int] = (),
) -> Packets:
    """Put packets side by side; without places and numbers they get some."""
    places = places or [SOME_PLACE] * len(packets)
    lookup_ids = lookup_ids or [4 << 56 | number for number in range(1, len(packets) + 1)]
    entries = [
        msgspec.msgpack.encode(struct.pack(PLACE_FORMAT, *place) + packet)
        for place, packet in zip(places, packets, strict=True)
    ]
    return Packets(
        b"".join(number.to_bytes(8, "big") for number in lookup_ids),
        b"".join(struct.pack("<I", len(entry)) for entry in entries),
        b"".join(entries),
    )
