"""Neighbours: the computers that messages go to, and the sessions that lead there."""

from __future__ import annotations

from typing import TypeVar

from openmsmq.manager.outgoing import OutgoingQueue
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import LINKS_MAX_COUNT
from openmsmq.model.names import DirectFormatName, FormatName, PrivateFormatName
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.link import Hop, Link, LinkState
from openmsmq.protocol.session import Session


class Peer:
    """A session and the outgoing queues that use it."""

    __slots__ = ("engine", "is_counted", "link", "number", "queues", "served", "waiting")

    def __init__(self, number: int, engine: Session, link: Neighbour | None) -> None:
        self.is_counted = False
        """Whether it is one of the sessions that others opened and that were let in."""
        self.number = number
        self.engine = engine
        self.link = link
        self.queues: dict[OutgoingQueue, None] = {}
        self.waiting: dict[OutgoingQueue, None] = {}
        """Queues that had more to send than there was room."""
        self.served: OutgoingQueue | None = None
        """The queue that took the last room: the others come before it next time."""


class Neighbour:
    """A link and the outgoing queues behind it."""

    __slots__ = ("engine", "key", "peer", "queues")

    def __init__(self, key: str, engine: Link) -> None:
        self.key = key
        self.engine = engine
        self.peer: Peer | None = None
        self.queues: dict[OutgoingQueue, None] = {}

    @property
    def is_unneeded(self) -> bool:
        """Whether it leads nowhere that anybody wants to go."""
        return not self.queues and self.engine.state is LinkState.IDLE


class Neighbours:
    """All links, and all open sessions by who is at their other end."""

    def __init__(self, config: TransferConfig) -> None:
        self._config = config
        self._by_key: dict[str, Neighbour] = {}
        self._open_by_address: dict[str, dict[int, Peer]] = {}
        self._open_by_manager: dict[Guid, dict[int, Peer]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def opened(self, peer: Peer) -> None:
        """Note an open session."""
        self._open_by_address.setdefault(peer.engine.address, {})[peer.number] = peer
        if peer.engine.remote != NIL_GUID:
            self._open_by_manager.setdefault(peer.engine.remote, {})[peer.number] = peer

    def closed(self, peer: Peer) -> None:
        """Forget a session."""
        _drop(self._open_by_address, peer.engine.address, peer.number)
        _drop(self._open_by_manager, peer.engine.remote, peer.number)

    def behind(self, peer: Peer) -> list[Neighbour]:
        """Give the neighbours that a session leads to: who opened one can be reached through it."""
        found = (
            peer.link,
            self._by_key.get(fold(peer.engine.address)),
            self._by_key.get(str(peer.engine.remote)),
        )
        return list(dict.fromkeys(neighbour for neighbour in found if neighbour is not None))

    def open_to(self, name: FormatName) -> Peer | None:
        """Find any open session to the computer of a name: it may be one that it opened."""
        found: dict[int, Peer] = {}
        if isinstance(name, PrivateFormatName):
            return self._open_to_manager(name.queue_manager)
        elif isinstance(name, DirectFormatName):
            address = canonical_ip_address(name.host)
            if address is not None:
                found = self._open_by_address.get(address, {})
        return next(iter(found.values()), None)

    def _open_to_manager(self, manager: Guid) -> Peer | None:
        """Find a session with a queue manager.

        Who connects says himself who he is. If it is known where the queue manager is, only a
        session with one of these computers is believed.
        """
        found = self._open_by_manager.get(manager, {}).values()
        hosts = self._hosts_towards(manager)
        if not hosts:
            return next(iter(found), None)
        known = {address for host in hosts for address in self._addresses_of(host)}
        return next(
            (peer for peer in found if peer.link is not None or peer.engine.address in known), None
        )

    def _addresses_of(self, host: str) -> tuple[str, ...]:
        address = canonical_ip_address(host)
        if address is not None:
            return (address,)
        wanted = fold(host)
        named = self._config.hosts.items()
        return next((addresses for name, addresses in named if fold(name) == wanted), ())

    def has_way(self, name: FormatName) -> bool:
        """Whether it is known how to reach the queue manager of a queue."""
        if not isinstance(name, PrivateFormatName):
            return True
        return bool(self._hosts_towards(name.queue_manager)) or self.open_to(name) is not None

    def of(self, outgoing: OutgoingQueue, *, create: bool) -> Neighbour | None:
        """Find the neighbour for a queue."""
        name = outgoing.name
        direct = isinstance(name, DirectFormatName)
        hops: tuple[Hop, ...] = ()
        if isinstance(name, DirectFormatName):
            key = fold(name.host)
            hops = (Hop(name.host),)
        elif isinstance(name, PrivateFormatName):
            key = str(name.queue_manager)
            hops = tuple(Hop(host) for host in self._hosts_towards(name.queue_manager))
        else:
            key = fold(str(name))
        neighbour = self._by_key.get(key)
        if neighbour is None and create and len(self._by_key) >= LINKS_MAX_COUNT:
            self._prune()
        if neighbour is None and create and len(self._by_key) < LINKS_MAX_COUNT:
            shown = name.host if isinstance(name, DirectFormatName) else f"queue manager {key}"
            neighbour = Neighbour(key, Link(shown, hops, self._config, direct=direct))
            self._by_key[key] = neighbour
        return neighbour

    def _hosts_towards(self, manager: Guid) -> tuple[str, ...]:
        return next(
            (
                hosts
                for name, hosts in self._config.next_hops.items()
                if fold(name.strip("{}")) == fold(str(manager).strip("{}"))
            ),
            (),
        )

    def forget(self, outgoing: OutgoingQueue) -> None:
        """A queue is gone, and with the last one its neighbour."""
        neighbour = self.of(outgoing, create=False)
        if neighbour is not None:
            neighbour.queues.pop(outgoing, None)
            if neighbour.is_unneeded:
                del self._by_key[neighbour.key]

    def _prune(self) -> None:
        """Drop the links that were still busy when their last queue went."""
        self._by_key = {
            key: neighbour for key, neighbour in self._by_key.items() if not neighbour.is_unneeded
        }


_Key = TypeVar("_Key")


def _drop(table: dict[_Key, dict[int, Peer]], key: _Key, number: int) -> None:
    found = table.get(key)
    if found is not None:
        found.pop(number, None)
        if not found:
            del table[key]
