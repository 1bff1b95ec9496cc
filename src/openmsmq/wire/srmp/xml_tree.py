"""Elements of a small XML text, read by a parser that takes nothing but elements.

An envelope comes from anybody. So there is no document type, and with it no entity of its own, no
processing instruction, one encoding, and a bound for everything of which there may be many. What
the parser finds becomes a tree of values; whatever is wrong is a `DecodeError`.
"""

from __future__ import annotations

from typing import Final, NoReturn
from xml.parsers import expat

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.limits import (
    ENVELOPE_ATTRIBUTES_MAX_COUNT,
    ENVELOPE_DEPTH_MAX_COUNT,
    ENVELOPE_ELEMENTS_MAX_COUNT,
    ENVELOPE_MAX_BYTES,
    ENVELOPE_NAMESPACES_MAX_COUNT,
)

_WHERE: Final = "envelope"
_SEPARATOR: Final = " "
"""Between namespace and name: no namespace that we know has one, and no name can."""


class Element:
    """An element with what stands in it; nobody changes it once its end has come."""

    __slots__ = ("attributes", "children", "name", "namespace", "text", "texts")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.namespace, _, self.name = name.rpartition(_SEPARATOR)
        self.attributes = attributes
        """By name, with the namespace before it and a space between, if it has one."""
        self.children: list[Element] = []
        self.text = ""
        """All text right in it."""
        self.texts: list[str] = []
        """The same in parts, as the parser has found them."""


class _Reader:
    """Builds the tree; its methods are called by the parser."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._element_count = 0
        self._namespace_count = 0
        self._parser = parser = expat.ParserCreate("utf-8", _SEPARATOR)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartNamespaceDeclHandler = self._namespace
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._document_type
        parser.ProcessingInstructionHandler = self._instruction
        parser.EntityDeclHandler = self._entity

    def read(self, data: bytes) -> Element:
        """Read a whole text."""
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            self._refuse(f"no XML: {expat.errors.messages[error.code]}")
        assert self.root is not None, "a text without an element is no XML"
        return self.root

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._element_count += 1
        if self._element_count > ENVELOPE_ELEMENTS_MAX_COUNT:
            self._refuse(f"more than {ENVELOPE_ELEMENTS_MAX_COUNT} elements")
        if len(self._open) >= ENVELOPE_DEPTH_MAX_COUNT:
            self._refuse(f"elements within elements, more than {ENVELOPE_DEPTH_MAX_COUNT} deep")
        if len(attributes) > ENVELOPE_ATTRIBUTES_MAX_COUNT:
            self._refuse(f"an element with more than {ENVELOPE_ATTRIBUTES_MAX_COUNT} attributes")
        self._open.append(Element(name, attributes))

    def _end(self, _: str) -> None:
        element = self._open.pop()
        element.text = "".join(element.texts)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element

    def _text(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def _namespace(self, *_: str | None) -> None:
        self._namespace_count += 1
        if self._namespace_count > ENVELOPE_NAMESPACES_MAX_COUNT:
            self._refuse(f"more than {ENVELOPE_NAMESPACES_MAX_COUNT} namespaces")

    def _declaration(self, _: str, encoding: str | None, __: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":
            self._refuse(f"the encoding {encoding[:20]!r}; only UTF-8 is read")

    def _document_type(self, *_: object) -> NoReturn:
        self._refuse("a document type, which may define anything")

    def _instruction(self, *_: object) -> NoReturn:
        self._refuse("a processing instruction")

    def _entity(self, *_: object) -> NoReturn:
        self._refuse("the definition of an entity")

    def _refuse(self, problem: str) -> NoReturn:
        raise DecodeError(_WHERE, max(self._parser.CurrentByteIndex, 0), problem) from None


def read_tree(data: bytes) -> Element:
    """Read a text of XML, in UTF-8."""
    if len(data) > ENVELOPE_MAX_BYTES:
        raise DecodeError(_WHERE, 0, f"{len(data)} bytes; at most {ENVELOPE_MAX_BYTES}")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(_WHERE, error.start, "a text that is not UTF-8") from None
    return _Reader().read(data)
