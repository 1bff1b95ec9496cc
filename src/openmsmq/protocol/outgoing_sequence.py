"""Numbers for the transactional messages to one queue, and which of them to send again.

A number is given once, is on disk before its message leaves, and stays with the message (C-65).
Every message names the one before it that is still outstanding, so that the receiver notices
what it missed and passes over what was given up (C-69).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId, SequencePoint
from openmsmq.model.queue import OutgoingSequenceStatus
from openmsmq.protocol.config import TransferConfig

SEQUENCE_OUTSTANDING_MAX_COUNT: Final = 10_000
"""Transactional messages to one queue that were sent and not yet acknowledged in order."""

SEQUENCE_MAX_NUMBER: Final = 0xFFFFFFFF
"""The last number of a sequence; the next message begins a new one."""


class OutgoingSequence:
    """The transactional messages to one queue, from their number to their order acknowledgment.

    It belongs to the outgoing queue and outlives sessions (C-66). [MQQB 3.1.1.3.1.1, 3.1.1.5]
    """

    def __init__(self, config: TransferConfig, id: SequenceId | None, last_number: int) -> None:
        self.id = id
        """The sequence from which numbers are taken; None before the first message."""
        self.last_number = last_number
        """The number given last; 0 when the sequence has given none."""
        # Outstanding messages, in parallel and in number order, all of one sequence. Removing
        # from plain lists of this bounded size is a short copy; searching them is a bisection.
        self._numbers: list[int] = []
        self._entries: list[int] = []
        self._number_of: dict[int, int] = {}
        self._outstanding_id = id
        self._pauses_s = config.resend_s
        self._attempt = 0
        self._resend_at_ms: int | None = None
        self._resend_time_s = 0
        self._acknowledged: SequencePoint | None = None
        self._last_ack_time_s = 0
        self._last_ack_count = 0

    def needs_renewal(self, queue_is_empty: bool) -> bool:
        """Whether the next number must come from a new sequence. [MQQB 3.1.1.5]"""
        if self.id is None or self.last_number >= SEQUENCE_MAX_NUMBER:
            return True
        return queue_is_empty and self.last_number > 0

    def renew(self, id: SequenceId) -> None:
        """Begin a new sequence, which must be younger than all before. [MQQB 3.1.1.3.1]"""
        assert self.id is None or id > self.id
        self.id = id
        self.last_number = 0

    def restore(self, id: SequenceId | None, last_number: int) -> None:
        """Take numbers back that never reached the disk and so were never sent."""
        self.id = id
        self.last_number = last_number

    def take_number(self) -> SequencePoint:
        """Return the next number; it must be on disk before its message leaves (C-65)."""
        assert self.id is not None
        assert self.last_number < SEQUENCE_MAX_NUMBER
        previous = self.last_number
        self.last_number = number = previous + 1
        return SequencePoint(self.id, number, previous)

    @property
    def can_send(self) -> bool:
        """Whether one more message may go; messages that are outstanding may always go again.

        A younger sequence waits for the older one: the receiver drops what is older than the
        youngest sequence it knows.
        """
        count = len(self._numbers)
        return not count or (
            count < SEQUENCE_OUTSTANDING_MAX_COUNT and self._outstanding_id == self.id
        )

    def previous_of(self, number: int) -> int:
        """Return the nearest outstanding number before `number`, or 0 (C-69).

        Messages are asked for in their order, and each is reported as sent before the next.
        """
        numbers = self._numbers
        if not numbers:
            return 0
        if number > numbers[-1]:
            return numbers[-1]
        index = bisect_left(numbers, number)
        return numbers[index - 1] if index else 0

    def sent(self, point: SequencePoint, entry: int, now: Instant) -> None:
        """Note that a message has left, for the first time or again. [MQQB 3.1.7.1.3]

        One that was acknowledged meanwhile is released a second time by the next acknowledgment.
        After a restart that is the usual way: the old acknowledgments found nothing to release.
        """
        numbers = self._numbers
        if not numbers:
            self._outstanding_id = point.id
        assert point.id == self._outstanding_id, "a younger sequence must wait for the older one"
        if entry not in self._number_of:
            self._number_of[entry] = number = point.number
            if number == 1:
                self._acknowledged, self._last_ack_count = SequencePoint(point.id, 0, 0), 0
            if not numbers or number > numbers[-1]:
                numbers.append(number)
                self._entries.append(entry)
            else:
                index = bisect_left(numbers, number)
                numbers.insert(index, number)
                self._entries.insert(index, entry)
        if self._resend_at_ms is None:
            self._start_timer(now)

    def order_acked(self, id: SequenceId, number: int, now: Instant) -> list[int]:
        """Release what the receiver has, and give its entries in order. [MQQB 3.1.5.6]

        Acknowledgments of other sequences say nothing about this one (C-64), nor does one of a
        number that was never given. But a younger one is begun only when the older is complete: who
        acknowledges it has all of the older, even if a restart made us forget that we knew.
        """
        current = self._outstanding_id if self._numbers else self.id
        if self._numbers and id == self.id != current and 0 < number <= self.last_number:
            assert current is not None
            id, number = current, self._numbers[-1]
        if id != current or (id == self.id and number > self.last_number):
            return []
        self._last_ack_time_s = now.unix_s
        self._last_ack_count += 1
        last = self._acknowledged
        if last is None or last.id != id or last.number < number:
            self._acknowledged = SequencePoint(id, number, max(number - 1, 0))
        count = bisect_right(self._numbers, number)
        if not count:
            return []
        released = self._entries[:count]
        del self._numbers[:count], self._entries[:count]
        for entry in released:
            del self._number_of[entry]
        self._begin_schedule(now)
        return released

    def gone(self, entry: int) -> None:
        """Give a message up that expired or was purged; the next one bridges the gap (C-69)."""
        number = self._number_of.pop(entry, None)
        if number is None:
            return
        index = bisect_left(self._numbers, number)
        del self._numbers[index], self._entries[index]
        if not self._numbers:
            self._stop_timer()

    def resend_due(self, now: Instant) -> bool:
        """Whether everything outstanding must go again; if so, the next pause begins (C-68).

        [MQQB 3.1.6.5]
        """
        if self._resend_at_ms is None or now.ticks_ms < self._resend_at_ms:
            return False
        self._attempt += 1
        self._start_timer(now)
        return True

    def unreached(self) -> None:
        """Wait for no acknowledgment until something leaves again: the receiver takes nothing.

        [MQSRM 3.1.7.2.5]
        """
        self._resend_at_ms = None
        self._resend_time_s = 0

    def reconnected(self, now: Instant) -> None:
        """Begin with the shortest pause again: a new session is open. [MQQB 3.1.3.2]

        Pauses that grew while the receiver was away must not keep it waiting for hours; nor must
        sessions that come and go put off what is due.
        """
        due_ms, due_s = self._resend_at_ms, self._resend_time_s
        self._begin_schedule(now)
        if due_ms is not None and self._resend_at_ms is not None and due_ms < self._resend_at_ms:
            self._resend_at_ms, self._resend_time_s = due_ms, due_s

    def has_begun(self, id: SequenceId) -> bool:
        """Whether the receiver has said that it has something of a sequence."""
        last = self._acknowledged
        return last is not None and last.id == id and last.number > 0

    def is_outstanding(self, entry: int) -> bool:
        """Whether a message was sent and is not acknowledged in order."""
        return entry in self._number_of

    def outstanding(self) -> list[int]:
        """Return the entries that are sent and not acknowledged in order, first number first."""
        return self._entries.copy()

    def status(self, unread_count: int) -> OutgoingSequenceStatus:
        """Return how far it has come; the caller counts what waits for its final acknowledgment.

        [MQQB 3.1.5.6]
        """
        return OutgoingSequenceStatus(
            first_unacknowledged=self._outstanding_point(0),
            last_unacknowledged=self._outstanding_point(-1),
            last_acknowledged=self._acknowledged,
            next=self._next_point(),
            last_ack_time_s=self._last_ack_time_s,
            last_ack_count=self._last_ack_count,
            unacknowledged_count=len(self._numbers),
            unread_count=unread_count,
            resend_count=self._attempt,
            resend_interval_s=self._pause_s,
            resend_time_s=self._resend_time_s,
        )

    @property
    def next_wake_ms(self) -> int | None:
        """When `resend_due` is to be asked again; None while nothing is outstanding."""
        return self._resend_at_ms

    @property
    def _pause_s(self) -> int:
        return self._pauses_s[min(self._attempt, len(self._pauses_s) - 1)]

    def _outstanding_point(self, index: int) -> SequencePoint | None:
        if not self._numbers or self._outstanding_id is None:
            return None
        number = self._numbers[index]
        return SequencePoint(self._outstanding_id, number, self.previous_of(number))

    def _next_point(self) -> SequencePoint | None:
        if self.id is None or self.last_number >= SEQUENCE_MAX_NUMBER:
            return None
        return SequencePoint(self.id, self.last_number + 1, self.last_number)

    def _begin_schedule(self, now: Instant) -> None:
        self._attempt = 0
        if self._numbers:
            self._start_timer(now)
        else:
            self._stop_timer()

    def _start_timer(self, now: Instant) -> None:
        pause_s = self._pause_s
        self._resend_at_ms = now.ticks_ms + pause_s * 1000
        self._resend_time_s = now.unix_s + pause_s

    def _stop_timer(self) -> None:
        self._attempt = 0
        self._resend_at_ms = None
        self._resend_time_s = 0
