"""The columns are complete: every property has one, or a reason to have none."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql.types import MapType, StringType

from openmsmq.spark import schema

MESSAGE_PAGE = Path(__file__).parents[2] / "docs/reference/message.md"
SCHEMA_PAGE = MESSAGE_PAGE.with_name("spark-schema.md")


def properties() -> list[str]:
    """Read the names of all properties of a message from its page."""
    table = MESSAGE_PAGE.read_text(encoding="utf-8").partition("\n## Values")[0]
    return re.findall(r"^\| (\w+) \| [`-]", table, re.MULTILINE)


def test_the_page_of_the_message_has_the_properties():
    assert {"Identifier", "Body", "SoapHeader"} <= set(properties())


def test_every_property_of_a_message_has_a_column_or_a_reason():
    shown = {name for column in schema.COLUMNS for name in column.shows}
    assert shown | schema.LEFT_OUT.keys() == set(properties())
    assert shown & schema.LEFT_OUT.keys() == set()


def test_names_are_different():
    assert len(set(schema.ALL_NAMES)) == len(schema.ALL_NAMES)


def test_only_the_headers_have_to_be_asked_for():
    assert set(schema.ALL_NAMES) - set(schema.NAMES) == {"headers"}


def test_the_page_has_the_tables_of_the_code():
    assert SCHEMA_PAGE.read_text(encoding="utf-8").endswith("\n" + schema.schema_tables())


def test_spark_knows_the_types():
    types = {field.name: field.dataType.simpleString() for field in schema.spark_schema()}
    assert list(types) == list(schema.NAMES)
    assert set(types.values()) == {"string", "bigint", "int", "timestamp", "binary", "boolean"}
    assert schema.spark_schema(["headers"])["headers"].dataType == MapType(
        StringType(), StringType()
    )
    assert types["lookup_id"] == "bigint"
    assert types["arrived_time"] == "timestamp"


def test_some_columns_have_a_schema_in_the_order_asked_for():
    names = ["body", "label", "queue"]
    assert schema.arrow_schema(names).names == names
    assert schema.spark_schema(names).names == names
