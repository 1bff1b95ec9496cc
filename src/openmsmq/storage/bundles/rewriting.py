"""What becomes of the bundles when records change: a work, made before anything is written.

Records that are put beside each other become a bundle where nothing lies between them. A bundle of
which records change gives way to what is left of it, which stays where it is if it is in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, gt, itemgetter
from typing import Any, Final

import lmdb
import msgspec

from openmsmq.storage.bundles import staying
from openmsmq.storage.bundles.bundle import (
    Bundle,
    Records,
    divided,
    encode,
    is_worth_it,
)
from openmsmq.storage.bundles.checksums import pack
from openmsmq.storage.bundles.seeking import Bundles
from openmsmq.storage.bundles.staying import FileUse, Run, Stay

GATHERED_BYTES: Final = 1 << 20
"""What is taken out of a file at once that is hardly worth its place."""

_KEY: Final = itemgetter(0)
_FIRST: Final = attrgetter("first")

Changes = Sequence[tuple[bytes, bytes | None]]
Files = Mapping[int, FileUse]

STAY_COST_BYTES: Final = 64
"""What a bundle needs whose values stay in a file, beside its key and what comes before values."""

FILES_MAX_COUNT: Final = 4096
"""Files in which values stay; if there are more, what was set aside is written into the base."""


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
    stays: list[tuple[bytes, Stay]] = []
    """Bundles whose values stay in a file, with the last of their keys."""
    files: dict[int, FileUse] = {}
    """What the base has in each file for which that changes: nothing, if it needs it no more."""
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
        if self.dropped or self.made or self.stays:
            cursor = transaction.cursor(db=bundles)
            for key in self.dropped:
                if cursor.set_key(key):
                    cursor.delete()
            cursor.putmulti(map(encode, self.made))
            cursor.putmulti([staying.encode(last, stay) for last, stay in self.stays])

    def keep(self, records: Records) -> None:
        """Put what is left of a bundle."""
        for part, cost_bytes in divided(records):
            if is_worth_it(part, cost_bytes):
                self.make(part, cost_bytes)
            else:
                self.single += part

    def make(self, records: Records, cost_bytes: int) -> None:
        """Put records as a bundle."""
        self.made.append(records)
        self.made_bytes += cost_bytes
        self.gained_count += len(records)

    def leave(self, last: bytes, stay: Stay) -> None:
        """Put a bundle that says where records are; that its file is used is noted elsewhere."""
        self.stays.append((last, stay))
        self.made_bytes += STAY_COST_BYTES + len(last) + len(stay.prefix)
        self.gained_count += stay.count

    def drop(self, bundle: Bundle, files: Files) -> None:
        """Let a bundle go; `files` is what the base has in each file."""
        self.dropped.append(bundle.last)
        self.gained_count -= len(bundle.keys)
        stay = bundle.stay
        if stay is not None:
            use = self.files.get(stay.file) or files[stay.file]
            self.files[stay.file] = msgspec.structs.replace(
                use, used_bytes=use.used_bytes - stay.length
            )


def rewriting_of(
    changes: Changes,
    bundles: Bundles | None,
    next_single: Callable[[bytes], bytes | None],
    files: Files,
) -> Rewriting:
    """Find out what to write for changes of records, as the base is now.

    `next_single` gives the first key at or behind another that is outside of bundles, `files` what
    the base has in each file.
    """
    keys = [key for key, _ in changes]
    if any(map(gt, keys, keys[1:])):
        changes = sorted(changes, key=_KEY)
    work = Rewriting()
    if bundles is not None:
        changes = _change_bundles(work, changes, bundles, files)
    work.deleted = [key for key, value in changes if value is None]
    # Most often all are put, and then nothing is copied.
    puts: Any = changes
    if work.deleted:
        puts = [change for change in changes if change[1] is not None]
    for part, cost_bytes in divided(puts):
        if is_worth_it(part, cost_bytes) and _is_free(
            part[0][0], part[-1][0], bundles, next_single
        ):
            work.make(part, cost_bytes)
        else:
            work.single += part
    return work


def leaving_of(
    runs: Sequence[Run],
    bundles: Bundles | None,
    next_single: Callable[[bytes], bytes | None],
    files: Files,
) -> Rewriting | None:
    """Let the base say where records are; None if it cannot, and they have to be put.

    Most often they come behind all others. Then no other record lies between those of a run.
    """
    if len(files.keys() | {run.stays[0].file for run in runs}) > FILES_MAX_COUNT:
        return None
    work = Rewriting()
    behind = b""
    for run in sorted(runs, key=_FIRST):
        if run.first <= behind or not _is_free(run.first, run.last, bundles, next_single):
            return None
        behind = run.last
        for last, stay in zip(run.lasts, run.stays, strict=True):
            work.leave(last, stay)
        file, length = run.stays[0].file, sum([stay.length for stay in run.stays])
        use = work.files.get(file) or files.get(file)
        if use is None:
            use = FileUse(run.size_bytes, 0, run.first, run.last)
        work.files[file] = FileUse(
            use.size_bytes,
            use.used_bytes + length,
            min(use.first, run.first),
            max(use.last, run.last),
        )
    return work


def _is_free(
    first: bytes,
    last: bytes,
    bundles: Bundles | None,
    next_single: Callable[[bytes], bytes | None],
) -> bool:
    """Whether the base has nothing from one key to another one."""
    following = next_single(first)
    if following is not None and following <= last:
        return False
    reaching = None if bundles is None else bundles.reaching(first)
    return reaching is None or reaching.first > last


def _change_bundles(work: Rewriting, changes: Changes, bundles: Bundles, files: Files) -> Changes:
    """Add what becomes of the bundles that changes fall into; gives the other changes."""
    others: list[tuple[bytes, bytes | None]] = []
    place = 0
    while place < len(changes):
        bundle = bundles.reaching(changes[place][0])
        if bundle is None:
            return [*others, *changes[place:]] if place else changes
        own: dict[bytes, bytes | None] = {}
        while place < len(changes) and changes[place][0] <= bundle.last:
            key, value = changes[place]
            place += 1
            if key < bundle.first:
                others.append((key, value))
            else:
                own[key] = value
        puts_any = any(value is not None for value in own.values())
        if puts_any or not own.keys().isdisjoint(bundle.keys):
            _change(work, bundle, own, bundles, files)
    return others


def _change(
    work: Rewriting,
    bundle: Bundle,
    own: Mapping[bytes, bytes | None],
    bundles: Bundles,
    files: Files,
) -> None:
    """Let a bundle give way to what is left of it after changes, which are in order."""
    work.drop(bundle, files)
    stay = bundle.stay
    left: dict[bytes, bytes | None] = {}
    if stay is None:
        left = dict(zip(bundle.keys, bundle.values, strict=True))
    elif places := bundle.parts_beside(own):
        work.single += [(key, value) for key, value in own.items() if value is not None]
        use, used_bytes = work.files[stay.file], 0
        parts = staying.parts_of(stay, bundles.read(stay), places)
        for (_, stop), part in zip(places, parts, strict=True):
            work.leave(bundle.keys[stop - 1], part)
            used_bytes += part.length
        work.files[stay.file] = msgspec.structs.replace(use, used_bytes=use.used_bytes + used_bytes)
        return
    changed = sorted({**left, **own}.items())
    work.keep([(key, value) for key, value in changed if value is not None])


def gathering_of(file: int, most_bytes: int, bundles: Bundles, files: Files) -> Rewriting:
    """Take some of what the base has in a file into the base itself."""
    work = Rewriting()
    use = files[file]
    rest = use.first
    while work.put_bytes < most_bytes:
        bundle = bundles.reaching(rest)
        if bundle is None or bundle.first > use.last:
            break
        rest = bundle.last + b"\0"
        if bundle.stay is not None and bundle.stay.file == file:
            work.drop(bundle, files)
            work.keep(list(zip(bundle.keys, bundle.values, strict=True)))
    if file in work.files:
        work.files[file] = msgspec.structs.replace(work.files[file], first=rest)
    return work


def clearing_of(
    start: bytes, stop: bytes, limit: int, bundles: Bundles, files: Files
) -> tuple[Rewriting, bytes]:
    """Clear up to `limit` bundles of a range away; gives where the rest begins, too."""
    work = Rewriting()
    for _ in range(limit):
        bundle = bundles.reaching(start)
        if bundle is None or bundle.first >= stop:
            return work, stop
        gone = bundle.keys_between(start, stop)
        if gone:
            _change(work, bundle, dict.fromkeys(gone), bundles, files)
        start = bundle.last + b"\0"
    return work, min(start, stop)
