"""Queues as others see them: properties, states, and the ways to open and read them.

[MQDMPR 3.1.1.2-3.1.1.5]
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final

import msgspec

from openmsmq.model.errors import IllegalPropertyValue
from openmsmq.model.identity import NIL_GUID, Guid, SequencePoint
from openmsmq.model.limits import (
    BASE_PRIORITY_MAX_LEVEL,
    BASE_PRIORITY_MIN_LEVEL,
    JOURNAL_QUOTA_DEFAULT_KB,
    QUEUE_LABEL_MAX_CHARACTERS,
    QUEUE_QUOTA_DEFAULT_KB,
)


class QueueKind(Enum):
    """What a queue is for; the values are those that management shows. [MQMQ 2.3.12.3]"""

    PRIVATE = "PRIVATE"
    PUBLIC = "PUBLIC"
    SYSTEM = "MACHINE"
    CONNECTOR = "CONNECTOR"


class QueueRole(Enum):
    """Which part a queue plays in its queue manager; the values are those of the store."""

    APPLICATION = "queue"
    JOURNAL = "journal"
    SUBQUEUE = "subqueue"
    SYSTEM = "system"
    OUTGOING = "outgoing"
    """For messages to another queue manager, until that has them."""
    AWAITING = "awaiting"
    """Beside an outgoing one, for messages that arrived and whose end is still to be heard of."""


class QueueOrder(Enum):
    """By what a list of queues can be sorted."""

    NAME = "name"
    MESSAGES = "messages"
    BYTES = "bytes"
    AGE = "age"
    """For how long the oldest message has been there; queues without any count as the youngest."""
    IN = "in"
    """How many messages come in a second, of late."""
    OUT = "out"
    """How many go."""
    QUOTA = "quota"
    """How much of its quota a queue has used."""


class QueuePrivacy(IntEnum):
    """Whether a queue takes encrypted messages. [MQMQ 2.3.1.12]"""

    NONE = 0
    OPTIONAL = 1
    BODY = 2


class QueueScope(IntEnum):
    """From where a public queue can be found. [MQMQ 2.3.1.14]"""

    SITE = 0
    ENTERPRISE = 1


class RemoteReadState(Enum):
    """How far a handle is with which a queue of another computer is read. [MQDMPR 3.1.1.16]"""

    NONE = "none"
    """Nothing is read elsewhere with it: its queue is here, or is left or lost."""
    OPENED = "opened"
    """Only the reader's side knows it."""
    READY_FOR_READ = "ready"
    """Both sides know it."""


class AccessMode(IntEnum):
    """For what a queue is opened; the two last ones read outgoing queues. [MQDMPR 3.1.1.17]"""

    RECEIVE = 0x01
    SEND = 0x02
    MOVE = 0x04
    PEEK = 0x20
    RECEIVE_ADMIN = 0x81
    PEEK_ADMIN = 0xA0


class ShareMode(IntEnum):
    """Whether others may read while the queue is open. [MQDMPR 3.1.1.17]"""

    DENY_NONE = 0
    DENY_RECEIVE = 1


class SeekAction(Enum):
    """Which message is meant, seen from a lookup identifier. [MQDMPR 3.1.1.17]"""

    FIRST = "first"
    PREVIOUS = "previous"
    CURRENT = "current"
    NEXT = "next"
    LAST = "last"


QUOTAS: Final = ("quota_kb", "journal_quota_kb")
"""The quotas that queues and queue managers have."""


class QueueProperties(msgspec.Struct, frozen=True, kw_only=True):
    """The lasting properties of a queue; those of a public queue are in the directory too.

    Path name, kind, number, identifier and `transactional` never change. [MQDMPR 3.1.1.2]
    """

    identifier: Guid
    path_name: str
    kind: QueueKind = QueueKind.PRIVATE
    manager: Guid = NIL_GUID
    qualified_path_name: str = ""
    private_number: int | None = None
    label: str = ""
    service_type: Guid = NIL_GUID
    created_time_s: int = 0
    modified_time_s: int = 0
    transactional: bool = False
    journaling: bool = False
    quota_kb: int = QUEUE_QUOTA_DEFAULT_KB
    journal_quota_kb: int = JOURNAL_QUOTA_DEFAULT_KB
    authentication_required: bool = False
    privacy: QueuePrivacy = QueuePrivacy.OPTIONAL
    base_priority: int = 0
    multicast_address: str | None = None
    security_descriptor: bytes = b""
    directory_name: str = ""
    directory_path: str = ""
    scope: QueueScope = QueueScope.ENTERPRISE

    def __post_init__(self) -> None:
        label_units = len(self.label.encode("utf-16-le", "surrogatepass")) // 2
        if label_units > QUEUE_LABEL_MAX_CHARACTERS:
            raise IllegalPropertyValue(
                f"label of {self.path_name} has {label_units} characters, 124 are allowed"
            )
        if not BASE_PRIORITY_MIN_LEVEL <= self.base_priority <= BASE_PRIORITY_MAX_LEVEL:
            raise IllegalPropertyValue(
                f"base_priority {self.base_priority} of {self.path_name} exceeds 16 bits"
            )
        if self.base_priority and self.kind is not QueueKind.PUBLIC:
            raise IllegalPropertyValue(
                f"base_priority of {self.path_name} must be 0: only public queues have one"
            )
        for name in QUOTAS:
            if getattr(self, name) >> 32:
                raise IllegalPropertyValue(f"{name} of {self.path_name} exceeds 32 bits")


