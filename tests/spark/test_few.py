"""Settings for few rows: only for few, and only while they are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from openmsmq.spark.pipelines.few import (
    FEW_MAX_BYTES,
    SETTINGS,
    are_few,
    are_small,
    for_few_rows,
    held,
    mapped,
    write_parquet,
    written_here,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_settings_are_as_they_were_afterwards_also_when_it_fails(spark: SparkSession) -> None:
    before = {name: spark.conf.get(name) for name in SETTINGS}
    assert before != SETTINGS

    def fail_in_the_middle() -> None:
        with for_few_rows(spark):
            assert {name: spark.conf.get(name) for name in SETTINGS} == SETTINGS
            raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        fail_in_the_middle()
    assert {name: spark.conf.get(name) for name in SETTINGS} == before
    with for_few_rows(spark, few=False):
        assert {name: spark.conf.get(name) for name in SETTINGS} == before


def test_a_table_has_few_rows_up_to_a_size(spark: SparkSession, tmp_path: Path) -> None:
    small, large = str(tmp_path / "small.parquet"), str(tmp_path / "large.parquet")
    column = pa.array([bytes(1024)] * (FEW_MAX_BYTES // 1024 + 1))
    pq.write_table(pa.table({"body": column[:10]}), small)
    pq.write_table(pa.table({"body": column}), large, compression="NONE", use_dictionary=False)
    assert are_few(spark.read.parquet(small))
    assert not are_few(spark.read.parquet(large))


def test_files_are_small_together_and_if_their_size_is_known(tmp_path: Path) -> None:
    half = tmp_path / "half.pcapng"
    half.write_bytes(bytes(FEW_MAX_BYTES // 2))
    more = tmp_path / "table" / "part=1" / "more.parquet"
    more.parent.mkdir(parents=True)
    more.write_bytes(bytes(FEW_MAX_BYTES // 2 + 1))
    assert are_small([str(half), str(half), None])
    assert are_small([str(tmp_path / "table")])
    assert not are_small([str(half), str(tmp_path / "table")])
    assert not are_small(["s3a://bucket/trace.pcapng"])
    assert not are_small([str(tmp_path / "missing")])


def test_few_rows_that_are_held_are_those_that_spark_would_keep(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT id, timestamp_micros(id) AS time, map('a', id) AS counts, "
        "named_struct('b', IF(id = 1, NULL, X'00FF')) AS inner FROM range(3)"
    )
    with held(rows, few=True) as few, held(rows, few=False) as many:
        assert few.schema == many.schema
        assert few.collect() == many.collect()
        assert few.rdd.getNumPartitions() == 1


def test_few_record_batches_are_mapped_as_many_are(spark: SparkSession) -> None:
    schema = pa.schema({"double": pa.int64()})

    def double(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch([pc.multiply(batch.column(0), 2)], schema=schema)

    rows = spark.range(5)
    few, many = (mapped(rows, double, schema, few).collect() for few in (True, False))
    assert few == sorted(many)
    assert [row["double"] for row in few] == [0, 2, 4, 6, 8]
    none = mapped(rows.where("id > 9"), double, schema, few=True)
    assert none.collect() == []
    assert none.columns == ["double"]


def test_few_rows_are_written_as_spark_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql(
        "SELECT id, cast(id AS smallint) AS short, timestamp_micros(id) AS time, "
        "map('a', id) AS counts, array(named_struct('b', IF(id = 1, NULL, X'00FF'))) AS inner, "
        "cast(NULL AS string) AS nothing, id / 2 AS half, date '2026-03-02' AS day FROM range(3)"
    )
    found = []
    for few in (True, False):
        with held(rows, few) as kept:
            write_parquet(kept, str(tmp_path / f"{few}"), few)
        found.append(spark.read.parquet(str(tmp_path / f"{few}")))
        assert (tmp_path / f"{few}" / "_SUCCESS").exists()
    assert found[0].schema == found[1].schema
    assert found[0].orderBy("id").collect() == found[1].orderBy("id").collect()
    assert written_here(rows.where("id = 9"), str(tmp_path / "none")) == 0
    assert spark.read.parquet(str(tmp_path / "none")).collect() == []


def test_few_rows_overwrite_nothing_and_stay_where_only_spark_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(3)
    with pytest.raises(FileExistsError):
        written_here(rows, str(tmp_path))
    assert written_here(rows, "s3a://bucket/table") is None
