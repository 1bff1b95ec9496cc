"""How a store is opened, or made where there is none."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from openmsmq.storage.aside import Aside
from openmsmq.storage.base import Base
from openmsmq.storage.engine import CHECKPOINT_BYTES, CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.files import FileOps, disk_error
from openmsmq.storage.journal import Journal, JournalNote
from openmsmq.storage.layout import (
    ADVICE,
    BASE_NAME,
    JOURNAL_NAMES,
    SCHEMA_VERSION,
    UNMARKED_VERSION,
    StoreFormat,
    lock_store,
    new_format,
    read_format,
    write_format,
)
from openmsmq.storage.port import StoreDamaged


def open_store(
    path: str | os.PathLike[str],
    *,
    create: bool = True,
    checkpoint_bytes: int = CHECKPOINT_BYTES,
    thorough: bool = False,
    files: FileOps | None = None,
) -> JournaledStore:
    """Open the store in a directory, or create it if there is none and `create` allows it.

    A larger `checkpoint_bytes` moves fewer messages into the base and needs more memory and time
    to start after a crash. `thorough` looks at every page of the base first, which takes a second
    for some hundred megabytes, and not only at those that most reads go through.

    Raises `StoreInUse`, `StoreTooNew`, `StoreDamaged`, `StoreFull` or `StoreFailed`; a store that
    cannot be read is never replaced by an empty one.
    """
    if checkpoint_bytes < CHECKPOINT_MIN_BYTES:
        raise ValueError(f"checkpoint_bytes must be at least {CHECKPOINT_MIN_BYTES}")
    directory = Path(path)
    files = files or FileOps()
    try:
        return _open(
            files,
            directory,
            create=create,
            checkpoint_bytes=checkpoint_bytes,
            thorough=thorough,
        )
    except OSError as error:
        raise disk_error(error, "open the store", directory) from error


def _open(
    files: FileOps, directory: Path, *, create: bool, checkpoint_bytes: int, thorough: bool
) -> JournaledStore:
    lock = lock_store(directory, create=create)
    with contextlib.ExitStack() as parts:
        parts.callback(lock.release)
        description = read_format(files, directory)
        if description is None or description.state == "creating":
            if not create:
                raise StoreDamaged(f"there is no store at {directory}: check the path")
            description = _create(files, directory, checkpoint_bytes)
        base = Base(files, directory / BASE_NAME, thorough=thorough)
        parts.callback(base.close)
        base.require_note(is_marked=description.version != UNMARKED_VERSION)
        for problem in base.stayed.problems():
            raise StoreDamaged(f"{problem}: {ADVICE}")
        framing = description.framing
        journal = Journal(files, directory, framing, size_bytes=checkpoint_bytes)
        parts.callback(journal.close)
        aside = Aside(files, directory, framing, base.aside, base.stayed)
        store = JournaledStore(lock, journal, base, aside, checkpoint_bytes=checkpoint_bytes)
        if description.version == UNMARKED_VERSION:
            ready = msgspec.structs.replace(new_format(), state="ready")
            store.reframe(ready.framing, lambda: write_format(files, directory, ready))
        elif description.version < SCHEMA_VERSION:
            ready = msgspec.structs.replace(description, version=SCHEMA_VERSION)
            write_format(files, directory, ready)
        parts.pop_all()
    return store


def _create(files: FileOps, directory: Path, checkpoint_bytes: int) -> StoreFormat:
    """Make the files of a new store; what an interrupted creation left is made again."""
    description = new_format()
    write_format(files, directory, description)
    for name in (BASE_NAME, *JOURNAL_NAMES):
        files.remove(directory / name)
    Journal.create(files, directory, checkpoint_bytes)
    base = Base(files, directory / BASE_NAME, create=True)
    try:
        base.write([], note=JournalNote(0, (checkpoint_bytes, checkpoint_bytes)))
    finally:
        base.close()
    files.sync_directory(directory)
    ready = msgspec.structs.replace(description, state="ready")
    write_format(files, directory, ready)
    files.sync_directory(directory.parent)
    return ready
