"""The files that a task writes: Parquet with Arrow, one for each partition or more.

A file is written under a new name in the staging directory of the table, where nobody looks for
rows. Whether it counts is for the driver to say.
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

from openmsmq.spark.errors import TableProblem

GROUP_BYTES: Final = 32 << 20
"""Rows of about so many bytes are collected for a row group."""

FILES_MAX_COUNT: Final = 4
"""Files that a task has open; messages that arrived in turn on more days make more files."""

_DIFFERENT: Final = frozenset({"arrival_number", "lookup_id", "message_id"})
"""Columns in which each row has a value of its own: a dictionary of them only takes time."""
_CONTENT: Final = frozenset({"text"})
"""Columns, beside those of bytes, of which nobody asks for the least and the greatest value."""

Values = tuple[str | None, ...]
"""What the columns of a partition have, as text."""


class Staged(msgspec.Struct, frozen=True):
    """A file that is ready: its name where it was written, and the partition for which it is."""

    name: str
    partition: str
    """The values of the partition, as JSON."""
    rows: int
    size: int
    modified_ms: int

    @property
    def values(self) -> list[str | None]:
        """The values of the columns by which the table is partitioned."""
        return msgspec.json.decode(self.partition, type=list[str | None])


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of the file system into sentences."""
    try:
        yield
    except OSError as error:
        raise TableProblem(f"{path} cannot be written: {error}") from None


class StagedFiles:
    """The files of a task, by the partitions for which they are."""

    def __init__(self, staging: Path, partition_by: Sequence[str], schema: pa.Schema) -> None:
        self.staging = staging
        self._partition_by = tuple(partition_by)
        self._schema = schema
        self._open: dict[Values, _File] = {}
        self._done: list[Staged] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, each to the file of its partition."""
        for values, rows in divided(batch, self._partition_by):
            file = self._open.pop(values, None)
            if file is None:
                if len(self._open) == FILES_MAX_COUNT:
                    self._finish(next(iter(self._open)))
                file = _File(self.staging, values, self._schema)
            # Those that were used last stand last.
            self._open[values] = file
            rows = rows.select(self._schema.names)
            # Even a cast that changes nothing looks at each column.
            file.add(rows if rows.schema.equals(self._schema) else rows.cast(self._schema))

    def _finish(self, values: Values) -> None:
        self._done.append(self._open.pop(values).close())

    def close(self) -> list[Staged]:
        """Finish all files; they are on disk then."""
        for values in list(self._open):
            self._finish(values)
        return self._done

    def discard(self) -> None:
        """Remove all files, as far as that is possible."""
        for file in self._open.values():
            file.discard()
        for staged in self._done:
            (self.staging / staged.name).unlink(missing_ok=True)


def divided(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[Values, pa.RecordBatch]]:
    """Divide rows by the values of some columns."""
    if not names:
        yield (), batch
        return
    column = batch.column(names[0])
    different = column.unique()
    for value in different:
        part = batch
        # Few batches have more than one queue or day.
        if len(different) > 1:
            part = batch.filter(pc.equal(column, value) if value.is_valid else column.is_null())
        for values, rows in divided(part, names[1:]):
            yield (partition_text(value.as_py()), *values), rows


def partition_text(value: Any) -> str | None:
    """Write the value of a partition; Spark, Hive and Delta take an empty text for none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or value == "" else str(value)


def parquet_settings(schema: pa.Schema) -> dict[str, Any]:
    """Return how to write columns: nothing is looked for in them that is not there."""
    settings: dict[str, Any] = {"compression": "snappy"}
    if not any(map(pa.types.is_nested, schema.types)):
        # Parts of nested columns would have to be named by their paths.
        settings["use_dictionary"] = [name for name in schema.names if name not in _DIFFERENT]
        settings["write_statistics"] = [
            field.name
            for field in schema
            if field.name not in _CONTENT and not pa.types.is_binary(field.type)
        ]
    return settings


class _File:
    """One file, and the rows that wait to be written into it together."""

    def __init__(self, staging: Path, values: Values, schema: pa.Schema) -> None:
        # No other attempt, of whichever driver, has this name.
        self._path = staging / secrets.token_hex(16)
        self._values = values
        self._output = pa.OSFile(str(self._path), "wb")
        self._writer = pq.ParquetWriter(self._output, schema, **parquet_settings(schema))
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._waiting.append(batch)
        self._waiting_bytes += batch.get_total_buffer_size()
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
            msgspec.json.encode(self._values).decode(),
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
