"""The doors of RPC: the endpoint mapper, and the port of the interfaces."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from openmsmq.model.limits import PORT_MAX_NUMBER
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import Door, InterfaceFacts, Refused
from openmsmq.remote.clerks import Desk
from openmsmq.remote.endpoint_mapper import Endpoint, EndpointMapper
from openmsmq.remote.mgmt import ServerManagement
from openmsmq.remote.services import Service
from openmsmq.runtime.admission.guarded_listener import GuardedListener, ListenerPort
from openmsmq.runtime.admission.peer_limits import PeerBounds, PeerLimits
from openmsmq.runtime.admission.tcp_listener import listening_sockets
from openmsmq.runtime.api.audit import AuditLog
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import (
    RPC_BUFFERED_MAX_BYTES,
    RPC_BUFFERED_PER_PEER_MAX_BYTES,
    RPC_PORTS_MAX_COUNT,
    RPC_PROOFS_LOOK_MS,
    STOP_LINGER_MS,
)
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.rpc.connection import RpcConnection
from openmsmq.runtime.rpc.defects import note_defect
from openmsmq.runtime.rpc.desk import DOOR, desk_of
from openmsmq.runtime.rpc.proofs import Proofs
from openmsmq.runtime.start_errors import cannot_listen
from openmsmq.security.access.callers import anonymous
from openmsmq.wire.rpc import endpoint_mapper, mgmt
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, MANAGEMENT, Syntax

if TYPE_CHECKING:
    import socket

    from openmsmq.runtime.config.rpc_table import RpcTable
    from openmsmq.runtime.server import Pump

MAPPER_DOOR: Final = "rpc-mapper"
MAPPER_PORT: Final = 135
"""Where every client looks for the endpoint mapper."""
PORT_STEP: Final = 11
"""How far the next port is that is tried, while one is taken. [MQMP 2.1]"""


class RpcDoor:
    """One port, its limits, its connections and its groups."""

    def __init__(
        self,
        name: str,
        services: Sequence[Service],
        log: EventLog,
        limits: PeerLimits,
        desk: Callable[[dict[Syntax, Service]], Desk],
    ) -> None:
        self.name: Final = name
        self.log: Final = log
        self.limits: Final = limits
        self.is_public: Final = name == MAPPER_DOOR
        """Whether nobody has to prove anything here."""
        self.groups: Final = Groups()
        self.services: Final = {each.interface: each for each in services}
        self.desk: Final = desk(self.services)
        self.connections: Final[dict[int, RpcConnection]] = {}
        self.facts: Door
        self.proofs: Proofs
        self.audit: AuditLog
        self._limited = LimitedLog(log)
        self._listener: GuardedListener | None = None
        self._all_gone = asyncio.Event()

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Where it listens."""
        return [] if self._listener is None else self._listener.endpoints

    def open(
        self,
        listening: list[socket.socket],
        proofs: Proofs,
        is_stopping: Callable[[], bool],
    ) -> None:
        """Let clients in."""
        port = listening[0].getsockname()[1]
        facts = {each.interface: each.facts for each in self.services.values()}
        self.facts = Door(port, facts)
        self.proofs = proofs
        self._listener = GuardedListener(
            listening,
            self.limits,
            ListenerPort(
                make=lambda number, address: RpcConnection(self, number, address),
                cut=self.cut,
                note=lambda peer, reason: self._limited.refused(peer, self.name, reason),
                is_stopping=is_stopping,
                option_prefix="[rpc] ",
            ),
        )
        for host, used in self.endpoints:
            self.log.info(Event.LISTENING, door=self.name, address=host, port=used)

    def cut(self, number: int, reason: str) -> None:
        """End a connection now; it is no longer counted."""
        connection = self.connections.get(number)
        if connection is not None:
            self._limited.refused(connection.peer, self.name, reason)
            connection.abort()

    def lost(self, connection: RpcConnection, reason: str) -> None:
        """Forget a connection that is gone."""
        if self.connections.pop(connection.number, None) is None:
            return
        self.limits.left(connection.number, read_clocks())
        self.log.debug(Event.DISCONNECTED, peer=connection.peer, door=self.name, reason=reason)
        if not self.connections:
            self._all_gone.set()

    def note_broken(self, peer: str, reason: str) -> None:
        """Log, or count, a connection that ended because of what its client did."""
        self._limited.warning(Event.CONNECTION_BROKEN, peer=peer, door=self.name, reason=reason)

    def note_refusal(self, peer: str, refused: Refused) -> None:
        """Log, or count, somebody who has not proved enough."""
        self._limited.warning(
            Event.RPC_REFUSED,
            peer=peer,
            door=self.name,
            caller=refused.caller,
            level=refused.level,
            reason=refused.sentence,
        )
        self.audit.denied(anonymous(peer), peer, DOOR, refused.sentence)

    def note_defect(self, peer: str, error: Exception) -> None:
        """Log a mistake of ours that ended somebody's connection."""
        note_defect(self.log, peer, self.name, error)

    def look_at_proofs(self) -> None:
        """Cut connections whose accounts are not as they were."""
        for connection in list(self.connections.values()):
            if not connection.is_still_good:
                connection.cut("its account was changed, disabled or removed")

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        if self._listener is not None:
            self._listener.close()
            self._listener.call_off()

    async def close(self) -> None:
        """End all connections, after they had a moment to take their answers."""
        for connection in list(self.connections.values()):
            connection.finish()
        if self.connections:
            self._all_gone.clear()
            try:
                async with asyncio.timeout(STOP_LINGER_MS / 1000):
                    await self._all_gone.wait()
            except TimeoutError:
                for connection in list(self.connections.values()):
                    connection.abort()
        self.desk.close()


