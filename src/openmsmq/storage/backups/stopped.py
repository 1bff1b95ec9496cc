"""The files of a store that no queue manager has open: they are copied as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from openmsmq.storage.backups.snapshot import Part
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import (
    ASIDE_NAMES,
    BASE_NAME,
    FORMAT_NAME,
    JOURNAL_NAMES,
    lock_store,
    read_format,
)
from openmsmq.storage.port import StoreDamaged


@contextlib.contextmanager
def stopped_parts(directory: Path) -> Iterator[list[Part]]:
    """Yield what is to be copied of a store; nobody can open it meanwhile.

    Raises `StoreInUse`, or `StoreDamaged` if there is no store.
    """
    lock = lock_store(directory, create=False)
    try:
        description = read_format(FileOps(), directory)
        if description is None or description.state == "creating":
            raise StoreDamaged(f"there is no store at {directory}: check the path")
        aside = sorted(path.name for path in directory.glob(ASIDE_NAMES))
        names = [FORMAT_NAME, *JOURNAL_NAMES, *aside, BASE_NAME]
        missing = [name for name in names if not (directory / name).is_file()]
        if missing:
            raise StoreDamaged(
                f"{directory / missing[0]} is missing: run `openmsmq store check` for a list"
            )
        yield [Part(name, directory / name, (directory / name).stat().st_size) for name in names]
    finally:
        lock.release()
