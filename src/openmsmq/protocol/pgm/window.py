"""What a receiver has of one source: packets in their order, and those that wait for others.

The first packet of a source, or the first word about where it stands, is where a receiver begins.
What was sent before is not asked for. Everything is bounded: how far packets may run ahead, and
what they need. What goes beyond is as if it had been lost, and is asked for later.
[RFC 3208 6; MC-MQSRM 2.1.3.1]
"""

from __future__ import annotations

from openmsmq.protocol.pgm import limits
from openmsmq.protocol.pgm.gaps import Dice, Gaps
from openmsmq.protocol.pgm.serial import after, distance
from openmsmq.wire.pgm.packets import Data, Spm


class Window:
    """The window of one source."""

    def __init__(self, random: Dice, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._gaps = Gaps(random)
        self._held: dict[int, Data] = {}
        self._parts: list[bytes] = []
        self._parts_first = 0
        self._parts_bytes = 0
        self._begun = False
        self._is_broken_off = False
        # The number that is next to be passed on, and the highest that is known of.
        self._next = 0
        self._lead = 0
        self._spm_number: int | None = None
        self.held_bytes = 0
        """Packets that wait for others."""
        self.payloads: list[bytes] = []
        """What has become whole and is to be fetched."""
        self.lost_count = 0
        self.duplicate_count = 0
        self.refused_count = 0
        """Packets for which there was no room."""
        self.noted_count = 0
        """Packets that have turned out to be missing."""

    @property
    def missing_count(self) -> int:
        """Packets that are missing at the moment."""
        return len(self._gaps)

    @property
    def next_wake_ms(self) -> int | None:
        """When something is to be asked for, or given up."""
        return self._gaps.next_wake_ms

    def data(
        self, packet: Data, has_room: bool, now_ms: int, *, may_miss_more: bool = True
    ) -> None:
        """Take a data packet; `has_room` says whether one that must wait may be kept.

        Without `may_miss_more`, one by which others turn out to be missing is passed over.
        """
        number = packet.number
        if self._is_broken_off:
            return
        if not self._begun:
            if packet.is_repair:
                # Somebody else misses it; from here on all would be asked for until today.
                return
            self._begin(number)
        self._left_behind(packet.trail)
        place = distance(number, self._next)
        if place < 0 or number in self._held:
            self.duplicate_count += 1
            return
        if place == 0:
            if distance(number, self._lead) > 0:
                self._lead = number
            else:
                self._gaps.remove(number)
            self._pass_on(packet)
            self._flush()
            return
        size = len(packet.data)
        if (
            place > limits.PGM_SPAN_MAX_COUNT
            or not has_room
            or self.held_bytes + size > self._bytes_max
            or not (may_miss_more or distance(number, self._lead) <= 1)
        ):
            self.refused_count += 1
            return
        if distance(number, self._lead) > 0:
            self._extend(after(number, -1), now_ms)
            self._lead = number
        else:
            self._gaps.remove(number)
        self._held[number] = packet
        self.held_bytes += size

    def told(self, spm: Spm, now_ms: int, *, may_miss_more: bool = True) -> None:
        """Take what the source says about where its window stands; older news are none.

        Without `may_miss_more`, how far it has come is heard at another time.
        """
        if self._is_broken_off:
            return
        if self._spm_number is not None and distance(spm.number, self._spm_number) <= 0:
            return
        if distance(spm.lead, spm.trail) < -1:
            return
        self._spm_number = spm.number
        if not self._begun:
            self._begin(after(spm.lead))
            return
        self._left_behind(spm.trail)
        if may_miss_more:
            self._extend(spm.lead, now_ms)

    def confirmed(self, numbers: tuple[int, ...], now_ms: int) -> None:
        """The source will repair these."""
        for number in numbers:
            self._gaps.confirmed(number, now_ms)

    def overheard(self, numbers: tuple[int, ...], now_ms: int) -> None:
        """Another receiver has asked for these."""
        for number in numbers:
            self._gaps.overheard(number, now_ms)

    def break_off(self) -> None:
        """The source has: nothing more comes of it, and what is missing stays so."""
        self._is_broken_off = True
        self._gaps.clear()
        self._held.clear()
        self.held_bytes = 0
        self._drop_parts()

    def due(self, now_ms: int, asking_max: int) -> list[int]:
        """Return what to ask for now, and go on without what is given up."""
        asking, lost = self._gaps.due(now_ms, asking_max)
        if lost:
            self.lost_count += len(lost)
            self._flush()
        return asking

    def _begin(self, number: int) -> None:
        self._begun = True
        self._next = number
        self._lead = after(number, -1)

    def _extend(self, lead: int, now_ms: int) -> None:
        """Know of numbers up to one, as far as the window reaches; what is not there is missing."""
        most = limits.PGM_SPAN_MAX_COUNT - distance(self._lead, self._next) - 1
        for _ in range(min(distance(lead, self._lead), most)):
            self._lead = after(self._lead)
            self._gaps.add(self._lead, now_ms)
            self.noted_count += 1

    def _left_behind(self, trail: int) -> None:
        """Give up what the source cannot repair any more."""
        if distance(trail, self._next) <= 0:
            return
        known = distance(self._lead, self._next) + 1
        over = distance(trail, self._next)
        if over > known:
            # It has gone on without us: nothing that we know of is left of its window.
            self.lost_count += over - known
        for _ in range(min(over, known)):
            if self._gaps.remove(self._next):
                self.lost_count += 1
            self._step()
        if over > known:
            self._next = trail
            self._lead = after(trail, -1)
            self._drop_parts()
        self._flush()

    def _flush(self) -> None:
        """Pass on what is in order by now."""
        while distance(self._lead, self._next) >= 0 and self._next not in self._gaps:
            self._step()

    def _step(self) -> None:
        """Go on by one number, whose packet is there or lost."""
        packet = self._held.pop(self._next, None)
        if packet is None:
            self._drop_parts()
            self._next = after(self._next)
        else:
            self.held_bytes -= len(packet.data)
            self._pass_on(packet)

    def _pass_on(self, packet: Data) -> None:
        """Put the parts together; those of which the first is not there are passed over."""
        self._next = after(packet.number)
        part = packet.options.fragment
        if part is None:
            self._drop_parts()
            if packet.data:
                self.payloads.append(packet.data)
            return
        if part.offset == 0:
            self._drop_parts()
            self._parts_first = packet.number
        if (
            part.first != self._parts_first
            or part.offset != self._parts_bytes
            or not 0 < part.length <= limits.PGM_PAYLOAD_MAX_BYTES
            or not packet.data
        ):
            self._drop_parts()
            return
        self._parts.append(packet.data)
        self._parts_bytes += len(packet.data)
        if self._parts_bytes == part.length:
            self.payloads.append(b"".join(self._parts))
            self._drop_parts()

    def _drop_parts(self) -> None:
        self._parts.clear()
        self._parts_bytes = 0
