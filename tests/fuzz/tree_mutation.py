"""Changing MessagePack: a value is replaced by another, and what is around it stays well formed.

A changed byte mostly makes a frame that says nothing. A changed value reaches the code that has to
judge it.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Any, Final

import msgspec

from tests.fuzz.mutation import repair_stream
from tests.fuzz.registry import Repair

_LENGTH: Final = struct.Struct("<I")
_FRAMES_MAX_COUNT: Final = 32
_NUMBERS: Final = (
    -1,
    0,
    1,
    2,
    3,
    255,
    65_536,
    (1 << 31) - 1,
    1 << 32,
    (1 << 56) - 1,
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
)
_TEXTS: Final = (
    "",
    r"private$\orders",
    r"private$\orders;journal",
    r"private$\ledger;sub",
    r"DIRECT=OS:ALPHA\private$\orders",
    r"DIRECT=TCP:10.0.0.2\system$;deadxact",
    "a" * 300,
    "\0",
    "\u00e9\ud7ff",
)
_DEEP: Final = msgspec.Raw(b"\x91" * 1_500 + b"\xc0")
"""A list in a list in a list: deeper than a decoder that calls itself can go."""


def repair_tree(data: bytes, random: Random) -> bytes:
    """Change one value, and write the rest as it was."""
    if random.randrange(4) == 0:
        return data
    try:
        tree = msgspec.msgpack.decode(data)
        return msgspec.msgpack.encode(_changed(tree, random))
    except (ValueError, RecursionError, OverflowError, TypeError):
        return data


def repair_calls(data: bytes, random: Random) -> bytes:
    """Set the lengths of frames right, and change a value in one of them."""
    frames: list[bytes] = []
    at = 0
    while at + _LENGTH.size <= len(data) and len(frames) < _FRAMES_MAX_COUNT:
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        frames.append(data[at : at + length])
        at += length
    if not frames or random.randrange(8) == 0:
        return data
    chosen = random.randrange(len(frames))
    frames[chosen] = repair_tree(frames[chosen], random)
    if random.randrange(4) == 0:
        frames.insert(random.randrange(len(frames) + 1), random.choice(frames))
    return b"".join(_LENGTH.pack(len(frame)) + frame for frame in frames)


def _changed(tree: Any, random: Random) -> Any:
    """Walk down at random, and change what is there."""
    if isinstance(tree, list) and tree and random.randrange(6):
        at = random.randrange(len(tree))
        return [*tree[:at], _changed(tree[at], random), *tree[at + 1 :]]
    if isinstance(tree, dict) and tree and random.randrange(6):
        key = random.choice(sorted(tree, key=str))
        return {**tree, key: _changed(tree[key], random)}
    if isinstance(tree, dict) and random.randrange(2):
        return {**tree, "unknown": _other(1, random)}
    return _other(tree, random)


def _other(value: Any, random: Random) -> Any:
    if random.randrange(12) == 0:
        return random.choice((None, True, [], {}, "", b"", 0.5, [value] * 3, _DEEP))
    match value:
        case bool():
            return not value
        case int():
            return random.choice((*_NUMBERS, value + 1, value - 1))
        case str():
            return random.choice((*_TEXTS, value + "x", value[:-1], value.upper()))
        case bytes():
            return random.choice((b"", value[:-1], value + b"x", random.randbytes(len(value))))
        case list():
            return random.choice(([], value[:-1], value + value))
        case _:
            return random.choice((None, 0, "", b"", []))


REPAIRS: Final[dict[str, Repair]] = {
    "calls": repair_calls,
    "sessions": repair_stream,
    "directory": repair_tree,
}
