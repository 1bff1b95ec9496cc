"""Everything that reaches other queue managers, as the pump drives it."""

from __future__ import annotations

import asyncio

from openmsmq.model.queue import ConnectionStatus
from openmsmq.runtime.capture_file import CaptureFile
from openmsmq.runtime.config_file import ServerConfig
from openmsmq.runtime.datagrams import Datagrams
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.resolver import Resolver
from openmsmq.runtime.server import Pump
from openmsmq.runtime.sessions import Sessions


class TransferNetwork:
    """Sessions, datagrams, name look-ups and, if wanted, the recording of all that."""

    def __init__(self, config: ServerConfig, pump: Pump, log: EventLog) -> None:
        self._config = config
        self._pump = pump
        self._log = log
        self._capture = (
            CaptureFile(config.capture, config.capture_max_bytes, log) if config.capture else None
        )
        self._sessions = Sessions(config, pump, log, self._capture)
        self._datagrams = Datagrams(config.ping_port, pump, log, self._capture)
        self._resolver = Resolver(self._resolved)
        self._loop = asyncio.get_running_loop()

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Where other queue managers connect to."""
        return self._sessions.endpoints

    async def listen(self) -> None:
        """Open the ports, or raise `StartError`."""
        if not self._config.transfer:
            return
        await self._sessions.listen()
        parameters = self._config.parameters
        await self._datagrams.listen(
            [host for host, _ in self._sessions.endpoints],
            answer=parameters.answer_ping,
            ask=parameters.ask_ping,
        )

    # What the pump calls.

    def resolve(self, host: str) -> None:
        """Look up a host."""
        self._resolver.resolve(host)

    def connect(self, session: int, address: str) -> None:
        """Open the connection of a session."""
        if self._config.transfer:
            self._sessions.connect(session, address)
            return
        failed = self._pump.engine.session_failed
        self._loop.call_soon(self._pump.put_in, failed, session, ConnectionStatus.TCP_NOT_ENABLED)

    def send(self, session: int, data: bytes) -> None:
        """Write to the connection of a session, at the next `flush`."""
        self._sessions.send(session, data)

    def disconnect(self, session: int) -> None:
        """Close the connection of a session once everything is written."""
        self._sessions.disconnect(session)

    def send_datagram(self, address: str, port: int | None, data: bytes) -> None:
        """Send a datagram, to the ping port if no other is given."""
        self._datagrams.send(address, port, data)

    def flush(self) -> None:
        """Let go what `send` was given."""
        self._sessions.flush()

    def _resolved(self, host: str, addresses: tuple[str, ...]) -> None:
        if not addresses:
            self._log.debug(Event.HOST_NOT_RESOLVED, host=host)
        self._pump.put_in(self._pump.engine.host_resolved, host, addresses)

    # End.

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        self._sessions.stop_listening()
        self._datagrams.close()

    def give_up(self) -> None:
        """Close what a start that failed has opened."""
        self.stop_listening()
        self._resolver.close()
        self._sessions.call_off_attempts()
        if self._capture is not None:
            self._capture.close()

    async def close(self) -> None:
        """End everything in order."""
        self._resolver.close()
        await self._sessions.close()
        if self._capture is not None:
            self._capture.close()
