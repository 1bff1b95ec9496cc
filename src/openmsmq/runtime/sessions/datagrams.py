"""Pings: the port to which questions come, and another one from which ours go. [MQQB 2.1.2]

A question and its answer look alike. What comes to the ping port is a question; what comes to the
port of our own questions is an answer. Whoever sends too many is not heard.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final, cast

from openmsmq.runtime.addresses import Target, target
from openmsmq.runtime.admission.peer_limits import PeerLimits
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import DATAGRAM_BUFFER_MAX_BYTES
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.server import Pump
from openmsmq.runtime.sessions.capture_file import CaptureFile, endpoint
from openmsmq.runtime.start_errors import cannot_listen

_ANY_PORT: Final = 0


class PingSocket(asyncio.DatagramProtocol):
    """One socket; an error that a datagram caused elsewhere is nobody's concern."""

    def __init__(self, datagrams: Datagrams, *, asks: bool) -> None:
        self.transport: asyncio.DatagramTransport
        self.is_full = False
        self.asks = asks
        self._datagrams = datagrams

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        self.transport = cast(asyncio.DatagramTransport, transport)
        cast(asyncio.WriteTransport, transport).set_write_buffer_limits(DATAGRAM_BUFFER_MAX_BYTES)

    def pause_writing(self) -> None:
        """The system takes no more."""
        self.is_full = True

    def resume_writing(self) -> None:
        """It does again."""
        self.is_full = False

    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        """Hand on a datagram."""
        self._datagrams.received(self, data, str(addr[0]), int(addr[1]))

    @property
    def name(self) -> tuple[str, int]:
        """The address and port of this end."""
        host, port = self.transport.get_extra_info("sockname")[:2]
        return str(host), int(port)


class Datagrams:
    """The sockets of pings: one that answers and one that asks, for each kind of address."""

    def __init__(
        self,
        port: int,
        pump: Pump,
        log: EventLog,
        capture: CaptureFile | None,
        limits: PeerLimits,
    ) -> None:
        self._port = port
        self._limits = limits
        self._pump = pump
        self._log = log
        self._capture = capture
        self._answering: dict[int, PingSocket] = {}
        self._asking: dict[int, PingSocket] = {}

    async def listen(self, hosts: list[str], *, answer: bool, ask: bool) -> None:
        """Open the ports on the addresses where sessions are accepted, or raise `StartError`."""
        for host in hosts:
            where = target(host, self._port)
            if where is None or where.family in self._answering or where.family in self._asking:
                continue
            if answer:
                self._answering[where.family] = await self._open(host, self._port, asks=False)
                self._log.info(Event.LISTENING, door="ping", address=host, port=self._port)
            if ask:
                self._asking[where.family] = await self._open(host, _ANY_PORT, asks=True)

    async def _open(self, host: str, port: int, *, asks: bool) -> PingSocket:
        try:
            _, made = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: PingSocket(self, asks=asks), (host, port)
            )
        except OSError as error:
            raise cannot_listen(
                error, host, port, key="MsmqIpPingPort", switch="EnablePingService = false"
            ) from None
        return made

    def received(self, made: PingSocket, data: bytes, address: str, port: int) -> None:
        """Hand in a datagram, unless it comes from where only answers could go, or too many do."""
        if not self._limits.takes_datagram(address, read_clocks()):
            return
        if self._capture is not None:
            self._capture.datagram(endpoint(address, port), endpoint(*made.name), data)
        if port == self._port and not made.asks:
            # Two who answered each other's answers would never stop.
            return
        take = partial(self._pump.engine.datagram_received, is_answer=made.asks)
        self._pump.put_in(take, address, port, data)

    def send(self, address: str, port: int | None, data: bytes) -> None:
        """Send an answer to a port, or a question, if it can leave now."""
        asks = port is None
        where = target(address, self._port if port is None else port)
        if where is not None:
            made = (self._asking if asks else self._answering).get(where.family)
            if made is not None and not made.is_full:
                self._send(made, where, address, data)

    def _send(self, made: PingSocket, where: Target, address: str, data: bytes) -> None:
        if self._capture is not None:
            there = endpoint(address, where.address[1])
            self._capture.datagram(endpoint(*made.name), there, data)
        made.transport.sendto(data, where.address)

    def close(self) -> None:
        """Close the ports."""
        for made in (*self._answering.values(), *self._asking.values()):
            made.transport.close()
        self._answering.clear()
        self._asking.clear()
