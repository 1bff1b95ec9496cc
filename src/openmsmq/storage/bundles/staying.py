"""Bundles whose values stay in a file: that in which they were set aside before they were taken.

What is taken is on the disk already, in a file that nobody changes (`aside` says how). So the base
does not write it again, but says where it is: a bundle of a few dozen bytes. The file belongs to
the base then, until no bundle speaks of it.

If records of such a bundle change or go, the others still stay: it gives way to one for each part
that is left. So to delete something writes hardly anything, also when the disk is full.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, islice
from typing import Final

import msgspec

from openmsmq.storage.bundles.bundle import BUNDLE_MAX_BYTES, BUNDLE_MAX_COUNT, Bundle
from openmsmq.storage.bundles.checksums import CRC_BYTES, checksum_of, is_whole, pack
from openmsmq.storage.layout import ADVICE, aside_name
from openmsmq.storage.port import KEY_NUMBER_BYTES, StoreDamaged, Taken


class Stay(msgspec.Struct, frozen=True, array_like=True):
    """Where the values of a bundle are."""

    file: int
    """The number of their file."""
    offset: int
    length: int
    """So many bytes of it: each value as MessagePack has it, one behind the other."""
    checksum: int
    """The crc32 of these bytes."""
    count: int
    """How many values there are. Their keys end with numbers that follow each other."""
    prefix: bytes = b""
    """What comes before each value."""


class Run(msgspec.Struct, frozen=True):
    """All values of a name, which become records with keys that follow each other."""

    first: bytes
    last: bytes
    stays: list[Stay]
    size_bytes: int
    """The length of their file."""

    @property
    def lasts(self) -> list[bytes]:
        """The last key of each bundle."""
        head, number = self.first[:-KEY_NUMBER_BYTES], _number(self.first) - 1
        ends = accumulate([stay.count for stay in self.stays], initial=number)
        return [head + end.to_bytes(KEY_NUMBER_BYTES, "big") for end in islice(ends, 1, None)]


class FileUse(msgspec.Struct, frozen=True, array_like=True):
    """What the base has in a file."""

    size_bytes: int
    """The length of the file."""
    used_bytes: int
    """So much of it belongs to bundles."""
    first: bytes
    last: bytes
    """No key of these bundles is before the one or behind the other."""


Reader = Callable[[Stay], bytes]
"""Gives the bytes that are said to stay; raises `StoreDamaged` if they are not as they were."""

_MARK: Final = b"\x96"
"""How MessagePack begins a stay, which has six parts; other bundles have two."""
_ARRAY_CODE: Final = b"\xdc"
_ARRAY_LENGTH_BYTES: Final = 2
_SHORT_MAX_BYTES: Final = 0xFF
_MIDDLE_MAX_BYTES: Final = 0xFFFF

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Stay)
_VALUES: Final = msgspec.msgpack.Decoder(list[bytes])


def is_stay(stored: bytes) -> bool:
    """Whether what is stored for a bundle says where its values are."""
    return stored.startswith(_MARK)


def encode(last: bytes, stay: Stay) -> tuple[bytes, bytes]:
    """Make the key and the value under which the base keeps it."""
    return last, pack(last, _ENCODER.encode(stay))


def decode(last: bytes, stored: bytes, read: Reader) -> Bundle | None:
    """Return the bundle, which reads its values when somebody wants one; None if it is damaged."""
    if not is_whole(last, stored):
        return None
    stay = _DECODER.decode(memoryview(stored)[:-CRC_BYTES])
    head, number = last[:-KEY_NUMBER_BYTES], _number(last)
    numbers = range(number - stay.count + 1, number + 1)
    keys = [head + each.to_bytes(KEY_NUMBER_BYTES, "big") for each in numbers]
    prefix = stay.prefix
    return Bundle(
        keys, stay=stay, read=lambda: [prefix + value for value in _values(stay, read(stay))]
    )


def pieces_of(values: Sequence[bytes], payload: bytes, file: int, start: int) -> list[Stay]:
    """Divide values into pieces, each as long as a bundle or a single value.

    `payload` is a list that ends with them, at `start` in their file.
    """
    count = len(values)
    ends = ends_of(values)
    before = len(payload) - ends[-1]
    data = memoryview(payload)[before:]
    pieces: list[Stay] = []
    place = 0
    while place < count:
        most = min(place + BUNDLE_MAX_COUNT, count)
        stop = bisect_right(ends, ends[place] + BUNDLE_MAX_BYTES, place, most + 1) - 1
        stop = max(place + 1, stop)
        part = data[ends[place] : ends[stop]]
        offset = start + before + ends[place]
        pieces.append(Stay(file, offset, len(part), checksum_of(part), stop - place))
        place = stop
    return pieces


def run_of(taken: Taken, pieces: Sequence[Stay], size_bytes: int) -> Run | None:
    """Return what is taken, given the pieces of its name; None if not all values are."""
    if taken.first or not taken.count or taken.count != sum([piece.count for piece in pieces]):
        return None
    stays = [
        Stay(each.file, each.offset, each.length, each.checksum, each.count, taken.prefix)
        for each in pieces
    ]
    return Run(taken.key, taken.key_of(taken.count - 1), stays, size_bytes)


def parts_of(stay: Stay, data: bytes, places: Iterable[tuple[int, int]]) -> list[Stay]:
    """Say where parts of a bundle are, each from one of its values up to another one.

    `data` is what stays.
    """
    ends = ends_of(_values(stay, data))
    parts: list[Stay] = []
    for start, stop in places:
        part = memoryview(data)[ends[start] : ends[stop]]
        offset = stay.offset + ends[start]
        parts.append(
            Stay(stay.file, offset, len(part), checksum_of(part), stop - start, stay.prefix)
        )
    return parts


def ends_of(values: Sequence[bytes]) -> list[int]:
    """Return where values end that MessagePack has put behind each other, and a 0 before all."""
    sizes = list(map(len, values))
    least = _head_bytes(min(sizes, default=0))
    if least == _head_bytes(max(sizes, default=0)):
        sizes = [size + least for size in sizes]
    else:
        sizes = [size + _head_bytes(size) for size in sizes]
    return list(accumulate(sizes, initial=0))


def _number(key: bytes) -> int:
    return int.from_bytes(key[-KEY_NUMBER_BYTES:], "big")


def _head_bytes(length: int) -> int:
    """Return how long MessagePack makes what stands before a value."""
    return 2 if length <= _SHORT_MAX_BYTES else 3 if length <= _MIDDLE_MAX_BYTES else 5


def _values(stay: Stay, data: bytes) -> list[bytes]:
    length = stay.count.to_bytes(_ARRAY_LENGTH_BYTES, "big")
    try:
        return _VALUES.decode(b"".join((_ARRAY_CODE, length, data)))
    except msgspec.DecodeError as error:
        raise StoreDamaged(
            f"{aside_name(stay.file)}: what stays at {stay.offset} has a valid checksum but is not "
            f"readable ({error}): {ADVICE}"
        ) from None
