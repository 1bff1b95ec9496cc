"""Moves packets between the sockets and the machines of multicast, and tells what has come.

There is one source for each address that somebody sends to, and one receiver for all that queues
have. Sockets are opened when the first of either is wanted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from openmsmq.protocol.pgm import limits
from openmsmq.protocol.pgm.outputs import DEFAULT, Delivered, Group, Lost, Output, Profile, Transmit
from openmsmq.protocol.pgm.receiver import Receiver
from openmsmq.protocol.pgm.source import Source
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import MULTICAST_PACKETS_PER_TURN_COUNT
from openmsmq.runtime.multicast.sockets import PgmSockets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.pgm.packets import Nak, SourceId, decode, is_data

FIRST_PORT: Final = 1_024


class PgmTransport:
    """Sends to groups, and hears what is sent to them."""

    def __init__(
        self,
        open_sockets: Callable[[], PgmSockets],
        gsi: bytes,
        random: Random,
        deliver: Callable[[Delivered], None],
        profile: Profile = DEFAULT,
        accepts: Callable[[str], bool] | None = None,
    ) -> None:
        self._open_sockets = open_sockets
        self._gsi = gsi
        self._random = random
        self._deliver = deliver
        self._profile = profile
        self._accepts = accepts
        self._loop = asyncio.get_running_loop()
        self._sockets: PgmSockets | None = None
        self._sources: dict[Group, Source] = {}
        self._groups: set[Group] = set()
        self._hosts: frozenset[str] = frozenset()
        """The addresses of the groups that somebody listens to."""
        self.receiver = Receiver(profile, random, self._now_ms())
        self._ended = Counter[str]()
        """What sources that are over have counted."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self.on_progress: Callable[[], None] = _nothing
        """Called when sources have had their turn."""
        self.on_lost: Callable[[Lost], None] = _nothing_lost

    @property
    def is_open(self) -> bool:
        """Whether there are sockets."""
        return self._sockets is not None

    @property
    def sources(self) -> list[Source]:
        """The sources that are open."""
        return list(self._sources.values())

    @property
    def counts(self) -> dict[str, int]:
        """Packets since the start, by what became of them."""
        found, receiver = Counter(self._ended), self.receiver
        for source in self._sources.values():
            found += _counted(source)
        return {
            "sent": found["sent"],
            "repaired": found["repaired"],
            "asked": receiver.asked_count,
            "lost": receiver.lost_count,
            "duplicate": receiver.duplicate_count,
            "refused": receiver.refused_count
            + receiver.refused_sources_count
            + receiver.over_rate_count
            + receiver.foreign_count,
        }

    @property
    def backlog_bytes(self) -> int:
        """What waits for the rate, of all sources."""
        return sum(source.backlog_bytes for source in self._sources.values())

    def _now_ms(self) -> int:
        return read_clocks().ticks_ms

    def open(self) -> PgmSockets:
        """Return the sockets, which are opened now if they are not; or raise `NoMulticast`."""
        if self._sockets is None:
            self._sockets = self._open_sockets()
            self._loop.add_reader(self._sockets.fileno(), self._readable)
        return self._sockets

    def listen(self, group: Group) -> None:
        """Hear what is sent to a group, or raise `NoMulticast`."""
        self.open().join(group.address)
        self._groups.add(group)
        self._sockets_know()
        self.receiver.listen(group)

    def stop(self, group: Group) -> None:
        """Hear it no more."""
        self._groups.discard(group)
        self._sockets_know()
        self.receiver.stop(group)
        if self._sockets is not None and not self._is_wanted(group.address):
            self._sockets.leave(group.address)

    def _sockets_know(self) -> None:
        self._hosts = frozenset(group.address for group in self._groups)
        if self._sockets is not None:
            self._sockets.hear_data(wanted=bool(self._groups))

    def _is_wanted(self, address: str) -> bool:
        return any(group.address == address for group in (*self._groups, *self._sources))

    def has_room(self, group: Group) -> bool:
        """Whether a payload may be sent to a group now."""
        source = self._sources.get(group)
        if source is None:
            return len(self._sources) < limits.MULTICAST_SOURCES_MAX_COUNT
        return source.is_over or source.has_room

    def send(self, group: Group, payload: bytes) -> None:
        """Send a payload, for which there is room, to a group; or raise `NoMulticast`."""
        sockets = self.open()
        now_ms = self._now_ms()
        source = self._sources.get(group)
        if source is None or source.is_over:
            if source is not None:
                self._ended += _counted(source)
            # Receivers ask others as well: who hears them need not ask for the same.
            sockets.join(group.address)
            name = SourceId(self._gsi, self._random.randrange(FIRST_PORT, 1 << 16))
            first = self._random.getrandbits(32)
            source = Source(name, group, sockets.address, self._profile, first, now_ms)
            self._sources[group] = source
        source.send(payload, now_ms)
        self._wake_soon()

    def close(self) -> None:
        """End all sources, and close the sockets."""
        if self._timer is not None:
            self._timer.cancel()
        if self._sockets is not None:
            for source in self._sources.values():
                source.close(self._now_ms())
                self._carry_out(source)
            self._loop.remove_reader(self._sockets.fileno())
            self._sockets.close()
            self._sockets = None

    def _readable(self) -> None:
        assert self._sockets is not None
        now_ms = self._now_ms()
        for _ in range(MULTICAST_PACKETS_PER_TURN_COUNT):
            heard = self._sockets.receive()
            if heard is None:
                break
            self._heard(*heard, now_ms)
        self._go_on(now_ms)

    def _heard(self, data: bytes, origin: str, to: str, now_ms: int) -> None:
        if self._accepts is not None and not self._accepts(origin):
            return
        if to not in self._hosts and is_data(data):
            # A source hears its own data: its questions come to the same group.
            return
        try:
            packet = decode(data)
        except DecodeError:
            return
        if isinstance(packet.body, Nak) and packet.source.gsi == self._gsi:
            for source in self._sources.values():
                if source.identifier == packet.source and source.group.port == packet.port:
                    source.received(packet.body, now_ms)
        self.receiver.received(packet, origin, Group(to, packet.port), now_ms)

    def _wake_soon(self) -> None:
        """Go on when the loop is back, once for all that is sent until then."""
        self._set_timer(0)

    def _go_on(self, now_ms: int) -> None:
        """Let all machines do what is due, carry it out, and see when the next is."""
        self.receiver.wake(now_ms)
        outputs: list[Output] = self.receiver.take_outputs()
        self._carry_out_all(outputs)
        for source in list(self._sources.values()):
            source.wake(now_ms)
            self._carry_out(source)
            if source.is_over:
                self._ended += _counted(source)
                del self._sources[source.group]
                if self._sockets is not None and not self._is_wanted(source.group.address):
                    self._sockets.leave(source.group.address)
        due = [self.receiver.next_wake_ms, *(each.next_wake_ms for each in self._sources.values())]
        times = [each for each in due if each is not None]
        if times:
            self._set_timer(min(times))
        self.on_progress()

    def _carry_out(self, source: Source) -> None:
        assert self._sockets is not None
        for each in source.take_outputs():
            self._sockets.send(each)

    def _carry_out_all(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Delivered):
                self._deliver(output)
            elif isinstance(output, Transmit):
                if self._sockets is not None:
                    self._sockets.send(output)
            else:
                self.on_lost(output)

    def _set_timer(self, due_ms: int) -> None:
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_ms = due_ms
        delay_s = max(0, due_ms - self._now_ms()) / 1_000
        self._timer = self._loop.call_later(delay_s, self._due)

    def _due(self) -> None:
        self._timer = None
        self._go_on(self._now_ms())


def _counted(source: Source) -> Counter[str]:
    return Counter(sent=source.sent_count, repaired=source.repaired_count)


def _nothing() -> None:
    """Nobody wants to know."""


def _nothing_lost(_lost: Lost) -> None:
    """Nobody wants to hear of losses."""
