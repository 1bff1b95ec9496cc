"""The doors of the application interface: TCP, with or without TLS, and a Unix socket.

An address that other computers can reach is not opened without a token, unless the operator says
so in as many words.
"""

from __future__ import annotations

import asyncio
import grp
import os
import socket
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from openmsmq.model.errors import InsufficientResources, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.runtime.addresses import endpoints_of
from openmsmq.runtime.api_connection import ApiConnection
from openmsmq.runtime.config_errors import ConfigError
from openmsmq.runtime.config_file import ServerConfig
from openmsmq.runtime.limits import (
    ACCEPT_BACKLOG_COUNT,
    READ_BYTES,
    SOCKET_PATH_MAX_BYTES,
    STOP_LINGER_MS,
)
from openmsmq.runtime.logs import Event, EventLog, RefusalLog
from openmsmq.runtime.peers import Door
from openmsmq.runtime.server import Pump
from openmsmq.runtime.start_errors import StartError, cannot_listen, os_reason

_OWNER_ONLY: Final = 0o600
_OWNER_AND_GROUP: Final = 0o660
_SOME_MS: Final = 10


class ApiServer:
    """Listens, counts connections, and ends them."""

    def __init__(
        self, config: ServerConfig, pump: Pump, log: EventLog, *, manager_id: Guid
    ) -> None:
        self.config = config
        self.pump = pump
        self.log = log
        self.manager_name: Final = config.manager_name
        self.manager_id: Final = bytes(manager_id)
        self.buffer: Final = memoryview(bytearray(READ_BYTES))
        self.connections: set[ApiConnection] = set()
        self.tcp_endpoints: list[tuple[str, int]] = []
        self._listeners: list[asyncio.Server] = []
        self._socket_path: Path | None = None
        self._all_gone = asyncio.Event()
        self._refusals = RefusalLog(log)

    # Beginning.

    async def listen(self) -> None:
        """Open all doors, or raise `StartError` or `ConfigError`."""
        if self.config.api_tcp:
            await self._listen_tcp()
        if self.config.socket_path is not None:
            await self._listen_unix(self.config.socket_path)

    async def _listen_tcp(self) -> None:
        config = self.config
        if config.needs_token and not config.token_file:
            raise ConfigError(
                f"{config.address} can be reached from other computers, so a token is needed: "
                "give token_file, or allow_remote_without_token if everybody may use the queues"
            )
        door = Door("tcp", token=read_token(config.token_file) if config.token_file else None)
        context = tls_context(config)
        try:
            listener = await asyncio.get_running_loop().create_server(
                self._maker(door),
                config.address,
                config.api_port,
                backlog=ACCEPT_BACKLOG_COUNT,
                ssl=context,
                ssl_handshake_timeout=config.hello_timeout_ms / 1000 if context else None,
            )
        except OSError as error:
            raise cannot_listen(
                error, config.address, config.api_port, key="api_port", switch="--no-api-tcp"
            ) from None
        self._listeners.append(listener)
        self.tcp_endpoints = endpoints_of(listener)
        for host, port in self.tcp_endpoints:
            self.log.info(
                Event.LISTENING,
                door="tcp",
                address=host,
                port=port,
                tls=context is not None,
                token=door.token is not None,
            )

    async def _listen_unix(self, path: Path) -> None:
        group = _group_id(self.config.api_socket_group) if self.config.api_socket_group else None
        door = Door("unix", group=group)
        listening = bind_unix(path, group)
        try:
            listener = await asyncio.get_running_loop().create_unix_server(
                self._maker(door), sock=listening, backlog=ACCEPT_BACKLOG_COUNT
            )
        except OSError as error:
            listening.close()
            raise StartError(f"cannot listen on {path} ({os_reason(error)})") from None
        self._listeners.append(listener)
        self._socket_path = path
        self.log.info(Event.LISTENING, door="unix", path=str(path))

    def _maker(self, door: Door) -> Callable[[], ApiConnection]:
        return lambda: ApiConnection(self, door)

    # Connections.

    def reason_to_refuse(self) -> MsmqError | None:
        """Say why no further connection can be taken, or None."""
        if self.pump.refusal is not None:
            return self.pump.refusal
        most = self.config.connections_max
        if len(self.connections) >= most:
            return InsufficientResources(f"{most} connections are open already: close some first")
        return None

    def note_refusal(self, peer: str, door: str, reason: str) -> None:
        """Log a refused connection."""
        self._refusals.note(peer, door, reason)

    def connection_ended(self) -> None:
        """A connection is gone."""
        if not self.connections:
            self._all_gone.set()

    # End.

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        for listener in self._listeners:
            listener.close()
        if self._socket_path is not None:
            self._socket_path.unlink(missing_ok=True)
            self._socket_path = None

    async def close_connections(self) -> None:
        """End all connections in order; those that do not take their answers in time are cut."""
        for connection in list(self.connections):
            connection.finish()
        waited_ms = 0
        while self.connections and waited_ms < self.config.stop_timeout_ms:
            slow = any(connection.has_answers_left for connection in self.connections)
            if not slow and waited_ms >= STOP_LINGER_MS:
                break
            self._all_gone.clear()
            waited_ms += _SOME_MS
            try:
                await asyncio.wait_for(self._all_gone.wait(), _SOME_MS / 1000)
            except TimeoutError:
                continue
        for connection in list(self.connections):
            connection.abort()


def read_token(file: str) -> bytes:
    """Read the token that clients must show; a file that gives none is an error."""
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the token from {file}: {error}") from None
    if not token:
        raise ConfigError(f"{file} is empty: write the token into it, as one line")
    return token.encode()


def tls_context(config: ServerConfig) -> ssl.SSLContext | None:
    """Make what TLS needs, or None without a certificate."""
    if not config.tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(config.tls_cert, config.tls_key or None)
    except (OSError, ssl.SSLError) as error:
        keys = f" and {config.tls_key}" if config.tls_key else ""
        raise ConfigError(
            f"cannot use the certificate in {config.tls_cert}{keys}: {error}"
        ) from None
    return context


def bind_unix(path: Path, group: int | None) -> socket.socket:
    """Make the socket with its permissions; nobody can connect before it listens."""
    if len(os.fsencode(path)) > SOCKET_PATH_MAX_BYTES:
        raise ConfigError(
            f"the path of the Unix socket, {path}, is longer than {SOCKET_PATH_MAX_BYTES} bytes: "
            "give a shorter api_socket, or none"
        )
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(os.fspath(path))
        if group is not None:
            os.chown(path, -1, group)
        path.chmod(_OWNER_ONLY if group is None else _OWNER_AND_GROUP)
    except OSError as error:
        listening.close()
        raise StartError(f"cannot make the Unix socket {path} ({os_reason(error)})") from None
    return listening


def _remove_stale(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise StartError(f"{path} is in the way of the Unix socket: it is something else")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(os.fspath(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise StartError(f"another process listens on {path}: stop it, or give another api_socket")


def _group_id(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(f"there is no group {name!r} for api_socket_group") from None
