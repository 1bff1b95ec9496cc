"""Files for their owner alone: one that grows as long as it can, and small ones written as a whole.

One that grows and is full, or cannot be written any more, ends; the queue manager does not. It
follows no symbolic link, and is no file of somebody else: who could put one there would read what
is in it, or have another file overwritten.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.start_errors import StartError, os_reason

OWNER_ONLY: Final = 0o600

_NO_FILE: Final = "it is no regular file"


class OwnerFile:
    """One file, from its beginning: what was in it before is gone."""

    def __init__(
        self, path: str, what: str, max_bytes: int, full: str, log: EventLog, ended: Event
    ) -> None:
        """Raises `StartError`; `what` is written to it.

        `ended` is logged when it ends, with the reason `full` when it has `max_bytes`.
        """
        self._path = path
        self._left_bytes = max_bytes
        self._full = full
        self._log = log
        self._ended = ended
        try:
            self._file: BinaryIO | None = open(  # noqa: SIM115 - until the end
                path, "wb", opener=open_for_owner
            )
        except OSError as error:
            raise StartError(
                f"cannot write {what} {path} ({os_reason(error)}): give another file"
            ) from None

    @property
    def is_open(self) -> bool:
        """Whether it takes more."""
        return self._file is not None

    def write(self, data: bytes) -> None:
        """Add to the file."""
        if self._file is None:
            return
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            self._end(self._full)
            return
        try:
            self._file.write(data)
        except OSError as error:
            self._end(os_reason(error))

    def flush(self) -> None:
        """Hand everything to the system."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._end(os_reason(error))

    def close(self) -> None:
        """Write what is left, and end the file."""
        self.flush()
        self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # What is still in the buffer is written once more, and may fail once more.
            with contextlib.suppress(OSError):
                file.close()

    def _end(self, reason: str) -> None:
        self._let_go()
        self._log.warning(self._ended, file=self._path, reason=reason)


def replace_file(path: Path, data: bytes, mode: int = OWNER_ONLY) -> None:
    """Write a file so that it is whole and on the disk, or as it was before."""
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if os.geteuid() == 0:
            # It is for the user of the queue manager, to whom the directory belongs.
            owner = path.parent.stat()
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_signature(path: Path) -> tuple[object, ...]:
    """Return what is another when a file has changed."""
    try:
        found = path.stat()
    except OSError:
        return (path,)
    return path, found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def open_for_owner(path: str, flags: int) -> int:
    """Open a file to write to it, for the user of this process alone; raise `OSError`.

    It is a file of this user, or a device, which only root can make. A pipe would let us wait for
    whoever has put it there to read.
    """
    try:
        # A pipe that nobody reads is not waited for, either.
        file = os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, OWNER_ONLY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError("it is a symbolic link") from None
        if error.errno == errno.ENXIO:
            raise OSError(_NO_FILE) from None
        raise
    try:
        found = os.fstat(file)
        if stat.S_ISCHR(found.st_mode):
            return file
        if not stat.S_ISREG(found.st_mode):
            raise OSError(_NO_FILE)
        if found.st_uid != os.geteuid():
            raise OSError("it belongs to somebody else")
        # One that was there already has the mode that somebody gave it.
        os.fchmod(file, OWNER_ONLY)
        if flags & os.O_TRUNC:
            os.ftruncate(file, 0)
    except OSError:
        os.close(file)
        raise
    return file
