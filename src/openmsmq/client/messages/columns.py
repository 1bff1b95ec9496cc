"""Very many messages that have a body, and perhaps a label, given by the column.

Whoever has a table has the bodies of its rows side by side, and their labels too. Here each is
copied once, to between what stands around it in its packet; an object for each row and a packet of
that, which the call then is made of, would copy it four times.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Final, TypeAlias

import msgspec

from openmsmq.client.messages.outgoing import LabelledBody

Around: TypeAlias = tuple[bytes, bytes, bytes]
"""What a packet has before the text of its label, between that and its body, and behind that."""

_Frame: TypeAlias = tuple[bytes, bytes, bytes, int]

_ARRAY: Final = struct.Struct(">BH")
_ARRAY_CODE: Final = 0xDC
"""How MessagePack begins a list, and how bytes of which it counts the length in so many bits."""
_MIDDLE: Final = struct.Struct(">BH")
_MIDDLE_CODE: Final = 0xC5
_MIDDLE_MAX_BYTES: Final = 0xFFFF
_LONG: Final = struct.Struct(">BI")
_LONG_CODE: Final = 0xC6
_KNOWN_MAX_COUNT: Final = 1024
"""Different lengths of which is remembered what stands around them."""


class BodyColumn:
    """Bodies side by side, and a label for each, which is text in ASCII or nothing.

    Whoever goes through it gets them as `send_many` takes them from anybody.
    """

    __slots__ = ("_bodies", "_ends", "_label_ends", "_labels")

    def __init__(
        self,
        bodies: memoryview,
        ends: Sequence[int],
        labels: bytes = b"",
        label_ends: Sequence[int] | None = None,
    ) -> None:
        """Take all bodies, and where each ends; before these ends stands where the first begins."""
        self._bodies = bodies
        self._ends = ends
        self._labels = labels
        self._label_ends = label_ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[bytes | LabelledBody]:
        bodies = (bytes(self._bodies[start:stop]) for start, stop in pairwise(self._ends))
        if self._label_ends is None:
            yield from bodies
            return
        for body, (start, stop) in zip(bodies, pairwise(self._label_ends), strict=True):
            yield LabelledBody(body, self._labels[start:stop].decode("ascii"))

    def between(self, start: int, stop: int) -> BodyColumn:
        """Return some of the messages; nothing is copied."""
        label_ends = None if self._label_ends is None else self._label_ends[start : stop + 1]
        return BodyColumn(self._bodies, self._ends[start : stop + 1], self._labels, label_ends)

    def packets(
        self, around: Callable[[int, str], Around], most_count: int, most_bytes: int
    ) -> Iterator[msgspec.Raw]:
        """Yield lists of packets as calls have them, of so many or so many bytes.

        `around` says what stands around a body of some length and a label in their packet.
        """
        wide = self._labels.decode("ascii").encode("utf-16-le")
        bodies, ends = self._bodies, self._ends
        label_ends = self._label_ends or [0] * len(ends)
        known: dict[tuple[int, int], _Frame] = {}
        last_body = last_label = -1
        parts: list[bytes | memoryview] = []
        count = size_bytes = length = 0
        before = middle = behind = b""
        for start, stop, low, high in zip(
            ends, islice(ends, 1, None), label_ends, islice(label_ends, 1, None), strict=False
        ):
            if stop - start != last_body or high - low != last_label:
                last_body, last_label = key = stop - start, high - low
                found = known.get(key)
                if found is None:
                    if len(known) >= _KNOWN_MAX_COUNT:
                        known.clear()
                    label = self._labels[low:high].decode("ascii")
                    found = known[key] = _frame(around(last_body, label), last_body, label)
                before, middle, behind, length = found
            if low == high:
                parts += (before, bodies[start:stop], behind)
            else:
                parts += (before, wide[2 * low : 2 * high], middle, bodies[start:stop], behind)
            count += 1
            size_bytes += length
            if size_bytes >= most_bytes or count == most_count:
                yield _listed(count, parts)
                parts.clear()
                count = size_bytes = 0
        if count:
            yield _listed(count, parts)


def _frame(around: Around, body_bytes: int, label: str) -> _Frame:
    """Say before a packet how long it is, as MessagePack does; gives that length, too."""
    length = sum(map(len, around)) + 2 * len(label) + body_bytes
    code = (_MIDDLE, _MIDDLE_CODE) if length <= _MIDDLE_MAX_BYTES else (_LONG, _LONG_CODE)
    before, middle, behind = around
    before = code[0].pack(code[1], length) + before
    return (before, middle, behind, length) if label else (before + middle, b"", behind, length)


def _listed(count: int, parts: list[bytes | memoryview]) -> msgspec.Raw:
    return msgspec.Raw(b"".join((_ARRAY.pack(_ARRAY_CODE, count), *parts)))
