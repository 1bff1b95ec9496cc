"""The pipeline `ingest`: queues become a table, each message in exactly one row."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from openmsmq.cli.app import app
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.errors import BadOption
from openmsmq.spark.pipelines import ingest as pipeline
from openmsmq.spark.pipelines.bodies import document_text, with_body_columns
from openmsmq.spark.pipelines.ingest.by_spark import numbers_above
from openmsmq.spark.pipelines.ingest.progress import behind_count
from openmsmq.spark.pipelines.ingest.schemas import from_json_schema, read_schema
from tests.runtime.computers import PROGRAM, Computer, environment

ADDRESS = "127.0.88.1"
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "utf-16")


# Bodies.

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).filter(lambda value: isinstance(value, list | dict))


@given(documents, st.sampled_from(ENCODINGS), st.booleans())
def test_a_document_is_found_in_bytes_whatever_its_encoding(value, encoding, terminated):
    text = json.dumps(value, ensure_ascii=False).encode(encoding, "replace")
    if terminated:
        text += "\0".encode(encoding.removesuffix("-sig")[:9])[-2 if "16" in encoding else -1 :]
    found = document_text(text)
    assert found is not None
    assert json.loads(found) == json.loads(text.decode(encoding).rstrip("\0"))


@given(st.binary())
def test_bytes_that_are_no_document_give_none_or_a_text_that_begins_like_one(body):
    found = document_text(body)
    assert found is None or found.lstrip()[0] in "{[<"


@pytest.mark.timeout(300)
def test_bodies_become_columns_and_those_that_do_not_parse_say_why(spark):
    rows = {
        "json text": ('{"id": 1, "total": 2.5}', None),
        "json with more": ('{"id": 2, "total": 1, "more": {}}', None),
        "json bytes": (None, '\ufeff{"id": 3}'.encode()),
        "json utf-16": (None, '{"id": 4}'.encode("utf-16-le")),
        "xml text": ('<?xml version="1.0"?><order><id>5</id><total>1.5</total></order>', None),
        "xml utf-16": (None, "\ufeff<order><id>6</id></order>".encode("utf-16-be")),
        "wrong type": ('{"id": "x"}', None),
        "cut off": ('{"id": 7', None),
        "cut off xml": ("<order><id>8</id>", None),
        "prose": ("hello", None),
        "bytes": (None, b"\xff\x00\xd8\x00"),
        "empty": ("", b""),
        "secret": (None, b"{}"),
        "undecoded": (None, b"{}"),
    }
    messages = spark.createDataFrame(
        [
            (
                name,
                text,
                bytearray(text.encode() if body is None else body),
                name == "secret",
                "no packet" if name == "undecoded" else None,
            )
            for name, (text, body) in rows.items()
        ],
        "name string, text string, body binary, encrypted boolean, error string",
    )
    schema = read_schema("id bigint, total double", "json-schema")
    parsed = with_body_columns(messages, json_schema=schema, xml_schema=schema)
    assert parsed.columns == [*messages.columns, "data", "data_error"]
    found = {row["name"]: row for row in parsed.collect()}
    assert {name: tuple(row["data"]) for name, row in found.items() if row["data"]} == {
        "json text": (1, 2.5),
        "json with more": (2, 1.0),
        "json bytes": (3, None),
        "json utf-16": (4, None),
        "xml text": (5, 1.5),
        "xml utf-16": (6, None),
    }
    assert {name: row["data_error"] for name, row in found.items() if not row["data"]} == {
        "wrong type": "the body is not JSON of this schema",
        "cut off": "the body is not JSON of this schema",
        "cut off xml": "the body is not XML of this schema",
        "prose": "the body is not JSON of this schema",
        "bytes": "the body is not text",
        "empty": "the body is empty",
        "secret": "the body is encrypted",
        "undecoded": "the message cannot be decoded",
    }
    assert not any(row["data_error"] for row in found.values() if row["data"])
    other = read_schema("id string", "xml-schema")
    both = with_body_columns(messages, json_schema=schema, xml_schema=other)
    assert both.columns[-3:] == ["data_json", "data_xml", "data_error"]
    with pytest.raises(BadOption, match="leaves out body"):
        with_body_columns(messages.drop("body"), json_schema=schema)


# Schemas.


def test_a_json_schema_says_the_names_and_types_of_fields():
    schema = {
        "$defs": {"line": {"properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}}},
        "type": "object",
        "properties": {
            "id": {"type": ["null", "integer"]},
            "total": {"type": "number"},
            "paid": {"type": "boolean"},
            "at": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            "anything": {"oneOf": [{"type": "string"}, {"type": "object"}]},
        },
    }
    assert from_json_schema(schema).simpleString() == (
        "struct<id:bigint,total:double,paid:boolean,at:timestamp,day:date,"
        "lines:array<struct<sku:string,n:bigint>>,tags:map<string,string>,anything:string>"
    )


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string"}, "no object"),
        ({"properties": {"child": {"$ref": "#"}}}, "contains itself"),
        ({"properties": {"a": {"$ref": "other.json#/a"}}}, "another file"),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}}, "not there"),
    ],
)
def test_a_json_schema_that_cannot_be_a_table_is_refused(schema, problem):
    with pytest.raises(ValueError, match=problem):
        from_json_schema(schema)


@pytest.mark.usefixtures("spark")
def test_a_schema_is_read_from_ddl_or_from_a_file(tmp_path):
    expected = "struct<id:bigint,total:double>"
    ddl, of_spark, of_json = (tmp_path / name for name in ("a.ddl", "b.json", "c.json"))
    ddl.write_text("id bigint,\n total double\n")
    of_spark.write_text(read_schema(str(ddl), "json-schema").json())
    of_json.write_text('{"properties": {"id": {"type": "integer"}, "total": {"type": "number"}}}')
    for text in ("id bigint, total double", str(ddl), str(of_spark), str(of_json)):
        assert read_schema(text, "json-schema").simpleString() == expected
    of_json.write_text("{")
    for text, problem in (
        ("orders.ddl", "is no file and no DDL"),
        ("id bigint total", "option json-schema: "),
        (str(of_json), "neither a Spark schema nor a JSON Schema"),
    ):
        with pytest.raises(BadOption, match=problem):
            read_schema(text, "json-schema")


# Formats and progress.


def test_a_format_that_is_not_installed_is_refused_with_what_to_install(monkeypatch):
    missing = {"deltalake", "pyiceberg"}
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in missing else find(name)
    )
    for format, problem in (
        ("delta", r"delta needs the package deltalake: pip install 'openmsmq\[delta\]'"),
        ("iceberg", r"iceberg needs the package pyiceberg: pip install 'openmsmq\[iceberg\]'"),
        ("csv", "'csv' is not one of parquet, delta, iceberg"),
    ):
        with pytest.raises(BadOption, match=problem):
            pipeline.require_format(format)
    pipeline.require_format("parquet")


def test_the_lag_is_the_lower_of_what_waits_and_of_the_numbers_not_read():
    end = {"a": {"next": 10}, "b": {"next": 5}}
    latest = {"a": {"next": 30, "waiting": 12}, "b": {"next": 5, "waiting": 1}}
    assert behind_count(end, latest, 0) == 13
    assert behind_count(end, latest, 10) == 3
    assert behind_count(latest, latest, 0) == 0
    assert behind_count(end, latest, 20) == 0
    assert behind_count(end, {}, 5) == 0


@given(st.integers(-1, 2000), st.integers(0, 20_000), st.sampled_from(["", ".compact"]))
def test_a_pattern_finds_the_batches_behind_a_number(number, batch, suffix):
    patterns = numbers_above(number)
    assert any(fnmatch(f"{batch}{suffix}", each) for each in patterns) == (batch > number)


# The table.


def orders(manager: QueueManager, name: str) -> Any:
    return manager.create_queue(f"private$\\{name}")


@pytest.mark.timeout(300)
def test_each_run_adds_what_came_since_and_the_queues_are_empty_after(
    spark, alpha, manager, tmp_path
):
    one, two = orders(manager, "one"), orders(manager, "two")
    one.send_many([f'{{"id": {number}}}' for number in range(7)], recoverable=True)
    two.send('{"id": 100}'.encode("utf-16-le"), recoverable=True)
    two.send("no document", recoverable=True)
    output = str(tmp_path / "orders")
    options = {"qm": alpha.qm, "queue": f"{one.name},{two.name}", "maxMessagesPerTrigger": "8"}

    def run():
        query = pipeline.ingest(
            spark, options, output, json_schema=read_schema("id bigint", "json-schema")
        )
        assert query.awaitTermination(60)
        return query

    reports = pipeline.batch_reports(run(), options, -1)
    assert sum(report.message_count for report in reports) == 9
    assert len(reports) == 2
    assert reports[-1].behind_count == 0
    assert (one.count(), two.count()) == (0, 0)
    one.send('{"id": 7}', recoverable=True)
    later = pipeline.batch_reports(run(), options, 1)
    assert [report.message_count for report in later] == [1]
    table = spark.read.parquet(output)
    found = {(row["queue"], row["id"]) for row in table.select("queue", "data.id").collect()}
    assert table.count() == 10
    assert found == {
        *((one.name, number) for number in range(8)),
        (two.name, 100),
        (two.name, None),
    }
    assert table.where("data_error is not null").count() == 1
    (partition, *_) = Path(output).glob("batch=*/queue=*one")
    assert [path.name[:7] for path in partition.glob("date=*")] == ["date=20"]
    files = list(Path(output).rglob("*.parquet"))
    added = [report.files for report in (*reports, *later)]
    assert sum(each.count for each in added) == len(files)
    assert sum(each.bytes for each in added) == sum(path.stat().st_size for path in files)
    counted = pipeline.files_added(spark, output, datetime.fromtimestamp(0, UTC))
    assert counted.count == len(files)
    assert pipeline.files_added(spark, output, datetime(2200, 1, 1, tzinfo=UTC)).count == 0
    assert not list(Path(output).glob("*checkpoint*"))
    with pytest.raises(BadOption, match="colour is no column"):
        pipeline.ingest(spark, options, output, partition_by=("colour",))


# The command.


class Command:
    """`openmsmq pipeline ingest` as a process, with Spark's own processes around it."""

    def __init__(self, alpha: Computer, *options: str) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, "--qm", alpha.qm, "pipeline", "ingest", "--master", "local[1]", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            start_new_session=True,
        )
        assert self.process.stderr is not None
        self.errors = self.process.stderr

    def wait_for_batches(self, message_count: int) -> None:
        """Read its reports until they tell of so many messages."""
        lines = []
        for line in self.errors:
            lines.append(line)
            if line.startswith("batch "):
                message_count -= int(line.split()[2])
                if message_count <= 0:
                    return
        raise AssertionError("".join(lines))

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        """End it at once, and Spark with it, if it is still there."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def interrupt(self) -> str:
        """Press Ctrl-C; give what it prints then."""
        os.killpg(self.process.pid, signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        assert "Traceback" not in err
        return out


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_command_that_is_killed_goes_on_where_it_was_and_ends_with_ctrl_c(
    spark, alpha, manager, tmp_path
):
    queue = orders(manager, "followed")
    queue.send_many([f"order {number}" for number in range(60)], recoverable=True)
    output = str(tmp_path / "followed")
    options = ["--queue", queue.name, "--output", output, "--follow", "--every", "0", "--json"]
    with Command(alpha, *options, "--max-messages", "5") as first:
        first.wait_for_batches(5)
    written_count = spark.read.schema("text string").parquet(output).count()
    with Command(alpha, *options) as second:
        queue.send_many([f"order {number}" for number in range(60, 70)], recoverable=True)
        second.wait_for_batches(70 - written_count)
        summary = json.loads(second.interrupt())
    texts = [row["text"] for row in spark.read.parquet(output).collect()]
    assert sorted(texts) == sorted(f"order {number}" for number in range(70))
    assert summary["output"] == output
    assert summary["messages"] > 0
    assert summary["files"] > 0


def test_options_that_make_no_sense_are_refused_before_spark_starts():
    for options, problem in (
        (["--every", "5"], "--every needs --follow"),
        (["--mode", "eat"], "option mode: 'eat' is not one of consume, browse"),
        (["--start", "soon"], "option startingTime: 'soon' is no time"),
        (["--table", "a.b"], "option catalog: belongs to the format iceberg"),
        (["--format", "iceberg", "--table", "a.b"], "give both"),
        (["--format", "csv"], "option format: 'csv' is not one of parquet, delta, iceberg"),
    ):
        command = ["pipeline", "ingest", "--queue", "q", "--output", "t", *options]
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 2
        assert problem in result.stderr
