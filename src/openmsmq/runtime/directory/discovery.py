"""Discovery over UDP: the port where directory servers are asked, and the search for them. [MQSD]

A server hears what is sent to its address and to everybody on its network, and answers from its
address (C-117). A search has a port of its own on each network, so what comes there came by that
network. Whoever sends rubbish, or too much, is ignored.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from openmsmq.model.clock import Instant
from openmsmq.model.identity import GUID_BYTES, Guid
from openmsmq.model.limits import MSMQ_PORT
from openmsmq.protocol.discovery.client import (
    ANSWER_MAX_BYTES,
    Broadcast,
    DirectoryFound,
    DiscoveryClient,
    Network,
)
from openmsmq.runtime.admission.peer_limits import PeerBounds, PeerLimits
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.operating_system.interfaces import EVERYBODY, local_networks, prefix_of
from openmsmq.runtime.start_errors import cannot_listen, os_reason

DATAGRAMS_PER_TURN_MAX_COUNT: Final = 64
"""Datagrams that are read from a socket before others have their turn."""

_BOUNDS: Final = PeerBounds(connections_max=0, connections_reserved=0, connections_per_peer_max=0)
"""There are datagrams only."""
_ANYWHERE: Final = "0.0.0.0"
_LOOPBACK_PREFIX: Final = "127."


def _bound(address: str, port: int, *, option: int | None = None) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        if option is not None:
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made


def _read(source: socket.socket) -> tuple[bytes, str, int] | None:
    """Read a datagram, with the address and port of its sender; None when there is none.

    One that is too long is cut, but remains too long.
    """
    try:
        data, (address, port) = source.recvfrom(ANSWER_MAX_BYTES + 1)
    except OSError:
        # Nothing more, or an error that a datagram caused elsewhere.
        return None
    return data, address, port


class _Door:
    """The sockets of one address of a directory server."""

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self._broadcasts: set[str] = set()
        self._prefix: ipaddress.IPv4Network | None = None
        self.sockets: list[socket.socket] = []

    def hear_broadcasts(self, taken: set[str]) -> None:
        """Choose what is heard beside our address, unless another door hears it already."""
        if self.address == _ANYWHERE:
            return
        self._broadcasts = {one.broadcast for one in local_networks([self.address])} - taken
        taken |= self._broadcasts
        # Who is on loopback cannot answer anybody beyond it.
        if self._broadcasts and not self.address.startswith(_LOOPBACK_PREFIX):
            self._broadcasts.add(EVERYBODY)
            self._prefix = prefix_of(self.address)

    def open(self, hear: Callable[[socket.socket], None]) -> None:
        """Open all sockets or none, and have each handed to `hear` when it has something."""
        with contextlib.ExitStack() as opened:
            opened.callback(self.close)
            # Answers leave by the first one; nobody else may have that.
            self.sockets.append(_bound(self.address, self.port))
            for broadcast in self._broadcasts:
                # Every queue manager of this computer hears what is for everybody.
                self.sockets.append(_bound(broadcast, self.port, option=socket.SO_REUSEADDR))
            opened.pop_all()
        loop = asyncio.get_running_loop()
        for made in self.sockets:
            loop.add_reader(made, hear, made)

    def is_for_us(self, source: socket.socket, sender: str) -> bool:
        """Return whether a datagram was meant for this address.

        A broadcast without a network is heard from all networks of the computer, so the sender
        must be on ours: the door there answers the others.
        """
        if self._prefix is None or source.getsockname()[0] != EVERYBODY:
            return True
        return ipaddress.IPv4Address(sender) in self._prefix

    def send(self, data: bytes, address: str, port: int) -> None:
        """Send an answer; one that the system has no room for is lost, as on any network."""
        with contextlib.suppress(BlockingIOError):
            self.sockets[0].sendto(data, (address, port))

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for made in self.sockets:
            loop.remove_reader(made)
            made.close()
        self.sockets.clear()


class DiscoveryListener:
    """Hears queries and sends the answers of a directory server. [MQSD 3.2.3, 3.2.5]"""

    def __init__(
        self,
        addresses: Iterable[str],
        answer: Callable[[bytes], bytes | None],
        log: EventLog,
        *,
        port: int = MSMQ_PORT,
        clock: Callable[[], Instant] = read_clocks,
    ) -> None:
        self._answer = answer
        self._log = log
        self._clock = clock
        self._limits = PeerLimits(_BOUNDS, (), clock())
        places = dict.fromkeys(_ANYWHERE if one == "::" else one for one in addresses)
        # There is no broadcast in IPv6, and nobody searches there.
        self.doors = [_Door(one, port) for one in places if ":" not in one]

    def open(self) -> None:
        """Open the port on all addresses of IPv4; or raise `StartError`, and none is open."""
        with contextlib.ExitStack() as opened:
            opened.callback(self.close)
            taken: set[str] = set()
            for door in self.doors:
                door.hear_broadcasts(taken)
                try:
                    self._open(door)
                except OSError as error:
                    raise cannot_listen(
                        error,
                        door.address,
                        door.port,
                        key="MsmqIpPort",
                        switch="a queue manager that is no directory server",
                    ) from None
                self._log.info(
                    Event.LISTENING, door="discovery", address=door.address, port=door.port
                )
            opened.pop_all()

    def _open(self, door: _Door) -> None:
        door.open(lambda source: self._hear(door, source))

    def _hear(self, door: _Door, source: socket.socket) -> None:
        for _ in range(DATAGRAMS_PER_TURN_MAX_COUNT):
            heard = _read(source)
            if heard is None:
                return
            data, address, port = heard
            if self._is_wanted(door, source, address, port) and not self._reply(
                door, data, address, port
            ):
                return

    def _is_wanted(self, door: _Door, source: socket.socket, address: str, port: int) -> bool:
        # Nobody can be answered at port 0.
        if not port or not door.is_for_us(source, address):
            return False
        return self._limits.takes_datagram(address, self._clock())

    def _reply(self, door: _Door, data: bytes, address: str, port: int) -> bool:
        """Answer a query; gives whether the sockets are still the same."""
        answer = self._answer(data)
        if answer is None:
            return True
        try:
            door.send(answer, address, port)
        except OSError as error:
            self._reopen(door, error)
            return False
        return True

    def _reopen(self, door: _Door, cause: OSError) -> None:
        door.close()
        try:
            self._open(door)
        except OSError as error:
            self._log.error(
                Event.DISCOVERY_STOPPED,
                door="discovery",
                address=door.address,
                port=door.port,
                reason=f"{os_reason(error)}, after an answer could not be sent "
                f"({os_reason(cause)}); a restart listens again",
            )

    def close(self) -> None:
        """Hear nothing any more."""
        for door in self.doors:
            door.close()


async def discover(
    client: DiscoveryClient,
    networks: Sequence[Network] | None = None,
    *,
    port: int = MSMQ_PORT,
    force: bool = False,
    clock: Callable[[], Instant] = read_clocks,
) -> DirectoryFound | None:
    """Search for a directory server on networks, or on all of this computer; None if none is there.

    A client that has found one finds it again without asking, unless forced.
    """
    if networks is None:
        networks = local_networks()
    client.start(networks, Guid(secrets.token_bytes(GUID_BYTES)), clock(), force=force)
    search = _Search(client, networks, port, clock)
    try:
        search.go_on()
        return await search.result
    finally:
        search.close()


class _Search:
    """The socket and the timer of a search."""

    def __init__(
        self,
        client: DiscoveryClient,
        networks: Sequence[Network],
        port: int,
        clock: Callable[[], Instant],
    ) -> None:
        self._client = client
        self._networks = networks
        self._port = port
        self._clock = clock
        self._limits = PeerLimits(_BOUNDS, (), clock())
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[DirectoryFound | None] = self._loop.create_future()
        self._socket: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None

    def go_on(self) -> None:
        """Do what the client wants, and wake it when it wants that."""
        while outputs := self._client.take_outputs():
            for output in outputs:
                if isinstance(output, Broadcast):
                    self._send(output)
                elif not self.result.done():
                    # Who waits for it may have been cancelled in this moment.
                    found = output if isinstance(output, DirectoryFound) else None
                    self.result.set_result(found)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ms = self._client.next_wake_ms
        if due_ms is not None:
            delay_s = max(0, due_ms - self._clock().ticks_ms) / 1_000
            self._timer = self._loop.call_later(delay_s, self._wake)

    def _wake(self) -> None:
        self._client.wake(self._clock())
        self.go_on()

    def _send(self, output: Broadcast) -> None:
        self._close_socket()
        network = self._networks[output.network]
        try:
            made = self._socket = _bound(network.address, 0, option=socket.SO_BROADCAST)
            made.sendto(output.data, (network.broadcast, self._port))
        except OSError:
            self._client.not_sent(output.network, self._clock())
            return
        self._loop.add_reader(made, self._hear, made, output.network)

    def _hear(self, source: socket.socket, network: int) -> None:
        for _ in range(DATAGRAMS_PER_TURN_MAX_COUNT):
            heard = _read(source)
            if heard is None:
                return
            data, address, _ = heard
            now = self._clock()
            if self._limits.takes_datagram(address, now):
                self._client.received(network, address, data, now)
                self.go_on()
            if source is not self._socket:
                # The next network is asked, or the search is over.
                return

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """End the search, whether it is over or not."""
        self._client.give_up()
        self._close_socket()
        if self._timer is not None:
            self._timer.cancel()
