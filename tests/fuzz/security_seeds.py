"""Where the targets of message security start: messages signed and encrypted in every way."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from random import Random
from typing import Final

import msgspec

from openmsmq.model.message import AuthenticationRequest, HashAlgorithm, PrivacyLevel
from openmsmq.security.access import access, descriptors
from openmsmq.security.access.descriptors import AccessEntry, Descriptor
from openmsmq.security.access.sids import EVERYONE, unix_user
from openmsmq.security.encryption.encryption import SendKeys
from openmsmq.security.providers import ADVANCED, PROVIDERS
from openmsmq.security.signatures.signatures import sign
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import PublicName
from openmsmq.wire.keys import SessionAlgorithm
from openmsmq.wire.packets import encode
from tests.fuzz.mutation import repair_packet
from tests.fuzz.registry import Repair
from tests.strategies.keys import (
    ANYTHING_GOES,
    DESTINATION,
    QUEUE,
    SOURCE,
    certificate,
    encryption_key,
    letter,
    signer,
)
from tests.unit.security.authentication.negotiations import agree, ntlm_client, ntlm_server
from tests.unit.security.authentication.sides import (
    LOGON_INFO,
    acceptor,
    conversation,
    initiator,
)

_AES: Final = (SessionAlgorithm.AES_128, SessionAlgorithm.AES_192, SessionAlgorithm.AES_256)
_OLD: Final = (SessionAlgorithm.RC2, SessionAlgorithm.RC4)


def signatures() -> list[bytes]:
    """Each kind of signature with each hash; the one of MSMQ 3.0 is for several queues."""
    one = letter()
    destinations = AddressList((PublicName(QUEUE), PublicName(SOURCE)))
    lists = MultiQueueFormatHeader(destinations, AddressList(), AddressList(), b"")
    several = msgspec.structs.replace(one, multi_queue=lists)
    plain = [
        (encode(one), AuthenticationRequest.SIGNATURE_10),
        (encode(one), AuthenticationRequest.SIGNATURE_20),
        (encode(several), AuthenticationRequest.SIGNATURE_20),
    ]
    return [
        sign(packet, signer(algorithm), request, SOURCE)
        for (packet, request), algorithm in product(plain, HashAlgorithm)
    ]


def encryption() -> list[bytes]:
    """Each cipher that each provider has; one message that is not encrypted at all."""
    found = [encode(letter())]
    for provider in PROVIDERS:
        for algorithm in _AES if provider is ADVANCED else _OLD:
            policy = msgspec.structs.replace(
                ANYTHING_GOES,
                ciphers=frozenset({algorithm}),
                preferred_cipher=algorithm,
                preferred_old_cipher=algorithm,
            )
            found.append(
                SendKeys(policy).encrypt(
                    encode(letter()),
                    DESTINATION,
                    [encryption_key(provider).published()],
                    PrivacyLevel.BASE,
                    0,
                    Random(1).randbytes,
                )
            )
    return found


def certificates() -> list[bytes]:
    return [certificate(512), certificate(1024), certificate(1024, 1)]


def access_lists() -> list[bytes]:
    alice = unix_user(1000)
    entries = (AccessEntry(EVERYONE, 0x20), AccessEntry(alice, 0x3F))
    return [
        descriptors.encode(found)
        for found in (
            Descriptor(),
            Descriptor(alice, b"", entries),
            Descriptor(alice, alice, ()),
            access.queue_descriptor(),
            access.manager_descriptor(),
        )
    ]


@cache
def tokens_of_ntlm() -> tuple[bytes, ...]:
    return conversation(initiator(), acceptor())


@cache
def tokens_of_spnego() -> tuple[bytes, ...]:
    return tuple(agree(ntlm_client(), ntlm_server()))


def authentication() -> list[bytes]:
    """All tokens of two authentications, and what a ticket says of a user."""
    return [*tokens_of_ntlm(), *tokens_of_spnego(), LOGON_INFO]


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "signatures": signatures,
    "encryption": encryption,
    "certificates": certificates,
    "descriptors": access_lists,
    "authentication": authentication,
}

REPAIRS: Final[dict[str, Repair]] = {"signatures": repair_packet, "encryption": repair_packet}
