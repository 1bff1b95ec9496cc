"""Messages of one direction of a session that wait for its acknowledgment.

Numbers are those of the wire, modulo 65536. When the capture has the beginning of a session they
are counted; otherwise, and behind a gap, the next header of the sender tells them, and what was
acknowledged meanwhile is looked at again. Whoever waits longer than numbers can tell old from new
is given up.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic

import msgspec

from openmsmq.analysis.events import Settled, T
from openmsmq.analysis.kinds import Fate
from openmsmq.wire.headers.session import SessionHeader

WAITING_MAX_COUNT: Final = 0x7FFF
_MASK: Final = 0xFFFF
_HALF: Final = 0x8000


class _Numbering:
    """How many messages were sent; unknown until it was counted from the start, or told."""

    def __init__(self, *, known: bool) -> None:
        self.count = 0
        self.known = known

    def next(self) -> int:
        """Count one more; its number is right as soon as the numbering is known."""
        self.count += 1
        return self.count

    def told(self, count: int) -> tuple[bool, int]:
        """Take the sender's count: whether it agrees, and what to add to numbers given before."""
        shift = (count - self.count) & _MASK
        if self.known:
            return shift == 0, 0
        self.known = True
        self.count += shift
        return True, shift

    def has(self, number: int) -> bool:
        """Whether a message of this number was sent, as far as numbers can tell."""
        return (self.count - number) & _MASK < min(self.count, _HALF)


class _Waiting(msgspec.Struct, Generic[T]):
    message: T
    recoverable: bool
    time_ns: int
    number: int


class Ledger(Generic[T]):
    """What one side has sent and the other has not acknowledged."""

    def __init__(self, *, from_start: bool) -> None:
        self._all = _Numbering(known=from_start)
        self._recoverable = _Numbering(known=from_start)
        self._express_waiting: deque[_Waiting[T]] = deque()
        self._recoverable_waiting: dict[int, _Waiting[T]] = {}
        self._unnumbered: deque[_Waiting[T]] = deque()
        self._early: deque[tuple[SessionHeader, int]] = deque(maxlen=WAITING_MAX_COUNT)
        """Acknowledgments that came while messages had no numbers yet."""
        self._done: list[Settled[T]] = []
        self._last_heard: SessionHeader | None = None
        self._is_complete = from_start

    def __len__(self) -> int:
        return len(self._express_waiting) + len(self._recoverable_waiting) + len(self._unnumbered)

    @property
    def waiting_since_ns(self) -> int | None:
        """When the message was sent that waits longest, if one waits."""
        waiting = (*self._waiting(), *self._unnumbered)
        return min((one.time_ns for one in waiting), default=None)

    @property
    def is_over_acknowledged(self) -> bool:
        """Whether the other side has acknowledged messages that the capture knows were not sent."""
        heard = self._last_heard
        if not self._is_complete or heard is None:
            return False
        if heard.received_count and not self._all.has(heard.received_count):
            # Zero is also what 65536 is told as.
            return True
        last_stored = heard.stored_base + heard.stored_bits.bit_length() - 1
        return heard.stored_bits > 0 and not self._recoverable.has(last_stored)

    def take(self) -> list[Settled[T]]:
        """Return the messages whose fate is known now, once."""
        done, self._done = self._done, []
        return done

    def sent(self, message: T, time_ns: int, *, recoverable: bool) -> None:
        """Take the next message."""
        number = self._all.next()
        numbering = self._all
        if recoverable:
            number = self._recoverable.next()
            numbering = self._recoverable
        waiting = _Waiting(message, recoverable, time_ns, number)
        if numbering.known:
            self._file(waiting)
        else:
            self._unnumbered.append(waiting)
            if len(self._unnumbered) > WAITING_MAX_COUNT:
                self._end(self._unnumbered.popleft(), Fate.UNKNOWN)

    def counted(self, header: SessionHeader) -> bool:
        """Take the counts of the sender; tells whether they agree with what was seen."""
        agrees, shift = self._all.told(header.sent_count)
        recoverable_agrees, recoverable_shift = self._recoverable.told(
            header.recoverable_sent_count
        )
        while self._unnumbered:
            waiting = self._unnumbered.popleft()
            waiting.number += recoverable_shift if waiting.recoverable else shift
            self._file(waiting)
        while self._early:
            self._settle(*self._early.popleft())
        return agrees and recoverable_agrees

    def acknowledged(self, header: SessionHeader, time_ns: int) -> None:
        """Take what the other side says to have received and stored."""
        self._last_heard = header
        if self._unnumbered:
            self._early.append((header, time_ns))
        self._settle(header, time_ns)

    def _settle(self, header: SessionHeader, time_ns: int) -> None:
        done: list[_Waiting[T]] = []
        express = self._express_waiting
        while express and (header.received_count - express[0].number) & _MASK < _HALF:
            done.append(express.popleft())
        bits, number = header.stored_bits, header.stored_base
        while bits:
            if bits & 1:
                found = self._recoverable_waiting.pop(number & _MASK, None)
                if found is not None:
                    done.append(found)
            bits >>= 1
            number += 1
        for waiting in done:
            self._end(waiting, Fate.ACKNOWLEDGED, time_ns)

    def lose_count(self) -> None:
        """Bytes of the sender are missing: how many messages were in them is not known."""
        self._is_complete = False
        self._all.known = self._recoverable.known = False

    def finish(self, fate: Fate) -> None:
        """Nothing more comes: say what became of those that still wait."""
        for one in self._waiting():
            self._end(one, fate)
        for one in self._unnumbered:
            # Acknowledgments may have meant it.
            self._end(one, Fate.UNKNOWN)
        self._express_waiting.clear()
        self._recoverable_waiting.clear()
        self._unnumbered.clear()

    def _waiting(self) -> tuple[_Waiting[T], ...]:
        return (*self._express_waiting, *self._recoverable_waiting.values())

    def _file(self, waiting: _Waiting[T]) -> None:
        if not waiting.recoverable:
            self._express_waiting.append(waiting)
            if len(self._express_waiting) > WAITING_MAX_COUNT:
                self._end(self._express_waiting.popleft(), Fate.UNKNOWN)
            return
        number = waiting.number & _MASK
        before = self._recoverable_waiting.pop(number, None)
        if before is None and len(self._recoverable_waiting) == WAITING_MAX_COUNT:
            before = self._recoverable_waiting.pop(next(iter(self._recoverable_waiting)))
        if before is not None:
            self._end(before, Fate.UNKNOWN)
        self._recoverable_waiting[number] = waiting

    def _end(self, waiting: _Waiting[T], fate: Fate, acknowledged_ns: int | None = None) -> None:
        self._done.append(Settled(waiting.message, fate, waiting.time_ns, acknowledged_ns))
