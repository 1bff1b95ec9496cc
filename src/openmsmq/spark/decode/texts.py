"""Texts of many messages at once, as Arrow's strings: what is in bytes, UTF-16 or numbers.

The usual texts are converted all together. For the others the functions of the scalar codec run
row by row, so that a text is the same whichever way it came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from openmsmq.spark.decode.packed import Flags, Numbers, Octets
from openmsmq.wire.fields.cursor import utf16_text

_HEX: Final = np.frombuffer("".join(f"{octet:02x}" for octet in range(256)).encode(), "<u2")
_GUID_ORDER: Final = np.array([3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15])
_GUID_DIGITS: Final = np.array([place for place in range(1, 37) if place not in (9, 14, 19, 24)])
_BACKSLASH: Final = "\\"
_GROUP: Final = np.uint32(10_000)
_FOUR_DIGITS: Final = np.frombuffer(
    "".join(f"{number:04}" for number in range(_GROUP)).encode(), "<u4"
)
_GROUPS_OF_DIGITS: Final = 3
"""Numbers of 32 bits have up to ten digits."""

_TAB, _LINE_FEED, _RETURN, _SPACE, _DELETE = 0x09, 0x0A, 0x0D, 0x20, 0x7F
_FOREIGN: Final = 0x80
_BEGINS_TEXT: Final = np.array(
    [octet >= _SPACE or octet in (_TAB, _LINE_FEED, _RETURN) for octet in range(256)]
)
"""Which bytes a text may begin with."""
_CHUNK_BYTES: Final = 1 << 18


def guid_texts(octets: Octets) -> pa.Array:
    """Return GUIDs as text."""
    return _guids(octets, braces=False)


def identifiers(sources: Octets, numbers: NDArray[Any]) -> pa.Array:
    r"""Return identifiers of messages or transactions as text: `{guid}\number`.

    There is one source for each number, or only one for all.
    """
    if sources.ndim == 1:
        source = _guids(sources[np.newaxis], braces=True)[0].as_py()
        return _numbered((source + _BACKSLASH).encode(), numbers)
    digits = pa.array(np.ascontiguousarray(numbers)).cast(pa.string())
    return pc.binary_join_element_wise(_guids(sources, braces=True), digits, _BACKSLASH)


def _numbered(prefix: bytes, numbers: NDArray[Any]) -> pa.Array:
    """Put the same text before numbers of up to 32 bits."""
    size = len(str(numbers.max()))
    if size != len(str(numbers.min())):
        digits = pa.array(np.ascontiguousarray(numbers)).cast(pa.string())
        return pc.binary_join_element_wise(prefix.decode(), digits, "")
    # Neighbours have numbers of the same length, so they make a table. Four digits are looked up.
    groups = np.empty((len(numbers), _GROUPS_OF_DIGITS), np.uint32)
    rest = numbers.astype(np.uint32)
    for group in range(_GROUPS_OF_DIGITS - 1, _GROUPS_OF_DIGITS - 1 - (size + 3) // 4, -1):
        higher = rest // _GROUP
        groups[:, group] = _FOUR_DIGITS.take(rest - higher * _GROUP)
        rest = higher
    table = np.empty((len(numbers), len(prefix) + size), np.uint8)
    table[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    table[:, len(prefix) :] = groups.view(np.uint8)[:, -size:]
    return _strings(np.arange(0, table.size + 1, table.shape[1], dtype=np.int32), table)


def choose(texts: Sequence[str | None], numbers: NDArray[Any]) -> pa.Array:
    """Return for each number the text that has it."""
    return pa.array(texts, pa.string()).take(pa.array(np.ascontiguousarray(numbers)))


def spread(values: pa.Array, there: Flags) -> pa.Array:
    """Return the values, in their order, to the rows that have one; the other rows get null."""
    if there.ndim == 0 or len(values) == len(there):
        return values
    if len(values) == 0:
        return pa.nulls(len(there), values.type)
    return values.take(pa.array(np.cumsum(there, dtype=np.int32) - 1, mask=~there))


def wide_texts(raw: pa.Array) -> pa.Array:
    """Read UTF-16 up to the first NUL, as `utf16_text` does."""
    return pa.concat_arrays([_wide_texts(chunk) for chunk in _chunks(raw)])


def _wide_texts(raw: pa.Array) -> pa.Array:
    edges, octets = _content(raw)
    if (edges & 1).any():
        return _one_by_one(raw)
    units: NDArray[np.uint16] = octets.view("<u2")
    edges = edges >> 1
    if len(units) == 0:
        return _strings(edges, octets)
    if units.min() == 0:
        starts, ends = edges[:-1], edges[1:]
        terminated = (ends > starts) & (units[ends - 1] == 0)
        if np.count_nonzero(units == 0) != np.count_nonzero(terminated):
            return _one_by_one(raw)
        edges = np.concatenate(([0], ends - np.cumsum(terminated)))
        units = units[units != 0]
    if len(units) == 0 or units.max() < _FOREIGN:
        return _strings(edges, units.astype(np.uint8))
    sizes = _sizes_in_utf8(units, edges)
    if sizes is None:
        return _one_by_one(raw)
    text = units.tobytes().decode("utf-16-le").encode()
    filled = np.flatnonzero(np.diff(edges))
    row_sizes = np.zeros(len(raw), np.int64)
    row_sizes[filled] = np.add.reduceat(sizes, edges[filled], dtype=np.int64)
    return _strings(np.concatenate(([0], np.cumsum(row_sizes))), np.frombuffer(text, np.uint8))


def narrow_texts(raw: pa.Array) -> pa.Array:
    """Read UTF-8 that looks like text, as `body_text` does; what does not is null."""
    edges, octets = _content(raw)
    filled = np.flatnonzero(np.diff(edges))
    readable = np.ones(len(raw), bool)
    starts = edges[filled]
    if not _BEGINS_TEXT.take(octets.take(starts)).any():
        # The first bytes say it already, as they do of most bodies that are not text. To look at
        # all bytes takes long.
        readable[filled] = False
    else:
        lowest, highest = np.minimum.reduceat(octets, starts), np.maximum.reduceat(octets, starts)
        # If the lowest byte is no control character, none is. If it is one of the three that texts
        # have, others may stand above it.
        broken = np.isin(lowest, (_TAB, _LINE_FEED, _RETURN))
        possible = (broken | (lowest >= _SPACE)) & (highest != _DELETE)
        rows = filled[broken & possible]
        readable[filled] = possible
        readable[rows] = _of_all(_rows(raw, rows), _have_no_control)
        rows = filled[possible & (highest >= _FOREIGN)]
        rows = rows[readable[rows]]
        readable[rows] = _of_all(_rows(raw, rows), _are_readable)
    if not readable.any():
        return pa.nulls(len(raw), pa.string())
    texts = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    if readable.all():
        return texts
    return texts.take(pa.array(np.arange(len(raw), dtype=np.int32), mask=~readable))


def _sizes_in_utf8(units: NDArray[np.uint16], edges: Numbers) -> Octets | None:
    """Return the bytes that each unit of UTF-16 takes in UTF-8; None if it is not UTF-16."""
    sizes: Octets = (units >= 0x80).astype(np.uint8) + (units >= 0x800) + np.uint8(1)
    surrogates = units & 0xF800 == 0xD800
    if surrogates.any():
        high, low = units & 0xFC00 == 0xD800, units & 0xFC00 == 0xDC00
        begins_low = low[edges[:-1][np.diff(edges) > 0]].any()
        if begins_low or high[-1] or (high[:-1] != low[1:]).any():
            return None
        # A pair takes four bytes.
        sizes -= surrogates
    return sizes


def _have_no_control(raw: pa.Array) -> Flags:
    """Return which values have no control character but those of texts; none is below a tab."""
    edges, octets = _content(raw)
    # Vertical tab becomes 0. Counting goes round, so tab and line feed become high numbers.
    above = octets - np.uint8(_LINE_FEED + 1)
    fine = above >= _SPACE - _LINE_FEED - 1
    fine |= above == _RETURN - _LINE_FEED - 1
    found: Flags = np.logical_and.reduceat(fine, edges[:-1])
    return found


def _are_readable(raw: pa.Array) -> Flags:
    """Return which values are UTF-8 that people can read."""
    edges, octets = _content(raw)
    # All together first: then every value must begin with a character, not in the middle of one.
    if _is_readable(octets.tobytes()) and (octets[edges[:-1]] & 0xC0 != 0x80).all():
        return np.ones(len(raw), bool)
    return np.fromiter(map(_is_readable, _values(raw)), bool, len(raw))


def _is_readable(octets: bytes) -> bool:
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        return False
    return text.isprintable() or (
        text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable()
    )


def _one_by_one(raw: pa.Array) -> pa.Array:
    return pa.array(list(map(utf16_text, _values(raw))), pa.string())


def _rows(raw: pa.Array, rows: Numbers) -> pa.Array:
    return raw if len(rows) == len(raw) else raw.take(pa.array(rows))


def _values(raw: pa.Array) -> list[bytes]:
    edges, octets = _content(raw)
    data = octets.tobytes()
    return [data[start:end] for start, end in pairwise(edges.tolist())]


def _of_all(raw: pa.Array, say: Callable[[pa.Array], Flags]) -> Flags:
    if len(raw) == 0:
        return np.zeros(0, bool)
    return np.concatenate([say(chunk) for chunk in _chunks(raw)])


def _chunks(raw: pa.Array) -> list[pa.Array]:
    """Cut values into pieces that stay in the processor's cache while they are worked on."""
    size = max(1, len(raw) * _CHUNK_BYTES // (raw.nbytes or 1))
    return [raw.slice(start, size) for start in range(0, len(raw), size)] or [raw]


def _content(raw: pa.Array) -> tuple[Numbers, Octets]:
    """Return the edges and bytes of values that have no nulls."""
    _, offsets, data = raw.buffers()
    edges = np.frombuffer(offsets, np.int32)[raw.offset :][: len(raw) + 1].astype(np.int64)
    first, last = edges[0], edges[-1]
    return edges - first, np.frombuffer(data or b"", np.uint8)[first:last]


def _strings(offsets: Numbers, octets: Octets) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32, copy=False)), pa.py_buffer(octets)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _guids(octets: Octets, *, braces: bool) -> pa.Array:
    digits = np.ascontiguousarray(_HEX[octets[:, _GUID_ORDER]]).view(np.uint8)
    texts = np.full((len(octets), 38), ord("-"), np.uint8)
    texts[:, 0], texts[:, 37] = ord("{"), ord("}")
    texts[:, _GUID_DIGITS] = digits.reshape(-1, 32)
    if not braces:
        texts = np.ascontiguousarray(texts[:, 1:37])
    size = texts.shape[1]
    return _strings(np.arange(0, size * (len(octets) + 1), size), texts)
