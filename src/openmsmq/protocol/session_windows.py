"""What a session has sent and received, and what of it is acknowledged. [MQQB 3.1.1.6.1, 3.1.1.7]

Numbers are kept as they grow and cut to 16 bits only on the wire, so that nothing here has to
think about the wrap (C-50).
"""

from __future__ import annotations

from itertools import accumulate, islice
from typing import Final

from openmsmq.model.clock import Instant
from openmsmq.model.limits import (
    PACKET_MAX_BYTES,
    RECOVERABLE_ACK_MAX_COUNT,
    WINDOW_RECOVERY_S,
)
from openmsmq.protocol.session_states import Token
from openmsmq.wire.headers import session
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.message_bytes import is_recoverable

SESSION_IN_FLIGHT_MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes sent in one session and not acknowledged; a packet may begin below it. [ours]"""

SESSION_UNSTORED_MAX_BYTES: Final = 4 * SESSION_IN_FLIGHT_MAX_BYTES
"""Bytes of recoverable messages that the peer has received and not stored; we hold them all, so
whoever stores nothing gets no more. [ours]"""

ACK_AFTER_BYTES: Final = SESSION_IN_FLIGHT_MAX_BYTES // 4
"""Bytes received that are acknowledged at once: large messages must not wait for many. [ours]"""

UNSETTLED_MAX_COUNT: Final = 0x7FFF
"""Messages that arrived and still wait for their fate; whoever sends more overruns us. [ours]"""

UNSETTLED_MAX_BYTES: Final = 64 * PACKET_MAX_BYTES
"""The same in bytes: the largest messages, as many as Windows has in flight. [ours]"""

STORED_LAG_MAX_COUNT: Final = 0x3FFF
"""Recoverable messages sent since one that the peer never said to have stored. [ours]"""

_MASK: Final = 0xFFFF
_BEHIND_MAX: Final = 0x7FFF
_RECOVERY_MS: Final = WINDOW_RECOVERY_S * 1000
_MISSING: Final = object()


class RecoveringWindow:
    """A window that was made smaller and grows back, twice as large each time. [MQMQ 2.2.20.4]"""

    __slots__ = ("current", "full", "recover_at_ms")

    def __init__(self, full: int) -> None:
        self.full = full
        self.current = full
        self.recover_at_ms: int | None = None

    def adopt(self, window: int, now: Instant) -> None:
        """Take another window at once; a smaller one grows back to the full one (C-47)."""
        self.current = window
        self._plan(now)

    def aim(self, full: int, now: Instant) -> None:
        """Change where it grows to; what is beyond is cut at once."""
        self.full = full
        self.current = min(self.current, full)
        self._plan(now)

    def wake(self, now: Instant) -> None:
        """Grow, when it is time."""
        while self.recover_at_ms is not None and self.recover_at_ms <= now.ticks_ms:
            self.current = min(2 * self.current, self.full)
            self.recover_at_ms = (
                self.recover_at_ms + _RECOVERY_MS if self.current < self.full else None
            )

    def _plan(self, now: Instant) -> None:
        self.recover_at_ms = now.ticks_ms + _RECOVERY_MS if self.current < self.full else None


class Backlog:
    """How many packets wait in a row, and how many bytes they have, first come first gone."""

    __slots__ = ("_ends", "_start")

    def __init__(self) -> None:
        self._start = 0
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def size_bytes(self) -> int:
        """The bytes of all that wait."""
        return self._ends[-1] - self._start if self._ends else 0

    def add(self, packets: list[bytes]) -> None:
        """Let more wait, behind the others."""
        last = self._ends[-1] if self._ends else self._start
        self._ends.extend(islice(accumulate(map(len, packets), initial=last), 1, None))

    def drop(self, count: int) -> int:
        """Let the first ones go; give how many bytes they had."""
        if not count:
            return 0
        size_bytes = self._ends[count - 1] - self._start
        self._start = self._ends[count - 1]
        del self._ends[:count]
        return size_bytes


class SendWindow:
    """What was sent in a session and is not acknowledged yet. [MQQB 3.1.5.5, 3.1.7.1.3]

    Express packets are done when the peer has received them, recoverable ones when it has stored
    them; both leave the window when they are received (C-44, C-46).
    """

    def __init__(self, own: int) -> None:
        self.sent_count = 0
        self.recoverable_sent_count = 0
        self.peer = RecoveringWindow(own)
        """How many packets the peer wants to have in flight at most."""
        self._own = own
        self._covered_count = 0
        self._in_flight = Backlog()
        self._express: dict[int, Token] = {}
        self._recoverable: dict[int, tuple[int, Token, int]] = {}
        self._unstored_bytes = 0

    @property
    def in_flight_count(self) -> int:
        """Packets that the peer has not said to have received."""
        return len(self._in_flight)

    @property
    def limit(self) -> int:
        """How many packets may be in flight (C-47)."""
        return min(self._own, self.peer.current)

    @property
    def room(self) -> int:
        """How many packets may be sent now; when nothing is in flight, always one at least."""
        in_flight = len(self._in_flight)
        if (
            self._in_flight.size_bytes >= SESSION_IN_FLIGHT_MAX_BYTES
            or self._unstored_bytes >= SESSION_UNSTORED_MAX_BYTES
        ):
            return 0
        return max(0, self.limit - in_flight)

    @property
    def room_bytes(self) -> int:
        """How many bytes may be sent now; the last packet may go beyond."""
        return max(0, SESSION_IN_FLIGHT_MAX_BYTES - self._in_flight.size_bytes)

    def sent(self, tokens: list[Token], packets: list[bytes]) -> None:
        """Number packets that leave now."""
        express, recoverable = self._express, self._recoverable
        number, recoverable_number = self.sent_count, self.recoverable_sent_count
        for token, packet in zip(tokens, packets, strict=True):
            number += 1
            if is_recoverable(packet):
                recoverable_number += 1
                recoverable[recoverable_number] = (number, token, len(packet))
                self._unstored_bytes += len(packet)
            else:
                express[number] = token
        self.sent_count, self.recoverable_sent_count = number, recoverable_number
        self._in_flight.add(packets)

    def acknowledge(self, header: SessionHeader) -> list[Token] | None:
        """Take what the peer says; give the tokens that are done now.

        None when it speaks of packets that were never sent (C-50).
        """
        covered = (header.received_count - self._covered_count) & _MASK
        if covered > len(self._in_flight):
            return None
        stored = self._take_stored(header)
        if stored is None:
            return None
        first = self._covered_count + 1
        self._covered_count += covered
        self._in_flight.drop(covered)
        if not self._express:
            return stored
        pop = self._express.pop
        received = (pop(number, _MISSING) for number in range(first, first + covered))
        return [token for token in received if token is not _MISSING] + stored

    def _take_stored(self, header: SessionHeader) -> list[Token] | None:
        """Take the packets whose bits are set: none by a lower number alone (C-49)."""
        bits = header.stored_bits
        if not bits:
            return []
        skipped = (bits & -bits).bit_length() - 1
        bits >>= skipped
        behind = (self.recoverable_sent_count - header.stored_base - skipped) & _MASK
        number = self.recoverable_sent_count - behind
        if behind > _BEHIND_MAX or number < 1 or bits.bit_length() > behind + 1:
            return None
        done: list[Token] = []
        while bits:
            if bits & 1:
                entry = self._recoverable.pop(number, None)
                if entry is not None:
                    done.append(entry[1])
                    self._unstored_bytes -= entry[2]
            bits >>= 1
            number += 1
        return done

    @property
    def stored_lag_count(self) -> int:
        """How far the peer's storing has fallen behind our sending."""
        if not self._recoverable:
            return 0
        return self.recoverable_sent_count - next(iter(self._recoverable))

    @property
    def unstored_count(self) -> int:
        """Recoverable packets that the peer has not said to have stored."""
        return len(self._recoverable)

    def unacknowledged(self) -> list[Token]:
        """The tokens that are not done, in the order of sending."""
        waiting = [*self._express.items(), *(entry[:2] for entry in self._recoverable.values())]
        waiting.sort(key=lambda entry: entry[0])
        return [token for _, token in waiting]


