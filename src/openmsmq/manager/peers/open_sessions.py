"""All open sessions, by who is at their other end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from openmsmq.manager.peers.peering import Peer
from openmsmq.model.identity import NIL_GUID, Guid


class OpenSessions:
    """Finds sessions by the address and by the queue manager at their other end."""

    def __init__(self) -> None:
        self._by_address: dict[str, dict[int, Peer]] = {}
        self._by_manager: dict[Guid, dict[int, Peer]] = {}

    def opened(self, peer: Peer) -> None:
        """Note an open session."""
        self._by_address.setdefault(peer.engine.address, {})[peer.number] = peer
        if peer.remote != NIL_GUID:
            self._by_manager.setdefault(peer.remote, {})[peer.number] = peer

    def closed(self, peer: Peer) -> None:
        """Forget a session."""
        _drop(self._by_address, peer.engine.address, peer.number)
        _drop(self._by_manager, peer.remote, peer.number)

    def at(self, address: str) -> Iterable[Peer]:
        """Return the sessions with an address."""
        return self._by_address.get(address, {}).values()

    def with_manager(self, manager: Guid) -> Iterable[Peer]:
        """Return the sessions with whoever says that he is a queue manager."""
        return self._by_manager.get(manager, {}).values()

    def has_session(self, manager: bytes, place: str) -> bool:
        """Whether a queue manager has an open session at a place."""
        return any(peer.place == place for peer in self.with_manager(Guid(manager)))


_Key = TypeVar("_Key")


def _drop(table: dict[_Key, dict[int, Peer]], key: _Key, number: int) -> None:
    found = table.get(key)
    if found is not None:
        found.pop(number, None)
        if not found:
            del table[key]
