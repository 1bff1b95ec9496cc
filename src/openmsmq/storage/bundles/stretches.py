"""The records of a bundle as they lie in it, side by side: nobody takes them apart.

The bytes of a bundle are MessagePack: a list of keys, which are equally long, and a list of values.
So a part of it is a slice of each, and only the sizes of the values have to be found out.
"""

from __future__ import annotations

from typing import Final

from openmsmq.storage.port import Stretch

_SHORT_LIST_MASK: Final = 0x0F
_LONG_LIST_CODE: Final = 0xDC
_BYTES_8: Final = 0xC4
_BYTES_16: Final = 0xC5
_SHORT_MAX_BYTES: Final = 0xFF + 2
"""The longest value with one byte for its length, together with what stands before it."""


def stretch_in(
    stored: bytes, start: bytes, stop: bytes, count_max: int, bytes_max: int
) -> Stretch | None:
    """Return the records with `start` <= key < `stop`; None if there are none.

    They are up to `count_max`, and end at the latest with the one that reaches `bytes_max`.
    """
    # Behind the mark of a pair.
    count = _length(stored, 1)
    first_key = 1 + _length_bytes(stored, 1)
    step = 2 + stored[first_key + 1]
    begin = _place_of(start, stored, first_key, step, count)
    end = min(_place_of(stop, stored, first_key, step, count), begin + count_max)
    place = first_key + count * step
    place += _length_bytes(stored, place)
    for _ in range(begin):
        place += _size(stored, place)
    first_value = place
    sizes: list[int] = []
    left_bytes = bytes_max
    for _ in range(begin, end):
        size = _size(stored, place)
        sizes.append(size)
        place += size
        left_bytes -= size - (2 if size <= _SHORT_MAX_BYTES else 3)
        if left_bytes <= 0:
            break
    if not sizes:
        return None
    keys = stored[first_key + begin * step : first_key + (begin + len(sizes)) * step]
    return Stretch(keys, sizes, memoryview(stored)[first_value:place], bytes_max - left_bytes)


def _place_of(key: bytes, stored: bytes, first_key: int, step: int, count: int) -> int:
    """Return how many keys come before another one."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        begin = first_key + middle * step
        if stored[begin + 2 : begin + step] < key:
            low = middle + 1
        else:
            high = middle
    return low


def _size(stored: bytes, place: int) -> int:
    """Return how long a value is, with what stands before it: in a bundle none is very long."""
    if stored[place] == _BYTES_16:
        return ((stored[place + 1] << 8) | stored[place + 2]) + 3
    return stored[place + 1] + 2


def first_key_of(stored: bytes) -> bytes | None:
    """Return the first key of a bundle; None if its keys are too long for what is here."""
    place = 1 + _length_bytes(stored, 1)
    if stored[place] != _BYTES_8:
        return None
    return stored[place + 2 : place + 2 + stored[place + 1]]


def _length(stored: bytes, place: int) -> int:
    """Return how long a list is."""
    code = stored[place]
    if code == _LONG_LIST_CODE:
        return (stored[place + 1] << 8) | stored[place + 2]
    return code & _SHORT_LIST_MASK


def _length_bytes(stored: bytes, place: int) -> int:
    """Return how many bytes stand before the first element of a list."""
    return 3 if stored[place] == _LONG_LIST_CODE else 1
