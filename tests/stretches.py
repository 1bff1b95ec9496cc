"""Records that a store gives side by side, taken apart as whoever gets them would."""

from __future__ import annotations

import msgspec

from openmsmq.storage.port import Stretch, head_bytes


def records_in(stretch: Stretch) -> list[tuple[bytes, bytes]]:
    """Take records apart; every byte must belong to one."""
    count = len(stretch.sizes)
    step = len(stretch.keys) // count
    keys = [stretch.keys[place : place + step] for place in range(0, len(stretch.keys), step)]
    values, end = [], 0
    for size in stretch.sizes:
        start, end = end, end + size
        value = msgspec.msgpack.decode(stretch.values[start:end], type=bytes)
        assert len(value) == size - head_bytes(size)
        values.append(value)
    assert end == len(stretch.values)
    assert stretch.values_bytes == sum(map(len, values))
    names = [msgspec.msgpack.decode(name, type=bytes) for name in keys]
    return list(zip(names, values, strict=True))


def within(
    records: list[tuple[bytes, bytes]], count_max: int, bytes_max: int
) -> list[tuple[bytes, bytes]]:
    """Return the first records up to a count, or up to the one that reaches so many bytes."""
    found: list[tuple[bytes, bytes]] = []
    for record in records[:count_max]:
        found.append(record)
        bytes_max -= len(record[1])
        if bytes_max <= 0:
            break
    return found
