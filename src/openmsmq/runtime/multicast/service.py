"""Multicast of a queue manager: what its applications send, and what its queues listen to.

Nothing is open until somebody sends, or a queue has an address. Why it cannot be opened is told to
whoever sends, and logged when queues cannot listen; it is tried again all the time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
from functools import lru_cache
from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.protocol.pgm.outputs import Delivered, Group, Lost, Profile
from openmsmq.runtime.config.doors.multicast_table import MulticastTable
from openmsmq.runtime.limits import MULTICAST_AGAIN_S
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.multicast.sockets import NoMulticast, PgmSockets
from openmsmq.runtime.multicast.transport import PgmTransport
from openmsmq.runtime.server import Pump
from openmsmq.wire.pgm.packets import GSI_BYTES

_KILO: Final = 1_000


class MulticastService:
    """Stands between the queue manager and the transport."""

    def __init__(self, config: MulticastTable, pump: Pump, log: EventLog, manager: Guid) -> None:
        self._config = config
        self._pump = pump
        self._log = log
        networks = [ipaddress.IPv4Network(text) for text in config.accept_from]

        @lru_cache(maxsize=4_096)
        def accepts(address: str) -> bool:
            found = ipaddress.IPv4Address(address)
            return any(found in network for network in networks)

        self.transport: Final = PgmTransport(
            self._open,
            bytes(manager)[-GSI_BYTES:],
            random.SystemRandom(),
            self._delivered,
            Profile(rate_bytes_per_s=config.rate_kb_s * _KILO),
            accepts if networks else None,
        )
        self.transport.on_progress = self._progress
        self.transport.on_lost = self._lost
        self._addresses: frozenset[str] = frozenset()
        self._heard: set[str] = set()
        self._told: dict[str, int] = {}
        self._problem: str | None = None
        self._again: asyncio.TimerHandle | None = None
        self._is_closed = False

    def _open(self) -> PgmSockets:
        return PgmSockets(self._config.interface, self._config.hops)

    def start(self) -> None:
        """See whether there can be multicast here."""
        try:
            if not self.transport.is_open:
                self._open().close()
        except NoMulticast as problem:
            self._tell(str(problem))
        else:
            self._tell("")

    def look(self) -> None:
        """Listen to the addresses that queues have by now."""
        wanted = self._pump.engine.multicast_addresses
        if wanted is not self._addresses and not self._is_closed:
            self._addresses = wanted
            self._listen()

    def _listen(self) -> None:
        for address in sorted(self._heard - self._addresses):
            self._heard.discard(address)
            self.transport.stop(_group(address))
        for address in sorted(self._addresses - self._heard):
            try:
                self.transport.listen(_group(address))
            except NoMulticast as problem:
                self._log.error(Event.MULTICAST_UNAVAILABLE, address=address, reason=str(problem))
                self._tell(str(problem))
                return
            self._heard.add(address)
            host, _, port = address.rpartition(":")
            self._log.info(Event.LISTENING, door="multicast", address=host, port=int(port))

    def _tell(self, problem: str) -> None:
        """Say whether there can be multicast, and try again later if not."""
        if problem != self._problem:
            self._problem = problem
            self._pump.put_in(self._pump.engine.multicast_problem, problem)
        if problem and self._again is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(MULTICAST_AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        self.start()
        if not self._problem:
            self._listen()

    def send(self, address: str, payload: bytes) -> None:
        """Send a payload; one for which there is no room, or no way, is lost."""
        group = _group(address)
        try:
            if self.transport.has_room(group):
                self.transport.send(group, payload)
                return
            reason = "the source has no room"
        except NoMulticast as problem:
            reason = str(problem)
            self._tell(reason)
        self._log.warning(Event.MULTICAST_LOST, address=address, reason=reason)
        self._pump.put_in(self._pump.engine.multicast_left, address, 0)

    def _progress(self) -> None:
        """Tell the queue manager how much waits, where that has changed."""
        now = {str(source.group): source.backlog_bytes for source in self.transport.sources}
        for address in self._told.keys() | now.keys():
            size = now.get(address, 0)
            if size != self._told.get(address, -1):
                self._pump.put_in(self._pump.engine.multicast_left, address, size)
        self._told = now

    def _delivered(self, delivered: Delivered) -> None:
        self._pump.put_in(
            self._pump.engine.multicast_received,
            delivered.address,
            str(delivered.group),
            delivered.payload,
        )

    def _lost(self, lost: Lost) -> None:
        self._log.warning(
            Event.MULTICAST_LOST,
            address=str(lost.group),
            reason=f"{lost.count} packets of {lost.address} were not repaired in time",
        )

    def close(self) -> None:
        """End what is open."""
        self._is_closed = True
        if self._again is not None:
            self._again.cancel()
        self.transport.close()


def _group(address: str) -> Group:
    host, _, port = address.rpartition(":")
    return Group(host, int(port))