class ReceiveWindow:
    """What arrived in a session, and the acknowledgments that are owed for it. [MQQB 3.1.5.8.7]

    Only what is settled is acknowledged, express or not: then the peer's window bounds what waits
    here for the disk, and a store that fails loses nothing that was acknowledged.
    """

    def __init__(self, own: int) -> None:
        self.received_count = 0
        self.recoverable_received_count = 0
        self.own = own
        """The window that we tell the peer."""
        self.expected = RecoveringWindow(own)
        """How much the peer dares to send, as far as we know: after pressure it grows slowly."""
        self.ack_wait_ms = 0
        self.recoverable_ack_ms = 0
        self.ack_due_ms: int | None = None
        self._ack_started_ms = 0
        self._unsettled = Backlog()
        self._marks = bytearray()
        self._settled_count = 0
        self._settled_bytes = 0
        self._stored_count = 0
        self._acknowledged_count = 0
        self._stored_acknowledged_count = 0

    @property
    def unsettled_count(self) -> int:
        """Packets that arrived and have no final fate yet."""
        return len(self._unsettled)

    @property
    def is_overrun(self) -> bool:
        """Whether more waits here than any honest peer sends."""
        return (
            len(self._unsettled) > UNSETTLED_MAX_COUNT
            or self._unsettled.size_bytes > UNSETTLED_MAX_BYTES
        )

    @property
    def owes(self) -> bool:
        """Whether anything that arrived is not acknowledged."""
        return (
            self.received_count > self._acknowledged_count
            or self._stored_count > self._stored_acknowledged_count
        )

    def arrived(self, packets: list[bytes], now: Instant) -> None:
        """Count packets that have come (C-40 to C-42), and see that they are acknowledged."""
        marks = bytes([is_recoverable(packet) for packet in packets])
        recoverable = marks.count(1)
        self._marks += marks
        self._unsettled.add(packets)
        self.received_count += len(packets)
        self.recoverable_received_count += recoverable
        if self.ack_due_ms is None:
            self._arm(self.ack_wait_ms // 2, now)
        if recoverable:
            self._hasten(now)

    def agrees(self, header: SessionHeader) -> bool:
        """Whether the peer has sent as many packets as have come. [MQQB 3.1.5.5.5]"""
        return header.sent_count == self.received_count & _MASK

    def agrees_on_recoverable(self, header: SessionHeader) -> bool:
        """The same for recoverable packets alone."""
        return header.recoverable_sent_count == self.recoverable_received_count & _MASK

    def settle(self, count: int, now: Instant) -> None:
        """The next packets have their final fate: it may be told (C-42, C-49)."""
        assert count <= len(self._unsettled), "settled more packets than have arrived"
        stored = self._marks.count(1, 0, count)
        del self._marks[:count]
        self._settled_bytes += self._unsettled.drop(count)
        self._settled_count += count
        if stored:
            self._stored_count += stored
            self._hasten(now)

    def is_ack_worthwhile(self, peer_window: int) -> bool:
        """Whether so much is settled that the peer should hear of it at once (C-48)."""
        threshold = max(1, min(self.own, self.expected.current, peer_window) // 2)
        return (
            self._settled_count - self._acknowledged_count >= threshold
            or self._stored_count - self._stored_acknowledged_count >= RECOVERABLE_ACK_MAX_COUNT
            or self._settled_bytes >= ACK_AFTER_BYTES
        )

    def is_ack_nearly_due(self, now: Instant) -> bool:
        """Whether an acknowledgment should ride on the next message. [MQQB 3.1.7.11]"""
        if self.ack_due_ms is None or not self.owes:
            return False
        whole_ms = self.ack_due_ms - self._ack_started_ms
        return 4 * (now.ticks_ms - self._ack_started_ms) > 3 * whole_ms

    def header(self, sent_count: int, recoverable_sent_count: int, now: Instant) -> bytes:
        """Acknowledge all that is settled, as far as one header can. [MQMQ 2.2.20.4]"""
        stored = min(
            self._stored_count - self._stored_acknowledged_count, RECOVERABLE_ACK_MAX_COUNT
        )
        header = session.LAYOUT.pack(
            self._settled_count & _MASK,
            (self._stored_acknowledged_count + 1) & _MASK if stored else 0,
            (1 << stored) - 1,
            sent_count & _MASK,
            recoverable_sent_count & _MASK,
            self.own,
            0,
        )
        self._stored_acknowledged_count += stored
        self._acknowledged_count = self._settled_count
        self._settled_bytes = 0
        self.ack_due_ms = None
        if self.owes:
            self._arm(self.ack_wait_ms // 2, now)
        return header

    @property
    def has_more_stored(self) -> bool:
        """Whether the last header had not enough bits for all that is stored."""
        return self._stored_count > self._stored_acknowledged_count

    def advertise(self, window: int, now: Instant) -> None:
        """Tell the peer another window from now on."""
        self.own = window
        self.expected.aim(window, now)

    def _arm(self, delay_ms: int, now: Instant) -> None:
        self._ack_started_ms = now.ticks_ms
        self.ack_due_ms = now.ticks_ms + delay_ms

    def _hasten(self, now: Instant) -> None:
        """Acknowledge recoverable packets sooner, but never later than planned (C-56)."""
        if self.ack_due_ms is None or now.ticks_ms + self.recoverable_ack_ms < self.ack_due_ms:
            self._arm(self.recoverable_ack_ms, now)
