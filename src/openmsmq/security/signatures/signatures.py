"""Signatures of messages: made by senders, checked by the destination.

[MQQB 3.1.5.8.3, 3.1.7.1.4; MQMQ 2.5]

A signature covers the body before it is encrypted: who receives decrypts first (C-91).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest, HashAlgorithm
from openmsmq.security import rsa
from openmsmq.security.hashes import digest_in, hasher, size_problem
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.rsa import PrivateKey
from openmsmq.security.signatures import certificates
from openmsmq.security.signatures.certificates import BadCertificate
from openmsmq.security.signatures.signed_fields import (
    OURS,
    SignatureProfile,
    destination_element,
    exact_fields,
    first_fields,
    other_fields,
    readings,
    with_whole_names,
)
from openmsmq.wire import packets
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    MultiQueueFormatHeader,
)
from openmsmq.wire.headers.security import (
    AUTHENTICATED,
    DEFAULT_PROVIDER,
    SENDER_KIND,
    SIGNATURE_KIND,
    SecurityHeader,
    SenderKind,
)
from openmsmq.wire.packets import UserMessage

_FOR_ONE: Final = (AuthenticationLevel.SIGNATURE_20, AuthenticationLevel.SIGNATURE_10)
"""Signatures in the SecurityHeader, in the order in which they are tried."""
_FOR_SEVERAL: Final = (AuthenticationLevel.SIGNATURE_30,)


class BadSignature(Exception):
    """A message whose signature does not prove who sent it: its class is NACK_BAD_SIGNATURE."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Signer(msgspec.Struct, frozen=True):
    """Who signs: a key, its certificate, and whom the message names as its sender."""

    key: PrivateKey
    certificate: bytes
    """X.509 in DER, with the public half of `key`."""
    sender_kind: SenderKind = SenderKind.NONE
    """With none, a sender that the packet names already stays."""
    sender_id: bytes = b""
    """A SID, or the identifier of a queue manager."""
    hash_algorithm: HashAlgorithm = HashAlgorithm.SHA512


class Checked(msgspec.Struct, frozen=True):
    """A signature that is right; whose certificate it is, the directory has to say."""

    kind: AuthenticationLevel
    """What the message's AS field says from now on."""
    hash_algorithm: HashAlgorithm
    certificate: bytes
    profile: SignatureProfile | None
    """Which reading of MQMQ 2.5 the sender follows (C-102); None for an exact signature."""
    big_endian: bool
    """Whether the signature stands most significant byte first, which Windows does not do."""


def sign(packet: bytes, signer: Signer, request: AuthenticationRequest, source: Guid) -> bytes:
    """Sign an encoded user message that the queue manager `source` is going to send.

    A message for several destinations gets a signature of MSMQ 3.0; another one of MSMQ 1.0 if
    that is asked for, and else of MSMQ 2.0 (C-103). An exact one stands where one of MSMQ 3.0
    would, and its message names all its destinations, be it one. Delivery, priority, journaling
    and whatever else is signed must not change afterwards; `source` is the only field that may
    not be in the packet yet. Queues that the packet names by the place of another are named in
    full: which place is meant no signature covers. [MQQB 3.1.7.1.4]
    """
    message = packets.decode(packet)
    if not isinstance(message, UserMessage):
        raise EncodeError("signature", "only user messages are signed")
    if message.security is not None and message.security.body_encrypted:
        raise EncodeError("signature", "a message is signed before it is encrypted")
    problem = size_problem(signer.hash_algorithm, message.properties.body_size)
    if problem:
        raise EncodeError("signature", problem)
    if request is AuthenticationRequest.EXACT:
        message = _with_exact_destination(message)
    kind = _kind_for(message, request)
    message = msgspec.structs.replace(message, user=with_whole_names(message.user, source))
    properties = msgspec.structs.replace(
        message.properties, hash_algorithm=int(signer.hash_algorithm)
    )
    hashed = hasher(signer.hash_algorithm)
    if request is AuthenticationRequest.EXACT:
        hashed.update(exact_fields(message, source))
    else:
        hashed.update(first_fields(message))
        hashed.update(other_fields(message, kind, source, OURS))
    signature = signer.key.sign(signer.hash_algorithm, hashed.digest())
    lists = message.multi_queue
    if kind is AuthenticationLevel.SIGNATURE_30 and lists is not None:
        lists = msgspec.structs.replace(lists, signature=signature, padding=b"")
        signature = b""
    return packets.encode(
        msgspec.structs.replace(
            message,
            properties=properties,
            security=_security_header(message.security, signer, signature),
            multi_queue=lists,
        )
    )


def _kind_for(message: UserMessage, request: AuthenticationRequest) -> AuthenticationLevel:
    if message.multi_queue is not None and message.multi_queue.destinations.elements:
        return AuthenticationLevel.SIGNATURE_30
    if request is AuthenticationRequest.SIGNATURE_10:
        return AuthenticationLevel.SIGNATURE_10
    return AuthenticationLevel.SIGNATURE_20


