"""A table of Apache Iceberg, written by PyIceberg.

The catalog is the user's, or SQLite in the directory of the table. One commit adds the files of a
batch and sets a property of the table that says which batch of which checkpoint it is and where it
ends. A property stays when snapshots expire. The summary of a snapshot would go with it; it has
the number, too, for people.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from pyiceberg import exceptions
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO, schema_to_pyarrow
from pyiceberg.table import Table as StoredTable
from sqlalchemy import URL
from sqlalchemy.exc import SQLAlchemyError

from openmsmq.spark.errors import BadOption, TableProblem
from openmsmq.spark.paths import path_of
from openmsmq.spark.pipelines.ingest.checkpoint import Mark
from openmsmq.spark.pipelines.ingest.files import Staged
from openmsmq.spark.pipelines.ingest.table import Last, LogTable, require_types, sync

NAME: Final = ("msmq", "messages")
"""What a table is called in the catalog of its own directory."""

CATALOG: Final = "catalog.db"
SNAPSHOTS_MAX_COUNT: Final = 200
"""Snapshots that a table keeps: each commit writes the list of them once more."""

_PREFIX: Final = "openmsmq.batch."
_SETTINGS: Final = {
    # Without these, a query that runs for weeks would leave a manifest and a list of all
    # snapshots for each of its batches, and each reader would open all manifests.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}
_OWN: Final = {"type": "sql", "py-io-impl": f"{__name__}.DurableIO"}


class IcebergTable(LogTable):
    """Apache Iceberg."""

    PROBLEMS = (
        SQLAlchemyError,
        *(
            each
            for each in vars(exceptions).values()
            if isinstance(each, type) and issubclass(each, Exception)
        ),
    )

    def __init__(self, path: str, partition_by: Sequence[str], catalog: str, name: str) -> None:
        super().__init__(path, partition_by)
        self._catalog_name = catalog
        self._name = tuple(name.split(".")) if catalog else NAME
        self._loaded: Catalog | None = None
        self._seen: StoredTable | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # Spark Connect carries it to where it is used; the catalog is opened there.
        name = ".".join(self._name)
        return type(self), (str(self.path), self.partition_by, self._catalog_name, name)

    def _catalog(self) -> Catalog:
        if self._loaded is None:
            self._loaded = self._load_catalog()
        return self._loaded

    def _load_catalog(self) -> Catalog:
        if not self._catalog_name:
            uri = URL.create("sqlite", database=str(self.path / CATALOG))
            return load_catalog("openmsmq", uri=str(uri), **_OWN)
        try:
            return load_catalog(self._catalog_name)
        except ValueError as error:
            raise BadOption("catalog", f"PyIceberg says: {error}") from None

    def _table(self) -> StoredTable:
        """Return the table as it is now."""
        self._seen = self._catalog().load_table(self._name)
        return self._seen

    def open(self, schema: pa.Schema) -> pa.Schema:
        """Make the table, or add the columns that it does not have."""
        catalog = self._catalog()
        if not catalog.table_exists(self._name):
            self._create(catalog, schema)
        table = self._table()
        if path_of(table.location(), "file:") != str(self.path):
            raise BadOption(
                "output", f"the table {'.'.join(self._name)} is at {table.location()}: give that"
            )
        there = tuple(
            table.schema().find_column_name(field.source_id) or "" for field in table.spec().fields
        )
        if there != self.partition_by:
            raise TableProblem(
                f"{self.path} is partitioned by {', '.join(there) or 'nothing'}: partition by that"
            )
        if require_types(self.path, schema, schema_to_pyarrow(table.schema())):
            with table.update_schema() as update:
                update.union_by_name(schema)
        columns = schema_to_pyarrow(self._table().schema())
        return pa.schema([columns.field(field.name) for field in schema])

    def _create(self, catalog: Catalog, schema: pa.Schema) -> None:
        catalog.create_namespace_if_not_exists(self._name[:-1])
        with (
            catalog.create_table_transaction(
                self._name, schema, location=str(self.path), properties=_SETTINGS
            ) as creating,
            creating.update_spec() as partitions,
        ):
            for name in self.partition_by:
                partitions.add_identity(name)

    def last(self, query: str) -> Last | None:
        """Read the property of a checkpoint."""
        text = self._table().properties.get(f"{_PREFIX}{query}")
        if text is None:
            return None
        mark = msgspec.json.decode(text, type=Mark)
        return Last(mark.batch, mark.end)

    def marks(self) -> list[Mark]:
        """Read the properties of all checkpoints."""
        return [
            msgspec.json.decode(text, type=Mark)
            for key, text in self._table().properties.items()
            if key.startswith(_PREFIX)
        ]

    def commit(self, mark: Mark, files: Sequence[tuple[Path, Staged]]) -> None:
        """Make a snapshot."""
        # Nobody else has written since it was asked for its last batch; whoever has not asked for
        # the lock, such as a program that compacts, makes PyIceberg try again.
        table = self._seen or self._table()
        with table.transaction() as transaction:
            text = msgspec.json.encode(mark).decode()
            transaction.set_properties({f"{_PREFIX}{mark.query}": text})
            if files:
                transaction.add_files(
                    [str(path) for path, _ in files],
                    {"openmsmq.query": mark.query, "openmsmq.batch": str(mark.batch)},
                    # Names are never used twice, and to look would take longer with each batch.
                    check_duplicate_files=False,
                )
        if len(table.snapshots()) > SNAPSHOTS_MAX_COUNT:
            _expire_half(table)


def _expire_half(table: StoredTable) -> None:
    """Let the older half of the snapshots expire; those that have a name stay."""
    named = {ref.snapshot_id for ref in table.refs().values()}
    oldest = sorted(table.snapshots(), key=lambda each: each.timestamp_ms)
    half = [each.snapshot_id for each in oldest[: len(oldest) // 2]]
    free = [identifier for identifier in half if identifier not in named]
    table.maintenance.expire_snapshots().by_ids(free).commit()


class DurableIO(PyArrowFileIO):
    """Writes files that survive a loss of power: the catalog must not name others."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file to write."""
        scheme, host, path = self.parse_location(location, self.properties)
        return _DurableFile(location, path, self.fs_by_scheme(scheme, host))


class _DurableFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        path = Path(self._path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return _Synced(path, "wb" if overwrite else "xb")


class _Synced(io.FileIO):
    def close(self) -> None:
        if not self.closed:
            super().close()
            sync(Path(str(self.name)))
            sync(Path(str(self.name)).parent)
