"""Bodies to columns: JSON and XML parsed by a schema, whatever type their sender gave them.

`text` has the bodies that are text by their type or by the look of them. Programs on .NET and
NServiceBus also send documents as plain bytes, with a byte order mark or in UTF-16: those are
found by how they begin. A body that does not parse costs its row nothing else: `data` is null and
`data_error` says why.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType, StructType

from openmsmq.spark.errors import BadOption

DATA: Final = "data"
"""The column with the fields of the bodies."""

DATA_ERROR: Final = "data_error"
"""The column that says why a body has no fields."""

NEEDED: Final = ("body", "text", "encrypted", "error")
"""The columns of messages without which bodies cannot be parsed."""

_DOCUMENT: Final = "_document"
_JSON: Final = "_json"
_XML: Final = "_xml"
_CORRUPT: Final = "_openmsmq_corrupt"
_ORDER_MARK: Final = "\ufeff"
_BEGINNINGS: Final = ("{", "[", "<")
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def document_text(body: bytes) -> str | None:
    """Read bytes that are a JSON or XML document in UTF-8 or UTF-16; None if they are not.

    JSON and XML begin with an ASCII character, so the place of the first zero byte tells the two
    forms of UTF-16 apart.
    """
    encoding = "utf-8"
    for mark, name in _MARKS:
        if body.startswith(mark):
            body, encoding = body[len(mark) :], name
            break
    else:
        if body[1:2] == b"\0" and body[:1] != b"\0":
            encoding = "utf-16-le"
        elif body[:1] == b"\0" and body[1:2] != b"\0":
            encoding = "utf-16-be"
    try:
        # Programs in C send the zero at the end of their texts, too.
        text = body.decode(encoding).rstrip("\0")
    except UnicodeDecodeError:
        return None
    return text if text.lstrip().startswith(_BEGINNINGS) else None


def _document_texts(bodies: pa.Array) -> pa.Array:
    texts = [None if body is None else document_text(body) for body in bodies.to_pylist()]
    return pa.array(texts, pa.string())


def with_body_columns(
    messages: DataFrame,
    *,
    json_schema: StructType | None = None,
    xml_schema: StructType | None = None,
    column: str = DATA,
    error_column: str = DATA_ERROR,
) -> DataFrame:
    """Add the fields of JSON or XML bodies as one column, and why a body has none as another.

    With both schemas, a body that begins with `<` is XML. If the schemas differ, there are two
    columns, `data_json` and `data_xml`.
    """
    if json_schema is None and xml_schema is None:
        raise BadOption("schema", "is missing: give a schema for JSON or one for XML")
    missing = [name for name in NEEDED if name not in messages.columns]
    if missing:
        raise BadOption("columns", f"leaves out {', '.join(missing)}, which bodies are read from")
    for name in (column, error_column):
        if name in messages.columns:
            raise BadOption("column", f"{name} is there already: choose another name")
    found = messages.withColumn(_DOCUMENT, _document())
    is_xml = F.ltrim(_DOCUMENT).startswith("<")
    any_body = F.lit(True)
    forms: list[_Form] = []
    if json_schema is not None:
        chosen = any_body if xml_schema is None else ~is_xml
        forms.append(_Form(_JSON, "JSON", json_schema, F.from_json, chosen))
    if xml_schema is not None:
        chosen = any_body if json_schema is None else is_xml
        forms.append(_Form(_XML, "XML", xml_schema, F.from_xml, chosen))
    for form in forms:
        found = found.withColumn(form.name, form.parsed())
    added = _columns(forms, column)
    return found.withColumns({**added, error_column: _error(forms)}).drop(
        _DOCUMENT, *(form.name for form in forms)
    )


class _Form:
    """One of the forms that bodies have: its schema, and when a body is in it."""

    def __init__(
        self,
        name: str,
        title: str,
        schema: StructType,
        parse: Callable[..., Column],
        chosen: Column,
    ) -> None:
        self.name = name
        self.title = title
        self.schema = schema
        self._parse = parse
        self._chosen = chosen

    def parsed(self) -> Column:
        """Return the fields of a body, with a field more that is null if all is well."""
        extended = StructType([*self.schema.fields]).add(_CORRUPT, StringType())
        document = F.when(self._chosen, F.col(_DOCUMENT))
        return self._parse(document, extended, {"columnNameOfCorruptRecord": _CORRUPT})

    def failed(self) -> Column:
        """Whether a body is in this form and does not parse."""
        document = F.col(_DOCUMENT)
        field = F.col(self.name)
        return self._chosen & document.isNotNull() & (field.isNull() | field[_CORRUPT].isNotNull())

    def fields(self) -> Column:
        """Return the fields of a body that parses."""
        field = F.col(self.name)
        return F.when(field[_CORRUPT].isNull(), field.dropFields(_CORRUPT))


def _document() -> Column:
    """Return the text of a body, from wherever it can be had."""
    undecoded = F.col("error").isNotNull() | F.col("encrypted")
    # What is text already is not handed to Python once more.
    hidden = F.when(F.col("text").isNull() & ~undecoded, F.col("body"))
    # Spark's own annotations ask for a third argument, of which it then warns.
    texts = arrow_udf(_document_texts, "string")  # type: ignore[call-overload]
    text = F.regexp_replace("text", f"^{_ORDER_MARK}", "")
    return F.when(~undecoded & (F.octet_length("body") > 0), F.coalesce(text, texts(hidden)))


def _columns(forms: list[_Form], column: str) -> dict[str, Column]:
    if len(forms) == 1:
        return {column: forms[0].fields()}
    json, xml = forms
    if json.schema == xml.schema:
        return {column: F.coalesce(json.fields(), xml.fields())}
    return {f"{column}_json": json.fields(), f"{column}_xml": xml.fields()}


def _error(forms: list[_Form]) -> Column:
    reason = (
        F.when(F.col("error").isNotNull(), "the message cannot be decoded")
        .when(F.col("encrypted"), "the body is encrypted")
        .when(F.octet_length("body") == 0, "the body is empty")
        .when(F.col(_DOCUMENT).isNull(), "the body is not text")
    )
    for form in forms:
        reason = reason.when(form.failed(), f"the body is not {form.title} of this schema")
    return reason