class RpcServer:
    """Both doors."""

    def __init__(
        self,
        table: RpcTable,
        pump: Pump,
        log: EventLog,
        audit: AuditLog,
        services: Sequence[Service],
    ) -> None:
        """`services` are what is offered beside what every server tells of itself."""
        self._table = table
        self._pump = pump
        self._log = log
        self._audit = audit
        self._services = tuple(services)
        self._doors: list[RpcDoor] = []
        self._is_stopping = False
        self._proofs: Proofs | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Where the interfaces are called."""
        return [each for door in self._doors if not door.is_public for each in door.endpoints]

    async def listen(self, address: str, proofs: Proofs) -> None:
        """Open the doors, or raise `StartError`."""
        principal = proofs.principal
        self._proofs = proofs
        self._look_later()
        interfaces = [each.interface for each in self._services]
        about = management(interfaces, principal)
        door = self._door(DOOR, [*self._services, about])
        door.open(await self._some_port(address), proofs, lambda: self._is_stopping)
        if self._table.endpoint_mapper == "off":
            self._log.warning(
                Event.RPC_MAPPER_OFF,
                consequence="clients of Windows Vista and later ask port 135 where to call, and "
                "will not find this queue manager unless another mapper there names it",
            )
            return
        endpoints = [
            Endpoint(each.interface, host, port, each.annotation)
            for host, port in door.endpoints
            for each in (*self._services, about)
        ]
        mapper = Service(
            ENDPOINT_MAPPER,
            InterfaceFacts(endpoint_mapper.OPERATIONS_COUNT),
            "endpoint mapper",
            lambda _: EndpointMapper(endpoints),
        )
        found = management([ENDPOINT_MAPPER], principal)
        public = self._door(MAPPER_DOOR, [mapper, found])
        public.open(await self._mapper_port(address), proofs, lambda: self._is_stopping)

    def _door(self, name: str, services: Sequence[Service]) -> RpcDoor:
        table = self._table
        bounds = PeerBounds(
            connections_max=table.connections_max,
            connections_reserved=0,
            connections_per_peer_max=table.connections_per_peer_max,
            buffered_max_bytes=RPC_BUFFERED_MAX_BYTES,
            buffered_per_peer_max_bytes=RPC_BUFFERED_PER_PEER_MAX_BYTES,
        )
        limits = PeerLimits(bounds, (), read_clocks())
        door = RpcDoor(
            name,
            services,
            self._log,
            limits,
            lambda offered: desk_of(offered, self._pump, self._audit),
        )
        door.audit = self._audit
        self._doors.append(door)
        return door

    async def _some_port(self, address: str) -> list[socket.socket]:
        """Listen on the port of the interfaces, or on the next one that is free."""
        first = self._table.port
        last = first + PORT_STEP * (RPC_PORTS_MAX_COUNT - 1)
        ports = range(first, min(last, PORT_MAX_NUMBER) + 1, PORT_STEP)
        for port in ports:
            try:
                return await listening_sockets(address, port)
            except OSError as error:
                if error.errno == errno.EADDRINUSE and port != ports[-1]:
                    continue
                raise cannot_listen(
                    error, address, port, key="[rpc] port", switch="[rpc] enabled = false"
                ) from None
        raise AssertionError("there is at least one port")

    async def _mapper_port(self, address: str) -> list[socket.socket]:
        try:
            return await listening_sockets(address, MAPPER_PORT)
        except OSError as error:
            raise cannot_listen(
                error,
                address,
                MAPPER_PORT,
                key="[rpc] address",
                switch='[rpc] endpoint_mapper = "off"',
            ) from None

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(
            RPC_PROOFS_LOOK_MS / 1000, self.look_at_proofs
        )

    def look_at_proofs(self) -> None:
        """Look whether those who have proved to be somebody still are."""
        if self._proofs is not None:
            self._proofs.look()
            # Whoever came in since the last time may have had the file read again before us.
            for door in self._doors:
                door.look_at_proofs()
        self._look_later()

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        self._is_stopping = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for door in self._doors:
            door.stop_listening()

    async def close(self) -> None:
        """End all connections."""
        for door in self._doors:
            await door.close()


def management(interfaces: Sequence[Syntax], principal: str) -> Service:
    """Make what tells of a server with these interfaces."""
    told = (*interfaces, MANAGEMENT)
    return Service(
        MANAGEMENT,
        InterfaceFacts(mgmt.OPERATIONS_COUNT),
        "remote management",
        lambda _: ServerManagement(told, principal),
    )
