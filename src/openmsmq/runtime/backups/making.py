"""Makes one back-up, of a store in use or of one that is stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from openmsmq.runtime.backups.contents import own_parts, store_parts
from openmsmq.runtime.backups.place import check_place, require_room
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.file import STORE_FOLDER
from openmsmq.storage.backups.checking import check_copy
from openmsmq.storage.backups.manifest import BackupError, BackupOwner, Manifest
from openmsmq.storage.backups.snapshot import Part
from openmsmq.storage.backups.stopped import stopped_parts
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.files import FileOps

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


class Making:
    """A back-up on its way: `begin`, then `copy`, then `finish`, or `give_up` at any time."""

    def __init__(
        self, data: Path, directory: str, owner: BackupOwner, files: FileOps | None = None
    ) -> None:
        self._data = data
        self._directory = directory
        self._owner = owner
        self._files = files or FileOps()
        self._draft: Draft | None = None
        self.target = Path(directory)
        self.is_wanted = True
        """Set to false, it ends with an error as soon as it can."""
        self.total_bytes = 0

    def begin(self) -> None:
        """Look at the place, and take it; raises `BackupError`."""
        self.target = check_place(self._directory, self._data)
        draft = Draft(self._files, self.target)
        draft.begin()
        self._draft = draft

    def require_room(self, size_bytes: int) -> None:
        """Raise `BackupError` if a store of this size has no room there."""
        self.total_bytes = size_bytes
        require_room(self.target, size_bytes)

    def copy(self, parts: list[Part], progress: Progress) -> None:
        """Copy the parts of a store, and the files beside it."""
        assert self._draft is not None
        everything = [*own_parts(self._data), *store_parts(parts)]
        self.total_bytes = sum(part.length_bytes for part in everything)
        done = 0
        for part in everything:
            for count in self._draft.copy(part):
                done += count
                if not self.is_wanted:
                    raise BackupError("the queue manager stops: the back-up was given up")
                progress(done, self.total_bytes)

    def finish(self, taken_time_s: int, sequence: int) -> Manifest:
        """Check the copy, and give the back-up its name."""
        assert self._draft is not None
        check_copy(self._draft.path / STORE_FOLDER, lambda: self.is_wanted)
        manifest = self._draft.finish(self._owner, taken_time_s, sequence)
        self._draft = None
        return manifest

    def give_up(self) -> None:
        """Remove what was written, unless it is done."""
        if self._draft is not None:
            self._draft.give_up()


def back_up_stopped(data: Path, directory: str, owner: BackupOwner, progress: Progress) -> Manifest:
    """Back up a queue manager that is not running; raises `StoreError`."""
    with stopped_parts(data / STORE_FOLDER) as parts:
        making = Making(data, directory, owner)
        making.begin()
        try:
            making.require_room(sum(part.length_bytes for part in parts))
            now_s = read_clocks().unix_s
            making.copy(parts, progress)
            return making.finish(now_s, 0)
        finally:
            making.give_up()
