"""A source: it numbers, sends and keeps what an application gives it, and repairs what was lost.

The driver hands in payloads, packets that came for it, and the time; out come packets. Everything
that leaves counts against one rate. Repairs and new data take turns, so that whoever asks for
repairs all day does not stop the source. [RFC 3208 5, 16; MC-MQSRM 2.1.3.1]
"""

from __future__ import annotations

import heapq
from collections import deque
from ipaddress import IPv4Address
from typing import Final

from openmsmq.protocol.bucket import Bucket
from openmsmq.protocol.pgm import limits
from openmsmq.protocol.pgm.outputs import Group, Profile, Transmit
from openmsmq.protocol.pgm.serial import MASK, after, distance
from openmsmq.wire.pgm.options import NO_OPTIONS, Fragment, Options
from openmsmq.wire.pgm.packets import (
    DATA_BYTES,
    FRAGMENT_BYTES,
    Body,
    Data,
    Nak,
    Packet,
    PacketType,
    SourceId,
    Spm,
    repaired,
)

IP_HEADER_BYTES: Final = 20
"""What the rate counts beside each packet. [RFC 3208 5.1.1]"""
PLAIN_BYTES: Final = limits.PGM_PACKET_MAX_BYTES - DATA_BYTES
PART_BYTES: Final = PLAIN_BYTES - FRAGMENT_BYTES
FULL_BYTES: Final = limits.PGM_PACKET_MAX_BYTES + IP_HEADER_BYTES
PACKETS_AT_ONCE: Final = 64
"""What one call of `wake` sends at most; the driver has others to look after."""
CONFIRMING_SHARE: Final = 4
"""Confirmations may cost one part in so many of the rate, beside it."""
ASKED_TWICE_MS: Final = 100
"""Within so long, a second request for a packet is the copy that went to everybody."""
OPENING_SPMS: Final = 3
OPENING_MS: Final = 20
"""A new source says where it begins so often, and so long apart, before its first data."""


