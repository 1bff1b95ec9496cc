"""What the store asks of the file system, in one place, so that a test can make any of it fail.

Each method is one request to the operating system and raises `OSError` like it; what an error
means is decided by the caller.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from openmsmq.storage.port import StoreError, StoreFailed, StoreFull, StoreInUse

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors that say there is no room: on the disk, in the quota, in the largest file."""

_SYNCED: Final[int] = getattr(os, "RWF_DSYNC", 0)
"""Lets one write sync what it wrote; Linux has it."""
_NOT_OFFERED: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
"""How kernels and file systems say that they do not."""

_FORGET: Final[int | None] = getattr(os, "POSIX_FADV_DONTNEED", None)

_ZEROES: Final = bytes(1 << 20)


class FileOps:
    """The file system as the store uses it. A file is its descriptor."""

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> int:
        """Open a file, made empty if it is missing and `create` says so."""
        flags = (os.O_RDWR if write else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return os.open(path, flags | os.O_CLOEXEC, 0o600)

    def close(self, file: int) -> None:
        """Close a file."""
        os.close(file)

    def size_bytes(self, file: int) -> int:
        """Return the length of a file."""
        return os.fstat(file).st_size

    def read(self, file: int, length: int, offset: int) -> bytes:
        """Read up to `length` bytes; fewer only at the end of the file."""
        data = os.pread(file, length, offset)
        while data and len(data) < length:
            more = os.pread(file, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        """Write all parts one after the other."""
        written = os.pwritev(file, parts, offset)
        if written < sum(map(len, parts)):
            rest = memoryview(b"".join(parts))
            while written < len(rest):
                written += os.pwrite(file, rest[written:], offset + written)

    def write_through(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        """Write all parts, and return when they are on the disk: one request instead of two."""
        if _SYNCED:
            try:
                if os.pwritev(file, parts, offset, _SYNCED) == sum(map(len, parts)):
                    return
            except OSError as error:
                if error.errno not in _NOT_OFFERED:
                    raise
        self.write(file, parts, offset)
        self.sync(file)

    def sync(self, file: int) -> None:
        """Return when what was written is on the disk."""
        os.fdatasync(file)

    def forget(self, file: int) -> None:
        """Let the kernel give back the memory in which it has what is on the disk of a file."""
        if _FORGET is not None:
            # It is advice, and not every file system takes it.
            with contextlib.suppress(OSError):
                os.posix_fadvise(file, 0, 0, _FORGET)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in a directory are on the disk."""
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def allocate(self, file: int, size_bytes: int) -> None:
        """Make sure that the first `size_bytes` of a file have their place on the disk."""
        os.posix_fallocate(file, 0, size_bytes)

    def truncate(self, file: int, size_bytes: int) -> None:
        """Cut a file."""
        os.ftruncate(file, size_bytes)

    def replace(self, source: Path, target: Path) -> None:
        """Give a file a new name, in the place of the file that had it."""
        os.replace(source, target)

    def make_directory(self, path: Path) -> None:
        """Make a directory for its owner alone; one that is there is an error."""
        path.mkdir(mode=0o700)

    def hold_directory(self, path: Path) -> int:
        """Open a directory that nobody else holds, and hold it until that is closed."""
        held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            raise
        return held

    def remove_directory(self, path: Path) -> None:
        """Remove a directory with everything in it, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def fill_with_zeroes(
    files: FileOps, file: int, size_bytes: int, written_bytes: int | None = None
) -> None:
    """Give a file its length by writing it, which makes later writes and syncs of it cheap.

    Beyond `written_bytes` it only takes its place on the disk, where zeroes are read as well: what
    is written once need not be written before.
    """
    offset = min(files.size_bytes(file), size_bytes)
    # Taking the place first leaves no half-written file on a full disk.
    files.allocate(file, size_bytes)
    end = size_bytes if written_bytes is None else min(size_bytes, written_bytes)
    while offset < end:
        part = _ZEROES[: end - offset]
        files.write(file, [part], offset)
        offset += len(part)
    files.truncate(file, size_bytes)
    files.sync(file)


def take_place(files: FileOps, path: Path, size_bytes: int) -> None:
    """Make a file of zeroes anew that has all of its place on the disk."""
    files.remove(path)
    file = files.open(path, create=True)
    try:
        files.allocate(file, size_bytes)
    finally:
        files.close(file)


def write_whole(files: FileOps, path: Path, data: bytes) -> None:
    """Write a small file so that a crash leaves the old one or the new one."""
    temporary = path.with_name(path.name + ".new")
    files.remove(temporary)
    file = files.open(temporary, create=True)
    try:
        files.write(file, [data], 0)
        files.sync(file)
    finally:
        files.close(file)
    files.replace(temporary, path)
    files.sync_directory(path.parent)


def disk_error(error: OSError, what: str, where: Path) -> StoreError:
    """Return what an error of the file system means for the store."""
    if error.errno in FULL:
        return StoreFull(f"no space to {what} at {where} ({error.strerror}): free some space")
    if error.errno == errno.EROFS:
        return StoreFailed(
            f"cannot {what} at {where}: the file system is read-only; "
            "look for disk errors in the system log, mount it writable and start again"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return StoreFailed(
            f"cannot {what} at {where} ({error.strerror}): "
            "give the user of this process the right to write there"
        )
    return StoreFailed(
        f"cannot {what} at {where} ({error.strerror}): check the disk, then start again"
    )


class DirectoryLock:
    """The exclusive right to use a store, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise disk_error(error, "lock the store", path) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._file, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise disk_error(error, "lock the store", path) from error
            raise StoreInUse(
                f"the store at {path.parent} is in use by process {owner}: stop it first"
            ) from error
        # A full disk must not keep a store from being opened and emptied.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        """Let others use the store."""
        os.close(self._file)
