"""Senders and receivers of multicast: our PGM, and a bare loop of UDP with the same payloads.

Their address is the names of all namespaces, of which the first is the sender's; receivers have
numbers from 1 on. A payload that is shorter than the others ends a turn.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
from pathlib import Path
from typing import Final

import msgspec

from bench.peers.network import INTERFACE, address_of, enter
from bench.peers.openmsmq import run_loop
from bench.peers.pair import Gate, Job
from openmsmq.protocol.pgm.outputs import Delivered, Group, Profile
from openmsmq.runtime.limits import MULTICAST_BUFFER_BYTES
from openmsmq.runtime.multicast.sockets import PgmSockets
from openmsmq.runtime.multicast.transport import PgmTransport

GROUP: Final = Group("239.77.7.7", 8_001)
PAYLOAD: Final = bytes(range(256)) * 4
END: Final = b"end"
SETTLE_S: Final = 0.5
"""What the system needs to join a group, and a source to begin, before it counts."""
QUIET_S: Final = 5.0
"""Who hears nothing for so long has heard all that comes."""
_ETHERNET_BYTES: Final = 14
_FORCED_BUFFER: Final = 33


class Heard(msgspec.Struct, frozen=True):
    """What one receiver has heard."""

    count: int
    """Payloads, without the end."""
    elapsed_s: float
    """From the first to the last."""
    wire_bytes: int
    """What has come over the network between the first and the end, with headers of IP."""
    is_whole: bool
    """Whether nothing is missing, and all is in its order."""

    @property
    def rate(self) -> float:
        """Payloads in a second."""
        return self.count / self.elapsed_s if self.elapsed_s else 0.0


def told(heard: Heard) -> list[float]:
    """Return what a worker can tell of it."""
    return [*map(float, (heard.count, heard.elapsed_s, heard.wire_bytes, heard.is_whole))]


def read_told(numbers: list[float]) -> Heard:
    """Read what a worker has told."""
    count, elapsed_s, wire_bytes, is_whole = numbers
    return Heard(int(count), elapsed_s, int(wire_bytes), bool(is_whole))


def payload(number: int) -> bytes:
    """Return the payload with a number, by which receivers see what is missing."""
    return struct.pack(">I", number) + PAYLOAD[4:]


class _Listener:
    """Counts what comes."""

    def __init__(self) -> None:
        self.count = 0
        self.is_whole = True
        self.has_ended = False
        self.wire_bytes = 0
        self._wire_before = 0
        self._first_s = self._last_s = 0.0

    def take(self, data: bytes) -> None:
        """Take a payload."""
        if len(data) == len(END):
            self.has_ended = True
            self.wire_bytes = _heard_bytes() - self._wire_before
            return
        self._last_s = time.perf_counter()
        if not self.count:
            self._first_s = self._last_s
            self._wire_before = _heard_bytes()
        if int.from_bytes(data[:4], "big") != self.count:
            self.is_whole = False
        self.count += 1

    @property
    def heard(self) -> Heard:
        """What it was in all."""
        elapsed_s = self._last_s - self._first_s
        return Heard(self.count, elapsed_s, self.wire_bytes, self.is_whole)


def _heard_bytes() -> int:
    """Return what has come over the network so far, as a source counts it: with headers of IP."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == INTERFACE:
            size, packets, *_ = map(int, numbers.split())
            return size - packets * _ETHERNET_BYTES
    return 0


# PGM, as queue managers have it.


def _transport(rate: int, listener: _Listener) -> PgmTransport:
    def deliver(delivered: Delivered) -> None:
        listener.take(delivered.payload)

    number = random.SystemRandom()
    gsi = number.randbytes(6)
    profile = Profile(rate_bytes_per_s=rate)
    return PgmTransport(lambda: PgmSockets(INTERFACE, 1), gsi, number, deliver, profile)


def send_by_pgm(hosts: str, job: Job, gate: Gate) -> list[float]:
    """Send the payloads of a job as fast as its pace (bytes a second; 0 for no limit) allows."""
    enter(hosts.split(",")[0])
    run_loop(_send_by_pgm(job, gate))
    return []


async def _send_by_pgm(job: Job, gate: Gate) -> None:
    transport = _transport(job.per_second, _Listener())
    gate.wait()
    await asyncio.sleep(SETTLE_S)
    sent = 0
    done = asyncio.Event()

    def go_on() -> None:
        nonlocal sent
        while sent < job.count and transport.has_room(GROUP):
            transport.send(GROUP, payload(sent))
            sent += 1
        if sent == job.count and transport.has_room(GROUP):
            transport.send(GROUP, END)
            sent += 1
        if sent > job.count and not any(each.backlog_bytes for each in transport.sources):
            done.set()

    transport.on_progress = go_on
    go_on()
    await done.wait()
    # It is there to repair until all receivers have what they miss.
    before = -1
    while before != (  # noqa: ASYNC110 -- it is counted, not announced
        before := sum(each.repaired_count for each in transport.sources)
    ):
        await asyncio.sleep(QUIET_S)
    transport.close()


def hear_by_pgm(number: int, hosts: str, _: Job, gate: Gate) -> list[float]:
    """Hear until the end, or until nothing more comes."""
    listener = _Listener()
    enter(hosts.split(",")[number])
    run_loop(_hear_by_pgm(listener, gate))
    return told(listener.heard)


async def _hear_by_pgm(listener: _Listener, gate: Gate) -> None:
    transport = _transport(0, listener)
    transport.listen(GROUP)
    gate.wait()
    seen, quiet_s = -1, 0.0
    while not listener.has_ended and quiet_s < QUIET_S:
        await asyncio.sleep(0.1)
        quiet_s = 0.0 if seen != listener.count else quiet_s + 0.1
        seen = listener.count
    transport.close()


# UDP, as bare as Python has it.


def send_by_udp(hosts: str, job: Job, gate: Gate) -> list[float]:
    """Send the payloads of a job as fast as the kernel takes them."""
    enter(hosts.split(",")[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        here = socket.inet_aton(address_of(0))
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
        to = (GROUP.address, GROUP.port)
        gate.wait()
        time.sleep(SETTLE_S)
        for number in range(job.count):
            sending.sendto(payload(number), to)
        for _ in range(20):
            time.sleep(0.1)
            sending.sendto(END, to)
    return []


def hear_by_udp(number: int, hosts: str, _: Job, gate: Gate) -> list[float]:
    """Hear until the end."""
    listener = _Listener()
    enter(hosts.split(",")[number])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hearing:
        hearing.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, MULTICAST_BUFFER_BYTES)
        hearing.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
        hearing.bind((GROUP.address, GROUP.port))
        joined = socket.inet_aton(GROUP.address) + socket.inet_aton(address_of(number))
        hearing.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        gate.wait()
        while not listener.has_ended:
            try:
                listener.take(hearing.recv(2_048))
            except BlockingIOError:
                break
    return told(listener.heard)
