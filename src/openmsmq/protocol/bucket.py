"""A token bucket: so much each second, and no more at once than a short time's worth."""

from __future__ import annotations


class Bucket:
    """Counts in thousandths, so that nothing is lost between two milliseconds."""

    __slots__ = ("_at_ms", "_full", "_level", "_per_s")

    def __init__(self, per_s: int, burst: int, now_ms: int) -> None:
        self._per_s = per_s
        self._full = burst * 1_000
        self._level = self._full
        self._at_ms = now_ms

    def _fill(self, now_ms: int) -> None:
        if now_ms > self._at_ms:
            self._level = min(self._full, self._level + (now_ms - self._at_ms) * self._per_s)
            self._at_ms = now_ms

    def has(self, amount: int, now_ms: int) -> bool:
        """Whether an amount is there; without a rate everything is."""
        self._fill(now_ms)
        return not self._per_s or self._level >= amount * 1_000

    def take(self, amount: int, now_ms: int) -> bool:
        """Take an amount if it is there."""
        if not self.has(amount, now_ms):
            return False
        self._level -= amount * 1_000
        return True

    def draw(self, amount: int, now_ms: int) -> None:
        """Take an amount that is not waited for: whoever comes next waits for it."""
        if self._per_s:
            self._fill(now_ms)
            self._level -= amount * 1_000

    def charge(self, amount: int, now_ms: int) -> None:
        """Do the same, but let no more be owed than there can be at once."""
        self.draw(amount, now_ms)
        self._level = max(self._level, -self._full)

    def used_thousandths(self, now_ms: int) -> int:
        """Return how much has not come back yet."""
        self._fill(now_ms)
        return self._full - self._level

    def ready_ms(self, amount: int) -> int | None:
        """Return when an amount will be there; None if it is there already."""
        short = amount * 1_000 - self._level
        if not self._per_s or short <= 0:
            return None
        return self._at_ms - (-short // self._per_s)
