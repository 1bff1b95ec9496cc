"""Columns become the properties of messages, or are refused before the first row comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
)

from openmsmq.client.messages.outgoing import LabelledBody, OutgoingMessage
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.limits import LABEL_MAX_CHARACTERS
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.schema import NAMES, arrow_schema, spark_schema
from openmsmq.spark.sink.messages_from_rows import (
    Outgoing,
    chosen_columns,
    column_from,
    messages_from,
)
from openmsmq.spark.sink.options import PROPERTIES
from openmsmq.spark.sink.parts import fitting

IDENTIFIER = MessageId(Guid(bytes(range(16))), 7)


def schema(**fields: DataType) -> StructType:
    found = StructType()
    for name, kind in fields.items():
        found = found.add(name, kind)
    return found


def test_columns_of_messages_give_the_properties_of_their_names() -> None:
    chosen = chosen_columns(spark_schema(tuple(set(NAMES) - {"queue"})), {})
    assert chosen == {name: name for name in PROPERTIES}


def test_the_queue_of_a_row_is_chosen_by_an_option_and_never_passed_over() -> None:
    unused = r"there is a column queue: .* option queueColumn to"
    with pytest.raises(QueueProblem, match=unused):
        chosen_columns(schema(body=StringType(), queue=StringType()), {})
    assert chosen_columns(spark_schema(), {"queue": "queue"})["queue"] == "queue"
    fields = schema(body=StringType(), queue=StringType(), target=StringType())
    assert chosen_columns(fields, {"queue": "target"}) == {"body": "body", "queue": "target"}
    # What is inserted into a table has all columns: there the rows decide.
    chosen = chosen_columns(spark_schema(), {})
    assert "queue" not in chosen
    rows = pa.Table.from_pylist([{"body": b"1"}, {"body": b"2"}], arrow_schema(NAMES))
    assert len(list(messages_from(rows.to_batches()[0], chosen))) == 2
    rows = pa.Table.from_pylist([{"body": b"1"}, {"queue": "elsewhere"}], arrow_schema(NAMES))
    with pytest.raises(QueueProblem, match=unused):
        list(messages_from(rows.to_batches()[0], chosen))
    for column, problem in (("nowhere", "there is no column nowhere"), ("tag", "column tag is")):
        with pytest.raises(BadOption, match=f"option queueColumn: {problem}"):
            chosen_columns(schema(body=StringType(), tag=LongType()), {"queue": column})


def test_an_option_names_the_column_of_a_property() -> None:
    fields = schema(value=StringType(), title=StringType(), label=StringType())
    chosen = chosen_columns(fields, {"body": "value", "label": "title"})
    assert chosen == {"body": "value", "label": "title"}


@pytest.mark.parametrize(
    ("fields", "wishes", "problem"),
    [
        ({"label": StringType()}, {}, "option body: no column gives the body; there are label"),
        ({"body": DoubleType()}, {}, "option body: column body is double; it takes binary or"),
        ({"body": StringType()}, {"label": "x"}, "option label: there is no column x; there are"),
        (
            {"body": StringType(), "priority": StringType()},
            {},
            "option priority: column priority is string; it takes tinyint or smallint or int or",
        ),
        ({"body": StringType(), "colour": StringType()}, {}, "columns colour: name the property"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    fields: dict[str, DataType], wishes: dict[str, str], problem: str
) -> None:
    with pytest.raises((BadOption, QueueProblem), match=problem):
        chosen_columns(schema(**fields), wishes)


KINDS = {
    "body": (StringType(), pa.string(), st.text()),
    "label": (StringType(), pa.string(), st.text(max_size=20)),
    "priority": (IntegerType(), pa.int32(), st.integers(0, 7)),
    "correlation_id": (BinaryType(), pa.binary(), st.binary(min_size=20, max_size=20)),
    "response_queue": (StringType(), pa.string(), st.just(r"private$\answers")),
    "application_tag": (LongType(), pa.int64(), st.integers(0, (1 << 32) - 1)),
    "extension": (BinaryType(), pa.binary(), st.binary(max_size=20)),
    "time_to_be_received_s": (LongType(), pa.int64(), st.integers(0, 1000)),
    "journal_on_failure": (BooleanType(), pa.bool_(), st.booleans()),
}
NAMES_OF_OPTIONS = {"time_to_be_received_s": "time_to_be_received_s"}
rows = st.fixed_dictionaries({name: st.none() | kind[2] for name, kind in KINDS.items()})


def _whole(one: Outgoing) -> OutgoingMessage:
    match one:
        case OutgoingMessage():
            return one
        case LabelledBody(body, label):
            return OutgoingMessage(body=body, label=label)
        case _:
            return OutgoingMessage(body=one)


@given(st.lists(rows, max_size=5))
def test_each_row_is_a_message_and_what_it_lacks_has_its_default(
    found: list[dict[str, Any]],
) -> None:
    chosen = chosen_columns(schema(**{name: kind[0] for name, kind in KINDS.items()}), {})
    arrow = pa.schema([pa.field(name, kind[1]) for name, kind in KINDS.items()])
    messages = list(messages_from(pa.RecordBatch.from_pylist(found, arrow), chosen))
    assert list(map(_whole, messages)) == [
        OutgoingMessage(
            **{
                NAMES_OF_OPTIONS.get(name, name): value
                for name, value in row.items()
                if value is not None
            }
        )
        for row in found
    ]


def test_a_correlation_may_be_written_as_messages_show_it() -> None:
    batch = pa.RecordBatch.from_pylist([{"body": "a", "correlation_id": str(IDENTIFIER)}])
    chosen = {"body": "body", "correlation_id": "correlation_id"}
    (message,) = messages_from(batch, chosen)
    assert isinstance(message, OutgoingMessage)
    assert message.correlation_id == IDENTIFIER


def test_rows_that_have_nothing_but_bodies_and_labels_are_these_whatever_columns_there_are() -> (
    None
):
    nothing = {"label": None, "correlation_id": None}
    rows = [{"body": b"1", **nothing}, {"body": None, **nothing}, {"body": b"2", **nothing}]
    arrow = pa.schema({"body": pa.binary(), "label": pa.string(), "correlation_id": pa.binary()})
    chosen = {name: name for name in arrow.names}
    assert list(messages_from(pa.RecordBatch.from_pylist(rows, arrow), chosen)) == [b"1", b"", b"2"]
    rows[2]["label"] = "two"
    found = list(messages_from(pa.RecordBatch.from_pylist(rows, arrow), chosen))
    assert found == [LabelledBody(b"1", ""), LabelledBody(b"", ""), LabelledBody(b"2", "two")]
    rows[0]["correlation_id"] = bytes(20)
    found = list(messages_from(pa.RecordBatch.from_pylist(rows, arrow), chosen))
    assert [one.label for one in found if isinstance(one, OutgoingMessage)] == ["", "", "two"]


plain_rows = st.fixed_dictionaries(
    {
        "body": st.none() | st.binary(max_size=5),
        "label": st.none() | st.text(st.characters(max_codepoint=130), max_size=5),
    }
)


@given(st.lists(plain_rows, max_size=6), st.sampled_from([["body"], ["body", "label"]]), st.data())
def test_plain_rows_are_the_same_messages_by_the_column(
    found: list[dict[str, Any]], names: list[str], data: st.DataObject
) -> None:
    arrow = pa.schema({"body": pa.binary(), "label": pa.string()})
    start = data.draw(st.integers(0, len(found)))
    batch = pa.RecordBatch.from_pylist(found, arrow).slice(start).select(names)
    chosen = {name: name for name in names}
    messages = list(messages_from(batch, chosen))
    column = column_from(batch, chosen)
    labels = "".join(one.label for one in messages if isinstance(one, LabelledBody))
    if column is not None:
        assert list(map(_whole, column)) == list(map(_whole, messages))
        assert labels.isascii()
        assert "\0" not in labels
    given = [row[name] for row in found[start:] for name in names]
    if given and None not in given and labels.isascii() and "\0" not in labels:
        assert column is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"body": pa.array(["text"])},
        {"body": pa.array([b"1"]), "label": pa.array(["x" * (LABEL_MAX_CHARACTERS + 1)])},
        {"body": pa.array([b"1"]), "label": pa.array(["a\0"])},
        {"body": pa.array([b"1"]), "label": pa.array(["\u00e4"])},
        {"body": pa.array([b"1"]), "priority": pa.array([3])},
        {"body": pa.array([b"1"], pa.large_binary())},
        {"body": pa.array([], pa.binary())},
    ],
)
def test_rows_that_are_not_plain_are_no_column(fields: dict[str, pa.Array]) -> None:
    batch = pa.RecordBatch.from_pydict(fields)
    assert column_from(batch, {name: name for name in fields}) is None


def test_a_column_that_names_queues_is_refused_by_the_column_too() -> None:
    batch = pa.RecordBatch.from_pylist([{"body": b"1", "queue": "elsewhere"}])
    with pytest.raises(QueueProblem, match="there is a column queue"):
        column_from(batch, {"body": "body"})


@given(st.lists(st.integers(0, 5)), st.integers(1, 10), st.integers(1, 20))
def test_a_part_takes_rows_until_it_has_enough(
    sizes: list[int], room_count: int, room_bytes: int
) -> None:
    taken, size = 0, 0
    while taken < len(sizes) and taken < room_count and size < room_bytes:
        size += sizes[taken]
        taken += 1
    assert fitting(np.array(sizes, np.int64), room_count, room_bytes) == taken


def test_a_row_that_cannot_be_a_message_says_why() -> None:
    batch = pa.RecordBatch.from_pylist([{"body": "a", "correlation_id": "nonsense"}])
    with pytest.raises(QueueProblem, match="a row cannot be a message"):
        list(messages_from(batch, {"body": "body", "correlation_id": "correlation_id"}))
