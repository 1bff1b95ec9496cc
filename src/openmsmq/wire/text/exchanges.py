"""Requests and answers of HTTP that are no messages, as fields: their heads, and how much follows.

Who shows more of a head than its first line shows passwords and tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import Field

_END: Final = b"\r\n\r\n"
_LINE_MAX_BYTES: Final = 8_192
_ANSWER: Final = b"HTTP/1."


class _Exchange(msgspec.Struct, frozen=True):
    line: str
    head_size: int
    content_size: int

    @property
    def summary(self) -> str:
        """What it says, in one line."""
        return f"{self.line}, {self.content_size} bytes"

    def fields(self) -> Iterator[Field]:
        """Show the first line, and how much there is of the rest."""
        yield Field("Head", self.head_size, self.line)
        if self.content_size:
            yield Field("Content", self.content_size, "")

    @classmethod
    def _read(cls, data: bytes) -> Self:
        end = data.find(_END)
        line = data[: data.find(b"\r\n", 0, _LINE_MAX_BYTES)]
        if end < 0 or not line:
            raise DecodeError("HTTP", 0, "no head with a first line of at most 8 KiB")
        size = end + len(_END)
        return cls(line.decode("latin-1"), size, len(data) - size)


class HttpRequest(_Exchange, frozen=True):
    """A request that is no message of a queue manager, such as one of a program."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a whole request."""
        return cls._read(data)


class HttpAnswer(_Exchange, frozen=True):
    """An answer."""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a whole answer."""
        if not data.startswith(_ANSWER):
            raise DecodeError("HTTP", 0, "an answer begins with its version")
        return cls._read(data)
