"""What a page shows of a body: a value, a text that is laid out, or bytes and the texts in them."""

from __future__ import annotations

import contextlib
import itertools
import re
from typing import Final

import msgspec

from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.console import limits
from openmsmq.console.bodies.xml_layout import NotXml, lay_out_xml
from openmsmq.model.message import BodyType

_ROW_BYTES: Final = 16
_DOT_NET: Final = bytes.fromhex("0001000000ffffffff01000000")
"""How an object begins that `BinaryMessageFormatter` of .NET has written."""
_SERIALIZED: Final = 0x300
"""The type that .NET gives such a body."""
_NARROW: Final = re.compile(rb"[\x20-\x7e]{4,200}")
_WIDE: Final = re.compile(rb"(?:[\x20-\x7e]\x00){4,200}")
_JSON_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""A string up to its end, or to that of the text: nothing is looked at twice."""
_BRACKET: Final = re.compile(r"[\[\]{}]")
_BOM: Final = "\ufeff"


class Preview(msgspec.Struct, frozen=True):
    """A body as a page shows it."""

    kind: str
    """What it is, in words."""
    size_bytes: int
    text: str | None = None
    """The text, or the value; None for bytes."""
    is_cut: bool = False
    """Whether there is more text than is shown."""
    is_laid_out: bool = False
    """Whether lines were added to make it readable."""
    texts: tuple[str, ...] = ()
    """Texts that were found in bytes."""


def preview(message: ReceivedMessage) -> Preview:
    """Look at a body without running, loading or making anything that it names."""
    body = message.body_bytes
    size = len(body)
    if message.encrypted:
        return Preview("encrypted: only ciphertext is here", size)
    if not body:
        return Preview("empty", 0)
    if body.startswith(_DOT_NET) or message.body_type == _SERIALIZED:
        # Such a body names classes, and whoever makes objects of them runs what it says.
        return Preview(
            "an object of .NET, serialized; it is not deserialized", size, texts=_texts(body)
        )
    text = message.text
    if text is not None:
        return _of_text(text, size, _type_name(message.body_type))
    try:
        value = DEFAULT_FORMATTER.read(message.body_type, body)
    except FormatterError as error:
        return Preview(f"{_type_name(message.body_type)}, damaged: {error}", size)
    if isinstance(value, bytes):
        return Preview(_type_name(message.body_type), size, texts=_texts(body))
    return _of_text(str(value), size, _type_name(message.body_type))


def _type_name(body_type: int) -> str:
    try:
        name = BodyType(body_type).name
    except ValueError:
        return f"bytes of type {body_type}"
    return {"UNSPECIFIED": "bytes without a type", "TEXT": "text (VT_BSTR)"}.get(
        name, name.lower().replace("_", " ")
    )


def _of_text(text: str, size: int, kind: str) -> Preview:
    shown, is_laid_out = text.removeprefix(_BOM), False
    start = shown.lstrip()[:1]
    if size <= limits.PARSED_MAX_BYTES:
        if start in ("{", "[") and _json_depth(shown) <= limits.PARSED_DEPTH_MAX_COUNT:
            with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeError):
                shown = msgspec.json.format(shown, indent=2)
                kind, is_laid_out = f"JSON, {kind}", True
        elif start == "<":
            with contextlib.suppress(NotXml):
                shown, kind, is_laid_out = lay_out_xml(shown), f"XML, {kind}", True
    is_cut = len(shown) > limits.TEXT_SHOWN_CHARACTERS
    return Preview(kind, size, shown[: limits.TEXT_SHOWN_CHARACTERS], is_cut, is_laid_out)


def _json_depth(text: str) -> int:
    """Return how many objects and lists stand inside each other, if the text is JSON."""
    brackets = _BRACKET.findall(_JSON_STRING.sub("", text))
    return max(itertools.accumulate(1 if each in "[{" else -1 for each in brackets), default=0)


def _texts(body: bytes) -> tuple[str, ...]:
    """Find what looks like text, of one or two bytes a letter."""
    searched = body[: limits.TEXTS_SEARCHED_BYTES]
    found = [(match.start(), match[0].decode("utf-16-le")) for match in _WIDE.finditer(searched)]
    found += [(match.start(), match[0].decode("ascii")) for match in _NARROW.finditer(searched)]
    return tuple(text for _, text in sorted(found)[: limits.TEXTS_SHOWN_COUNT])


def hex_rows(body: bytes) -> list[tuple[str, str, str]]:
    """Return the first bytes in rows: where they stand, the bytes, and what they are as letters."""
    shown = body[: limits.HEX_SHOWN_BYTES]
    rows = []
    for start in range(0, len(shown), _ROW_BYTES):
        part = shown[start : start + _ROW_BYTES]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        rows.append((f"{start:06x}", part.hex(" "), letters))
    return rows
