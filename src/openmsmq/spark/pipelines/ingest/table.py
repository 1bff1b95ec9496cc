"""The table that `ingest` writes: which files count, and how those of a batch begin to, together.

The table has the log that Spark's own file sink keeps in `_spark_metadata`, one entry for each
batch. Spark reads the files that the log names and no others. So a batch counts from the moment
in which its entry gets its name, whole, and a batch that has an entry is not written again. Names
of files are never used twice: nothing that counts is ever replaced.

What is published is moved out of `_staging` before the log names it. A note in `_staging` says
which files those are; if the driver dies in between, the next one takes them away. That is for
programs that look into the directories and not into the log.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from openmsmq.spark.errors import TableProblem
from openmsmq.spark.pipelines.ingest.copying import STAGING, Staged, writing

LOG: Final = "_spark_metadata"
COMPACT_INTERVAL: Final = 10
"""Every so many batches an entry repeats all files, unless Spark's setting says another number."""

KEPT_S: Final = 600.0
"""How long entries stay when a later one repeats them: somebody may be reading them."""

_VERSION: Final = "v1"
_COMPACT: Final = ".compact"
_NOTE: Final = ".note"
_BLOCK_BYTES: Final = 32 << 20


class Table:
    """A table in a directory that this computer has or has mounted."""

    def __init__(self, path: str, interval: int = COMPACT_INTERVAL) -> None:
        self.path = Path(path)
        self.staging = self.path / STAGING
        self.log = _Log(self.path / LOG, interval)

    def prepare(self) -> None:
        """Make the directories; take away what earlier drivers did not bring to its end."""
        with writing(self.path):
            for directory in (self.path, self.staging, self.log.path):
                directory.mkdir(parents=True, exist_ok=True)
            with self._locked():
                for path in self.staging.iterdir():
                    if path.suffix == _NOTE and not self.has(int(path.stem)):
                        for name in msgspec.json.decode(path.read_bytes(), type=list[str]):
                            (self.path / name).unlink(missing_ok=True)
                    path.unlink(missing_ok=True)

    def has(self, batch: int) -> bool:
        """Whether a batch has been published."""
        return batch <= self.log.last()

    def publish(self, batch: int, files: Sequence[Staged]) -> None:
        """Let the files of a batch count, if it has none yet."""
        with writing(self.path):
            for _ in self.publishing(batch, files):
                pass

    def publishing(self, batch: int, files: Sequence[Staged]) -> Generator[str, None, None]:
        """Publish step by step; gives what was done. Whoever dies may do so after any step."""
        with self._locked():
            last = self.log.last()
            if batch <= last:
                # The driver before this one did it, and was not as dead as Spark had thought.
                self._drop(files)
                return
            if batch != last + 1:
                raise TableProblem(
                    f"{self.path} has no batch {batch - 1}, but its checkpoint goes on with "
                    f"{batch}: put the table back, or delete the checkpoint, too"
                )
            moves = {self._final(batch, number, file): file for number, file in enumerate(files)}
            note = self.staging / f"{batch}{_NOTE}"
            names = [str(path.relative_to(self.path)) for path in moves]
            _write_whole(note, msgspec.json.encode(names))
            yield "noted"
            for path, file in moves.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                self._move(self.staging / file.name, path)
                yield "moved"
            for directory in {parent for path in moves for parent in self._between(path)}:
                _sync(directory)
            self.log.add(batch, [_entry(path, file) for path, file in moves.items()])
            yield "published"
            note.unlink()

    def _final(self, batch: int, number: int, file: Staged) -> Path:
        name = f"part-{batch:05d}-{number:05d}-{file.name}.snappy.parquet"
        return self.path / file.directory / name

    def _move(self, source: Path, target: Path) -> None:
        try:
            source.rename(target)
        except FileNotFoundError:
            raise TableProblem(
                f"{source} is gone, or was written where this computer does not see it: let one "
                "command at a time write a table, on a path that all computers have"
            ) from None

    def _between(self, path: Path) -> list[Path]:
        """Give the directories from a file up to the table."""
        found = [path.parent]
        while found[-1] != self.path:
            found.append(found[-1].parent)
        return found

    def _drop(self, files: Sequence[Staged]) -> None:
        for file in files:
            (self.staging / file.name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other drivers out: one that was thought dead, or a second one by mistake."""
        with open(self.path / f"{STAGING}.lock", "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class _Log:
    """The log of Spark's file sink: an entry for each batch, and now and then one for all."""

    def __init__(self, path: Path, interval: int) -> None:
        self.path = path
        self._interval = interval

    def last(self) -> int:
        """Give the number of the last batch; -1 if there is none."""
        return max(self._entries(), default=-1)

    def add(self, batch: int, files: Sequence[dict[str, Any]]) -> None:
        """Add the entry of the next batch: it is there whole, or not at all."""
        entries = self._entries()
        lines = [msgspec.json.encode(file).decode() for file in files]
        compact = sorted(n for n, path in entries.items() if path.suffix == _COMPACT)
        is_compact = (batch + 1) % compact_interval(compact, self._interval) == 0
        if is_compact:
            lines = [*self._lines(entries), *lines]
        path = self.path / (f"{batch}{_COMPACT}" if is_compact else str(batch))
        _write_whole(path, "\n".join([_VERSION, *lines]).encode())
        if is_compact:
            self._forget(entries, path.stat().st_mtime - KEPT_S)

    def _entries(self) -> dict[int, Path]:
        found = {}
        for path in self.path.iterdir():
            number = path.name.removesuffix(_COMPACT)
            if number.isascii() and number.isdecimal():
                found[int(number)] = path
        return found

    def _lines(self, entries: dict[int, Path]) -> list[str]:
        """Give what all entries say, from the last on that repeats the others."""
        first = max((n for n, path in entries.items() if path.suffix == _COMPACT), default=0)
        found: list[str] = []
        for number in range(first, max(entries, default=-1) + 1):
            version, *lines = entries[number].read_text(encoding="utf-8").splitlines()
            if version != _VERSION:
                raise TableProblem(f"{entries[number]} is of a version that is not known")
            found += lines
        return found

    def _forget(self, entries: dict[int, Path], before_s: float) -> None:
        """Remove entries that are repeated since long."""
        for path in entries.values():
            if path.stat().st_mtime < before_s:
                path.unlink(missing_ok=True)
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def compact_interval(compact: Sequence[int], default: int) -> int:
    """Give how often the log repeats itself: as Spark concludes it from those that did."""
    if not compact:
        return default
    if len(compact) >= 2:
        return compact[-1] - compact[-2]
    count: int = compact[0] + 1
    divisors = (n for n in range(default, count // 2 + 1) if count % n == 0)
    return next(divisors, count) if default < count // 2 else count


def _entry(path: Path, file: Staged) -> dict[str, Any]:
    return {
        "path": f"file://{quote(str(path), safe=_PLAIN)}",
        "size": file.size,
        "isDir": False,
        "modificationTime": file.modified_ms,
        "blockReplication": 1,
        "blockSize": _BLOCK_BYTES,
        "action": "add",
    }


_PLAIN: Final = "/=:@$&+,;!*'()~-_."
"""What stands for itself in the path of a URL."""


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file that is not there, or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    _sync(path.parent)


def _sync(directory: Path) -> None:
    """Let the names in a directory survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
