"""Which messages came already: a sender that lost its connection sends some of them again.

Transactional messages have their sequences; this is for all others.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from openmsmq.model.clock import Instant

_STALE_MAX_COUNT: Final = 1000
"""Identifiers beyond twice the allowed number that may be listed more than once."""


class _Batch:
    """Identifiers that were noted together: when, and in which record on disk."""

    __slots__ = ("message_ids", "position", "record", "ticks_ms")

    def __init__(self, message_ids: list[bytes], ticks_ms: int, record: int | None) -> None:
        self.message_ids = message_ids
        self.ticks_ms = ticks_ms
        self.record = record
        self.position = 0
        """Those before it fell out."""


class DuplicateFilter:
    """The identifiers of the messages that came last (MessageIDHistoryTable). [MQQB 3.1.5.8.1]

    A message is known by its 20-byte identifier, because numbers of different senders may be
    equal (C-81). Identifiers are noted in batches. A batch that is on disk has the number of its
    record there, and `expired` names the records of which no identifier is left (C-59).
    """

    def __init__(self, max_count: int, kept_ms: int) -> None:
        self._max_count = max_count
        self._kept_ms = kept_ms
        # Each identifier counts in the batch in which it was noted last.
        self._seen: dict[bytes, _Batch] = {}
        self._batches: deque[_Batch] = deque()
        self._listed_count = 0
        self._record_counts: dict[int, int] = {}
        self._emptied: list[int] = []
        self._noted_ms = 0
        self._cleanup_at_ms: int | None = None

    def __contains__(self, message_id: bytes) -> bool:
        return message_id in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def has_any(self, message_ids: list[bytes]) -> bool:
        """Whether one of several messages came already."""
        return not self._seen.keys().isdisjoint(message_ids)

    def refresh(self, message_id: bytes, now: Instant) -> None:
        """Remember a message from now on that came once more. [MQQB 3.1.5.8.1]"""
        batch = self._seen.get(message_id)
        if batch is not None:
            self._add([message_id], now, batch.record)

    def note(self, message_ids: list[bytes], now: Instant, record: int | None = None) -> None:
        """Remember messages; the oldest others fall out when they are too many."""
        seen = self._seen
        self._noted_ms = now.ticks_ms
        latest = message_ids
        if len(set(message_ids)) < len(message_ids):
            latest = list(dict.fromkeys(reversed(message_ids)))[::-1]
        if record is not None:
            # Counted before anything falls out, so that a record is never taken for empty early.
            self._record_counts[record] = self._record_counts.get(record, 0) + len(latest)
        if self.has_any(latest):
            for message_id in latest:
                earlier = seen.get(message_id)
                if earlier is not None:
                    self._release(earlier.record, 1)
        self._add(latest, now, record)
        self._drop_oldest(len(seen) - self._max_count)
        if record is not None and not message_ids and not self._record_counts[record]:
            self._empty(record)
        if self._cleanup_at_ms is None and seen:
            self._cleanup_at_ms = now.ticks_ms + self._kept_ms

    def _add(self, message_ids: list[bytes], now: Instant, record: int | None) -> None:
        batch = _Batch(message_ids, now.ticks_ms, record)
        self._seen.update(dict.fromkeys(message_ids, batch))
        self._batches.append(batch)
        self._listed_count += len(message_ids)
        if self._listed_count > 2 * self._max_count + _STALE_MAX_COUNT:
            self._unlist_stale()

    def _unlist_stale(self) -> None:
        """Drop from their old batches the identifiers that were noted again."""
        seen = self._seen
        for batch in self._batches:
            batch.message_ids = [key for key in batch.message_ids if seen.get(key) is batch]
            batch.position = 0
        self._batches = deque(batch for batch in self._batches if batch.message_ids)
        self._listed_count = len(seen)

    def forget(self, record: int) -> None:
        """Take the messages of a record back, because the disk refused it."""
        if self._record_counts.pop(record, 0):
            seen = self._seen
            for batch in self._batches:
                if batch.record == record:
                    for message_id in batch.message_ids:
                        if seen.get(message_id) is batch:
                            del seen[message_id]
            if not seen:
                self._cleanup_at_ms = None

    def expired(self, now: Instant) -> list[int]:
        """Drop what is too old, and give each record once that holds nothing any more.

        [MQQB 3.1.6.7]
        """
        if self._cleanup_at_ms is not None and now.ticks_ms >= self._cleanup_at_ms:
            self._drop_before(now.ticks_ms - self._kept_ms)
            self._cleanup_at_ms = now.ticks_ms + self._kept_ms if self._seen else None
        emptied, self._emptied = self._emptied, []
        return emptied

    @property
    def next_wake_ms(self) -> int | None:
        """When `expired` is to be asked again: at once while it has records to give."""
        return self._noted_ms if self._emptied else self._cleanup_at_ms

    def _drop_before(self, ticks_ms: int) -> None:
        batches = self._batches
        while batches and batches[0].ticks_ms < ticks_ms:
            self._drop_from(batches[0], len(batches[0].message_ids))

    def _drop_oldest(self, count: int) -> None:
        while count > 0:
            count -= self._drop_from(self._batches[0], count)

    def _drop_from(self, oldest: _Batch, count: int) -> int:
        """Let up to so many identifiers fall out of the oldest batch; gives how many did."""
        seen, dropped = self._seen, 0
        for message_id in oldest.message_ids[oldest.position :]:
            if dropped == count:
                break
            oldest.position += 1
            if seen.get(message_id) is oldest:
                del seen[message_id]
                dropped += 1
        if oldest.position == len(oldest.message_ids):
            self._batches.popleft()
            self._listed_count -= oldest.position
        self._release(oldest.record, dropped)
        return dropped

    def _release(self, record: int | None, count: int) -> None:
        if record is not None and count:
            self._record_counts[record] -= count
            if not self._record_counts[record]:
                self._empty(record)

    def _empty(self, record: int) -> None:
        del self._record_counts[record]
        self._emptied.append(record)
