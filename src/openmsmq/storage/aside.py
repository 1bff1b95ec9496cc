"""What is set aside: values of one batch in a file of their own, until a later batch takes them.

A file `aside-*.log` holds one record, framed like those of the journal, with the number of the
batch that set it aside and the name of the values: a batch may set several aside. It is on the disk
before that batch is, and never changes while any batch could need it. So the batch that takes the
values says only where they are, and replaying it reads them there again. If they are many they are
written here and nowhere else: the base says where they stay (`bundles.staying`).

Which files count stands in the journal, and in the base as of its last checkpoint. A file is used
again when the base has the batch that dropped it, and nothing in it: until then a start after a
crash would read it again, or whoever reads messages. To write over a file is several times as fast
as to make one. A file that nobody speaks of was being written when the power failed, or was left
over; a start removes it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.storage.bundles import staying
from openmsmq.storage.bundles.stayed_files import StayedFiles
from openmsmq.storage.bundles.staying import Run, Stay
from openmsmq.storage.files import FULL, FileOps, disk_error
from openmsmq.storage.frames import AsideNote, AsideNotes, Framing
from openmsmq.storage.layout import ADVICE, ASIDE_NAMES, aside_name
from openmsmq.storage.port import StoreDamaged, Taken

FREE_MAX_BYTES: Final = 256 << 20
"""Files that wait to be used again may have so many bytes; others are removed."""

KEPT_MAX_BYTES: Final = 1 << 20
"""Values of a name are in memory, too, if their file is no longer: most often nobody asks for those
of a longer one."""

REUSED_MAX_FACTOR: Final = 2
"""A file that is used again is at most so many times as long as what is written into it."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[bytes])


