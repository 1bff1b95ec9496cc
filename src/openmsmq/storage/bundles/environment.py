"""LMDB's environment of the base: how its file is opened, its room, and what its errors mean."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

import lmdb

from openmsmq.storage.files import FULL, FileOps, disk_error
from openmsmq.storage.layout import ADVICE
from openmsmq.storage.port import StoreDamaged, StoreError, StoreFailed, StoreFull

MAP_MAX_BYTES: Final = 1 << 40
"""Address space for the file; it costs nothing until it is used."""

MAP_MIN_BYTES: Final = 1 << 28
"""With less address space than this a store is not opened."""

TREES_COUNT: Final = 3
"""Records, bundles, and what is known of both."""

GROWTH_BYTES: Final = 8 << 20
"""The file gets its place on the disk in steps of this, before it is written."""

SPARE_BYTES: Final = 1 << 20
"""Kept free in the file for deletions, which need some pages before they free others."""


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


class Room:
    """The place of the file on the disk, which is there before a transaction needs it."""

    def __init__(self, files: FileOps, file: int, path: Path) -> None:
        self._files = files
        self._file = file
        self._path = path

    def take(self, env: lmdb.Environment, trees: list[lmdb._StatDict], needed_bytes: int) -> None:
        """Take what a transaction needs beside what these trees of the file leave free."""
        whole = env.stat()
        page_count = sum(
            tree["branch_pages"] + tree["leaf_pages"] + tree["overflow_pages"]
            for tree in (whole, *trees)
        )
        size_bytes = self._files.size_bytes(self._file)
        missing = needed_bytes + SPARE_BYTES - (size_bytes - page_count * whole["psize"])
        if missing <= 0:
            return
        for more_bytes in (GROWTH_BYTES, 0):
            try:
                return self._files.allocate(self._file, size_bytes + missing + more_bytes)
            except OSError as error:
                if error.errno not in FULL or not more_bytes:
                    raise disk_error(error, "enlarge the records", self._path) from error

    def write_error(self, env: lmdb.Environment, error: lmdb.Error, count: int) -> StoreError:
        """Return what it means for the store that LMDB could not write so many records.

        It reports a full disk as an input/output error when part of a write succeeded. If there is
        no room for what the transaction could need at most, that was the reason.
        """
        if error.code == errno.EIO:
            size_bytes = self._files.size_bytes(self._file)
            needed = size_bytes + 2 * count * env.stat()["psize"] + SPARE_BYTES
            try:
                self._files.allocate(self._file, needed)
            except OSError as probe:
                if probe.errno in FULL:
                    return disk_error(probe, "write the records", self._path)
        return explained(error, "write", self._path)

    def give_back(self, env: lmdb.Environment) -> None:
        """Give back what was taken for later."""
        used = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
        self._files.truncate(self._file, used)
        self._files.sync(self._file)
