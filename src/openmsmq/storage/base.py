"""The base: an LMDB file with everything that the last checkpoint knew.

Only checkpoints write it, in transactions that end with a sync. A value is followed by the crc32
of its key and itself, which is verified whenever it is read. Beside the records stands the number
of the last journal batch that they contain, what was set aside by then, and a note of how far the
journal went.

Reading skips what the memtable has changed. Many deleted keys in a row, as at the front of a queue
that is being emptied, are remembered as a hidden run, so that each is stepped over once.
"""

from __future__ import annotations

import contextlib
import errno
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final, NoReturn

import lmdb
import msgspec
from zlib_ng.zlib_ng import crc32

from openmsmq.storage.files import FULL, FileOps, disk_error, take_place
from openmsmq.storage.frames import AsideNotes
from openmsmq.storage.journal import JournalNote
from openmsmq.storage.layout import ADVICE
from openmsmq.storage.pages import find_damage
from openmsmq.storage.port import StoreDamaged, StoreError, StoreFailed, StoreFull

KEY_MAX_BYTES: Final = 511
"""Longest key that LMDB takes."""

MAP_MAX_BYTES: Final = 1 << 40
"""Address space for the file; it costs nothing until it is used."""

MAP_MIN_BYTES: Final = 1 << 28
"""With less address space than this a store is not opened."""

GROWTH_BYTES: Final = 8 << 20
"""The file gets its place on the disk in steps of this, before it is written."""

SPARE_BYTES: Final = 1 << 20
"""Kept free in the file for deletions, which need some pages before they free others."""

HIDDEN_RUNS_MAX_COUNT: Final = 1024
"""Hidden runs that are remembered; beyond it all are forgotten and found again."""

PAGE_MAX_COUNT: Final = 256
"""Records that are fetched at once behind hidden ones."""

PAGES_LOOKED_AT_COUNT: Final = 1024
"""Pages that every opening looks at; all pages of a store of some megabytes."""

META_COUNT: Final = 2
"""Pages at the start of the file that say where everything is; they take turns."""

READERS_SUFFIX: Final = "-lock"
"""How LMDB calls its table of readers, behind the name of its file."""

READERS_BYTES: Final = 64 << 10
"""More than the table needs."""

CRC_BYTES: Final = 4

RESIDUE: Final = 0x2144DF1C
"""The crc32 of anything that is followed by its own crc32, the lowest byte first."""

_RECORDS: Final = b"records"
_STATE: Final = b"state"
_APPLIED: Final = b"applied"
_JOURNAL: Final = b"journal"
_ASIDE: Final = b"aside"
_NOTE: Final = struct.Struct("<QQQ")
_NOTES: Final = msgspec.msgpack.Decoder(AsideNotes)
_KEY: Final = itemgetter(0)
_VALUE: Final = slice(None, -CRC_BYTES)
"""The part of what is stored that is the value; made once, not for each record."""


def pack(key: bytes, value: bytes) -> bytes:
    """Put the checksum of a key and its value behind the value."""
    return value + crc32(value, crc32(key)).to_bytes(CRC_BYTES, "little")


def unpack(key: bytes, stored: bytes) -> bytes | None:
    """Take the checksum off; None if it is wrong."""
    return stored[:-CRC_BYTES] if crc32(stored, crc32(key)) == RESIDUE else None


def damaged_pages(files: FileOps, path: Path, *, thorough: bool) -> Iterator[str]:
    """Return what is wrong with the pages of the file; LMDB must not read it then.

    Unless it is `thorough` this takes the same short time however large the file is, and what it
    does not reach is left for whoever reads there.
    """
    file = files.open(path, write=False)
    try:
        problems = find_damage(
            lambda length, offset: files.read(file, length, offset),
            files.size_bytes(file),
            None if thorough else PAGES_LOOKED_AT_COUNT,
        )
        for problem in problems:
            yield f"{path} is damaged: {problem}"
    except OSError as error:
        raise disk_error(error, "read the records", path) from error
    finally:
        files.close(file)


