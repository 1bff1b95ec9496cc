"""Tables of `ingest` as other programs read them, who know nothing of Spark and of us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from sqlalchemy import URL


def duckdb_over(path: Path) -> pa.Table:
    """Read every Parquet file that is found below a directory."""
    pattern = str(path / "**" / "*.parquet")
    with duckdb.connect() as database:
        if not database.execute("SELECT file FROM glob(?)", [pattern]).fetchall():
            return pa.table({})
        found = "SELECT * FROM read_parquet(?, hive_partitioning = true, union_by_name = true)"
        return database.sql(found, params=[pattern]).to_arrow_table()


def read_delta(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_dataset().to_table()


@contextmanager
def iceberg(path: Path) -> Iterator[Table]:
    """Open a table by the catalog in its directory."""
    catalog = SqlCatalog("openmsmq", uri=str(URL.create("sqlite", database=f"{path}/catalog.db")))
    try:
        yield catalog.load_table("msmq.messages")
    finally:
        catalog.close()


def read_iceberg(path: Path) -> pa.Table:
    with iceberg(path) as table:
        return table.scan().to_arrow()


READERS = {"parquet": duckdb_over, "delta": read_delta, "iceberg": read_iceberg}


def read_table(path: Path, format: str) -> pa.Table:
    """Read a table; one without rows may have no columns."""
    return READERS[format](path)


def files_of(path: Path, format: str) -> list[Path]:
    """Return the files that a table with a log names."""
    if format == "delta":
        return [path / name for name in DeltaTable(str(path)).get_add_actions()["path"].to_pylist()]
    with iceberg(path) as table:
        return [Path(task.file.file_path) for task in table.scan().plan_files()]
