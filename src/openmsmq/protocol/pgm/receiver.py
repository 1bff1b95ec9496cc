"""A receiver: follows the sources of the groups that it listens to, and asks for what is missing.

Anybody on the network can say to be a source. So there are so many at a time and no more, each
with so much memory and rate; a newcomer gets a place that is free, or that of a source that has
fallen silent, or of the quietest of its own address. It never gets that of another which is heard.
[RFC 3208 6; MC-MQSRM 2.1.3.1]
"""

from __future__ import annotations

from bisect import bisect_right
from ipaddress import IPv4Address
from typing import Final, TypeAlias

from openmsmq.protocol.bucket import Bucket
from openmsmq.protocol.pgm import limits
from openmsmq.protocol.pgm.gaps import Dice
from openmsmq.protocol.pgm.outputs import Delivered, Group, Lost, Output, Profile, Transmit
from openmsmq.protocol.pgm.window import Window
from openmsmq.wire.pgm.options import NAK_LIST_MAX_COUNT, NO_OPTIONS, Options
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, SourceId, Spm

SWEEP_MS: Final = 60_000
NUMBERS_PER_NAK: Final = NAK_LIST_MAX_COUNT + 1
LOCAL_HOPS: Final = 1
"""How far the copy of a question goes that tells other receivers. [MC-MQSRM 6 <3>]"""


Key: TypeAlias = tuple[SourceId, Group]


class Followed:
    """One source in one group."""

    def __init__(self, key: Key, address: str, window: Window, rate: int, now_ms: int) -> None:
        self.key = key
        self.address = address
        self.window = window
        self.heard_ms = now_ms
        self.bytes = Bucket(rate, rate, now_ms)
        self.naks = Bucket(limits.PGM_NAKS_PER_S, limits.PGM_NAKS_PER_S, now_ms)


