"""A table of Delta Lake, written by delta-rs: no Java, no jar.

The log takes the files of a batch, and with them the number of the batch and where it ends, as
transactions of an application [Delta protocol, Transaction Identifiers]: these stay when old
entries of the log are cleared away. The offset itself stands in the entry of the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, Transaction

from openmsmq.spark.errors import TableProblem
from openmsmq.spark.pipelines.ingest.checkpoint import Mark
from openmsmq.spark.pipelines.ingest.files import Staged
from openmsmq.spark.pipelines.ingest.table import Last, LogTable, require_types, sync

APPLICATION: Final = "openmsmq"
HISTORY_MAX_COUNT: Final = 10_000
"""So many entries of the log are looked at to find where other checkpoints have ended."""

LOG: Final = "_delta_log"


class DeltaLakeTable(LogTable):
    """Delta Lake."""

    PROBLEMS = (DeltaError,)

    def __init__(self, path: str, partition_by: Sequence[str]) -> None:
        super().__init__(path, partition_by)
        self._loaded: DeltaTable | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # Spark Connect carries it to where it is used; it is opened there.
        return type(self), (str(self.path), self.partition_by)

    def open(self, schema: pa.Schema) -> pa.Schema:
        """Make the table, or add the columns that it does not have."""
        if not DeltaTable.is_deltatable(str(self.path)):
            DeltaTable.create(
                str(self.path), schema=Schema.from_arrow(schema), partition_by=[*self.partition_by]
            )
            sync(self.path)
        table = self._table()
        there = tuple(table.metadata().partition_columns)
        if there != self.partition_by:
            raise TableProblem(
                f"{self.path} is partitioned by {', '.join(there) or 'nothing'}: partition by that"
            )
        missing = require_types(self.path, schema, pa.schema(table.schema().to_arrow()))
        if missing:
            table.alter.add_columns([Field.from_arrow(field) for field in missing])
        self._sync_log()
        return pa.schema([field for field in schema if field.name not in self.partition_by])

    def _table(self) -> DeltaTable:
        """Return the table as it is now."""
        if self._loaded is None:
            self._loaded = DeltaTable(str(self.path))
        else:
            self._loaded.update_incremental()
        return self._loaded

    def last(self, query: str) -> Last | None:
        """Ask the log for the transactions of a checkpoint."""
        table = self._table()
        batch = table.transaction_version(_number_of(query))
        end = table.transaction_version(_end_of(query))
        return None if batch is None or end is None else Last(batch, end)

    def marks(self) -> list[Mark]:
        """Look through the entries of the log, from its end on."""
        found: dict[str, Mark] = {}
        entries = sorted((self.path / LOG).glob("[0-9]*.json"), reverse=True)
        for path in entries[:HISTORY_MAX_COUNT]:
            for line in path.read_bytes().splitlines():
                info = msgspec.json.decode(line).get("commitInfo", {})
                if APPLICATION in info:
                    mark = msgspec.convert(info[APPLICATION], Mark)
                    found.setdefault(mark.query, mark)
        return list(found.values())

    def commit(self, mark: Mark, files: Sequence[tuple[Path, Staged]]) -> None:
        """Add an entry to the log."""
        table = self._table()
        table.create_write_transaction(
            [self._add(path, file) for path, file in files],
            "append",
            table.schema(),
            [*self.partition_by],
            commit_properties=CommitProperties(
                custom_metadata={APPLICATION: msgspec.to_builtins(mark)},
                app_transactions=[
                    Transaction(_number_of(mark.query), mark.batch),
                    Transaction(_end_of(mark.query), mark.end),
                ],
            ),
        )
        self._sync_log()

    def _add(self, path: Path, file: Staged) -> AddAction:
        values = dict(zip(self.partition_by, file.values, strict=True))
        stats = msgspec.json.encode({"numRecords": file.rows}).decode()
        name = str(path.relative_to(self.path))
        return AddAction(name, file.size, values, file.modified_ms, True, stats)

    def _sync_log(self) -> None:
        """Let the newest entry of the log survive a loss of power: delta-rs does not see to it."""
        log = self.path / LOG
        sync(log / f"{self._table().version():020d}.json")
        sync(log)


def _number_of(query: str) -> str:
    return f"{APPLICATION}:{query}"


def _end_of(query: str) -> str:
    return f"{APPLICATION}:{query}:end"
