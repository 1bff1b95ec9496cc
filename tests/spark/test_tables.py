"""Tables and views of SQL: what CREATE TABLE keeps, and what Spark hands over again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

import openmsmq as mq
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.catalog import reading_options
from openmsmq.spark.errors import BadOption
from openmsmq.spark.schema import NAMES, spark_schema
from openmsmq.spark.source.batch_reader import BatchReader
from openmsmq.spark.source.data_source import MsmqDataSource
from openmsmq.spark.source.options import SourceOptions, read_source_options
from openmsmq.spark.source.stream_reader import StreamReader
from tests.runtime.computers import Computer

ADDRESS = "127.0.90.61"
QUEUE = r"private$\orders"
QUOTED = QUEUE.replace("\\", r"\\")
OPTIONS = {"qm": "127.0.0.2", "queue": QUEUE, "columns": "label,text"}
CATALOG = {"provider": "msmq", "owner": "root"}


def created(**options: str) -> StructType:
    """Return the schema of a table as Spark asks for it: its options twice, and properties."""
    twice = options | {f"option.{name}": value for name, value in options.items()}
    return MsmqDataSource(CATALOG | twice).schema()


def read(schema: StructType, **options: str) -> SourceOptions:
    """Return the options that a reader of a table with this schema gets."""
    return read_source_options(reading_options(options, schema))


def test_a_table_has_the_columns_of_its_options() -> None:
    assert created(queue=QUEUE).fieldNames() == list(NAMES)
    assert created(**OPTIONS).fieldNames() == ["label", "text"]


def test_a_reader_of_a_table_has_the_options_of_the_table() -> None:
    schema = StructType.fromJson(created(**OPTIONS).jsonValue())
    assert read(schema) == read_source_options(OPTIONS)
    assert isinstance(MsmqDataSource({}).reader(schema), BatchReader)
    assert isinstance(MsmqDataSource({}).streamReader(schema), StreamReader)


def test_an_option_of_the_query_is_stronger_than_that_of_the_table() -> None:
    options = read(created(numpartitions="2", **OPTIONS), numPartitions="3")
    assert options.partitions == 3
    assert options.queues == (QUEUE,)


def test_a_query_that_names_its_queue_has_nothing_of_the_table_whose_schema_it_was_given() -> None:
    options = read(created(**OPTIONS), queue=r"private$\other", columns="label,text")
    assert options.place.addresses == ("127.0.0.1",)
    assert options.queues == (r"private$\other",)


def test_a_data_frame_has_no_note_beside_its_columns() -> None:
    assert MsmqDataSource({"queue": QUEUE}).schema() == spark_schema()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "^option queue: is missing"),
        ({"queue": QUEUE, "token": "secret"}, "^option token: .* tokenFile or certificate"),
        ({"queue": QUEUE, "colour": "red"}, "^option colour: is not known"),
    ],
)
def test_a_table_that_could_not_be_read_is_not_made(
    options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(BadOption, match=complaint):
        created(**options)


def test_a_table_with_a_list_of_columns_says_why_it_cannot_be_read() -> None:
    with pytest.raises(BadOption, match="without a list of columns; the option columns"):
        MsmqDataSource({}).reader(StructType([StructField("label", StringType())]))


def test_rows_do_not_go_to_the_queue_of_the_table_from_which_they_come() -> None:
    for write in (MsmqDataSource({}).writer, MsmqDataSource({}).streamWriter):
        with pytest.raises(BadOption, match="Spark does not tell to which table"):
            write(created(**OPTIONS | {"columns": "body,label"}), False)


@pytest.fixture
def sql(
    spark: SparkSession, alpha: Computer, manager: QueueManager
) -> Iterator[Callable[[str], list[tuple[object, ...]]]]:
    queue = manager.create_queue(QUEUE, transactional=True)
    queue.send_many(["tea", "coffee"], label="order", transaction=mq.SINGLE_MESSAGE)

    def run(text: str) -> list[tuple[object, ...]]:
        place = f"qm '{alpha.qm}', queue '{QUOTED}'"
        again = f"WITH (`qm` = '{alpha.qm}', `queue` = '{QUOTED}')"
        return [tuple(row) for row in spark.sql(text.format(place=place, again=again)).collect()]

    yield run
    spark.sql("DROP TABLE IF EXISTS orders")
    spark.sql("DROP VIEW IF EXISTS answers")


def test_the_headers_of_nservicebus_are_a_map(
    spark: SparkSession, alpha: Computer, manager: QueueManager
) -> None:
    headers = {"NServiceBus.MessageId": "17", "colour": "<red>"}
    queue = manager.create_queue(r"private$\nservicebus")
    queue.send("with", headers=headers)
    queue.send("without")
    options = {"qm": alpha.qm, "queue": r"private$\nservicebus", "columns": "text,headers"}
    messages = spark.read.format("msmq").options(**options).load()
    assert {row.text: row.headers for row in messages.collect()} == {
        "with": headers,
        "without": None,
    }
    chosen = messages.where(messages.headers["colour"] == "<red>").select("text")
    assert [row.text for row in chosen.collect()] == ["with"]


def test_tables_and_views_of_sql_are_read_streamed_and_written(
    spark: SparkSession, sql: Callable[[str], list[tuple[object, ...]]]
) -> None:
    sql("CREATE TABLE orders USING msmq OPTIONS ({place})")
    assert sql("SELECT label, text FROM orders") == [("order", "tea"), ("order", "coffee")]
    assert sql("SELECT count(*) FROM orders WITH (`numPartitions` = '1')") == [(2,)]
    sql("INSERT INTO orders {again} (body, label) VALUES (X'6d696c6b', 'added')")
    sql("CREATE TEMPORARY VIEW answers USING msmq OPTIONS ({place}, columns 'body,label')")
    sql("INSERT INTO answers VALUES (CAST('sugar' AS BINARY), 'added')")
    assert sql("SELECT text FROM orders WHERE label = 'added'") == [("milk",), ("sugar",)]
    query = (
        spark.readStream.option("mode", "consume")
        .table("orders")
        .writeStream.format("memory")
        .queryName("streamed")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sql("SELECT count(*) FROM streamed") == [(4,)]
    spark.catalog.dropTempView("streamed")
