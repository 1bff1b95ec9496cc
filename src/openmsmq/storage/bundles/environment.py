"""LMDB's environment of the base: how its file is opened, and what its errors mean."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Final

import lmdb

from openmsmq.storage.files import FULL, disk_error
from openmsmq.storage.layout import ADVICE
from openmsmq.storage.port import StoreDamaged, StoreError, StoreFailed, StoreFull

MAP_MAX_BYTES: Final = 1 << 40
"""Address space for the file; it costs nothing until it is used."""

MAP_MIN_BYTES: Final = 1 << 28
"""With less address space than this a store is not opened."""

TREES_COUNT: Final = 3
"""Records, bundles, and what is known of both."""


def open_environment(
    path: Path, *, create: bool, write: bool, lock: bool = False
) -> lmdb.Environment:
    """Open LMDB with as much address space as the platform gives."""
    map_size = MAP_MAX_BYTES
    while True:
        try:
            return lmdb.open(
                str(path),
                subdir=False,
                create=create,
                mode=0o600,
                readonly=not write,
                map_size=map_size,
                max_dbs=TREES_COUNT,
                lock=lock,
                meminit=False,
            )
        except (lmdb.MemoryError, OverflowError):
            if map_size <= MAP_MIN_BYTES:
                raise
            map_size //= 2


def explained(error: lmdb.Error, verb: str, path: Path) -> StoreError:
    """Return what an error of LMDB means for the store."""
    if isinstance(error, lmdb.MapFullError) or error.code in FULL:
        return StoreFull(f"no space to {verb} {path} ({error}): free some space")
    if isinstance(error, lmdb.DiskError | lmdb.ReadonlyError) or verb == "write":
        return StoreFailed(f"cannot {verb} {path} ({error}): check the disk")
    if error.code in (errno.EACCES, errno.EROFS, errno.EIO, errno.ENOMEM):
        return StoreFailed(f"cannot {verb} {path} ({error}): check the disk and its rights")
    return StoreDamaged(f"cannot {verb} {path} ({error}): {ADVICE}")


def write_explained(error: lmdb.Error, path: Path, take: Callable[[], None]) -> StoreError:
    """Return what it means for the store that LMDB could not write.

    It reports a full disk as an input/output error when part of a write succeeded. If there is no
    room for what the transaction could need at most, which `take` takes, that was the reason.
    """
    if error.code == errno.EIO:
        try:
            take()
        except OSError as probe:
            if probe.errno in FULL:
                return disk_error(probe, "write the records", path)
    return explained(error, "write", path)
