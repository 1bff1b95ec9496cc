"""Settings for few rows: only for few, and only while they are wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from openmsmq.spark.pipelines.capture import are_small
from openmsmq.spark.pipelines.few import FEW_MAX_BYTES, SETTINGS, are_few, for_few_rows

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


def test_captures_are_small_together_and_if_their_size_is_known(tmp_path: Path) -> None:
    half = tmp_path / "half.pcapng"
    half.write_bytes(bytes(FEW_MAX_BYTES // 2))
    more = tmp_path / "more.pcapng"
    more.write_bytes(bytes(FEW_MAX_BYTES // 2 + 1))
    assert are_small([str(half), str(half)])
    assert not are_small([str(half), str(more)])
    assert not are_small(["s3a://bucket/trace.pcapng"])
