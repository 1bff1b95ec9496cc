"""Safe XML: reading refuses document types, and so every entity trick; writing escapes.

The trees read here are small: a body has at most 4 MiB, and nesting is bounded.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, TreeBuilder, XMLParser

from openmsmq.client.formatters.base import FormatterError

DEPTH_MAX_COUNT: Final = 64
DECLARATION: Final = '<?xml version="1.0"?>\r\n'
NIL: Final = "{http://www.w3.org/2001/XMLSchema-instance}nil"
NIL_ATTRIBUTE: Final = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"'

# The characters that XML 1.0 cannot hold, not even escaped.
_IMPOSSIBLE: Final = frozenset(
    [chr(code) for code in range(32) if chr(code) not in "\t\n\r"] + ["\ufffe", "\uffff"]
)
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"})


class _BoundedBuilder(TreeBuilder):
    """Builds a tree, and refuses what no message needs."""

    depth = 0

    def doctype(self, name: str, *_ids: str | None) -> None:
        """Refuse a document type: nothing that it declares is ever wanted."""
        raise FormatterError(f"the XML declares a document type ({name}), which is refused")

    def start(self, tag: str, attributes: dict[str, str]) -> Element:
        """Open an element, unless it is nested too deep."""
        self.depth += 1
        if self.depth > DEPTH_MAX_COUNT:
            raise FormatterError(f"XML nested deeper than {DEPTH_MAX_COUNT} elements")
        return super().start(tag, attributes)

    def end(self, tag: str) -> Element:
        """Close an element."""
        self.depth -= 1
        return super().end(tag)


def read_xml(body: bytes) -> Element:
    """Read a document into a tree, or raise `FormatterError`."""
    parser = XMLParser(target=_BoundedBuilder())
    try:
        parser.feed(body)
        root = parser.close()
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        if isinstance(error, FormatterError):
            raise
        raise FormatterError(f"the body is no XML: {error}") from None
    assert isinstance(root, Element)
    return root


def escaped(text: str) -> str:
    """Return a text as it stands between tags."""
    if not _IMPOSSIBLE.isdisjoint(text):
        raise FormatterError("the text has control characters, which XML cannot hold")
    return text.translate(_ESCAPES)


def utf8(text: str) -> bytes:
    """Return the bytes of a document."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FormatterError(f"the text cannot be written in UTF-8: {error}") from None
