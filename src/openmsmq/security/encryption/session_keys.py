"""Caches of session keys: bounded, and each key for its time only. [MQQB 3.1.1.3.3, 3.1.6.10-12]"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from openmsmq.security.encryption.ciphers import BodyCipher

_Name = TypeVar("_Name", bound=Hashable)
_Value = TypeVar("_Value")


class KeyCache(Generic[_Name, _Value]):
    """Values by name, the oldest first. What they are is never shown.

    Threads of an application may share one: each step is one of the dictionary.
    """

    def __init__(self, max_count: int, lifetime_ms: int) -> None:
        self._max_count = max_count
        self._lifetime_ms = lifetime_ms
        self._entries: dict[_Name, tuple[int, _Value]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: _Name, now_ms: int) -> _Value | None:
        """Return the value of that name, unless its time is over."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        if now_ms - entry[0] >= self._lifetime_ms:
            self._entries.pop(name, None)
            return None
        return entry[1]

    def put(self, name: _Name, value: _Value, now_ms: int) -> None:
        """Remember a value; a full cache first forgets the older half. [MQQB 3.1.5.8.3]"""
        if self._max_count <= 0:
            return
        self._entries.pop(name, None)
        if len(self._entries) >= self._max_count:
            # Entries are kept in the order in which they came, so the first are the oldest.
            for old in list(self._entries)[: max(1, self._max_count // 2)]:
                self._entries.pop(old, None)
        self._entries[name] = now_ms, value

    def forget_expired(self, now_ms: int) -> None:
        """Forget all whose time is over."""
        for name, (since_ms, _) in list(self._entries.items()):
            if now_ms - since_ms < self._lifetime_ms:
                return
            self._entries.pop(name, None)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    @property
    def next_expiry_ms(self) -> int | None:
        """When the oldest entry's time is over; None for an empty cache."""
        for since_ms, _ in list(self._entries.values()):
            return since_ms + self._lifetime_ms
        return None

    def __repr__(self) -> str:
        return f"KeyCache({len(self._entries)} of {self._max_count})"


class FailureCounts:
    """How often messages with one session key could not be decrypted."""

    def __init__(self, max_count: int, failures_max_count: int, lifetime_ms: int) -> None:
        self._max_count = max_count
        self._failures_max_count = failures_max_count
        self._lifetime_ms = lifetime_ms
        self._entries: dict[bytes, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def too_many(self, blob: bytes, now_ms: int) -> bool:
        """Whether a key has failed too often, the last time not long ago."""
        if not self._entries:
            return False
        entry = self._entries.get(blob)
        return (
            entry is not None
            and entry[0] >= self._failures_max_count
            and now_ms - entry[1] < self._lifetime_ms
        )

    def add(self, blob: bytes, now_ms: int) -> None:
        """Count a failure."""
        count, since_ms = self._entries.get(blob, (0, now_ms))
        if now_ms - since_ms >= self._lifetime_ms:
            count = 0
        if count == 0 and len(self._entries) >= self._max_count:
            self._make_room(now_ms)
        self._entries[blob] = count + 1, now_ms

    def forget_expired(self, now_ms: int) -> None:
        """Forget all whose last failure was long ago."""
        for blob, (_, since_ms) in list(self._entries.items()):
            if now_ms - since_ms >= self._lifetime_ms:
                del self._entries[blob]

    def _make_room(self, now_ms: int) -> None:
        """Forget half, those with the fewest failures first.

        Keys that somebody makes up only to fill the table go before one that is attacked.
        """
        self.forget_expired(now_ms)
        excess = len(self._entries) - self._max_count // 2
        fewest = sorted(self._entries, key=lambda blob: self._entries[blob][0])
        for blob in fewest[: max(0, excess)]:
            del self._entries[blob]


class SessionKey:
    """A session key ready to use: its cipher, and how it travels to its receiver."""

    __slots__ = ("blob", "cipher", "provider_info")

    def __init__(self, cipher: BodyCipher, blob: bytes, provider_info: bytes) -> None:
        self.cipher = cipher
        self.blob = blob
        """The SIMPLEBLOB."""
        self.provider_info = provider_info

    def __repr__(self) -> str:
        return "SessionKey()"
