"""How NTLM signs and seals, with extended session security and 128 bits. [MS-NLMP 3.4]

Each direction has a key to sign with, a key stream that goes on from message to message, and a
number that counts them. So nothing can be left out, repeated or put into another order.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final

from openmsmq.security.authentication.ntlm.keys import (
    Authenticator,
    Direction,
    rc4,
    sealing_key,
    signing_key,
)
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment

SIGNATURE_BYTES: Final = 16
SEQUENCE_MAX: Final = 0xFFFF_FFFF
"""The last number of a message in one direction: whoever has used it up connects again."""

_NUMBER: Final = struct.Struct("<I")
_VERSION: Final = b"\x01\0\0\0"
_CHECKSUM_BYTES: Final = 8


class _Way:
    """One direction: its key, its key stream, and the number of the next message."""

    __slots__ = ("_seal_key", "_sign", "_stream", "encrypts", "number")

    def __init__(self, session_key: bytes, direction: Direction, *, encrypts: bool) -> None:
        self._sign = Authenticator(signing_key(session_key, direction))
        self._seal_key = sealing_key(session_key, direction)
        self._stream = rc4(self._seal_key)
        self.encrypts = encrypts
        self.number = 0

    def signature(self, *parts: bytes) -> bytes:
        """Return the signature of the next message, which uses up its number."""
        number, checksum = self._next(parts)
        if self.encrypts:
            checksum = self._stream.update(checksum)
        return _VERSION + checksum + number

    def sealed(self, fragment: Fragment) -> tuple[bytes, bytes]:
        """Return the next stub as it leaves, and its signature: the key stream goes over both."""
        number, checksum = self._next((fragment.header, fragment.stub, fragment.trailer))
        if not self.encrypts:
            return self._stream.update(fragment.stub), _VERSION + checksum + number
        both = self._stream.update(fragment.stub + checksum)
        return both[:-_CHECKSUM_BYTES], _VERSION + both[-_CHECKSUM_BYTES:] + number

    def unsealed(self, fragment: Fragment, signature: bytes) -> tuple[bytes, bytes, bytes]:
        """Return the next stub as it was meant, the signature that came, and that of the stub.

        Neither signature is encrypted any more.
        """
        if self.encrypts and len(signature) == SIGNATURE_BYTES:
            at = len(_VERSION)
            both = self._stream.update(fragment.stub + signature[at : at + _CHECKSUM_BYTES])
            stub, checksum = both[:-_CHECKSUM_BYTES], both[-_CHECKSUM_BYTES:]
            came = signature[:at] + checksum + signature[at + _CHECKSUM_BYTES :]
        else:
            stub, came = self._stream.update(fragment.stub), signature
        number, expected = self._next((fragment.header, stub, fragment.trailer))
        return stub, came, _VERSION + expected + number

    def _next(self, parts: tuple[bytes, ...]) -> tuple[bytes, bytes]:
        """Return the number of the next message, and its checksum."""
        if self.number > SEQUENCE_MAX:
            raise AuthenticationFailed("this connection has used up its numbers: connect again")
        number = _NUMBER.pack(self.number)
        self.number += 1
        return number, self._sign.digest(b"".join((number, *parts)))[:_CHECKSUM_BYTES]

    def restart(self) -> None:
        self._stream = rc4(self._seal_key)


class Protection:
    """Both directions of one session, as one side has them."""

    __slots__ = ("_dead", "_in", "_out")

    def __init__(self, session_key: bytes, outgoing: Direction, *, exchanged_key: bool) -> None:
        incoming = next(each for each in Direction if each is not outgoing)
        self._out = _Way(session_key, outgoing, encrypts=exchanged_key)
        self._in = _Way(session_key, incoming, encrypts=exchanged_key)
        self._dead = False

    def sign(self, *parts: bytes) -> bytes:
        """Return the signature of the next message that leaves."""
        return self._out.signature(*parts)

    def seal(self, fragment: Fragment) -> tuple[bytes, bytes]:
        """Return the stub of the next fragment that leaves, sealed, and the signature of all."""
        return self._out.sealed(fragment)

    def check(self, signature: bytes, *parts: bytes) -> None:
        """Raise unless the next message that came has this signature."""
        self._judge(self._in.signature(*parts), signature)

    def unseal(self, fragment: Fragment, signature: bytes) -> bytes:
        """Return the stub of the next fragment that came, as it was before it was sealed."""
        stub, came, expected = self._in.unsealed(fragment, signature)
        self._judge(expected, came)
        return stub

    def restart_streams(self) -> None:
        """Begin both key streams again, as after the MIC of SPNEGO; the numbers go on.

        [MS-SPNG 3.3.5.1]
        """
        self._out.restart()
        self._in.restart()

    def _judge(self, expected: bytes, signature: bytes) -> None:
        # Behind the first message that is wrong both sides count differently.
        if self._dead or not hmac.compare_digest(expected, signature):
            self._dead = True
            raise AuthenticationFailed("a signature of NTLM is wrong")
