"""Every option is read as its text says, and a bad one is refused by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.spark.errors import BadOption
from openmsmq.spark.options import Place
from openmsmq.spark.schema import NAMES
from openmsmq.spark.sink.options import PROPERTIES, SINK_OPTIONS, SinkOptions, read_sink_options
from openmsmq.spark.source.options import (
    SOURCE_OPTIONS,
    Mode,
    OnError,
    SourceOptions,
    UnreadBatches,
    read_source_options,
)

HERE = ("127.0.0.1",)
QUEUE = r"private$\orders"


def source(**options: str) -> SourceOptions:
    return read_source_options({"queue": QUEUE} | options)


def sink(**options: str) -> SinkOptions:
    return read_sink_options({"queue": QUEUE} | options)


def test_without_options_a_queue_of_this_computer_is_read_as_the_documents_say() -> None:
    assert source() == SourceOptions(
        place=Place(HERE, "", "", False, "", 60.0),
        queues=(QUEUE,),
        columns=NAMES,
        mode=Mode.CONSUME,
        reader="spark",
        starting_offsets="earliest",
        starting_time_s=None,
        max_messages=0,
        max_bytes=0,
        partitions=8,
        push_filters=False,
        on_error=OnError.ROW,
        poison_queue="",
        fail_on_data_loss=True,
    )
    assert sink() == SinkOptions(Place(HERE, "", "", False, "", 60.0), QUEUE, "", {})


GOOD: list[tuple[dict[str, str], str, object]] = [
    ({"queue": r" private$\a , *,"}, "queues", (r"private$\a", "*")),
    ({"qm": "a, [::1]:1802,/run/s"}, "place.addresses", ("a", "[::1]:1802", "/run/s")),
    ({"token": "t"}, "place.token", "t"),
    ({"tokenFile": "/run/token"}, "place.token_file", "/run/token"),
    ({"tls": "TRUE"}, "place.tls", True),
    ({"ca": "/run/ca.pem"}, "place.ca", "/run/ca.pem"),
    ({"certificate": "/run/me.pem", "tls": "true"}, "place.certificate", "/run/me.pem"),
    ({"certificate": "c", "key": "/run/me.key", "ca": "a"}, "place.key", "/run/me.key"),
    ({"reconnectWithin": "0.5"}, "place.reconnect_within_s", 0.5),
    ({"reconnectWithin": "0"}, "place.reconnect_within_s", 0.0),
    ({"columns": "label, body"}, "columns", ("label", "body")),
    ({"columns": "*"}, "columns", NAMES),
    ({"columns": "*,headers"}, "columns", (*NAMES, "headers")),
    ({"numPartitions": "10000"}, "partitions", 10_000),
    ({"onError": "Fail"}, "on_error", OnError.FAIL),
    ({"onError": "skip"}, "on_error", OnError.SKIP),
    ({"onError": "queue", "poisonQueue": r"private$\bad"}, "poison_queue", r"private$\bad"),
    ({"pushFilters": "true"}, "push_filters", True),
    ({"mode": "browse"}, "mode", Mode.BROWSE),
    ({"reader": "nightly"}, "reader", "nightly"),
    ({"reader": " "}, "reader", "spark"),
    ({"startingOffsets": "Latest"}, "starting_offsets", "latest"),
    ({"startingTime": "1970-01-01T00:01:00Z"}, "starting_time_s", 60),
    ({"startingTime": "1970-01-01T02:01:00+02:00"}, "starting_time_s", 60),
    ({"startingTime": "1970-01-02"}, "starting_time_s", 86_400),
    ({"startingTime": "1901-01-01"}, "starting_time_s", 0),
    ({"maxMessagesPerTrigger": "7"}, "max_messages", 7),
    ({"maxBytesPerTrigger": "1048576"}, "max_bytes", 1 << 20),
    ({"failOnDataLoss": "false"}, "fail_on_data_loss", False),
    ({"unreadBatches": "drop"}, "unread_batches", UnreadBatches.DROP),
    ({"startingOffsets": '{"a": 7, "b*": "latest", "c": -2}'}, "starting_offsets",
     (("a", 7), ("b*", "latest"), ("c", "earliest"))),
    ({"endingOffsets": '{"a": 7, "b": -1}'}, "ending_offsets", (("a", 7), ("b", "latest"))),
    ({"minMessagesPerTrigger": "100"}, "min_messages", 100),
    ({"maxTriggerDelay": "90"}, "max_trigger_delay_s", 90.0),
    ({"maxTriggerDelay": "500ms"}, "max_trigger_delay_s", 0.5),
    ({"maxTriggerDelay": "1.5 h"}, "max_trigger_delay_s", 5400.0),
]  # fmt: skip


@pytest.mark.parametrize(("options", "path", "value"), GOOD)
def test_a_good_value_is_taken_whatever_the_case_of_the_name(
    options: dict[str, str], path: str, value: object
) -> None:
    for change in (str, str.lower, str.upper):
        given_options = {change(name): text for name, text in options.items()}
        default = {} if "queue" in options else {"queue": QUEUE}
        found: Any = read_source_options(default | given_options)
        for part in path.split("."):
            found = getattr(found, part)
        assert found == value


BAD = [
    ("queue", ""),
    ("queue", " , "),
    ("qm", "host:port"),
    ("qm", "ok,[::1"),
    ("qm", ":1802"),
    ("tls", "yes"),
    ("certificate", "without-tls.pem"),
    ("key", "without-certificate.pem"),
    ("reconnectWithin", "soon"),
    ("reconnectWithin", "-1"),
    ("reconnectWithin", "nan"),
    ("reconnectWithin", "inf"),
    ("columns", "label,colour"),
    ("columns", "label,label"),
    ("columns", "*,label"),
    ("numPartitions", "0"),
    ("numPartitions", "10001"),
    ("numPartitions", "1.5"),
    ("onError", "explode"),
    ("poisonQueue", r"private$\bad"),
    ("pushFilters", "1"),
    ("mode", "steal"),
    ("startingOffsets", "middle"),
    ("startingTime", "yesterday"),
    ("maxMessagesPerTrigger", "-5"),
    ("maxMessagesPerTrigger", "٣"),
    ("maxBytesPerTrigger", "1" * 5000),
    ("failOnDataLoss", "maybe"),
    ("unreadBatches", "read"),
    ("startingOffsets", '{"a": 7.5}'),
    ("startingOffsets", '{"a": true}'),
    ("startingOffsets", '{"a": -3}'),
    ("startingOffsets", "[7]"),
    ("endingOffsets", "earliest"),
    ("endingOffsets", '{"a": "earliest"}'),
    ("minMessagesPerTrigger", "0"),
    ("maxTriggerDelay", "soon"),
    ("maxTriggerDelay", "-1"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_by_the_name_of_its_option(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=f"^option {name}: "):
        source(**{name: value})


def test_each_option_of_the_source_has_a_good_value_here() -> None:
    assert {name for options, _, _ in GOOD for name in options} == set(SOURCE_OPTIONS)


def test_options_that_belong_together_are_refused_apart() -> None:
    with pytest.raises(BadOption, match="option poisonQueue: belongs to onError=queue"):
        source(onError="queue")
    with pytest.raises(BadOption, match="option startingTime: contradicts startingOffsets"):
        source(startingTime="2026-01-31", startingOffsets="latest")


@given(st.text(min_size=1, max_size=20))
def test_an_unknown_option_is_refused_and_the_known_ones_are_listed(name: str) -> None:
    sparks_own = {"checkpointlocation", "path", "queryname", "outputmode"}
    for read, known in (
        (read_source_options, SOURCE_OPTIONS),
        (read_sink_options, SINK_OPTIONS),
    ):
        if name.lower() in {each.lower() for each in known} | sparks_own:
            continue
        with pytest.raises(BadOption) as refused:
            read({"queue": QUEUE, name: "x"})
        assert str(refused.value).startswith(f"option {name}: is not known; there are qm, ")


def test_what_spark_puts_among_the_options_is_passed_over() -> None:
    assert source(checkpointLocation="/c", path="p", queryName="q", outputMode="Append") == source()


def test_the_sink_takes_columns_for_properties() -> None:
    columns = {name: f"column_of_{name}" for name in PROPERTIES}
    assert sink(**columns).columns == columns
    assert sink(label=" ").columns == {}
    assert sink(query="nightly").query == "nightly"


@pytest.mark.parametrize("batch", ["-1", "1.5", "x", "9" * 19, "9" * 5000])
def test_data_frames_of_a_series_are_numbered_from_zero(batch: str) -> None:
    assert [sink(query="q", batch=good).batch for good in ("0", "7", "")] == [0, 7, None]
    with pytest.raises(BadOption, match=r"option batch: .* is not a number from 0 to"):
        sink(query="q", batch=batch)
    with pytest.raises(BadOption, match="option batch: numbers what the option query names"):
        sink(batch="0")


def test_the_sink_sends_to_one_queue_through_one_queue_manager() -> None:
    with pytest.raises(BadOption, match="option queue: is missing"):
        read_sink_options({})
    with pytest.raises(BadOption, match="option qm: names several queue managers"):
        sink(qm="a,b")


def test_each_option_is_explained_in_one_sentence_for_the_guides() -> None:
    for text in (SOURCE_OPTIONS | SINK_OPTIONS).values():
        assert text.endswith(".")
        assert len(text) <= 100


def test_a_token_comes_from_its_file_where_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    place = source(tokenFile=str(file), token="other").place
    assert place.settings("a").token == "secret"
    file.unlink()
    with pytest.raises(BadOption, match=r"option tokenFile: .* cannot be read on this computer"):
        place.settings("a")


def test_a_file_of_authorities_means_tls() -> None:
    assert source(ca="/run/ca.pem").place.settings("a").tls == "/run/ca.pem"
    assert source(tls="true").place.settings("a").tls is True
    assert source().place.settings("a").tls is False
