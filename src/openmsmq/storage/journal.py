"""The journal: every batch is written here first, with one write and one sync.

Two files of fixed size, written before with zeroes, take turns. A record holds one batch, or some
that go to the disk together; `frames` says how. The numbers of the records go up by one and never
begin again, so what an earlier turn left behind in a file is recognised by its number.

Reading ends at the first record that is not whole. That is normal at the very end, where a crash
cut a write: nobody was told that it had succeeded. Since a record is written only when the one
before is on the disk, a valid record behind a broken one proves that the broken one was whole
once: that is damage. What a file cannot say of itself stands in the base as a `JournalNote`: how
long the files are, and a batch that they have reached. So a file that was cut, emptied or replaced
is not taken for one that ends there.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.storage.files import FULL, FileOps, disk_error, fill_with_zeroes
from openmsmq.storage.frames import Framing, Record, put_together
from openmsmq.storage.layout import ADVICE, JOURNAL_NAMES
from openmsmq.storage.port import StoreDamaged, StoreFailed

_NOTE: Final = struct.Struct("<QQQ")


class JournalNote(msgspec.Struct, frozen=True):
    """What is known of the journal without reading it."""

    written: int
    """The journal has reached this batch, or gone beyond."""
    sizes_bytes: tuple[int, int]
    """The files are at least so long."""

    def packed(self) -> bytes:
        """Return it as the base keeps it."""
        return _NOTE.pack(self.written, *self.sizes_bytes)

    @classmethod
    def unpacked(cls, value: bytes) -> JournalNote:
        """Return what `packed` has written."""
        written, first_bytes, second_bytes = _NOTE.unpack(value)
        return cls(written, (first_bytes, second_bytes))


class _Segment:
    """One of the journal files."""

    def __init__(self, files: FileOps, path: Path, *, write: bool = True) -> None:
        self.path = path
        self.file = files.open(path, write=write)
        self.size_bytes = files.size_bytes(self.file)


class Journal:
    """The two files of a store's journal. `recover` comes before the first `append`."""

    def __init__(
        self,
        files: FileOps,
        directory: Path,
        framing: Framing,
        *,
        size_bytes: int,
        write: bool = True,
    ) -> None:
        self._files = files
        self._framing = framing
        self._size_bytes = size_bytes
        self._write = write
        self._directory = directory
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

    def recover(self, applied: int, note: JournalNote | None) -> Iterator[list[Record]]:
        """Yield the records above `applied`, one list for each file that has some, oldest first.

        Raises `StoreDamaged` if one of them is missing or broken, or at the end if they do not
        go as far as the note says.
        """
        if note is not None:
            self._check_sizes(note)
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
        if note is not None and self.last_sequence < note.written:
            raise StoreDamaged(
                f"{self._directory}: the journal ends with batch {self.last_sequence}, but it had "
                f"batch {note.written}: one of its files was emptied, replaced or damaged; {ADVICE}"
            )

    def _check_sizes(self, note: JournalNote) -> None:
        for segment, noted in zip(self._segments, note.sizes_bytes, strict=True):
            if segment.size_bytes < noted:
                raise StoreDamaged(
                    f"{segment.path} is cut: {segment.size_bytes} bytes of {noted} are left: "
                    f"{ADVICE}"
                )

    def _read(self, segment: _Segment, applied: int) -> list[Record]:
        try:
            if self._write:
                # Bytes that a killed process left in the page cache are not on the disk yet.
                self._files.sync(segment.file)
            data = self._files.read(segment.file, segment.size_bytes, 0)
        except OSError as error:
            raise disk_error(error, "read the journal", segment.path) from error
        run = self._framing.read_run(data)
        end, last = (run[-1].end, run[-1].sequence) if run else (0, 0)
        later = self._framing.find_later(data, end, max(last, applied))
        if later is not None:
            raise StoreDamaged(
                f"{segment.path}: the record at offset {end} is broken, but batch "
                f"{later[1]} at offset {later[0]} is whole: {ADVICE}"
            )
        return run

    def extents(self) -> list[tuple[Path, int, int]]:
        """Return of each file, the active one last, how much of it may count, and its length."""
        active, other = self._segments[self._active], self._segments[1 - self._active]
        return [
            (other.path, other.size_bytes, other.size_bytes),
            (active.path, self._offset, active.size_bytes),
        ]

    @property
    def active_path(self) -> Path:
        """The file that is being written."""
        return self._segments[self._active].path

    def used_share(self, spare_bytes: int) -> float:
        """How much of the active file is used, from 0 to 1; the spare part at its end excepted."""
        return self._offset / max(self._segments[self._active].size_bytes - spare_bytes, 1)

    def fits(self, payload_bytes: int, spare_bytes: int) -> bool:
        """Whether a record fits into the active file and leaves so much room behind it."""
        end = self._offset + self._framing.header_bytes + payload_bytes + spare_bytes
        return end <= self._segments[self._active].size_bytes

    def record_bytes(self, payload: bytes) -> int:
        """Return what a batch takes that has a record of its own; it takes no more with others."""
        return self._framing.header_bytes + len(payload)

    @property
    def note(self) -> JournalNote:
        """What to note of the journal as it is."""
        first, second = self._segments
        return JournalNote(self.last_sequence, (first.size_bytes, second.size_bytes))

    def note_before_switch(self, payload_bytes: int, spare_bytes: int) -> JournalNote | None:
        """What must be noted before `switch` makes a file shorter, lest it look like a cut one."""
        place = 1 - self._active
        wanted = self._wanted_bytes(payload_bytes, spare_bytes)
        if wanted >= self._segments[place].size_bytes:
            return None
        sizes = [segment.size_bytes for segment in self._segments]
        sizes[place] = wanted
        return JournalNote(self.last_sequence, (sizes[0], sizes[1]))

    def _wanted_bytes(self, payload_bytes: int, spare_bytes: int) -> int:
        needed = self._framing.header_bytes + payload_bytes + spare_bytes
        return max(self._size_bytes, needed)

    def switch(self, payload_bytes: int, spare_bytes: int) -> None:
        """Go on at the start of the other file, whose records must have been applied.

        It gets its normal size again, or more if the next record needs it.
        """
        place = 1 - self._active
        segment = self._segments[place]
        wanted = self._wanted_bytes(payload_bytes, spare_bytes)
        if segment.size_bytes != wanted:
            try:
                fill_with_zeroes(self._files, segment.file, wanted, self._size_bytes)
            except OSError as error:
                with contextlib.suppress(OSError):
                    self._files.truncate(segment.file, segment.size_bytes)
                raise disk_error(error, "enlarge the journal", segment.path) from error
            segment.size_bytes = wanted
        self._active, self._offset = place, 0

    def rewind(self) -> None:
        """Go on at the start of the active file, when all records have been applied."""
        self._offset = 0

    def begin_anew(self, framing: Framing) -> None:
        """Go on like `rewind`, with records that are known by something else."""
        self._framing = framing
        self.rewind()

    def append(self, payloads: Sequence[bytes]) -> None:
        """Write some batches at once; on return they are on the disk."""
        segment = self._segments[self._active]
        payload = put_together(payloads)
        header = self._framing.header(self.last_sequence + 1, payload)
        try:
            self._files.write_through(segment.file, [header, payload], self._offset)
        except OSError as error:
            failure = disk_error(error, "write the journal", segment.path)
            if error.errno in FULL:
                # The place was taken beforehand, so this file system does not keep its word.
                failure = StoreFailed(f"{failure}; then start again")
            raise failure from error
        self.last_sequence += len(payloads)
        self._offset += len(header) + len(payload)

    def close(self) -> None:
        """Close the files."""
        for segment in self._segments:
            self._files.close(segment.file)
        self._segments = []
