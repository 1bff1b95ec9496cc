"""What every codec of the wire must hold, whatever it encodes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import Field


@st.composite
def damaged(draw: st.DrawFn, good: st.SearchStrategy[bytes]) -> bytes:
    """Draw good bytes with a few changed, some cut off or some added; or any bytes at all."""
    if draw(st.integers(0, 5)) == 0:
        return draw(st.binary(max_size=120))
    raw = bytearray(draw(good))
    for _ in range(draw(st.integers(0, 3))):
        if raw:
            raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255) | st.just(0))
    if draw(st.booleans()):
        raw += draw(st.binary(max_size=9))
    return bytes(raw[: draw(st.integers(0, len(raw)))] if draw(st.booleans()) else raw)


def assert_survives(module: ModuleType, header: Any, before: bytes, after: bytes) -> None:
    """A header reads back as itself wherever it stands, and can be passed over."""
    raw = header.write()
    data = before + raw + after
    end = len(before) + len(raw)
    assert module.read(data, len(before)) == (header, end)
    assert module.skip(data, len(before)) == end


def assert_same_or_refused(module: ModuleType, data: bytes) -> None:
    """What reads as a header is written as the same bytes; all else is a `DecodeError`."""
    try:
        header, end = module.read(data, 0)
    except DecodeError:
        return
    assert header.write() == data[:end]
    assert module.skip(data, 0) == end
    assert_fields_cover(header.fields(), end)


def assert_decodes_to_same_or_refused(decode: Callable[[bytes], Any], data: bytes) -> None:
    """The same for what fills all the bytes it is given."""
    try:
        value = decode(data)
    except DecodeError:
        return
    assert value.encode() == data
    assert_fields_cover(value.fields(), len(data))


def assert_no_prefix_decodes(decode: Callable[[bytes], Any], data: bytes) -> None:
    """Bytes cut off anywhere are refused."""
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            decode(data[:size])


def assert_fields_cover(fields: Iterable[Field], size: int) -> None:
    """The text view shows every byte once, also inside grouped fields."""
    shown = list(fields)
    assert sum(field.size for field in shown) == size
    for field in shown:
        if isinstance(field.value, list):
            assert_fields_cover(field.value, field.size)


def assert_refused_cheaply(decode: Callable[[bytes], Any], data: bytes) -> None:
    """A count or size that lies is refused before memory is reserved for it."""
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
