"""What other computers tell of themselves and of their queues. [MQMR 3.1.4.1, MQMQ 2.3.11, 2.3.12]

A property that a computer does not have, or has in another shape than the specification says, is
as if it had not been told.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

from openmsmq.wire.rpc.variants import Variant


class MachineProperty(enum.IntEnum):
    """Properties of a computer. [MQMQ 2.3.11]"""

    ACTIVE_QUEUES = 1
    PRIVATE_QUEUES = 2
    DIRECTORY_SERVER = 3
    CONNECTED = 4
    TYPE = 5
    BYTES_IN_ALL_QUEUES = 6


class QueueProperty(enum.IntEnum):
    """Properties of a queue. [MQMQ 2.3.12]"""

    PATH_NAME = 1
    FORMAT_NAME = 2
    TYPE = 3
    LOCATION = 4
    TRANSACTIONAL = 5
    FOREIGN = 6
    MESSAGE_COUNT = 7
    MESSAGE_BYTES = 8
    JOURNAL_MESSAGE_COUNT = 9
    JOURNAL_MESSAGE_BYTES = 10
    STATE = 11
    NEXT_HOPS = 12


QUEUE_PROPERTIES: Final = tuple(QueueProperty)
MACHINE_PROPERTIES: Final = (
    MachineProperty.CONNECTED,
    MachineProperty.TYPE,
    MachineProperty.DIRECTORY_SERVER,
    MachineProperty.BYTES_IN_ALL_QUEUES,
)


class RemoteMachine(msgspec.Struct, frozen=True):
    """What a computer tells of its queue manager; None is what it does not tell."""

    software: str | None
    online: bool | None
    directory_server: str | None
    message_bytes: int | None


class RemoteQueue(msgspec.Struct, frozen=True):
    """What a computer tells of a queue; None is what it does not tell."""

    path_name: str | None
    format_name: str | None
    kind: str | None
    """`PUBLIC`, `PRIVATE`, `MACHINE` or `CONNECTOR`."""
    is_local: bool | None
    """Whether it is there, and does not lead to another computer."""
    transactional: bool | None
    message_count: int | None
    message_bytes: int | None
    journal_message_count: int | None
    journal_message_bytes: int | None
    state: str | None
    next_hops: tuple[str, ...]


def machine_of(values: Sequence[Variant]) -> RemoteMachine:
    """Make sense of the answer to `MACHINE_PROPERTIES`."""
    connected, software, server, size = values
    state = _text(connected)
    return RemoteMachine(
        _text(software),
        None if state is None else state.upper() == "CONNECTED",
        _text(server),
        _number(size),
    )


def queue_of(values: Sequence[Variant]) -> RemoteQueue:
    """Make sense of the answer to `QUEUE_PROPERTIES`."""
    told = dict(zip(QUEUE_PROPERTIES, values, strict=True))
    location = _text(told[QueueProperty.LOCATION])
    transactional = _text(told[QueueProperty.TRANSACTIONAL])
    return RemoteQueue(
        _text(told[QueueProperty.PATH_NAME]),
        _text(told[QueueProperty.FORMAT_NAME]),
        _text(told[QueueProperty.TYPE]),
        None if location is None else location.upper() == "LOCAL",
        None if transactional in (None, "UNKNOWN") else transactional == "YES",
        _number(told[QueueProperty.MESSAGE_COUNT]),
        _number(told[QueueProperty.MESSAGE_BYTES]),
        _number(told[QueueProperty.JOURNAL_MESSAGE_COUNT]),
        _number(told[QueueProperty.JOURNAL_MESSAGE_BYTES]),
        _text(told[QueueProperty.STATE]),
        tuple(texts_of(told[QueueProperty.NEXT_HOPS])),
    )


def texts_of(found: Variant) -> list[str]:
    """Return a vector of texts; empty if it is none."""
    value = found.value if isinstance(found.value, tuple) else ()
    return [each for each in value if isinstance(each, str) and each]


def _text(found: Variant) -> str | None:
    return found.value if isinstance(found.value, str) and found.value else None


def _number(found: Variant) -> int | None:
    return found.value if isinstance(found.value, int) else None
