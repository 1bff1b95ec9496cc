"""Everything that reaches other queue managers, as the pump drives it."""

from __future__ import annotations

from openmsmq.model.limits import MANAGER_QUOTA_DEFAULT_KB
from openmsmq.runtime.addresses import literal
from openmsmq.runtime.admission.peer_limits import PeerBounds, PeerLimits
from openmsmq.runtime.admission.tcp_listener import connections_possible
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.limits import (
    CONNECTIONS_RESERVED_SHARE,
    PEER_BUFFERED_MAX_BYTES,
    PEERS_BUFFERED_MAX_BYTES,
    PEERS_BUFFERED_MIN_BYTES,
)
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.server import Pump
from openmsmq.runtime.sessions.capture_file import CaptureFile
from openmsmq.runtime.sessions.datagrams import Datagrams
from openmsmq.runtime.sessions.resolver import Resolver
from openmsmq.runtime.sessions.sessions import Sessions
from openmsmq.runtime.sessions.taps import MakeTap, no_tap


class TransferNetwork:
    """Sessions, datagrams, name look-ups and, if wanted, the recording of all that."""

    def __init__(
        self,
        config: ServerConfig,
        pump: Pump,
        log: EventLog,
        make_tap: MakeTap = no_tap,
    ) -> None:
        """`make_tap` makes what reads each session along, if anybody does."""
        self._config = config
        self._pump = pump
        self._log = log
        self._capture = (
            CaptureFile(config.capture, config.capture_max_bytes, log) if config.capture else None
        )
        limits = PeerLimits(transfer_bounds(config), known_addresses(config), read_clocks())
        self.sessions = Sessions(config, pump, log, self._capture, limits, make_tap)
        self.datagrams = Datagrams(config.ping_port, pump, log, self._capture, limits)
        self.resolver = Resolver(self._resolved)

    async def listen(self) -> None:
        """Open the ports, or raise `StartError`."""
        if not self._config.transfer:
            return
        await self.sessions.listen()
        parameters = self._config.parameters
        await self.datagrams.listen(
            self.sessions.hosts,
            answer=parameters.answer_ping,
            ask=parameters.ask_ping,
        )

    def _resolved(self, host: str, addresses: tuple[str, ...]) -> None:
        if not addresses:
            self._log.debug(Event.HOST_NOT_RESOLVED, host=host)
        self._pump.put_in(self._pump.engine.host_resolved, host, addresses)

    # End.

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        self.sessions.stop_listening()
        self.datagrams.close()

    def give_up(self) -> None:
        """Close what a start that failed has opened."""
        self.stop_listening()
        self.resolver.close()
        self.sessions.call_off_attempts()
        if self._capture is not None:
            self._capture.close()

    async def close(self) -> None:
        """End everything in order."""
        self.resolver.close()
        await self.sessions.close()
        if self._capture is not None:
            self._capture.close()


def transfer_bounds(config: ServerConfig) -> PeerBounds:
    """Return what other queue managers may take of this one."""
    most = connections_possible(config.transfer_connections_max, config.connections_max)
    # Who gives a queue manager little room means its memory too.
    quota_bytes = (config.quota_kb or MANAGER_QUOTA_DEFAULT_KB) * 1024
    held_bytes = min(PEERS_BUFFERED_MAX_BYTES, max(quota_bytes // 2, PEERS_BUFFERED_MIN_BYTES))
    return PeerBounds(
        buffered_max_bytes=held_bytes,
        buffered_per_peer_max_bytes=min(PEER_BUFFERED_MAX_BYTES, held_bytes // 2),
        connections_max=most,
        connections_reserved=most // CONNECTIONS_RESERVED_SHARE,
        connections_per_peer_max=config.transfer_connections_per_peer_max,
    )


def known_addresses(config: ServerConfig) -> list[str]:
    """Return the addresses for which places are kept: this computer's, and those an operator named.

    Of the loopback addresses only the usual one counts: where several queue managers share a
    computer, each of them has one of the others.
    """
    parameters = config.parameters
    hosts = ["127.0.0.1", "::1"]
    for named in (*parameters.hosts.values(), *parameters.next_hops.values()):
        hosts += named
    for rule in parameters.peers.rules:
        hosts += () if rule.refuse else rule.addresses
    for server in config.directory:
        host, separator, port = server.rpartition(":")
        hosts += [server, host] if separator and port.isdigit() else [server]
    return [address for host in hosts if (address := literal(host)) is not None]
