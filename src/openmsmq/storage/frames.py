"""How batches stand in a journal file, and how records are told from any other bytes.

    mark 8 | payload length u32 | sequence number u64 | crc32 u32 | payload

The mark is random and only this store knows it, so no message can contain one. The checksum covers
everything before it and the payload, and starts from a salt that only this store knows too. Stores
of schema version 1 have the same four bytes for a mark everywhere.

A record has one batch, or several that go to the disk at once: then all are there or none, as they
have one checksum. Its number is that of the first of them.

Looking for a record behind a broken one must not take longer the more often a mark is met, whoever
wrote it. So the checksums of all beginnings of a file are at hand, and that of any part of it
follows from two of them: no byte is gone over once for each mark.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import msgspec
from zlib_ng.zlib_ng import crc32, crc32_combine

from openmsmq.storage.port import Taken

Changes = Sequence[tuple[bytes, bytes | None]]
Ranges = Sequence[tuple[bytes, bytes]]

MARK_BYTES: Final = 8
FIRST_MARK: Final = b"\xf5MQj"
"""The mark of every store of schema version 1."""

PAYLOAD_MAX_BYTES: Final = 0xFFFFFFFF
"""The changes of one batch, encoded."""

STRIDE_BYTES: Final = 256
"""Distance of the beginnings whose checksums are kept; between two of them it is calculated."""

_UNSEALED: Final = struct.Struct("<IQ")
_NUMBERS: Final = struct.Struct("<IQI")

_WITH_RANGES: Final = b"\xc1"
"""What the payload of a batch with ranges begins with: no list in MessagePack begins so."""
_WITH_MOVES: Final = b"\xc0"
"""What the payload of a batch begins with that sets values aside, takes or drops them."""
_TOGETHER: Final = b"\xc2"
"""What the payload of a record begins with that has several batches, each as if it was alone."""


class AsideNote(msgspec.Struct, frozen=True, array_like=True):
    """Where values are that a batch has set aside."""

    file: int
    """The number of their file."""
    sequence: int
    """The batch that set them aside."""
    size_bytes: int
    """The length of the file, of which they may be a part."""


AsideNotes = dict[bytes, AsideNote]


class Moves(msgspec.Struct, frozen=True):
    """What a batch sets aside, takes and drops."""

    aside: AsideNotes = {}
    taken: list[Taken] = []
    dropped: list[bytes] = []


class Content(msgspec.Struct, frozen=True, array_like=True):
    """The durable part of a batch."""

    ranges: list[tuple[bytes, bytes]]
    changes: list[tuple[bytes, bytes | None]]
    moves: Moves = Moves()

    @property
    def count(self) -> int:
        """How many things it changes."""
        moves = self.moves
        taken = sum(each.count for each in moves.taken)
        return len(self.ranges) + len(self.changes) + taken + len(moves.aside) + len(moves.dropped)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]])
_TOGETHER_DECODER: Final = msgspec.msgpack.Decoder(list[bytes])
_CONTENT_DECODER: Final = msgspec.msgpack.Decoder(Content)


class Record(msgspec.Struct, frozen=True):
    """One batch as it stands in a journal file."""

    sequence: int
    offset: int
    """Where its record begins, which it may share with others."""
    end: int
    payload: bytes

    def batches(self) -> list[Record]:
        """Return each batch by itself, if there are several in what was read."""
        if not self.payload.startswith(_TOGETHER):
            return [self]
        try:
            payloads = _TOGETHER_DECODER.decode(memoryview(self.payload)[len(_TOGETHER) :])
        except msgspec.DecodeError:
            payloads = []
        # What is not readable stays as it is, for whoever wants the content.
        return [
            Record(number, self.offset, self.end, payload)
            for number, payload in enumerate(payloads, self.sequence)
        ] or [self]

    def content(self) -> Content:
        """Decode the batch."""
        if self.payload.startswith((_WITH_RANGES, _WITH_MOVES)):
            return _CONTENT_DECODER.decode(memoryview(self.payload)[len(_WITH_RANGES) :])
        return Content([], _DECODER.decode(self.payload))


def encode_changes(changes: Changes, ranges: Ranges = (), moves: Moves | None = None) -> bytes:
    """Encode the durable part of a batch as the payload of a record."""
    if moves is not None:
        payload = _WITH_MOVES + _ENCODER.encode((ranges, changes, moves))
    elif ranges:
        payload = _WITH_RANGES + _ENCODER.encode((ranges, changes))
    else:
        payload = _ENCODER.encode(changes)
    if len(payload) > PAYLOAD_MAX_BYTES:
        raise ValueError(f"a batch of {len(payload)} bytes is larger than {PAYLOAD_MAX_BYTES}")
    return payload


def put_together(payloads: Sequence[bytes]) -> bytes:
    """Make one payload of those of several batches, in their order; that of one stays as it is."""
    if len(payloads) == 1:
        return payloads[0]
    return _TOGETHER + _ENCODER.encode(payloads)


class Framing:
    """What makes a record one of this store: its mark and the salt of its checksums."""

    def __init__(self, mark: bytes, salt: int) -> None:
        self._mark = mark
        self._salt = salt
        self.header_bytes: Final = len(mark) + _NUMBERS.size

    def header(self, sequence: int, payload: bytes) -> bytes:
        """Make what stands before the payload of a record."""
        unsealed = self._mark + _UNSEALED.pack(len(payload), sequence)
        return unsealed + crc32(payload, crc32(unsealed, self._salt)).to_bytes(4, "little")

    def read_record(self, data: bytes, offset: int) -> Record | None:
        """Read the record at an offset; None if there is no whole one."""
        body = offset + self.header_bytes
        if body > len(data) or not data.startswith(self._mark, offset):
            return None
        length, sequence, checksum = _NUMBERS.unpack_from(data, offset + len(self._mark))
        end = body + length
        if end > len(data):
            return None
        payload = data[body:end]
        if crc32(payload, self._begun(data, offset)) != checksum:
            return None
        return Record(sequence, offset, end, payload)

    def read_run(self, data: bytes) -> list[Record]:
        """Read the batches from the start of a file as long as their numbers go on."""
        run: list[Record] = []
        record = self.read_record(data, 0)
        while record is not None and (not run or record.sequence == run[-1].sequence + 1):
            run += record.batches()
            record = self.read_record(data, record.end)
        return run

    def find_later(self, data: bytes, offset: int, sequence: int) -> tuple[int, int] | None:
        """Look behind an offset for a whole record with a number above `sequence`.

        Gives its offset and its number.
        """
        beginnings = _Beginnings(data)
        mark, header_bytes, size = self._mark, self.header_bytes, len(data)
        offset = data.find(mark, offset)
        while 0 <= offset <= size - header_bytes:
            length, number, checksum = _NUMBERS.unpack_from(data, offset + len(mark))
            body = offset + header_bytes
            # Leftovers of earlier turns are many; their number tells them without a checksum.
            if number > sequence and body + length <= size:
                begun = self._begun(data, offset)
                if beginnings.crc_of(body, body + length, begun) == checksum:
                    return offset, number
            offset = data.find(mark, offset + 1)
        return None

    def _begun(self, data: bytes, offset: int) -> int:
        """Return the checksum of a record as far as its header goes."""
        return crc32(data[offset : offset + len(self._mark) + _UNSEALED.size], self._salt)


class _Beginnings:
    """The checksums of all beginnings of some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._steps = [0]

    def crc_of(self, start: int, end: int, begun: int) -> int:
        """Return the crc32 of a part, gone on with from another checksum."""
        return crc32_combine(begun ^ self._up_to(start), self._up_to(end), end - start)

    def _up_to(self, end: int) -> int:
        place = end // STRIDE_BYTES
        steps = self._steps
        while len(steps) <= place:
            start = (len(steps) - 1) * STRIDE_BYTES
            steps.append(crc32(self._data[start : start + STRIDE_BYTES], steps[-1]))
        return crc32(self._data[place * STRIDE_BYTES : end], steps[place])
