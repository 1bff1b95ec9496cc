"""Property values packed by their variant type, and the type each property has.

[MQCN 2.2.2, 2.2.3; MQMQ 2.3.1, 2.3.2, 2.3.13]
"""

from __future__ import annotations

import enum
import struct
from typing import Final, TypeAlias

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import need

PropertyValue: TypeAlias = (
    bool | int | str | bytes | tuple[int, ...] | tuple[str, ...] | tuple[Guid, ...]
)
"""A GUID is a `Guid`, which is bytes; a blob is other bytes."""


class VariantType(enum.IntEnum):
    """How a value is packed."""

    I2 = 2
    I4 = 3
    BOOL = 11
    I1 = 16
    UI1 = 17
    UI2 = 18
    UI4 = 19
    I8 = 20
    UI8 = 21
    LPWSTR = 31
    BLOB = 65
    CLSID = 72
    UI1_VECTOR = 0x1011
    UI4_VECTOR = 0x1013
    LPWSTR_VECTOR = 0x101F
    CLSID_VECTOR = 0x1048


_NUMBERS: Final = {
    VariantType.I1: struct.Struct("<b"),
    VariantType.UI1: struct.Struct("<B"),
    VariantType.I2: struct.Struct("<h"),
    VariantType.UI2: struct.Struct("<H"),
    VariantType.I4: struct.Struct("<i"),
    VariantType.UI4: struct.Struct("<I"),
    VariantType.I8: struct.Struct("<q"),
    VariantType.UI8: struct.Struct("<Q"),
}
_U32: Final = struct.Struct("<I")
_BYTE_COUNTED: Final = (VariantType.BLOB, VariantType.UI1_VECTOR)
VECTOR_MAX_COUNT: Final = 65_535
"""Real vectors have a few elements. Without this bound, a body could turn into many times its size
of tiny texts."""
_FALSE: Final = b"\0\0"
_TRUE: Final = b"\xff\xff"


def read(kind: VariantType, data: bytes, offset: int, where: str) -> tuple[PropertyValue, int]:
    """Read the value at `offset`; give it and the offset behind it."""
    number = _NUMBERS.get(kind)
    if number is not None:
        need(data, offset, number.size, where)
        return number.unpack_from(data, offset)[0], offset + number.size
    if kind is VariantType.LPWSTR:
        return utf16.read(data, offset, len(data), where)
    if kind is VariantType.CLSID:
        need(data, offset, 16, where)
        return Guid(data[offset : offset + 16]), offset + 16
    if kind is VariantType.BOOL:
        need(data, offset, 2, where)
        return _read_bool(data[offset : offset + 2], offset, where), offset + 2
    need(data, offset, 4, where)
    count = _U32.unpack_from(data, offset)[0]
    return _read_counted(kind, count, data, offset + 4, where)


def _read_bool(raw: bytes, offset: int, where: str) -> bool:
    if raw not in (_FALSE, _TRUE):
        raise DecodeError(where, offset, f"truth value {raw.hex()}, not ffff or 0000")
    return raw == _TRUE


def _read_counted(
    kind: VariantType, count: int, data: bytes, offset: int, where: str
) -> tuple[PropertyValue, int]:
    if kind in _BYTE_COUNTED:
        need(data, offset, count, where)
        return data[offset : offset + count], offset + count
    if count > VECTOR_MAX_COUNT:
        raise DecodeError(where, offset - 4, f"{count} elements; at most {VECTOR_MAX_COUNT}")
    if kind is VariantType.UI4_VECTOR:
        end = offset + 4 * count
        need(data, end, 0, where)
        return struct.unpack_from(f"<{count}I", data, offset), end
    if kind is VariantType.CLSID_VECTOR:
        end = offset + 16 * count
        need(data, end, 0, where)
        return tuple(Guid(data[at : at + 16]) for at in range(offset, end, 16)), end
    texts = []
    for _ in range(count):
        text, offset = utf16.read(data, offset, len(data), where)
        texts.append(text)
    return tuple(texts), offset


