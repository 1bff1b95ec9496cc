"""The three messages of NTLM, as bytes and values. [MS-NLMP 2.2.1]

Reading is total: it raises `DecodeError` and nothing else. What a message has no use for here (the
workstation, the version) is not kept; whoever needs the bytes has them.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import Final

import msgspec

from openmsmq.security.authentication.ntlm.keys import CHALLENGE_BYTES, PROOF_BYTES
from openmsmq.wire.errors import DecodeError

MESSAGE_MAX_BYTES: Final = 8 * 1024
"""Of one message of NTLM; those that are sent have a few hundred."""

NAME_MAX_CHARACTERS: Final = 256
"""Of a user, a domain or a computer in a message of NTLM."""

AV_PAIRS_MAX_COUNT: Final = 32
"""Facts about a target; eleven kinds exist, and none comes twice."""

PREFIX: Final = b"NTLMSSP\0"
_NEGOTIATE, _CHALLENGE, _AUTHENTICATE = 1, 2, 3

_FIELD: Final = struct.Struct("<HHI")
"""How long a value is (twice), and where it stands."""
_VERSION: Final = bytes((6, 1)) + (7600).to_bytes(2, "little") + bytes((0, 0, 0, 15))
"""What is for debugging alone; the last byte is the revision of NTLM. [MS-NLMP 2.2.2.10]"""

_FIXED_BYTES: Final = 64
MIC_OFFSET: Final = 72
MIC_BYTES: Final = 16


class Flag(IntFlag):
    """What two sides agree on. [MS-NLMP 2.2.2.5]"""

    UNICODE = 0x0000_0001
    OEM = 0x0000_0002
    REQUEST_TARGET = 0x0000_0004
    SIGN = 0x0000_0010
    SEAL = 0x0000_0020
    LM_KEY = 0x0000_0080
    NTLM = 0x0000_0200
    ANONYMOUS = 0x0000_0800
    ALWAYS_SIGN = 0x0000_8000
    TARGET_IS_SERVER = 0x0002_0000
    EXTENDED_SECURITY = 0x0008_0000
    TARGET_INFO = 0x0080_0000
    VERSION = 0x0200_0000
    KEY_128 = 0x2000_0000
    KEY_EXCHANGE = 0x4000_0000
    KEY_56 = 0x8000_0000


class AvId(IntEnum):
    """What is said about a target, and by a client about where it goes. [MS-NLMP 2.2.2.1]"""

    END = 0
    COMPUTER = 1
    DOMAIN = 2
    DNS_COMPUTER = 3
    DNS_DOMAIN = 4
    FLAGS = 6
    TIMESTAMP = 7
    TARGET_NAME = 9
    CHANNEL_BINDINGS = 10


AV_FLAG_HAS_MIC: Final = 2
"""In `AvId.FLAGS`: the message has a MIC, which nobody can have taken out."""

AvPairs = dict[int, bytes]


class Negotiate(msgspec.Struct, frozen=True):
    """The first message: what a client would like. [MS-NLMP 2.2.1.1]"""

    flags: Flag

    def encode(self) -> bytes:
        """Return its bytes."""
        empty = _FIELD.pack(0, 0, 0)
        return _head(_NEGOTIATE) + struct.pack("<I", self.flags) + empty + empty + _VERSION


class Challenge(msgspec.Struct, frozen=True):
    """The second: what a server agrees to, and what the proof is to be about. [MS-NLMP 2.2.1.2]"""

    flags: Flag
    server_challenge: bytes
    target: str
    target_info: bytes
    """Pairs, as bytes: the client repeats them within its proof."""

    def encode(self) -> bytes:
        """Return its bytes."""
        name = self.target.encode("utf-16-le")
        start = 56
        return b"".join(
            (
                _head(_CHALLENGE),
                _FIELD.pack(len(name), len(name), start),
                struct.pack("<I", self.flags),
                self.server_challenge,
                bytes(8),
                _FIELD.pack(len(self.target_info), len(self.target_info), start + len(name)),
                _VERSION,
                name,
                self.target_info,
            )
        )


class Authenticate(msgspec.Struct, frozen=True):
    """The third: who the client is, and the proof. [MS-NLMP 2.2.1.3]"""

    flags: Flag
    user: str
    domain: str
    nt_response: bytes
    lm_response: bytes
    encrypted_key: bytes
    """The key of the session, encrypted with the one that the proof gives."""
    mic: bytes
    """What stands in the place of the MIC; empty if there is no such place."""
    workstation: str = ""

    def encode(self) -> bytes:
        """Return its bytes, with a place for the MIC."""
        domain, user, workstation = (
            text.encode("utf-16-le", "surrogatepass")
            for text in (self.domain, self.user, self.workstation)
        )
        # Windows and others want the names first.
        order = (domain, user, workstation, self.lm_response, self.nt_response, self.encrypted_key)
        places: list[bytes] = []
        offset = MIC_OFFSET + MIC_BYTES
        for value in order:
            places.append(_FIELD.pack(len(value), len(value), offset))
            offset += len(value)
        at_domain, at_user, at_workstation, at_lm, at_nt, at_key = places
        return b"".join(
            (
                _head(_AUTHENTICATE),
                *(at_lm, at_nt, at_domain, at_user, at_workstation, at_key),
                struct.pack("<I", self.flags),
                _VERSION,
                self.mic or bytes(MIC_BYTES),
                *order,
            )
        )


class ClientProof(msgspec.Struct, frozen=True):
    """An NTLMv2 response, taken apart. [MS-NLMP 2.2.2.8]"""

    proof: bytes
    blob: bytes
    """All that is proved, exactly as it was received."""
    pairs: AvPairs

    @property
    def has_mic(self) -> bool:
        """Whether the client says that its message has a MIC."""
        flags = int.from_bytes(self.pairs.get(AvId.FLAGS, b""), "little")
        return bool(flags & AV_FLAG_HAS_MIC)


# Reading.


def decode_negotiate(data: bytes) -> Negotiate:
    """Read the first message."""
    where = "NTLM negotiate"
    _check_head(data, _NEGOTIATE, 16, where)
    return Negotiate(Flag(struct.unpack_from("<I", data, 12)[0]))


def decode_challenge(data: bytes) -> Challenge:
    """Read the second message."""
    where = "NTLM challenge"
    _check_head(data, _CHALLENGE, 48, where)
    return Challenge(
        Flag(struct.unpack_from("<I", data, 20)[0]),
        data[24 : 24 + CHALLENGE_BYTES],
        _text(data, 12, where),
        _value(data, 40, where),
    )


def decode_authenticate(data: bytes) -> Authenticate:
    """Read the third message."""
    where = "NTLM authenticate"
    _check_head(data, _AUTHENTICATE, _FIXED_BYTES, where)
    # What stands first of all values tells whether there is a place for the MIC before them.
    offsets = [
        offset
        for length, _, offset in (_FIELD.unpack_from(data, at) for at in range(12, 60, 8))
        if length
    ]
    has_place = min(offsets, default=len(data)) >= MIC_OFFSET + MIC_BYTES
    return Authenticate(
        flags=Flag(struct.unpack_from("<I", data, 60)[0]),
        user=_text(data, 36, where),
        domain=_text(data, 28, where),
        nt_response=_value(data, 20, where),
        lm_response=_value(data, 12, where),
        encrypted_key=_value(data, 52, where),
        mic=data[MIC_OFFSET : MIC_OFFSET + MIC_BYTES] if has_place else b"",
        workstation=_text(data, 44, where),
    )


def decode_client_proof(response: bytes) -> ClientProof:
    """Take an NTLMv2 response apart."""
    where = "NTLMv2 response"
    blob = response[PROOF_BYTES:]
    pairs_at = 28
    if len(blob) < pairs_at + 4:
        raise DecodeError(where, len(response), "it ends before its pairs")
    if blob[:2] != b"\x01\x01":
        raise DecodeError(where, PROOF_BYTES, "it is of another version")
    return ClientProof(response[:PROOF_BYTES], blob, decode_pairs(blob[pairs_at:]))


def decode_pairs(data: bytes) -> AvPairs:
    """Read pairs up to their end; what stands behind it is ignored."""
    where = "NTLM target information"
    found: AvPairs = {}
    offset = 0
    while True:
        if offset + 4 > len(data):
            raise DecodeError(where, offset, "it has no end")
        kind, length = struct.unpack_from("<HH", data, offset)
        if kind == AvId.END:
            return found
        value = data[offset + 4 : offset + 4 + length]
        if len(value) < length:
            raise DecodeError(where, offset, "a value is cut short")
        # Which of two counts would be the reader's choice, and an attacker's chance.
        if kind in found:
            raise DecodeError(where, offset, f"the value {kind} comes twice")
        if len(found) == AV_PAIRS_MAX_COUNT:
            raise DecodeError(where, offset, f"it has more than {AV_PAIRS_MAX_COUNT} values")
        found[kind] = value
        offset += 4 + length


def encode_pairs(pairs: AvPairs) -> bytes:
    """Return pairs and their end as bytes."""
    parts = [struct.pack("<HH", kind, len(value)) + value for kind, value in pairs.items()]
    return b"".join(parts) + bytes(4)


def _head(kind: int) -> bytes:
    return PREFIX + struct.pack("<I", kind)


def _check_head(data: bytes, kind: int, least: int, where: str) -> None:
    if len(data) > MESSAGE_MAX_BYTES:
        raise DecodeError(where, 0, f"it is longer than {MESSAGE_MAX_BYTES} bytes")
    if len(data) < least:
        raise DecodeError(where, len(data), f"it has not even {least} bytes")
    if not data.startswith(PREFIX):
        raise DecodeError(where, 0, "it is no message of NTLM")
    found = int.from_bytes(data[8:12], "little")
    if found != kind:
        raise DecodeError(where, 8, f"it is message {found} instead of {kind}")


def _value(data: bytes, at: int, where: str) -> bytes:
    length, _, offset = _FIELD.unpack_from(data, at)
    if not length:
        return b""
    if offset + length > len(data):
        raise DecodeError(where, at, "a value stands behind the end")
    return data[offset : offset + length]


def _text(data: bytes, at: int, where: str) -> str:
    raw = _value(data, at, where)
    if len(raw) > 2 * NAME_MAX_CHARACTERS:
        raise DecodeError(where, at, f"a name has more than {NAME_MAX_CHARACTERS} characters")
    try:
        return raw.decode("utf-16-le")
    except UnicodeDecodeError:
        raise DecodeError(where, at, "a name is not UTF-16") from None
