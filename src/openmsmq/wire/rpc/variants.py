"""PROPVARIANT: values of properties in calls, with their type before them. [MQMQ 2.2.12 - 2.2.17]

A variant can be a vector of variants. Those have at most one such vector more (which the history
of connections needs), so that nobody can nest them for ever.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire.fields.variants import VariantType
from openmsmq.wire.rpc.ndr import Struct, Union
from openmsmq.wire.rpc.ndr_types import (
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Array,
    ByteArray,
    Counted,
    Nothing,
    Octets,
    Pointer,
    Type,
    WideString,
)
from openmsmq.wire.rpc.queue_format import GUID


class VariantTag(enum.IntEnum):
    """The type of a value: those that bodies of packets have, too, and those of calls only.

    [MQMQ 2.2.12]
    """

    EMPTY = 0
    NULL = 1
    I2 = VariantType.I2
    I4 = VariantType.I4
    BOOL = VariantType.BOOL
    I1 = VariantType.I1
    UI1 = VariantType.UI1
    UI2 = VariantType.UI2
    UI4 = VariantType.UI4
    I8 = VariantType.I8
    UI8 = VariantType.UI8
    LPWSTR = VariantType.LPWSTR
    BLOB = VariantType.BLOB
    CLSID = VariantType.CLSID
    I4_VECTOR = 0x1003
    VARIANT_VECTOR = 0x100C
    UI1_VECTOR = VariantType.UI1_VECTOR
    UI2_VECTOR = 0x1012
    UI4_VECTOR = VariantType.UI4_VECTOR
    UI8_VECTOR = 0x1015
    LPWSTR_VECTOR = VariantType.LPWSTR_VECTOR
    CLSID_VECTOR = VariantType.CLSID_VECTOR


VARIANT_DEPTH: Final = 2
"""How deep vectors of variants are nested."""
VECTOR_MAX_COUNT: Final = 65_536
"""Elements of a vector: names of all queues of a large computer fit."""
TEXT_MAX_CHARACTERS: Final = 65_535

Value: TypeAlias = (
    int
    | str
    | bytes
    | tuple[int, ...]
    | tuple[str | None, ...]
    | tuple[Guid, ...]
    | tuple["Variant", ...]
    | None
)

_RESERVED: Final = bytes(6)


class Variant(msgspec.Struct, frozen=True):
    """A value and its type. [MQMQ 2.2.13]"""

    tag: int
    value: Value = None

    @property
    def reserved(self) -> bytes:
        """What nobody looks at."""
        return _RESERVED


EMPTY: Final = Variant(VariantTag.EMPTY)
NULL: Final = Variant(VariantTag.NULL)


def _made(tag: int, reserved: bytes, value: Value) -> Variant:
    del reserved
    return Variant(tag, value)


def _vector(element: Type) -> Counted:
    return Counted(Array(element, VECTOR_MAX_COUNT))


_TEXT: Final = Pointer(WideString(TEXT_MAX_CHARACTERS))
_BYTES: Final = Counted(ByteArray(PACKET_MAX_BYTES))
_PLAIN_ARMS: Final[dict[int, Type]] = {
    VariantTag.EMPTY: Nothing(),
    VariantTag.NULL: Nothing(),
    VariantTag.I1: I8,
    VariantTag.UI1: U8,
    VariantTag.I2: I16,
    VariantTag.UI2: U16,
    VariantTag.I4: I32,
    VariantTag.UI4: U32,
    VariantTag.I8: I64,
    VariantTag.UI8: U64,
    VariantTag.BOOL: I16,
    VariantTag.CLSID: Pointer(GUID),
    VariantTag.BLOB: _BYTES,
    VariantTag.LPWSTR: _TEXT,
    VariantTag.UI1_VECTOR: _BYTES,
    VariantTag.UI2_VECTOR: _vector(U16),
    VariantTag.I4_VECTOR: _vector(I32),
    VariantTag.UI4_VECTOR: _vector(U32),
    VariantTag.UI8_VECTOR: _vector(U64),
    VariantTag.CLSID_VECTOR: _vector(GUID),
    VariantTag.LPWSTR_VECTOR: _vector(_TEXT),
}


def _variant(depth: int) -> Struct:
    arms = dict(_PLAIN_ARMS)
    if depth:
        arms[VariantTag.VARIANT_VECTOR] = _vector(_variant(depth - 1))
    return Struct(
        _made,
        ("tag", U16),
        ("reserved", Octets(6, 1)),
        union=("value", Union("tag", U16, arms)),
    )


PROPVARIANT: Final = _variant(VARIANT_DEPTH)
"""The type of the structure. [MQMQ 2.2.13]"""