class Aside:
    """The values of a store that are set aside, and their files."""

    def __init__(
        self,
        files: FileOps,
        directory: Path,
        framing: Framing,
        notes: AsideNotes,
        stayed: StayedFiles,
    ) -> None:
        self._files = files
        self._directory = directory
        self.framing = framing
        self.notes = dict(notes)
        """Where the values of each name are."""
        self._values: dict[bytes, list[bytes]] = {}
        self._pieces: dict[int, list[Stay]] = {}
        """How the values are divided, by file."""
        self._dropped: list[tuple[int, AsideNote]] = []
        """What was dropped, and by which batch."""
        self._free: dict[int, int] = {}
        """Files that may be used again, with their sizes."""
        self._is_held = False
        self._stayed = stayed
        """The files in which the base has something: they are its own, until it lets them go."""
        known = [*stayed.uses, *(note.file for note in notes.values())]
        self._last_file = max(known, default=0)

    def write(self, name: bytes, values: list[bytes], sequence: int) -> AsideNote:
        """Write values for a batch that comes next; on return they are on the disk."""
        payload = _ENCODER.encode([name, *values])
        header = self.framing.header(sequence, payload)
        needed_bytes = len(header) + len(payload)
        number, size_bytes = self._file_for(needed_bytes)
        note = AsideNote(number, sequence, max(size_bytes, needed_bytes))
        path = self._path(note)
        try:
            file = self._files.open(path, create=True)
            try:
                if size_bytes < needed_bytes:
                    self._files.allocate(file, needed_bytes)
                self._files.write_through(file, [header, payload], 0)
                # Readers come to it later, if at all; the next file can use the memory.
                self._files.forget(file)
            finally:
                self._files.close(file)
            self._pieces[number] = staying.pieces_of(values, payload, number, len(header))
            if not size_bytes:
                self._files.sync_directory(self._directory)
        except OSError as error:
            self.give_up(note)
            if error.errno in FULL and self.give_up_free():
                return self.write(name, values, sequence)
            raise disk_error(error, "set messages aside", path) from error
        return note

    def _file_for(self, needed_bytes: int) -> tuple[int, int]:
        """Return a file to write over and its size, or a new one.

        A much longer one stays free: it would be kept by few values, which is all that counts for
        the shares of who sends them.
        """
        longest = needed_bytes * REUSED_MAX_FACTOR
        fitting = (number for number, size_bytes in self._free.items() if size_bytes <= longest)
        number = max(fitting, key=self._free.__getitem__, default=None)
        if number is not None:
            return number, self._free.pop(number)
        self._last_file += 1
        return self._last_file, 0

    def give_up_free(self) -> bool:
        """Remove the files that wait to be used again; return whether there were any."""
        free, self._free = self._free, {}
        for number, size_bytes in free.items():
            self.give_up(AsideNote(number, 0, size_bytes))
        return bool(free)

    def give_up(self, note: AsideNote) -> None:
        """Forget what was written for a batch that was refused, and give its place back."""
        self._pieces.pop(note.file, None)
        with contextlib.suppress(OSError):
            self._files.remove(self._path(note))

    def keep(self, name: bytes, note: AsideNote, values: list[bytes] | None = None) -> None:
        """Know of values whose batch is in the journal."""
        self.notes[name] = note
        self._last_file = max(self._last_file, note.file)
        if values is not None:
            self._remember(name, values)

    def _remember(self, name: bytes, values: list[bytes]) -> None:
        if self.notes[name].size_bytes <= KEPT_MAX_BYTES:
            self._values[name] = values

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of a name; raise `StoreDamaged` if they are not as they were."""
        found = self._values.get(name)
        if found is None:
            found = self.read(name)
            self._remember(name, found)
        return found

    def run(self, taken: Taken) -> Run | None:
        """Return where what is taken is; None if it is only a part of its name."""
        note = self.notes[taken.name]
        if note.file not in self._pieces:
            self.read(taken.name)
        return staying.run_of(taken, self._pieces[note.file], note.size_bytes)

    def read(self, name: bytes) -> list[bytes]:
        """Read what the file of a name has; raise `StoreDamaged` if it is not what was written."""
        note = self.notes[name]
        path = self._path(note)
        try:
            file = self._files.open(path, write=False)
            try:
                data = self._files.read(file, note.size_bytes, 0)
            finally:
                self._files.close(file)
        except FileNotFoundError:
            raise StoreDamaged(f"{path} is missing: {ADVICE}") from None
        except OSError as error:
            raise disk_error(error, "read what was set aside", path) from error
        record = self.framing.read_record(data, 0)
        if record is not None and record.sequence == note.sequence:
            written, *values = _DECODER.decode(record.payload)
            if written == name:
                self._pieces[note.file] = staying.pieces_of(
                    values, record.payload, note.file, self.framing.header_bytes
                )
                return values
        raise StoreDamaged(f"{path} is not as batch {note.sequence} wrote it: {ADVICE}")

    def drop(self, name: bytes, sequence: int) -> None:
        """Forget the values of a name, as a batch says; their file waits for the base."""
        note = self.notes.pop(name)
        self._dropped.append((sequence, note))
        self._values.pop(name, None)
        self._pieces.pop(note.file, None)

    def applied(self, sequence: int) -> None:
        """Use files again: the base has all batches up to this one."""
        if self._is_held:
            return
        dropped, self._dropped = self._dropped, []
        for when, note in dropped:
            if when > sequence:
                self._dropped.append((when, note))
            elif note.file in self._stayed.uses:
                continue
            elif sum(self._free.values()) + note.size_bytes <= FREE_MAX_BYTES:
                self._free[note.file] = note.size_bytes
            else:
                self.give_up(note)

    def left(self, file: int, size_bytes: int) -> None:
        """Use a file again in which nothing of the base is any more."""
        if all(note.file != file for note in self._needed()):
            self._dropped.append((0, AsideNote(file, 0, size_bytes)))
            self.applied(0)

    def hold(self) -> list[tuple[Path, int]]:
        """Keep all files that a start would read as they are, until `let_go`; give their sizes."""
        self._is_held = True
        sizes = {self._path(note): note.size_bytes for note in self._needed()}
        for number, use in self._stayed.uses.items():
            sizes[self._stayed.path(number)] = use.size_bytes
        return list(sizes.items())

    def let_go(self, sequence: int) -> None:
        """Use files again as before: the base has all batches up to this one."""
        self._is_held = False
        self.applied(sequence)

    def _needed(self) -> list[AsideNote]:
        return [*self.notes.values(), *(note for _, note in self._dropped)]

    def begin(self) -> None:
        """Read what is set aside, so that damage is noticed now; remove files nobody speaks of."""
        for name in self.notes:
            self.values(name)
        known = {self._path(note) for note in self._needed()}
        known.update(map(self._stayed.path, self._stayed.uses))
        for path in sorted(self._directory.glob(ASIDE_NAMES)):
            if path not in known:
                self._files.remove(path)

    def _path(self, note: AsideNote) -> Path:
        return self._directory / aside_name(note.file)
