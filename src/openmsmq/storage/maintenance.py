"""Checking and compacting a store that no queue manager has open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.storage.aside import Aside
from openmsmq.storage.base import Base
from openmsmq.storage.bundles.pages import damaged_pages
from openmsmq.storage.bundles.stayed_files import StayedFiles
from openmsmq.storage.files import FileOps, disk_error
from openmsmq.storage.frames import AsideNotes
from openmsmq.storage.journal import Journal, JournalNote
from openmsmq.storage.layout import (
    BASE_NAME,
    UNMARKED_VERSION,
    StoreFormat,
    lock_store,
    read_format,
)
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import StoreDamaged

Progress = Callable[[int, int], None]
"""Called with the records done and the records in all."""

PROBLEMS_MAX_COUNT: Final = 100
"""Problems that a report names; it counts the others."""

COPY_COUNT: Final = 4096
"""Records copied in one transaction."""


class StoreReport(msgspec.Struct, frozen=True):
    """What a check found."""

    path: str
    schema_version: int
    record_count: int
    """Records in the base."""
    record_bytes: int
    """Their keys and values together."""
    file_bytes: int
    """The size of the base on the disk, with the files in which values of it stay."""
    applied_sequence: int
    """The last batch that the base contains."""
    journal_batch_count: int
    """Batches that only the journal has."""
    journal_change_count: int
    problem_count: int
    problems: tuple[str, ...]
    """What is wrong, the first hundred."""

    @property
    def sound(self) -> bool:
        """Whether everything is as it was written."""
        return self.problem_count == 0


class CompactReport(msgspec.Struct, frozen=True):
    """What a compaction did."""

    path: str
    record_count: int
    before_bytes: int
    after_bytes: int


def _silent(done: int, total: int) -> None:
    """Show no progress."""


class _Findings:
    """What a check has found so far."""

    def __init__(self) -> None:
        self.count = 0
        self.problems: list[str] = []
        self.numbers: dict[str, int] = {}

    def add(self, problem: str) -> None:
        self.count += 1
        if len(self.problems) < PROBLEMS_MAX_COUNT:
            self.problems.append(problem)

    def add_all(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.add(problem)

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Turn damage into a finding, so that the rest is checked too."""
        try:
            yield
        except (StoreDamaged, msgspec.DecodeError) as error:
            self.add(str(error))


def check_store(
    path: str | os.PathLike[str], *, progress: Progress = _silent, files: FileOps | None = None
) -> StoreReport:
    """Read every record of a store and verify it; nothing is changed.

    Raises `StoreInUse`, `StoreTooNew`, or `StoreDamaged` if the directory holds no store at all.
    """
    directory = Path(path)
    files = files or FileOps()
    lock = lock_store(directory, create=False)
    findings = _Findings()
    try:
        description: StoreFormat | None = None
        with findings.collecting():
            description = read_format(files, directory)
            if description is None or description.state == "creating":
                raise StoreDamaged(f"there is no store at {directory}: check the path")
        base: _BaseFacts | None = None
        with findings.collecting():
            base = _check_base(files, directory, description, findings, progress)
        # Without its mark the journal cannot be told from noise.
        if description is not None and base is not None:
            with findings.collecting():
                _check_journal(files, directory, description, base, findings)
    except OSError as error:
        raise disk_error(error, "check the store", directory) from error
    finally:
        lock.release()
    return StoreReport(
        path=str(directory),
        schema_version=description.version if description is not None else 0,
        applied_sequence=base.applied if base is not None else 0,
        problem_count=findings.count,
        problems=tuple(findings.problems),
        **{
            name: findings.numbers.get(name, 0)
            for name in (
                "record_count",
                "record_bytes",
                "file_bytes",
                "journal_batch_count",
                "journal_change_count",
            )
        },
    )


class _BaseFacts(msgspec.Struct, frozen=True):
    """What the base says of the journal."""

    applied: int
    note: JournalNote | None
    aside: AsideNotes
    stayed: StayedFiles


