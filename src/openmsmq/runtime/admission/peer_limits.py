"""How much of a door one address may take, and all of them together.

A door is where others connect: other queue managers, or applications. Nobody there is known before
the handshake, so what is shared out is shared out by address. An address that has its share is
refused, and so is one that comes again and again. When all places are taken, those give way who
have most of them: a flood from many addresses can slow newcomers down, but not keep them out. Some
places are kept for addresses that are known, and strangers never have those.

A connection whose handshake does not come to its end gives way when it is the oldest. To refuse the
newest instead would let anybody close the door with as many silent connections as it has places,
while an honest handshake takes milliseconds: the oldest is hardly ever an honest one.

Time is given, nothing is read and nothing waits. What is remembered of addresses is bounded too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import Final

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.model.peers import address_of
from openmsmq.protocol.bucket import Bucket
from openmsmq.runtime.limits import PEER_BUFFERED_MAX_BYTES, PEERS_BUFFERED_MAX_BYTES

_CROWD: Final = "everybody else"
_ADDRESS_MAX_CHARACTERS: Final = 64
_FORGET_LOOK_COUNT: Final = 16
_SITE_PREFIX: Final = 64


class PeerBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a door can take."""

    connections_max: int
    connections_reserved: int
    """Places among them that only known addresses may have."""
    connections_per_peer_max: int
    half_open_max: int = 200
    """Connections that others have made and whose handshake has not come to its end."""
    half_open_per_peer_max: int = 50
    """The same from one address."""
    half_open_grace_ms: int = 2_000
    """How long a handshake may take before it gives way to a newer one, when there are too many."""
    connects_per_s: int = 20
    """Connections that one address may make in a second, in the long run."""
    connects_burst: int = 400
    """The same at once, by one that has been quiet: who starts opens all its sessions."""
    connects_all_per_s: int = 100
    """The same by all addresses; those that have been quiet are let in all the same."""
    connects_all_burst: int = 400
    """The same by all addresses, at once."""
    connects_quiet: int = 20
    """An address that has made fewer connections than this of late is a quiet one."""
    unfinished_cost: int = 2
    """For so many further connections one counts that ends before its handshake does."""
    datagrams_per_s: int = 20
    """Pings of one address that are looked at in a second; the others are dropped."""
    datagrams_all_per_s: int = 500
    """The same of all addresses."""
    buffered_max_bytes: int = PEERS_BUFFERED_MAX_BYTES
    buffered_per_peer_max_bytes: int = PEER_BUFFERED_MAX_BYTES
    addresses_max: int = 4096
    """Addresses that are remembered; further ones share one place among them."""
    known_max: int = 1000
    """Addresses that count as known because this queue manager has reached them itself."""


