"""The states of a session, what moves it on, why it ends, and what it says. [MQQB 3.1.1.3.1]"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import ConnectionStatus
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)

Token: TypeAlias = Hashable
"""What a packet that was sent is called by those who gave it."""


class Role(Enum):
    """Which side asked for the session."""

    INITIATOR = "initiator"
    ACCEPTOR = "acceptor"


class Called(msgspec.Struct, frozen=True):
    """Whom an initiator has called, and how."""

    manager: Guid = NIL_GUID
    """The queue manager that should be there; nil where anybody may answer."""
    direct: bool = False
    """Whether an application has named the address itself."""
    pinged: bool = False
    """Whether it has answered a ping before."""


NOBODY_CALLED: Final = Called()


class Gate(Protocol):
    """Says who is let in."""

    def admits(self, claimed: Guid, now: Instant) -> bool:
        """Whether the other side may be who it says it is."""
        ...


class OpenGate:
    """Lets everybody in."""

    def admits(self, _claimed: Guid, _now: Instant) -> bool:
        """Whether the other side may be who it says it is."""
        return True


class SessionState(Enum):
    """How far a session has come. [MQQB 3.1.1.3.1]"""

    CONNECTING = "connecting"
    AWAITING_ESTABLISH = "awaiting establish"
    AWAITING_ESTABLISH_REPLY = "awaiting establish reply"
    AWAITING_PARAMETERS = "awaiting parameters"
    AWAITING_PARAMETERS_REPLY = "awaiting parameters reply"
    OPEN = "open"
    CLOSED = "closed"


TRANSITIONS: Final[Mapping[tuple[SessionState, type[Packet]], SessionState]] = MappingProxyType(
    {
        (
            SessionState.AWAITING_ESTABLISH,
            EstablishConnection,
        ): SessionState.AWAITING_PARAMETERS,
        (
            SessionState.AWAITING_ESTABLISH_REPLY,
            EstablishConnection,
        ): SessionState.AWAITING_PARAMETERS_REPLY,
        (SessionState.AWAITING_PARAMETERS, ConnectionParameters): SessionState.OPEN,
        (SessionState.AWAITING_PARAMETERS_REPLY, ConnectionParameters): SessionState.OPEN,
        (SessionState.OPEN, SessionAck): SessionState.OPEN,
        (SessionState.OPEN, UserMessage): SessionState.OPEN,
    }
)
"""Where a packet leads from a state, when its content is good. Any other pair ends the session."""


class CloseReason(Enum):
    """Why a session ended: a sentence for people, and what the connection history says."""

    PEER_CLOSED = (
        "The other queue manager closed the connection, or the network lost it.",
        ConnectionStatus.SOCKET_SEND_FAILURE,
    )
    REFUSED = (
        "The other queue manager refused the connection.",
        ConnectionStatus.CONNECTION_REFUSED,
    )
    CERTIFICATE_REFUSED = (
        "The other queue manager refused the certificate of this one: the logs of both say more.",
        ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
    )
    WRONG_PEER = (
        "Another queue manager than the expected one answered.",
        ConnectionStatus.CONNECTION_REFUSED,
    )
    REFUSED_PEER = (
        "The other queue manager asked for one that is not here, and was refused.",
        ConnectionStatus.CONNECTION_REFUSED,
    )
    IDENTITY_REFUSED = (
        "The other queue manager is not let in as the one it says it is.",
        ConnectionStatus.CONNECTION_REFUSED,
    )
    CROWDED = (
        "Others have as many sessions with this queue manager as they may have.",
        ConnectionStatus.CONNECTION_REFUSED,
    )
    UNEXPECTED_PACKET = (
        "The other queue manager sent a packet that has no place in this state.",
        ConnectionStatus.UNKNOWN_FAILURE,
    )
    MALFORMED = (
        "The other queue manager sent bytes that are not a packet.",
        ConnectionStatus.UNKNOWN_FAILURE,
    )
    HANDSHAKE_TIMEOUT = (
        "The other queue manager did not open the session in time.",
        ConnectionStatus.CONNECTION_NOT_READY,
    )
    NO_ACKNOWLEDGMENT = (
        "The other queue manager did not acknowledge what was sent to it.",
        ConnectionStatus.SOCKET_SEND_FAILURE,
    )
    BAD_ACKNOWLEDGMENT = (
        "The other queue manager acknowledged messages that were never sent to it.",
        ConnectionStatus.UNKNOWN_FAILURE,
    )
    COUNT_MISMATCH = (
        "The other queue manager counts other messages than those that arrived.",
        ConnectionStatus.UNKNOWN_FAILURE,
    )
    TOO_SLOW = (
        "The other queue manager began a packet and did not end it in time.",
        ConnectionStatus.UNKNOWN_FAILURE,
    )
    OVERRUN = (
        "The other queue manager sent far more than the window allows.",
        ConnectionStatus.LOW_RESOURCE,
    )
    STORE_FULL = (
        "There is no room left to store what the other queue manager sends.",
        ConnectionStatus.LOW_RESOURCE,
    )
    IDLE = (
        "Nothing was sent or received for a long time.",
        ConnectionStatus.ESTABLISHED,
    )
    STOPPING = (
        "This queue manager is stopping, or was told to close the session.",
        ConnectionStatus.ESTABLISHED,
    )

    def __init__(self, sentence: str, status: ConnectionStatus) -> None:
        self.sentence = sentence
        self.status = status

    @property
    def says_farewell(self) -> bool:
        """Whether what is settled is still acknowledged before the connection ends."""
        return self in (CloseReason.IDLE, CloseReason.STOPPING)


class Written(msgspec.Struct, frozen=True):
    """Bytes for the connection."""

    data: bytes


class Opened(msgspec.Struct, frozen=True):
    """The session is open, with this queue manager on the other side."""

    remote: Guid


class Arrived(msgspec.Struct, frozen=True):
    """User messages came, in order; tell their fate with `settled`, in the same order."""

    packets: list[bytes]


class Acknowledged(msgspec.Struct, frozen=True):
    """The peer has these: received the express ones, stored the recoverable ones."""

    tokens: list[Token]


class Closed(msgspec.Struct, frozen=True):
    """The session has ended; close the connection. Nothing follows."""

    reason: CloseReason


SessionOutput: TypeAlias = Written | Opened | Arrived | Acknowledged | Closed