class Base:
    """The LMDB file of a store, in one process and one thread."""

    def __init__(
        self,
        files: FileOps,
        path: Path,
        *,
        create: bool = False,
        write: bool = True,
        thorough: bool = False,
    ) -> None:
        self.path = path
        self._files = files
        self._runs: list[tuple[bytes, bytes]] = []
        self._held: lmdb.Transaction | None = None
        self._has_readers = False
        self.applied = 0
        self.note: JournalNote | None = None
        self.aside: AsideNotes = {}
        # LMDB would take an empty file for a new one.
        if not create:
            if not (path.exists() and path.stat().st_size):
                raise StoreDamaged(f"{path} is missing or empty: {ADVICE}")
            problem = next(damaged_pages(files, path, thorough=thorough), None)
            if problem is not None:
                raise StoreDamaged(f"{problem}: {ADVICE}")
        try:
            self._env = _open(path, create=create, write=write)
        except lmdb.Error as error:
            raise self._explain(error, "open") from error
        try:
            self._file = files.open(path, write=write)
        except OSError as error:
            self._env.close()
            raise disk_error(error, "open the records", path) from error
        try:
            self._records = self._env.open_db(_RECORDS, create=create)
            self._state = self._env.open_db(_STATE, create=create)
            self._begin_reading()
            self.applied = self._read_applied(create=create)
            self.note = self._read_note()
            aside = self._read_state(_ASIDE)
            self.aside = {} if aside is None else _NOTES.decode(aside)
        except BaseException as error:
            self.close()
            if isinstance(error, lmdb.Error):
                raise self._explain(error, "open") from error
            raise

    def _begin_reading(self) -> None:
        self._reader = self._env.begin(db=self._records, buffers=False)
        self._cursor: lmdb.Cursor[bytes] = self._reader.cursor()

    def _read_applied(self, *, create: bool) -> int:
        value = self._read_state(_APPLIED)
        if value is None and create:
            self.write([], applied=0)
            return 0
        if value is None:
            raise StoreDamaged(f"{self.path} does not say which batches it has: {ADVICE}")
        return int.from_bytes(value, "little")

    def _read_note(self) -> JournalNote | None:
        value = self._read_state(_JOURNAL)
        if value is None:
            return None
        written, first_bytes, second_bytes = _NOTE.unpack(value)
        return JournalNote(written, (first_bytes, second_bytes))

    def _read_state(self, key: bytes) -> bytes | None:
        stored = self._reader.get(key, db=self._state)
        if stored is None:
            return None
        value = unpack(key, stored)
        return self._damaged(key) if value is None else value

    @property
    def count(self) -> int:
        """The number of records."""
        return self._reader.stat(self._records)["entries"]

    @property
    def size_bytes(self) -> int:
        """The length of the file."""
        return self._files.size_bytes(self._file)

    # Reading.

    def contains(self, key: bytes) -> bool:
        """Whether a key is there."""
        try:
            return self._cursor.set_key(key)
        except lmdb.Error as error:
            raise self._explain(error, "read") from error

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        try:
            stored = self._reader.get(key)
        except lmdb.Error as error:
            raise self._explain(error, "read") from error
        if stored is None:
            return None
        value = unpack(key, stored)
        return self._damaged(key) if value is None else value

    def records(
        self,
        start: bytes,
        stop: bytes,
        limit: int,
        hidden: Sequence[Container[bytes]],
        *,
        reverse: bool,
    ) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` records whose keys are in none of the `hidden` containers."""
        try:
            pages = self._pages(start, stop, limit, hidden, reverse=reverse)
            found: list[tuple[bytes, bytes]] = []
            for page in pages:
                found += page[: limit - len(found)]
                if len(found) >= limit:
                    break
        except lmdb.Error as error:
            raise self._explain(error, "read") from error
        # This is `unpack`, written out because it runs once for each message that is read.
        return [
            (key, stored[_VALUE]) if crc32(stored, crc32(key)) == RESIDUE else self._damaged(key)
            for key, stored in found
        ]

    def _pages(
        self,
        start: bytes,
        stop: bytes,
        limit: int,
        hidden: Sequence[Container[bytes]],
        *,
        reverse: bool,
    ) -> Iterator[list[tuple[bytes, bytes]]]:
        """Yield the visible records of a range in pieces, and remember hidden runs on the way."""
        cursor = self._cursor
        there = self._seek_last(stop) if reverse else cursor.set_range(start)
        run: tuple[bytes, bytes] | None = None
        length = limit
        while there:
            if self._runs:
                jumped, there = self._jump(reverse=reverse)
                if jumped is not None:
                    run = jumped
                if not there:
                    return
            if not start <= cursor.key() < stop:
                # A whole page would be read in vain.
                return
            page = list(islice(cursor.iterprev() if reverse else cursor.iternext(), length))
            inside = _inside(page, start, stop, reverse=reverse)
            visible = inside
            for container in hidden:
                visible = [item for item in visible if item[0] not in container]
            if inside and (not visible or visible[0] is not inside[0]):
                lead = inside.index(visible[0]) if visible else len(inside)
                run = self._remember(inside[0][0], inside[lead - 1][0], run)
            if visible:
                run = None
                yield visible
            if len(inside) < length:
                return
            length = max(limit, min(2 * length, PAGE_MAX_COUNT))
            # Between two pages the caller has not read anything, so the cursor stands at the end.
            there = cursor.prev() if reverse else cursor.next()

    def _seek_last(self, stop: bytes) -> bool:
        return self._cursor.prev() if self._cursor.set_range(stop) else self._cursor.last()

    def _jump(self, *, reverse: bool) -> tuple[tuple[bytes, bytes] | None, bool]:
        """If the cursor is in a hidden run, go behind it."""
        key = self._cursor.key()
        place = bisect_right(self._runs, key, key=_KEY) - 1
        if place < 0 or key > self._runs[place][1]:
            return None, True
        low, high = run = self._runs[place]
        if reverse:
            return run, self._seek_last(low)
        there = self._cursor.set_range(high)
        if there and self._cursor.key() == high:
            there = self._cursor.next()
        return run, there

    def _remember(
        self, one: bytes, other: bytes, before: tuple[bytes, bytes] | None
    ) -> tuple[bytes, bytes]:
        """Note that every record between two keys, and in the run before them, is hidden."""
        low, high = min(one, other), max(one, other)
        if before is not None:
            low, high = min(low, before[0]), max(high, before[1])
        first = bisect_left(self._runs, low, key=_KEY)
        last = bisect_right(self._runs, high, key=_KEY)
        if last > first:
            high = max(high, self._runs[last - 1][1])
        self._runs[first:last] = [(low, high)]
        if len(self._runs) > HIDDEN_RUNS_MAX_COUNT:
            self._runs = []
        return low, high

    def _damaged(self, key: bytes) -> NoReturn:
        raise StoreDamaged(f"{self.path}: the checksum of record {key.hex()} is wrong: {ADVICE}")

    def every_record(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield all keys and values in order, None for a value whose checksum is wrong."""
        try:
            for key, stored in self._reader.cursor().iternext():
                yield key, unpack(key, stored)
        except lmdb.Error as error:
            raise self._explain(error, "read") from error

    # Writing.

    def write(
        self,
        changes: Sequence[tuple[bytes, bytes | None]],
        *,
        applied: int | None = None,
        note: JournalNote | None = None,
        aside: AsideNotes | None = None,
    ) -> None:
        """Apply changes in one transaction; on return they are on the disk.

        `aside` is what was set aside by the batch `applied`.

        Raises `StoreFull` with nothing changed, or `StoreFailed`.
        """
        # This is `pack`, written out because it runs once for each message.
        puts = [
            (key, value + crc32(value, crc32(key)).to_bytes(CRC_BYTES, "little"))
            for key, value in changes
            if value is not None
        ]
        deletions = [key for key, value in changes if value is None]
        if puts:
            self._take_place(sum([len(key) + len(stored) for key, stored in puts]) * 2)
        try:
            with self._env.begin(write=True, db=self._records) as transaction:
                cursor = transaction.cursor()
                for key in deletions:
                    if cursor.set_key(key):
                        cursor.delete()
                cursor.putmulti(puts)
                if applied is not None:
                    number = applied.to_bytes(8, "little")
                    transaction.put(_APPLIED, pack(_APPLIED, number), db=self._state)
                if note is not None:
                    numbers = _NOTE.pack(note.written, *note.sizes_bytes)
                    transaction.put(_JOURNAL, pack(_JOURNAL, numbers), db=self._state)
                if aside is not None and aside != self.aside:
                    notes = msgspec.msgpack.encode(aside)
                    transaction.put(_ASIDE, pack(_ASIDE, notes), db=self._state)
        except lmdb.Error as error:
            raise self._write_error(error, len(changes)) from error
        # LMDB leaves the last state as it is while it writes the next, so the reader could stay
        # open until here; if the transaction failed, reading goes on with it.
        self._reader.abort()
        self._begin_reading()
        self.applied = self.applied if applied is None else applied
        self.note = note or self.note
        self.aside = self.aside if aside is None else aside
        if puts and self._runs:
            self._forget_runs([key for key, _ in puts])

    def clear(self, start: bytes, stop: bytes, limit: int) -> bytes:
        """Delete up to `limit` records of a range in one transaction, on the disk on return.

        Gives where the rest begins: `stop` if nothing is left.
        """
        rest = stop
        try:
            with self._env.begin(write=True, db=self._records) as transaction:
                cursor = transaction.cursor()
                cursor.set_range(start)
                left = limit
                # A key is never empty; that of a cursor behind the last record is.
                while b"" < (key := cursor.key()) < stop:
                    if not left:
                        rest = key
                        break
                    cursor.delete()
                    left -= 1
        except lmdb.Error as error:
            raise self._write_error(error, limit) from error
        self._reader.abort()
        self._begin_reading()
        return rest

    def _take_place(self, needed_bytes: int) -> None:
        """Find out before a transaction whether the disk has room for it."""
        page_bytes = self._env.stat()["psize"]
        trees = [self._env.stat(), *map(self._reader.stat, (self._records, self._state))]
        page_count = sum(
            tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"] for tree in trees
        )
        size_bytes = self.size_bytes
        missing = needed_bytes + SPARE_BYTES - (size_bytes - page_count * page_bytes)
        if missing <= 0:
            return
        try:
            self._files.allocate(self._file, size_bytes + missing + GROWTH_BYTES)
        except OSError as error:
            if error.errno not in FULL:
                raise disk_error(error, "enlarge the records", self.path) from error
            try:
                self._files.allocate(self._file, size_bytes + missing)
            except OSError as again:
                raise disk_error(again, "enlarge the records", self.path) from again

    def _write_error(self, error: lmdb.Error, count: int) -> StoreError:
        # LMDB reports a full disk as an input/output error when part of a write succeeded. If
        # there is no room for what the transaction could need at most, that was the reason.
        if error.code == errno.EIO:
            try:
                needed = 2 * count * self._env.stat()["psize"] + SPARE_BYTES
                self._files.allocate(self._file, self.size_bytes + needed)
            except OSError as probe:
                if probe.errno in FULL:
                    return disk_error(probe, "write the records", self.path)
        return self._explain(error, "write")

    def _forget_runs(self, keys: list[bytes]) -> None:
        """Drop the hidden runs in which a record has become visible; `keys` are in order."""

        def visible(run: tuple[bytes, bytes]) -> bool:
            place = bisect_left(keys, run[0])
            return place < len(keys) and keys[place] <= run[1]

        self._runs = [run for run in self._runs if not visible(run)]

    def _explain(self, error: lmdb.Error, verb: str) -> StoreError:
        if isinstance(error, lmdb.MapFullError) or error.code in FULL:
            return StoreFull(f"no space to {verb} {self.path} ({error}): free some space")
        if isinstance(error, lmdb.DiskError | lmdb.ReadonlyError) or verb == "write":
            return StoreFailed(f"cannot {verb} {self.path} ({error}): check the disk")
        if error.code in (errno.EACCES, errno.EROFS, errno.EIO, errno.ENOMEM):
            return StoreFailed(
                f"cannot {verb} {self.path} ({error}): check the disk and its rights"
            )
        return StoreDamaged(f"cannot {verb} {self.path} ({error}): {ADVICE}")

    # Copying.

    def hold(self) -> tuple[bytes, int]:
        """Keep every page as it is now where it is, until `let_go`, whatever is written meanwhile.

        Gives the pages at the start, which are written over all the same, and how many bytes of
        the file are in use. Raises `StoreFull` with nothing changed.
        """
        assert self._held is None, "two snapshots at a time"
        if not self._has_readers:
            self._know_readers()
        self._held = self._env.begin()
        page_bytes = self._env.stat()["psize"]
        head = self._files.read(self._file, META_COUNT * page_bytes, 0)
        return head, (self._env.info()["last_pgno"] + 1) * page_bytes

    def let_go(self) -> None:
        """Let pages be used again."""
        if self._held is not None:
            self._held.abort()
            self._held = None

    def _know_readers(self) -> None:
        """Open the file with LMDB's table of readers: only then are the pages of old ones kept."""
        path = self.path.with_name(self.path.name + READERS_SUFFIX)
        try:
            # LMDB maps the table. Without its place on a full disk, that would end the process.
            take_place(self._files, path, READERS_BYTES)
        except OSError as error:
            raise disk_error(error, "note who reads", path) from error
        self._env.close()
        try:
            self._env = _open(self.path, create=False, write=True, lock=True)
            self._records = self._env.open_db(_RECORDS, create=False)
            self._state = self._env.open_db(_STATE, create=False)
            self._begin_reading()
        except lmdb.Error as error:
            raise StoreFailed(f"cannot open {self.path} again ({error}): start again") from error
        self._has_readers = True

    def trim(self) -> None:
        """Give back the place that was taken for later."""
        used = (self._env.info()["last_pgno"] + 1) * self._env.stat()["psize"]
        self._files.truncate(self._file, used)
        self._files.sync(self._file)

    def close(self) -> None:
        """Release the file."""
        self.let_go()
        self._env.close()
        self._files.close(self._file)
        if self._has_readers:
            with contextlib.suppress(OSError):
                self._files.remove(self.path.with_name(self.path.name + READERS_SUFFIX))


def _inside(
    page: list[tuple[bytes, bytes]], start: bytes, stop: bytes, *, reverse: bool
) -> list[tuple[bytes, bytes]]:
    """Cut a page at the end of the range."""
    if not page:
        return page
    last = page[-1][0]
    if reverse:
        return page if last >= start else [item for item in page if item[0] >= start]
    return page if last < stop else page[: bisect_left(page, stop, key=_KEY)]


def _open(path: Path, *, create: bool, write: bool, lock: bool = False) -> lmdb.Environment:
    """Open LMDB with as much address space as the platform gives."""
    map_size = MAP_MAX_BYTES
    while True:
        try:
            return lmdb.open(
                str(path),
                subdir=False,
                create=create,
                mode=0o600,
                readonly=not write,
                map_size=map_size,
                max_dbs=2,
                lock=lock,
                meminit=False,
            )
        except (lmdb.MemoryError, OverflowError):
            if map_size <= MAP_MIN_BYTES:
                raise
            map_size //= 2
