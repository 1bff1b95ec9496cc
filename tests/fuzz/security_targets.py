"""What must hold for whatever claims to be signed, encrypted, certified or allowed."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Final

from openmsmq.security.access import access, descriptors
from openmsmq.security.access.descriptors import BadDescriptor
from openmsmq.security.access.sids import identities, unix_user
from openmsmq.security.authentication.ntlm.messages import decode_client_proof, decode_pairs
from openmsmq.security.authentication.pac import decode_logon_info
from openmsmq.security.authentication.ports import AuthenticationFailed
from openmsmq.security.encryption.decryption import BadEncryption, EncryptionKey, ReceiveKeys
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import PROVIDERS
from openmsmq.security.signatures import certificates
from openmsmq.security.signatures.certificates import BadCertificate
from openmsmq.security.signatures.signatures import BadSignature, check_signature
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.fuzz.registry import Target
from tests.fuzz.security_seeds import tokens_of_ntlm, tokens_of_spnego
from tests.strategies.keys import ANYTHING_GOES, encryption_key
from tests.unit.security.authentication.negotiations import ntlm_client, ntlm_server
from tests.unit.security.authentication.sides import acceptor, initiator

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


def authentication(data: bytes) -> None:
    """Whatever a client says, nobody is let in who does not know the password."""
    for server, before in (
        (acceptor(), b""),
        (acceptor(), tokens_of_ntlm()[0]),
        (ntlm_server(), b""),
        (ntlm_server(), tokens_of_spnego()[0]),
    ):
        with suppress(AuthenticationFailed):
            if before:
                server.step(before)
            # The honest client's own proof may have another frame of SPNEGO around it.
            assert not server.step(data).is_complete or tokens_of_ntlm()[2] in data
    for client in (initiator(), ntlm_client()):
        client.step(b"")
        with suppress(AuthenticationFailed):
            client.step(data)
    for decode_part in (decode_client_proof, decode_pairs, decode_logon_info):
        with suppress(DecodeError):
            decode_part(data)


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
    "authentication": authentication,
}
