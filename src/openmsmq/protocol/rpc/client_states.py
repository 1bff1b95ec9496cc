"""The states of a connection to a server, and what our side of it says."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from openmsmq.protocol.rpc.states import Written
from openmsmq.security.authentication.ports import Level, ProviderKind, SecurityContext


class ClientState(Enum):
    """How far a connection to a server has come."""

    NEW = "new"
    BINDING = "binding"
    BOUND = "bound"
    ENDED = "ended"


class FailureKind(Enum):
    """Why a connection to a server has ended."""

    LOST = "lost"
    """It was closed."""
    NOT_AUTHENTICATED = "not authenticated"
    """The server does not believe who we are, or we do not believe the server."""
    NO_INTERFACE = "no such interface"
    REFUSED = "refused"
    """The server does not agree for another reason."""
    BROKEN = "broken"
    """The server says what has no place or cannot be read."""


class Protection(msgspec.Struct, frozen=True):
    """How we prove who we are, and how far each fragment is protected."""

    kind: ProviderKind
    level: Level
    context: SecurityContext


class Bound(msgspec.Struct, frozen=True):
    """Calls can be made now."""

    group: int
    """The association group: further connections that name it share what was opened."""
    is_concurrent: bool
    """Whether several calls can be under way at a time."""


class Returned(msgspec.Struct, frozen=True):
    """The results of a call."""

    call: int
    stub: bytes


class Threw(msgspec.Struct, frozen=True):
    """A call has ended without results."""

    call: int
    status: int
    is_executed: bool
    """Whether something may have been done; the server says so."""


class Failed(msgspec.Struct, frozen=True):
    """The connection has ended; close it. Nothing follows."""

    kind: FailureKind
    sentence: str
    calls: tuple[int, ...]
    """The calls whose end nobody knows."""


ClientOutput: TypeAlias = Written | Bound | Returned | Threw | Failed
