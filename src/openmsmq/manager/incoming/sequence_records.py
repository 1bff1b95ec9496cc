"""How many sequences of senders are remembered, and which give way. [ours]

A record is made on the word of a sender, so there are only so many of them: for each address that
nobody but its senders vouches for, and in all. Where there is no room in all, the address with most
of them gives way; at one address, what has not been used for a day does.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

from openmsmq.manager.queues.totals import KILOBYTE, Totals
from openmsmq.model.clock import Instant
from openmsmq.model.limits import (
    INCOMING_SEQUENCE_BYTES,
    INCOMING_SEQUENCE_KEPT_S,
    INCOMING_SEQUENCE_UNUSED_S,
    INCOMING_SEQUENCES_MAX_COUNT,
    INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT,
    UNLIMITED_KB,
)

_QUOTA_SHARE: Final = 8
_SITE_BITS: Final = 64


class SequenceRecords:
    """The keys of all records, by who vouches for their senders, each group by its last use."""

    def __init__(self, totals: Totals, forget: Callable[[bytes], None]) -> None:
        self._totals = totals
        self._forget = forget
        self._groups: dict[str, dict[bytes, int]] = {}
        """The time of the last use of each record, by address; none for those vouched for."""
        self._group_of: dict[bytes, str] = {}
        self._by_count: dict[int, dict[str, None]] = {}
        """The addresses that have so many records: whoever has most is found without a search."""
        self._most = 0

    def __len__(self) -> int:
        return len(self._group_of)

    def __contains__(self, key: bytes) -> bool:
        return key in self._group_of

    @property
    def max_count(self) -> int:
        """How many there may be."""
        quota_kb = self._totals.quota_kb
        if quota_kb == UNLIMITED_KB:
            return INCOMING_SEQUENCES_MAX_COUNT
        room = quota_kb * KILOBYTE // _QUOTA_SHARE // INCOMING_SEQUENCE_BYTES
        return min(INCOMING_SEQUENCES_MAX_COUNT, max(room, 1))

    def has_room(self, place: str, now: Instant) -> bool:
        """Whether one more may be there; others may have to go for it."""
        group = _group(place)
        records = self._groups.get(group, {})
        if group and len(records) >= INCOMING_SEQUENCES_PER_ADDRESS_MAX_COUNT:
            oldest = next(iter(records))
            if now.unix_s - records[oldest] < INCOMING_SEQUENCE_UNUSED_S:
                return False
            self._forget(oldest)
        if len(self) < self.max_count:
            return True
        if not self._most or (group and self._most <= len(records) + 1):
            return False
        largest = next(iter(self._by_count[self._most]))
        self._forget(next(iter(self._groups[largest])))
        return True

    def used(self, key: bytes, place: str, time_s: int) -> None:
        """Note the use of a record, new or not."""
        before, group = self._group_of.get(key), _group(place)
        if before is not None:
            self._take_out(key, before)
        records = self._groups.setdefault(group, {})
        records[key] = time_s
        self._group_of[key] = group
        self._count(group, len(records) - 1, len(records))

    def drop(self, key: bytes) -> bool:
        """A record is gone; says whether its sender alone vouched for himself."""
        group = self._group_of.pop(key, None)
        if group is None:
            return False
        self._take_out(key, group)
        return bool(group)

    def _take_out(self, key: bytes, group: str) -> None:
        records = self._groups[group]
        del records[key]
        self._count(group, len(records) + 1, len(records))
        if not records:
            del self._groups[group]

    def _count(self, group: str, before: int, after: int) -> None:
        """Note how many records an address has; those vouched for are not compared."""
        if not group:
            return
        if before:
            del self._by_count[before][group]
            if not self._by_count[before]:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, {})[group] = None
        if after > self._most or self._most not in self._by_count:
            # It was the one with most, and has one more or one less now.
            self._most = after

    def expire(self, now: Instant) -> None:
        """Forget what was not used for so long that nothing of it can be on its way."""
        for records in list(self._groups.values()):
            for key, used_s in list(records.items()):
                if now.unix_s - used_s < INCOMING_SEQUENCE_KEPT_S:
                    break
                self._forget(key)


def _group(place: str) -> str:
    """Return what counts as one address: of IPv6, a whole site has as many as it likes."""
    if ":" not in place:
        return place
    try:
        number = int(ipaddress.IPv6Address(place.partition("%")[0]))
    except ValueError:
        return place
    return f"{number >> _SITE_BITS:x}/{_SITE_BITS}"
