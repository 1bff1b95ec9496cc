"""The queue names inside a UserHeader, in their eight encodings. [MQMQ 2.2.19.2, 2.2.18.1.4-5]

The type of the value is its encoding: a destination that is a `DirectName` sets DQ to 7.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import need

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")


class SameAsAdmin(msgspec.Struct, frozen=True, gc=False):
    """Responses go where the administration queue is; takes no bytes."""


class PrivateOnSource(msgspec.Struct, frozen=True, gc=False):
    """A private queue of the queue manager that sent the message."""

    number: int


class PrivateOnDestination(msgspec.Struct, frozen=True, gc=False):
    """A private queue of the queue manager the message goes to."""

    number: int


class PrivateOnAdminHost(msgspec.Struct, frozen=True, gc=False):
    """A private queue of the queue manager that holds the administration queue."""

    number: int


class PublicName(msgspec.Struct, frozen=True, gc=False):
    """A queue known to the directory."""

    queue: Guid


class PrivateName(msgspec.Struct, frozen=True, gc=False):
    """A private queue of any queue manager."""

    manager: Guid
    number: int


class DirectName(msgspec.Struct, frozen=True, gc=False):
    r"""A direct format name as it travels, such as `OS:host\queue`: without `DIRECT=`."""

    text: str


QueueName: TypeAlias = (
    SameAsAdmin
    | PrivateOnSource
    | PrivateOnDestination
    | PrivateOnAdminHost
    | PublicName
    | PrivateName
    | DirectName
    | None
)

CODES: Final[dict[type, int]] = {
    type(None): 0,
    SameAsAdmin: 1,
    PrivateOnSource: 2,
    PrivateOnDestination: 3,
    PrivateOnAdminHost: 4,
    PublicName: 5,
    PrivateName: 6,
    DirectName: 7,
}
_FIXED_SIZES: Final = (0, 0, 4, 4, 4, 16, 20)
_DIRECT: Final = 7


def size_of(code: int, data: bytes, offset: int, where: str) -> int:
    """How many bytes the name at `offset` has, without its padding; they are there."""
    if code != _DIRECT:
        size = _FIXED_SIZES[code]
    else:
        if offset + 2 > len(data):
            need(data, offset, 2, where)
        size = 2 + (data[offset] | data[offset + 1] << 8)
    if offset + size > len(data):
        need(data, offset, size, where)
    return size


def read(code: int, data: bytes, offset: int, where: str) -> tuple[QueueName, int]:
    """Read the name encoded by `code`; give it and the offset behind it."""
    size = size_of(code, data, offset, where)
    end = offset + size
    if code == _DIRECT:
        return DirectName(_direct_text(data[offset + 2 : end], offset, where)), end
    if code == 5:
        return PublicName(Guid(data[offset:end])), end
    if code == 6:
        return PrivateName(Guid(data[offset : offset + 16]), _number(data, offset + 16)), end
    if code == 3:
        return PrivateOnDestination(_number(data, offset)), end
    if code == 2:
        return PrivateOnSource(_number(data, offset)), end
    if code == 4:
        return PrivateOnAdminHost(_number(data, offset)), end
    return (SameAsAdmin() if code == 1 else None), end


def write(name: QueueName, where: str) -> bytes:
    """Return the bytes of a name, without padding."""
    match name:
        case DirectName(text):
            return _direct_bytes(text, where)
        case PublicName(queue):
            return queue
        case PrivateName(manager, number):
            return manager + _U32.pack(number)
        case PrivateOnSource(number) | PrivateOnDestination(number) | PrivateOnAdminHost(number):
            return _U32.pack(number)
        case _:
            return b""


def describe(name: QueueName) -> str:
    """Say a name for people."""
    match name:
        case DirectName(text):
            return f"DIRECT={text}"
        case PublicName(queue):
            return f"PUBLIC={queue}"
        case PrivateName(manager, number):
            return f"PRIVATE={manager}\\{number:x}"
        case PrivateOnSource(number):
            return f"private queue {number:x} of the source"
        case PrivateOnDestination(number):
            return f"private queue {number:x} of the destination"
        case PrivateOnAdminHost(number):
            return f"private queue {number:x} of the administration queue's host"
        case SameAsAdmin():
            return "same as the administration queue"
        case None:
            return "none"


def _number(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")


def _direct_text(raw: bytes, offset: int, where: str) -> str:
    if len(raw) < 2 or len(raw) & 1:
        raise DecodeError(where, offset, f"a direct name of {len(raw)} bytes; even, 2 or more")
    if raw[-2:] != b"\0\0":
        raise DecodeError(where, offset, "a direct name that does not end in NUL")
    try:
        text = raw[:-2].decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise DecodeError(
            where, offset + 2 + error.start, "a direct name that is not UTF-16"
        ) from None
    if "\0" in text:
        raise DecodeError(where, offset, "a direct name with a NUL inside")
    return text


def _direct_bytes(text: str, where: str) -> bytes:
    raw = utf16.write(text, where)
    if len(raw) > 0xFFFE:
        raise EncodeError(where, f"a direct name of {len(raw)} bytes; at most 65534")
    return _U16.pack(len(raw)) + raw
