"""Where a back-up may go: a new directory, on a way that nobody else can change.

Who asks may be on another computer, and the queue manager's user writes. So every directory on the
way has to belong to that user or to root, nobody else may write in it, and none may be a link:
then what was looked at is what is written to, and nobody can put another directory in its place.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from openmsmq.runtime.start_errors import os_reason
from openmsmq.storage.backups.manifest import BackupError

ROOM_LEFT_BYTES: Final = 64 << 20
"""So much must be free when the back-up is done: a full disk may be the queue manager's own."""


class PlaceRefused(BackupError):
    """A back-up may not go there."""


class NoRoom(BackupError):
    """There is not enough space."""


def check_place(directory: str, data: Path) -> Path:
    """Return where a back-up goes, or raise `PlaceRefused`; `data` is the data directory."""
    target = Path(directory)
    if not target.is_absolute():
        raise PlaceRefused(f"{directory} is no absolute path: name a directory from the root on")
    if not target.name:
        raise PlaceRefused(f"{directory} is the root itself: name a new directory below it")
    if ".." in target.parts:
        raise PlaceRefused(f"{directory} has .. in it: name the directory itself")
    own = _look(data)
    for place in reversed(target.parents):
        found = _look(place)
        _require_safe(place, found)
        if os.path.samestat(found, own):
            raise PlaceRefused(
                f"{target} is in the data directory {data}: name a directory elsewhere, best on "
                "another disk"
            )
    try:
        found = target.lstat()
    except FileNotFoundError:
        return target
    except OSError as error:
        raise PlaceRefused(f"cannot look at {target} ({os_reason(error)})") from None
    _require_safe(target, found)
    if os.path.samestat(found, own) or any(target.iterdir()):
        raise PlaceRefused(f"{target} is not empty: name a new directory")
    if target.is_mount():
        raise PlaceRefused(f"a disk is mounted at {target}: name a new directory below it")
    return target


def _look(path: Path) -> os.stat_result:
    try:
        return path.lstat()
    except FileNotFoundError:
        raise PlaceRefused(f"{path} is not there: make it first, for the server's user") from None
    except OSError as error:
        raise PlaceRefused(f"cannot look at {path} ({os_reason(error)})") from None


def _require_safe(path: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise PlaceRefused(f"{path} is a link: name the directory that it leads to")
    if not stat.S_ISDIR(found.st_mode):
        raise PlaceRefused(f"{path} is no directory")
    if found.st_uid not in (0, os.geteuid()):
        raise PlaceRefused(
            f"{path} belongs to somebody else, who could exchange what is in it: name a directory "
            "of the server's user or of root"
        )
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise PlaceRefused(
            f"others may write in {path}, and could exchange what is in it: chmod go-w {path}, or "
            "name another directory"
        )


def require_room(target: Path, size_bytes: int) -> None:
    """Raise `NoRoom` if a back-up of this size would fill its disk."""
    try:
        free_bytes = shutil.disk_usage(target.parent).free
    except OSError as error:
        raise PlaceRefused(f"cannot look at {target.parent} ({os_reason(error)})") from None
    if free_bytes < size_bytes + ROOM_LEFT_BYTES:
        raise NoRoom(
            f"the back-up has {size_bytes >> 20} MiB, and {target.parent} has {free_bytes >> 20} "
            f"MiB of room, of which {ROOM_LEFT_BYTES >> 20} stay free: free some space, or name "
            "another disk"
        )
