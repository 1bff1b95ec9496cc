"""The calls of managing programs and their results, as they stand in stubs. [MQMR 3.1.4]

`lpwszAction` is a string by the text of the specification and a single character by its IDL. We
write and read the string; what cannot be one because two bytes are left is no known action (M-2).
"""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PROPERTIES_MAX_COUNT
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.ndr import Call, Struct, Union
from openmsmq.wire.rpc.ndr_types import (
    U16,
    U32,
    Array,
    Number,
    Pointer,
    Reader,
    Sized,
    WideString,
    Writer,
)
from openmsmq.wire.rpc.queue_format import QUEUE_FORMAT, QueueFormat
from openmsmq.wire.rpc.variants import PROPVARIANT, Variant

INTERFACE: Final = Guid.parse("41208ee0-e970-11d1-9b9e-00e02c064c39")
VERSION: Final = (1, 0)
ACTION_MAX_CHARACTERS: Final = 64
"""The longest action has 16 characters; what is longer is none."""


class Operation(enum.IntEnum):
    """The numbers of the methods. [MQMR 3.1.4]"""

    GET_INFO = 0
    ACTION = 1


class ObjectType(enum.IntEnum):
    """What is managed. [MQMR 2.2.2.1]"""

    MACHINE = 1
    QUEUE = 2
    SESSION = 3


class ManagedObject(msgspec.Struct, frozen=True, gc=False):
    """The computer, or one of its queues. [MQMR 2.2.1.2]"""

    kind: int
    target: QueueFormat | int | None


class GetInfo(msgspec.Struct, frozen=True):
    """Ask for properties. [MQMR 3.1.4.1]"""

    target: ManagedObject
    properties: tuple[int, ...]
    values: tuple[Variant, ...]


class Info(msgspec.Struct, frozen=True):
    """Properties, in the order in which they were asked for. [MQMR 3.1.4.1]"""

    values: tuple[Variant, ...]
    result: int


class Action(msgspec.Struct, frozen=True):
    """Do something. None is an action that is no text. [MQMR 3.1.4.2]"""

    target: ManagedObject
    action: str | None


class Done(msgspec.Struct, frozen=True, gc=False):
    """How it went."""

    result: int


class _ActionText(WideString):
    """The name of an action."""

    def read(self, reader: Reader) -> Any:
        """Read the text, if there can be one."""
        if reader.end - reader.at <= 3:
            reader.need(2)
            reader.at = reader.end
            return None
        return super().read(reader)

    def write(self, writer: Writer, value: Any) -> None:
        """Write the text, or a single character that is none."""
        if value is None:
            writer.out += b"\0\0"
        else:
            super().write(writer, value)


def _asked(
    target: ManagedObject, properties: tuple[int, ...], values: tuple[Variant, ...]
) -> GetInfo:
    if len(values) != len(properties):
        problem = f"{len(values)} values for {len(properties)} properties"
        raise DecodeError("R_QMMgmtGetInfo", 0, problem)
    return GetInfo(target, properties, values)


MANAGED_OBJECT: Final = Struct(
    ManagedObject,
    ("kind", U16),
    union=(
        "target",
        Union(
            "kind",
            U16,
            {
                ObjectType.MACHINE: U32,
                ObjectType.QUEUE: Pointer(QUEUE_FORMAT),
                ObjectType.SESSION: U32,
            },
        ),
    ),
)
"""The type of MGMT_OBJECT. [MQMR 2.2.1.2]"""

_VALUES: Final = Array(PROPVARIANT, PROPERTIES_MAX_COUNT)

GET_INFO: Final = Call(
    _asked,
    ("target", MANAGED_OBJECT),
    (
        "properties",
        Sized(Number("I", 1, PROPERTIES_MAX_COUNT), Array(U32, PROPERTIES_MAX_COUNT)),
    ),
    ("values", _VALUES),
)
INFO: Final = Call(Info, ("values", _VALUES), ("result", U32))
ACTION: Final = Call(
    Action, ("target", MANAGED_OBJECT), ("action", _ActionText(ACTION_MAX_CHARACTERS))
)
DONE: Final = Call(Done, ("result", U32))
