"""The guides to Spark are true: their code runs, and the page of options is that of the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

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

import openmsmq as mq
from openmsmq.client.blocking import QueueManager
from openmsmq.model import limits
from openmsmq.runtime.threaded import start_server
from openmsmq.spark.errors import BadOption
from openmsmq.spark.messages_from_rows import chosen_columns
from openmsmq.spark.options import (
    PARTITIONS_MAX_COUNT,
    PROPERTIES,
    SINK_OPTIONS,
    SOURCE_OPTIONS,
    read_sink_options,
    read_source_options,
)
from openmsmq.spark.reading import RANGE_MIN_SPAN
from openmsmq.spark.sink import PART_MAX_BYTES, PART_MAX_COUNT
from openmsmq.storage.memory import MemoryStore

DOCS = Path(__file__).parents[2] / "docs"
KINDS: dict[str, tuple[type[DataType], ...]] = {
    "binary": (BinaryType,),
    "boolean": (BooleanType,),
    "string": (StringType,),
    "whole number": (ByteType, ShortType, IntegerType, LongType),
}
EVERY_KIND = {kind for kinds in KINDS.values() for kind in kinds}
SERVERS = {"127.0.0.2": "ALPHA", "127.0.0.3": "BETA"}


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def sentences(name: str) -> str:
    """Give a document without its line breaks, so that words are found wherever these are."""
    return " ".join(page(name).split())


def table(title: str) -> dict[str, list[str]]:
    """Give the rows below a title of the page of options, by the option in their first cell."""
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
        assert f"{RANGE_MIN_SPAN:,}" in text
    assert f"{PART_MAX_COUNT:,} messages or {PART_MAX_BYTES >> 20} MiB" in cluster
    assert f"{PARTITIONS_MAX_COUNT:,}" in options
    assert f"up to {limits.READER_NAME_MAX_BYTES} bytes" in options
    assert f"{limits.QUERIES_MAX_COUNT:,} queries" in remembered
    assert f"{limits.QUERY_IDLE_S // 86400} days" in remembered
    assert f"{limits.STAGED_MAX_BYTES >> 30} GiB" in remembered
    assert limits.STAGED_MAX_AGE_S == 7 * 86400
    assert "a week later" in remembered


# The code of the guides.


def nothing(_: QueueManager) -> None:
    """The guide makes what it needs."""


def what_windows_sent(manager: QueueManager) -> None:
    """Make the copies of which the guide to migration speaks; the new side lacks one of them."""
    there = manager.create_queue(r"private$\windows-orders")
    here = manager.create_queue(r"private$\orders", journaling=True)
    for number, customer in ((1, "Ann"), (2, "Bob"), (3, "Eve")):
        body = f"<Order><Number>{number}</Number><Customer>{customer}</Customer></Order>".encode()
        there.send(body, body_type=0, label="order")
        if number != 3:
            here.send(body, body_type=0, label="order")
    for queue in (there, here):
        queue.send(4711)
        queue.send(b"\0\1\0\0\0\xff\xff\xff\xff\1", body_type=768)
    here.receive_many(10, timeout=0)
    here.send("too late", journal_on_failure=True)
    here.purge()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("guide", "prepare", "wanted"),
    [
        (
            "spark-batch.md",
            nothing,
            [
                r"|private$\orders|1             |order|",
                "| tea|  15|",
                r"|BETA         |private$\invoices|1    |",
                "received so far: 1",
                "chosen: 2",
                '4 answers, such as {"ITEM": "TEA", "CUPS": 2}',
                "after two attempts: 8",
            ],
        ),
        (
            "spark-streaming.md",
            nothing,
            [
                "in the table: 3",
                "in the queue: 0",
                "and has 5 messages",
                "['done: order 9', 'done: order 10', 'done: order 11']",
            ],
        ),
        (
            "migrate-from-windows.md",
            what_windows_sent,
            [
                "kept: 5",
                "|     3|     Eve|",
                "| 4711|",
                "|order|              0|      1|",
                r"|DIRECT=OS:ALPHA\PRIVATE$\orders|NACK_QUEUE_PURGED |1    |",
            ],
        ),
    ],
)
def test_a_guide_runs(
    guide: str,
    prepare: Callable[[QueueManager], None],
    wanted: list[str],
    spark: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    snippets = re.findall(r"```python\n(.*?)```", page(f"guides/{guide}"), re.DOTALL)
    assert snippets
    # Spark takes functions apart by the name of their module.
    names: dict[str, Any] = {"__name__": "__main__"}
    with ExitStack() as stack:
        places = {'"tables/': f'"{tmp_path}/tables/', '"checkpoints/': f'"{tmp_path}/checkpoints/'}
        for address, name in SERVERS.items():
            server = start_server(str(tmp_path), name=name, store=MemoryStore(), api_socket="none")
            stack.enter_context(server)
            places[address] = f"{server.host}:{server.port}"
        with mq.connect(places["127.0.0.3"]) as beta:
            beta.create_queue(r"private$\invoices").send("invoice 1")
        with mq.connect(places["127.0.0.2"]) as alpha:
            prepare(alpha)
        for snippet in snippets:
            code = snippet
            for text, place in places.items():
                code = code.replace(text, place)
            exec(compile(code, guide, "exec", dont_inherit=True), names)
        if "manager" in names:
            names["manager"].close()
    assert names["spark"] is spark
    printed = capsys.readouterr().out
    assert [text for text in wanted if text not in printed] == []
