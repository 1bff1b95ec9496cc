"""What a task of `ingest` does: copy the messages of ranges into Parquet files, with Arrow alone.

A file is written under a new name in the directory `_staging` of the table, where nobody looks for
rows. Whether it counts is for the driver to say: it hears only of files of attempts that Spark
accepts, and `table` makes them part of the table.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from openmsmq.spark.errors import TableProblem
from openmsmq.spark.schema import arrow_schema
from openmsmq.spark.source.options import SourceOptions
from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.ranges import ranges_in
from openmsmq.spark.source.reading import read_range

STAGING: Final = "_staging"
"""Where files are until they count, in the directory of a table: Spark passes over such names."""

DATE: Final = "date"
"""The column that is added to partition by: the day on which a message arrived, in UTC."""

GROUP_BYTES: Final = 32 << 20
"""Rows of about so many bytes are collected for a row group."""

FILES_MAX_COUNT: Final = 4
"""Files that a task has open; messages that arrived in turn on more days make more files."""

_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 32))))
"""What Spark escapes in the names of directories."""

_STAGED: Final = pa.schema(
    [
        ("name", pa.string()),
        ("directory", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
    ]
)


class Copying(msgspec.Struct, frozen=True):
    """What tasks are told."""

    options: SourceOptions
    table: str
    partition_by: tuple[str, ...]


class Staged(msgspec.Struct, frozen=True):
    """A file that is ready: its name in `_staging`, and the directory for which it is."""

    name: str
    directory: str
    rows: int
    size: int
    modified_ms: int


def staged_schema() -> StructType:
    """Give the columns in which tasks tell about their files."""
    return from_arrow_schema(_STAGED)


def copy_ranges(job: Copying, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Copy the messages of each range; gives rows about the files."""
    for each in rows:
        for part in ranges_in(each):
            files = [msgspec.structs.asdict(staged) for staged in copy_range(job, part)]
            yield pa.RecordBatch.from_pylist(files, schema=_STAGED)


def copy_range(job: Copying, part: QueueRange) -> list[Staged]:
    """Copy the messages of one range into files, one for each directory or more."""
    files = StagedFiles(job, part.queue)
    try:
        with writing(files.staging):
            for batch in read_range(job.options, part):
                files.add(batch)
            return files.close()
    except BaseException:
        files.discard()
        raise


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of the file system into sentences."""
    try:
        yield
    except OSError as error:
        raise TableProblem(f"{path} cannot be written: {error}") from None


class StagedFiles:
    """The files of a task, by the directories for which they are."""

    def __init__(self, job: Copying, queue: str) -> None:
        self.staging = Path(job.table, STAGING)
        self._partition_by = job.partition_by
        names = [name for name in job.options.columns if name not in job.partition_by]
        self._schema = arrow_schema(names)
        self._queue = queue
        self._open: dict[str, _File] = {}
        self._done: list[Staged] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, in the order of their days."""
        for directory, rows in self._divided(batch):
            file = self._open.pop(directory, None)
            if file is None:
                if len(self._open) == FILES_MAX_COUNT:
                    self._finish(next(iter(self._open)))
                file = _File(self.staging, directory, self._schema)
            # Those that were used last stand last.
            self._open[directory] = file
            file.add(rows)

    def _divided(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        kept = batch.select(self._schema.names)
        if DATE not in self._partition_by:
            yield self._directory(None), kept
            return
        days = batch.column("arrived_time").cast(pa.date32())
        # Few batches have more than one day.
        for day in days.unique():
            directory = self._directory(day.as_py())
            if days.null_count == 0 and pc.all(pc.equal(days, day)).as_py():
                yield directory, kept
            elif day.is_valid:
                yield directory, kept.filter(pc.equal(days, day))
            else:
                yield directory, kept.filter(days.is_null())

    def _directory(self, day: Any) -> str:
        values = {"queue": self._queue, DATE: None if day is None else str(day)}
        return "/".join(directory_name(name, values[name]) for name in self._partition_by)

    def _finish(self, directory: str) -> None:
        self._done.append(self._open.pop(directory).close())

    def close(self) -> list[Staged]:
        """Finish all files; they are on disk then."""
        for directory in list(self._open):
            self._finish(directory)
        return self._done

    def discard(self) -> None:
        """Remove all files, as far as that is possible."""
        for file in self._open.values():
            file.discard()
        for staged in self._done:
            (self.staging / staged.name).unlink(missing_ok=True)


class _File:
    """One file, and the rows that wait to be written into it together."""

    def __init__(self, staging: Path, directory: str, schema: pa.Schema) -> None:
        # No other attempt, of whichever driver, has this name.
        self._path = staging / secrets.token_hex(16)
        self._directory = directory
        self._output = pa.OSFile(str(self._path), "wb")
        self._writer = pq.ParquetWriter(self._output, schema, compression="snappy")
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting, self._waiting_bytes = [], 0

    def close(self) -> Staged:
        if self._waiting:
            self._write()
        self._writer.close()
        self._output.close()
        with open(self._path, "rb") as file:
            # The messages are taken out of their queue when the table has this file.
            os.fsync(file.fileno())
            status = os.fstat(file.fileno())
        return Staged(
            self._path.name,
            self._directory,
            self._rows,
            status.st_size,
            status.st_mtime_ns // 1_000_000,
        )

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.close()
        # Otherwise it would try once more when Python forgets it.
        self._writer.is_open = False
        with contextlib.suppress(OSError):
            self._output.close()
        self._path.unlink(missing_ok=True)


def directory_name(column: str, value: str | None) -> str:
    """Give the name of a directory for a value, as Spark writes it."""
    return f"{column}={escaped(value) if value else _NO_VALUE}"


def escaped(value: str) -> str:
    """Escape a value as Spark does in the names of directories."""
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in value)


def copied_here(output: str, default_file_system: str) -> str | None:
    """Give the path of a table that is on this computer or mounted; None for other URLs."""
    scheme, colon, rest = output.partition(":")
    if colon and "/" not in scheme:
        names_a_host = rest.startswith("//") and not rest.startswith("///")
        if scheme.lower() != "file" or names_a_host:
            return None
        return "/" + rest.lstrip("/")
    if not default_file_system.lower().startswith("file:"):
        return None
    return os.path.abspath(output)


def can_copy(columns: Sequence[str], partition_by: Sequence[str]) -> bool:
    """Whether tasks can make the directories: by queue and day, with something left to write."""
    known = set(partition_by) <= {"queue", DATE} and len(set(partition_by)) == len(partition_by)
    return known and bool(set(columns) - set(partition_by))
