"""Claims: which identifier is whose, by the flows that began under it.

Whoever connects says himself who he is. That is believed as long as nobody else has a flow under
this name at another place; the first flow settles it. A flow is an incoming sequence or an
outgoing queue, and its record says where its peer is: so claims are durable as far as they matter,
take no room of their own, and end with their last flow.
"""

from __future__ import annotations

from typing import Protocol

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid


class Sessions(Protocol):
    """Knows who has a session open."""

    def has_session(self, manager: bytes, place: str) -> bool:
        """Whether a queue manager has an open session at a place."""
        ...


class _Claim:
    """Where somebody is, and how much depends on it."""

    __slots__ = ("flow_count", "heard_ms", "place")

    def __init__(self, place: str, heard_ms: int) -> None:
        self.place = place
        self.heard_ms = heard_ms
        self.flow_count = 0


class Claims:
    """Whose flows are known, and where those queue managers are."""

    def __init__(self, silence_s: int, sessions: Sessions, now: Instant) -> None:
        self._sessions = sessions
        self._silence_ms = silence_s * 1000
        self._started_ms = now.ticks_ms
        self._claims: dict[bytes, _Claim] = {}
        self.version = 0
        """Grows when a name becomes somebody's, or nobody's."""

    def restore(self, identifier: bytes, place: str) -> None:
        """Take up a flow of before the start; silence counts from the start."""
        self._begin(identifier, place, self._started_ms)

    def begin(self, identifier: bytes, place: str, now: Instant) -> None:
        """A flow begins of somebody who may have this name."""
        self._begin(identifier, place, now.ticks_ms)

    def _begin(self, identifier: bytes, place: str, now_ms: int) -> None:
        claim = self._claims.get(identifier)
        if claim is None:
            claim = self._claims[bytes(identifier)] = _Claim(place, now_ms)
            self.version += 1
        claim.flow_count += 1
        self._move(claim, place, now_ms)

    def end(self, identifier: bytes) -> None:
        """A flow is gone."""
        claim = self._claims.get(identifier)
        if claim is not None:
            claim.flow_count -= 1
            if not claim.flow_count:
                del self._claims[identifier]
                self.version += 1

    def heard(self, identifier: bytes, place: str, now: Instant) -> None:
        """Somebody who may have this name has said something, at a place."""
        claim = self._claims.get(identifier)
        if claim is not None:
            self._move(claim, place, now.ticks_ms)

    def _move(self, claim: _Claim, place: str, now_ms: int) -> None:
        claim.heard_ms = now_ms
        if claim.place != place:
            claim.place = place
            self.version += 1

    def place_of(self, identifier: bytes) -> str | None:
        """Return where somebody is; None if nothing depends on it."""
        claim = self._claims.get(identifier)
        return None if claim is None else claim.place

    def is_free(self, identifier: Guid, now: Instant) -> bool:
        """Whether a name may be used at another place: nothing was heard for long where it was."""
        claim = self._claims.get(identifier)
        return claim is None or (
            now.ticks_ms - claim.heard_ms >= self._silence_ms
            and not self._sessions.has_session(identifier, claim.place)
        )
