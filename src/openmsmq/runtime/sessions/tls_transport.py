"""TLS on one connection, as a transport for the protocol of a session.

asyncio has TLS of its own. Here it is made anew, over the same library, because asyncio's keeps a
buffer of 256 KiB for each connection, sends no alert when it refuses somebody, so that nobody there
learns why, and cannot end one direction and still let the last bytes arrive.

What is written is encrypted at once and waits as records below: who takes nothing is seen as with
plain connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from openmsmq.runtime.limits import TLS_REFUSED_LINGER_MS

_ALERT: Final = "ALERT"
_UNVOUCHED: Final = frozenset({2, 18, 19, 20, 21})
"""What OpenSSL says of a certificate that leads to no authority (X509_V_ERR)."""


class TlsFailed(ConnectionError):
    """TLS has come to nothing; the sentence says why."""

    def __init__(self, reason: str, *, refused_us: bool = False) -> None:
        super().__init__(reason)
        self.refused_us: Final = refused_us
        """Whether the other end has said, or seems to have found, that we are not welcome."""


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """The protocol of a TCP connection, and the transport of the protocol above it."""

    def __init__(
        self,
        context: ssl.SSLContext,
        meet: Callable[[TlsTransport], asyncio.BufferedProtocol],
        records: memoryview,
        *,
        server_side: bool,
    ) -> None:
        """`meet` looks at the certificate and gives the protocol; or raises `TlsFailed`.

        What is read goes through `records`, and out of it at once: all connections of one loop
        may share it.
        """
        super().__init__()
        self._records = records
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls: Final = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side)
        self.greeted: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        """Done when the protocol above has the connection, or with `TlsFailed`."""
        self.overhead_bytes = 0
        """How many bytes more than were to be written went below."""
        self._meet = meet
        self._below: asyncio.Transport
        self._above: asyncio.BufferedProtocol | None = None
        self._heard = False
        self._is_over = False
        """Whether what still comes is of no interest."""
        self._left = False
        """Whether it was ended from here."""
        self._problem: TlsFailed | None = None
        self._linger: asyncio.TimerHandle | None = None

    async def greet(self, within_ms: int) -> None:
        """Wait for the end of the handshake; raises `TlsFailed`, and then nothing is left open."""
        try:
            async with asyncio.timeout(within_ms / 1000):
                # Another's cancellation must not be that of the handshake's own end.
                await asyncio.shield(self.greeted)
        except TimeoutError:
            raise TlsFailed(f"the handshake of TLS was not done within {within_ms} ms") from None
        finally:
            if self._above is None:
                self.abort()
                # It is heard by nobody any more.
                self.greeted.cancel()

    # What the connection below calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP has connected: begin the handshake."""
        self._below = cast(asyncio.Transport, transport)
        self._shake_hands()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the loop's own guess
        """Lend the buffer that all connections share."""
        return self._records

    def buffer_updated(self, nbytes: int) -> None:
        """Take records."""
        if self._is_over:
            return
        self._incoming.write(self._records[:nbytes])
        if self._above is None:
            self._shake_hands()
        else:
            self._read(self._above)

    def pause_writing(self) -> None:
        """The other end takes nothing."""
        if self._above is not None:
            self._above.pause_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """TCP is gone."""
        self._is_over = True
        if self._linger is not None:
            self._linger.cancel()
        if self._above is not None:
            self._above.connection_lost(self._why(exc))
        elif not self.greeted.done():
            ended = TlsFailed("it ended the connection in the handshake of TLS")
            self.greeted.set_exception(self._problem or ended)
            # Whoever waited for it may have been called off.
            self.greeted.exception()

    def _why(self, exc: Exception | None) -> Exception | None:
        """Say more where the other end has hung up before its first word: it refuses us."""
        if self._problem is not None or self._heard or self._left or self.tls.server_side:
            return self._problem or exc
        return TlsFailed(
            "it ended the connection after the handshake of TLS without a word: most likely its "
            "[peers] do not name our certificate; its log says why",
            refused_us=True,
        )

    # The handshake.

    def _shake_hands(self) -> None:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send_records()
            return
        except ssl.SSLError as error:
            self._refuse(TlsFailed(handshake_problem(error), refused_us=is_alert(error)))
            return
        try:
            above = self._meet(self)
        except TlsFailed as refusal:
            self._refuse(refusal)
            return
        self._send_records()
        self._above = above
        above.connection_made(self)
        if not self.greeted.done():
            self.greeted.set_result(None)
        if not self._is_over:
            # Its first bytes may have come with the last of the handshake.
            self._read(above)

    def _refuse(self, problem: TlsFailed) -> None:
        """End it so that the other end has our alert, which a reset would take away from it."""
        self._problem = problem
        self._is_over = True
        self._send_records()
        try:
            self._below.write_eof()
        except OSError:
            self._below.abort()
            return
        self._linger = asyncio.get_running_loop().call_later(
            TLS_REFUSED_LINGER_MS / 1000, self._below.abort
        )

    # Bytes.

    def _read(self, above: asyncio.BufferedProtocol) -> None:
        """Hand on what can be decrypted, as much at a time as the protocol has room for."""
        end: ssl.SSLError | None = None
        more = True
        while more and not self._is_over:
            buffer = cast(memoryview, above.get_buffer(-1))
            size = 0
            try:
                while size < len(buffer):
                    count = self.tls.read(len(buffer) - size, buffer[size:])
                    if not count:
                        raise ssl.SSLZeroReturnError
                    size += cast(int, count)
            except ssl.SSLWantReadError:
                more = False
            except ssl.SSLError as error:
                more = False
                end = error
            if size:
                self._heard = True
                above.buffer_updated(size)
        self._send_records()
        if end is not None:
            self._ended(end)

    def _ended(self, end: ssl.SSLError) -> None:
        """The other end has ended TLS, in order or not; what was written still leaves."""
        if not isinstance(end, ssl.SSLZeroReturnError):
            refused_us = is_alert(end) and not self._heard
            self._problem = TlsFailed(handshake_problem(end), refused_us=refused_us)
        self._is_over = True
        self._below.close()

    def _send_records(self) -> None:
        data = self._outgoing.read()
        if data:
            self.overhead_bytes += len(data)
            self._below.write(data)

    # What the protocol above calls.

    def write(self, data: Any) -> None:
        """Encrypt and send."""
        if self.is_closing():
            return
        left = memoryview(data)
        self.overhead_bytes -= len(left)
        while left:
            left = left[self.tls.write(left) :]
        self._send_records()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Write together, in as few records as possible."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """Say that nothing more comes from here; what comes from there is not read any more."""
        self._is_over = self._left = True
        # It has no answer yet, which the library takes for a problem.
        with contextlib.suppress(ssl.SSLError):
            self.tls.unwrap()
        self._send_records()
        self._below.write_eof()

    def can_write_eof(self) -> bool:
        """It can."""
        return True

    def close(self) -> None:
        """End both directions, once everything is written."""
        self._is_over = self._left = True
        self._below.close()

    def abort(self) -> None:
        """End at once."""
        self._is_over = self._left = True
        self._below.abort()

    def is_closing(self) -> bool:
        """Whether nothing can be written any more."""
        return self._is_over or self._below.is_closing()

    def get_write_buffer_size(self) -> int:
        """How many bytes wait for the other end, as records."""
        return self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Say from how many on `pause_writing` is called."""
        self._below.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Ask the connection below."""
        return self._below.get_extra_info(name, default)


def is_alert(error: ssl.SSLError) -> bool:
    """Whether an error is what the other end has said."""
    return _ALERT in (error.reason or "")


def handshake_problem(error: ssl.SSLError) -> str:
    """Say in a sentence what the library found wrong."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _UNVOUCHED:
            return (
                "its certificate is refused: no authority of [session_tls] vouches for it, and it "
                "is not in the directory peer_certificates; if you trust it, put it there"
            )
        return f"its certificate is refused: {_plain(error.verify_message)}"
    reason = error.reason or ""
    if _ALERT in reason:
        return f"it refuses this queue manager: {_ALERTS.get(reason, _plain(reason))}"
    return f"no TLS: {_REASONS.get(reason, _plain(reason or str(error)))}"


_NO_CERTIFICATE: Final = "it showed no certificate, and has to"
_NO_TLS: Final = "what it sent is not TLS; is it a queue manager that has none, or the wrong port?"
_UNKNOWN_CERTIFICATE: Final = (
    "it does not know our certificate, nor an authority that vouches for it"
)
_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": _NO_CERTIFICATE,
    "WRONG_VERSION_NUMBER": _NO_TLS,
    "RECORD_LAYER_FAILURE": _NO_TLS,
    "HTTP_REQUEST": _NO_TLS,
    "UNKNOWN_PROTOCOL": _NO_TLS,
    "PACKET_LENGTH_TOO_LONG": _NO_TLS,
    "UNSUPPORTED_PROTOCOL": "it has only versions of TLS before 1.2, which are not safe",
    "NO_SHARED_CIPHER": "it has no cipher that is safe",
}
_ALERTS: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": _UNKNOWN_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _UNKNOWN_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": "our certificate is no good to it, or it is not valid yet",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "our certificate is not made for this end of TLS",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate, and had none of us",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it has no version of TLS that is safe",
}


def _plain(text: str) -> str:
    return text.replace("_", " ").lower()
