"""Who reads a session along: told of all its bytes in both directions, and never asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias


class Tap(Protocol):
    """Reads one session along. Nothing that it does may raise.

    It holds what has not come whole, as the queue manager does: so much counts twice then.
    """

    def sent(self, data: bytes) -> None:
        """Bytes leave."""

    def received(self, data: bytes) -> None:
        """Bytes came."""


MakeTap: TypeAlias = Callable[[str], Tap | None]
"""Makes one for a new session, given the address of its peer."""


def no_tap(_peer: str) -> None:
    """Let nobody read along."""
