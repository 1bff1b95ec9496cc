"""The states of an association and of its security contexts, and what an association says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ports import Level, ProviderKind, SecurityContext
from openmsmq.wire.rpc.pdus import PduType
from openmsmq.wire.rpc.syntaxes import Syntax


class AssociationState(Enum):
    """How far an association has come. [C706 9.3]"""

    UNBOUND = "unbound"
    BOUND = "bound"
    CLOSED = "closed"


TRANSITIONS: Final[Mapping[tuple[AssociationState, PduType], AssociationState]] = MappingProxyType(
    {
        (AssociationState.UNBOUND, PduType.BIND): AssociationState.BOUND,
        (AssociationState.BOUND, PduType.ALTER_CONTEXT): AssociationState.BOUND,
        (AssociationState.BOUND, PduType.AUTH3): AssociationState.BOUND,
        (AssociationState.BOUND, PduType.REQUEST): AssociationState.BOUND,
        (AssociationState.BOUND, PduType.CO_CANCEL): AssociationState.BOUND,
        (AssociationState.BOUND, PduType.ORPHANED): AssociationState.BOUND,
    }
)
"""Where a fragment leads from a state, when its content is good. Any other pair ends it."""


class SecurityState(Enum):
    """How far a security context has come. [MS-RPCE 3.3.1.1]"""

    PENDING = "pending"
    """More tokens are needed."""
    PROVED = "proved"
    BROKEN = "broken"
    """The last token has come, and was not the last one needed, or was wrong."""


class Leg(Enum):
    """What came of one more token."""

    MORE = "more tokens are needed"
    DONE = "done"
    GIVEN_UP = "given up"
    """The token came as the last one, and was not enough."""


SECURITY_TRANSITIONS: Final[Mapping[tuple[SecurityState, Leg], SecurityState]] = MappingProxyType(
    {
        (SecurityState.PENDING, Leg.MORE): SecurityState.PENDING,
        (SecurityState.PENDING, Leg.DONE): SecurityState.PROVED,
        (SecurityState.PENDING, Leg.GIVEN_UP): SecurityState.BROKEN,
    }
)
"""Where a token leads. In every other state a further token is refused."""


MakeContext: TypeAlias = Callable[[ProviderKind], SecurityContext | None]
"""Begins to prove a caller; None for a way that is not offered."""


class InterfaceFacts(msgspec.Struct, frozen=True):
    """What an association has to know of an interface that is offered at its door."""

    operations: int
    """How many operations it has; those above are refused."""
    minimum: Level = Level.NONE
    """How far fragments must be protected at least; above `NONE` callers must be known, too."""


class Door(msgspec.Struct, frozen=True):
    """What all associations of one port have in common."""

    port: int
    interfaces: Mapping[Syntax, InterfaceFacts]


class Wanted(msgspec.Struct, frozen=True):
    """How results are to be written."""

    fragment_max: int
    signs_header: bool


class Written(msgspec.Struct, frozen=True):
    """Bytes for the connection."""

    data: bytes


class CallArrived(msgspec.Struct, frozen=True):
    """A call is there as a whole; it ends with `returned` or `threw`, once."""

    call: int
    """A number of ours; a client's own numbers come again."""
    interface: Syntax
    operation: int
    stub: bytes
    caller: Caller


class CallCancelled(msgspec.Struct, frozen=True):
    """Somebody does not want to wait for a call any more; it still ends once."""

    call: int


class Proved(msgspec.Struct, frozen=True):
    """Somebody has proved to be somebody."""

    caller: Caller
    kind: ProviderKind
    level: Level


class Refused(msgspec.Struct, frozen=True):
    """Somebody was refused; the sentence is for the log."""

    sentence: str
    caller: str = ""
    level: str = ""


class Closed(msgspec.Struct, frozen=True):
    """The association has ended; close the connection when all is written. Nothing follows."""

    sentence: str
    """Why; empty where the other side has closed it."""


Output: TypeAlias = Written | CallArrived | CallCancelled | Proved | Refused | Closed
