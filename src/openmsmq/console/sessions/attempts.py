"""How often somebody may try to sign in: some attempts at once, and then one after a pause.

Whoever tries is known by the user of this computer whose connection it is, as the kernel says, and
otherwise by the address: users of one computer do not use up each other's attempts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from ipaddress import IPv6Network
from typing import Final, TypeAlias

import msgspec

from openmsmq.console import limits
from openmsmq.model.peers import address_of

Endpoint: TypeAlias = tuple[str, int]
OwnerOf: TypeAlias = Callable[[Endpoint, Endpoint], int | None]
"""Says whose the other end of a connection of this computer is, if that is known."""

_NETWORK_BITS: Final = 64
"""What one computer has of IPv6: all addresses that begin alike."""


class Source(msgspec.Struct, frozen=True):
    """Who makes an attempt, as far as it is known."""

    name: str
    is_user: bool = False
    """Whether it is a user of this computer, by the word of the kernel."""


def source_of(theirs: Endpoint | None, ours: Endpoint | None, owner_of: OwnerOf) -> Source:
    """Return who is at the other end of a connection."""
    if theirs is None:
        return Source("")
    address = address_of(theirs[0])
    if address is None:
        return Source(theirs[0])
    our_address = None if ours is None else address_of(ours[0])
    if address.is_loopback or address == our_address:
        user = None
        if ours is not None:
            user = owner_of((str(address), theirs[1]), (str(our_address), ours[1]))
        # Everybody here has many addresses: who is not known is one, whatever the address.
        return Source("this computer") if user is None else Source(f"user {user}", is_user=True)
    if address.version == 6:
        return Source(str(IPv6Network((int(address), _NETWORK_BITS), strict=False)))
    return Source(str(address))


class Bucket:
    """Attempts that are left, and how fast they come again."""

    def __init__(self, burst: int, pause_s: float, now_s: float) -> None:
        self._burst = burst
        self._pause_s = pause_s
        self._left = float(burst)
        self._at_s = now_s

    def take(self, now_s: float) -> float:
        """Take an attempt; returns 0, or in how many seconds there is one."""
        self._left = min(self._burst, self._left + (now_s - self._at_s) / self._pause_s)
        self._at_s = now_s
        if self._left < 1:
            return (1 - self._left) * self._pause_s
        self._left -= 1
        return 0.0


class Attempts:
    """Counts attempts, by who makes them, and of all together who are no users of this computer."""

    def __init__(self, now_s: float) -> None:
        self._all = Bucket(limits.ATTEMPTS_ALL_BURST_COUNT, limits.ATTEMPT_ALL_PAUSE_S, now_s)
        self._by_source: dict[Source, Bucket] = {}

    def wait_s(self, source: Source, now_s: float) -> int:
        """Count an attempt; returns 0, or after how many seconds to try again."""
        bucket = self._by_source.pop(source, None)
        if bucket is None:
            bucket = Bucket(limits.ATTEMPTS_BURST_COUNT, limits.ATTEMPT_PAUSE_S, now_s)
        # The last one that tried stands last; who has not tried for longest is forgotten first.
        self._by_source[source] = bucket
        if len(self._by_source) > limits.SOURCES_MAX_COUNT:
            del self._by_source[next(iter(self._by_source))]
        own_s = bucket.take(now_s)
        # Who has none left of his own takes none of all. Users of this computer are few: they need
        # no common bound, and nobody from elsewhere can use it up for them.
        return math.ceil(own_s or (0 if source.is_user else self._all.take(now_s)))
