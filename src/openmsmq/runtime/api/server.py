"""The doors of the application interface: TCP, with or without TLS, and a Unix socket.

An address that other computers can reach is not opened without tokens or certificates, unless the
operator says so in as many words; and then those who come without are anonymous. Here is decided
who a caller is; what a caller may do is decided by the queue manager.
"""

from __future__ import annotations

import asyncio
import contextlib
import grp
import hmac
import os
import socket
import ssl
import stat
from pathlib import Path
from typing import Final

from openmsmq.api.framing import FRAME_MAX_BYTES
from openmsmq.model.errors import AccessDenied, InsufficientResources, MsmqError
from openmsmq.model.identity import Guid
from openmsmq.runtime.admission.guarded_listener import GuardedListener, ListenerPort
from openmsmq.runtime.admission.peer_limits import PeerBounds, PeerLimits
from openmsmq.runtime.admission.tcp_listener import listening_sockets
from openmsmq.runtime.api.audit import AuditLog
from openmsmq.runtime.api.connection import ApiConnection
from openmsmq.runtime.api.peers import Door
from openmsmq.runtime.api.slates import SlateRoom
from openmsmq.runtime.api.tokens import TOKENS_LOOK_MS, Token, TokenBook, operator_caller
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig, is_loopback
from openmsmq.runtime.limits import (
    ACCEPT_BACKLOG_COUNT,
    CONNECTIONS_RESERVED_SHARE,
    READ_BYTES,
    SOCKET_PATH_MAX_BYTES,
    STOP_LINGER_MS,
)
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.server import Pump
from openmsmq.runtime.start_errors import NotYet, StartError, cannot_listen, os_reason, tls_reason
from openmsmq.security.access.callers import Caller, anonymous, certificate_caller

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
        self._limited = LimitedLog(log)
        self.audit: Final = AuditLog(
            config.audit_path, lambda reason: log.error(Event.AUDIT_FAILED, reason=reason)
        )
        self.slate_room: Final = SlateRoom()
        self.limits: Final = PeerLimits(api_bounds(config), (), read_clocks())
        self._tcp_listener: GuardedListener | None = None
        self._tokens: TokenBook | None = None
        self._operators_token: bytes | None = None
        self._token_timer: asyncio.TimerHandle | None = None

    # Beginning.

    async def listen(self) -> None:
        """Open all doors, or raise `StartError` or `ConfigError`."""
        config, log = self.config, self.log
        tokens = self._tokens = TokenBook(
            config.tokens_path,
            self._tokens_changed,
            lambda reason: log.error(Event.TOKENS_UNUSABLE, reason=reason),
        )
        self._operators_token = read_token(config.token_file) if config.token_file else None
        if config.api_tcp:
            await self._listen_tcp(tokens)
        if self.config.socket_path is not None:
            await self._listen_unix(self.config.socket_path)

    async def _listen_tcp(self, tokens: TokenBook) -> None:
        config = self.config
        if config.needs_token and not (config.token_file or tokens or config.tls_client_ca):
            raise ConfigError(
                f"{config.address} can be reached from other computers, so a token is needed: "
                f"make one with openmsmq token create NAME --scope SCOPE --data {config.data}, "
                "give token_file or tls_client_ca, or allow_remote_without_token if everybody on "
                "the network may send to the queues"
            )
        door = Door(
            "tcp",
            needs_token=self._operators_token is not None,
            is_open=config.allow_remote_without_token,
        )
        context = tls_context(config)
        try:
            listening = await listening_sockets(config.address, config.api_port)
        except OSError as error:
            raise cannot_listen(
                error, config.address, config.api_port, key="api_port", switch="--no-api-tcp"
            ) from None
        self._tcp_listener = GuardedListener(
            listening,
            self.limits,
            ListenerPort(
                make=lambda number, _: ApiConnection(self, door, number),
                cut=self.cut_peer,
                note=lambda peer, reason: self._limited.refused(peer, "tcp", reason),
                is_exempt=is_loopback,
            ),
            context=context,
            handshake_s=config.hello_timeout_ms / 1000 if context else None,
        )
        self.tcp_endpoints = self._tcp_listener.endpoints
        for host, port in self.tcp_endpoints:
            self.log.info(
                Event.LISTENING,
                door="tcp",
                address=host,
                port=port,
                tls=context is not None,
                token=door.needs_token or len(tokens) > 0,
            )

    async def _listen_unix(self, path: Path) -> None:
        group = _group_id(self.config.api_socket_group) if self.config.api_socket_group else None
        door = Door("unix", group=group)
        listening = bind_unix(path, group)
        try:
            listener = await asyncio.get_running_loop().create_unix_server(
                lambda: ApiConnection(self, door), sock=listening, backlog=ACCEPT_BACKLOG_COUNT
            )
        except OSError as error:
            listening.close()
            raise StartError(f"cannot listen on {path} ({os_reason(error)})") from None
        self._listeners.append(listener)
        self._socket_path = path
        self.log.info(Event.LISTENING, door="unix", path=str(path))

    def reload(self) -> None:
        """Read certificates and tokens again; raises `ConfigError`, and then the old ones count."""
        if self._tcp_listener is None:
            return
        self._tcp_listener.use_context(tls_context(self.config))
        if self._token_timer is not None:
            self._token_timer.cancel()
        self.look_at_tokens()

    # Connections.

    def reason_to_refuse(self) -> MsmqError | None:
        """Return why no further connection can be taken, or None."""
        if self.pump.refusal is not None:
            return self.pump.refusal
        most = self.config.connections_max
        if len(self.connections) >= most:
            return InsufficientResources(f"{most} connections are open already: close some first")
        return None

    def cut_peer(self, number: int, reason: str) -> None:
        """End a connection that has to give way, or takes too much."""
        for connection in list(self.connections):
            if connection.peer_number == number:
                self._limited.refused(connection.peer, "tcp", reason)
                connection.abort()

    def note_refusal(self, peer: str, door: str, refusal: MsmqError) -> None:
        """Log a refused connection."""
        self._limited.refused(peer, door, refusal.detail)
        if isinstance(refusal, AccessDenied):
            self.audit.denied(anonymous(peer), peer, "connect", refusal.detail)

    def note_broken(self, peer: str, reason: str) -> None:
        """Log, or count, a connection that ended because nobody understands what came."""
        self._limited.warning(Event.CONNECTION_BROKEN, peer=peer, reason=reason)

    # Who it is.

    def admit(
        self,
        door: Door,
        host: str,
        local: Caller | None,
        certificate: bytes | None,
        shown: str,
    ) -> tuple[Caller, Token | None]:
        """Return who comes through a door, or raise `AccessDenied`.

        A token counts most, because it says what the caller wants to be; then a certificate, then
        the word of the kernel about a user of this computer. Whoever shows a token is judged by it
        alone: one that is not known must not become somebody who may do more.
        """
        if shown:
            return self._shown(shown)
        if door.kind == "unix":
            assert local is not None, "the kernel vouches for whoever comes by the socket"
            return local, None
        if certificate is not None:
            user = self.pump.engine.user_of(certificate)
            if user is None:
                raise AccessDenied(
                    "the directory has this certificate for no user: register it, or connect with "
                    "a token"
                )
            return certificate_caller(user), None
        if not door.needs_token and local is not None:
            return local, None
        if not door.needs_token and (door.is_open or is_loopback(host)):
            return anonymous(host), None
        raise AccessDenied("the token is missing or wrong: connect with the right one")

    def _shown(self, shown: str) -> tuple[Caller, Token | None]:
        operators = self._operators_token
        if operators is not None and hmac.compare_digest(
            operators, shown.encode("utf-8", "replace")
        ):
            return operator_caller(), None
        if self._tokens is not None:
            if self._tokens.look():
                # Not now: whoever is cut must not be in the middle of something.
                asyncio.get_running_loop().call_soon(self._cut_revoked)
            found = self._tokens.find(shown, read_clocks().unix_s)
            if found is not None:
                self._watch_tokens()
                return found.caller, found
        raise AccessDenied(
            "the token is missing or wrong: this queue manager does not know it, it was revoked, "
            "or its time is up; connect with the right one, or as a user of this computer with none"
        )

    def _watch_tokens(self) -> None:
        """Look again and again whether the tokens of connections are good, while there are any."""
        if self._token_timer is None:
            self._token_timer = asyncio.get_running_loop().call_later(
                TOKENS_LOOK_MS / 1000, self.look_at_tokens
            )

    def look_at_tokens(self) -> None:
        """Cut connections whose token was revoked, changed, or has come to its time."""
        self._token_timer = None
        if self._tokens is not None:
            self._tokens.look()
            self._cut_revoked()
            if any(connection.token is not None for connection in self.connections):
                self._watch_tokens()

    def _cut_revoked(self) -> None:
        now_s = read_clocks().unix_s
        for connection in list(self.connections):
            token = connection.token
            tokens = self._tokens
            if token is not None and not (tokens and tokens.still_has(token, now_s)):
                connection.cut("its token was revoked, or its time is up")

    def _tokens_changed(self, before: tuple[Token, ...], after: tuple[Token, ...]) -> None:
        self.log.info(Event.TOKENS_CHANGED, count=len(after))
        for token in set(after) - set(before):
            self.audit.noted("token-added", token.name)
        for token in set(before) - set(after):
            self.audit.noted("token-removed", token.name)

    def connection_ended(self) -> None:
        """A connection is gone."""
        if not self.connections:
            self._all_gone.set()

    # End.

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        for listener in self._listeners:
            listener.close()
        if self._tcp_listener is not None:
            self._tcp_listener.close()
            self._tcp_listener.call_off()
        if self._socket_path is not None:
            self._socket_path.unlink(missing_ok=True)
            self._socket_path = None
        if self._token_timer is not None:
            self._token_timer.cancel()
            self._token_timer = None
        self._tokens = None

    async def close_connections(self) -> None:
        """End all connections in order; those that do not take their answers in time are cut."""
        for connection in list(self.connections):
            connection.finish()
        waited_ms = 0
        while self.connections and waited_ms < self.config.stop_timeout_ms:
            slow = any(connection.unsent_bytes for connection in self.connections)
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
        self.audit.close()


