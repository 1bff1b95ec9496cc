"""How often somebody may try to sign in: some attempts at once, and then one after a pause."""

from __future__ import annotations

import math

from openmsmq.console import limits


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
    """Counts attempts, by address and for all together."""

    def __init__(self, now_s: float) -> None:
        self._all = Bucket(limits.ATTEMPTS_ALL_BURST_COUNT, limits.ATTEMPT_ALL_PAUSE_S, now_s)
        self._by_address: dict[str, Bucket] = {}

    def wait_s(self, address: str, now_s: float) -> int:
        """Count an attempt; returns 0, or after how many seconds to try again."""
        bucket = self._by_address.pop(address, None)
        if bucket is None:
            bucket = Bucket(limits.ATTEMPTS_BURST_COUNT, limits.ATTEMPT_PAUSE_S, now_s)
        # The last one that tried stands last; who has not tried for longest is forgotten first.
        self._by_address[address] = bucket
        if len(self._by_address) > limits.ADDRESSES_MAX_COUNT:
            del self._by_address[next(iter(self._by_address))]
        # Who has none left of his own takes none of all.
        return math.ceil(bucket.take(now_s) or self._all.take(now_s))
