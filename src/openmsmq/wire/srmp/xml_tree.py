"""Elements of a small XML text, read by a parser that takes nothing but elements.

An envelope comes from anybody. So there is no document type, and with it no entity of its own, no
processing instruction, one encoding, and a bound for everything of which there may be many. What
the parser finds becomes a tree of values; whatever is wrong is a `DecodeError`.

Every message has dozens of elements, so none of them calls anything of ours: `TreeBuilder` hears of
them without Python in between, and is never handed more of them than two for each that may be.
"""

from __future__ import annotations

from typing import Final, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.limits import (
    ENVELOPE_ATTRIBUTES_MAX_COUNT,
    ENVELOPE_DEPTH_MAX_COUNT,
    ENVELOPE_ELEMENTS_MAX_COUNT,
    ENVELOPE_MAX_BYTES,
    ENVELOPE_NAMESPACE_MAX_CHARACTERS,
    ENVELOPE_NAMESPACES_MAX_COUNT,
    ENVELOPE_TAGS_MAX_COUNT,
)

_WHERE: Final = "envelope"
SEPARATOR: Final = " "
"""Between namespace and name: no namespace that we know has one, and no name can."""


class _Refused(Exception):
    """What is wrong; where, only the parser knows."""


class _Namespaces:
    """Counts them. It does not know the parser, which knows it: nothing is left to the collector
    of garbage, which would otherwise have a tree of each message to find."""

    def __init__(self) -> None:
        self._count = 0

    def declared(self, _: str | None, uri: str | None) -> None:
        """Take one."""
        self._count += 1
        if self._count > ENVELOPE_NAMESPACES_MAX_COUNT:
            raise _Refused(f"more than {ENVELOPE_NAMESPACES_MAX_COUNT} namespaces")
        # It stands before the name of each element that is in it.
        if uri is not None and len(uri) > ENVELOPE_NAMESPACE_MAX_CHARACTERS:
            raise _Refused(f"a namespace of {len(uri)} characters")


def read_tree(data: bytes) -> Element:
    """Read a text of XML, in UTF-8; a namespace stands before its name, with a space between."""
    if len(data) > ENVELOPE_MAX_BYTES:
        raise DecodeError(_WHERE, 0, f"{len(data)} bytes; at most {ENVELOPE_MAX_BYTES}")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as undecoded:
        raise DecodeError(_WHERE, undecoded.start, "a text that is not UTF-8") from None
    if data.count(b"<") > ENVELOPE_TAGS_MAX_COUNT:
        raise DecodeError(_WHERE, 0, f"more than {ENVELOPE_TAGS_MAX_COUNT} tags of elements")
    builder = TreeBuilder()
    # It keeps no names for later: the next text has a parser of its own.
    parser = expat.ParserCreate("utf-8", SEPARATOR, None)
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartNamespaceDeclHandler = _Namespaces().declared
    parser.XmlDeclHandler = _declaration
    parser.StartDoctypeDeclHandler = _document_type
    parser.ProcessingInstructionHandler = _instruction
    parser.EntityDeclHandler = _entity
    try:
        parser.Parse(data, True)
        root: Element = builder.close()
        # No element can have more of them than there are in all.
        _check_shape(root, has_many_attributes=data.count(b"=") > ENVELOPE_ATTRIBUTES_MAX_COUNT)
    except expat.ExpatError as error:
        problem = f"no XML: {expat.errors.messages[error.code]}"
        raise DecodeError(_WHERE, max(parser.CurrentByteIndex, 0), problem) from None
    except _Refused as refusal:
        raise DecodeError(_WHERE, max(parser.CurrentByteIndex, 0), str(refusal)) from None
    return root


def text_in(element: Element) -> str:
    """Return all text right in an element."""
    text = element.text or ""
    if len(element):
        text += "".join([child.tail or "" for child in element])
    return text


def _check_shape(root: Element, *, has_many_attributes: bool) -> None:
    """Refuse a tree that is larger than an envelope need be."""
    level, depth, count = [root], 0, 0
    while level:
        depth += 1
        count += len(level)
        if depth > ENVELOPE_DEPTH_MAX_COUNT:
            raise _Refused(f"elements within elements, more than {ENVELOPE_DEPTH_MAX_COUNT} deep")
        if count > ENVELOPE_ELEMENTS_MAX_COUNT:
            raise _Refused(f"more than {ENVELOPE_ELEMENTS_MAX_COUNT} elements")
        if has_many_attributes and any(
            len(element.keys()) > ENVELOPE_ATTRIBUTES_MAX_COUNT for element in level
        ):
            raise _Refused(f"an element with more than {ENVELOPE_ATTRIBUTES_MAX_COUNT} attributes")
        level = [child for element in level for child in element]


def _declaration(_: str, encoding: str | None, __: int) -> None:
    if encoding is not None and encoding.lower() != "utf-8":
        raise _Refused(f"the encoding {encoding[:20]!r}; only UTF-8 is read")


def _document_type(*_: object) -> NoReturn:
    raise _Refused("a document type, which may define anything")


def _instruction(*_: object) -> NoReturn:
    raise _Refused("a processing instruction")


def _entity(*_: object) -> NoReturn:
    raise _Refused("the definition of an entity")
