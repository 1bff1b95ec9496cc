"""The formats of tables, and what each of them needs."""

from __future__ import annotations

import importlib.util
from typing import Final

import msgspec

from openmsmq.spark.errors import BadOption
from openmsmq.spark.pipelines.ingest.parquet_table import ParquetTable
from openmsmq.spark.pipelines.ingest.table import Table

PARQUET: Final = "parquet"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
FORMATS: Final = (PARQUET, DELTA, ICEBERG)

_PACKAGES: Final = {DELTA: "deltalake", ICEBERG: "pyiceberg"}


class Output(msgspec.Struct, frozen=True):
    """Where rows go, and as what."""

    format: str
    path: str
    partition_by: tuple[str, ...]
    catalog: str = ""
    table: str = ""

    def open(self) -> Table:
        """Make what writes the format; its package is loaded only now."""
        if self.format == DELTA:
            from openmsmq.spark.pipelines.ingest.delta_table import DeltaLakeTable

            return DeltaLakeTable(self.path, self.partition_by)
        if self.format == ICEBERG:
            from openmsmq.spark.pipelines.ingest.iceberg_table import IcebergTable

            return IcebergTable(self.path, self.partition_by, self.catalog, self.table)
        return ParquetTable(self.path, self.partition_by)


def require_format(format: str, catalog: str = "", table: str = "") -> None:
    """Refuse a format that is not known, or that something is missing for."""
    if format not in FORMATS:
        raise BadOption("format", f"{format!r} is not one of {', '.join(FORMATS)}")
    if (catalog or table) and format != ICEBERG:
        raise BadOption("catalog", f"belongs to the format {ICEBERG}")
    if bool(catalog) != bool(table):
        raise BadOption("catalog", "and the name of the table in it belong together: give both")
    package = _PACKAGES.get(format)
    if package is not None and importlib.util.find_spec(package) is None:
        raise BadOption(
            "format", f"{format} needs the package {package}: pip install 'openmsmq[{format}]'"
        )
