"""The journal: every batch is written here first, with one write and one sync.

Two files of fixed size, written before with zeroes, take turns. A record holds one batch:

    magic 4 | payload length u32 | sequence number u64 | crc32 u32 | payload

The numbers of the records go up by one and never begin again, so what an earlier turn left behind
in a file is recognised by its number. The checksum starts from a salt that only this store knows.

Reading ends at the first record that is not whole. That is normal at the very end, where a crash
cut a write: nobody was told that it had succeeded. Since a record is written only when the one
before is on the disk, a valid record behind a broken one proves that the broken one was whole
once: that is damage.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from zlib_ng.zlib_ng import crc32

from openmsmq.storage.files import FULL, FileOps, disk_error, fill_with_zeroes
from openmsmq.storage.layout import ADVICE, JOURNAL_NAMES
from openmsmq.storage.port import StoreDamaged, StoreFailed

Changes = Sequence[tuple[bytes, bytes | None]]
Ranges = Sequence[tuple[bytes, bytes]]

MAGIC: Final = b"\xf5MQj"
_UNSEALED: Final = struct.Struct("<4sIQ")
_HEADER: Final = struct.Struct("<4sIQI")
HEADER_BYTES: Final = _HEADER.size

PAYLOAD_MAX_BYTES: Final = 0xFFFFFFFF
"""The changes of one batch, encoded."""

_WITH_RANGES: Final = b"\xc1"
"""What the payload of a batch with ranges begins with: no MessagePack begins so."""
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]])
_RANGES_DECODER: Final = msgspec.msgpack.Decoder(
    tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes | None]]]
)


class Record(msgspec.Struct, frozen=True):
    """One batch as it stands in a journal file."""

    sequence: int
    offset: int
    end: int
    payload: bytes

    def content(self) -> tuple[Ranges, Changes]:
        """Decode the batch: the ranges that it deletes, and its changes."""
        if self.payload.startswith(_WITH_RANGES):
            return _RANGES_DECODER.decode(memoryview(self.payload)[len(_WITH_RANGES) :])
        return (), _DECODER.decode(self.payload)


def encode_changes(changes: Changes, ranges: Ranges = ()) -> bytes:
    """Encode the durable part of a batch as the payload of a record."""
    if ranges:
        payload = _WITH_RANGES + _ENCODER.encode((ranges, changes))
    else:
        payload = _ENCODER.encode(changes)
    if len(payload) > PAYLOAD_MAX_BYTES:
        raise ValueError(f"a batch of {len(payload)} bytes is larger than {PAYLOAD_MAX_BYTES}")
    return payload


def seal(sequence: int, payload: bytes, salt: int) -> bytes:
    """Make the header of a record."""
    unsealed = _UNSEALED.pack(MAGIC, len(payload), sequence)
    return unsealed + crc32(payload, crc32(unsealed, salt)).to_bytes(4, "little")


def read_record(data: bytes, offset: int, salt: int) -> Record | None:
    """Read the record at an offset; None if there is no whole one."""
    body = offset + HEADER_BYTES
    if body > len(data):
        return None
    magic, length, sequence, checksum = _HEADER.unpack_from(data, offset)
    end = body + length
    if magic != MAGIC or end > len(data):
        return None
    payload = data[body:end]
    if crc32(payload, crc32(data[offset : offset + _UNSEALED.size], salt)) != checksum:
        return None
    return Record(sequence, offset, end, payload)


def read_run(data: bytes, salt: int) -> list[Record]:
    """Read the records from the start of a file as long as their numbers go on."""
    run: list[Record] = []
    record = read_record(data, 0, salt)
    while record is not None and (not run or record.sequence == run[-1].sequence + 1):
        run.append(record)
        record = read_record(data, record.end, salt)
    return run


def find_later(data: bytes, offset: int, sequence: int, salt: int) -> Record | None:
    """Look behind an offset for a whole record with a number above `sequence`."""
    offset = data.find(MAGIC, offset)
    while 0 <= offset <= len(data) - HEADER_BYTES:
        # Leftovers of earlier turns are many; their number tells them without a checksum.
        if int.from_bytes(data[offset + 8 : offset + 16], "little") > sequence:
            record = read_record(data, offset, salt)
            if record is not None:
                return record
        offset = data.find(MAGIC, offset + 1)
    return None


class _Segment:
    """One of the journal files."""

    def __init__(self, files: FileOps, path: Path, *, write: bool = True) -> None:
        self.path = path
        self.file = files.open(path, write=write)
        self.size_bytes = files.size_bytes(self.file)


class Journal:
    """The two files of a store's journal. `recover` comes before the first `append`."""

    def __init__(
        self, files: FileOps, directory: Path, salt: int, *, size_bytes: int, write: bool = True
    ) -> None:
        self._files = files
        self._salt = salt
        self._size_bytes = size_bytes
        self._write = write
        self._segments: list[_Segment] = []
        for name in JOURNAL_NAMES:
            path = directory / name
            try:
                self._segments.append(_Segment(files, path, write=write))
            except FileNotFoundError:
                self.close()
                raise StoreDamaged(f"{path} is missing: {ADVICE}") from None
            except OSError as error:
                self.close()
                raise disk_error(error, "open the journal", path) from error
        self._active = 0
        self._offset = 0
        self.last_sequence = 0

    @staticmethod
    def create(files: FileOps, directory: Path, size_bytes: int) -> None:
        """Make the two files."""
        for name in JOURNAL_NAMES:
            file = files.open(directory / name, create=True)
            try:
                fill_with_zeroes(files, file, size_bytes)
            finally:
                files.close(file)

    def recover(self, applied: int) -> Iterator[list[Record]]:
        """Give the records above `applied`, one list for each file that has some, oldest first.

        Raises `StoreDamaged` if one of them is missing or broken.
        """
        runs: list[tuple[int, list[Record]]] = []
        for place, segment in enumerate(self._segments):
            run = self._read(segment, applied)
            if run and run[-1].sequence > applied:
                runs.append((place, run))
        runs.sort(key=lambda found: found[1][0].sequence)
        self.last_sequence = applied
        for place, run in runs:
            first = run[0].sequence
            if first > self.last_sequence + 1:
                raise StoreDamaged(
                    f"{self._segments[place].path}: the journal goes on with batch {first}, but "
                    f"batch {self.last_sequence + 1} is missing: {ADVICE}"
                )
            self._active, self._offset = place, run[-1].end
            self.last_sequence = run[-1].sequence
            yield [record for record in run if record.sequence > applied]

    def _read(self, segment: _Segment, applied: int) -> list[Record]:
        try:
            if self._write:
                # Bytes that a killed process left in the page cache are not on the disk yet.
                self._files.sync(segment.file)
            data = self._files.read(segment.file, segment.size_bytes, 0)
        except OSError as error:
            raise disk_error(error, "read the journal", segment.path) from error
        run = read_run(data, self._salt)
        end, last = (run[-1].end, run[-1].sequence) if run else (0, 0)
        later = find_later(data, end, max(last, applied), self._salt)
        if later is not None:
            raise StoreDamaged(
                f"{segment.path}: the record at offset {end} is broken, but batch "
                f"{later.sequence} at offset {later.offset} is whole: {ADVICE}"
            )
        return run

    @property
    def active_path(self) -> Path:
        """The file that is being written."""
        return self._segments[self._active].path

    def used_share(self, spare_bytes: int) -> float:
        """How much of the active file is used, from 0 to 1; the spare part at its end excepted."""
        return self._offset / max(self._segments[self._active].size_bytes - spare_bytes, 1)

    def fits(self, payload_bytes: int, spare_bytes: int) -> bool:
        """Whether a record fits into the active file and leaves so much room behind it."""
        end = self._offset + HEADER_BYTES + payload_bytes + spare_bytes
        return end <= self._segments[self._active].size_bytes

    def switch(self, payload_bytes: int, spare_bytes: int) -> None:
        """Go on at the start of the other file, whose records must have been applied.

        It gets its normal size again, or more if the next record needs it.
        """
        place = 1 - self._active
        segment = self._segments[place]
        wanted = max(self._size_bytes, HEADER_BYTES + payload_bytes + spare_bytes)
        if segment.size_bytes != wanted:
            try:
                fill_with_zeroes(self._files, segment.file, wanted)
            except OSError as error:
                with contextlib.suppress(OSError):
                    self._files.truncate(segment.file, segment.size_bytes)
                raise disk_error(error, "enlarge the journal", segment.path) from error
            segment.size_bytes = wanted
        self._active, self._offset = place, 0

    def rewind(self) -> None:
        """Go on at the start of the active file, when all records have been applied."""
        self._offset = 0

    def append(self, payload: bytes) -> None:
        """Write one batch; on return it is on the disk."""
        segment = self._segments[self._active]
        sequence = self.last_sequence + 1
        header = seal(sequence, payload, self._salt)
        try:
            self._files.write_through(segment.file, [header, payload], self._offset)
        except OSError as error:
            failure = disk_error(error, "write the journal", segment.path)
            if error.errno in FULL:
                # The place was taken beforehand, so this file system does not keep its word.
                failure = StoreFailed(f"{failure}; then start again")
            raise failure from error
        self.last_sequence = sequence
        self._offset += HEADER_BYTES + len(payload)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            self._files.close(segment.file)
        self._segments = []
