"""Puts a back-up into a data directory, when all of it was verified.

Everything is copied into a folder of the data directory first, its checksums are compared on the
way, and the store is checked there. Only then do the files get their places, by names alone: the
store as the last. A crash in between leaves a directory that says whose it is and has no store,
which no queue manager starts in. What was there before is moved into a folder of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.storage.backups.manifest import (
    STORE_FOLDER,
    BackupError,
    BackupFile,
    read_manifest,
    require_plain,
)
from openmsmq.storage.backups.writing import CHUNK_BYTES, write_error
from openmsmq.storage.files import FileOps, write_whole
from openmsmq.storage.layout import lock_store
from openmsmq.storage.maintenance import check_store

DRAFT_NAME: Final = ".restoring"
BEFORE_NAME: Final = "before-restore"

IDENTITY_NAME: Final = "identity.json"
"""The file that says whose a data directory is."""

Progress = Callable[[int, int], None]


class RestoreReport(msgspec.Struct, frozen=True):
    """What was put back."""

    path: str
    backup: str
    name: str
    id: str
    taken_time_s: int
    file_count: int
    size_bytes: int
    before: str = ""
    """Where that is what was there before."""


def _silent(done: int, total: int) -> None:
    """Show no progress."""


class Restoring:
    """One back-up on its way into a data directory."""

    def __init__(
        self, source: Path, data: Path, *, replace: bool = False, files: FileOps | None = None
    ) -> None:
        """With `replace`, what is in the data directory goes aside."""
        self._files = files or FileOps()
        self._source = source
        self._data = data
        self._replace = replace
        self._draft = data / DRAFT_NAME

    def run(
        self, *, leave_out: Iterable[str] = (), progress: Progress = _silent, now_s: int
    ) -> RestoreReport:
        """Verify the back-up and put it in its place; raises `StoreError` with nothing changed."""
        manifest = read_manifest(self._files, self._source)
        wanted = [file for file in manifest.files if file.path not in set(leave_out)]
        made = self._make_data()
        # A new directory belongs to whom the back-up does.
        self._owner = (self._source if made else self._data).stat()
        with contextlib.ExitStack() as undo:
            if made:
                undo.callback(_remove_empty, self._data)
            try:
                self._files.make_directory(self._draft)
            except FileExistsError:
                raise BackupError(
                    f"{self._draft} is there: another restore is under way, or was cut off; "
                    "remove it if none is"
                ) from None
            except OSError as error:
                raise write_error(error, "make a directory", self._data) from error
            undo.callback(self._files.remove_directory, self._draft)
            self._copy(wanted, progress)
            with self._unused():
                before = self._put_in_place(wanted, now_s)
            undo.pop_all()
        return RestoreReport(
            path=str(self._data),
            backup=str(self._source),
            name=manifest.owner.name,
            id=manifest.owner.id,
            taken_time_s=manifest.taken_time_s,
            file_count=len(wanted),
            size_bytes=sum(file.size_bytes for file in wanted),
            before=before,
        )

    def _make_data(self) -> bool:
        """Find or make the data directory; gives whether it was made."""
        if self._data.is_dir():
            found = sorted(path.name for path in self._data.iterdir() if path.name != DRAFT_NAME)
            if found and not self._replace:
                raise BackupError(
                    f"{self._data} is not empty (it has {found[0]}): name another directory, or "
                    "give --replace, which moves what is there aside"
                )
            return False
        try:
            self._data.parent.mkdir(parents=True, exist_ok=True)
            self._files.make_directory(self._data)
        except OSError as error:
            raise write_error(error, "make a directory", self._data) from error
        return True

    def _copy(self, wanted: list[BackupFile], progress: Progress) -> None:
        """Copy and verify everything."""
        total = sum(file.size_bytes for file in wanted)
        done = 0
        folders: set[Path] = {self._draft}
        for file in wanted:
            path = self._draft / file.path
            try:
                for folder in reversed(path.relative_to(self._draft).parents):
                    place = self._draft / folder
                    if place not in folders:
                        self._files.make_directory(place)
                        self._own(place)
                        folders.add(place)
                for count in self._copy_file(file, path):
                    done += count
                    progress(done, total)
            except OSError as error:
                raise write_error(error, "copy", path) from error
        try:
            for folder in sorted(folders, reverse=True):
                self._files.sync_directory(folder)
        except OSError as error:
            raise write_error(error, "sync", self._draft) from error
        report = check_store(self._draft / STORE_FOLDER, files=self._files)
        if not report.sound:
            raise BackupError(
                f"the store of {self._source} is damaged ({report.problems[0]}): take another "
                "back-up"
            )

    def _copy_file(self, file: BackupFile, path: Path) -> Iterator[int]:
        files = self._files
        origin = self._source / file.path
        try:
            require_plain(self._source, file.path)
            source = files.open(origin, write=False)
        except FileNotFoundError:
            raise BackupError(f"{origin} is missing: take another back-up") from None
        try:
            target = files.open(path, create=True)
            try:
                digest = hashlib.sha256()
                offset = 0
                while data := files.read(source, CHUNK_BYTES, offset):
                    files.write(target, [data], offset)
                    digest.update(data)
                    offset += len(data)
                    yield len(data)
                if (offset, digest.hexdigest()) != (file.size_bytes, file.sha256):
                    raise BackupError(
                        f"{origin} is not as it was written (its checksum is wrong): take another "
                        "back-up"
                    )
                os.fchmod(target, file.mode & 0o777)
                files.sync(target)
            finally:
                files.close(target)
        finally:
            files.close(source)
        self._own(path)

    def _own(self, path: Path) -> None:
        """Give a file to whom the data directory belongs, if we are somebody who can."""
        if os.geteuid() == 0:
            os.chown(path, self._owner.st_uid, self._owner.st_gid)

    @contextlib.contextmanager
    def _unused(self) -> Iterator[None]:
        """Make sure that nobody uses the store that goes aside."""
        store = self._data / STORE_FOLDER
        if not store.is_dir():
            yield
            return
        lock = lock_store(store, create=False)
        try:
            yield
        finally:
            lock.release()

    def _put_in_place(self, wanted: list[BackupFile], now_s: int) -> str:
        """Let everything have its name; the store is the first to go and the last to come.

        Returns where that is what was there before.
        """
        files, data = self._files, self._data
        names = list(dict.fromkeys(file.path.split("/", 1)[0] for file in wanted))
        names.sort(key=lambda name: name == STORE_FOLDER)
        time = datetime.fromtimestamp(now_s, UTC)
        before = data / f"{BEFORE_NAME}-{time:%Y%m%dT%H%M%SZ}"
        gone = dict.fromkeys([*reversed(names), STORE_FOLDER, IDENTITY_NAME])
        going = [name for name in gone if _is_there(data / name)]
        try:
            if going:
                files.make_directory(before)
                for name in going:
                    if name == IDENTITY_NAME and name in names:
                        # Whose the directory is stands there all the time.
                        write_whole(files, before / name, (data / name).read_bytes())
                    else:
                        files.replace(data / name, before / name)
                        files.sync_directory(data)
                files.sync_directory(before)
            for name in names:
                files.replace(self._draft / name, data / name)
                files.sync_directory(data)
            self._own(data)
            files.remove_directory(self._draft)
        except OSError as error:
            raise write_error(error, "put everything in its place", data) from error
        return str(before) if going else ""


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _remove_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir()
