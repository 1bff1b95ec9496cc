"""The calls of remote readers and their results, as they stand in stubs. [MQRR 3.1.4]"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import PACKET_MAX_BYTES, REMOTE_HEADERS_MAX_BYTES
from openmsmq.wire.rpc.ndr import Call, Struct
from openmsmq.wire.rpc.ndr_types import (
    I32,
    U8,
    U16,
    U32,
    U64,
    Array,
    ByteArray,
    Counted,
    Number,
    Octets,
    Sized,
)
from openmsmq.wire.rpc.queue_format import GUID, QUEUE_FORMAT, QueueFormat

INTERFACE: Final = Guid.parse("1a9134dd-7b39-45ba-ad88-44d01ca47f28")
VERSION: Final = (1, 0)
PROPAGATION_TOKEN_MAX_BYTES: Final = 131_072
"""What the interface allows for the token of a transaction. [MQRR 3.1.4.12]"""
SECTION_MAX_BYTES: Final = PACKET_MAX_BYTES + REMOTE_HEADERS_MAX_BYTES
SECTION_MAX_COUNT: Final = 2
"""A message comes whole, or in two parts. [MQRR 2.2.6]"""
CONTEXT_BYTES: Final = 20
NO_CONTEXT: Final = bytes(CONTEXT_BYTES)
"""The handle of nothing: what a closed one becomes."""


class Operation(enum.IntEnum):
    """The numbers of the methods; 1 is not used. [MQRR 3.1.4]"""

    GET_SERVER_PORT = 0
    OPEN_QUEUE = 2
    CLOSE_QUEUE = 3
    CREATE_CURSOR = 4
    CLOSE_CURSOR = 5
    PURGE_QUEUE = 6
    START_RECEIVE = 7
    CANCEL_RECEIVE = 8
    END_RECEIVE = 9
    MOVE_MESSAGE = 10
    OPEN_QUEUE_FOR_MOVE = 11
    ENLIST_REMOTE_TRANSACTION = 12
    START_TRANSACTIONAL_RECEIVE = 13
    SET_USER_ACKNOWLEDGEMENT_CLASS = 14
    END_TRANSACTIONAL_RECEIVE = 15


class Action(enum.IntEnum):
    """What is read, and whether it stays (`ulAction`). [MQRR 3.1.4.7]"""

    RECEIVE = 0x0000_0000
    PEEK_CURRENT = 0x8000_0000
    PEEK_NEXT = 0x8000_0001
    LOOKUP_PEEK_CURRENT = 0x4000_0010
    LOOKUP_PEEK_NEXT = 0x4000_0011
    LOOKUP_PEEK_PREVIOUS = 0x4000_0012
    LOOKUP_RECEIVE_CURRENT = 0x4000_0020
    LOOKUP_RECEIVE_NEXT = 0x4000_0021
    LOOKUP_RECEIVE_PREVIOUS = 0x4000_0022


class Verdict(enum.IntEnum):
    """How a receive ends (`dwAck`). [MQRR 3.1.4.9]"""

    NACK = 1
    ACK = 2


class SectionType(enum.IntEnum):
    """Which part of a message a section is. [MQRR 2.2.7]"""

    FULL_PACKET = 0
    BINARY_FIRST = 1
    BINARY_SECOND = 2
    SRMP_FIRST = 3
    SRMP_SECOND = 4


class Section(msgspec.Struct, frozen=True, gc=False):
    """A part of a message; `size_alloc` is its size with the whole body. [MQRR 2.2.6]"""

    kind: int
    size_alloc: int
    data: bytes


class Standing(msgspec.Struct, frozen=True, gc=False):
    """What the queue knows of a message beside its packet (SubqueueHeader). [MQRR 2.2.5.3]

    Its class of acknowledgment has a place that does not fit its own description; as nobody can
    set one without a transaction, it is always zero (R-11). The time of the last move is written
    in seconds: milliseconds do not fit (R-10).
    """

    abort_count: int = 0
    move_count: int = 0
    moved_time_s: int = 0
    subqueue: str = ""


class Nothing(msgspec.Struct, frozen=True, gc=False):
    """No parameters."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """Nothing but how it went."""

    result: int


class Port(msgspec.Struct, frozen=True, gc=False):
    """The port of the server. [MQRR 3.1.4.1]"""

    port: int


class OpenQueue(msgspec.Struct, frozen=True, gc=False):
    """Open a queue, or one that messages are moved to. [MQRR 3.1.4.2, 3.1.4.11]"""

    name: QueueFormat
    access: int
    share_mode: int
    client: Guid
    is_non_routing_server: int
    major: int
    minor: int
    build: int
    is_workgroup: int


class Opened(msgspec.Struct, frozen=True, gc=False):
    """The handle of an open queue. [MQRR 3.1.4.2]"""

    context: bytes


class OpenedForMove(msgspec.Struct, frozen=True, gc=False):
    """The handle of an open queue, and what it is called as the target of a move.

    [MQRR 3.1.4.11]
    """

    move_context: int
    context: bytes


class OfQueue(msgspec.Struct, frozen=True, gc=False):
    """Something about an open queue: close, purge, or make a cursor. [MQRR 3.1.4.3, 4, 6]"""

    context: bytes


class Closed(msgspec.Struct, frozen=True, gc=False):
    """What is left of a handle. [MQRR 3.1.4.3]"""

    context: bytes
    result: int


class CursorMade(msgspec.Struct, frozen=True, gc=False):
    """A cursor. [MQRR 3.1.4.4]"""

    cursor: int
    result: int


class CloseCursor(msgspec.Struct, frozen=True, gc=False):
    """Give a cursor up. [MQRR 3.1.4.5]"""

    context: bytes
    cursor: int


class StartReceive(msgspec.Struct, frozen=True, gc=False):
    """Read a message. [MQRR 3.1.4.7]"""

    context: bytes
    lookup_id: int
    cursor: int
    action: int
    timeout_ms: int
    request: int
    max_body_bytes: int
    max_compound_bytes: int


class StartTransactionalReceive(msgspec.Struct, frozen=True, gc=False):
    """Read a message in a transaction. [MQRR 3.1.4.13]"""

    context: bytes
    lookup_id: int
    cursor: int
    action: int
    timeout_ms: int
    request: int
    max_body_bytes: int
    max_compound_bytes: int
    transaction: bytes


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message, or why there is none. [MQRR 3.1.4.7]"""

    arrived_unix_s: int
    sequence_id: int
    sections: tuple[Section, ...]
    result: int


