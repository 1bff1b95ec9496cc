"""The headers of NServiceBus: a list of keys and values, as XML in a message's extension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.formatters.xml_text import DECLARATION, escaped, read_xml, utf8

_ROOT: Final = "ArrayOfHeaderInfo"
_NAMESPACES: Final = (
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xmlns:xsd="http://www.w3.org/2001/XMLSchema"'
)


def write_headers(headers: Mapping[str, str]) -> bytes:
    """Return the extension that carries these headers."""
    items = "".join(
        "  <HeaderInfo>\r\n"
        f"    <Key>{escaped(key)}</Key>\r\n"
        f"    <Value>{escaped(value)}</Value>\r\n"
        "  </HeaderInfo>\r\n"
        for key, value in headers.items()
    )
    return utf8(f"{DECLARATION}<{_ROOT} {_NAMESPACES}>\r\n{items}</{_ROOT}>")


def read_headers(extension: bytes) -> dict[str, str]:
    """Read the headers; none when there is no extension, `FormatterError` when it is another."""
    # Older senders leave the zeros of a larger buffer behind the XML.
    document = extension.rstrip(b"\0")
    if not document:
        return {}
    root = read_xml(document)
    if root.tag != _ROOT:
        raise FormatterError(f"the extension holds <{root.tag}>, not the headers of NServiceBus")
    headers: dict[str, str] = {}
    for item in root.iterfind("HeaderInfo"):
        key = item.findtext("Key")
        if key is None:
            raise FormatterError("a header of NServiceBus without its key")
        headers[key] = item.findtext("Value") or ""
    return headers
