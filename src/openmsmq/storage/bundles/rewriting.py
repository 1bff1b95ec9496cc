"""What becomes of the bundles when records change: a work, made before anything is written.

Records that are put beside each other become a bundle where nothing lies between them. A bundle of
which records change gives way to what is left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import gt, itemgetter
from typing import Final

import lmdb
import msgspec

from openmsmq.storage.bundles.bundle import (
    Bundle,
    Records,
    cost_of,
    divided,
    encode,
    is_worth_it,
)
from openmsmq.storage.bundles.checksums import pack
from openmsmq.storage.bundles.seeking import Bundles

_KEY: Final = itemgetter(0)

Changes = Sequence[tuple[bytes, bytes | None]]


class Rewriting(msgspec.Struct):
    """What to write."""

    deleted: list[bytes] = []
    """Records outside of bundles that go."""
    dropped: list[bytes] = []
    """Bundles that go, by the last of their keys."""
    single: list[tuple[bytes, bytes]] = []
    """Records that are put one by one."""
    made: list[Records] = []
    """Bundles, by their records: they are encoded one by one, while the processor has them."""
    made_bytes: int = 0
    """How long they are together, at most."""
    gained_count: int = 0
    """How many records the bundles have more than before."""

    @property
    def put_bytes(self) -> int:
        """How much is written."""
        return self.made_bytes + sum([len(key) + len(value) for key, value in self.single])

    def carry_out(self, transaction: lmdb.Transaction, bundles: lmdb._Database | None) -> None:
        """Write it; outside of bundles is where the transaction writes unless it is told."""
        cursor = transaction.cursor()
        for key in self.deleted:
            if cursor.set_key(key):
                cursor.delete()
        cursor.putmulti([(key, pack(key, value)) for key, value in self.single])
        if self.dropped or self.made:
            cursor = transaction.cursor(db=bundles)
            for key in self.dropped:
                if cursor.set_key(key):
                    cursor.delete()
            cursor.putmulti(map(encode, self.made))

    def keep(self, records: Records) -> None:
        """Put what is left of a bundle."""
        cost_bytes = cost_of(records)
        if is_worth_it(records, cost_bytes):
            self.make(records, cost_bytes)
        else:
            self.single += records

    def make(self, records: Records, cost_bytes: int) -> None:
        """Put records as a bundle."""
        self.made.append(records)
        self.made_bytes += cost_bytes
        self.gained_count += len(records)

    def drop(self, bundle: Bundle) -> None:
        """Let a bundle go."""
        self.dropped.append(bundle.last)
        self.gained_count -= len(bundle.keys)


def rewriting_of(
    changes: Changes, bundles: Bundles | None, next_single: Callable[[bytes], bytes | None]
) -> Rewriting:
    """Find out what to write for changes of records, as the base is now.

    `next_single` gives the first key at or behind another that is outside of bundles.
    """
    keys = [key for key, _ in changes]
    if any(map(gt, keys, keys[1:])):
        changes = sorted(changes, key=_KEY)
    work = Rewriting()
    if bundles is not None:
        changes = _change_bundles(work, changes, bundles)
    puts: list[tuple[bytes, bytes]] = []
    for key, value in changes:
        if value is None:
            work.deleted.append(key)
        else:
            puts.append((key, value))
    for part, cost_bytes in divided(puts):
        first, last = part[0][0], part[-1][0]
        following = next_single(first) if is_worth_it(part, cost_bytes) else first
        if following is not None and following <= last:
            work.single += part
            continue
        reaching = None if bundles is None else bundles.reaching(first)
        if reaching is not None and reaching.first <= last:
            work.single += part
            continue
        work.make(part, cost_bytes)
    return work


def _change_bundles(work: Rewriting, changes: Changes, bundles: Bundles) -> Changes:
    """Add what becomes of the bundles that changes fall into; gives the other changes."""
    others: list[tuple[bytes, bytes | None]] = []
    place = 0
    while place < len(changes):
        bundle = bundles.reaching(changes[place][0])
        if bundle is None:
            return [*others, *changes[place:]]
        left = dict(zip(bundle.keys, bundle.values, strict=True))
        is_changed = False
        while place < len(changes) and changes[place][0] <= bundle.last:
            key, value = changes[place]
            place += 1
            if key < bundle.first:
                others.append((key, value))
            elif value is not None:
                left[key] = value
                is_changed = True
            elif left.pop(key, None) is not None:
                is_changed = True
        if is_changed:
            work.drop(bundle)
            work.keep(sorted(left.items()))
    return others


def clearing_of(start: bytes, stop: bytes, limit: int, bundles: Bundles) -> tuple[Rewriting, bytes]:
    """Clear up to `limit` bundles of a range away; gives where the rest begins, too."""
    work = Rewriting()
    for _ in range(limit):
        bundle = bundles.reaching(start)
        if bundle is None or bundle.first >= stop:
            return work, stop
        gone = {key for key, _ in bundle.between(start, stop)}
        if gone:
            work.drop(bundle)
            records = zip(bundle.keys, bundle.values, strict=True)
            work.keep([record for record in records if record[0] not in gone])
        start = bundle.last + b"\0"
    return work, min(start, stop)
