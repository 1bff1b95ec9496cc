"""TLS without I/O: bytes of the connection on one side, plain bytes on the other.

An `ssl.SSLSocket` must not be read by one thread while another writes. With the TLS machine kept
apart from the socket, the blocking client guards it with the lock of its engine.
"""

from __future__ import annotations

import ssl


class TlsChannel:
    """One TLS connection, seen from the client."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._machine = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self.is_open = False

    def greet(self, data: bytes = b"") -> bytes:
        """Go on with the handshake; give what is to be sent. Then look at `is_open`."""
        self._incoming.write(data)
        try:
            self._machine.do_handshake()
            self.is_open = True
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes to be sent for plain bytes."""
        view = memoryview(data)
        while view:
            view = view[self._machine.write(view) :]
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """Return the plain bytes of received ones; raises `ssl.SSLError` at their end."""
        self._incoming.write(data)
        parts: list[bytes] = []
        while True:
            try:
                part = self._machine.read(1 << 18)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                part = b""
            if not part:
                # The other side has said that nothing more comes; what came before still counts.
                if not parts:
                    raise ssl.SSLZeroReturnError("the connection was closed")
                break
            parts.append(part)
        return b"".join(parts)
