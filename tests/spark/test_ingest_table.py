"""The table of `ingest` where tasks copy ranges: what counts, whenever its driver dies."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException

from openmsmq.spark.errors import BadOption, QueueProblem, TableProblem, sentence_in
from openmsmq.spark.pipelines import ingest as pipeline
from openmsmq.spark.pipelines.ingest import copying as ingest_copying
from openmsmq.spark.pipelines.ingest.copying import (
    FILES_MAX_COUNT,
    Copying,
    Staged,
    StagedFiles,
    can_copy,
    copied_here,
    copy_range,
)
from openmsmq.spark.pipelines.ingest.table import Table, compact_interval
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.reading import read_range
from tests.spark.exactly_once.harness import committed_files, visible_files

ADDRESS = "127.0.88.2"
DIRECTORY = "queue=private$%5Ca/date=2026-01-31"


def staged(table: Table, name: str, number: int) -> Staged:
    """Write a file with one row into the staging directory."""
    path = table.staging / name
    pq.write_table(pa.table({"number": [number]}), path)
    return Staged(name, DIRECTORY, 1, path.stat().st_size, 0)


def numbers(table: Table) -> list[int]:
    """Give the rows that count."""
    files = committed_files(table.path)
    return [row for path in files for row in pq.ParquetFile(path).read()["number"].to_pylist()]


# Publishing.


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=12), st.integers(1, 4))
def test_each_batch_counts_once_whatever_step_its_driver_dies_after(deaths, interval):
    with TemporaryDirectory() as folder:
        table, batch = Table(folder, interval), 0
        for attempt, steps in enumerate(deaths):
            table.prepare()
            assert visible_files(table.path) == sorted(committed_files(table.path))
            assert list(table.staging.iterdir()) == []
            files = [staged(table, f"{attempt}-{place}", batch) for place in range(2)]
            (table.staging / f"{attempt}-late").write_bytes(b"PAR1")
            with contextlib.closing(table.publishing(batch, files)) as publishing:
                for _ in range(steps):
                    next(publishing, None)
            # Nobody but the table knows how far it has come.
            batch += table.has(batch)
        assert numbers(table) if batch else True
        table.prepare()
        assert numbers(table) == [number for number in range(batch) for _ in range(2)]


def test_a_batch_that_counts_is_not_replaced_by_a_driver_that_seemed_dead(tmp_path):
    table, old = Table(str(tmp_path)), Table(str(tmp_path))
    old.prepare()
    late = staged(old, "late", 1)
    table.publish(0, [staged(table, "first", 0)])
    old.publish(0, [late])
    assert numbers(table) == [0]
    assert list(table.staging.iterdir()) == []


def test_a_second_command_on_the_same_table_fails_and_loses_nothing(tmp_path):
    first, second = Table(str(tmp_path)), Table(str(tmp_path))
    first.prepare()
    file = staged(first, "file", 0)
    second.prepare()
    with pytest.raises(TableProblem, match="one command at a time"):
        first.publish(0, [file])
    second.prepare()
    assert not second.has(0)
    assert visible_files(tmp_path) == []


def test_a_table_that_is_gone_while_its_checkpoint_is_there_is_noticed(tmp_path):
    table = Table(str(tmp_path))
    table.prepare()
    with pytest.raises(TableProblem, match="has no batch 4, but its checkpoint goes on with 5"):
        table.publish(5, [])


def test_a_table_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TableProblem, match="cannot be written"):
        Table(str(tmp_path / "file")).prepare()


@pytest.mark.parametrize(
    ("compact", "default", "expected"),
    # As CompactibleFileStreamLog concludes it.
    [([], 10, 10), ([9], 10, 10), ([4], 10, 5), ([19], 10, 20), ([29], 10, 10), ([4, 9], 10, 5)],
)
def test_the_log_repeats_itself_when_spark_expects_it(compact, default, expected):
    assert compact_interval(compact, default) == expected


@pytest.mark.timeout(120)
def test_spark_reads_a_log_that_repeats_itself(spark, tmp_path):
    table = Table(str(tmp_path / "a table: 100%"))
    table.prepare()
    for batch in range(12):
        table.publish(batch, [] if batch == 7 else [staged(table, f"file-{batch}", batch)])
    assert (table.log.path / "9.compact").exists()
    found = spark.read.parquet(str(table.path)).collect()
    assert sorted(row["number"] for row in found) == [n for n in range(12) if n != 7]
    assert {(row["queue"], str(row["date"])) for row in found} == {("private$\\a", "2026-01-31")}


# Copying.


def test_messages_of_several_days_go_into_their_directories(tmp_path):
    columns = "queue,arrived_time,label"
    options = read_source_options({"queue": "q", "columns": columns})
    job = Copying(options, str(tmp_path), ("date", "queue"))
    Table(str(tmp_path)).prepare()
    days = list(range(1, FILES_MAX_COUNT + 3))
    times = [datetime(2026, 1, day, hour, tzinfo=UTC) for hour in (0, 23) for day in days]
    labels = [f"{time:%d}" for time in times]
    files = StagedFiles(job, "a:b")
    for _ in range(2):
        rows = {"queue": ["a:b"] * len(times), "arrived_time": times, "label": labels}
        files.add(pa.RecordBatch.from_pydict(rows))
    found: dict[str, list[str]] = {}
    for file in files.close():
        table = pq.read_table(files.staging / file.name)
        assert table.column_names == ["arrived_time", "label"]
        assert table.num_rows == file.rows
        found.setdefault(file.directory, []).extend(table["label"].to_pylist())
    assert found == {f"date=2026-01-{day:02d}/queue=a%3Ab": [f"{day:02d}"] * 4 for day in days}


def test_a_batch_that_counts_is_on_the_disk_with_all_its_files(tmp_path, monkeypatch):
    """Messages leave their queue when their batch counts; the power may fail right then."""
    contents: dict[int, bytes] = {}
    names: dict[int, list[str]] = {}
    sync = os.fsync

    def watched_sync(file: int) -> None:
        sync(file)
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            names[status.st_ino] = os.listdir(file)
        else:
            contents[status.st_ino] = Path(f"/proc/self/fd/{file}").read_bytes()

    monkeypatch.setattr(os, "fsync", watched_sync)
    table = Table(str(tmp_path / "table"))
    table.prepare()
    options = read_source_options({"queue": "q", "columns": "queue,arrived_time,label"})
    files = StagedFiles(Copying(options, str(table.path), ("date", "queue")), "q")
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]
    rows = {"queue": ["q"] * 2, "arrived_time": times, "label": ["one", "two"]}
    files.add(pa.RecordBatch.from_pydict(rows))
    table.publish(0, files.close())
    found = committed_files(table.path)
    assert len(found) == 2
    for path in [*found, table.log.path / "0"]:
        assert contents[path.stat().st_ino] == path.read_bytes()
        while path != table.path:
            assert path.name in names[path.parent.stat().st_ino], path
            path = path.parent


def test_an_attempt_that_fails_leaves_no_file(alpha, manager, tmp_path, monkeypatch):
    queue = manager.create_queue(r"private$\broken")
    queue.send_many([f"order {number}" for number in range(3)])
    options = read_source_options({"qm": alpha.qm, "queue": queue.name})
    job = Copying(options, str(tmp_path), ())
    table = Table(str(tmp_path))
    table.prepare()
    part = QueueRange(alpha.qm, queue.name, 0, queue.properties().last_arrival_number + 1)
    assert [file.rows for file in copy_range(job, part)] == [3]
    table.prepare()

    def cut_off(*_: object) -> Iterator[pa.RecordBatch]:
        yield from read_range(options, part)
        raise QueueProblem("the queue manager is gone")

    monkeypatch.setattr(ingest_copying, "read_range", cut_off)
    with pytest.raises(QueueProblem, match="is gone"):
        copy_range(job, part)
    assert list(table.staging.iterdir()) == []
    table.staging.rmdir()
    with pytest.raises(TableProblem, match="_staging cannot be written"):
        copy_range(job, part)


@pytest.mark.parametrize(
    ("output", "default", "expected"),
    [
        ("/data/orders", "file:///", "/data/orders"),
        ("file:/data/orders", "hdfs://names", "/data/orders"),
        ("file:///data/orders", "file:///", "/data/orders"),
        ("/data/orders", "hdfs://names", None),
        ("s3a://bucket/orders", "file:///", None),
        ("hdfs:/orders", "file:///", None),
        ("file://host/orders", "file:///", None),
    ],
)
def test_only_paths_are_copied_to(output, default, expected):
    assert copied_here(output, default) == expected


def test_directories_by_other_columns_are_left_to_spark():
    assert can_copy(("queue", "label"), ("queue",))
    assert can_copy(("label",), ())
    assert not can_copy(("queue", "label"), ("label",))
    assert not can_copy(("queue",), ("queue",))


# The whole.


def run(spark: Any, options: dict[str, str], output: Path) -> Any:
    query = pipeline.ingest(spark, options, str(output))
    assert query.awaitTermination(100)
    return query


@pytest.mark.timeout(300)
def test_a_table_that_spark_has_written_goes_on_with_the_same_columns_and_directories(
    spark, alpha, manager, tmp_path, monkeypatch
):
    queue = manager.create_queue("private$\\odd%25#'1'")
    queue.send_many([f"order {number}" for number in range(3)], recoverable=True)
    options = {"qm": alpha.qm, "queue": queue.name, "mode": "browse"}
    by_spark, copied = tmp_path / "by spark", tmp_path / "copied"
    monkeypatch.setattr(pipeline, "can_copy", lambda *_: False)
    run(spark, options, by_spark)
    monkeypatch.undo()
    reports = pipeline.batch_reports(run(spark, options, copied), options, -1)
    assert [report.message_count for report in reports] == [3]
    one, other = (spark.read.parquet(str(path)) for path in (by_spark, copied))
    assert one.schema == other.schema
    assert sorted(one.collect()) == sorted(other.collect())
    assert directories(by_spark) == directories(copied)
    queue.send("order 3", recoverable=True)
    run(spark, options, by_spark)
    texts = [row["text"] for row in spark.read.parquet(str(by_spark)).collect()]
    assert sorted(texts) == [f"order {number}" for number in range(4)]
    with pytest.raises(BadOption, match=r"has batches that .* does not know"):
        pipeline.ingest(spark, options, str(copied), checkpoint=str(tmp_path / "another"))
    shutil.rmtree(copied)
    with pytest.raises(StreamingQueryException) as failed:
        run(spark, options, copied)
    assert (sentence_in(str(failed.value)) or "").startswith(f"{copied} has no batch 0")


def directories(table: Path) -> set[Path]:
    return {path.parent.relative_to(table) for path in visible_files(table)}
