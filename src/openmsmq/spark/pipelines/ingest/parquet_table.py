"""A table of plain Parquet files: a directory for each batch, which gets its name when it is whole.

There is no log, so there is nothing that a reader would have to know: every program that reads the
Parquet files below a directory sees whole batches. The name says which batch of which checkpoint it
is, as a column `batch` in the manner of Hive; partitions are directories inside. Until then it is
beside the table, as `NAME.staging`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from openmsmq.spark.errors import TableProblem
from openmsmq.spark.pipelines.ingest.checkpoint import Mark
from openmsmq.spark.pipelines.ingest.files import Staged
from openmsmq.spark.pipelines.ingest.table import Last, Table, remove, sync, write_whole

BATCH: Final = "batch"
"""The column that says with which batch a row came."""

MARK: Final = "_batch.json"

_NAME: Final = re.compile(rf"{BATCH}=(?P<query>.+)-(?P<batch>[0-9]+)")
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED: Final = frozenset("\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(1, 32))))
"""What Spark escapes in the names of directories."""


class ParquetTable(Table):
    """Plain Parquet."""

    def __init__(self, path: str, partition_by: Sequence[str]) -> None:
        super().__init__(path, partition_by)
        # Some programs find every file below the directory, whatever its name begins with.
        self.staging = self.path.with_name(f"{self.path.name}.staging")

    def open(self, schema: pa.Schema) -> pa.Schema:
        """Check that nothing else is there; files say themselves which columns they have."""
        for path in self.path.iterdir():
            if path.name[0] not in "._" and not _NAME.fullmatch(path.name):
                raise TableProblem(
                    f"{self.path} has {path.name}, which is no batch of a table: give another "
                    "output, or move it away"
                )
        return pa.schema([field for field in schema if field.name not in self.partition_by])

    def last(self, query: str) -> Last | None:
        """Look for the directory with the highest number."""
        batch = self._batches().get(query)
        return None if batch is None else Last(batch, self._mark(query, batch).end)

    def marks(self) -> list[Mark]:
        """Read what the last directory of each checkpoint says."""
        return [self._mark(query, batch) for query, batch in self._batches().items()]

    def _batches(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for path in self.path.iterdir():
            named = _NAME.fullmatch(path.name)
            if named is not None:
                number = int(named["batch"])
                found[named["query"]] = max(number, found.get(named["query"], -1))
        return found

    def _mark(self, query: str, batch: int) -> Mark:
        path = self._directory(query, batch) / MARK
        try:
            return msgspec.json.decode(path.read_bytes(), type=Mark)
        except (FileNotFoundError, msgspec.DecodeError) as error:
            raise TableProblem(
                f"{path}, which says what the batch is, is damaged: {error}"
            ) from None

    def _directory(self, query: str, batch: int) -> Path:
        return self.path / f"{BATCH}={query}-{batch:06d}"

    def adding(self, mark: Mark, files: Sequence[Staged]) -> Iterator[str]:
        """Put the directory together, then give it its name."""
        draft = self.staging / f"{mark.batch}.draft"
        remove(draft)
        draft.mkdir()
        directories = {draft}
        for number, file in enumerate(files):
            directory = draft
            for column, value in zip(self.partition_by, file.values, strict=True):
                directory /= directory_name(column, value)
                directories.add(directory)
            name = f"part-{number:05d}-{file.name}.snappy.parquet"
            self.move(file, directory / name)
            yield "moved"
        for directory in directories - {draft}:
            sync(directory)
        write_whole(draft / MARK, msgspec.json.encode(mark))
        yield "noted"
        draft.rename(self._directory(mark.query, mark.batch))
        sync(self.path)
        yield "published"

    def clear(self) -> None:
        """Remove what tasks and drivers have left."""
        for path in self.staging.iterdir():
            remove(path)


def directory_name(column: str, value: str | None) -> str:
    """Return the name of a directory for a value, as Spark writes it."""
    return f"{column}={escaped(value) if value else _NO_VALUE}"


def escaped(value: str) -> str:
    """Escape a value as Spark does in the names of directories."""
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in value)
