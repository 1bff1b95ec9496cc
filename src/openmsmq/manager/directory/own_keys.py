"""The key pairs of this queue manager: which are in use, which only for what is under way.

Keys are made by the driver, which keeps them in files; they are never in the store. The newest is
published in the directory. Older ones stay for a while, so that what was encrypted for them can be
read; of those that sign only the newest is of use. [MQDMPR 3.1.1.1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from openmsmq.manager.directory.calls import Done, Publisher, Refused
from openmsmq.manager.outputs import MakeKeys
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.timers import earliest
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change
from openmsmq.model.errors import InsufficientResources, MsmqError, NoDirectory
from openmsmq.model.limits import KEY_CACHE_MARGIN_S
from openmsmq.model.topology import PublicKey
from openmsmq.security.encryption.decryption import PRIVATE_KEYS_MAX_COUNT, ReceiveKeys
from openmsmq.security.own_key import KeptKey, OwnKey, OwnSigningKey
from openmsmq.security.policy import SAFE_CIPHERS
from openmsmq.security.providers import ADVANCED, Provider

RENEWALS_MAX_COUNT: Final = 16
"""Calls that may wait for one renewal of the keys. [ours]"""

_DAY_S: Final = 24 * 3600


class OwnKeys:
    """Has the private keys, and sees to it that there are new ones in time."""

    def __init__(self, base: Foundation, keys: Sequence[KeptKey]) -> None:
        self._config = base.config.security
        self._outputs = base.outputs
        self._keys: list[OwnKey] = []
        self._newest: list[OwnKey] = []
        """One for each provider, without those that nobody should use any more."""
        self.signing: OwnSigningKey | None = None
        """With which this queue manager signs; without a directory it has none."""
        self._is_making = False
        self._retry_at_s = 0
        self._drop_at_s: int | None = None
        """When the next old key is of no use any more."""
        self._waiting: list[tuple[Done, Refused]] = []
        self.receive = ReceiveKeys(self._config.policy)
        self._take(keys, base.started)

    @property
    def public(self) -> tuple[PublicKey, ...]:
        """The newest key of each provider that is allowed, as it is published."""
        ordered = sorted(self._newest, key=lambda key: -key.provider.level)
        return tuple(key.published() for key in ordered)

    @property
    def certificates(self) -> tuple[PublicKey, ...]:
        """The certificate by which others know what this queue manager has signed."""
        return () if self.signing is None else (self.signing.published(),)

    def _is_allowed(self, key: OwnKey) -> bool:
        is_safe = key.provider is ADVANCED
        return self._is_long_enough(key) and any(
            (cipher in SAFE_CIPHERS) is is_safe for cipher in self._config.policy.ciphers
        )

    def _is_long_enough(self, key: KeptKey) -> bool:
        return key.key.public.modulus.bit_length() >= self._config.policy.smallest_key_bits

    @property
    def kept(self) -> tuple[KeptKey, ...]:
        """All keys that are of use."""
        return (*self._keys, *self._signing_keys)

    @property
    def _signing_keys(self) -> tuple[OwnSigningKey, ...]:
        return () if self.signing is None else (self.signing,)

    def renew(self, done: Done, refused: Refused) -> None:
        """Have new keys made and published."""
        if not self._keys:
            raise NoDirectory(
                "this queue manager has no keys: it has no directory to publish them in"
            )
        if len(self._waiting) >= RENEWALS_MAX_COUNT:
            raise InsufficientResources(f"{RENEWALS_MAX_COUNT} calls wait for new keys already")
        self._waiting.append((done, refused))
        self._make()

    def _make(self) -> None:
        if not self._is_making:
            self._is_making = True
            self._outputs.append(MakeKeys())

    def made(self, keys: Sequence[KeptKey], publisher: Publisher, now: Instant) -> None:
        """New keys are there, in their files, and are to be published."""
        self._is_making = False
        # Whatever was made, nobody makes keys without end.
        self._retry_at_s = now.unix_s + _DAY_S
        self._take([*keys, *self.kept], now)
        waiting, self._waiting = self._waiting, []

        def done(changes: Sequence[Change], now: Instant) -> None:
            for each, _ in waiting:
                each(changes, now)

        def refused(error: MsmqError, now: Instant) -> None:
            for _, each in waiting:
                each(error, now)

        try:
            publisher.publish(done, refused, now)
        except MsmqError as error:
            refused(error, now)

    def failed(self, error: MsmqError, now: Instant) -> None:
        """No keys could be made; the old ones stay in use."""
        self._is_making = False
        self._retry_at_s = now.unix_s + _DAY_S
        waiting, self._waiting = self._waiting, []
        for _, refused in waiting:
            refused(error, now)

    def _take(self, keys: Sequence[KeptKey], now: Instant) -> None:
        """Use keys, the newest first, without those that have been replaced for too long."""
        signing = [
            key for key in keys if isinstance(key, OwnSigningKey) and self._is_long_enough(key)
        ]
        self.signing = max(signing, key=lambda key: key.created_time_s, default=None)
        encrypting = [key for key in keys if isinstance(key, OwnKey)]
        ordered = sorted(encrypting, key=lambda key: -key.created_time_s)
        kept: list[OwnKey] = []
        replaced_s: dict[Provider, int] = {}
        self._drop_at_s = None
        for key in ordered:
            since_s = replaced_s.get(key.provider)
            replaced_s[key.provider] = key.created_time_s
            if since_s is None:
                kept.append(key)
                continue
            until_s = since_s + self._config.key_retention_s
            if now.unix_s < until_s:
                kept.append(key)
                self._drop_at_s = earliest(self._drop_at_s, until_s)
        self._keys = kept[:PRIVATE_KEYS_MAX_COUNT]
        newest = {key.provider: key for key in reversed(self._keys)}
        self._newest = [key for key in newest.values() if self._is_allowed(key)]
        self.receive.use(self._keys)

    def wake(self, now: Instant) -> None:
        """Forget old keys, and make new ones when the newest are old. [MQQB 3.1.6.10]"""
        forget_ms = self._forget_at_ms
        if forget_ms is not None and forget_ms <= now.ticks_ms:
            self.receive.forget_expired(now.ticks_ms)
        if self._drop_at_s is not None and self._drop_at_s <= now.unix_s:
            self._take(self.kept, now)
        due_s = self._due_s
        if due_s is not None and due_s <= now.unix_s:
            self._make()

    @property
    def _due_s(self) -> int | None:
        if not self._newest or self._is_making:
            return None
        # Every turn of the loop asks for it, and there are four kinds of keys at most.
        in_use: tuple[KeptKey, ...] = (*self._newest, *self._signing_keys)
        oldest_s = min([key.created_time_s for key in in_use])
        return max(oldest_s + self._config.key_lifetime_s, self._retry_at_s)

    @property
    def _forget_at_ms(self) -> int | None:
        oldest_ms = self.receive.cache.next_expiry_ms
        return None if oldest_ms is None else oldest_ms + KEY_CACHE_MARGIN_S * 1000

    def next_wake_ms(self, now: Instant) -> int | None:
        """When `wake` has something to do."""
        due_s = earliest(self._due_s, self._drop_at_s)
        due_ms = None if due_s is None else now.ticks_ms + max(0, due_s - now.unix_s) * 1000
        return earliest(due_ms, self._forget_at_ms)
