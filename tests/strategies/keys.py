"""Keys, certificates and messages for the tests of message security.

Keys are made of seeded random bytes, once for each run: making one takes a while.
"""

from __future__ import annotations

import random
from functools import cache

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest, HashAlgorithm
from openmsmq.security import providers
from openmsmq.security.encryption.decryption import EncryptionKey
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import Provider
from openmsmq.security.rsa import PrivateKey
from openmsmq.security.signatures.certificates import make_certificate
from openmsmq.security.signatures.signatures import Signer
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import PublicName
from openmsmq.wire.headers.security import SenderKind
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.keys import SessionAlgorithm
from openmsmq.wire.packets import UserMessage

SOURCE = Guid.parse("11111111-1111-1111-1111-111111111111")
DESTINATION = Guid.parse("22222222-2222-2222-2222-222222222222")
QUEUE = Guid.parse("33333333-3333-3333-3333-333333333333")
SID = bytes.fromhex("010500000000000515000000010203040506070809000a0be8030000")

ONE, TWO, THREE = (
    AuthenticationLevel.SIGNATURE_10,
    AuthenticationLevel.SIGNATURE_20,
    AuthenticationLevel.SIGNATURE_30,
)
REQUESTS = {
    ONE: AuthenticationRequest.SIGNATURE_10,
    TWO: AuthenticationRequest.SIGNATURE_20,
    THREE: AuthenticationRequest.SIGNATURE_30,
}
"""The kinds of signatures, and how each is asked for."""

ANYTHING_GOES = SecurityPolicy(
    hashes=frozenset(HashAlgorithm),
    signatures=frozenset({ONE, TWO, THREE}),
    ciphers=frozenset(SessionAlgorithm),
    smallest_key_bits=512,
    reject_rc2_40_bit=False,
)
"""A policy that allows all that the protocol has."""


@cache
def private_key(bits: int = 1024, seed: int = 0) -> PrivateKey:
    """Return the same key for the same seed."""
    return PrivateKey.generate(bits, random.Random(f"key {bits} {seed}").randbytes)


def encryption_key(provider: Provider = providers.ADVANCED, seed: int = 0) -> EncryptionKey:
    """Return a key pair of the length that Windows makes."""
    return EncryptionKey(provider, private_key(provider.key_bits, seed))


@cache
def certificate(bits: int = 1024, seed: int = 0) -> bytes:
    """Return the internal certificate of a key."""
    return make_certificate(
        private_key(bits, seed), "tester", 1_700_000_000, 2_000_000_000, 1 + seed
    )


def signer(
    hash_algorithm: HashAlgorithm = HashAlgorithm.SHA512, bits: int = 1024, seed: int = 0
) -> Signer:
    """Return somebody who signs as a user."""
    return Signer(
        private_key(bits, seed), certificate(bits, seed), SenderKind.SID, SID, hash_algorithm
    )


def letter(body: bytes = b"one body", label: str = "label") -> UserMessage:
    """Return a message to a public queue."""
    return UserMessage(
        UserHeader(SOURCE, DESTINATION, destination=PublicName(QUEUE)),
        MessageProperties.of(body, label, body_type=8),
    )


def user_message(packet: bytes) -> UserMessage:
    """Decode a packet that must be a user message."""
    message = packets.decode(packet)
    assert isinstance(message, UserMessage)
    return message


def changed(packet: bytes, at: int, mask: int) -> bytes:
    """Change bits of one byte."""
    return packet[:at] + bytes([packet[at] ^ mask]) + packet[at + 1 :]


def with_properties(packet: bytes, **values: object) -> bytes:
    """Return the packet with other values in its MessagePropertiesHeader."""
    message = user_message(packet)
    properties = msgspec.structs.replace(message.properties, **values)
    return packets.encode(msgspec.structs.replace(message, properties=properties))


def with_security(packet: bytes, **values: object) -> bytes:
    """Return the packet with other values in its SecurityHeader."""
    message = user_message(packet)
    assert message.security is not None
    header = msgspec.structs.replace(message.security, padding=b"", **values)
    return packets.encode(msgspec.structs.replace(message, security=header))
