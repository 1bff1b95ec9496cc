"""XML bodies as `XmlMessageFormatter` of .NET writes them, for simple values and lists of them.

A body whose root element is none of the simple types is given as an `Element` tree: the client
does not make objects of classes that a body names.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final
from xml.etree.ElementTree import Element

from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.formatters.xml_text import (
    DECLARATION,
    NIL,
    NIL_ATTRIBUTE,
    escaped,
    read_xml,
    utf8,
)
from openmsmq.model.message import BodyType

_LIST_PREFIX: Final = "ArrayOf"
_FLOAT_WORDS: Final = {"INF": "inf", "-INF": "-inf", "NaN": "nan"}
_FRACTION: Final = re.compile(r"\.(\d{6})\d+")


class XmlFormatter:
    """One element per value: `<string>hello</string>`, `<int>1</int>`, `<ArrayOfInt>…`."""

    name = "xml"

    def write(self, value: object) -> tuple[int, bytes]:
        """Write a simple value, or a list of values of one type."""
        element = _list_element(value) if isinstance(value, list | tuple) else _element(value)
        return BodyType.UNSPECIFIED, utf8(DECLARATION + element)

    def read(self, body_type: int, body: bytes) -> object:  # noqa: ARG002 -- the XML says it all
        """Read a simple value, a list of them, or else the tree."""
        root = read_xml(body)
        if root.get(NIL) in ("true", "1"):
            return None
        if root.tag in _READERS:
            return _read_simple(root)
        if root.tag.startswith(_LIST_PREFIX) and all(child.tag in _READERS for child in root):
            return [None if _is_nil(child) else _read_simple(child) for child in root]
        return root


def _is_nil(element: Element) -> bool:
    return element.get(NIL) in ("true", "1")


def _read_simple(element: Element) -> object:
    if len(element):
        raise FormatterError(f"elements inside <{element.tag}>, which holds a simple value")
    text = element.text or ""
    try:
        return _READERS[element.tag](text)
    except (ValueError, InvalidOperation, OverflowError):
        raise FormatterError(f"{text[:40]!r} is not a value of <{element.tag}>") from None


def _list_element(values: list[object] | tuple[object, ...]) -> str:
    tags = {_tag_and_text(value)[0] for value in values}
    if len(tags) > 1:
        raise FormatterError(f"a list of one type is needed, not of {', '.join(sorted(tags))}")
    tag = tags.pop() if tags else "string"
    items = "".join(f"  {_element(value)}\r\n" for value in values)
    name = f"{_LIST_PREFIX}{tag[0].upper()}{tag[1:]}"
    return f"<{name}>\r\n{items}</{name}>"


def _element(value: object) -> str:
    if value is None:
        return f"<anyType {NIL_ATTRIBUTE} />"
    tag, text = _tag_and_text(value)
    return f"<{tag}>{text}</{tag}>" if text else f"<{tag} />"


def _tag_and_text(value: object) -> tuple[str, str]:
    write = _WRITERS.get(type(value))
    if write is None:
        raise FormatterError(
            f"a value of type {type(value).__name__}: XML bodies hold text, bytes, numbers, "
            "datetimes, UUIDs and lists of one of them"
        )
    return write(value)


def _write_int(value: int) -> tuple[str, str]:
    if -(1 << 31) <= value < 1 << 31:
        return "int", str(value)
    if -(1 << 63) <= value < 1 << 63:
        return "long", str(value)
    if 0 <= value < 1 << 64:
        return "unsignedLong", str(value)
    raise FormatterError("a whole number exceeds 64 bits")


def _write_float(value: float) -> tuple[str, str]:
    text = repr(value)
    return "double", {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(text, text)


def _write_decimal(value: Decimal) -> tuple[str, str]:
    if not value.is_finite():
        raise FormatterError(f"{value} is no decimal number")
    return "decimal", format(value, "f")


def _read_datetime(text: str) -> datetime:
    # .NET writes seven digits of a second, Python holds six.
    text = _FRACTION.sub(r".\1", text)
    return datetime.fromisoformat(text)


def _write_datetime(value: datetime) -> tuple[str, str]:
    text = value.isoformat()
    return "dateTime", f"{text[:-6]}Z" if value.tzinfo is UTC else text


def _read_boolean(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text in ("true", "1")


def _read_base64(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


def _read_float(text: str) -> float:
    return float(_FLOAT_WORDS.get(text, text))


_WRITERS: Final[dict[type, Callable[..., tuple[str, str]]]] = {
    str: lambda value: ("string", escaped(value)),
    bytes: lambda value: ("base64Binary", base64.b64encode(value).decode("ascii")),
    bool: lambda value: ("boolean", "true" if value else "false"),
    int: _write_int,
    float: _write_float,
    Decimal: _write_decimal,
    datetime: _write_datetime,
    uuid.UUID: lambda value: ("guid", str(value)),
}
_READERS: Final[dict[str, Callable[[str], object]]] = {
    "string": str,
    "base64Binary": _read_base64,
    "boolean": _read_boolean,
    "byte": int,
    "unsignedByte": int,
    "short": int,
    "unsignedShort": int,
    "int": int,
    "unsignedInt": int,
    "long": int,
    "unsignedLong": int,
    "char": lambda text: chr(int(text)),
    "float": _read_float,
    "double": _read_float,
    "decimal": Decimal,
    "dateTime": _read_datetime,
    "guid": uuid.UUID,
}