def api_bounds(config: ServerConfig) -> PeerBounds:
    """Return what applications on other computers may take; those on this one have the rest."""
    most = config.connections_max
    return PeerBounds(
        connections_max=max(1, most - most // CONNECTIONS_RESERVED_SHARE),
        connections_reserved=0,
        connections_per_peer_max=config.connections_per_peer_max,
        # One frame may be as long as this; a second one may have begun.
        buffered_per_peer_max_bytes=2 * FRAME_MAX_BYTES,
        buffered_max_bytes=8 * FRAME_MAX_BYTES,
    )


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
    return tls_context_of(config.tls_cert, config.tls_key, config.tls_client_ca)


def tls_context_of(certificate: str, key: str, client_ca: str) -> ssl.SSLContext | None:
    """Make what a door with TLS needs of files, or None without a certificate.

    With authorities, clients may show a certificate; one that nobody vouches for ends the greeting.
    """
    if not certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        keys = f" and {key}" if key else ""
        raise ConfigError(
            f"cannot use the certificate in {certificate}{keys}: {tls_reason(error)}"
        ) from None
    if client_ca:
        context.verify_mode = ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"cannot use the authorities in {client_ca}: {tls_reason(error)}"
            ) from None
    return context


def bind_unix(path: Path, group: int | None) -> socket.socket:
    """Make the socket with its permissions; nobody can connect before it listens."""
    if len(os.fsencode(path)) > SOCKET_PATH_MAX_BYTES:
        raise ConfigError(
            f"the path of the Unix socket, {path}, is longer than {SOCKET_PATH_MAX_BYTES} bytes: "
            "give a shorter api_socket, or none"
        )
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.ExitStack() as made:
        made.callback(listening.close)
        try:
            _remove_stale(path)
            listening.bind(os.fspath(path))
            if group is not None:
                os.chown(path, -1, group)
            path.chmod(_OWNER_ONLY if group is None else _OWNER_AND_GROUP)
        except OSError as error:
            raise StartError(f"cannot make the Unix socket {path} ({os_reason(error)})") from None
        made.pop_all()
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
    raise NotYet(f"another process listens on {path}: stop it, or give another api_socket")


def _group_id(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(f"there is no group {name!r} for api_socket_group") from None
