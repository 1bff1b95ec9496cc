"""What a machine of RPC asks of whatever proves a caller and protects fragments."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

import msgspec

from openmsmq.security.access.callers import Caller


class AuthenticationFailed(Exception):
    """A token, or the protection of a fragment, is not what it should be.

    The sentence is for the log of the one who reads it; a caller is only told that it was refused.
    """


class ProviderKind(IntEnum):
    """How somebody proves to be somebody, as RPC numbers it [MS-RPCE 2.2.1.1.7]."""

    SPNEGO = 9
    NTLM = 10
    KERBEROS = 16


class Level(IntEnum):
    """How far each fragment is protected [MS-RPCE 2.2.1.1.8]."""

    NONE = 1
    CONNECT = 2
    CALL = 3
    PACKET = 4
    INTEGRITY = 5
    PRIVACY = 6


class Fragment(msgspec.Struct, frozen=True):
    """The parts of a fragment that a provider protects, in the order in which they are sent."""

    header: bytes
    """Everything before the stub."""
    stub: bytes
    """With the padding before the trailer; sealed if the level is privacy."""
    trailer: bytes
    """The eight bytes before the signature."""


class Step(msgspec.Struct, frozen=True):
    """What came of one token of the other side."""

    token: bytes
    """To be sent back; may be empty."""
    is_complete: bool
    """Whether everything is proved that is to be proved."""


class SecurityContext(Protocol):
    """One side of one authentication, from its first token on; never used by two connections."""

    def step(self, token: bytes) -> Step:
        """Take a token of the other side (empty to begin as the one who calls).

        Raise `AuthenticationFailed`.
        """

    @property
    def caller(self) -> Caller:
        """Who the other side has proved to be; only once a step was complete."""

    def signature_size(self, level: Level) -> int:
        """Return how many bytes the signature of each fragment has.

        Raise `AuthenticationFailed` for a level to which both sides have not agreed.
        """

    def protect(
        self, level: Level, fragment: Fragment, *, signs_header: bool
    ) -> tuple[bytes, bytes]:
        """Return the stub as it is sent, and the signature; each call uses up a sequence number.

        With `signs_header` both sides have agreed to cover header and trailer, too; NTLM covers
        them anyway.
        """

    def unprotect(
        self, level: Level, fragment: Fragment, signature: bytes, *, signs_header: bool
    ) -> bytes:
        """Return the stub as it was meant, or raise `AuthenticationFailed`."""
