"""Writes a back-up: under another name, which it loses when everything is on the disk.

The order is what makes it whole or nothing: the files, their syncs, the names of their folders,
the manifest, and last the name of the whole. A crash before that leaves a hidden directory beside,
which nobody takes for a back-up, and which the next one of the same name removes. Whoever writes
one holds it, and what somebody holds is never removed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from openmsmq.storage.backups.manifest import (
    BACKUP_VERSION,
    MANIFEST_NAME,
    BackupError,
    BackupFile,
    BackupOwner,
    Manifest,
    is_good_path,
    write_manifest,
)
from openmsmq.storage.backups.snapshot import Part
from openmsmq.storage.files import FULL, FileOps

CHUNK_BYTES: Final = 1 << 20
"""So much is copied in one step."""

SYNC_BYTES: Final = 4 << 20
"""So much is written before it is synced: a disk that has much to write makes commits wait."""

_OWNER_ONLY: Final = 0o600
_SUFFIX_BYTES: Final = 4
_SUFFIX: Final = re.compile(rf"[0-9a-f]{{{2 * _SUFFIX_BYTES}}}")


def write_error(error: OSError, what: str, where: Path) -> BackupError:
    """Return what an error of the file system means for a back-up."""
    if error.errno in FULL:
        return BackupError(
            f"no space to {what} at {where} ({error.strerror}): free some space, or name another "
            "disk"
        )
    return BackupError(f"cannot {what} at {where} ({error.strerror or error})")


class Draft:
    """A back-up that is being written."""

    def __init__(self, files: FileOps, target: Path) -> None:
        self._files = files
        self._target = target
        self._prefix = f".{target.name}.part-"
        self.path: Final = target.with_name(self._prefix + secrets.token_hex(_SUFFIX_BYTES))
        self._held: int | None = None
        self._folders: set[Path] = set()
        self._written: list[BackupFile] = []

    def begin(self) -> None:
        """Make its directory, where others that were killed have left theirs before."""
        self._remove_left()
        try:
            self._files.make_directory(self.path)
        except OSError as error:
            raise write_error(error, "make a directory", self._target.parent) from error
        self._folders.add(self.path)
        # Where directories cannot be held, nobody can see whether one is, and none is removed.
        with contextlib.suppress(OSError):
            self._held = self._files.hold_directory(self.path)

    def _remove_left(self, *, whole: bool = False) -> None:
        """Remove what was left by others that are no more; with `whole`, also what has everything.

        That lacks but its name, and may be all that there is until this one is done.
        """
        with contextlib.suppress(OSError):
            for path in self._target.parent.iterdir():
                name = path.name
                if not name.startswith(self._prefix) or path == self.path:
                    continue
                if _SUFFIX.fullmatch(name, len(self._prefix)):
                    self._remove_if_left(path, whole=whole)

    def _remove_if_left(self, path: Path, *, whole: bool) -> None:
        with contextlib.suppress(OSError):
            held = self._files.hold_directory(path)
            try:
                is_ours = os.fstat(held).st_uid == os.geteuid()
                if is_ours and (whole or not (path / MANIFEST_NAME).exists()):
                    self._files.remove_directory(path)
            finally:
                self._files.close(held)

    def _let_go(self) -> None:
        if self._held is not None:
            self._files.close(self._held)
            self._held = None

    def copy(self, part: Part) -> Iterator[int]:
        """Copy a file step by step; yields how many bytes of the copy each step has written."""
        if not is_good_path(part.name):
            raise BackupError(f"{part.source} has a name that no back-up can have: rename it")
        path = self.path / part.name
        try:
            self._make_folder(path.parent, part.source.parent)
            try:
                source = self._files.open(part.source, write=False)
            except FileNotFoundError:
                if not part.may_end:
                    raise
                return
            try:
                file = self._files.open(path, create=True)
                try:
                    yield from self._copy(part, source, file)
                finally:
                    self._files.close(file)
            finally:
                self._files.close(source)
        except OSError as error:
            raise write_error(error, "copy", path) from error

    def _make_folder(self, path: Path, origin: Path) -> None:
        if path not in self._folders:
            self._make_folder(path.parent, origin.parent)
            self._files.make_directory(path)
            self._folders.add(path)
            _own(path, origin.stat())

    def _copy(self, part: Part, source: int, file: int) -> Iterator[int]:
        files = self._files
        digest = hashlib.sha256()
        offset = unsynced = 0
        for data in self._pieces(part, source):
            files.write(file, [data], offset)
            digest.update(data)
            offset += len(data)
            unsynced += len(data)
            if unsynced >= SYNC_BYTES:
                files.sync(file)
                unsynced = 0
            yield len(data)
        if offset < part.padded_bytes:
            # The place is taken now, so that whoever uses the copy does not run out of it.
            files.allocate(file, part.padded_bytes)
            yield from _hash_zeroes(digest, part.padded_bytes - offset)
            offset = part.padded_bytes
        found = os.fstat(source)
        mode = stat.S_IMODE(found.st_mode)
        os.fchmod(file, mode)
        _own(file, found)
        files.sync(file)
        self._written.append(BackupFile(part.name, offset, digest.hexdigest(), mode))

    def _pieces(self, part: Part, source: int) -> Iterator[bytes]:
        offset = 0
        while offset < part.size_bytes:
            length = min(CHUNK_BYTES, part.size_bytes - offset)
            if offset < len(part.head):
                data = part.head[offset : offset + length]
            else:
                data = self._files.read(source, length, offset)
            if not data:
                if part.may_end:
                    return
                raise BackupError(f"{part.source} has become shorter while it was copied")
            offset += len(data)
            yield data

    def finish(self, owner: BackupOwner, taken_time_s: int, sequence: int) -> Manifest:
        """Have everything on the disk, give the back-up its name, and return what it is."""
        files, target = self._files, self._target
        manifest = Manifest(BACKUP_VERSION, owner, taken_time_s, sequence, self._written)
        try:
            for folder in sorted(self._folders, reverse=True):
                files.sync_directory(folder)
            write_manifest(files, self.path, manifest)
            # A directory that is there is replaced only if it is empty.
            files.replace(self.path, target)
            files.sync_directory(target.parent)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise BackupError(
                    f"{target} is not empty any more: somebody has put something there"
                ) from error
            raise write_error(error, "finish the back-up", target) from error
        self._let_go()
        self._remove_left(whole=True)
        return manifest

    def give_up(self) -> None:
        """Remove what was written."""
        with contextlib.suppress(OSError):
            self._files.remove_directory(self.path)
        self._let_go()


def _own(copy: int | Path, found: os.stat_result) -> None:
    """Give a copy to whom the original belongs, if we are somebody who can."""
    if os.geteuid() == 0:
        os.chown(copy, found.st_uid, found.st_gid)


def _hash_zeroes(digest: hashlib._Hash, count: int) -> Iterator[int]:
    zeroes = bytes(CHUNK_BYTES)
    while count:
        length = min(count, CHUNK_BYTES)
        digest.update(zeroes[:length])
        count -= length
        yield length
