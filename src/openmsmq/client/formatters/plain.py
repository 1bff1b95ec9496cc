"""The simple formatters: bytes as they are, and JSON."""

from __future__ import annotations

import msgspec

from openmsmq.client.formatters.base import FormatterError
from openmsmq.model.message import BodyType


class BytesFormatter:
    """Leaves bodies alone."""

    name = "bytes"

    def write(self, value: object) -> tuple[int, bytes]:
        """Return the bytes, without a body type: that is what writing to a body stream gives."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise FormatterError(f"{type(value).__name__} where bytes are needed")
        return BodyType.UNSPECIFIED, bytes(value)

    def read(self, body_type: int, body: bytes) -> object:  # noqa: ARG002 -- any type is bytes
        """Return the bytes."""
        return body


class JsonFormatter:
    """JSON in UTF-8, as .NET applications write it to the body stream."""

    name = "json"

    def write(self, value: object) -> tuple[int, bytes]:
        """Write a value of strings, numbers, lists and dictionaries."""
        try:
            return BodyType.UNSPECIFIED, msgspec.json.encode(value)
        except (
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
            msgspec.MsgspecError,
        ) as error:
            raise FormatterError(f"not a value that JSON can hold: {error}") from None

    def read(self, body_type: int, body: bytes) -> object:
        """Read a body; text that came as UTF-16 (VT_BSTR) is JSON too."""
        try:
            if body_type == BodyType.TEXT:
                return msgspec.json.decode(body.decode("utf-16-le"))
            return msgspec.json.decode(body)
        except (ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise FormatterError(f"the body is no JSON: {error}") from None
