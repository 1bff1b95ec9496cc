"""XML with a line for each element, so that people can read it.

The parser declares nothing and fetches nothing: a document type is refused, and with it every
entity. Names stay as they were written.
"""

from __future__ import annotations

from xml.parsers import expat

from openmsmq.console import limits


class NotXml(ValueError):
    """A text that is no XML, or XML that is not laid out."""


class _Layout:
    """Writes down what the parser finds."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0
        self._text: list[str] = []
        self._is_open = False

    def start(self, name: str, attributes: list[str]) -> None:
        """An element begins."""
        self._write_text()
        if self._depth >= limits.PARSED_DEPTH_MAX_COUNT:
            raise NotXml("nested too deep")
        pairs = zip(attributes[::2], attributes[1::2], strict=True)
        shown = "".join(f' {key}="{_escaped(value)}"' for key, value in pairs)
        self._write(f"<{name}{shown}>")
        self._depth += 1
        self._is_open = True

    def end(self, name: str) -> None:
        """An element ends; one without others inside stays on one line."""
        self._depth -= 1
        if self._is_open:
            self.lines[-1] += f"{_escaped(''.join(self._text).strip())}</{name}>"
            self._text.clear()
        else:
            self._write_text()
            self._write(f"</{name}>")
        self._is_open = False

    def text(self, text: str) -> None:
        """There is text."""
        self._text.append(text)

    def refuse(self, *_: object) -> None:
        """Refuse a document type: nothing that it declares is wanted."""
        raise NotXml("a document type")

    def _write_text(self) -> None:
        text = "".join(self._text).strip()
        self._text.clear()
        if text:
            self._write(_escaped(text))
        self._is_open = False

    def _write(self, text: str) -> None:
        self.lines.append("  " * self._depth + text)


def lay_out_xml(document: str) -> str:
    """Return XML with a line for each element, or raise `NotXml`."""
    layout = _Layout()
    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    parser.StartElementHandler = layout.start
    parser.EndElementHandler = layout.end
    parser.CharacterDataHandler = layout.text
    parser.StartDoctypeDeclHandler = layout.refuse
    parser.EntityDeclHandler = layout.refuse
    try:
        parser.Parse(document.encode("utf-8"), True)
    except (expat.ExpatError, UnicodeError) as error:
        raise NotXml(str(error)) from None
    return "\n".join(layout.lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
