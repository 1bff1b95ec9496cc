"""A test bench: sources and receivers in virtual time, on a network that loses, doubles and turns.

Everything comes from one seed. `Network.spoil` may be replaced by a script.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from openmsmq.protocol.pgm.outputs import Delivered, Group, Lost, Profile, Transmit
from openmsmq.protocol.pgm.receiver import Receiver
from openmsmq.protocol.pgm.source import Source
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, SourceId, decode

GROUP: Final = Group("239.1.1.1", 8_001)
SENDER: Final = "10.0.0.1"
PROFILE: Final = Profile()
GSI: Final = b"source"


class Host:
    """A computer that listens, and what it has heard."""

    def __init__(self, address: str, profile: Profile, seed: int) -> None:
        self.address = address
        self.receiver = Receiver(profile, Random(seed), 0)
        self.receiver.listen(GROUP)
        self.payloads: list[bytes] = []
        self.lost = 0
        self.sent: list[tuple[int, Packet]] = []


class Network:
    """One sender, some receivers, and the way between them."""

    def __init__(
        self,
        hosts: int = 1,
        *,
        seed: int = 0,
        loss: float = 0.0,
        doubled: float = 0.0,
        delay_ms: int = 5,
        profile: Profile = PROFILE,
        first: int = 1,
    ) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.loss, self.doubled, self.delay_ms = loss, doubled, delay_ms
        self.source = Source(SourceId(GSI, 1), GROUP, SENDER, profile, first, 0)
        self.hosts = [Host(f"10.0.0.{2 + each}", profile, seed + each) for each in range(hosts)]
        self._flying: list[tuple[int, int, str, str, bytes]] = []
        self._count = 0
        self.sent: list[tuple[int, Packet]] = []
        """What the source has sent, and when."""
        self.sent_bytes = 0
        self.spoil: Callable[[Packet, str], list[int]] = self._spoil

    def _spoil(self, _packet: Packet, _to: str) -> list[int]:
        """Return after which delays a packet arrives; none if it is lost."""
        copies = 2 if self.random.random() < self.doubled else 1
        return [
            self.random.randint(1, self.delay_ms)
            for _ in range(copies)
            if self.random.random() >= self.loss
        ]

    def put(self, origin: str, to: str, data: bytes, packet: Packet) -> None:
        for delay_ms in self.spoil(packet, to):
            self._count += 1
            heapq.heappush(self._flying, (self.now_ms + delay_ms, self._count, origin, to, data))

    def carry(self) -> None:
        """Put what was said on its way."""
        for sent in self.source.take_outputs():
            packet = decode(sent.data)
            self.sent.append((self.now_ms, packet))
            self.sent_bytes += len(sent.data) + 20
            for host in self.hosts:
                self.put(SENDER, host.address, sent.data, packet)
        for host in self.hosts:
            for output in host.receiver.take_outputs():
                if isinstance(output, Delivered):
                    host.payloads.append(output.payload)
                elif isinstance(output, Lost):
                    host.lost += output.count
                elif isinstance(output, Transmit):
                    packet = decode(output.data)
                    host.sent.append((self.now_ms, packet))
                    everybody = [SENDER, *(each.address for each in self.hosts if each is not host)]
                    several = output.address == GROUP.address
                    for to in everybody if several else [output.address]:
                        self.put(host.address, to, output.data, packet)

    def arrive(self) -> None:
        while self._flying and self._flying[0][0] <= self.now_ms:
            _, _, origin, to, data = heapq.heappop(self._flying)
            try:
                packet = decode(data)
            except DecodeError:
                continue
            if to == SENDER:
                self.source.received(packet.body, self.now_ms)
            for host in self.hosts:
                if host.address == to:
                    host.receiver.received(packet, origin, GROUP, self.now_ms)

    def run(self, seconds: float) -> None:
        """Let time pass, from one event to the next."""
        end_ms = self.now_ms + int(seconds * 1_000)
        while True:
            self.source.wake(self.now_ms)
            for host in self.hosts:
                host.receiver.wake(self.now_ms)
            self.carry()
            self.arrive()
            self.carry()
            due = [self.source.next_wake_ms, *(each.receiver.next_wake_ms for each in self.hosts)]
            times = [each for each in due if each is not None]
            if self._flying:
                times.append(self._flying[0][0])
            # Nothing happens twice in a millisecond, so that a mistake cannot stop the time.
            next_ms = max(self.now_ms + 1, min(times, default=end_ms))
            if next_ms > end_ms:
                self.now_ms = end_ms
                return
            self.now_ms = next_ms

    def send(self, payloads: list[bytes]) -> None:
        """Hand payloads to the source as it has room, and let time pass meanwhile."""
        for payload in payloads:
            while not self.source.has_room:
                self.run(1)
            self.source.send(payload, self.now_ms)

    def kinds(self, packets: list[tuple[int, Packet]]) -> Counter[str]:
        """Count packets by what they are."""
        names = []
        for _, packet in packets:
            body = packet.body
            if isinstance(body, Data):
                names.append("RDATA" if body.is_repair else "ODATA")
            elif isinstance(body, Nak):
                names.append(PacketType(body.kind).name)
            else:
                names.append("SPM")
        return Counter(names)
