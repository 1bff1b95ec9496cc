"""LMDB's environment of the base: how its file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import lmdb

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
