"""What must hold for whatever claims to be signed, encrypted, certified or allowed."""

from __future__ import annotations

from functools import cache
from typing import Final

from openmsmq.security.access import access, descriptors
from openmsmq.security.access.descriptors import BadDescriptor
from openmsmq.security.access.sids import identities, unix_user
from openmsmq.security.encryption.decryption import BadEncryption, EncryptionKey, ReceiveKeys
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import PROVIDERS
from openmsmq.security.signatures import certificates
from openmsmq.security.signatures.certificates import BadCertificate
from openmsmq.security.signatures.signatures import BadSignature, check_signature
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.fuzz.registry import Target
from tests.strategies.keys import ANYTHING_GOES, encryption_key

POLICIES: Final = (ANYTHING_GOES, SecurityPolicy())


def signatures(data: bytes) -> None:
    """A signature is right or proves nothing; a strict policy believes no more than a lax one."""
    message = _message(data)
    if message is None:
        return
    believed = []
    for policy in POLICIES:
        try:
            checked = check_signature(message, policy)
        except BadSignature:
            believed.append(False)
        else:
            assert message.security is not None
            assert checked.certificate == message.security.sender_certificate
            believed.append(True)
    lax, strict = believed
    assert lax or not strict


def encryption(data: bytes) -> None:
    """A body is decrypted or refused; what is decrypted is a message that is not encrypted."""
    for policy in POLICIES:
        try:
            opened = ReceiveKeys(policy, _keys()).decrypt(data, 0)
        except (BadEncryption, DecodeError):
            continue
        message = _message(opened)
        if message is not None and opened != data:
            assert message.security is None or not message.security.body_encrypted
            assert encode(message) == opened


def certificates_of_users(data: bytes) -> None:
    """Bytes are a certificate with a key that we accept, or are refused."""
    for smallest_bits in (512, 1024):
        try:
            key = certificates.public_key(data, smallest_bits)
        except BadCertificate:
            continue
        assert key.key_size >= smallest_bits
    assert len(certificates.digest(data)) == 16


def access_lists(data: bytes) -> None:
    """A security descriptor says who may do what, or is refused; it survives being written."""
    try:
        found = descriptors.decode(data)
    except BadDescriptor:
        return
    assert descriptors.decode(descriptors.encode(found)) == found
    for kind in (access.QUEUE, access.MANAGER):
        rights = access.granted(found, _SOMEBODY, kind)
        assert rights >= 0
        access.plain(found, kind)


def _message(data: bytes) -> UserMessage | None:
    try:
        packet = decode(data)
    except DecodeError:
        return None
    return packet if isinstance(packet, UserMessage) else None


@cache
def _keys() -> tuple[EncryptionKey, ...]:
    return tuple(encryption_key(provider) for provider in PROVIDERS)


_SOMEBODY: Final = identities(unix_user(1000))

TARGETS: Final[dict[str, Target]] = {
    "signatures": signatures,
    "encryption": encryption,
    "certificates": certificates_of_users,
    "descriptors": access_lists,
}
