"""What both sides of SPNEGO have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ports import (
    AuthenticationFailed,
    Fragment,
    Level,
    Step,
)
from openmsmq.security.authentication.spnego.offer import Mechanism, MechanismContext
from openmsmq.wire.errors import DecodeError

LEGS_MAX_COUNT: Final = 10
"""Tokens of one side within one negotiation; Kerberos and NTLM need two or three."""


class Negotiation(ABC):
    """One side: it agrees on a mechanism, and then does what that does."""

    def __init__(self, mechanisms: tuple[Mechanism, ...]) -> None:
        self._mechanisms = mechanisms
        self._chosen: MechanismContext | None = None
        self._legs = 0
        self._is_over = False
        self._is_complete = False

    def step(self, token: bytes) -> Step:
        """Take a token of the other side; raises `AuthenticationFailed`, and then for ever."""
        if self._is_over:
            raise AuthenticationFailed("this negotiation is over")
        self._is_over = True
        self._legs += 1
        if self._legs > LEGS_MAX_COUNT:
            raise AuthenticationFailed(f"a negotiation takes more than {LEGS_MAX_COUNT} tokens")
        try:
            step = self._next(token)
        except DecodeError as error:
            raise AuthenticationFailed(str(error)) from None
        self._is_complete = step.is_complete
        self._is_over = step.is_complete
        return step

    @property
    def caller(self) -> Caller:
        """Who the other side has proved to be."""
        return self._agreed().caller

    def signature_size(self, level: Level) -> int:
        """Return how many bytes the signature of each fragment has."""
        return self._agreed().signature_size(level)

    def protect(
        self, level: Level, fragment: Fragment, *, signs_header: bool
    ) -> tuple[bytes, bytes]:
        """Return the stub as it is sent, and the signature."""
        return self._agreed().protect(level, fragment, signs_header=signs_header)

    def unprotect(
        self, level: Level, fragment: Fragment, signature: bytes, *, signs_header: bool
    ) -> bytes:
        """Return the stub as it was meant, or raise `AuthenticationFailed`."""
        return self._agreed().unprotect(level, fragment, signature, signs_header=signs_header)

    @abstractmethod
    def _next(self, token: bytes) -> Step: ...

    def _find(self, identifier: bytes) -> Mechanism | None:
        for mechanism in self._mechanisms:
            if identifier in mechanism.identifiers:
                return mechanism
        return None

    def _agreed(self) -> MechanismContext:
        if self._chosen is None or not self._is_complete:
            raise AuthenticationFailed("this negotiation has not come to its end")
        return self._chosen
