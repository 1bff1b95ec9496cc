"""The base: an LMDB file with everything that the last checkpoint knew.

Only checkpoints write it, in transactions that end with a sync. A value is followed by the crc32
of its key and itself, which is verified whenever it is read. Beside the records stands the number
of the last journal batch that they contain, what was set aside by then, and a note of how far the
journal went.

Records that were moved here beside each other are kept as one (`bundles` says how), and values that
were set aside may stay in their files: nobody outside of this module sees that.

Reading skips what the memtable has changed. Many deleted keys in a row, as at the front of a queue
that is being emptied, are remembered as a hidden run, so that each is stepped over once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final, NoReturn

import lmdb
import msgspec
from zlib_ng.zlib_ng import crc32

from openmsmq.storage.bundles import pages, rewriting
from openmsmq.storage.bundles.bundle import Bundle
from openmsmq.storage.bundles.checksums import CRC_BYTES, RESIDUE, pack, unpack
from openmsmq.storage.bundles.environment import SPARE_BYTES, Room, explained, open_environment
from openmsmq.storage.bundles.hidden_runs import HiddenRuns, Run
from openmsmq.storage.bundles.reading import Reading, cut_to
from openmsmq.storage.bundles.seeking import Bundles
from openmsmq.storage.bundles.stayed_files import StayedFiles
from openmsmq.storage.bundles.staying import Run as StayingRun
from openmsmq.storage.files import FileOps, disk_error, take_place
from openmsmq.storage.frames import AsideNotes
from openmsmq.storage.journal import JournalNote
from openmsmq.storage.layout import ADVICE
from openmsmq.storage.port import StoreDamaged, StoreFailed, Stretch

KEY_MAX_BYTES: Final = 511
"""Longest key that LMDB takes."""

PAGE_MAX_COUNT: Final = 256
"""Records that are fetched at once behind hidden ones."""

META_COUNT: Final = 2
"""Pages at the start of the file that say where everything is; they take turns."""

READERS_SUFFIX: Final = "-lock"
"""How LMDB calls its table of readers, behind the name of its file."""

READERS_BYTES: Final = 64 << 10
"""More than the table needs."""

REWRITTEN_MAX_BYTES: Final = SPARE_BYTES // 4
"""What deletions may write again at once: bundles of which they leave something."""

_RECORDS: Final = b"records"
_BUNDLES: Final = b"bundles"
_STATE: Final = b"state"
_APPLIED: Final = b"applied"
_JOURNAL: Final = b"journal"
_ASIDE: Final = b"aside"
_BUNDLED: Final = b"bundled"
_NOTES: Final = msgspec.msgpack.Decoder(AsideNotes)
_KEY: Final = itemgetter(0)
_VALUE: Final = slice(None, -CRC_BYTES)
"""The part of what is stored that is the value; made once, not for each record."""


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
        self._runs = HiddenRuns()
        self._held: lmdb.Transaction | None = None
        self._has_readers = False
        self.applied = 0
        self.note: JournalNote | None = None
        self.aside: AsideNotes = {}
        self.stayed = StayedFiles(files, path.parent)
        """Where values are that were set aside and stay there."""
        if not create:
            pages.require_sound(files, path, thorough=thorough)
        with self._explaining("open"):
            self._env = open_environment(path, create=create, write=write)
        try:
            self._file = files.open(path, write=write)
        except OSError as error:
            self._env.close()
            raise disk_error(error, "open the records", path) from error
        self._room = Room(files, self._file, path)
        try:
            self._open_trees(create=create, write=write)
            self._begin_reading()
            self.applied = self._read_applied(create=create)
            note = self._read_state(_JOURNAL)
            self.note = None if note is None else JournalNote.unpacked(note)
            aside = self._read_state(_ASIDE)
            self.aside = {} if aside is None else _NOTES.decode(aside)
            damaged = self.stayed.load(self._reader.cursor(db=self._state))
            if damaged is not None:
                self._damaged(damaged)
        except BaseException as error:
            self.close()
            if isinstance(error, lmdb.Error):
                raise explained(error, "open", self.path) from error
            raise

    def _open_trees(self, *, create: bool, write: bool) -> None:
        self._records = self._env.open_db(_RECORDS, create=create)
        self._state = self._env.open_db(_STATE, create=create)
        self._bundled: lmdb._Database | None
        try:
            self._bundled = self._env.open_db(_BUNDLES, create=create)
        except lmdb.NotFoundError:
            # It was written by a version that had none.
            self._bundled = self._env.open_db(_BUNDLES) if write else None

    def _begin_reading(self) -> None:
        self._reader = self._env.begin(db=self._records, buffers=False)
        self._cursor: lmdb.Cursor[bytes] = self._reader.cursor()
        self._bundles: Bundles | None = None
        if self._bundled is not None and self._reader.stat(self._bundled)["entries"]:
            self._bundles = Bundles(self._reader, self._bundled, self._damaged, self.stayed.read)

    def _read_applied(self, *, create: bool) -> int:
        value = self._read_state(_APPLIED)
        if value is None and create:
            self.write([], applied=0)
            return 0
        if value is None:
            raise StoreDamaged(f"{self.path} does not say which batches it has: {ADVICE}")
        return int.from_bytes(value, "little")

    def require_note(self, *, is_marked: bool) -> None:
        """Make sure that it says how far the journal went, where it should."""
        if not is_marked:
            self.note = None
        elif self.note is None:
            raise StoreDamaged(f"{self.path} does not say how far the journal went: {ADVICE}")

    def _read_state(self, key: bytes) -> bytes | None:
        stored = self._reader.get(key, db=self._state)
        if stored is None:
            return None
        value = unpack(key, stored)
        return self._damaged(key) if value is None else value

    @property
    def count(self) -> int:
        """The number of records."""
        return self._reader.stat(self._records)["entries"] + self._bundled_count

    @property
    def _bundled_count(self) -> int:
        return int.from_bytes(self._read_state(_BUNDLED) or b"", "little")

    @property
    def size_bytes(self) -> int:
        """The length of the file."""
        return self._files.size_bytes(self._file)

    # Reading.

    def contains(self, key: bytes) -> bool:
        """Whether a key is there."""
        try:
            latest = None if self._bundles is None else self._bundles.latest_around(key)
            if latest is not None:
                return key in latest
            if self._cursor.set_key(key):
                return True
            bundle = self._bundle_around(key)
            return bundle is not None and key in bundle
        except lmdb.Error as error:
            raise explained(error, "read", self.path) from error

    def _bundle_around(self, key: bytes) -> Bundle | None:
        return None if self._bundles is None else self._bundles.around(key)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        try:
            latest = None if self._bundles is None else self._bundles.latest_around(key)
            if latest is not None:
                return latest.get(key)
            stored = self._reader.get(key)
            if stored is None:
                bundle = self._bundle_around(key)
                return None if bundle is None else bundle.get(key)
        except lmdb.Error as error:
            raise explained(error, "read", self.path) from error
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
        if self._bundles is None:
            return self._single(start, stop, limit, hidden, reverse=reverse)
        reading = Reading(self._bundles, self._runs, (start, stop), limit, hidden)
        try:
            if reverse:
                return reading.backwards(
                    lambda low, high, wanted: self._single(low, high, wanted, hidden, reverse=True)
                )
            return reading.forwards(
                lambda low, high, wanted: self._single(low, high, wanted, hidden, reverse=False)
            )
        except lmdb.Error as error:
            raise explained(error, "read", self.path) from error

    def stretch(self, start: bytes, stop: bytes, count_max: int, bytes_max: int) -> Stretch | None:
        """Return the first records of a range if they are in a bundle; None if they are not."""
        if self._bundles is None or start >= stop:
            return None
        with self._explaining("read"):
            return self._bundles.stretch((start, stop), (count_max, bytes_max), self._next_single)

    def _single(
        self,
        start: bytes,
        stop: bytes,
        limit: int,
        hidden: Sequence[Container[bytes]],
        *,
        reverse: bool,
    ) -> list[tuple[bytes, bytes]]:
        """Return the same of a range in which no bundle is."""
        if start >= stop:
            return []
        try:
            pages = self._pages(start, stop, limit, hidden, reverse=reverse)
            found: list[tuple[bytes, bytes]] = []
            for page in pages:
                found += page[: limit - len(found)]
                if len(found) >= limit:
                    break
        except lmdb.Error as error:
            raise explained(error, "read", self.path) from error
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
        run: Run | None = None
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
            inside = cut_to(page, start, stop, reverse=reverse)
            visible = inside
            for container in hidden:
                visible = [item for item in visible if item[0] not in container]
            if inside and (not visible or visible[0] is not inside[0]):
                lead = inside.index(visible[0]) if visible else len(inside)
                run = self._runs.remember(inside[0][0], inside[lead - 1][0], run)
            if visible:
                run = None
                yield visible
            if len(inside) < length:
                return
            length = max(limit, min(2 * length, PAGE_MAX_COUNT))
            # Between two pages the caller has not read anything, so the cursor stands at the end.
            there = cursor.prev() if reverse else cursor.next()

    def _next_single(self, key: bytes) -> bytes | None:
        return self._cursor.key() if self._cursor.set_range(key) else None

    def _seek_last(self, stop: bytes) -> bool:
        return self._cursor.prev() if self._cursor.set_range(stop) else self._cursor.last()

    def _jump(self, *, reverse: bool) -> tuple[Run | None, bool]:
        """If the cursor is in a hidden run, go behind it."""
        run = self._runs.at(self._cursor.key())
        if run is None:
            return None, True
        low, high = run
        if reverse:
            return run, self._seek_last(low)
        there = self._cursor.set_range(high)
        if there and self._cursor.key() == high:
            there = self._cursor.next()
        return run, there

    def _damaged(self, key: bytes) -> NoReturn:
        raise StoreDamaged(f"{self.path}: the checksum of record {key.hex()} is wrong: {ADVICE}")

    def every_record(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield all keys and values in order, None for a value whose checksum is wrong."""
        try:
            stored = self._reader.cursor().iternext()
            single = ((key, unpack(key, value)) for key, value in stored)
            found_bytes = self.stayed.found_bytes
            found_bytes.clear()
            bundled = () if self._bundles is None else self._bundles.every(found_bytes)
            yield from merge(single, bundled, key=_KEY)
        except lmdb.Error as error:
            raise explained(error, "read", self.path) from error

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
        with self._explaining("read"):
            work = rewriting.rewriting_of(
                changes, self._bundles, self._next_single, self.stayed.uses
            )
        puts_any = any(value is not None for _, value in changes)
        if not puts_any and len(changes) > 1 and work.put_bytes > REWRITTEN_MAX_BYTES:
            # On a full disk only a little place is kept for deletions.
            middle = len(changes) // 2
            self.write(changes[:middle])
            self.write(changes[middle:], applied=applied, note=note, aside=aside)
            return
        if puts_any:
            self._take_room(work)
        with self._writing(len(changes)) as transaction:
            self._carry_out(transaction, work, note)
            if applied is not None:
                number = applied.to_bytes(8, "little")
                transaction.put(_APPLIED, pack(_APPLIED, number), db=self._state)
            if aside is not None and aside != self.aside:
                notes = msgspec.msgpack.encode(aside)
                transaction.put(_ASIDE, pack(_ASIDE, notes), db=self._state)
        self._written(work)
        self.applied = self.applied if applied is None else applied
        self.note = note or self.note
        self.aside = self.aside if aside is None else aside
        if puts_any and self._runs:
            self._runs.forget(sorted([key for key, value in changes if value is not None]))

    def leave(self, runs: Sequence[StayingRun], note: JournalNote) -> bool:
        """Say where records are that stay in files; on return it is on the disk.

        Gives whether that was possible; if not, nothing was changed, and they have to be written.
        Raises `StoreFull` with nothing changed, or `StoreFailed`.
        """
        with self._explaining("read"):
            work = rewriting.leaving_of(runs, self._bundles, self._next_single, self.stayed.uses)
        if work is None:
            return False
        self._take_room(work)
        with self._writing(len(work.stays)) as transaction:
            self._carry_out(transaction, work, note)
        self._written(work)
        self.note = note
        for run in runs:
            self._runs.forget_between(run.first, run.last)
        return True

    def leaves(self, run: StayingRun) -> bool:
        """Whether the records of a run are as they were when it was left where it is."""
        with self._explaining("read"):
            found = [self._bundle_around(last) for last in run.lasts]
        return [None if each is None else each.stay for each in found] == run.stays

    @contextlib.contextmanager
    def _explaining(self, verb: str) -> Iterator[None]:
        """Say what it means if it fails."""
        try:
            yield
        except lmdb.Error as error:
            raise explained(error, verb, self.path) from error

    @contextlib.contextmanager
    def _writing(self, count: int) -> Iterator[lmdb.Transaction[bytes]]:
        """Write so many records in one transaction; behind it they are on the disk."""
        try:
            with self._env.begin(write=True, db=self._records) as transaction:
                yield transaction
        except lmdb.Error as error:
            raise self._room.write_error(self._env, error, count) from error

    def _take_room(self, work: rewriting.Rewriting) -> None:
        """Find out before a transaction whether the disk has room for it."""
        parts = (self._records, self._state, self._bundled)
        trees = [self._reader.stat(part) for part in parts if part is not None]
        self._room.take(self._env, trees, work.put_bytes * 2)

    def _written(self, work: rewriting.Rewriting) -> None:
        """See what a transaction has written."""
        # LMDB leaves the last state as it is while it writes the next, so the reader could stay
        # open until here; if the transaction failed, reading goes on with it.
        self._reader.abort()
        self._begin_reading()
        self.stayed.stored(work.files)

    def gather(self) -> None:
        """Take some records of a file in if the files are much longer than what they are for.

        Raises `StoreFull` with nothing changed, or `StoreFailed`.
        """
        number = self.stayed.most_wasteful()
        if number is None or self._bundles is None:
            return
        uses = self.stayed.uses
        work = rewriting.gathering_of(number, rewriting.GATHERED_BYTES, self._bundles, uses)
        self._take_room(work)
        with self._writing(len(work.dropped)) as transaction:
            self._carry_out(transaction, work)
        self._written(work)

    def _carry_out(
        self,
        transaction: lmdb.Transaction,
        work: rewriting.Rewriting,
        note: JournalNote | None = None,
    ) -> None:
        work.carry_out(transaction, self._bundled)
        if note is not None:
            transaction.put(_JOURNAL, pack(_JOURNAL, note.packed()), db=self._state)
        if work.gained_count:
            count = (self._bundled_count + work.gained_count).to_bytes(8, "little")
            transaction.put(_BUNDLED, pack(_BUNDLED, count), db=self._state)
        self.stayed.store(transaction, self._state, work.files)

    def clear(self, start: bytes, stop: bytes, limit: int) -> bytes:
        """Delete up to `limit` records of a range in one transaction, on the disk on return.

        As many bundles may go with them. Gives where the rest begins: `stop` if nothing is left.
        """
        work, rest = rewriting.Rewriting(), stop
        if self._bundles is not None:
            with self._explaining("read"):
                found = rewriting.clearing_of(start, stop, limit, self._bundles, self.stayed.uses)
                work, stop = found
            rest = stop
        with self._writing(limit) as transaction:
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
            self._carry_out(transaction, work)
        self._written(work)
        return rest

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
            self._env = open_environment(self.path, create=False, write=True, lock=True)
            self._open_trees(create=False, write=True)
            self._begin_reading()
        except lmdb.Error as error:
            raise StoreFailed(f"cannot open {self.path} again ({error}): start again") from error
        self._has_readers = True

    def trim(self) -> None:
        """Give back the place that was taken for later."""
        self._room.give_back(self._env)

    def close(self) -> None:
        """Release the file."""
        self.let_go()
        self.stayed.close()
        self._env.close()
        self._files.close(self._file)
        if self._has_readers:
            with contextlib.suppress(OSError):
                self._files.remove(self.path.with_name(self.path.name + READERS_SUFFIX))