class Source:
    """Sends to one group. It is over when `is_over`, and a new one needs a new identifier."""

    def __init__(
        self,
        source: SourceId,
        group: Group,
        address: str,
        profile: Profile,
        first: int,
        now_ms: int,
    ) -> None:
        self.identifier = source
        self.group = group
        self._address = IPv4Address(address).packed
        self._group_address = IPv4Address(group.address).packed
        self._profile = profile
        rate = profile.rate_bytes_per_s
        burst = max(rate * limits.PGM_BURST_MS // 1_000, FULL_BYTES)
        self._bucket = Bucket(rate, burst, now_ms)
        # A flood of requests for repairs must not take what data need.
        share = (rate or limits.PGM_SOURCE_RATE_BYTES_PER_S) // CONFIRMING_SHARE
        self._confirming = Bucket(share, max(share // 10, FULL_BYTES), now_ms)
        self._next = first & MASK
        self._trail = self._next
        # The packets of the window, from the trail on, and when each was sent.
        self._window: deque[bytes] = deque()
        self._sent_ms: deque[int] = deque()
        self._window_bytes = 0
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        # Parts of the first payload of the backlog that are next to be sent.
        self._part = 0
        self._part_first = self._next
        # Promised repairs with when they were confirmed, and when each is due; and those that were
        # made just now: a receiver asks twice, us and everybody.
        self._repairs: dict[int, int] = {}
        self._repairs_due: list[tuple[int, int]] = []
        self._repaired_ms: dict[int, int] = {}
        self._repair_is_next = False
        self._opening = OPENING_SPMS
        self._spm_number = 0
        self._spm_ms = now_ms
        self._since_spm = 0
        self._heartbeat_ms = limits.PGM_HEARTBEAT_MIN_MS
        self._is_silent = True
        self._advance_ms = now_ms + self._advance_interval_ms
        self._used_ms = now_ms
        self._outputs: list[Transmit] = []
        self.sent_count = 0
        """Data packets, without repairs."""
        self.repaired_count = 0
        self.is_over = False

    @property
    def _advance_interval_ms(self) -> int:
        return max(
            1, self._profile.window_s * 1_000 * limits.PGM_WINDOW_ADVANCE_S // limits.PGM_WINDOW_S
        )

    @property
    def backlog_bytes(self) -> int:
        """What was taken over and is not sent yet."""
        return self._backlog_bytes

    @property
    def has_room(self) -> bool:
        """Whether another payload may come."""
        return not self.is_over and self._backlog_bytes < limits.PGM_BACKLOG_MAX_BYTES

    @property
    def window_bytes(self) -> int:
        """What is kept for repairs."""
        return self._window_bytes

    def take_outputs(self) -> list[Transmit]:
        """Return what is to be sent since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    def send(self, payload: bytes, now_ms: int) -> None:
        """Take over a payload, which `has_room` has allowed; `wake` sends it."""
        assert 0 < len(payload) <= limits.PGM_PAYLOAD_MAX_BYTES, len(payload)
        assert self.has_room
        self._backlog.append(payload)
        self._backlog_bytes += len(payload)
        self._used_ms = now_ms

    def received(self, body: Body, now_ms: int) -> None:
        """Take a packet that came for this source: all but a request for repairs is ignored."""
        if not isinstance(body, Nak) or body.kind != PacketType.NAK:
            return
        if body.source != self._address or body.group != self._group_address:
            return
        if not self._confirming.take(FULL_BYTES // 4, now_ms):
            return
        known = [number for number in body.numbers if self._promise(number, now_ms)]
        if known:
            options = Options(further=tuple(known[1:])) if known[1:] else NO_OPTIONS
            self._transmit(
                Nak(PacketType.NCF, known[0], self._address, self._group_address, options)
            )

    def _promise(self, number: int, now_ms: int) -> bool:
        """Plan a repair; return whether to confirm it."""
        count = len(self._window)
        place = distance(number, self._trail)
        if not 0 <= place < count:
            return False
        confirmed_ms = self._repairs.get(number)
        if confirmed_ms is None:
            if now_ms - self._repaired_ms.get(number, -ASKED_TWICE_MS) < ASKED_TWICE_MS:
                return False
            if len(self._repairs) >= limits.PGM_REPAIRS_MAX_COUNT:
                return False
            # Whoever misses old packets has waited longest. [MC-MQSRM 2.1.3.1]
            due_ms = now_ms + place * limits.PGM_REPAIR_DELAY_MS // count
            heapq.heappush(self._repairs_due, (due_ms, number))
        elif now_ms - confirmed_ms < ASKED_TWICE_MS:
            return False
        self._repairs[number] = now_ms
        return True

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` is to be called next."""
        if self.is_over:
            return None
        due = min(self._spm_due_ms, self._advance_ms)
        if self._repairs or (self._backlog and not self._opening):
            due = min(due, self._data_due_ms)
        return due

    @property
    def _data_due_ms(self) -> int:
        """When the next data packet may leave, by the rate and by its delay."""
        at_ms = self._bucket.ready_ms(FULL_BYTES) or 0
        if self._backlog and not self._opening:
            return at_ms
        return max(at_ms, self._repairs_due[0][0])

    @property
    def _spm_due_ms(self) -> int:
        if self._opening:
            return self._spm_ms + OPENING_MS * (self._opening < OPENING_SPMS)
        if not self._is_silent:
            return self._spm_ms + limits.PGM_SPM_AMBIENT_MS
        return self._spm_ms + self._heartbeat_ms

    def wake(self, now_ms: int) -> None:
        """Send what may be sent by now."""
        if self.is_over:
            return
        if now_ms >= self._advance_ms:
            self._advance(now_ms)
        for _ in range(PACKETS_AT_ONCE):
            if not self._send_next(now_ms):
                break
            if self._since_spm >= limits.PGM_SPM_AMBIENT_COUNT:
                self._send_spm(now_ms)
        if now_ms >= self._spm_due_ms:
            self._tell(now_ms)

    def close(self, now_ms: int) -> None:
        """End: whoever still misses something is not answered any more."""
        if not self.is_over:
            self._send_spm(now_ms, Options(fin=True))
            self.is_over = True

    def _tell(self, now_ms: int) -> None:
        if self._opening:
            self._opening -= 1
        elif self._is_silent:
            self._heartbeat_ms = min(2 * self._heartbeat_ms, limits.PGM_HEARTBEAT_MAX_MS)
        elif not self._since_spm and not self._backlog:
            self._is_silent = True
            self._heartbeat_ms = limits.PGM_HEARTBEAT_MIN_MS
        self._send_spm(now_ms)

    def _send_spm(self, now_ms: int, options: Options = NO_OPTIONS) -> None:
        lead = after(self._next, -1)
        size = self._transmit(Spm(self._spm_number, self._trail, lead, self._address, options))
        self._bucket.draw(size + IP_HEADER_BYTES, now_ms)
        self._spm_number = after(self._spm_number)
        self._spm_ms = now_ms
        self._since_spm = 0

    def _transmit(self, body: Spm | Nak) -> int:
        data = Packet(self.identifier, self.group.port, body).encode()
        self._outputs.append(Transmit(data, self.group.address, None, True))
        return len(data)

    def _send_next(self, now_ms: int) -> bool:
        """Send one packet of data, if there is one that is due and the rate allows it."""
        repair = self._due_repair(now_ms)
        has_data = bool(self._backlog) and not self._opening
        if repair is None and not has_data:
            return False
        if not self._bucket.take(FULL_BYTES, now_ms):
            return False
        if repair is not None and (self._repair_is_next or not has_data):
            packet = self._repair(repair, now_ms)
        else:
            packet = self._number(now_ms)
        self._repair_is_next = not self._repair_is_next
        # What was taken for the longest packet and is too much goes back.
        self._bucket.draw(len(packet) - limits.PGM_PACKET_MAX_BYTES, now_ms)
        self._since_spm += 1
        return True

    def _due_repair(self, now_ms: int) -> int | None:
        while self._repairs_due:
            due_ms, number = self._repairs_due[0]
            if number in self._repairs:
                return number if due_ms <= now_ms else None
            # The window has moved on over it.
            heapq.heappop(self._repairs_due)
        return None

    def _repair(self, number: int, now_ms: int) -> bytes:
        heapq.heappop(self._repairs_due)
        del self._repairs[number]
        while self._repaired_ms:
            oldest = next(iter(self._repaired_ms))
            if now_ms - self._repaired_ms[oldest] < ASKED_TWICE_MS:
                break
            del self._repaired_ms[oldest]
        self._repaired_ms[number] = now_ms
        packet = repaired(self._window[distance(number, self._trail)], self._trail)
        self._outputs.append(Transmit(packet, self.group.address, None, True))
        self.repaired_count += 1
        return packet

    def _number(self, now_ms: int) -> bytes:
        """Send the next part of the backlog for the first time."""
        payload = self._backlog[0]
        options = NO_OPTIONS
        end = size = len(payload)
        if size > PLAIN_BYTES:
            if not self._part:
                self._part_first = self._next
            end = min(self._part + PART_BYTES, size)
            options = Options(Fragment(self._part_first, self._part, size))
        part = payload[self._part : end]
        packet = Packet(
            self.identifier, self.group.port, Data(self._next, self._trail, part, False, options)
        ).encode()
        self._outputs.append(Transmit(packet, self.group.address))
        self._next = after(self._next)
        self._window.append(packet)
        self._sent_ms.append(now_ms)
        self._window_bytes += len(packet)
        while self._window_bytes > self._profile.window_bytes:
            self._forget()
        self._part = end
        if end == size:
            self._part = 0
            self._backlog.popleft()
            self._backlog_bytes -= size
        self.sent_count += 1
        self._used_ms = now_ms
        self._is_silent = False
        return packet

    def _forget(self) -> None:
        self._window_bytes -= len(self._window.popleft())
        self._sent_ms.popleft()
        self._repairs.pop(self._trail, None)
        self._trail = after(self._trail)

    def _advance(self, now_ms: int) -> None:
        """Move the window on, up to what was promised; end if nobody needs this source."""
        interval_ms = self._advance_interval_ms
        self._advance_ms = now_ms + interval_ms
        oldest_ms = now_ms - self._profile.window_s * 1_000 + interval_ms
        while self._window and self._sent_ms[0] <= oldest_ms and self._trail not in self._repairs:
            self._forget()
        idle_ms = now_ms - self._used_ms
        if not self._window and not self._backlog and idle_ms >= self._profile.window_s * 1_000:
            self.close(now_ms)
