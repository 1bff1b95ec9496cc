"""What of a data directory is in a back-up beside the store.

All that a queue manager needs to work again as it did: whose the directory is, its keys, tokens
(their hashes), accounts, certificates, a configuration that lies there. Logs are not: what was done
is not undone by going back. Nor is what is large, hidden or a link.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.runtime.config.file import STORE_FOLDER
from openmsmq.storage.backups.manifest import BackupError, is_good_path
from openmsmq.storage.backups.restoring import BEFORE_NAME
from openmsmq.storage.backups.snapshot import Part

FILE_MAX_BYTES: Final = 1 << 20
"""A longer file is no key, no certificate and no configuration."""

FILES_MAX_COUNT: Final = 10_000
FOLDERS_MAX_DEPTH: Final = 3

_LEFT_OUT_SUFFIXES: Final = (".log", ".new", ".part")


def store_parts(parts: list[Part]) -> list[Part]:
    """Return the parts of a store at their place in a back-up."""
    return [msgspec.structs.replace(part, name=f"{STORE_FOLDER}/{part.name}") for part in parts]


def own_parts(data: Path) -> list[Part]:
    """Return the small files of a data directory."""
    found = _in_folder(data, "", FOLDERS_MAX_DEPTH)
    if len(found) > FILES_MAX_COUNT:
        raise BackupError(
            f"{data} has more than {FILES_MAX_COUNT} files beside the store: move away what does "
            "not belong there"
        )
    return found


def _in_folder(folder: Path, prefix: str, depth: int) -> list[Part]:
    parts: list[Part] = []
    for path in sorted(folder.iterdir()):
        name = f"{prefix}{path.name}"
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if not is_good_path(name) or name == STORE_FOLDER or name.startswith(BEFORE_NAME):
            continue
        if stat.S_ISDIR(found.st_mode):
            if depth:
                parts += _in_folder(path, f"{name}/", depth - 1)
        elif (
            stat.S_ISREG(found.st_mode)
            and found.st_size <= FILE_MAX_BYTES
            and not any(suffix in _LEFT_OUT_SUFFIXES for suffix in path.suffixes)
        ):
            parts.append(Part(name, path, found.st_size, may_end=True))
    return parts
