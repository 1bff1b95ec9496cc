"""Pipeline: capture files of MSMQ traffic to packets, sessions and anomalies, in parallel.

Files are read in parallel, each by one task. What they have is then brought together by
connection, so connections are followed in parallel, too, from one file to the next. All files of
one run are one capture: when they have nothing to do with each other, run it once for each.

    decoded = decode(spark, find_files(["traces/"])).persist()
    packets(decoded), sessions(decoded), anomalies(decoded)
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from openmsmq.analysis.kinds import Severity
from openmsmq.analysis.transports import Ports
from openmsmq.spark.pipelines.capture import across
from openmsmq.spark.pipelines.capture.conversations import read_conversations
from openmsmq.spark.pipelines.capture.files import (
    SEEN_ORDER,
    SEEN_SCHEMA,
    open_and_read,
    read_file,
    seen_batches,
    seen_in,
)
from openmsmq.spark.pipelines.capture.names import find_files, has_scheme
from openmsmq.spark.pipelines.capture.rows import DECODED_SCHEMA, SESSIONS, batches
from openmsmq.spark.pipelines.few import held, of_table, written_here

__all__ = [
    "TABLES",
    "AnomalyCount",
    "Ports",
    "anomalies",
    "anomaly_counts",
    "decode",
    "find_files",
    "packets",
    "sessions",
    "tables_here",
    "write_and_count",
    "write_tables",
]

_Batches: TypeAlias = Iterable[pa.RecordBatch]
_SEEN: Final = from_arrow_schema(SEEN_SCHEMA)
_DECODED: Final = from_arrow_schema(DECODED_SCHEMA)


def decode(spark: SparkSession, files: Sequence[str], ports: Ports | None = None) -> DataFrame:
    """Read captures and follow their connections; the other functions make tables of it.

    Each row has a packet, the facts of a session, or an anomaly. It is computed again for each
    table unless it is persisted. Plain paths are opened by the tasks, so every worker must see
    the files there; names with a scheme are read by Spark, whole (2 GiB at most for each).
    """
    followed = ports or Ports()
    paths = [name for name in files if not has_scheme(name)]
    addresses = [name for name in files if has_scheme(name)]
    parts: list[DataFrame] = []
    if paths:
        one_each = spark.range(0, len(paths), 1, len(paths))
        parts.append(one_each.mapInArrow(_reader_of(paths, followed), _SEEN))
    if addresses:
        content = spark.read.format("binaryFile").load(addresses).select("path", "content")
        parts.append(content.mapInArrow(_reader_of_content(followed), _SEEN))
    if not parts:
        return spark.createDataFrame([], _DECODED)
    seen = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
    in_order = seen.repartition("conversation").sortWithinPartitions(*SEEN_ORDER)
    return in_order.mapInArrow(_follower(followed), _DECODED)


def packets(decoded: DataFrame) -> DataFrame:
    """Return the packets: one row for each packet of a session and for each datagram."""
    return _part(decoded, "packet")


def sessions(decoded: DataFrame) -> DataFrame:
    """Return the sessions: one row for each connection between two queue managers."""
    return _sessions(packets(decoded), _part(decoded, "session_facts"))


def anomalies(decoded: DataFrame) -> DataFrame:
    """Return what is wrong: one row for each finding, in one session or between several."""
    return _anomalies(packets(decoded), _part(decoded, "anomaly"))


def _part(decoded: DataFrame, name: str) -> DataFrame:
    return decoded.where(f"{name} is not null").select(f"{name}.*")


def _sessions(sent: DataFrame, facts: DataFrame) -> DataFrame:
    figures = across.session_figures(across.with_copies(sent))
    joined = facts.join(figures, "session", "left").fillna(0, ["resent_messages"])
    return joined.select(*(column.name for column in SESSIONS))


def _anomalies(sent: DataFrame, found: DataFrame) -> DataFrame:
    return found.unionByName(across.anomalies_across(across.with_copies(sent)))


def write_tables(decoded: DataFrame, directory: str) -> None:
    """Write the three tables below a directory, as Parquet."""
    for name, make in TABLES.items():
        make(decoded).write.parquet(f"{directory}/{name}")


def tables_here(spark: SparkSession, files: Sequence[str], ports: Ports) -> dict[str, DataFrame]:
    """Make the three tables in this process: for few packets, in files with plain paths.

    Packets are here already when they are written, and Spark sees only what it has to compare.
    """
    seen = [one for name in files for one in open_and_read(name, name, ports)]
    seen.sort(key=attrgetter(*SEEN_ORDER))
    rows = pa.Table.from_batches(batches(read_conversations(seen, ports)), DECODED_SCHEMA)
    sent, facts, found = (
        of_table(
            spark,
            pa.Table.from_struct_array(rows.column(name).drop_null()),
            from_arrow_schema(pa.schema(rows.schema.field(name).type.fields)),
        )
        for name in ("packet", "session_facts", "anomaly")
    )
    return {
        "packets": sent,
        "sessions": _sessions(sent, facts),
        "anomalies": _anomalies(sent, found),
    }


def write_and_count(
    spark: SparkSession, files: Sequence[str], ports: Ports, directory: str, *, few: bool
) -> tuple[dict[str, int], list[AnomalyCount]]:
    """Write the three tables, and say how many rows each has, and which anomalies there are.

    Rows are counted as they are written, and anomalies before they are forgotten: so nothing is
    read again.
    """
    counts: dict[str, int] = {}
    with contextlib.ExitStack() as uses:
        if few:
            tables = tables_here(spark, files, ports)
        else:
            decoded = uses.enter_context(held(decode(spark, files, ports), few=False))
            tables = {name: make(decoded) for name, make in TABLES.items()}
        found = uses.enter_context(held(tables["anomalies"], few))
        for name, table in (tables | {"anomalies": found}).items():
            counts[name] = _write_counted(table, f"{directory}/{name}", few)
        return counts, anomaly_counts(found)


def _write_counted(table: DataFrame, output: str, few: bool) -> int:
    """Write a table, and count its rows on the way."""
    count = written_here(table, output) if few else None
    if count is None:
        counted = Observation()
        table.observe(counted, F.count(F.lit(1)).alias("rows")).write.parquet(output)
        count = counted.get["rows"]
    return count


TABLES: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    "packets": packets,
    "sessions": sessions,
    "anomalies": anomalies,
}


class AnomalyCount(msgspec.Struct, frozen=True):
    """How often something is wrong, and the first time of it."""

    kind: str
    severity: str
    count: int
    file: str
    first: str
    """What is wrong there, in one sentence."""


def anomaly_counts(found: DataFrame) -> list[AnomalyCount]:
    """Count anomalies by their kind; the worst come first, and then the most frequent."""
    first = F.min_by(F.struct("file", "description"), F.struct("time", "file", "frame"))
    rows = found.groupBy("kind", "severity").agg(F.count("*").alias("n"), first.alias("f"))
    counts = [
        AnomalyCount(
            row["kind"], row["severity"], row["n"], row["f"]["file"], row["f"]["description"]
        )
        for row in rows.collect()
    ]
    worst_first = list(reversed(Severity))
    return sorted(
        counts, key=lambda one: (worst_first.index(Severity(one.severity)), -one.count, one.kind)
    )


def _reader_of(
    paths: Sequence[str], ports: Ports
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    # The tasks may have another working directory.
    absolute = [os.path.abspath(path) for path in paths]

    def read(numbers: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from seen_batches(open_and_read(paths[number], absolute[number], ports))

    return read


def _reader_of_content(ports: Ports) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    def read(files: _Batches) -> Iterator[pa.RecordBatch]:
        for batch in files:
            for path, content in zip(*batch.columns, strict=True):
                source = io.BytesIO(content.as_buffer())
                yield from seen_batches(read_file(path.as_py(), source.read, ports))

    return read


def _follower(ports: Ports) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    def follow(seen: _Batches) -> Iterator[pa.RecordBatch]:
        yield from batches(read_conversations(seen_in(seen), ports))

    return follow
