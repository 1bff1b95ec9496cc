"""The bytes of many messages side by side, and taking the same part out of all of them at once.

Whatever the places say that it is asked to read, it reads inside the bytes it has. Places that
come from the messages are checked by those who ask, before they believe what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from openmsmq.api.messages import Packets
from openmsmq.spark.errors import QueueProblem

Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Octets: TypeAlias = NDArray[np.uint8]
Records: TypeAlias = NDArray[Any]
"""Rows of a structured type: each field is a column."""

PLACE_BYTES: Final = 16
"""What stands before each packet."""
ENTRY_MIN_BYTES: Final = PLACE_BYTES + 2
"""An entry without a packet, with what MessagePack puts before it."""
_SHORT_MAX_BYTES: Final = 0xFF + 2
_MIDDLE_MAX_BYTES: Final = 0xFFFF + 3
ENTRIES_MAX_BYTES: Final = 1 << 28
"""Text can need a few times its bytes in the packet, and Arrow counts them with 31 bits."""


class Packed:
    """The messages of one answer: their bytes, and where each begins and ends."""

    def __init__(self, raw: Packets) -> None:
        if len(raw.sizes) % 4 or len(raw.lookup_ids) != 2 * len(raw.sizes):
            raise _senseless("lists of different lengths")
        sizes = np.frombuffer(raw.sizes, "<u4").astype(np.int64)
        self.lookup_ids: Numbers = np.frombuffer(raw.lookup_ids, ">u8").astype(np.int64)
        self.ends: Numbers = np.cumsum(sizes)
        self.starts: Numbers = self.ends - sizes + _heads(sizes)
        self.count = len(sizes)
        self.data = raw.entries
        total = int(self.ends[-1]) if self.count else 0
        if total != len(raw.entries) or (self.count and sizes.min() < ENTRY_MIN_BYTES):
            raise _senseless("sizes that do not add up")
        if self.count and self.lookup_ids.min() < 0:
            raise _senseless("a lookup identifier that is too large")
        if total > ENTRIES_MAX_BYTES:
            raise QueueProblem(
                f"{total} bytes of messages at once, at most {ENTRIES_MAX_BYTES} can be decoded: "
                "ask for fewer"
            )
        self._buffer = pa.py_buffer(raw.entries)

    def records(self, layout: np.dtype[Any], places: Numbers) -> Records:
        """Read a structure at each place; what would lie beyond the end is read before it."""
        last = len(self.data) - layout.itemsize
        if last < 0:
            return np.zeros(len(places), layout)
        # One structure at every byte: picking some of them copies those and nothing else.
        all_places: Records = np.ndarray((last + 1,), f"V{layout.itemsize}", self.data, 0, (1,))
        try:
            found = all_places[places]
        except IndexError:
            found = all_places[np.clip(places, 0, last)]
        return found.view(layout)

    def gather(
        self, starts: Numbers, ends: Numbers, kind: pa.DataType, there: Flags | None = None
    ) -> pa.Array:
        """Return the bytes between two places of each message; null where they are not there."""
        sizes = ends - starts
        if there is None and len(sizes) and sizes[0] == sizes[-1] and (sizes == sizes[0]).all():
            return self._gather_equal(starts, int(sizes[0]), kind)
        indices = np.arange(0, 2 * len(starts), 2, dtype=np.int32)
        nulls = None if there is None else ~there
        return self._slices([(starts, ends)], kind).take(pa.array(indices, mask=nulls))

    def _gather_equal(self, starts: Numbers, size: int, kind: pa.DataType) -> pa.Array:
        """Gather parts of one size: they make a table, which numpy copies faster than Arrow."""
        following = starts[1:] - starts[:-1]
        _require(
            size >= 0
            and starts[0] >= 0
            and starts[-1] + size <= len(self.data)
            and not (following < size).any()
        )
        count = len(starts)
        if size == 0:
            offsets, octets = np.zeros(count + 1, np.int32), np.empty(0, np.uint8)
        else:
            offsets = np.arange(0, size * count + 1, size, dtype=np.int32)
            octets = self.records(np.dtype(f"V{size}"), starts)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(octets)]
        return pa.Array.from_buffers(kind, count, buffers)

    def gather_joined(self, parts: Sequence[tuple[Numbers, Numbers]]) -> pa.Array:
        """Return the bytes of several parts of each message, one after the other, as one value."""
        count = len(parts[0][0])
        indices = np.arange(0, 2 * count * len(parts), 2, dtype=np.int32)
        taken = self._slices(parts, pa.binary()).take(pa.array(indices))
        _, offsets, data = taken.buffers()
        joined = np.ascontiguousarray(np.frombuffer(offsets, np.int32)[:: len(parts)][: count + 1])
        return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(joined), data])

    def _slices(self, parts: Sequence[tuple[Numbers, Numbers]], kind: pa.DataType) -> pa.Array:
        """See the bytes as an array in which every other element is a wanted part.

        The parts must be in their order and inside the bytes, which is why they are checked here
        once more: Arrow believes what it is told.
        """
        edges = np.stack([edge for part in parts for edge in part], axis=1).ravel()
        if len(edges) == 0:
            return pa.array([], kind)
        ordered = not (edges[1:] < edges[:-1]).any()
        _require(edges[0] >= 0 and edges[-1] <= len(self.data) and ordered)
        offsets = pa.py_buffer(edges.astype(np.int32))
        return pa.Array.from_buffers(kind, len(edges) - 1, [None, offsets, self._buffer])


def _heads(sizes: Numbers) -> Numbers:
    """Return how many bytes MessagePack has put before each entry."""
    if len(sizes) and sizes.min() > _SHORT_MAX_BYTES and sizes.max() <= _MIDDLE_MAX_BYTES:
        return np.asarray(3)
    return np.where(sizes <= _SHORT_MAX_BYTES, 2, np.where(sizes <= _MIDDLE_MAX_BYTES, 3, 5))


def _require(fits: bool) -> None:
    if not fits:
        raise AssertionError("parts of messages outside their messages")


def _senseless(problem: str) -> QueueProblem:
    return QueueProblem(
        f"the queue manager answered with {problem}: use the same version of openmsmq on both sides"
    )
