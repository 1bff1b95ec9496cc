"""The tables of `ingest`: what counts, for every reader, whenever the driver dies."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.utils.config import Config
from pyspark.errors import StreamingQueryException

from openmsmq.spark.errors import BadOption, QueueProblem, TableProblem, sentence_in
from openmsmq.spark.paths import path_of
from openmsmq.spark.pipelines import ingest as pipeline
from openmsmq.spark.pipelines.ingest import copying as ingest_copying
from openmsmq.spark.pipelines.ingest import iceberg_table
from openmsmq.spark.pipelines.ingest.beginning import Beginning, make_ready
from openmsmq.spark.pipelines.ingest.checkpoint import Checkpoint, Mark
from openmsmq.spark.pipelines.ingest.copying import Copying, copy, copy_ranges
from openmsmq.spark.pipelines.ingest.files import FILES_MAX_COUNT, Staged, StagedFiles, divided
from openmsmq.spark.pipelines.ingest.formats import FORMATS, Output
from openmsmq.spark.pipelines.ingest.table import Table
from openmsmq.spark.schema import ALL_NAMES, NAMES, arrow_schema
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.ranges import RangeReader
from openmsmq.spark.source.reading import read_range
from openmsmq.spark.source.stream_reader import StreamReader
from tests.spark.foreign_readers import iceberg, read_table

ADDRESS = "127.0.88.2"
QUEUE = r"private$\a"
DAY = date(2026, 1, 31)
SCHEMA = pa.schema(
    [("queue", pa.string()), ("number", pa.int64()), ("note", pa.string()), ("date", pa.date32())]
)

formats = pytest.mark.parametrize("format", FORMATS)


def made(path: Path, format: str) -> Table:
    """Make a table, or open one."""
    table = Output(format, str(path), ("queue", "date")).open()
    table.prepare(SCHEMA)
    return table


def staged(table: Table, number: int) -> list[Staged]:
    """Write rows into files as a task does: two days, so two files."""
    columns = table.open(SCHEMA)
    files = StagedFiles(table.staging, table.partition_by, columns)
    rows = [{"queue": QUEUE, "number": number, "note": "", "date": day} for day in (DAY, None)]
    files.add(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    return files.close()


def mark(batch: int, query: str = "one", end: str = "") -> Mark:
    return Mark(query, batch, end or f'{{"next": {batch}}}', "reader")


def numbers(path: Path, format: str) -> list[int]:
    """Return the rows that another program finds."""
    found = read_table(path, format)
    return sorted(found["number"].to_pylist()) if found.num_rows else []


def files_in(table: Table) -> list[Path]:
    """Return the files with rows, whether they count or not."""
    return [path for path in table.path.rglob("*.parquet") if "_delta_log" not in path.parts]


# Publishing.


@formats
@settings(max_examples=12, deadline=None)
@given(deaths=st.lists(st.integers(0, 5), max_size=6))
def test_each_batch_counts_once_and_whole_whatever_step_its_driver_dies_after(format, deaths):
    with TemporaryDirectory() as folder:
        path, batch = Path(folder, "table"), 0
        for steps in deaths:
            table = made(path, format)
            assert list(table.staging.iterdir()) == []
            assert len(files_in(table)) == 2 * batch
            files = staged(table, batch)
            (table.staging / "late").write_bytes(b"PAR1")
            with contextlib.closing(table.publishing(mark(batch), files)) as publishing:
                for _ in range(steps):
                    done = next(publishing, None)
                    # Whoever looks meanwhile sees whole batches.
                    count = batch + (done in ("published", None))
                    assert numbers(path, format) == [n for n in range(count) for _ in range(2)]
            # Nobody but the table knows how far it has come.
            batch += table.has(mark(batch))
        made(path, format)
        assert numbers(path, format) == [n for n in range(batch) for _ in range(2)]


@formats
def test_a_batch_that_counts_is_not_written_by_a_driver_that_seemed_dead(tmp_path, format):
    table, old = (made(tmp_path / "table", format) for _ in range(2))
    late = staged(old, 1)
    table.publish(mark(0), staged(table, 0))
    old.publish(mark(0), late)
    assert numbers(table.path, format) == [0, 0]
    assert list(table.staging.iterdir()) == []


@formats
def test_only_the_last_batch_can_come_again_and_only_with_the_same_end(tmp_path, format):
    table = made(tmp_path / "table", format)
    for batch in range(3):
        table.publish(mark(batch), staged(table, batch))
    assert table.has(mark(2))
    assert not table.has(mark(3))
    # A copy of the checkpoint was made before batch 2, and went on with other messages.
    with pytest.raises(TableProblem, match=r"up to 2, and another batch 2 comes: .* older copy"):
        table.publish(mark(2, end="{}"), staged(table, 100))
    with pytest.raises(TableProblem, match=r"up to 2, and another batch 1 comes: .* older copy"):
        table.publish(mark(1), staged(table, 100))
    with pytest.raises(TableProblem, match="has no batch 3 of this checkpoint, which goes on with"):
        table.publish(mark(4), staged(table, 100))
    assert numbers(table.path, format) == [0, 0, 1, 1, 2, 2]


@formats
def test_a_table_takes_batches_of_several_checkpoints(tmp_path, format):
    table = made(tmp_path / "table", format)
    for batch, query in ((0, "one"), (0, "two"), (1, "one"), (1, "two")):
        table.publish(mark(batch, query), staged(table, batch))
    with pytest.raises(TableProblem, match="has no batch 4 of this checkpoint"):
        table.has(mark(5, "three"))
    again = pickle.loads(pickle.dumps(table))
    assert again.has(mark(1, "one"))
    assert {each.query: each.batch for each in again.marks()} == {"one": 1, "two": 1}
    assert numbers(table.path, format) == [0] * 4 + [1] * 4


@formats
def test_a_batch_without_rows_is_known_too(tmp_path, format):
    table = made(tmp_path / "table", format)
    table.publish(mark(0), [])
    assert table.has(mark(0))
    assert numbers(table.path, format) == []


@formats
def test_a_second_command_on_the_same_table_fails_and_loses_nothing(tmp_path, format):
    first = made(tmp_path / "table", format)
    files = staged(first, 0)
    second = made(tmp_path / "table", format)
    with pytest.raises(TableProblem, match="one command at a time"):
        first.publish(mark(0), files)
    assert not second.has(mark(0))
    assert numbers(first.path, format) == []


@formats
def test_a_table_that_cannot_be_written_is_a_sentence(tmp_path, format):
    (tmp_path / "file").touch()
    with pytest.raises(TableProblem, match="cannot be written"):
        made(tmp_path / "file" / "table", format)


@formats
def test_odd_paths_and_queues_are_read_by_others(tmp_path, format):
    path = tmp_path / "a table: 100% #1"
    table = Output(format, str(path), ("queue", "date")).open()
    columns = table.prepare(SCHEMA)
    files = StagedFiles(table.staging, ("queue", "date"), columns)
    name = "private$\\odd%25#'1'/ä=b"
    files.add(pa.RecordBatch.from_pylist([{"queue": name, "date": DAY}], schema=SCHEMA))
    table.publish(mark(0), files.close())
    (row,) = read_table(path, format).to_pylist()
    assert (row["queue"], row["date"]) == (name, DAY)


@formats
def test_a_table_of_an_earlier_version_gets_the_columns_it_lacks(tmp_path, format):
    table = made(tmp_path / "table", format)
    table.publish(mark(0), staged(table, 0))
    wider = SCHEMA.append(pa.field("headers", pa.map_(pa.string(), pa.string())))
    for _ in range(2):
        later = Output(format, str(table.path), ("queue", "date")).open()
        columns = later.prepare(wider)
    files = StagedFiles(later.staging, ("queue", "date"), columns)
    row = {"queue": QUEUE, "number": 1, "date": DAY, "headers": {"a": "b"}}
    files.add(pa.RecordBatch.from_pylist([row], schema=wider))
    later.publish(mark(1), files.close())
    # A query that reads fewer columns leaves the others empty.
    later.publish(mark(2), staged(later, 2))
    found = read_table(table.path, format).to_pylist()
    assert sorted((row["number"], str(row["headers"])) for row in found) == [
        *[(0, "None")] * 2,
        (1, "{'a': 'b'}" if isinstance(found[0]["headers"], dict) else "[('a', 'b')]"),
        *[(2, "None")] * 2,
    ]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_with_other_types_or_partitions_is_refused(tmp_path, format):
    path = str(made(tmp_path / "table", format).path)
    with pytest.raises(TableProblem, match="partitioned by queue, date: partition by that"):
        Output(format, path, ("queue",)).open().prepare(SCHEMA)
    other = SCHEMA.set(1, pa.field("number", pa.string()))
    with pytest.raises(TableProblem, match="has the column number as int64"):
        Output(format, path, ("queue", "date")).open().prepare(other)


def test_a_directory_with_other_things_is_no_parquet_table(tmp_path):
    (tmp_path / "table" / "photos").mkdir(parents=True)
    with pytest.raises(TableProblem, match="has photos, which is no batch of a table"):
        made(tmp_path / "table", "parquet")


def test_snapshots_of_iceberg_are_bounded_and_the_last_batch_stays_known(tmp_path, monkeypatch):
    monkeypatch.setattr(iceberg_table, "SNAPSHOTS_MAX_COUNT", 4)
    table = made(tmp_path / "table", "iceberg")
    for batch in range(7):
        table.publish(mark(batch), staged(table, batch))
        if batch == 0:
            with iceberg(table.path) as stored:
                first = stored.snapshots()[0].snapshot_id
                stored.manage_snapshots().create_tag(first, "kept").commit()
    with iceberg(table.path) as stored:
        assert len(stored.snapshots()) <= 4
        assert stored.scan(snapshot_id=first).count() == 2
    assert table.has(mark(6))
    assert numbers(table.path, "iceberg") == [n for n in range(7) for _ in range(2)]


def test_delta_compacts_and_travels_in_time_without_forgetting_batches(tmp_path):
    table = made(tmp_path / "table", "delta")
    for batch in range(3):
        table.publish(mark(batch), staged(table, batch))
    before = DeltaTable(str(table.path))
    first = before.version()
    assert before.optimize.compact()["numFilesRemoved"] == 6
    assert table.has(mark(2))
    assert numbers(table.path, "delta") == [0, 0, 1, 1, 2, 2]
    earlier = DeltaTable(str(table.path), version=first - 1)
    assert earlier.count() == 4


def test_iceberg_is_compacted_and_goes_on(tmp_path):
    table = made(tmp_path / "table", "iceberg")
    for batch in range(2):
        table.publish(mark(batch), staged(table, batch))
    with iceberg(table.path) as stored:
        day = EqualTo("date", DAY.isoformat())
        stored.overwrite(stored.scan(day).to_arrow(), overwrite_filter=day)
        assert len(list(stored.scan(day).plan_files())) == 1
    assert table.has(mark(1))
    table.publish(mark(2), staged(table, 2))
    assert numbers(table.path, "iceberg") == [0, 0, 1, 1, 2, 2]


def test_iceberg_writes_into_a_catalog_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_CATALOG__MINE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__MINE__URI", f"sqlite:///{tmp_path}/mine.db")
    # PyIceberg reads its settings when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    place = Output("iceberg", str(tmp_path / "table"), ("queue", "date"), "mine", "sales.orders")
    table = place.open()
    table.prepare(SCHEMA)
    table.publish(mark(0), staged(table, 0))
    assert not (tmp_path / "table" / "catalog.db").exists()
    catalog = SqlCatalog("mine", uri=f"sqlite:///{tmp_path}/mine.db")
    assert catalog.load_table("sales.orders").scan().count() == 2
    catalog.close()
    assert place.open().has(mark(0))
    elsewhere = Output("iceberg", str(tmp_path / "other"), (), "mine", "sales.orders").open()
    with pytest.raises(BadOption, match=r"the table sales\.orders is at .*table: give that"):
        elsewhere.prepare(SCHEMA)
    unknown = Output("iceberg", str(tmp_path / "other"), (), "nobodys", "sales.orders").open()
    with pytest.raises(BadOption, match=r"option catalog: .*NOBODYS"):
        unknown.prepare(SCHEMA)


@formats
def test_a_batch_that_counts_is_on_the_disk_with_all_its_files(tmp_path, monkeypatch, format):
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

    table = made(tmp_path / "table", format)
    before = set(table.path.rglob("*"))
    monkeypatch.setattr(os, "fsync", watched_sync)
    table.publish(mark(0), staged(table, 0))
    # SQLite sees to its own file.
    new = [path for path in table.path.rglob("*") if path not in before and path.is_file()]
    assert len(files_in(table)) == 2
    assert len(new) > 2
    for path in new:
        assert contents[path.stat().st_ino] == path.read_bytes(), path
        while path != table.path:
            assert path.name in names[path.parent.stat().st_ino], path
            path = path.parent


# Files.


def test_messages_of_several_days_go_into_their_files(tmp_path):
    days = list(range(1, FILES_MAX_COUNT + 3))
    schema = pa.schema([("label", pa.string())])
    files = StagedFiles(tmp_path, ("date", "queue"), schema)
    rows = [
        {"queue": "a:b", "date": date(2026, 1, day), "label": f"{day}"}
        for _ in range(2)
        for day in days
    ]
    for _ in range(2):
        files.add(pa.RecordBatch.from_pylist(rows))
    found: dict[tuple[str | None, ...], list[str]] = {}
    for file in files.close():
        table = pq.read_table(tmp_path / file.name)
        assert table.column_names == ["label"]
        assert table.num_rows == file.rows
        found.setdefault(tuple(file.values), []).extend(table["label"].to_pylist())
    assert found == {(f"2026-01-{day:02d}", "a:b"): [f"{day}"] * 4 for day in days}


@given(
    st.lists(st.none() | st.integers(-90_000_000_000, 90_000_000_000), min_size=1),
    st.sampled_from(["UTC", "Europe/Berlin"]),
)
def test_the_date_of_a_message_is_its_day_in_utc(times_us, zone):
    times = pa.array(times_us, pa.timestamp("us", zone))
    batch = ingest_copying.with_date(pa.RecordBatch.from_arrays([times], ["arrived_time"]))
    batch.validate(full=True)
    start = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [
        None if time_us is None else (start + timedelta(microseconds=time_us)).date()
        for time_us in times_us
    ]
    assert batch.column(ingest_copying.DATE).to_pylist() == expected


@pytest.mark.parametrize("names", [NAMES, ALL_NAMES], ids=["usual", "nested"])
def test_only_columns_that_repeat_have_dictionaries_and_content_has_no_statistics(tmp_path, names):
    schema = arrow_schema(names)
    row = {"message_id": "{x}\\1", "label": "a", "body": b"b", "text": "c", "arrival_number": 7}
    files = StagedFiles(tmp_path, (), schema)
    files.add(pa.RecordBatch.from_pylist([row] * 3, schema=schema))
    (file,) = files.close()
    found = pq.read_table(tmp_path / file.name)
    assert found.schema.equals(schema)
    assert [{name: each[name] for name in row} for each in found.to_pylist()] == [row] * 3
    if names == NAMES:
        group = pq.ParquetFile(tmp_path / file.name).metadata.row_group(0)
        told = {group.column(at).path_in_schema: group.column(at) for at in range(len(names))}
        without = {name for name, column in told.items() if not column.has_dictionary_page}
        booleans = {field.name for field in schema if pa.types.is_boolean(field.type)}
        assert without - booleans == {"arrival_number", "lookup_id", "message_id"}
        unknown = {name for name, column in told.items() if not column.is_stats_set}
        content = {"body", "extension", "sender_id", "sender_certificate", "text"}
        assert unknown == content


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "", None]), st.booleans() | st.none(), st.integers(0, 3)),
        min_size=1,
    )
)
def test_rows_are_divided_by_any_columns_and_none_is_lost(rows):
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.string()),
            pa.array([row[1] for row in rows], pa.bool_()),
            pa.array([row[2] for row in rows], pa.int64()),
        ],
        ["text", "yes", "number"],
    )
    expected: dict[Any, list[Any]] = {}
    for row in rows:
        yes = None if row[1] is None else str(row[1]).lower()
        expected.setdefault((row[0] or None, yes), []).append(row)
    found: dict[Any, list[Any]] = {}
    for values, part in divided(batch, ("text", "yes")):
        assert part.num_rows
        found.setdefault(values, []).extend(tuple(row.values()) for row in part.to_pylist())
    assert {key: sorted(map(str, rows)) for key, rows in found.items()} == {
        key: sorted(map(str, rows)) for key, rows in expected.items()
    }


def test_an_attempt_that_fails_leaves_no_file(alpha, manager, tmp_path, monkeypatch):
    queue = manager.create_queue(r"private$\broken")
    queue.send_many([f"order {number}" for number in range(3)])
    options = read_source_options({"qm": alpha.qm, "queue": queue.name, "columns": "label"})
    job = Copying(options, str(tmp_path), (), pa.schema([("label", pa.string())]))
    part = QueueRange(alpha.qm, queue.name, 0, queue.properties().last_arrival_number + 1)
    (file,) = copy(job, [part])
    assert file.rows == 3
    (tmp_path / file.name).unlink()

    def cut_off(*_: object) -> Iterator[pa.RecordBatch]:
        yield from read_range(options, part)
        raise QueueProblem("the queue manager is gone")

    monkeypatch.setattr(ingest_copying, "read_range", cut_off)
    with pytest.raises(QueueProblem, match="is gone"):
        copy(job, [part])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TableProblem, match="gone cannot be written"):
        copy(Copying(options, str(tmp_path / "gone"), (), job.schema), [part])


def test_a_checkpoint_that_cannot_be_read_is_a_sentence(tmp_path):
    checkpoint = Checkpoint(str(tmp_path / "checkpoint"))
    assert checkpoint.is_new()
    with pytest.raises(TableProblem, match="does not say which batch 3 is"):
        checkpoint.mark(3, "reader")


def test_a_batch_is_marked_with_where_it_begins_if_the_checkpoint_still_says_so(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "metadata").write_text('{"id":"q"}')
    for batch in (6, 7):
        (tmp_path / "offsets" / str(batch)).write_text(f'v1\n{{}}\n{{"next":{batch}}}')
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.mark(7, "r") == Mark("q", 7, '{"next":7}', "r", '{"next":6}')
    assert checkpoint.mark(6, "r") == Mark("q", 6, '{"next":6}', "r")


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
def test_only_paths_are_written_by_tasks(output, default, expected):
    assert path_of(output, default) == expected


@pytest.mark.parametrize(
    ("columns", "partition_by", "problem"),
    [
        (("label",), ("queue",), "queue is no column of messages"),
        (("label",), ("date",), "leaves out arrived_time"),
        (("label", "body"), ("body",), "body has bytes or times"),
        (("label", "queue"), ("queue", "queue"), "names a column twice"),
        (("queue",), ("queue",), "leaves no column"),
    ],
)
def test_columns_by_which_a_table_cannot_be_partitioned_are_refused(columns, partition_by, problem):
    with pytest.raises(BadOption, match=problem):
        pipeline.require_partitions(columns, partition_by)


# Beginning.


def publish_batch(job: Beginning, number: int, start: Any = None) -> Any:
    """Bring what waits in the queues into the table, as a driver does that dies then."""
    ready = make_ready(job)
    reader = RangeReader(job.options)
    begin = start or reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(begin, reader.getDefaultReadLimit())))
    parts = reader.partitions(begin, end)
    table = job.output.open()
    copying = Copying(job.options, str(table.staging), ("queue",), ready.columns)
    told = [rows for part in parts for rows in copy_ranges(copying, reader.read(part))]
    files = [Staged(**row) for rows in told for row in rows.to_pylist()]
    before = json.dumps(start) if start else ""
    table.publish(Mark("one", number, json.dumps(end), job.options.reader, before), files)
    reader.stop()
    return end


def texts_from(job: Beginning, given: dict[str, str]) -> list[str]:
    """What the first batch of a new checkpoint has."""
    starting = make_ready(job).starting_offsets
    wish = {"startingOffsets": starting} if starting else {}
    reader = StreamReader(read_source_options(given | wish))
    begin = reader.initialOffset()
    end = reader.latestOffset(begin, reader.getDefaultReadLimit())
    rows = [each for part in reader.partitions(begin, end) for each in reader.read(part)]
    reader.stop()
    return [text for each in rows for text in each.column("text").to_pylist()]


@formats
@pytest.mark.parametrize("batches", [1, 2])
def test_what_the_table_has_and_somebody_has_released_is_not_read_again(
    alpha, manager, tmp_path, format, batches
):
    queue = manager.create_queue(f"private$\\released-{format}-{batches}")
    given = {"qm": alpha.qm, "queue": queue.name, "columns": "queue,text", "reader": "ingest"}
    place = Output(format, str(tmp_path / "table"), ("queue",))
    options = read_source_options(given)
    job = Beginning(options, place, str(tmp_path / "checkpoint"), arrow_schema(options.columns))
    end = None
    for number in range(batches):
        queue.send(f"order {number}", recoverable=True)
        end = publish_batch(job, number, end)
    queue.send("new order", recoverable=True)
    manager.release(queue.name)
    assert texts_from(job, given) == ["new order"]
    assert queue.count() == 2, "the table has what was released, and others may have it, too"


def test_what_nobody_has_read_is_not_passed_over_for_what_was_released(alpha, manager, tmp_path):
    queue = manager.create_queue("private$\\released-behind")
    given = {"qm": alpha.qm, "queue": queue.name, "columns": "queue,text", "reader": "ingest"}
    late = read_source_options(given | {"startingOffsets": "latest"})
    place = Output("parquet", str(tmp_path / "table"), ("queue",))
    job = Beginning(late, place, str(tmp_path / "checkpoint"), arrow_schema(late.columns))
    queue.send("an old order", recoverable=True)
    reader = RangeReader(late)
    latest = reader.initialOffset()
    queue.send("order 0", recoverable=True)
    publish_batch(job, 0, latest)
    reader.stop()
    manager.release(queue.name)
    early = msgspec.structs.replace(job, options=read_source_options(given))
    with pytest.raises(TableProblem, match=r"arrival numbers \d+ to \d+, which were released"):
        make_ready(early)
    assert make_ready(job).starting_offsets == ""
    assert queue.count() == 2


@formats
def test_a_new_checkpoint_goes_on_behind_what_the_table_has(alpha, manager, tmp_path, format):
    queue = manager.create_queue(f"private$\\behind-{format}")
    queue.send_many(["order 0", "order 1"], recoverable=True)
    given = {"qm": alpha.qm, "queue": queue.name, "columns": "queue,arrived_time,text"}
    options = read_source_options(given | {"reader": "ingest"})
    place = Output(format, str(tmp_path / "table"), ("queue",))
    schema = arrow_schema(options.columns)
    job = Beginning(options, place, str(tmp_path / "checkpoint"), schema)
    publish_batch(job, 0)
    # Spark was killed before it could say that the batch is done, and its checkpoint is gone.
    queue.send("order 2", recoverable=True)
    assert queue.count() == 3
    make_ready(msgspec.structs.replace(job, options=read_source_options(given)))
    assert queue.count() == 3, "another reader has reserved nothing here"
    assert make_ready(job).starting_offsets == ""
    assert queue.count() == 1
    browsing = read_source_options(given | {"mode": "browse"})
    with pytest.raises(BadOption, match="was written with another one"):
        make_ready(msgspec.structs.replace(job, options=browsing))


def test_a_checkpoint_that_was_followed_by_one_without_a_batch_has_nothing_to_say(
    alpha, manager, tmp_path
):
    queue = manager.create_queue("private$\\followed")
    given = {"qm": alpha.qm, "queue": queue.name, "columns": "queue,text", "reader": "ingest"}
    options = read_source_options(given)
    place = Output("parquet", str(tmp_path / "table"), ("queue",))
    job = Beginning(options, place, str(tmp_path / "checkpoint"), arrow_schema(options.columns))
    queue.send("order 0", recoverable=True)
    publish_batch(job, 0)
    # Its checkpoint is gone. The next one has planned a batch, and is gone before that counts.
    make_ready(job)
    queue.send("order 1", recoverable=True)
    follower = RangeReader(options)
    follower.latestOffset(follower.initialOffset(), follower.getDefaultReadLimit())
    follower.stop()
    assert texts_from(job, given) == ["order 1"]


# The whole.


def run(spark: Any, options: dict[str, str], output: Path, **more: Any) -> Any:
    query = pipeline.ingest(spark, options, str(output), **more)
    assert query.awaitTermination(100)
    return query


@pytest.mark.timeout(300)
@formats
def test_other_programs_read_what_was_sent(spark, alpha, manager, tmp_path, format):
    queue = manager.create_queue(f"private$\\foreign-{format}")
    texts = [f"order {number}" for number in range(5)]
    queue.send_many(texts[:3], recoverable=True)
    options = {"qm": alpha.qm, "queue": queue.name}
    output = tmp_path / "table"
    run(spark, options, output, format=format)
    # With a new checkpoint a table goes on where it ended.
    shutil.rmtree(f"{output}.checkpoint")
    queue.send_many(texts[3:], recoverable=True)
    run(spark, options, output, format=format)
    found = read_table(output, format)
    assert sorted(found["text"].to_pylist()) == texts
    assert set(found["queue"].to_pylist()) == {queue.name}
    assert set(found["date"].to_pylist()) == {datetime.now(UTC).date()}  # noqa: TID251
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.groupby("queue").size().to_dict() == {queue.name: 5}
    if format == "parquet":
        assert sorted(pandas.read_parquet(output)["text"]) == texts
        assert spark.read.parquet(str(output)).where("date is not null").count() == 5
    browsing = {**options, "mode": "browse"}
    with pytest.raises(BadOption, match="was written with another one"):
        run(spark, browsing, output, format=format, checkpoint=str(tmp_path / "another"))
    shutil.rmtree(output)
    queue.send("lost?", recoverable=True)
    with pytest.raises(StreamingQueryException) as failed:
        run(spark, options, output, format=format)
    assert f"{output} has no batch 0" in (sentence_in(str(failed.value)) or "")
    assert queue.count() == 1


@pytest.mark.timeout(300)
def test_a_table_that_spark_has_begun_is_continued_by_spark(
    spark, alpha, manager, tmp_path, monkeypatch
):
    queue = manager.create_queue("private$\\begun")
    queue.send("order 0", recoverable=True)
    options = {"qm": alpha.qm, "queue": queue.name, "mode": "browse"}
    output = tmp_path / "begun"
    with monkeypatch.context() as patched:
        # As with a table at an URL.
        patched.setattr(pipeline, "path_here", lambda *_: None)
        run(spark, options, output)
    assert (output / "_spark_metadata").is_dir()
    queue.send("order 1", recoverable=True)
    query = run(spark, options, output)
    assert [r.message_count for r in pipeline.batch_reports(query, options, 0)] == [1]
    texts = [row["text"] for row in spark.read.parquet(str(output)).collect()]
    assert sorted(texts) == ["order 0", "order 1"]
    with pytest.raises(BadOption, match=r"has batches that .* does not know"):
        pipeline.ingest(spark, options, str(output), checkpoint=str(tmp_path / "another"))
