"""A disk whose power fails at the n-th request: what was not synced is lost, names as well."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from openmsmq.storage.files import FileOps


class PowerCut(BaseException):
    """The power is gone."""


class FadingDisk(FileOps):
    """Counts requests; `fail` brings about what the disk has after the power cut."""

    def __init__(self, root: Path, fails_at: int | None = None) -> None:
        self._root = root
        self._synced: dict[int, bytes] = {}
        self._dirty: set[int] = set()
        self._unsynced_names: list[tuple[Path, Path | None]] = []
        """What was made, or moved from where."""
        self._replaced: dict[Path, bytes] = {}
        """What was in files in whose place others were moved."""
        self.count = 0
        self.fails_at = fails_at

    def _step(self) -> None:
        self.count += 1
        # From then on nothing is done any more, nor put in order.
        if self.fails_at is not None and self.count >= self.fails_at:
            raise PowerCut

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> int:
        if create and not path.exists():
            self._step()
            self._unsynced_names.append((path, None))
        return super().open(path, create=create, write=write)

    def make_directory(self, path: Path) -> None:
        self._step()
        super().make_directory(path)
        self._unsynced_names.append((path, None))

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self._step()
        self._dirty.add(os.fstat(file).st_ino)
        data = b"".join(parts)
        super().write(file, [data[: len(data) // 2]], offset)
        self._step()
        super().write(file, [data[len(data) // 2 :]], offset + len(data) // 2)

    def allocate(self, file: int, size_bytes: int) -> None:
        self._step()
        self._dirty.add(os.fstat(file).st_ino)
        super().allocate(file, size_bytes)

    def sync(self, file: int) -> None:
        self._step()
        found = os.fstat(file)
        self._dirty.discard(found.st_ino)
        self._synced[found.st_ino] = os.pread(file, found.st_size, 0)

    def sync_directory(self, path: Path) -> None:
        self._step()
        self._unsynced_names = [each for each in self._unsynced_names if each[0].parent != path]

    def replace(self, source: Path, target: Path) -> None:
        self._step()
        if target.is_file():
            self._replaced[target] = target.read_bytes()
        super().replace(source, target)
        # What was made below the old name is below the new one now.
        self._unsynced_names = [
            (target / made.relative_to(source) if made.is_relative_to(source) else made, origin)
            for made, origin in self._unsynced_names
        ]
        self._unsynced_names.append((target, source))

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    def remove_directory(self, path: Path) -> None:
        self._step()
        super().remove_directory(path)

    def fail(self, *, keeps_names: bool) -> None:
        """Lose what was not synced; the names may have come to the disk all the same."""
        for path in self._root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                number = path.stat().st_ino
                if number in self._dirty:
                    path.write_bytes(self._synced.get(number, b""))
        for made, origin in [] if keeps_names else reversed(self._unsynced_names):
            if not made.exists():
                continue
            if origin is not None:
                made.rename(origin)
                if made in self._replaced:
                    made.write_bytes(self._replaced[made])
            elif made.is_dir():
                super().remove_directory(made)
            else:
                made.unlink()