def _check_base(
    files: FileOps,
    directory: Path,
    description: StoreFormat | None,
    findings: _Findings,
    progress: Progress,
) -> _BaseFacts:
    path = directory / BASE_NAME
    if path.exists() and path.stat().st_size:
        before = findings.count
        findings.add_all(damaged_pages(files, path, thorough=True))
        if findings.count > before:
            # LMDB would believe the pages; it could end this process.
            raise StoreDamaged(f"{path}: its records were not read; restore the directory")
    base = Base(files, path, write=False)
    try:
        total = base.count
        done = size_bytes = 0
        for key, value in base.every_record():
            done += 1
            if value is None:
                findings.add(f"{base.path}: the checksum of record {key.hex()} is wrong")
            else:
                size_bytes += len(key) + len(value)
            if done % COPY_COUNT == 0:
                progress(done, total)
        progress(done, total)
        if done != total:
            findings.add(f"{base.path}: {total} records are announced, {done} are there")
        findings.numbers.update(
            record_count=done,
            record_bytes=size_bytes,
            file_bytes=base.size_bytes + base.stayed.size_bytes,
        )
        findings.add_all(base.stayed.problems())
        findings.add_all(base.stayed.miscounted())
        if description is not None:
            with findings.collecting():
                base.require_note(is_marked=description.version != UNMARKED_VERSION)
        return _BaseFacts(base.applied, base.note, base.aside, base.stayed)
    finally:
        base.close()


def _check_journal(
    files: FileOps,
    directory: Path,
    description: StoreFormat,
    base: _BaseFacts,
    findings: _Findings,
) -> None:
    framing = description.framing
    journal = Journal(files, directory, framing, size_bytes=0, write=False)
    aside = Aside(files, directory, framing, base.aside, base.stayed)
    try:
        batches = changes = 0
        for records in journal.recover(base.applied, base.note):
            batches += len(records)
            for record in records:
                content = record.content()
                changes += content.count
                aside.notes.update(content.moves.aside)
                # What was dropped without being taken is not needed any more.
                needed = {taken.name for taken in content.moves.taken}
                _check_aside(aside, needed, findings)
                for name in content.moves.dropped:
                    aside.notes.pop(name)
        _check_aside(aside, aside.notes, findings)
        findings.numbers.update(journal_batch_count=batches, journal_change_count=changes)
    finally:
        journal.close()


def _check_aside(aside: Aside, names: Iterable[bytes], findings: _Findings) -> None:
    for name in names:
        with findings.collecting():
            aside.read(name)


def compact_store(
    path: str | os.PathLike[str], *, progress: Progress = _silent, files: FileOps | None = None
) -> CompactReport:
    """Write the records of a store anew without the space that deleted ones left.

    Every record is verified on the way; damage raises `StoreDamaged`. A crash leaves the old
    records or the new ones.
    """
    directory = Path(path)
    files = files or FileOps()
    # Opening and closing moves the journal into the base, so that only one file has to be copied.
    store = open_store(directory, create=False, thorough=True, files=files)
    store.close()
    # On a full disk a part of the journal may be left, and a start reads what that takes.
    is_moved = store.parts[0].applied == store.sequence
    lock = lock_store(directory, create=False)
    try:
        return _compact(files, directory, progress, is_moved=is_moved)
    except OSError as error:
        raise disk_error(error, "compact the store", directory) from error
    finally:
        lock.release()


def _compact(
    files: FileOps, directory: Path, progress: Progress, *, is_moved: bool
) -> CompactReport:
    """Compact what the base has; `is_moved` says whether the journal has nothing beside."""
    target = directory / (BASE_NAME + ".compact")
    files.remove(target)
    source = Base(files, directory / BASE_NAME)
    try:
        before_bytes = source.size_bytes + source.stayed.size_bytes
        try:
            copy = Base(files, target, create=True)
            try:
                count = _copy(source, copy, progress)
                copy.trim()
            finally:
                copy.close()
            after_bytes = target.stat().st_size
        except BaseException:
            files.remove(target)
            raise
        # What is still aside is needed as it is; all else the copy has.
        aside = {note.file for note in source.aside.values()}
        left = [source.stayed.path(number) for number in source.stayed.uses if number not in aside]
    finally:
        source.close()
    files.replace(target, directory / BASE_NAME)
    files.sync_directory(directory)
    if is_moved:
        for path in left:
            files.remove(path)
    return CompactReport(str(directory), count, before_bytes, after_bytes)


def _copy(source: Base, target: Base, progress: Progress) -> int:
    total = source.count
    done = 0
    part: list[tuple[bytes, bytes | None]] = []
    for key, value in source.every_record():
        if value is None:
            raise StoreDamaged(
                f"{source.path}: the checksum of record {key.hex()} is wrong; nothing was changed"
            )
        part.append((key, value))
        if len(part) == COPY_COUNT:
            target.write(part)
            done += len(part)
            part = []
            progress(done, total)
    target.write(part, applied=source.applied, note=source.note, aside=source.aside)
    progress(done + len(part), total)
    return done + len(part)