def _with_exact_destination(message: UserMessage) -> UserMessage:
    """Name the destination in a list: an exact signature covers it there, with its owner."""
    lists = message.multi_queue
    if lists is None or not lists.destinations.elements:
        element = destination_element(message.user)
        if element is None:
            raise EncodeError("signature", "the message names no queue that it goes to")
        return msgspec.structs.replace(
            message, multi_queue=MultiQueueFormatHeader(AddressList((element,)))
        )
    if not can_be_exact(message):
        raise EncodeError(
            "signature",
            "a message to a distribution list cannot have an exact signature, which covers the "
            "queues that it goes to: name the queues, or sign it with 3.0",
        )
    return message


def can_be_exact(message: UserMessage) -> bool:
    """Whether all queues that a message goes to are known when it is signed."""
    lists = message.multi_queue
    return lists is None or not any(
        isinstance(element, DistributionListName) for element in lists.destinations.elements
    )


def _security_header(
    before: SecurityHeader | None, signer: Signer, signature: bytes
) -> SecurityHeader:
    header = before or SecurityHeader()
    flags = header.flags & ~(AUTHENTICATED | SIGNATURE_KIND) | DEFAULT_PROVIDER
    sender_id = header.sender_id
    if signer.sender_kind is not SenderKind.NONE:
        flags = flags & ~SENDER_KIND | signer.sender_kind
        sender_id = signer.sender_id
    return SecurityHeader(
        sender_id=sender_id,
        signature=signature,
        sender_certificate=signer.certificate,
        flags=flags,
    )


def is_signed(message: UserMessage) -> bool:
    """Whether a message has a signature that must be checked."""
    return bool(_signature(message)[0])


def _signature(message: UserMessage) -> tuple[bytes, tuple[AuthenticationLevel, ...]]:
    """Return the signature and what it may be; one in the SecurityHeader comes first (C-103)."""
    if message.security is not None and message.security.signature:
        return message.security.signature, _FOR_ONE
    if message.multi_queue is not None:
        return message.multi_queue.signature, _FOR_SEVERAL
    return b"", ()


def check_signature(message: UserMessage, policy: SecurityPolicy) -> Checked:
    """Check the signature of a decrypted message; `BadSignature` if it proves nothing.

    The signature is opened before anything is hashed, and the body is hashed once, or twice where
    it may be exact: what nobody has signed costs little. [MQQB 3.1.5.8.3]
    """
    signature, kinds = _signature(message)
    if not signature:
        raise BadSignature("the message is not signed")
    if message.security is None or not message.security.sender_certificate:
        raise BadSignature("the message is signed, but has no certificate")
    if message.security.body_encrypted:
        raise BadSignature("the body is still encrypted")
    if message.properties.hash_algorithm not in policy.hashes:
        raise BadSignature(
            f"hash algorithm {message.properties.hash_algorithm:#x} is not allowed by the policy"
        )
    algorithm = HashAlgorithm(message.properties.hash_algorithm)
    problem = size_problem(algorithm, message.properties.body_size)
    if problem:
        raise BadSignature(problem)
    certificate = message.security.sender_certificate
    try:
        key = certificates.public_key(certificate, policy.smallest_key_bits)
    except BadCertificate as error:
        raise BadSignature(str(error)) from None
    may_be_exact = policy.exact_signatures and kinds == _FOR_SEVERAL
    kinds = tuple(kind for kind in kinds if kind in policy.signatures)
    big_endian, digest = _signed_digest(key, signature, algorithm)
    if may_be_exact and _is_exact(message, algorithm, digest):
        kind = AuthenticationLevel.SIGNATURE_30
        return Checked(kind, algorithm, certificate, None, big_endian)
    for kind, profile, found in _digests(message, kinds, algorithm):
        if found == digest:
            return Checked(kind, algorithm, certificate, profile, big_endian)
    raise BadSignature("the signature is not one of this message")


def _is_exact(message: UserMessage, algorithm: HashAlgorithm, digest: bytes) -> bool:
    """Whether a digest is that of an exact signature, made for the queue a message goes to."""
    lists = message.multi_queue
    element = destination_element(message.user)
    if lists is None or element is None or element not in lists.destinations.elements:
        return False
    hashed = hasher(algorithm)
    hashed.update(exact_fields(message, message.user.source))
    return hashed.digest() == digest


def _signed_digest(
    key: RSAPublicKey, signature: bytes, algorithm: HashAlgorithm
) -> tuple[bool, bytes]:
    for big_endian in (False, True):
        info = rsa.signed_info(key, signature if big_endian else signature[::-1])
        digest = None if info is None else digest_in(algorithm, info)
        if digest is not None:
            return big_endian, digest
    raise BadSignature(f"the signature is not one of {algorithm.name} by the certificate's key")


def _digests(
    message: UserMessage, kinds: tuple[AuthenticationLevel, ...], algorithm: HashAlgorithm
) -> Iterator[tuple[AuthenticationLevel, SignatureProfile, bytes]]:
    """Hash the message in every way in which it may have been signed, the likely ones first."""
    beginning = hasher(algorithm)
    beginning.update(first_fields(message))
    for kind in kinds:
        for profile, rest in readings(message, kind):
            hashed = beginning.copy()
            hashed.update(rest)
            yield kind, profile, hashed.digest()
