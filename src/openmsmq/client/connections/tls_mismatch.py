"""Finds out whether a greeting failed because only one of the two sides speaks TLS.

A queue manager hangs up on whoever greets it in the other way, as it does on anybody else who talks
nonsense. So after such an end the client greets once more in the other way, without its token, and
looks whether the answer makes sense.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from time import monotonic  # noqa: TID251 -- the client is no part of the deterministic core
from typing import Final

from openmsmq.client.connections.engine import ClientEngine, EngineState
from openmsmq.client.connections.tls import TlsChannel
from openmsmq.client.errors import ConnectionLost, TlsMismatch
from openmsmq.client.settings import Settings
from openmsmq.model.errors import MsmqError

PROBE_MAX_S: Final = 2.0
"""How long the other greeting may take: whoever waits for the sentence has waited already."""

_READ_BYTES: Final = 1 << 16
_TLS_RECORDS: Final = (b"\x16\x03", b"\x15\x03")
"""How a server's part of a handshake begins, or its refusal of one. [RFC 8446 5.1]"""


def may_be_mismatch(error: Exception) -> bool:
    """Return whether a greeting ended in a way that a mismatch would explain."""
    if isinstance(error, ssl.SSLError):
        return not isinstance(error, ssl.SSLCertVerificationError)
    return isinstance(error, ConnectionResetError | BrokenPipeError | ConnectionLost)


def find_mismatch(settings: Settings, *, with_tls: bool) -> TlsMismatch | None:
    """Greet in the other way; gives what to raise if that is understood, None if it is not."""
    understood = _answers_plainly(settings) if with_tls else _answers_with_tls(settings)
    if not understood:
        return None
    path = settings.unix_path
    if path is None:
        host, port = settings.host_and_port
        path = f"port {port} of {host}"
    return TlsMismatch(path, speaks_tls=not with_tls)


def _answers_with_tls(settings: Settings) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nothing is said to the server and nothing believed: only the kind of its answer counts.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host = settings.host_and_port[0] if settings.unix_path is None else "localhost"
    with contextlib.suppress(OSError), _connection(settings) as probe:
        probe.sendall(TlsChannel(context, host).greet())
        return probe.recv(2, socket.MSG_WAITALL) in _TLS_RECORDS
    return False


def _answers_plainly(settings: Settings) -> bool:
    engine = ClientEngine()
    give_up = monotonic() + PROBE_MAX_S
    with contextlib.suppress(OSError), _connection(settings) as probe:
        probe.sendall(engine.data_to_send())
        while engine.state is EngineState.GREETING and monotonic() < give_up:
            data = probe.recv(_READ_BYTES)
            if not data:
                return False
            try:
                engine.receive_data(data)
            except MsmqError:
                # It wants a token, and said so plainly.
                return True
        return engine.state is EngineState.OPEN
    return False


def _connection(settings: Settings) -> socket.socket:
    return settings.open_socket(min(settings.connect_timeout_s, PROBE_MAX_S))
