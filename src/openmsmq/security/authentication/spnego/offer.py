"""What SPNEGO asks of a mechanism, and how one is offered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from openmsmq.security.authentication.ports import SecurityContext


class MechanismContext(SecurityContext, Protocol):
    """A mechanism that can be agreed on."""

    @property
    def asks_for_mic(self) -> bool:
        """Whether the list of mechanisms is to be signed even if the first one was taken."""

    def sign_list(self, data: bytes) -> bytes:
        """Return the signature of the list of mechanisms."""

    def check_list(self, data: bytes, signature: bytes) -> None:
        """Raise `AuthenticationFailed` unless the list of mechanisms has this signature."""

    def lists_are_signed(self) -> None:
        """Go on behind the signatures of both lists."""


class Mechanism(msgspec.Struct, frozen=True):
    """One that we have: what it is called, and how an authentication by it begins."""

    identifiers: tuple[bytes, ...]
    begin: Callable[[], MechanismContext]
