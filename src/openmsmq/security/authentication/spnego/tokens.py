"""Tokens of SPNEGO as bytes and values. [RFC 4178 4.2, MS-SPNG 2.2]

Reading is total: it raises `DecodeError` and nothing else.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from openmsmq.security.authentication.spnego import der
from openmsmq.security.authentication.spnego.der import Reader
from openmsmq.wire.errors import DecodeError

TOKEN_MAX_BYTES: Final = 64 * 1024
"""Of one token of SPNEGO; tickets of Kerberos make it long."""

MECHANISMS_MAX_COUNT: Final = 16
"""Mechanisms that a client may offer."""

SPNEGO: Final = bytes.fromhex("2b0601050502")
NTLM: Final = bytes.fromhex("2b06010401823702020a")
KERBEROS: Final = bytes.fromhex("2a864886f712010202")
KERBEROS_OF_WINDOWS: Final = bytes.fromhex("2a864882f712010202")
"""The same mechanism: one bit of the number got lost in Windows 2000, and all since have both."""


class NegotiationState(IntEnum):
    """How far an acceptor has come."""

    COMPLETED = 0
    INCOMPLETE = 1
    REJECTED = 2
    WANTS_MIC = 3


class InitToken(msgspec.Struct, frozen=True):
    """The first token of a client."""

    mechanisms: tuple[bytes, ...]
    """Object identifiers, the one it likes best first."""
    mechanism_list: bytes
    """The same as they were sent: what the MIC is about."""
    token: bytes | None
    """Of the first mechanism, in the hope that it will be taken."""


class ResponseToken(msgspec.Struct, frozen=True):
    """Every other token, of both sides."""

    state: NegotiationState | None = None
    mechanism: bytes | None = None
    token: bytes | None = None
    mic: bytes | None = None


def encode_mechanisms(mechanisms: tuple[bytes, ...]) -> bytes:
    """Return a list of mechanisms as bytes."""
    return der.encode(der.SEQUENCE, *(der.encode(der.OBJECT, each) for each in mechanisms))


def encode_init(mechanism_list: bytes, token: bytes) -> bytes:
    """Return the first token of a client."""
    fields = (
        der.encode(der.TAGGED, mechanism_list),
        der.encode(der.TAGGED + 2, der.encode(der.OCTETS, token)),
    )
    body = der.encode(der.TAGGED, der.encode(der.SEQUENCE, *fields))
    return der.encode(der.APPLICATION, der.encode(der.OBJECT, SPNEGO), body)


def encode_response(response: ResponseToken) -> bytes:
    """Return another token."""
    fields = []
    if response.state is not None:
        state = der.encode(der.ENUMERATED, bytes((response.state,)))
        fields.append(der.encode(der.TAGGED, state))
    if response.mechanism is not None:
        fields.append(der.encode(der.TAGGED + 1, der.encode(der.OBJECT, response.mechanism)))
    if response.token is not None:
        fields.append(der.encode(der.TAGGED + 2, der.encode(der.OCTETS, response.token)))
    if response.mic is not None:
        fields.append(der.encode(der.TAGGED + 3, der.encode(der.OCTETS, response.mic)))
    return der.encode(der.TAGGED + 1, der.encode(der.SEQUENCE, *fields))


def decode_init(data: bytes) -> InitToken:
    """Read the first token of a client."""
    where = "SPNEGO's first token"
    whole = _whole(data, where)
    framed = whole.inside(der.APPLICATION)
    whole.finish()
    if framed.take(der.OBJECT) != SPNEGO:
        raise DecodeError(where, 0, "it is of another mechanism")
    choice = framed.inside(der.TAGGED)
    framed.finish()
    fields = choice.inside(der.SEQUENCE)
    choice.finish()
    mechanism_list = fields.take(der.TAGGED)
    mechanisms = _mechanisms(mechanism_list, where)
    # Flags that nobody heeds [RFC 4178 4.2.1].
    fields.take_optional(der.TAGGED + 1)
    token = _optional(fields, 2, der.OCTETS)
    # A MIC is never there so early; hints, which only acceptors send, stand in the same place.
    fields.take_optional(der.TAGGED + 3)
    fields.take_optional(der.TAGGED + 4)
    fields.finish()
    return InitToken(mechanisms, mechanism_list, token)


def decode_response(data: bytes) -> ResponseToken:
    """Read another token."""
    where = "SPNEGO's token"
    whole = _whole(data, where)
    choice = whole.inside(der.TAGGED + 1)
    whole.finish()
    fields = choice.inside(der.SEQUENCE)
    choice.finish()
    state = _optional(fields, 0, der.ENUMERATED)
    mechanism = _optional(fields, 1, der.OBJECT)
    token = _optional(fields, 2, der.OCTETS)
    mic = _optional(fields, 3, der.OCTETS)
    fields.finish()
    return ResponseToken(_state(state, where), mechanism, token, mic)


def _state(content: bytes | None, where: str) -> NegotiationState | None:
    if content is None:
        return None
    for state in NegotiationState:
        if content == bytes((state,)):
            return state
    raise DecodeError(where, 0, "it is in a state that does not exist")


def _whole(data: bytes, where: str) -> Reader:
    if len(data) > TOKEN_MAX_BYTES:
        raise DecodeError(where, 0, f"it is longer than {TOKEN_MAX_BYTES} bytes")
    return Reader(data, where)


def _mechanisms(data: bytes, where: str) -> tuple[bytes, ...]:
    whole = Reader(data, where)
    listed = whole.inside(der.SEQUENCE)
    whole.finish()
    found: list[bytes] = []
    while not listed.is_at_end:
        if len(found) == MECHANISMS_MAX_COUNT:
            raise DecodeError(where, 0, f"it offers more than {MECHANISMS_MAX_COUNT} mechanisms")
        found.append(listed.take(der.OBJECT))
    if not found:
        raise DecodeError(where, 0, "it offers no mechanism")
    return tuple(found)


def _optional(fields: Reader, number: int, tag: int) -> bytes | None:
    if fields.tag() != der.TAGGED + number:
        return None
    field = fields.inside(der.TAGGED + number)
    content = field.take(tag)
    field.finish()
    return content