class Refusal(Enum):
    """Why a connection is not taken; `because` says it with its number."""

    RATE = "this address connects too often: {connects_per_s} times in a second are allowed"
    RATE_OF_ALL = "too many connect at once, and this address is among those that do it often"
    PER_PEER = (
        "{connections_per_peer_max} connections from this address are open already "
        "({prefix}connections_per_peer_max)"
    )
    HALF_OPEN_PER_PEER = (
        "{half_open_per_peer_max} connections from this address have not introduced themselves yet"
    )
    HALF_OPEN = "{half_open_max} connections have not introduced themselves yet"
    TOTAL = "{connections_max} connections are open already ({prefix}connections_max)"

    def because(self, bounds: PeerBounds, prefix: str = "") -> str:
        """Return the reason; the prefix is that of the door's options."""
        return self.value.format(prefix=prefix, **msgspec.structs.asdict(bounds))


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of a connection."""

    refusal: Refusal | None = None
    giving_way: tuple[int, ...] = ()
    """Connections to cut; they are no longer counted."""


class _Peer:
    """What is known of one address."""

    __slots__ = ("buffered", "connects", "datagrams", "half_open", "is_known", "key", "open")

    def __init__(self, key: str, bounds: PeerBounds, now: Instant) -> None:
        self.key = key
        self.is_known = False
        self.half_open: dict[int, int] = {}
        """When each connection came whose handshake is under way; the oldest is first."""
        self.open: dict[int, None] = {}
        self.buffered: dict[int, int] = {}
        """Bytes that are held for connections, where there are any."""
        self.connects = Bucket(bounds.connects_per_s, bounds.connects_burst, now.ticks_ms)
        rate = bounds.datagrams_per_s
        self.datagrams = Bucket(rate, rate, now.ticks_ms)

    @property
    def count(self) -> int:
        """How many connections it has."""
        return len(self.half_open) + len(self.open)

    @property
    def buffered_bytes(self) -> int:
        """How many bytes are held for it."""
        return sum(self.buffered.values())

    def is_idle(self, now: Instant) -> bool:
        """Whether nothing is lost by forgetting it."""
        buckets = self.connects, self.datagrams
        return not (self.count or any(one.used_thousandths(now.ticks_ms) for one in buckets))


class PeerLimits:
    """Counts what each address has of a door. Connections are known by number."""

    def __init__(self, bounds: PeerBounds, known: Iterable[str], now: Instant) -> None:
        """`known` are the addresses that an operator has named, and those of this computer."""
        self.bounds: Final = bounds
        self._configured = frozenset(map(peer_key, known))
        self._met: dict[str, None] = {}
        self.peers: dict[str, _Peer] = {}
        """The addresses that are remembered, the one that was heard of last at the end."""
        self._crowd = _Peer(_CROWD, bounds, now)
        """All addresses for which there was no room."""
        self._present: dict[str, _Peer] = {}
        self._by_connection: dict[int, _Peer] = {}
        self.half_open_count = 0
        """How many connections have not come to the end of their handshake."""
        self.buffered_bytes = 0
        """How many bytes are held for all of them."""
        now_ms, rate = now.ticks_ms, bounds.datagrams_all_per_s
        self._all_connects = Bucket(bounds.connects_all_per_s, bounds.connects_all_burst, now_ms)
        self._all_datagrams = Bucket(rate, rate, now_ms)

    @property
    def count(self) -> int:
        """How many connections there are."""
        return len(self._by_connection)

    # Connections.

    def arrived(self, connection: int, address: str, now: Instant) -> Verdict:
        """Decide about a new connection, and count it if it is taken."""
        peer = self._peer(address, now)
        giving_way: list[int] = []
        refusal = (
            self._over_its_share(peer, now)
            or self._make_room_to_open(peer, giving_way, now)
            or self._make_room(peer, giving_way, now)
        )
        if refusal is None:
            peer.half_open[connection] = now.ticks_ms
            self.half_open_count += 1
            self._by_connection[connection] = peer
            self._present[peer.key] = peer
        return Verdict(refusal, tuple(giving_way))

    def established(self, connection: int) -> None:
        """A handshake has come to its end."""
        peer = self._by_connection.get(connection)
        if peer is not None and peer.half_open.pop(connection, None) is not None:
            self.half_open_count -= 1
            peer.open[connection] = None

    def left(self, connection: int, now: Instant) -> None:
        """A connection is gone; one that never introduced itself makes the next one dearer."""
        peer = self._by_connection.pop(connection, None)
        if peer is None:
            return
        if peer.half_open.pop(connection, None) is not None:
            self.half_open_count -= 1
            peer.connects.charge(self.bounds.unfinished_cost, now.ticks_ms)
        else:
            del peer.open[connection]
        self.buffered_bytes -= peer.buffered.pop(connection, 0)
        if not peer.count:
            del self._present[peer.key]

    def is_configured(self, address: str) -> bool:
        """Whether an operator has named an address, or it is one of this computer."""
        return peer_key(address) in self._configured

    def met(self, address: str) -> None:
        """Count an address among the known ones: this computer has reached it itself."""
        key = peer_key(address)
        self._met.pop(key, None)
        self._met[key] = None
        if len(self._met) > self.bounds.known_max:
            del self._met[next(iter(self._met))]

    def _over_its_share(self, peer: _Peer, now: Instant) -> Refusal | None:
        """Refuse an address what its own connections, or attempts, leave no room for."""
        bounds, now_ms = self.bounds, now.ticks_ms
        if not peer.connects.take(1, now_ms):
            return Refusal.RATE
        is_quiet = peer.connects.used_thousandths(now_ms) <= 1_000 * bounds.connects_quiet
        if not self._all_connects.take(1, now_ms) and not is_quiet:
            return Refusal.RATE_OF_ALL
        if peer.count >= bounds.connections_per_peer_max:
            return Refusal.PER_PEER
        if len(peer.half_open) >= bounds.half_open_per_peer_max:
            return Refusal.HALF_OPEN_PER_PEER
        return None

    def _make_room_to_open(
        self, newcomer: _Peer, giving_way: list[int], now: Instant
    ) -> Refusal | None:
        """Let the one that has most handshakes under way give up its oldest, or the oldest."""
        if self.half_open_count < self.bounds.half_open_max:
            return None
        opening = [peer for peer in self._present.values() if peer.half_open]
        if newcomer.is_known:
            opening = [peer for peer in opening if not peer.is_known] or opening
        most = max(opening, key=lambda peer: len(peer.half_open))
        strangers_only = newcomer.is_known and not most.is_known
        if not strangers_only and len(most.half_open) <= len(newcomer.half_open) + 1:
            most = min(opening, key=lambda peer: next(iter(peer.half_open.values())))
            since_ms = next(iter(most.half_open.values()))
            if now.ticks_ms - since_ms < self.bounds.half_open_grace_ms:
                return Refusal.HALF_OPEN
        self._give_way(next(iter(most.half_open)), giving_way, now)
        return None

    def _make_room(self, newcomer: _Peer, giving_way: list[int], now: Instant) -> Refusal | None:
        """Let the one that has most connections give up one, if that makes shares more equal."""
        bounds = self.bounds
        places = bounds.connections_max
        if not newcomer.is_known:
            places -= bounds.connections_reserved
        if self.count < places:
            return None
        present = list(self._present.values())
        strangers = [peer for peer in present if not peer.is_known]
        if newcomer.is_known and strangers:
            most = max(strangers, key=lambda peer: peer.count)
        else:
            most = max(
                present if newcomer.is_known else strangers,
                key=lambda peer: peer.count,
                default=newcomer,
            )
            if most.count <= newcomer.count + 1:
                return Refusal.TOTAL
        # Of those that work, the newest: the oldest is the one that its owner relies on.
        victim = next(iter(most.half_open)) if most.half_open else next(reversed(most.open))
        self._give_way(victim, giving_way, now)
        return None

    def _give_way(self, connection: int, giving_way: list[int], now: Instant) -> None:
        giving_way.append(connection)
        self.left(connection, now)

    # Memory.

    def buffered(self, connection: int, size_bytes: int, now: Instant) -> int | None:
        """Note what is held for a connection; gives one to cut when that is too much."""
        peer = self._by_connection.get(connection)
        if peer is None:
            return None
        before_bytes = peer.buffered.get(connection, 0)
        if size_bytes == before_bytes:
            return None
        if size_bytes:
            peer.buffered[connection] = size_bytes
        else:
            del peer.buffered[connection]
        self.buffered_bytes += size_bytes - before_bytes
        if size_bytes < before_bytes:
            return None
        if peer.buffered_bytes <= self.bounds.buffered_per_peer_max_bytes:
            if self.buffered_bytes <= self.bounds.buffered_max_bytes:
                return None
            peer = self._heaviest()
        victim = max(peer.buffered, key=lambda number: peer.buffered[number])
        self.left(victim, now)
        return victim

    def _heaviest(self) -> _Peer:
        """Find for whom most is held; a stranger, if anything is held for strangers."""
        holding = [peer for peer in self._present.values() if peer.buffered]
        strangers = [peer for peer in holding if not peer.is_known]
        return max(strangers or holding, key=lambda peer: peer.buffered_bytes)

    # Datagrams.

    def takes_datagram(self, address: str, now: Instant) -> bool:
        """Return whether a datagram may be looked at, and count it."""
        own = self._peer(address, now).datagrams
        return own.take(1, now.ticks_ms) and self._all_datagrams.take(1, now.ticks_ms)

    # Addresses.

    def _peer(self, address: str, now: Instant) -> _Peer:
        """Find an address, or begin to remember it; in the crowd, when there is no room."""
        key = peer_key(address)
        is_known = key in self._configured or key in self._met
        peer = self.peers.pop(key, None)
        if peer is None:
            if len(self.peers) >= self.bounds.addresses_max:
                self._forget_some(now)
            if len(self.peers) >= self.bounds.addresses_max and not is_known:
                return self._crowd
            peer = _Peer(key, self.bounds, now)
        peer.is_known = is_known
        self.peers[key] = peer
        return peer

    def _forget_some(self, now: Instant) -> None:
        for peer in list(islice(self.peers.values(), _FORGET_LOOK_COUNT)):
            if peer.is_idle(now):
                del self.peers[peer.key]
            else:
                # It is looked at again after all others.
                self.peers[peer.key] = self.peers.pop(peer.key)


def peer_key(address: str) -> str:
    """Return what stands for a peer: its address, or the network of 64 bits that IPv6 gives a site.

    Whoever has one address of such a network has all of them.
    """
    found = address_of(address)
    if found is None:
        return address[:_ADDRESS_MAX_CHARACTERS]
    if isinstance(found, ipaddress.IPv4Address) or found.is_loopback:
        return str(found)
    return str(ipaddress.IPv6Network((int(found), _SITE_PREFIX), strict=False))