def write(kind: VariantType, value: PropertyValue, where: str) -> bytes:
    """Return the bytes of a value, which must fit its type."""
    raw = _write(kind, value, where)
    if raw is None:
        raise EncodeError(where, f"{value!r} is no value of type {kind.name}")
    return raw


def _write(kind: VariantType, value: PropertyValue, where: str) -> bytes | None:
    number = _NUMBERS.get(kind)
    match value:
        case bool():
            return (_TRUE if value else _FALSE) if kind is VariantType.BOOL else None
        case int():
            return None if number is None else _pack(number, value)
        case str():
            return utf16.write(value, where) if kind is VariantType.LPWSTR else None
        case Guid():
            return value if kind is VariantType.CLSID else None
        case bytes():
            return _U32.pack(len(value)) + value if kind in _BYTE_COUNTED else None
        case _:
            return _write_vector(kind, value, where)


def _pack(number: struct.Struct, value: int) -> bytes | None:
    try:
        return number.pack(value)
    except struct.error:
        return None


def _write_vector(kind: VariantType, values: tuple[PropertyValue, ...], where: str) -> bytes | None:
    element = _ELEMENTS.get(kind)
    if element is None:
        return None
    if len(values) > VECTOR_MAX_COUNT:
        raise EncodeError(where, f"{len(values)} elements; at most {VECTOR_MAX_COUNT}")
    parts = [write(element, value, where) for value in values]
    return _U32.pack(len(parts)) + b"".join(parts)


_ELEMENTS: Final = {
    VariantType.UI4_VECTOR: VariantType.UI4,
    VariantType.LPWSTR_VECTOR: VariantType.LPWSTR,
    VariantType.CLSID_VECTOR: VariantType.CLSID,
}

