"""Which messages came already: a sender that lost its connection sends some of them again.

Transactional messages have their sequences; this is for all others.
"""

from __future__ import annotations

from collections import OrderedDict

from openmsmq.model.clock import Instant


class DuplicateFilter:
    """The identifiers of the messages that came last (MessageIDHistoryTable). [MQQB 3.1.5.8.1]

    A message is known by its 20-byte identifier, because numbers of different senders may be
    equal (C-81). Identifiers are noted in batches. A batch that is on disk has the number of its
    record there, and `expired` names the records of which no identifier is left (C-59).
    """

    def __init__(self, max_count: int, kept_ms: int) -> None:
        self._max_count = max_count
        self._kept_ms = kept_ms
        # When each was seen last, and in which record it is; the oldest first.
        self._seen: OrderedDict[bytes, tuple[int, int | None]] = OrderedDict()
        self._record_counts: dict[int, int] = {}
        self._emptied: list[int] = []
        self._noted_ms = 0
        self._cleanup_at_ms: int | None = None

    def __contains__(self, message_id: bytes) -> bool:
        return message_id in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def refresh(self, message_id: bytes, now: Instant) -> None:
        """Remember a message from now on that came once more. [MQQB 3.1.5.8.1]"""
        mark = self._seen.get(message_id)
        if mark is not None:
            self._seen[message_id] = (now.ticks_ms, mark[1])
            self._seen.move_to_end(message_id)

    def note(self, message_ids: list[bytes], now: Instant, record: int | None = None) -> None:
        """Remember messages; the oldest others fall out when they are too many."""
        seen = self._seen
        self._noted_ms = now.ticks_ms
        if record is not None:
            # Counted before anything falls out, so that a record is never taken for empty early.
            self._record_counts[record] = self._record_counts.get(record, 0) + len(message_ids)
        mark = (now.ticks_ms, record)
        for message_id in message_ids:
            earlier = seen.pop(message_id, None)
            if earlier is not None:
                self._release(earlier[1])
            seen[message_id] = mark
        while len(seen) > self._max_count:
            self._release(seen.popitem(last=False)[1][1])
        if record is not None and not message_ids and not self._record_counts[record]:
            self._empty(record)
        if self._cleanup_at_ms is None and seen:
            self._cleanup_at_ms = now.ticks_ms + self._kept_ms

    def forget(self, record: int) -> None:
        """Take the messages of a record back, because the disk refused it."""
        if self._record_counts.pop(record, 0):
            for message_id in [key for key, mark in self._seen.items() if mark[1] == record]:
                del self._seen[message_id]
            if not self._seen:
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
        seen = self._seen
        while seen:
            message_id = next(iter(seen))
            seen_at_ms, record = seen[message_id]
            if seen_at_ms >= ticks_ms:
                return
            del seen[message_id]
            self._release(record)

    def _release(self, record: int | None) -> None:
        if record is not None:
            self._record_counts[record] -= 1
            if not self._record_counts[record]:
                self._empty(record)

    def _empty(self, record: int) -> None:
        del self._record_counts[record]
        self._emptied.append(record)
