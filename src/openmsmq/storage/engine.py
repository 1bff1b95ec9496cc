"""The durable store: a journal in front of an LMDB file, joined by checkpoints.

`commit` writes one journal record and syncs it; only then is the batch visible. When a journal
file is full, the other one takes over and the changes of the full one are moved into the base, a
slice after each later commit, so that no commit waits for a whole checkpoint. The slices begin
when half of the new file is used: by then most messages of a busy queue are gone again and need
not be moved at all. Replaying a batch that the base has already is harmless, because a batch says
what the values are, not how they change; so only the end of a checkpoint needs to be recorded.

A range that is deleted is one line of the journal, however many records it has. From then on
nobody sees them; they are cleared out of the base in slices too, before anything else is moved.
Taking what was set aside is one line, too (`aside` says why). If it is much, the base says at once
where it is, and it stays there: nothing of it is written again. If it is little, it is moved like
all else. It does not fill the journal, which says otherwise when to move; so a batch that sets
values aside moves as many, and a checkpoint begins when very much was taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from typing import Final

import msgspec

from openmsmq.storage.aside import Aside
from openmsmq.storage.base import KEY_MAX_BYTES, Base
from openmsmq.storage.files import DirectoryLock
from openmsmq.storage.frames import AsideNotes, Changes, Framing, Moves, Record, encode_changes
from openmsmq.storage.journal import Journal
from openmsmq.storage.memtable import CHANGE_COST_BYTES, Memtable
from openmsmq.storage.port import (
    KEY_NUMBER_BYTES,
    Batch,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    Stretch,
    Taken,
)
from openmsmq.storage.replication.prepared import Prepared

CHECKPOINT_BYTES: Final = 16 << 20
"""Size of a journal file: so much is written between two checkpoints."""

CHECKPOINT_MIN_BYTES: Final = 4096
"""A smaller journal file makes no sense."""

CHECKPOINT_MAX_COUNT: Final = 65_536
"""Changed keys between two checkpoints: deletions are short in the journal but not in memory."""

TAKEN_MAX_BYTES: Final = 128 << 20
"""What is taken between two checkpoints: a line of the journal says it, but a start reads all."""

STAYING_MIN_BYTES: Final = 1 << 20
"""A batch that takes so much lets it stay in its files. For less, a transaction of the base costs
more than to move it with others."""

SLICE_BYTES: Final = 1 << 20
"""What one slice moves into the base; the longest that a commit waits beside its own work."""

DELETIONS_SPARE_SHARE: Final = 8
"""One part in so many of a journal file is kept for deletions when the disk is full."""

CLEARED_MAX_COUNT: Final = 4096
"""Records of a deleted range that one slice clears out of the base."""

CLEARINGS_LATE_COUNT: Final = 4
"""Slices that a commit clears when a journal file waits to be moved behind them."""

RELIEF_MAX_COUNT: Final = 4096
"""Deletions moved ahead of everything else when the base has no room."""

_NAME: Final = attrgetter("name")


class JournaledStore:
    """A store in a directory; see `open_store`."""

    def __init__(
        self,
        lock: DirectoryLock,
        journal: Journal,
        base: Base,
        aside: Aside,
        *,
        checkpoint_bytes: int,
    ) -> None:
        self._lock = lock
        self._journal = journal
        self._base = base
        self._aside = aside
        self._spare_bytes = checkpoint_bytes // DELETIONS_SPARE_SHARE
        self._memtable = Memtable(base.contains)
        self._sealed_sequence: int | None = None
        self._sealed_aside: AsideNotes = {}
        self._taken_bytes = 0
        base.stayed.left = aside.left
        self._failure: str | None = None
        self._shown: list[Prepared] = []
        """What can be seen, and is on the disks of others only."""
        self.shown_bytes = 0
        """What that takes in the journal."""
        self._closed = False
        # Whether the base knows of a batch of this turn of the journal.
        self._noted = False
        self.parts: Final = base, journal, aside
        """What it stands on, for whoever copies it while it is used."""
        self.rewriting: Final[list[Callable[[], None]]] = []
        """What is called before a file of the journal is begun anew."""
        self._replay()

    def _replay(self) -> None:
        last: int | None = None
        for records in self._journal.recover(self._base.applied, self._base.note):
            if last is not None:
                self._seal(last)
            for record in records:
                try:
                    self._replay_batch(record)
                except msgspec.DecodeError as error:
                    raise StoreDamaged(
                        f"{self._journal.active_path}: batch {record.sequence} at offset "
                        f"{record.offset} has a valid checksum but is not readable ({error}): "
                        "it was written by something else than this software"
                    ) from error
            last = records[-1].sequence
        self._aside.begin()

    def _replay_batch(self, record: Record) -> None:
        content = record.content()
        for start, stop in content.ranges:
            self._memtable.delete_range(start, stop)
        for name, note in content.moves.aside.items():
            self._aside.keep(name, note)
        self._take(content.moves, record.sequence, is_replayed=True)
        self._memtable.apply(content.changes)

    def _take(self, moves: Moves, sequence: int, *, is_replayed: bool = False) -> None:
        """Apply what a batch that is in the journal takes and drops."""
        if not self._stays(moves.taken, is_replayed=is_replayed):
            for name, parts in groupby(moves.taken, key=_NAME):
                values = self._aside.values(name)
                for taken in parts:
                    self._memtable.apply_run(taken.records(values))
        for name in moves.dropped:
            self._aside.drop(name, sequence)

    def _stays(self, taken: list[Taken], *, is_replayed: bool) -> bool:
        """Let what a batch takes stay in its files, if all of it can and it is much.

        That is on the disk before the next checkpoint, but never before the batch is in the
        journal. A start writes nothing: it only finds that the base says so already.
        """
        # What goes to many queues is taken in as many parts of one file, which is read once.
        names = {each.name for each in taken}
        size_bytes = sum(self._aside.notes[name].size_bytes for name in names)
        self._taken_bytes += size_bytes
        if size_bytes < STAYING_MIN_BYTES:
            return False
        runs = [run for each in taken if (run := self._aside.run(each)) is not None]
        untouched = self._memtable.is_untouched
        if len(runs) < len(taken) or not all(untouched(run.first, run.last) for run in runs):
            return False
        if is_replayed:
            return all(map(self._base.leaves, runs))
        try:
            return self._base.leave(runs, self._journal.note)
        except StoreFull:
            # The batch is safe in the journal.
            return False

    def _seal(self, sequence: int) -> None:
        """Begin to move everything up to a batch into the base."""
        self._memtable.seal()
        self._sealed_sequence = sequence
        self._sealed_aside = dict(self._aside.notes)
        self._taken_bytes = 0

    @property
    def base_count(self) -> int:
        """The number of records that checkpoints have moved into the base."""
        return self._base.count

    # Reading.

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        memtable = self._memtable
        for part in (memtable.volatile, memtable.active, memtable.sealed):
            if key in part:
                return part[key]
        return None if memtable.is_gone(key) else self._base.get(key)

    def scan(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` records with `start` <= key < `stop`, in order of their keys."""
        if limit <= 0 or start >= stop:
            return []
        return self._memtable.scan(self._base.records, start, stop, limit, reverse=reverse)

    def stretch(self, start: bytes, stop: bytes, count_max: int, bytes_max: int) -> Stretch | None:
        """Return the first records with `start` <= key < `stop` if they lie side by side."""
        if count_max <= 0 or start >= stop:
            return None
        stop = self._memtable.untouched(start, stop)
        return self._base.stretch(start, stop, count_max, bytes_max)

    # Writing.

    @property
    def sequence(self) -> int:
        """The number of the last batch that is durable."""
        return self._journal.last_sequence

    def commit(self, batch: Batch) -> None:
        """Apply a batch; on return its durable changes survive a loss of power."""
        self.finish(self.prepare(batch))

    def prepare(self, batch: Batch) -> Prepared:
        """Do all that may be refused for want of room: then `finish` is left, and nothing between.

        Nothing of the batch can be seen yet, nor found by the next start.
        """
        assert not self._closed, "a closed store was asked to commit"
        if batch.moves:
            self.catch_up()
        if self._failure is not None:
            raise StoreFailed(self._failure)
        changes = self._journaled(batch)
        try:
            moves = self._set_aside(batch) if batch.moves else None
            if not (changes or batch.ranges or moves is not None):
                return Prepared(batch, changes, None, b"")
            payload = encode_changes(changes, batch.ranges, moves)
            prepared = Prepared(batch, changes, moves, payload)
            self._reserve(prepared)
        except (StoreFailed, StoreDamaged) as error:
            self._refuse_commits(error)
            raise
        return prepared

    def finish(self, prepared: Prepared) -> None:
        """Apply what was prepared; on return its durable changes survive a loss of power."""
        batch, is_durable = prepared.batch, bool(prepared.payload)
        if is_durable:
            self.catch_up()
        if self._failure is not None:
            raise StoreFailed(self._failure)
        try:
            if is_durable:
                self._write([prepared])
            self._apply(prepared)
        except (StoreFailed, StoreDamaged) as error:
            self._refuse_commits(error)
            raise
        if is_durable:
            self._move_in_step()
            if batch.aside:
                self._move_as_much(batch)

    def show(self, prepared: Prepared) -> None:
        """Apply what a log elsewhere has made durable; `catch_up` brings it to this disk.

        In between others may be told of it. It stands behind whatever was shown before.
        """
        if prepared.moves is not None or not prepared.payload:
            self.finish(prepared)
        elif self._failure is not None:
            raise StoreFailed(self._failure)
        else:
            self._apply(prepared)
            self._shown.append(prepared)
            self.shown_bytes += self._journal.record_bytes(prepared.payload)

    def catch_up(self) -> None:
        """Have on this disk what was shown, if anything was, with one write and one sync."""
        if not self._shown:
            return
        if self._failure is not None:
            raise StoreFailed(self._failure)
        try:
            self._write(self._shown)
        except Exception as error:
            # Whatever it is: the next batch would get the number of the first of these. They stay
            # shown, so that whoever asks later hears of it, too.
            self._refuse_commits(error)
            raise
        shown, self._shown, self.shown_bytes = self._shown, [], 0
        for _ in shown:
            self._move_in_step()

    def _write(self, prepared: list[Prepared]) -> None:
        self._journal.append([each.payload for each in prepared])
        if not self._noted:
            self._note()

    def _apply(self, prepared: Prepared) -> None:
        batch, moves = prepared.batch, prepared.moves
        for start, stop in batch.ranges:
            self._memtable.delete_range(start, stop)
        if moves is not None:
            for name, values in batch.aside:
                self._aside.keep(name, moves.aside[name], values)
            self._take(moves, self._journal.last_sequence)
        self._memtable.apply(batch.changes)
        self._memtable.apply_volatile(batch.volatile)
        self._memtable.forget(batch.forgotten)

    def _set_aside(self, batch: Batch) -> Moves:
        """Write what is set aside into files, which have to be on the disk before the journal."""
        notes: AsideNotes = {}
        sequence = self._journal.last_sequence + 1
        try:
            for name, values in batch.aside:
                notes[name] = self._aside.write(name, values, sequence)
        except StoreError:
            self._give_up(notes)
            raise
        return Moves(notes, batch.taken, batch.dropped)

    def _give_up(self, notes: AsideNotes) -> None:
        for note in notes.values():
            self._aside.give_up(note)

    def _reserve(self, prepared: Prepared) -> None:
        """Have room for a batch in the journal."""
        try:
            self._make_room(len(prepared.payload), adds=prepared.adds)
        except StoreFull:
            if prepared.moves is not None:
                self._give_up(prepared.moves.aside)
            raise

    def _journaled(self, batch: Batch) -> Changes:
        """Return the changes that have to reach the disk; deleting a volatile key does not."""
        for key, _ in batch.changes:
            if not 0 < len(key) <= KEY_MAX_BYTES:
                raise ValueError(f"a key has 1 to {KEY_MAX_BYTES} bytes, not {len(key)}")
        for key, _ in batch.volatile:
            if not 0 < len(key) <= KEY_MAX_BYTES:
                raise ValueError(f"a key has 1 to {KEY_MAX_BYTES} bytes, not {len(key)}")
        for taken in batch.taken:
            if not KEY_NUMBER_BYTES < len(taken.key) <= KEY_MAX_BYTES:
                raise ValueError(f"what is taken gets no key of {len(taken.key)} bytes")
        volatile = self._memtable.volatile
        if not volatile:
            return batch.changes
        put_here = {key for key, value in batch.changes if value is not None}
        return [
            (key, value)
            for key, value in batch.changes
            if key not in volatile
            or key in put_here
            or self._memtable.changed(key)
            or self._base.contains(key)
        ]

    def _note(self) -> None:
        """Note that the journal has begun a turn, lest an emptied file look like an unused one."""
        # On a full disk it has to do with what was noted before; the next slice notes it again.
        with contextlib.suppress(StoreFull):
            self._base.write([], note=self._journal.note)
        self._noted = True

    def _make_room(self, payload_bytes: int, *, adds: bool) -> None:
        """Switch to the other journal file if the active one is full."""
        crowded = self._crowding() >= 1
        if not crowded and self._journal.fits(payload_bytes + self.shown_bytes, self._spare_bytes):
            return
        self.catch_up()
        try:
            self._switch(payload_bytes)
        except StoreFull:
            if self._aside.give_up_free():
                return self._make_room(payload_bytes, adds=adds)
            # Deletions may use the last part of the file, so that a full store can be emptied.
            if not self._journal.fits(payload_bytes, self._spare_bytes if adds else 0):
                raise

    def _crowding(self) -> float:
        """How much of what a checkpoint may have is there; from 1 on the next one begins."""
        taken = self._taken_bytes / TAKEN_MAX_BYTES
        return max(len(self._memtable.active) / CHECKPOINT_MAX_COUNT, taken)

    def _switch(self, payload_bytes: int) -> None:
        self._finish_checkpoint()
        shorter = self._journal.note_before_switch(payload_bytes, self._spare_bytes)
        if shorter is not None:
            self._base.write([], note=shorter)
        self._warn()
        self._journal.switch(payload_bytes, self._spare_bytes)
        self._noted = False
        self._seal(self._journal.last_sequence)

    def _warn(self) -> None:
        for warned in self.rewriting:
            warned()

    def _finish_checkpoint(self) -> None:
        while self._sealed_sequence is not None:
            try:
                self._move_slice()
            except StoreFull:
                self._relieve()
                self._move_slice()

    def _move_in_step(self) -> None:
        """Move slices so that the sealed file is free when the active one is full."""
        used = max(self._journal.used_share(self._spare_bytes), self._crowding())
        try:
            if self._memtable.gone:
                is_late = self._sealed_sequence is not None and used > 1 / 2
                for _ in range(CLEARINGS_LATE_COUNT if is_late else 1):
                    self._clear_slice()
                return
            while self._sealed_sequence is not None and self._memtable.moved_share <= 2 * used - 1:
                self._move_slice()
            self._base.gather()
        except StoreFull:
            # The batch is safe in the journal. It is tried again when the file is full.
            return
        except (StoreFailed, StoreDamaged) as error:
            self._refuse_commits(error)

    def _move_as_much(self, batch: Batch) -> None:
        """Move as much into the base as a batch has set aside."""
        cost_bytes = sum(
            sum(map(len, values)) + CHANGE_COST_BYTES * len(values) for _, values in batch.aside
        )
        try:
            if self._sealed_sequence is not None and not self._memtable.gone:
                self._move_slice(max(cost_bytes, SLICE_BYTES))
        except StoreFull:
            return
        except (StoreFailed, StoreDamaged) as error:
            self._refuse_commits(error)

    def _refuse_commits(self, error: Exception) -> None:
        """Accept nothing more: after a failed sync, a later one that succeeds proves nothing."""
        why = str(error) or repr(error)
        self._failure = f"no commit is accepted after an earlier failure: {why}"

    def _clear_slice(self) -> None:
        """Clear a part of what is gone out of the base."""
        if self._memtable.gone:
            start, stop = self._memtable.gone[0]
            self._memtable.cleared(self._base.clear(start, stop, CLEARED_MAX_COUNT))

    def _move_slice(self, cost_bytes: int = SLICE_BYTES) -> None:
        memtable = self._memtable
        while memtable.gone:
            self._clear_slice()
        changes, place = memtable.next_slice(cost_bytes)
        last = memtable.is_last(place)
        applied = self._sealed_sequence if last else None
        aside = self._sealed_aside if last else None
        self._base.write(changes, applied=applied, note=self._journal.note, aside=aside)
        memtable.moved(changes, place)
        if last:
            self._sealed_sequence = None
            self._aside.applied(self._base.applied)

    def _relieve(self) -> None:
        """Make room for the base: by files that nobody uses, and by deletions, which free pages."""
        self._aside.give_up_free()
        deletions = self._memtable.deletions(RELIEF_MAX_COUNT)
        if deletions:
            self._base.write(deletions)
            self._memtable.moved_deletions(deletions)

    def checkpoint(self) -> None:
        """Move everything durable into the base, so that the next start has nothing to replay."""
        self.catch_up()
        if self._failure is not None:
            raise StoreFailed(self._failure)
        try:
            self._finish_checkpoint()
            if self._base.applied < self._journal.last_sequence:
                self._seal(self._journal.last_sequence)
                self._finish_checkpoint()
                self._warn()
                self._journal.rewind()
                self._noted = False
        except (StoreFailed, StoreDamaged) as error:
            self._refuse_commits(error)
            raise

    def reframe(self, framing: Framing, announce: Callable[[], None]) -> None:
        """Let the journal's records be known by something else, which `announce` makes durable."""
        self.checkpoint()
        self._base.write([], note=self._journal.note)
        announce()
        # What the files have is in the base, so nobody needs to recognise it again.
        self._journal.begin_anew(framing)
        self._aside.framing = framing

    def close(self) -> None:
        """Release everything; nothing that was committed is lost."""
        if self._closed:
            return
        # What a checkpoint cannot move stays in the journal, where the next start finds it.
        with contextlib.suppress(StoreError):
            self.checkpoint()
        self.abandon()

    def abandon(self) -> None:
        """Release everything as it is; the next start replays the journal as after a crash."""
        if self._closed:
            return
        self._closed = True
        self._journal.close()
        self._base.close()
        self._lock.release()
