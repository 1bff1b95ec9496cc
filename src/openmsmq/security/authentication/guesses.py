"""Who may try a password now, so that none can be guessed at speed and nobody is locked out.

Wrong passwords cost their address, and the account, a place in a bucket that fills again with time.
Whoever finds a bucket empty is not judged at all: not even a right password is believed then, or
trying would still tell right from wrong. A right password costs nothing.

A stranger must not be able to lock an honest user out. So an account and an address that belong
together, because the right password came from there before, have a bucket of their own, which
nobody at another address can empty. An account's own bucket is far larger than that of an address:
to empty it takes many addresses at once, and it is never empty for longer than a second. Nothing is
locked for good, and nothing needs to be unlocked.

Time is handed in. What is remembered is bounded: of addresses, and of those that belong to an
account, the ones that were heard of last.
"""

from __future__ import annotations

from typing import Final

import msgspec

ADDRESS_GUESSES_BURST: Final = 10
"""Wrong passwords that may come from one address at once."""

ADDRESS_GUESS_MS: Final = 30_000
"""After so long an address may be wrong once more."""

ACCOUNT_GUESSES_BURST: Final = 100
"""Wrong passwords for one account at once, from addresses where the right one never came from."""

ACCOUNT_GUESS_MS: Final = 1_000
"""After so long somebody may be wrong about an account once more."""

GUESS_ADDRESSES_MAX_COUNT: Final = 4096
"""Addresses that are remembered because a wrong password came from them."""

GUESS_ACCOUNTS_MAX_COUNT: Final = 1000
"""Accounts that are remembered: as many as there can be."""

KNOWN_ADDRESSES_MAX_COUNT: Final = 8
"""Addresses for each account that are remembered because the right password came from them."""


class _Bucket(msgspec.Struct):
    """Places that are used up by being wrong, and come back with time."""

    burst: int
    refill_ms: int
    used_ms: int = 0
    """How long it takes until it is full."""
    at_ms: int = 0

    def wait_ms(self, now_ms: int) -> int:
        """Return how long it takes until there is a place; 0 if there is one."""
        self._settle(now_ms)
        return max(0, self.used_ms - (self.burst - 1) * self.refill_ms)

    def use(self, now_ms: int) -> None:
        self._settle(now_ms)
        self.used_ms += self.refill_ms

    def _settle(self, now_ms: int) -> None:
        # A clock that goes back takes nothing away and gives nothing.
        self.used_ms = max(0, self.used_ms - max(0, now_ms - self.at_ms))
        self.at_ms = max(now_ms, self.at_ms)


class _Buckets:
    """Buckets by name; those that were not used for longest give way."""

    def __init__(self, burst: int, refill_ms: int, most: int) -> None:
        self._burst = burst
        self._refill_ms = refill_ms
        self._most = most
        self._found: dict[str, _Bucket] = {}

    def wait_ms(self, name: str, now_ms: int) -> int:
        bucket = self._found.get(name)
        return 0 if bucket is None else bucket.wait_ms(now_ms)

    def use(self, name: str, now_ms: int) -> None:
        bucket = self._found.pop(name, _Bucket(self._burst, self._refill_ms))
        bucket.use(now_ms)
        self._found[name] = bucket
        if len(self._found) > self._most:
            del self._found[next(iter(self._found))]


class GuessGuard:
    """What is remembered of right and wrong passwords, for all connections together."""

    def __init__(self) -> None:
        self._addresses = _Buckets(
            ADDRESS_GUESSES_BURST, ADDRESS_GUESS_MS, GUESS_ADDRESSES_MAX_COUNT
        )
        self._accounts = _Buckets(ACCOUNT_GUESSES_BURST, ACCOUNT_GUESS_MS, GUESS_ACCOUNTS_MAX_COUNT)
        self._known: dict[str, dict[str, _Bucket]] = {}

    def wait_ms(self, account: str, address: str, now_ms: int) -> int:
        """Return how long somebody has to wait before a password is looked at; 0 for now."""
        own = self._known.get(account, {}).get(address)
        if own is not None:
            return own.wait_ms(now_ms)
        return max(
            self._addresses.wait_ms(address, now_ms), self._accounts.wait_ms(account, now_ms)
        )

    def failed(self, account: str, address: str, now_ms: int, *, exists: bool) -> None:
        """Take down a wrong password; names of accounts that do not exist cost the address only."""
        own = self._known.get(account, {}).get(address)
        if own is not None:
            own.use(now_ms)
            return
        self._addresses.use(address, now_ms)
        if exists:
            self._accounts.use(account, now_ms)

    def succeeded(self, account: str, address: str) -> None:
        """Take down a right password: from now on the two belong together."""
        known = self._known.pop(account, {})
        fresh = _Bucket(ADDRESS_GUESSES_BURST, ADDRESS_GUESS_MS)
        known[address] = known.pop(address, fresh)
        if len(known) > KNOWN_ADDRESSES_MAX_COUNT:
            del known[next(iter(known))]
        self._known[account] = known
        if len(self._known) > GUESS_ACCOUNTS_MAX_COUNT:
            del self._known[next(iter(self._known))]