class CancelReceive(msgspec.Struct, frozen=True, gc=False):
    """Do not wait any more. [MQRR 3.1.4.8]"""

    context: bytes
    request: int


class EndReceive(msgspec.Struct, frozen=True, gc=False):
    """Take a message that was read for good, or give it back. [MQRR 3.1.4.9, 3.1.4.15]"""

    context: bytes
    verdict: int
    request: int


class MoveMessage(msgspec.Struct, frozen=True, gc=False):
    """Move a message between a queue and its subqueues. [MQRR 3.1.4.10]"""

    context: bytes
    move_context: int
    lookup_id: int
    transaction: bytes


class EnlistRemoteTransaction(msgspec.Struct, frozen=True, gc=False):
    """Take part in a distributed transaction. [MQRR 3.1.4.12]"""

    transaction: bytes
    token: bytes
    name: QueueFormat


class SetAcknowledgementClass(msgspec.Struct, frozen=True, gc=False):
    """Say what the sender of a rejected message hears. [MQRR 3.1.4.14]"""

    context: bytes
    lookup_id: int
    acknowledgement_class: int


CONTEXT: Final = Octets(CONTEXT_BYTES, 4)
UNIT_OF_WORK: Final = Octets(16, 1)
_VERDICT: Final = Number("I", Verdict.NACK, Verdict.ACK)
_RECEIVE: Final = (
    ("context", CONTEXT),
    ("lookup_id", U64),
    ("cursor", U32),
    ("action", U32),
    ("timeout_ms", U32),
    ("request", U32),
    ("max_body_bytes", U32),
    ("max_compound_bytes", U32),
)
_OPEN: Final = (
    ("name", QUEUE_FORMAT),
    ("access", U32),
    ("share_mode", U32),
    ("client", GUID),
    ("is_non_routing_server", I32),
    ("major", U8),
    ("minor", U8),
    ("build", U16),
    ("is_workgroup", I32),
)

SECTION: Final = Struct(
    Section,
    ("kind", U16),
    ("size_alloc", U32),
    ("data", Counted(ByteArray(SECTION_MAX_BYTES))),
)
"""The type of SectionBuffer. [MQRR 2.2.6]"""

NOTHING: Final = Call(Nothing)
RESULT: Final = Call(Result, ("result", U32))
PORT: Final = Call(Port, ("port", U32))
OPEN_QUEUE: Final = Call(OpenQueue, *_OPEN)
OPENED: Final = Call(Opened, ("context", CONTEXT))
OPENED_FOR_MOVE: Final = Call(OpenedForMove, ("move_context", U64), ("context", CONTEXT))
OF_QUEUE: Final = Call(OfQueue, ("context", CONTEXT))
CLOSED: Final = Call(Closed, ("context", CONTEXT), ("result", U32))
CURSOR_MADE: Final = Call(CursorMade, ("cursor", U32), ("result", U32))
CLOSE_CURSOR: Final = Call(CloseCursor, ("context", CONTEXT), ("cursor", U32))
START_RECEIVE: Final = Call(StartReceive, *_RECEIVE)
START_TRANSACTIONAL_RECEIVE: Final = Call(
    StartTransactionalReceive, *_RECEIVE, ("transaction", UNIT_OF_WORK)
)
RECEIVED: Final = Call(
    Received,
    ("arrived_unix_s", U32),
    ("sequence_id", U64),
    ("sections", Counted(Array(SECTION, SECTION_MAX_COUNT))),
    ("result", U32),
)
CANCEL_RECEIVE: Final = Call(CancelReceive, ("context", CONTEXT), ("request", U32))
END_RECEIVE: Final = Call(EndReceive, ("context", CONTEXT), ("verdict", _VERDICT), ("request", U32))
MOVE_MESSAGE: Final = Call(
    MoveMessage,
    ("context", CONTEXT),
    ("move_context", U64),
    ("lookup_id", U64),
    ("transaction", UNIT_OF_WORK),
)
ENLIST_REMOTE_TRANSACTION: Final = Call(
    EnlistRemoteTransaction,
    ("transaction", UNIT_OF_WORK),
    (
        "token",
        Sized(Number("I", 0, PROPAGATION_TOKEN_MAX_BYTES), ByteArray(PROPAGATION_TOKEN_MAX_BYTES)),
    ),
    ("name", QUEUE_FORMAT),
)
SET_ACKNOWLEDGEMENT_CLASS: Final = Call(
    SetAcknowledgementClass,
    ("context", CONTEXT),
    ("lookup_id", U64),
    ("acknowledgement_class", U16),
)