class OutgoingQueueState(Enum):
    """How far an outgoing queue has come with its neighbour. [MQDMPR 3.1.1.3]"""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    DISCONNECTING = "disconnecting"
    INACTIVE = "inactive"
    LOCKED = "locked"
    NEED_VALIDATION = "need validation"
    WAITING = "waiting"
    ON_HOLD = "on hold"

    @property
    def management_text(self) -> str:
        """The word that management shows; it has none for locked queues. [MQMQ 2.3.12.11]"""
        if self is OutgoingQueueState.LOCKED:
            return "INACTIVE"
        if self is OutgoingQueueState.ON_HOLD:
            return "ONHOLD"
        return str(self.value).upper()


class SessionWait(Enum):
    """What a session with another queue manager waits for."""

    NOTHING = "nothing"
    CONNECTION = "connection"
    """The other computer is to answer."""
    HANDSHAKE = "handshake"
    """Both sides are to agree on the session."""
    ACKNOWLEDGMENT = "acknowledgment"
    """The other side is to say what it has received."""
    WINDOW = "window"
    """The same, and there are messages that cannot leave before."""
    DISK = "disk"
    """What has come is to be stored here."""


class ConnectionStatus(IntEnum):
    """How an attempt to connect went. [MQMQ 2.3.12.25]"""

    IN_PROCESS = 0x00000000
    ESTABLISH_PACKET_RECEIVED = 0x00000001
    ESTABLISHED = 0x00000002
    UNKNOWN_FAILURE = 0x80000000
    PING_FAILURE = 0x80000001
    SOCKET_CREATE_FAILURE = 0x80000002
    SOCKET_BIND_FAILURE = 0x80000003
    SOCKET_CONNECT_FAILURE = 0x80000004
    TCP_NOT_ENABLED = 0x80000005
    SOCKET_SEND_FAILURE = 0x80000006
    CONNECTION_NOT_READY = 0x80000007
    DNS_FAILURE = 0x80000008
    CERTIFICATE_VALIDATION_FAILURE = 0x80000009
    CONNECTION_LIMIT_REACHED = 0x8000000A
    CONNECTION_REFUSED = 0x8000000B
    ROUTING_DATA_NOT_AVAILABLE = 0x8000000C
    LOW_RESOURCE = 0x8000000D

    @property
    def is_failure(self) -> bool:
        """Whether the attempt ended without a session."""
        return self >= ConnectionStatus.UNKNOWN_FAILURE


CONNECTION_WORDS: Final[dict[int, str]] = {
    ConnectionStatus.IN_PROCESS: "connecting",
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED: "connected, session being opened",
    ConnectionStatus.ESTABLISHED: "session open",
    ConnectionStatus.UNKNOWN_FAILURE: "session failed",
    ConnectionStatus.PING_FAILURE: "no answer to the ping",
    ConnectionStatus.SOCKET_CREATE_FAILURE: "no socket here",
    ConnectionStatus.SOCKET_BIND_FAILURE: "no local address",
    ConnectionStatus.SOCKET_CONNECT_FAILURE: "connection not accepted",
    ConnectionStatus.TCP_NOT_ENABLED: "network not reachable",
    ConnectionStatus.SOCKET_SEND_FAILURE: "connection lost",
    ConnectionStatus.CONNECTION_NOT_READY: "session not opened in time",
    ConnectionStatus.DNS_FAILURE: "address not found",
    ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE: "certificate not trusted",
    ConnectionStatus.CONNECTION_LIMIT_REACHED: "too many connections",
    ConnectionStatus.CONNECTION_REFUSED: "session refused",
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: "no route known",
    ConnectionStatus.LOW_RESOURCE: "memory or disk short",
}
"""How people read the history of a connection."""


class ConnectionEvent(msgspec.Struct, frozen=True):
    """One line of the connection history of an outgoing queue. [MQDMPR 3.1.1.3]"""

    status: ConnectionStatus
    time_s: int
    error: int = 0
    addresses: tuple[str, ...] = ()


class OutgoingSequenceStatus(msgspec.Struct, frozen=True):
    """How far the transactional messages to one queue have come. [MQDMPR 3.1.1.4]"""

    first_unacknowledged: SequencePoint | None = None
    last_unacknowledged: SequencePoint | None = None
    last_acknowledged: SequencePoint | None = None
    next: SequencePoint | None = None
    last_ack_time_s: int = 0
    last_ack_count: int = 0
    unacknowledged_count: int = 0
    unread_count: int = 0
    resend_count: int = 0
    resend_interval_s: int = 0
    resend_time_s: int = 0