PROPERTIES: Final[dict[int, tuple[str, VariantType]]] = {
    101: ("PROPID_Q_INSTANCE", VariantType.CLSID),
    102: ("PROPID_Q_TYPE", VariantType.CLSID),
    103: ("PROPID_Q_PATHNAME", VariantType.LPWSTR),
    104: ("PROPID_Q_JOURNAL", VariantType.UI1),
    105: ("PROPID_Q_QUOTA", VariantType.UI4),
    106: ("PROPID_Q_BASEPRIORITY", VariantType.I2),
    107: ("PROPID_Q_JOURNAL_QUOTA", VariantType.UI4),
    108: ("PROPID_Q_LABEL", VariantType.LPWSTR),
    109: ("PROPID_Q_CREATE_TIME", VariantType.I4),
    110: ("PROPID_Q_MODIFY_TIME", VariantType.I4),
    111: ("PROPID_Q_AUTHENTICATE", VariantType.UI1),
    112: ("PROPID_Q_PRIV_LEVEL", VariantType.UI4),
    113: ("PROPID_Q_TRANSACTION", VariantType.UI1),
    114: ("PROPID_Q_SCOPE", VariantType.UI1),
    115: ("PROPID_Q_QMID", VariantType.CLSID),
    116: ("PROPID_Q_PARTITIONID", VariantType.CLSID),
    117: ("PROPID_Q_SEQNUM", VariantType.BLOB),
    118: ("PROPID_Q_HASHKEY", VariantType.UI4),
    119: ("PROPID_Q_LABEL_HASHKEY", VariantType.UI4),
    121: ("PROPID_Q_FULL_PATH", VariantType.LPWSTR),
    123: ("PROPID_Q_NAME_SUFFIX", VariantType.LPWSTR),
    124: ("PROPID_Q_PATHNAME_DNS", VariantType.LPWSTR),
    125: ("PROPID_Q_MULTICAST_ADDRESS", VariantType.LPWSTR),
    126: ("PROPID_Q_ADS_PATH", VariantType.LPWSTR),
    201: ("PROPID_QM_SITE_ID", VariantType.CLSID),
    202: ("PROPID_QM_MACHINE_ID", VariantType.CLSID),
    203: ("PROPID_QM_PATHNAME", VariantType.LPWSTR),
    205: ("PROPID_QM_ENCRYPTION_PK", VariantType.UI1_VECTOR),
    206: ("PROPID_QM_ADDRESS", VariantType.BLOB),
    207: ("PROPID_QM_CNS", VariantType.CLSID_VECTOR),
    208: ("PROPID_QM_OUTFRS", VariantType.CLSID_VECTOR),
    209: ("PROPID_QM_INFRS", VariantType.CLSID_VECTOR),
    210: ("PROPID_QM_SERVICE", VariantType.UI4),
    211: ("PROPID_QM_PARTITIONID", VariantType.CLSID),
    212: ("PROPID_QM_HASHKEY", VariantType.UI4),
    213: ("PROPID_QM_SEQNUM", VariantType.BLOB),
    214: ("PROPID_QM_QUOTA", VariantType.UI4),
    215: ("PROPID_QM_JOURNAL_QUOTA", VariantType.UI4),
    216: ("PROPID_QM_MACHINE_TYPE", VariantType.LPWSTR),
    217: ("PROPID_QM_CREATE_TIME", VariantType.I4),
    218: ("PROPID_QM_MODIFY_TIME", VariantType.I4),
    219: ("PROPID_QM_FOREIGN", VariantType.UI1),
    220: ("PROPID_QM_OS", VariantType.UI4),
    221: ("PROPID_QM_FULL_PATH", VariantType.LPWSTR),
    222: ("PROPID_QM_SITE_IDS", VariantType.CLSID_VECTOR),
    223: ("PROPID_QM_OUTFRS_DN", VariantType.LPWSTR_VECTOR),
    224: ("PROPID_QM_INFRS_DN", VariantType.LPWSTR_VECTOR),
    227: ("PROPID_QM_SERVICE_ROUTING", VariantType.UI1),
    228: ("PROPID_QM_SERVICE_DSSERVER", VariantType.UI1),
    229: ("PROPID_QM_SERVICE_DEPCLIENTS", VariantType.UI1),
    231: ("PROPID_QM_ENCRYPTION_PK_BASE", VariantType.UI1_VECTOR),
    232: ("PROPID_QM_ENCRYPTION_PK_ENHANCED", VariantType.UI1_VECTOR),
    233: ("PROPID_QM_PATHNAME_DNS", VariantType.LPWSTR),
    234: ("PROPID_QM_OBJ_SECURITY", VariantType.BLOB),
    237: ("PROPID_QM_SECURITY_INFORMATION", VariantType.UI4),
    238: ("PROPID_QM_ENCRYPT_PKS", VariantType.BLOB),
    239: ("PROPID_QM_SIGN_PKS", VariantType.BLOB),
    241: ("PROPID_QM_OWNER_SID", VariantType.BLOB),
    242: ("PROPID_QM_GROUP_IN_CLUSTER", VariantType.UI1),
    1101: ("PROPID_Q_SECURITY", VariantType.BLOB),
    1102: ("PROPID_Q_OBJ_SECURITY", VariantType.BLOB),
    1103: ("PROPID_Q_SECURITY_INFORMATION", VariantType.UI4),
    1201: ("PROPID_QM_SECURITY", VariantType.BLOB),
    1202: ("PROPID_QM_SIGN_PK", VariantType.BLOB),
    1203: ("PROPID_QM_ENCRYPT_PK", VariantType.BLOB),
    1205: ("PROPID_QM_UPGRADE_DACL", VariantType.BLOB),
    1401: ("PROPID_D_SEQNUM", VariantType.BLOB),
    1402: ("PROPID_D_PARTITIONID", VariantType.CLSID),
    1403: ("PROPID_D_SCOPE", VariantType.UI1),
    1404: ("PROPID_D_OBJTYPE", VariantType.UI1),
    1405: ("PROPID_D_IDENTIFIER", VariantType.CLSID),
}
"""Name and type of each property of queues, queue managers and deleted objects, by identifier."""
