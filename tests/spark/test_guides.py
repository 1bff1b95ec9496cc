"""The guides to Spark are true: their code runs, and the page of options is that of the code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from openmsmq.model import limits
from openmsmq.spark.errors import BadOption
from openmsmq.spark.sink.messages_from_rows import chosen_columns
from openmsmq.spark.sink.options import PROPERTIES, SINK_OPTIONS, read_sink_options
from openmsmq.spark.sink.parts import PART_MAX_BYTES, PART_MAX_COUNT, QUEUES_MAX_COUNT
from openmsmq.spark.source.options import PARTITIONS_MAX_COUNT, SOURCE_OPTIONS, read_source_options
from openmsmq.spark.source.queue_range import TASK_MIN_BYTES, TASK_MIN_COUNT

DOCS = Path(__file__).parents[2] / "docs"
KINDS: dict[str, tuple[type[DataType], ...]] = {
    "binary": (BinaryType,),
    "boolean": (BooleanType,),
    "string": (StringType,),
    "whole number": (ByteType, ShortType, IntegerType, LongType),
}
EVERY_KIND = {kind for kinds in KINDS.values() for kind in kinds}


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def sentences(name: str) -> str:
    """Return a document without its line breaks, so that words are found wherever these are."""
    return " ".join(page(name).split())


def table(title: str) -> dict[str, list[str]]:
    """Return the rows below a title of the page of options, by the option in their first cell."""
    part = page("reference/spark-options.md").split(f" {title}\n")[1].split("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| `")]
    return {cells[0].strip("`"): cells[1:] for cells in rows}


def test_the_page_of_options_has_those_of_the_code_and_no_others() -> None:
    written = [*table("Writing"), *table("Columns for the properties of messages")]

    assert list(table("Reading")) == list(SOURCE_OPTIONS)
    assert sorted(written) == sorted(SINK_OPTIONS)
    assert written[-len(PROPERTIES) :] == list(PROPERTIES)


@pytest.mark.parametrize(
    ("title", "read"), [("Reading", read_source_options), ("Writing", read_sink_options)]
)
def test_to_give_an_option_its_default_on_the_page_changes_nothing(
    title: str, read: Callable[[dict[str, str]], object]
) -> None:
    given = {name: cells[0] for name, cells in table(title).items()}
    defaults = {name: text.strip("`") for name, text in given.items() if text.startswith("`")}
    needed = {"queue": r"private$\orders"}

    assert len(defaults) >= 3
    for name, value in defaults.items():
        assert read({**needed, name: value}) == read(needed), name


def test_columns_have_the_types_that_the_page_says() -> None:
    for name, (kinds, _) in table("Columns for the properties of messages").items():
        good = {kind for text in kinds.split(", ") for kind in KINDS[text]}
        body = StructType() if name == "body" else StructType().add("body", BinaryType())
        for kind in EVERY_KIND:
            schema = StructType([*body.fields]).add(name, kind())
            if kind in good:
                assert chosen_columns(schema, {})[name] == name
            else:
                with pytest.raises(BadOption, match=f"option {name}"):
                    chosen_columns(schema, {})


def test_the_numbers_in_the_guides_are_those_of_the_code() -> None:
    cluster = sentences("guides/spark-cluster.md")
    remembered = sentences("concepts/exactly-once-with-spark.md")
    options = sentences("reference/spark-options.md")

    for text in (sentences("guides/spark-batch.md"), cluster, options):
        assert f"{TASK_MIN_COUNT:,} messages or {TASK_MIN_BYTES >> 20} MiB" in text
    assert f"{PART_MAX_COUNT:,} messages or {PART_MAX_BYTES >> 20} MiB" in cluster
    assert f"{PARTITIONS_MAX_COUNT:,}" in options
    assert f"up to {limits.READER_NAME_MAX_BYTES} bytes" in options
    for text in (options, sentences("guides/spark-streaming.md")):
        assert f"up to {QUEUES_MAX_COUNT:,} queues" in text
    assert f"{limits.QUERIES_MAX_COUNT:,} queries" in remembered
    assert f"or {limits.READERS_MAX_COUNT} other readers" in remembered
    assert f"the last {limits.EPOCHS_MAX_COUNT} starts" in remembered
    assert f"{limits.QUERY_IDLE_S // 86400} days" in remembered
    assert limits.QUERY_SINGLE_IDLE_S == 3600
    assert "at least one hour" in remembered
    assert f"{limits.STAGED_MAX_BYTES >> 30} GiB" in remembered
    assert limits.STAGED_MAX_AGE_S == 7 * 86400
    assert "a week later" in remembered
