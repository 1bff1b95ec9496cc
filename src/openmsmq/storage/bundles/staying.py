"""Bundles whose values stay in a file: that in which they were set aside before they were taken.

What is taken is on the disk already, in a file that nobody changes (`aside` says how). So the base
does not write it again, but says where it is: a bundle of a few dozen bytes. The file belongs to
the base then, until no bundle speaks of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from openmsmq.storage.bundles.bundle import Bundle
from openmsmq.storage.bundles.checksums import CRC_BYTES, is_whole, pack
from openmsmq.storage.port import KEY_NUMBER_BYTES


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
    prefix: bytes
    """What comes before each value."""


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
    head, number = last[:-KEY_NUMBER_BYTES], int.from_bytes(last[-KEY_NUMBER_BYTES:], "big")
    numbers = range(number - stay.count + 1, number + 1)
    keys = [head + each.to_bytes(KEY_NUMBER_BYTES, "big") for each in numbers]
    return Bundle(keys, stay=stay, read=lambda: _values(stay, read))


def _values(stay: Stay, read: Reader) -> list[bytes]:
    data = read(stay)
    length = stay.count.to_bytes(_ARRAY_LENGTH_BYTES, "big")
    prefix = stay.prefix
    return [prefix + value for value in _VALUES.decode(b"".join((_ARRAY_CODE, length, data)))]
