"""How much the requests under way hold, of one address and of all: bodies, and their number.

A body counts from its head on with the length that it declares, so that there is room for all of it
once the first byte is taken.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from openmsmq.runtime.limits import (
    HTTP_BODIES_MAX_BYTES,
    HTTP_BODIES_PER_PEER_MAX_BYTES,
    HTTP_UNDER_WAY_MAX_COUNT,
    HTTP_UNDER_WAY_PER_PEER_MAX_COUNT,
)


class BurdenBounds(NamedTuple):
    """What may be held."""

    count_max: int = HTTP_UNDER_WAY_MAX_COUNT
    count_per_peer_max: int = HTTP_UNDER_WAY_PER_PEER_MAX_COUNT
    bytes_max: int = HTTP_BODIES_MAX_BYTES
    bytes_per_peer_max: int = HTTP_BODIES_PER_PEER_MAX_BYTES


class Burden:
    """Counts requests under way and their bodies."""

    def __init__(self, bounds: BurdenBounds) -> None:
        self.bounds: Final = bounds
        self.count = 0
        self.size = 0
        self._counts: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()

    def why_not(self, address: str, size: int) -> tuple[str, bool]:
        """Return why there is no room for a request, and whether that is up to its address."""
        bounds = self.bounds
        if self._counts[address] >= bounds.count_per_peer_max:
            return f"{bounds.count_per_peer_max} requests of this address are under way", True
        if self._sizes[address] + size > bounds.bytes_per_peer_max:
            return f"{bounds.bytes_per_peer_max} bytes are held for this address", True
        if self.count >= bounds.count_max:
            return f"{bounds.count_max} requests are under way", False
        if self.size + size > bounds.bytes_max:
            return f"{bounds.bytes_max} bytes are held for requests", False
        return "", False

    def add(self, address: str, size: int) -> None:
        """Count a request."""
        self.count += 1
        self.size += size
        self._counts[address] += 1
        self._sizes[address] += size

    def remove(self, address: str, size: int) -> None:
        """Count one no longer."""
        self.count -= 1
        self.size -= size
        self._counts[address] -= 1
        self._sizes[address] -= size
        if not self._counts[address]:
            del self._counts[address], self._sizes[address]
