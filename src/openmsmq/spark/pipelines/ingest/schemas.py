"""Schemas of bodies as people have them: as DDL, or in a file.

A file has DDL, the JSON of a Spark schema, or a JSON Schema. Of a JSON Schema only what says the
names and types of fields counts; a part that Spark has no type for becomes text, which then holds
its JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from openmsmq.spark.errors import BadOption

DEPTH_MAX_COUNT: Final = 32
"""How deep a JSON Schema may go; one that contains itself has no end."""

_SIMPLE: Final[dict[str, type[DataType]]] = {
    "integer": LongType,
    "number": DoubleType,
    "boolean": BooleanType,
}
_FORMATS: Final[dict[str, type[DataType]]] = {"date-time": TimestampType, "date": DateType}


def read_schema(text: str, option: str) -> StructType:
    """Read a schema from a file, or from the text itself; raises `BadOption`.

    DDL is understood by Spark, so a session must have been started.
    """
    name = ""
    if os.path.isfile(text):
        name = f"{text}: "
        try:
            with open(text, encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise BadOption(option, f"{name}{error}") from None
    elif not text.split()[1:] and ":" not in text:
        raise BadOption(option, f"{text!r} is no file and no DDL such as 'id bigint, total double'")
    if text.lstrip().startswith("{"):
        return _from_json(text, option, name)
    try:
        found = StructType.fromDDL(text)
    except PySparkException as error:
        problem = str(error).strip().splitlines()[0]
        raise BadOption(option, f"{name}{problem}") from None
    if not isinstance(found, StructType):
        raise BadOption(option, f"{name}one {found.simpleString()}, where fields are needed")
    return found


def _from_json(text: str, option: str, name: str) -> StructType:
    try:
        content = json.loads(text)
        if content.get("type") == "struct":
            return StructType.fromJson(content)
        return from_json_schema(content)
    except (ValueError, KeyError, TypeError, AttributeError, PySparkException) as error:
        raise BadOption(
            option, f"{name}is neither a Spark schema nor a JSON Schema: {error}"
        ) from (None)


def from_json_schema(schema: Mapping[str, Any]) -> StructType:
    """Make a schema of a JSON Schema that describes an object; raises `ValueError`."""
    found = _type(schema, schema, 0)
    if not isinstance(found, StructType):
        raise ValueError("it describes no object with properties")
    return found


def _type(part: object, root: Mapping[str, Any], depth: int) -> DataType:
    if depth > DEPTH_MAX_COUNT:
        raise ValueError(f"it goes deeper than {DEPTH_MAX_COUNT}, or contains itself")
    if not isinstance(part, Mapping):
        return StringType()
    if "$ref" in part:
        return _type(_referred(str(part["$ref"]), root), root, depth + 1)
    kind = _kind(part)
    if kind == "object":
        return _object(part, root, depth)
    if kind == "array":
        return ArrayType(_type(part.get("items"), root, depth + 1))
    if kind == "string":
        return _FORMATS.get(str(part.get("format")), StringType)()
    return _SIMPLE.get(kind, StringType)()


def _object(part: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> DataType:
    properties = part.get("properties")
    if isinstance(properties, Mapping) and properties:
        return StructType(
            [
                StructField(str(name), _type(each, root, depth + 1))
                for name, each in properties.items()
            ]
        )
    values = part.get("additionalProperties")
    if isinstance(values, Mapping):
        return MapType(StringType(), _type(values, root, depth + 1))
    return StringType()


def _kind(part: Mapping[str, Any]) -> str:
    """Return the one type of a part, null apart; empty if there are several, or none."""
    given = part.get("type")
    if given is None and "properties" in part:
        return "object"
    kinds = [given] if isinstance(given, str) else list(given or ())
    kinds = [kind for kind in kinds if kind != "null"]
    return str(kinds[0]) if len(kinds) == 1 else ""


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    if not reference.startswith("#"):
        raise ValueError(f"{reference} is in another file")
    found: object = root
    for name in reference[1:].split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            raise ValueError(f"{reference} is not there")
        found = found[name]
    return found