class Receiver:
    """All sources of all groups that are listened to."""

    def __init__(self, profile: Profile, random: Dice, now_ms: int) -> None:
        self._profile = profile
        self._random = random
        self._groups: set[Group] = set()
        # In the order in which they were first heard.
        self._sources: dict[Key, Followed] = {}
        self._by_address: dict[str, int] = {}
        # What turns out to be missing costs time: of each address, and of all.
        self._gaps_of: dict[str, Bucket] = {}
        self._gaps = Bucket(limits.PGM_GAPS_PER_S, limits.PGM_GAPS_PER_S, now_ms)
        self._naks = Bucket(limits.PGM_NAKS_OF_ALL_PER_S, limits.PGM_NAKS_OF_ALL_PER_S, now_ms)
        self._waiting: set[Key] = set()
        # The source that has asked last when there was no room for all: it is not the first again.
        self._asked_last: Key | None = None
        self._held_bytes = 0
        self._sweep_ms = now_ms + SWEEP_MS
        self._outputs: list[Output] = []
        self.refused_sources_count = 0
        """Packets of sources for which there was no place."""
        self.foreign_count = 0
        """Packets that came from another address than their source."""
        self.over_rate_count = 0
        self.asked_count = 0
        """Packets that were asked for, each time."""
        self.lost_count = 0
        self.duplicate_count = 0
        self.refused_count = 0

    @property
    def sources_count(self) -> int:
        """How many sources are followed."""
        return len(self._sources)

    @property
    def held_bytes(self) -> int:
        """What waits for packets that are missing, of all sources."""
        return self._held_bytes

    def listen(self, group: Group) -> None:
        """Take what is sent to a group from now on."""
        self._groups.add(group)

    def stop(self, group: Group) -> None:
        """Take nothing of a group any more."""
        self._groups.discard(group)
        for key in [key for key in self._sources if key[1] == group]:
            self._forget(key)

    def take_outputs(self) -> list[Output]:
        """Return what has become of it since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` is to be called next."""
        if not self._sources:
            return None
        due = self._sweep_ms
        for key in self._waiting:
            found = self._sources[key]
            wake_ms = found.window.next_wake_ms
            if wake_ms is not None:
                ready_ms = max(found.naks.ready_ms(1) or 0, self._naks.ready_ms(1) or 0)
                due = min(due, max(wake_ms, ready_ms))
        return due

    def received(self, packet: Packet, address: str, group: Group, now_ms: int) -> None:
        """Take a packet to a group that came from an address."""
        if group not in self._groups:
            return
        body = packet.body
        key = (packet.source, group)
        found = self._sources.get(key)
        if isinstance(body, Nak) and body.kind != PacketType.NCF:
            # Of other receivers: all they can do is to keep us from asking for a while.
            if found is not None and body.kind == PacketType.NAK:
                found.window.overheard(body.numbers, now_ms)
            return
        if found is None:
            found = self._admit(key, body, address, now_ms)
            if found is None:
                return
        if found.address != address:
            self.foreign_count += 1
            return
        found.heard_ms = now_ms
        if isinstance(body, Data):
            self._take(found, body, now_ms)
        elif isinstance(body, Spm):
            self._told(found, body, now_ms)
        elif isinstance(body, Nak):
            found.window.confirmed(body.numbers, now_ms)
        self._after(found)

    def _take(self, found: Followed, body: Data, now_ms: int) -> None:
        if not found.bytes.take(len(body.data), now_ms):
            self.over_rate_count += 1
            return
        window = found.window
        if body.options.reset:
            self._held_bytes -= window.held_bytes
            window.break_off()
            return
        before = window.held_bytes
        has_room = self._held_bytes + len(body.data) <= self._profile.sources_bytes
        window.data(body, has_room, now_ms, may_miss_more=self._may_miss_more(found, now_ms))
        self._held_bytes += window.held_bytes - before
        self._count_gaps(found, now_ms)

    def _told(self, found: Followed, body: Spm, now_ms: int) -> None:
        window = found.window
        before = window.held_bytes
        if body.options.reset:
            window.break_off()
        else:
            window.told(body, now_ms, may_miss_more=self._may_miss_more(found, now_ms))
        self._held_bytes += window.held_bytes - before
        self._count_gaps(found, now_ms)

    def _may_miss_more(self, found: Followed, now_ms: int) -> bool:
        """Whether more may turn out to be missing now: a source that lies has it in no time."""
        return self._gaps.has(1, now_ms) and self._gaps_of[found.address].has(1, now_ms)

    def _count_gaps(self, found: Followed, now_ms: int) -> None:
        count, found.window.noted_count = found.window.noted_count, 0
        if count:
            self._gaps.draw(count, now_ms)
            self._gaps_of[found.address].draw(count, now_ms)

    def _after(self, found: Followed) -> None:
        """Hand on what a window has brought, and see whether it waits."""
        window = found.window
        source, group = found.key
        if window.payloads:
            for payload in window.payloads:
                self._outputs.append(Delivered(source, found.address, group, payload))
            window.payloads.clear()
        if window.lost_count:
            self._outputs.append(Lost(source, found.address, group, window.lost_count))
            self.lost_count += window.lost_count
            window.lost_count = 0
        self.duplicate_count += window.duplicate_count
        self.refused_count += window.refused_count
        window.duplicate_count = window.refused_count = 0
        if window.missing_count:
            self._waiting.add(found.key)
        else:
            self._waiting.discard(found.key)

    def wake(self, now_ms: int) -> None:
        """Ask for what is due, give up what is lost, and forget who is silent."""
        for key in self._in_turn():
            found = self._sources[key]
            before = found.window.held_bytes
            while True:
                due_ms = found.window.next_wake_ms
                if due_ms is None or due_ms > now_ms or not found.naks.has(1, now_ms):
                    break
                if not self._naks.take(1, now_ms):
                    break
                found.naks.draw(1, now_ms)
                numbers = found.window.due(now_ms, NUMBERS_PER_NAK)
                if numbers:
                    self._ask(found, numbers)
                    self._asked_last = key
            self._held_bytes += found.window.held_bytes - before
            self._after(found)
        if now_ms >= self._sweep_ms:
            self._sweep_ms = now_ms + SWEEP_MS
            oldest_ms = now_ms - self._profile.window_s * 1_000
            for key in [key for key, each in self._sources.items() if each.heard_ms < oldest_ms]:
                self._forget(key)

    def _in_turn(self) -> list[Key]:
        """Return the sources that miss something, those first that come behind the last to ask."""
        keys = sorted(self._waiting)
        first = 0 if self._asked_last is None else bisect_right(keys, self._asked_last)
        return keys[first:] + keys[:first]

    def _ask(self, found: Followed, numbers: list[int]) -> None:
        source, group = found.key
        self.asked_count += len(numbers)
        options = Options(further=tuple(numbers[1:])) if numbers[1:] else NO_OPTIONS
        body = Nak(
            PacketType.NAK,
            numbers[0],
            IPv4Address(found.address).packed,
            IPv4Address(group.address).packed,
            options,
        )
        data = Packet(source, group.port, body).encode()
        # Never to the address in the packets of a stranger: that may be anybody's.
        self._outputs.append(Transmit(data, found.address, None, True))
        self._outputs.append(Transmit(data, group.address, LOCAL_HOPS, True))

    def _admit(self, key: Key, body: object, address: str, now_ms: int) -> Followed | None:
        """Follow a new source, if there is a place for it."""
        if not isinstance(body, Spm) and not (isinstance(body, Data) and not body.is_repair):
            return None
        if self._by_address.get(address, 0) >= limits.PGM_SOURCES_PER_ADDRESS_MAX_COUNT:
            own = [each for each in self._sources.values() if each.address == address]
            self._forget(min(own, key=_heard_ms).key)
        elif len(self._sources) >= self._profile.sources_max:
            quietest = min(self._sources.values(), key=_heard_ms)
            if now_ms - quietest.heard_ms < limits.PGM_SOURCE_SILENT_S * 1_000:
                self.refused_sources_count += 1
                return None
            self._forget(quietest.key)
        window = Window(self._random, self._profile.source_bytes)
        rate = self._profile.source_rate_bytes_per_s
        found = self._sources[key] = Followed(key, address, window, rate, now_ms)
        self._by_address[address] = self._by_address.get(address, 0) + 1
        if address not in self._gaps_of:
            most = limits.PGM_GAPS_PER_ADDRESS_PER_S
            self._gaps_of[address] = Bucket(most, most, now_ms)
        return found

    def _forget(self, key: Key) -> None:
        found = self._sources.pop(key)
        self._waiting.discard(key)
        self._held_bytes -= found.window.held_bytes
        left = self._by_address[found.address] - 1
        if left:
            self._by_address[found.address] = left
        else:
            del self._by_address[found.address], self._gaps_of[found.address]


def _heard_ms(found: Followed) -> int:
    return found.heard_ms
