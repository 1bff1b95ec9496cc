"""The ActiveX formatter: one VARIANT type for each simple type. [MQMQ 2.2.12, MC-MQAC 3.17.4.1.22]

Text is VT_BSTR: UTF-16 without a terminator. Bytes are VT_VECTOR | VT_UI1. A body of a type that
this formatter cannot turn into a value, serialized objects among them, is given as its bytes.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Final

from openmsmq.client.formatters.base import FormatterError
from openmsmq.model.message import BodyType

_ARRAY_OF_BYTES: Final = 0x2011
"""VT_ARRAY | VT_UI1: byte arrays as COM writes them."""

_CURRENCY_SCALE: Final = 10_000
_DAY_ZERO: Final = datetime(1899, 12, 30)  # noqa: DTZ001 -- these dates have no time zone
_DAY_MS: Final = 86_400_000
_TRUE: Final = b"\xff\xff"
_FALSE: Final = b"\0\0"

_FIXED: Final = {
    BodyType.INT8: struct.Struct("<b"),
    BodyType.UINT8: struct.Struct("<B"),
    BodyType.INT16: struct.Struct("<h"),
    BodyType.UINT16: struct.Struct("<H"),
    BodyType.INT32: struct.Struct("<i"),
    BodyType.UINT32: struct.Struct("<I"),
    BodyType.INT64: struct.Struct("<q"),
    BodyType.UINT64: struct.Struct("<Q"),
    BodyType.FLOAT32: struct.Struct("<f"),
    BodyType.FLOAT64: struct.Struct("<d"),
}
_INT64: Final = _FIXED[BodyType.INT64]
_FLOAT64: Final = _FIXED[BodyType.FLOAT64]


class ActiveXFormatter:
    """Writes simple values as COM components and `ActiveXMessageFormatter` expect them."""

    name = "active_x"

    def write(self, value: object) -> tuple[int, bytes]:
        """Return the body type and the body of a simple value."""
        write = _WRITERS.get(type(value))
        if write is None:
            raise FormatterError(
                f"a body of type {type(value).__name__}: give text, bytes, a number, a Decimal, a "
                "datetime, a UUID or None, or open the queue with formatter='json' or 'xml'"
            )
        return write(value)

    def read(self, body_type: int, body: bytes) -> object:
        """Read a body by its type; what has no simple type is given as bytes."""
        read = _READERS.get(body_type)
        if read is None:
            return body
        return read(body_type, body)


def _write_text(value: str) -> tuple[int, bytes]:
    try:
        return 8, value.encode("utf-16-le")
    except UnicodeEncodeError as error:
        raise FormatterError(f"the text cannot be written in UTF-16: {error}") from None


def _write_bytes(value: bytes | bytearray | memoryview) -> tuple[int, bytes]:
    return 0x1011, value if type(value) is bytes else bytes(value)


def _write_int(value: int) -> tuple[int, bytes]:
    for body_type in (BodyType.INT32, BodyType.INT64, BodyType.UINT64):
        try:
            return body_type, _FIXED[body_type].pack(value)
        except struct.error:
            continue
    raise FormatterError(f"{value} exceeds 64 bits")


def _write_decimal(value: Decimal) -> tuple[int, bytes]:
    try:
        scaled = value.scaleb(4)
        if scaled != scaled.to_integral_value():
            raise FormatterError(f"{value} has more than 4 digits after the point: round it first")
        return BodyType.CURRENCY, _INT64.pack(int(scaled))
    except (InvalidOperation, struct.error, ValueError, OverflowError):
        raise FormatterError(f"{value} does not fit a currency value of 64 bits") from None


def _write_datetime(value: datetime) -> tuple[int, bytes]:
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    # Whole milliseconds, as .NET has it; before day zero the fraction still counts forward.
    milliseconds = round((value - _DAY_ZERO) / timedelta(milliseconds=1))
    days, rest = divmod(milliseconds, _DAY_MS)
    fraction = rest / _DAY_MS
    return BodyType.DATE, _FLOAT64.pack(days - fraction if days < 0 else days + fraction)


def _write_uuid(value: uuid.UUID) -> tuple[int, bytes]:
    return BodyType.GUID, value.bytes_le


_WRITERS: Final[dict[type, Callable[..., tuple[int, bytes]]]] = {
    str: _write_text,
    bytes: _write_bytes,
    bytearray: _write_bytes,
    memoryview: _write_bytes,
    bool: lambda value: (BodyType.BOOLEAN, _TRUE if value else _FALSE),
    int: _write_int,
    float: lambda value: (BodyType.FLOAT64, _FLOAT64.pack(value)),
    Decimal: _write_decimal,
    datetime: _write_datetime,
    uuid.UUID: _write_uuid,
    type(None): lambda _: (BodyType.NULL, b""),
}


def _wrong_size(body_type: int, body: bytes) -> FormatterError:
    return FormatterError(f"a body of type {body_type} cannot have {len(body)} bytes")


def _read_fixed(body_type: int, body: bytes) -> object:
    layout = _FIXED[BodyType(body_type)]
    if len(body) != layout.size:
        raise _wrong_size(body_type, body)
    return layout.unpack(body)[0]


def _read_wide_text(body_type: int, body: bytes) -> str:
    try:
        text = body.decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise FormatterError(f"the text in the body is not UTF-16: {error}") from None
    return text.removesuffix("\0") if body_type == BodyType.WIDE_TEXT else text


def _read_narrow_text(body_type: int, body: bytes) -> str:  # noqa: ARG001 -- as all readers
    return body.decode("latin-1").removesuffix("\0")


def _read_boolean(body_type: int, body: bytes) -> bool:
    if len(body) not in (1, 2, 4):
        raise _wrong_size(body_type, body)
    return any(body)


def _read_currency(body_type: int, body: bytes) -> Decimal:
    if len(body) != _INT64.size:
        raise _wrong_size(body_type, body)
    return Decimal(_INT64.unpack(body)[0]) / _CURRENCY_SCALE


def _read_date(body_type: int, body: bytes) -> datetime:
    if len(body) != _FLOAT64.size:
        raise _wrong_size(body_type, body)
    (value,) = _FLOAT64.unpack(body)
    if not math.isfinite(value):
        raise FormatterError(f"{value} is no date")
    fraction, days = math.modf(value)
    try:
        return _DAY_ZERO + timedelta(days=days, milliseconds=round(abs(fraction) * _DAY_MS))
    except OverflowError:
        raise FormatterError(f"{value} days from 1899 is no date that we can hold") from None


def _read_guid(body_type: int, body: bytes) -> uuid.UUID:
    if len(body) != 16:
        raise _wrong_size(body_type, body)
    return uuid.UUID(bytes_le=body)


_READERS: Final[dict[int, Callable[[int, bytes], object]]] = {
    **dict.fromkeys(_FIXED, _read_fixed),
    BodyType.TEXT: _read_wide_text,
    BodyType.WIDE_TEXT: _read_wide_text,
    BodyType.NARROW_TEXT: _read_narrow_text,
    BodyType.BOOLEAN: _read_boolean,
    BodyType.CURRENCY: _read_currency,
    BodyType.DATE: _read_date,
    BodyType.GUID: _read_guid,
    BodyType.NULL: lambda _type, _body: None,
    _ARRAY_OF_BYTES: lambda _type, body: body,
}
