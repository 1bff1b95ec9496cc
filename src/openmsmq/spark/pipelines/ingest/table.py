"""A table that `ingest` writes: which batches it has, and how one more begins to count.

All formats keep one promise: the files of a batch count from one moment on, all together, and in
that moment the table also knows which batch of which checkpoint they are. So a batch that is
written again is recognized. Whoever reads the table, with whatever program, sees whole batches.

Tasks write files into a directory where nobody looks for rows. Names are never used twice: nothing
that counts is ever replaced, however late an attempt is.
"""

from __future__ import annotations

import abc
import contextlib
import fcntl
import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from openmsmq.spark.errors import SparkSideError, TableProblem
from openmsmq.spark.pipelines.ingest.checkpoint import Mark
from openmsmq.spark.pipelines.ingest.files import Staged, writing

STAGING: Final = "_staging"
"""Where files are until they count, in the directory of a table with a log."""

DATA: Final = "data"
"""Where a table that has a log keeps its files; the log says what is in which partition."""

_NOTE: Final = ".note"


class Last(NamedTuple):
    """The last batch of a checkpoint that a table has: its number, and where it ends."""

    batch: int
    end: int


class Table(abc.ABC):
    """A table in a directory that this computer has or has mounted."""

    PROBLEMS: tuple[type[Exception], ...] = ()
    """What the package that writes the table raises."""

    def __init__(self, path: str, partition_by: Sequence[str]) -> None:
        self.path = Path(path)
        self.partition_by = tuple(partition_by)
        self.staging = self.path / STAGING
        """Where tasks write files."""

    # What a format says.

    @abc.abstractmethod
    def open(self, schema: pa.Schema) -> pa.Schema:
        """Make the table, or give it the columns it lacks; gives the columns of its files."""

    @abc.abstractmethod
    def last(self, query: str) -> Last | None:
        """Return the last batch of a checkpoint."""

    @abc.abstractmethod
    def marks(self) -> list[Mark]:
        """Return the last batch of each checkpoint."""

    @abc.abstractmethod
    def clear(self) -> None:
        """Take away what earlier drivers did not bring to its end; nobody else writes."""

    @abc.abstractmethod
    def adding(self, mark: Mark, files: Sequence[Staged]) -> Iterator[str]:
        """Add a batch step by step; gives what was done."""

    # What all formats do.

    def prepare(self, schema: pa.Schema) -> pa.Schema:
        """Get ready to write; gives the columns that files must have."""
        with self.explained():
            for directory in (self.path, self.staging):
                directory.mkdir(parents=True, exist_ok=True)
            with self._locked():
                columns = self.open(schema)
                self.clear()
        return columns

    def has(self, mark: Mark) -> bool:
        """Whether a batch counts already; raises `TableProblem` if it cannot be the next one."""
        with self.explained():
            return is_repeated(self.path, self.last(mark.query), mark)

    def publish(self, mark: Mark, files: Sequence[Staged]) -> None:
        """Let the files of a batch count, if it has none yet."""
        with self.explained():
            for _ in self.publishing(mark, files):
                pass

    def publishing(self, mark: Mark, files: Sequence[Staged]) -> Generator[str, None, None]:
        """Publish step by step; gives what was done. Whoever dies may do so after any step."""
        with self._locked():
            if is_repeated(self.path, self.last(mark.query), mark):
                # The driver before this one did it, and was not as dead as Spark had thought.
                for file in files:
                    (self.staging / file.name).unlink(missing_ok=True)
                return
            yield from self.adding(mark, files)

    def move(self, file: Staged, target: Path) -> None:
        """Bring a file of a task to its place."""
        source = self.staging / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.rename(target)
        except FileNotFoundError:
            raise TableProblem(
                f"{source} is gone, or was written where this computer does not see it: let one "
                "command at a time write a table, on a path that all computers have"
            ) from None

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the file system, and of the package, into sentences."""
        try:
            with writing(self.path):
                yield
        except SparkSideError:
            raise
        except self.PROBLEMS as error:
            raise TableProblem(f"{self.path} cannot be written: {error}") from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other drivers out: one that was thought dead, or a second one by mistake."""
        with open(f"{self.staging}.lock", "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class LogTable(Table):
    """A table with a log that names its files: what the log does not name does not count.

    Files are moved to their place before the log names them. A note in `staging` says which; if
    the driver dies in between, the next one takes them away.
    """

    @abc.abstractmethod
    def commit(self, mark: Mark, files: Sequence[tuple[Path, Staged]]) -> None:
        """Let the log name the files and the batch, in one step, on the disk."""

    def adding(self, mark: Mark, files: Sequence[Staged]) -> Iterator[str]:
        """Note, move, commit."""
        moved = [
            (self.path / DATA / f"part-{mark.batch:05d}-{number:05d}-{file.name}.parquet", file)
            for number, file in enumerate(files)
        ]
        note = self.staging / f"{mark.batch}{_NOTE}"
        write_whole(note, msgspec.json.encode((mark, [path.name for path, _ in moved])))
        yield "noted"
        for path, file in moved:
            self.move(file, path)
            yield "moved"
        if moved:
            sync(self.path / DATA)
            sync(self.path)
        self.commit(mark, moved)
        yield "published"
        note.unlink()

    def clear(self) -> None:
        """Remove what tasks have left, and what was moved for a batch that does not count."""
        for path in self.staging.iterdir():
            if path.suffix == _NOTE:
                mark, names = msgspec.json.decode(path.read_bytes(), type=tuple[Mark, list[str]])
                last = self.last(mark.query)
                if last is None or last.batch < mark.batch:
                    for name in names:
                        (self.path / DATA / name).unlink(missing_ok=True)
            remove(path)


def is_repeated(path: Path, last: Last | None, mark: Mark) -> bool:
    """Whether a batch is the last one again; False if it is the next one.

    Every other batch is one that a table and a checkpoint cannot have who belong together.
    """
    before = -1 if last is None else last.batch
    if mark.batch == before + 1:
        return False
    if last is None or mark.batch > last.batch:
        raise TableProblem(
            f"{path} has no batch {mark.batch - 1} of this checkpoint, which goes on with "
            f"{mark.batch}: the table was replaced or is an older copy. Put back the one that "
            "belongs to the checkpoint, or delete the checkpoint, too"
        )
    if mark.batch == last.batch and mark.end == last.end:
        return True
    raise TableProblem(
        f"{path} has the batches of this checkpoint up to {last.batch}, and another batch "
        f"{mark.batch} comes: the checkpoint is an older copy of the one with which the table was "
        "written. Nothing was written and nothing was lost: go on with the newer one, or give a "
        "new checkpoint"
    )


def require_types(path: Path, wanted: pa.Schema, there: pa.Schema) -> list[Any]:
    """Return the columns that a table lacks; raises if one is there as something else."""
    missing = []
    for field in wanted:
        index = there.get_field_index(field.name)
        if index < 0:
            missing.append(field)
        elif not _same(there.field(index).type, field.type):
            raise TableProblem(
                f"{path} has the column {field.name} as {there.field(index).type}, and it is to be "
                f"written as {field.type}: give another output, or the schema of the table"
            )
    return missing


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types hold the same values; packages call texts large or views."""
    return _plain(one) == _plain(other)


def _plain(type_: pa.DataType) -> str:
    text = str(type_)
    for word in ("large_", "_view"):
        text = text.replace(word, "")
    # The names of what is in a list or a map differ between packages, and mean nothing.
    for name in ("element: ", "item: ", " not null"):
        text = text.replace(name, "")
    return text


def remove(path: Path) -> None:
    """Remove a file or a directory that may be gone."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is not there, or not at all."""
    draft = path.with_name(f".{path.name}.draft")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Let a file, or the names in a directory, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
