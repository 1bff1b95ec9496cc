"""Sessions over TLS: the handshake of those who come and of those who are called, and renewal.

Which rule an address needs TLS by is in `peer_rules`, whose certificate is good in
`trust`, the bytes are in `tls_transport`. Here they meet the sessions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Final

from openmsmq.model.peers import PeerRule
from openmsmq.model.queue import ConnectionStatus
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.config.peer_rules import PeerRules
from openmsmq.runtime.limits import SESSION_READ_BYTES, TLS_FILES_LOOK_MS
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.sessions.attempts import ConnectFailed, connected_socket
from openmsmq.runtime.sessions.tls_transport import TlsFailed, TlsTransport
from openmsmq.runtime.sessions.trust import Proof, SessionTrust, open_trust

DOOR: Final = "sessions-tls"


class SessionTls:
    """What sessions need of TLS; without a certificate, only the rules about who must have it."""

    def __init__(
        self,
        config: ServerConfig,
        log: EventLog,
        make: Callable[[int, str, Proof], asyncio.BufferedProtocol],
    ) -> None:
        """`make` makes a session by its number, the address of a caller, and who that is."""
        self.rules: Final = PeerRules(config.parameters.peers)
        self._config = config
        self._table = config.session_tls
        self._make = make
        self._log = log
        self._limited = LimitedLog(log)
        self._records = memoryview(bytearray(SESSION_READ_BYTES if self._table.certificate else 0))
        self._trust: SessionTrust | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._recheck: Callable[[], None] = lambda: None

    def open(self, recheck: Callable[[], None]) -> bool:
        """Read the certificates, or raise `ConfigError`; say whether there are any.

        `recheck` is called whenever a proof may not be good any more.
        """
        self._trust = open_trust(
            self._table, self._config.data, self.rules, lambda: read_clocks().unix_s
        )
        self._recheck = recheck
        if self._trust is not None:
            self._warn(self._trust)
            self._look_later()
        return self._trust is not None

    def close(self) -> None:
        """Look at the files no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Those who come.

    async def take_up(self, number: int, made: socket.socket, address: str) -> None:
        """Bring in a connection that was accepted; raises `TlsFailed` once it is gone."""
        trust = self._trust
        assert trust is not None, "nobody listens without a certificate"

        def meet(shown: TlsTransport) -> asyncio.BufferedProtocol:
            return self._make(number, address, trust.judge(shown.tls, address))

        transport = TlsTransport(trust.accepting, meet, self._records, server_side=True)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: transport, made)
            await transport.greet(self._config.connect_timeout_ms)
        except TlsFailed as error:
            self._limited.refused(address, DOOR, str(error))
            raise

    # Those who are called.

    def rules_to(self, address: str) -> tuple[PeerRule, ...]:
        """Return the rules of whom may be at an address that is called over TLS; none for plain."""
        rules = self.rules.reached_by_tls(address)
        if rules or not self._table.required:
            return rules
        named = self.rules.nearest(address) or tuple(
            rule for rule in self.rules.all if not rule.addresses
        )
        if not named:
            raise ConnectFailed(
                ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE,
                "[session_tls] has required = true, and no rule of [peers] has this address",
            )
        return named

    async def dial(
        self, session: int, address: str, rules: Sequence[PeerRule], own: Sequence[str]
    ) -> None:
        """Make the connection of a session; raises `ConnectFailed` or `OSError`."""
        trust = self._trust
        assert trust is not None, "without a certificate no rule wants TLS"
        port = self._table.ports.get(rules[0].name, self._table.port)
        made = await connected_socket(address, self._config, own, port)

        def meet(shown: TlsTransport) -> asyncio.BufferedProtocol:
            return self._make(session, "", trust.judge(shown.tls, address, rules))

        transport = TlsTransport(trust.dialling, meet, self._records, server_side=False)
        try:
            await asyncio.get_running_loop().create_connection(lambda: transport, sock=made)
            await transport.greet(self._config.connect_timeout_ms)
        except TlsFailed as error:
            reason = self.explained(error)
            self.note_failure(session, address, reason)
            raise ConnectFailed(
                ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, f"port {port}: {reason}"
            ) from None

    def explained(self, error: TlsFailed) -> str:
        """Return what is to be done about one who refuses us."""
        if not error.refused_us or self._trust is None:
            return str(error)
        return f"{error}. The SHA-256 fingerprint of ours is {self._trust.own.fingerprint}"

    def note_failure(self, session: int, address: str, reason: str) -> None:
        """Log that there is no TLS with somebody."""
        self._limited.warning(Event.SESSION_FAILED, session=session, peer=address, reason=reason)

    # Renewal.

    def why_not(self, proof: Proof) -> str:
        """Return why what a peer has shown is not good any more; nothing, if it is."""
        return "" if self._trust is None else self._trust.why_not(proof)

    def reload(self) -> None:
        """Read the certificates again; if they cannot be used, the old ones stay."""
        if self._trust is not None:
            self._renew(self._trust, self._trust.reload)

    def _look(self) -> None:
        self._timer = None
        trust = self._trust
        if trust is not None:
            self._renew(trust, trust.look)
            self._warn(trust)
            self._recheck()
            self._look_later()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TLS_FILES_LOOK_MS / 1000, self._look)

    def _renew(self, trust: SessionTrust, renew: Callable[[], bool]) -> None:
        try:
            changed = renew()
        except ConfigError as error:
            self._log.error(Event.SESSION_CERTIFICATE_UNUSABLE, reason=str(error))
            self._recheck()
            return
        if changed:
            self._log.info(Event.SESSION_CERTIFICATE_CHANGED, fingerprint=trust.own.fingerprint)
            self._recheck()

    def _warn(self, trust: SessionTrust) -> None:
        warning = trust.warning()
        if warning:
            self._log.warning(
                Event.SESSION_CERTIFICATE_ENDS,
                fingerprint=trust.own.fingerprint,
                reason=f"the certificate of this queue manager: {warning}",
            )
