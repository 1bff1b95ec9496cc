"""Where a queue manager may be: the addresses of the computers that it is on, in turns."""

from __future__ import annotations

from openmsmq.client.connections.connection import may_come_back
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.settings import Settings
from openmsmq.model.identity import NIL_GUID, Guid


class Places:
    """Tries one address after the other, and stays with the one that answers."""

    def __init__(self, settings: Settings) -> None:
        self._places = settings.places
        self._current = 0
        self._tried = 0

    @property
    def current(self) -> Settings:
        """Where to try now."""
        return self._places[self._current]

    def begin(self) -> None:
        """Begin to connect."""
        self._tried = 0

    def leave(self) -> None:
        """Begin next time with another address: who was lost may take calls and answer none."""
        self._current = (self._current + 1) % len(self._places)

    def pass_on(self, lost: ConnectionLost) -> bool:
        """Go on with the next address; return whether it may be tried without a pause."""
        if len(self._places) == 1 or not may_come_back(lost):
            return False
        self._current = (self._current + 1) % len(self._places)
        self._tried = (self._tried + 1) % len(self._places)
        return self._tried > 0

    @property
    def are_several(self) -> bool:
        """Whether there are others: then one that does not answer is no reason to give up."""
        return len(self._places) > 1

    def require_same(self, known: Guid, welcome: bytes) -> None:
        """Raise `ConnectionLost` if another queue manager answers than the one that was there."""
        found = Guid(welcome)
        if self.are_several and known not in (NIL_GUID, found):
            raise ConnectionLost(
                f"the queue manager at {self.current.address} is {found}, and {known} was "
                "connected before: all addresses must be those of one queue manager"
            )
