"""Vouchers: what was sent under a key of its sender, so that the same is not sent twice.

A sender that has heard no answer sends again with the same key, and is told what came of the first
time. The voucher is stored with the message, in one turn: either both are there or neither is. It
is kept for a window; when room is needed, older ones of those who have most go earlier, but none
before its time of grace. Keys of different owners have nothing to do with each other.
"""

from __future__ import annotations

import hashlib
from typing import Final

from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.transactions.effects import VoucherChanged
from openmsmq.manager.transactions.staged import share_of
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, InvalidParameter, PropertiesConflict
from openmsmq.model.limits import (
    VOUCHER_DIGEST_BYTES,
    VOUCHER_GRACE_S,
    VOUCHER_KEY_MAX_CHARACTERS,
    VOUCHER_WINDOW_S,
)
from openmsmq.security.access.callers import Caller
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader
from openmsmq.storage.records import VoucherRecord

_ROWS: Final = 1000
_EXPIRED_AT_ONCE_COUNT: Final = 4
"""Vouchers that one new one clears away at most."""


class Vouchers:
    """Knows what was sent under which key."""

    def __init__(self, base: Foundation, access: AccessControl) -> None:
        self._most = base.config.vouchers_max
        self._ledger = base.ledger
        self._access = access
        # Of each owner, in the order in which they came.
        self._kept = _all_vouchers(base.reader)
        self.count = sum(map(len, self._kept.values()))

    def find(self, caller: Caller, key: str, now: Instant) -> VoucherRecord | None:
        """Return the voucher of a key, if there is one that still counts."""
        _require_key(key)
        owner = caller.owner_name
        found = self._kept.get(owner, {}).get(_place(owner, key))
        return None if found is None or self._is_over(found, now) else found

    def find_same(
        self, caller: Caller, key: str, digest: bytes, now: Instant
    ) -> VoucherRecord | None:
        """Do the same for somebody who sends; refuse another message under the same key."""
        if not 0 < len(digest) <= VOUCHER_DIGEST_BYTES:
            raise InvalidParameter(
                f"a digest of {len(digest)} bytes; it has 1 to {VOUCHER_DIGEST_BYTES}"
            )
        found = self.find(caller, key, now)
        if found is not None and found.digest != digest:
            raise PropertiesConflict(
                f"another message was sent under the key {key!r}: give each message its own"
            )
        return found

    def make_room(self, caller: Caller, now: Instant) -> None:
        """Clear away what is over, and make room for one voucher, or raise."""
        owner = caller.owner_name
        own = self._kept.get(owner, {})
        for place in [*own][:_EXPIRED_AT_ONCE_COUNT]:
            if not self._is_over(own[place], now):
                break
            self._change(owner, place, None)
        if self.count >= self._most:
            self._forget_oldest(max(self._kept, key=lambda each: len(self._kept[each])), now)
        elif len(own) >= share_of(self._most, self.count - len(own)) and not (
            self._access.administers(caller)
        ):
            self._forget_oldest(owner, now)

    def keep(self, caller: Caller, key: str, made: VoucherRecord) -> None:
        """Remember what was sent, with the turn."""
        owner = caller.owner_name
        self._change(owner, _place(owner, key), made)

    def changed(self, owner: str, place: bytes, record: VoucherRecord | None) -> None:
        """Know another voucher, or none. Only effects call this."""
        own = self._kept.setdefault(owner, {})
        self.count -= own.pop(place, None) is not None
        if record is not None:
            own[place] = record
            self.count += 1
        elif not own:
            del self._kept[owner]

    def put_back(self, owner: str, place: bytes, record: VoucherRecord) -> None:
        """Know a voucher again that was the oldest of its owner. Only effects call this."""
        self._kept[owner] = {place: record, **self._kept.get(owner, {})}
        self.count += 1

    def _change(self, owner: str, place: bytes, record: VoucherRecord | None) -> None:
        before = self._kept.get(owner, {}).get(place)
        self._ledger.add(VoucherChanged(self, owner, place, before, record))

    def _forget_oldest(self, owner: str, now: Instant) -> None:
        own = self._kept[owner]
        place, oldest = next(iter(own.items()))
        if 0 <= now.unix_s - oldest.sent_time_s < VOUCHER_GRACE_S:
            raise InsufficientResources(
                f"{self.count} vouchers are kept, {len(own)} of them of one sender, and there may "
                f"be {self._most} in all; none is older than {VOUCHER_GRACE_S} s: send more slowly,"
                " or without keys"
            )
        self._change(owner, place, None)

    def _is_over(self, record: VoucherRecord, now: Instant) -> bool:
        return now.unix_s >= record.sent_time_s + VOUCHER_WINDOW_S


def _place(owner: str, key: str) -> bytes:
    """Return under what a voucher is stored: neither the key nor its owner can be read from it."""
    return hashlib.sha256(f"{owner}\0{key}".encode()).digest()[:VOUCHER_DIGEST_BYTES]


def _all_vouchers(reader: StoreReader) -> dict[str, dict[bytes, VoucherRecord]]:
    found: list[tuple[bytes, VoucherRecord]] = []
    start, stop = records.kind_range(b"K")
    while rows := reader.scan(start, stop, _ROWS):
        for key, value in rows:
            found.append((key[1:], records.decode_record(value, records.VoucherRecord)))
        start = rows[-1][0] + b"\0"
    found.sort(key=lambda each: each[1].sent_time_s)
    kept: dict[str, dict[bytes, VoucherRecord]] = {}
    for place, record in found:
        kept.setdefault(record.owner, {})[place] = record
    return kept


def _require_key(key: str) -> None:
    if not 0 < len(key) <= VOUCHER_KEY_MAX_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise InvalidParameter(
            f"{key[:VOUCHER_KEY_MAX_CHARACTERS]!r} is no key: it has 1 to "
            f"{VOUCHER_KEY_MAX_CHARACTERS} characters of ASCII that can be printed"
        )
