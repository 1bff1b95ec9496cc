"""The door of HTTP: its port, its limits, its connections, and what is counted of it."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from openmsmq.runtime.admission.guarded_listener import GuardedListener, ListenerPort
from openmsmq.runtime.admission.peer_limits import PeerBounds, PeerLimits
from openmsmq.runtime.admission.tcp_listener import listening_sockets
from openmsmq.runtime.api.server import tls_context_of
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.http.burden import Burden, BurdenBounds
from openmsmq.runtime.http.connection import HttpConnection
from openmsmq.runtime.http.routes import Proxies, Route, Routes
from openmsmq.runtime.limits import (
    HTTP_BUFFERED_MAX_BYTES,
    HTTP_BUFFERED_PER_PEER_MAX_BYTES,
    HTTP_HEAD_MS,
    HTTP_LINGER_MS,
)
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.rpc.defects import note_defect
from openmsmq.runtime.start_errors import cannot_listen

if TYPE_CHECKING:
    from openmsmq.runtime.config.doors.http_table import HttpTable

DOOR: Final = "http"


class HttpServer:
    """Listens, and has connections answered by routes."""

    def __init__(
        self,
        table: HttpTable,
        data: str,
        log: EventLog,
        hosts: Iterable[str],
        routes: Iterable[Route],
        *,
        bounds: BurdenBounds | None = None,
    ) -> None:
        """`data` is the directory of the queue manager; `hosts` are its names and addresses."""
        self._table = table
        self._data = Path(data)
        self._log = log
        self._limited = LimitedLog(log)
        self.routes: Final = Routes((*hosts, *table.hosts), routes)
        self.proxies: Final = Proxies(table.trusted_proxies)
        self.burden: Final = Burden(bounds or BurdenBounds())
        self.limits: Final = PeerLimits(_bounds(table), (), read_clocks())
        self.connections: Final[dict[int, HttpConnection]] = {}
        self.answers: Final[Counter[int]] = Counter()
        """How many requests were answered with each status since the start."""
        self.is_stopping = False
        self._listener: GuardedListener | None = None
        self._all_gone = asyncio.Event()

    # Beginning.

    async def listen(self, address: str) -> None:
        """Let clients in, or raise `StartError` or `ConfigError`."""
        table = self._table
        context = self._context()
        try:
            listening = await listening_sockets(address, table.port)
        except OSError as error:
            raise cannot_listen(
                error, address, table.port, key="[http] port", switch="[http] enabled = false"
            ) from None
        self._listener = GuardedListener(
            listening,
            self.limits,
            ListenerPort(
                make=lambda number, host: HttpConnection(self, number, host),
                cut=self.cut,
                note=lambda peer, reason: self._limited.refused(peer, DOOR, reason),
                is_stopping=lambda: self.is_stopping,
                option_prefix="[http] ",
            ),
            context=context,
            handshake_s=HTTP_HEAD_MS / 1000 if context else None,
        )
        for host, port in self.endpoints:
            self._log.info(
                Event.LISTENING, door=DOOR, address=host, port=port, tls=context is not None
            )

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Where it listens."""
        return [] if self._listener is None else self._listener.endpoints

    def reload(self) -> None:
        """Read the certificates again; raises `ConfigError`, and then the old ones count."""
        if self._listener is not None:
            self._listener.use_context(self._context())

    def _context(self) -> ssl.SSLContext | None:
        table = self._table
        return tls_context_of(
            *(
                str(self._data / file) if file else ""
                for file in (table.tls_cert, table.tls_key, table.tls_client_ca)
            )
        )

    # Connections.

    def cut(self, number: int, reason: str) -> None:
        """End a connection now; it is no longer counted."""
        connection = self.connections.get(number)
        if connection is not None:
            self._limited.refused(connection.peer, DOOR, reason)
            connection.abort()

    def lost(self, connection: HttpConnection, reason: str) -> None:
        """Forget a connection."""
        if self.connections.pop(connection.number, None) is None:
            return
        self.limits.left(connection.number, read_clocks())
        self._log.debug(Event.DISCONNECTED, peer=connection.peer, door=DOOR, reason=reason)
        if not self.connections:
            self._all_gone.set()

    def count(self, status: int) -> None:
        """Count an answer."""
        self.answers[int(status)] += 1

    def note_broken(self, peer: str, reason: str) -> None:
        """Log, or count, a connection that ended because of what its client did."""
        self._limited.warning(Event.CONNECTION_BROKEN, peer=peer, door=DOOR, reason=reason)

    def note_defect(self, peer: str, error: Exception) -> None:
        """Log a mistake of ours that ended somebody's connection."""
        note_defect(self._log, peer, DOOR, error, Event.HTTP_DEFECT)

    # The end.

    def stop_listening(self) -> None:
        """Let nobody in any more, and take no further request."""
        self.is_stopping = True
        if self._listener is not None:
            self._listener.close()
            self._listener.call_off()

    async def close(self) -> None:
        """End all connections, after what they have asked for is answered."""
        for connection in list(self.connections.values()):
            connection.finish()
        if self.connections:
            self._all_gone.clear()
            try:
                async with asyncio.timeout(HTTP_LINGER_MS / 1000):
                    await self._all_gone.wait()
            except TimeoutError:
                for connection in list(self.connections.values()):
                    connection.abort()


def _bounds(table: HttpTable) -> PeerBounds:
    return PeerBounds(
        connections_max=table.connections_max,
        connections_reserved=0,
        connections_per_peer_max=table.connections_per_peer_max,
        half_open_max=table.connections_max,
        half_open_per_peer_max=table.connections_per_peer_max,
        # A proxy makes many connections, and so does each client without keep-alive.
        connects_per_s=500,
        connects_burst=2_000,
        connects_all_per_s=1_000,
        connects_all_burst=4_000,
        buffered_max_bytes=HTTP_BUFFERED_MAX_BYTES,
        buffered_per_peer_max_bytes=HTTP_BUFFERED_PER_PEER_MAX_BYTES,
    )
