"""Signed and encrypted messages between queue managers, and what is wrong with some of them.

[MQQB 3.1.5.8.3, 3.1.7.1.4, 3.1.7.1.5]
"""

from __future__ import annotations

import random
from itertools import product

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.manager.config import SecurityConfig
from openmsmq.model.access import QueueAccess
from openmsmq.model.limits import KEY_CACHE_MARGIN_S, KEY_CACHE_MS, KEY_LIFETIME_S, KEY_RETENTION_S
from openmsmq.model.message import (
    AuthenticationLevel,
    AuthenticationRequest,
    HashAlgorithm,
    MessageClass,
    PrivacyLevel,
)
from openmsmq.model.names import MultipleFormatName, parse_format_name
from openmsmq.model.queue import AccessMode, QueuePrivacy
from openmsmq.model.topology import PublicKey
from openmsmq.security.access import access
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.descriptors import decode as decode_descriptor
from openmsmq.security.access.descriptors import encode as encode_descriptor
from openmsmq.security.access.sids import ANONYMOUS, EVERYONE, Sid, identities
from openmsmq.security.encryption.encryption import SendKeys
from openmsmq.security.own_key import OwnKey
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED, Provider
from openmsmq.security.signatures.certificates import digest
from openmsmq.security.signatures.signatures import Signer, sign
from openmsmq.wire.addressing import destinations_header
from openmsmq.wire.headers.message_properties import label_bytes
from openmsmq.wire.headers.security import BODY_ENCRYPTED, SecurityHeader, SenderKind
from openmsmq.wire.keys import SessionAlgorithm
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.conformance.marks import shows
from tests.strategies.keys import ANYTHING_GOES, certificate, private_key
from tests.strategies.messages import Draft
from tests.transfer.directories import COPY, ORIGINAL
from tests.transfer.network import ALPHA, BETA, START_S, Network, addressed

ORDERS, TRANSACTIONAL, ANSWERS = r"private$\orders", r"private$\ledger", r"private$\answers"
USER = Sid.parse("S-1-5-21-1-2-3-1000")
CALLER = Caller("user", USER, identities(USER))
SECRET = b"a secret body" * 20


def own_key(provider: Provider = ADVANCED, seed: int = 0, created_time_s: int = START_S) -> OwnKey:
    key = private_key(provider.key_bits, seed + 100 * provider.level)
    return OwnKey(provider, key, created_time_s=created_time_s)


class Pair:
    """ALPHA, who has the directory, and BETA, who has keys and queues."""

    def __init__(self, network: Network, policy: SecurityPolicy = ANYTHING_GOES) -> None:
        self.network = network
        self.alpha = network.manager(
            "ALPHA",
            ALPHA,
            ORIGINAL,
            permit_insecure_nacks=True,
            security=SecurityConfig(policy=policy),
        )
        network.directory = self.alpha
        network.hosts |= {"alpha": (ALPHA,), "beta": (BETA,)}
        self.beta = network.manager(
            "BETA",
            BETA,
            COPY,
            permit_insecure_nacks=True,
            security=SecurityConfig(policy=policy),
            keys=[
                own_key(provider, created_time_s=START_S) for provider in (ADVANCED, ENHANCED, BASE)
            ],
        )
        network.run(DIRECTORY_POLL_S * 1000)
        self.alpha.create(ANSWERS)
        self.alpha.manager.connected(2, CALLER)
        self._send_keys: dict[SecurityPolicy, SendKeys] = {}

    def target(self, name: str = ORDERS, **properties: object) -> str:
        self.beta.create(name, **properties)
        found: str = self.beta.ok(api.GetNames(name)).private_name
        return found

    def register(self, der: bytes) -> None:
        call = 1_000_000
        self.alpha.manager.request(2, call, api.RegisterCertificate(der), self.network.now)
        self.alpha.pump()
        assert isinstance(self.alpha.answers[call], api.Certificates), self.alpha.answers[call]
        self.network.run(DIRECTORY_POLL_S * 1000)

    def published(self) -> tuple[PublicKey, ...]:
        told = self.alpha.ok(api.GetEncryptionKeys(bytes(self.beta.identifier)))
        return tuple(PublicKey(key.provider_name, key.provider_type, key.blob) for key in told.keys)

    def encrypt(
        self,
        packet: bytes,
        policy: SecurityPolicy,
        level: PrivacyLevel,
        keys: tuple[PublicKey, ...],
    ) -> bytes:
        sender = self._send_keys.setdefault(policy, SendKeys(policy))
        randbytes = random.Random(7).randbytes
        return sender.encrypt(
            packet, self.beta.identifier, keys, level, self.network.now.ticks_ms, randbytes
        )

    def opened(self, name: str) -> api.Opened:
        opened = self.alpha.ok(api.OpenQueue(name, AccessMode.SEND))
        assert isinstance(opened, api.Opened)
        return opened

    def packet(self, opened: api.Opened, *, transactional: bool = False) -> bytes:
        draft = Draft(
            body=SECRET,
            transactional=transactional,
            # Transactional messages have none: their order is that of sending.
            priority=0 if transactional else 3,
            acknowledge=0x0F,
            admin_queue=rf"OS:ALPHA\{ANSWERS}",
            journal_on_failure=True,
        )
        return addressed(draft.packet(), opened)

    def send(self, opened: api.Opened, packet: bytes, *, transactional: bool = False) -> None:
        own = api.OWN_TRANSACTION if transactional else 0
        self.alpha.ok(api.Send(opened.handle, [packet], own))
        self.network.run(60_000)

    def came(self, name: str = ORDERS) -> UserMessage:
        [message] = self.beta.messages(name)
        return message


@pytest.fixture
def pair(network: Network) -> Pair:
    return Pair(network)


def signer(seed: int = 0, hash_algorithm: HashAlgorithm = HashAlgorithm.SHA512) -> Signer:
    return Signer(
        private_key(1024, seed),
        certificate(1024, seed),
        SenderKind.SID,
        bytes(USER),
        hash_algorithm,
    )


def level_of(message: UserMessage) -> AuthenticationLevel:
    assert message.security is not None
    return AuthenticationLevel(message.security.flags >> 8 & 0x0F)


# Both ways of protection, with everything there is.


@pytest.mark.parametrize(
    ("request_", "hash_algorithm"),
    list(
        product(
            (AuthenticationRequest.SIGNATURE_10, AuthenticationRequest.SIGNATURE_20), HashAlgorithm
        )
    ),
)
@pytest.mark.spec(
    "MQQB-3.1.5.8.3-02", "MQQB-3.1.5.8.3-07", "MQQB-3.1.5.8.3-10", "MQQB-3.1.5.8.3-11"
)
@pytest.mark.spec(
    "MQQB-3.1.7.1.4-01", "MQQB-3.1.7.1.4-02", "MQQB-3.1.7.1.4-05", "MQQB-3.1.7.1.4-06"
)
def test_a_signed_message_arrives_authenticated(
    pair: Pair, request_: AuthenticationRequest, hash_algorithm: HashAlgorithm
) -> None:
    name = pair.target(authentication_required=True)
    pair.register(certificate())
    opened = pair.opened(name)
    packet = pair.packet(opened)
    pair.send(
        opened,
        sign(packet, signer(hash_algorithm=hash_algorithm), request_, pair.alpha.identifier),
    )
    message = pair.came()
    wanted = {
        AuthenticationRequest.SIGNATURE_10: AuthenticationLevel.SIGNATURE_10,
        AuthenticationRequest.SIGNATURE_20: AuthenticationLevel.SIGNATURE_20,
    }
    assert level_of(message) is wanted[request_]
    assert message.properties.body == SECRET
    assert message.security is not None
    assert message.security.sender_certificate == certificate()


@pytest.mark.spec("MQQB-3.1.7.1.4-03", "MQQB-3.1.7.1.4-04")
def test_a_message_to_several_queues_is_signed_once(pair: Pair) -> None:
    names = [pair.target(), pair.target(r"private$\more", authentication_required=True)]
    pair.register(certificate())
    several = ",".join(names)
    opened = pair.opened(several)
    parsed = parse_format_name(several)
    assert isinstance(parsed, MultipleFormatName)
    message = decode(pair.packet(opened))
    assert isinstance(message, UserMessage)
    listed = encode(msgspec.structs.replace(message, multi_queue=destinations_header(parsed)))
    pair.send(opened, sign(listed, signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier))
    assert level_of(pair.came()) is AuthenticationLevel.SIGNATURE_30
    assert level_of(pair.came(r"private$\more")) is AuthenticationLevel.SIGNATURE_30


CIPHERS = [
    (ADVANCED, SessionAlgorithm.AES_256),
    (ADVANCED, SessionAlgorithm.AES_192),
    (ADVANCED, SessionAlgorithm.AES_128),
    (ENHANCED, SessionAlgorithm.RC4),
    (ENHANCED, SessionAlgorithm.RC2),
    (BASE, SessionAlgorithm.RC4),
    (BASE, SessionAlgorithm.RC2),
]


@pytest.mark.parametrize(("provider", "cipher"), CIPHERS)
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.spec(
    "MQQB-3.1.5.8.3-01", "MQQB-3.1.5.8.3-17", "MQQB-3.1.5.8.3-23", "MQQB-3.1.5.8.3-24"
)
@pytest.mark.spec("MQQB-3.1.5.8.3-22", "MQQB-3.1.5.8.3-25", "MQQB-3.1.5.8.3-28")
def test_an_encrypted_message_is_read_by_its_destination_only(
    pair: Pair, provider: Provider, cipher: SessionAlgorithm, signed: bool
) -> None:
    name = pair.target(privacy=QueuePrivacy.BODY)
    pair.register(certificate())
    keys = tuple(key for key in pair.published() if key.provider_name == provider.name)
    policy = msgspec.structs.replace(
        ANYTHING_GOES,
        ciphers=frozenset({cipher}),
        preferred_cipher=cipher,
        preferred_old_cipher=cipher,
    )
    opened = pair.opened(name)
    for _ in range(2):
        packet = pair.packet(opened)
        if signed:
            packet = sign(packet, signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier)
        pair.send(opened, pair.encrypt(packet, policy, PrivacyLevel.BASE, keys))
    assert not any(SECRET[:13] in data for data in pair.alpha.sent)
    messages = pair.beta.messages(ORDERS)
    assert len(messages) == 2
    for message in messages:
        assert message.properties.body == SECRET
        assert message.properties.privacy_level == provider.level
        assert message.properties.encryption_algorithm == cipher
        assert (message.security is not None) is signed
        if message.security is not None:
            assert not message.security.flags & BODY_ENCRYPTED
            assert level_of(message) is AuthenticationLevel.SIGNATURE_20


@shows("MQQB-3.1.7.1.5", 1, 2, 4, 5)
def test_a_body_leaves_encrypted_with_the_keys_that_the_directory_has_of_its_destination(
    pair: Pair,
) -> None:
    opened = pair.opened(pair.target(privacy=QueuePrivacy.BODY))
    keys = pair.published()
    assert {key.provider_name for key in keys} == {
        "Microsoft Base Cryptographic Provider v1.0",
        "Microsoft Enhanced Cryptographic Provider v1.0",
        "Microsoft Enhanced RSA and AES Cryptographic Provider",
    }
    pair.send(opened, pair.encrypt(pair.packet(opened), ANYTHING_GOES, PrivacyLevel.BASE, keys))
    assert not any(SECRET[:13] in data for data in pair.alpha.sent)
    assert pair.came().properties.body == SECRET


def test_transactional_messages_are_protected_too(pair: Pair) -> None:
    name = pair.target(
        TRANSACTIONAL,
        transactional=True,
        privacy=QueuePrivacy.BODY,
        authentication_required=True,
    )
    pair.register(certificate())
    opened = pair.opened(name)
    for _ in range(3):
        packet = sign(
            pair.packet(opened, transactional=True),
            signer(),
            AuthenticationRequest.ALWAYS,
            pair.alpha.identifier,
        )
        packet = pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, pair.published())
        pair.send(opened, packet, transactional=True)
    assert pair.beta.bodies(TRANSACTIONAL) == [SECRET] * 3


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("label", ["", "a label", "one that is longer"])
def test_many_encrypted_messages_at_once_arrive_as_one_alone_does(
    pair: Pair, transactional: bool, label: str
) -> None:
    name = pair.target(transactional=transactional, privacy=QueuePrivacy.BODY)
    opened = pair.opened(name)
    draft = Draft(transactional=transactional, priority=0 if transactional else 3)
    bodies = [bytes([65 + number]) * size for size in (1, 15, 16, 100) for number in range(20)]
    packets = []
    for number, body in enumerate(bodies):
        message = decode(addressed(msgspec.structs.replace(draft, body=body).packet(), opened))
        assert isinstance(message, UserMessage)
        text = f"{label} {number % 10}" if label else ""
        properties = msgspec.structs.replace(message.properties, label=label_bytes(text))
        packet = encode(msgspec.structs.replace(message, properties=properties))
        packets.append(pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, pair.published()))
    own = api.OWN_TRANSACTION if transactional else 0
    spoiled_one = 47
    if not transactional:
        packets[spoiled_one] = spoiled(packets[spoiled_one])
        del bodies[spoiled_one]
    pair.alpha.ok(api.Send(opened.handle, packets, own))
    pair.network.run(60_000)
    found = pair.beta.messages(ORDERS)
    assert [message.properties.body for message in found] == bodies
    assert {message.security for message in found} == {None}
    assert {message.properties.privacy_level for message in found} == {PrivacyLevel.ADVANCED}
    numbers = [message.user.message_number for message in found]
    assert numbers == sorted(numbers)
    # Read again by those who know nothing of all this.
    assert all(decode(encode(message)) == message for message in found)


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize(
    "closed",
    [{"authentication_required": True}, {"privacy": QueuePrivacy.NONE}],
    ids=["wants proof", "wants plain bodies"],
)
def test_none_of_many_encrypted_messages_enters_a_queue_that_refuses_the_first(
    pair: Pair, transactional: bool, closed: dict[str, object]
) -> None:
    opened = pair.opened(pair.target(transactional=transactional, **closed))
    packets = [
        pair.encrypt(
            addressed(Draft(transactional=transactional, body=SECRET, priority=0).packet(), opened),
            ANYTHING_GOES,
            PrivacyLevel.BASE,
            pair.published(),
        )
        for _ in range(20)
    ]
    pair.alpha.ok(api.Send(opened.handle, packets, api.OWN_TRANSACTION if transactional else 0))
    pair.network.run(60_000)
    assert pair.beta.messages(ORDERS) == []


def test_a_strict_queue_manager_takes_exact_signatures_only(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(signatures=frozenset()))
    pair.register(certificate())
    opened = pair.opened(pair.target(authentication_required=True))
    for request in AuthenticationRequest:
        packet = sign(pair.packet(opened), signer(), request, pair.alpha.identifier)
        pair.send(opened, packet)
    assert level_of(pair.came()) is AuthenticationLevel.SIGNATURE_30


def test_signatures_of_msmq_10_are_refused_by_default(network: Network) -> None:
    pair = Pair(network, SecurityPolicy())
    pair.register(certificate())
    opened = pair.opened(pair.target(authentication_required=True))
    for request in (AuthenticationRequest.SIGNATURE_10, AuthenticationRequest.SIGNATURE_20):
        packet = sign(pair.packet(opened), signer(), request, pair.alpha.identifier)
        pair.send(opened, packet)
    assert level_of(pair.came()) is AuthenticationLevel.SIGNATURE_20


# What is refused, and how the sender hears of it.


def spoiled(packet: bytes) -> bytes:
    """Change the last byte of the body."""
    message = decode(packet)
    assert isinstance(message, UserMessage)
    body = message.properties.body
    changed = msgspec.structs.replace(message.properties, body=body[:-1] + bytes([body[-1] ^ 1]))
    return encode(msgspec.structs.replace(message, properties=changed))


def wrong_signature(pair: Pair, packet: bytes) -> bytes:
    return spoiled(sign(packet, signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier))


def unknown_certificate(pair: Pair, packet: bytes) -> bytes:
    return sign(packet, signer(seed=1), AuthenticationRequest.ALWAYS, pair.alpha.identifier)


def unsigned(_pair: Pair, packet: bytes) -> bytes:
    return packet


def wrong_key(pair: Pair, packet: bytes) -> bytes:
    other = own_key(ADVANCED, seed=5).published()
    return pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, (other,))


def wrong_body(pair: Pair, packet: bytes) -> bytes:
    return spoiled(pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, pair.published()))


def wrong_level(pair: Pair, packet: bytes) -> bytes:
    encrypted = decode(pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, pair.published()))
    assert isinstance(encrypted, UserMessage)
    properties = msgspec.structs.replace(encrypted.properties, privacy_level=2)
    return encode(msgspec.structs.replace(encrypted, properties=properties))


SIGNATURE, ENCRYPTION = MessageClass.NACK_BAD_SIGNATURE, MessageClass.NACK_BAD_ENCRYPTION
_BAD_BODY = shows("MQQB-3.1.5.8.3", 33, 34, 35, 36)
REFUSED = [
    pytest.param(
        wrong_signature,
        {},
        SIGNATURE,
        id="a changed body",
        marks=shows("MQQB-3.1.5.8.3", 3, 4, 5, 6),
    ),
    pytest.param(
        unknown_certificate,
        {},
        SIGNATURE,
        id="a certificate of nobody",
        marks=shows("MQQB-3.1.5.8.3", 13, 14, 15, 16),
    ),
    pytest.param(unsigned, {"authentication_required": True}, SIGNATURE, id="no signature"),
    pytest.param(wrong_key, {}, ENCRYPTION, id="another's key", marks=_BAD_BODY),
    pytest.param(wrong_body, {}, ENCRYPTION, id="changed ciphertext", marks=_BAD_BODY),
    pytest.param(
        wrong_level,
        {},
        ENCRYPTION,
        id="an unknown level",
        marks=shows("MQQB-3.1.5.8.3", 18, 19, 20, 21),
    ),
    pytest.param(unsigned, {"privacy": QueuePrivacy.BODY}, ENCRYPTION, id="no encryption"),
]


@pytest.mark.parametrize(("protect", "demands", "reason"), REFUSED)
@pytest.mark.parametrize("transactional", [False, True])
def test_what_cannot_be_verified_is_refused_and_its_sender_told(
    pair: Pair,
    protect: object,
    demands: dict[str, object],
    reason: MessageClass,
    transactional: bool,
) -> None:
    name = pair.target(transactional=transactional, **demands)
    pair.register(certificate())
    opened = pair.opened(name)
    packet = protect(pair, pair.packet(opened, transactional=transactional))  # type: ignore[operator]
    pair.send(opened, packet, transactional=transactional)
    assert pair.beta.bodies(ORDERS) == []
    assert pair.alpha.classes(ANSWERS) == [reason]
    if transactional:
        # The final acknowledgment makes it a dead letter of its source, as it was sent.
        [dead] = pair.alpha.messages("system$;deadxact")
        assert dead.properties.message_class == reason
    assert pair.beta.messages("system$;deadletter") == []
    # The next one is taken: one sender's mistake costs that message only.
    assert not pair.alpha.outgoing(name)[0].message_count


@pytest.mark.spec(
    "MQQB-3.1.5.8.3-29", "MQQB-3.1.5.8.3-30", "MQQB-3.1.5.8.3-31", "MQQB-3.1.5.8.3-32"
)
@pytest.mark.parametrize("transactional", [False, True])
def test_short_keys_of_rc2_are_refused_if_so_configured(
    network: Network, transactional: bool
) -> None:
    pair = Pair(network, msgspec.structs.replace(ANYTHING_GOES, reject_rc2_40_bit=True))
    opened = pair.opened(pair.target(transactional=transactional))
    policy = msgspec.structs.replace(
        ANYTHING_GOES,
        ciphers=frozenset({SessionAlgorithm.RC2}),
        preferred_old_cipher=SessionAlgorithm.RC2,
        send_rc2_40_bit=True,
    )
    keys = tuple(key for key in pair.published() if key.provider_name == ENHANCED.name)
    packet = pair.packet(opened, transactional=transactional)
    sealed = pair.encrypt(packet, policy, PrivacyLevel.BASE, keys)
    pair.send(opened, sealed, transactional=transactional)
    assert pair.alpha.classes(ANSWERS) == [ENCRYPTION]
    assert pair.beta.bodies(ORDERS) == []
    assert (pair.alpha.classes("system$;deadxact") == [ENCRYPTION]) is transactional


def test_a_provider_without_key_here_is_named_as_the_reason(network: Network) -> None:
    pair = Pair(network)
    opened = pair.opened(pair.target())
    encrypted = pair.encrypt(
        pair.packet(opened), ANYTHING_GOES, PrivacyLevel.BASE, pair.published()
    )
    pair.beta.keys = [own_key(ENHANCED)]
    pair.beta.crash()
    pair.send(opened, encrypted)
    assert pair.alpha.classes(ANSWERS) == [MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER]


@pytest.mark.parametrize(
    "hash_algorithm", [HashAlgorithm.MD2, HashAlgorithm.MD4, HashAlgorithm.MD5]
)
def test_old_hashes_are_refused_by_default(network: Network, hash_algorithm: HashAlgorithm) -> None:
    pair = Pair(network, SecurityPolicy(smallest_key_bits=512))
    pair.register(certificate())
    opened = pair.opened(pair.target())
    signed = sign(
        pair.packet(opened),
        signer(hash_algorithm=hash_algorithm),
        AuthenticationRequest.ALWAYS,
        pair.alpha.identifier,
    )
    pair.send(opened, signed)
    assert pair.alpha.classes(ANSWERS) == [SIGNATURE]


def test_old_ciphers_are_refused_by_default(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(smallest_key_bits=512))
    opened = pair.opened(pair.target())
    policy = msgspec.structs.replace(ANYTHING_GOES, ciphers=frozenset({SessionAlgorithm.RC4}))
    # It has the key from the time when they were allowed, and shows it to nobody any more.
    assert [key.provider_name for key in pair.published()] == [ADVANCED.name]
    keys = (own_key(ENHANCED).published(),)
    pair.send(opened, pair.encrypt(pair.packet(opened), policy, PrivacyLevel.BASE, keys))
    assert pair.alpha.classes(ANSWERS) == [ENCRYPTION]


def test_a_queue_for_plain_messages_takes_no_encrypted_ones(pair: Pair) -> None:
    opened = pair.opened(pair.target(privacy=QueuePrivacy.NONE))
    packet = pair.packet(opened)
    pair.send(opened, pair.encrypt(packet, ANYTHING_GOES, PrivacyLevel.BASE, pair.published()))
    assert pair.alpha.classes(ANSWERS) == [ENCRYPTION]
    pair.send(opened, packet)
    assert pair.beta.bodies(ORDERS) == [SECRET]


def test_what_a_packet_claims_of_itself_counts_for_nothing(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    message = decode(pair.packet(opened))
    assert isinstance(message, UserMessage)
    forged = SecurityHeader(sender_id=bytes(USER), flags=SenderKind.SID | 0x0310)
    pair.send(opened, encode(msgspec.structs.replace(message, security=forged)))
    assert level_of(pair.came()) is AuthenticationLevel.NONE
    found = pair.came().security
    assert found is not None
    assert not found.flags & 0x0F10


# Who may write.


def allow_only(pair: Pair, who: Sid) -> None:
    """Let nobody but one user write into the queue of orders."""
    told = pair.beta.ok(api.GetSecurity(ORDERS))
    descriptor = decode_descriptor(told.descriptor)
    for everybody in (EVERYONE, ANONYMOUS):
        descriptor = access.revoke(descriptor, everybody, int(QueueAccess.WRITE_MESSAGE))
    descriptor = access.grant(descriptor, who, int(QueueAccess.WRITE_MESSAGE))
    pair.beta.ok(api.SetSecurity(ORDERS, encode_descriptor(descriptor)))


@shows("MQQB-3.1.5.8.3", 47, 48, 49, 50)
@pytest.mark.parametrize("transactional", [False, True])
def test_who_may_not_write_into_a_queue_is_refused_and_told(
    pair: Pair, transactional: bool
) -> None:
    opened = pair.opened(pair.target(transactional=transactional))
    allow_only(pair, USER)
    pair.send(opened, pair.packet(opened, transactional=transactional), transactional=transactional)
    assert pair.beta.bodies(ORDERS) == []
    denied = MessageClass.NACK_ACCESS_DENIED
    assert pair.alpha.classes(ANSWERS) == [denied]
    assert pair.alpha.classes("system$;deadxact") == ([denied] if transactional else [])


@shows("MQQB-3.1.5.8.3", 37, 38, 39, 42, 44, 45)
@pytest.mark.parametrize("transactional", [False, True])
def test_a_queue_takes_messages_of_those_who_may_write(pair: Pair, transactional: bool) -> None:
    opened = pair.opened(pair.target(transactional=transactional))
    pair.register(certificate())
    allow_only(pair, USER)
    packet = pair.packet(opened, transactional=transactional)
    pair.send(opened, packet, transactional=transactional)
    assert pair.alpha.classes(ANSWERS) == [MessageClass.NACK_ACCESS_DENIED]
    signed = sign(packet, signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier)
    pair.send(opened, signed, transactional=transactional)
    assert pair.beta.bodies(ORDERS) == [SECRET]


def named(packet: bytes, kind: SenderKind, sender: bytes) -> bytes:
    """Name a sender without proof."""
    message = decode(packet)
    assert isinstance(message, UserMessage)
    header = SecurityHeader(sender_id=sender, flags=kind)
    return encode(msgspec.structs.replace(message, security=header))


@pytest.mark.parametrize("trusting", [False, True])
def test_a_name_without_signature_proves_nothing_unless_it_is_trusted(
    network: Network, trusting: bool
) -> None:
    pair = Pair(network, SecurityPolicy(trust_unsigned_senders=trusting))
    opened = pair.opened(pair.target())
    allow_only(pair, USER)
    pair.send(opened, named(pair.packet(opened), SenderKind.SID, bytes(USER)))
    assert (pair.beta.bodies(ORDERS) == [SECRET]) is trusting


@pytest.mark.spec("MQQB-3.1.5.8.3-43")
def test_a_queue_manager_is_everyone(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(trust_unsigned_senders=True))
    opened = pair.opened(pair.target())
    allow_only(pair, EVERYONE)
    pair.send(
        opened,
        named(pair.packet(opened), SenderKind.QUEUE_MANAGER, bytes(pair.alpha.identifier)),
    )
    assert pair.beta.bodies(ORDERS) == [SECRET]


@pytest.mark.spec("MQQB-3.1.5.8.3-46")
def test_a_sender_that_is_none_is_anonymous(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(trust_unsigned_senders=True))
    opened = pair.opened(pair.target())
    allow_only(pair, USER)
    pair.send(opened, named(pair.packet(opened), SenderKind.SID, b"no SID"))
    assert pair.alpha.classes(ANSWERS) == [MessageClass.NACK_ACCESS_DENIED]


def test_a_certificate_of_nobody_is_taken_if_so_configured(network: Network) -> None:
    pair = Pair(network, SecurityPolicy(accept_unregistered_certificates=True))
    opened = pair.opened(pair.target(authentication_required=True))
    nobody = Signer(private_key(), certificate())
    pair.send(
        opened,
        sign(pair.packet(opened), nobody, AuthenticationRequest.ALWAYS, pair.alpha.identifier),
    )
    assert level_of(pair.came()) is AuthenticationLevel.SIGNATURE_20


def test_a_removed_certificate_proves_nothing_any_more(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    pair.register(certificate())
    pair.alpha.manager.request(
        2, 77_000, api.RemoveCertificate(digest(certificate())), pair.network.now
    )
    pair.alpha.pump()
    assert isinstance(pair.alpha.answers[77_000], api.Certificates)
    pair.network.run(DIRECTORY_POLL_S * 1000)
    pair.send(
        opened,
        sign(pair.packet(opened), signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier),
    )
    assert pair.alpha.classes(ANSWERS) == [SIGNATURE]


# Keys.


@pytest.mark.spec("MQQB-3.1.3.1-07", "MQQB-3.1.5.8.3-27")
@pytest.mark.spec("MQQB-3.1.6.10-01", "MQQB-3.1.6.10-02", "MQQB-3.1.6.10-03", "MQQB-3.1.6.10-04")
def test_session_keys_are_forgotten_in_time(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    cache = pair.beta.manager.keys.receive.cache
    assert len(cache) == 0
    pair.send(
        opened,
        pair.encrypt(pair.packet(opened), ANYTHING_GOES, PrivacyLevel.BASE, pair.published()),
    )
    assert len(cache) == 1
    pair.network.run(KEY_CACHE_MS + KEY_CACHE_MARGIN_S * 1000 - 61_000)
    assert len(cache) == 1
    pair.network.run(61_000)
    assert len(cache) == 0


@pytest.mark.spec("MQMQ-2.2.20.6-36")
def test_a_new_key_is_published_and_the_old_one_still_decrypts(pair: Pair) -> None:
    opened = pair.opened(pair.target())
    old = pair.published()
    under_way = pair.encrypt(pair.packet(opened), ANYTHING_GOES, PrivacyLevel.BASE, old)
    pair.beta.new_keys = lambda: [own_key(seed=9, created_time_s=START_S + 1000)]
    assert pair.beta.ok_soon(api.RenewKeys()) == api.Done()
    pair.network.run(DIRECTORY_POLL_S * 1000)
    new = pair.published()
    assert new[0].blob == own_key(seed=9).published().blob != old[0].blob
    pair.send(opened, under_way)
    fresh = SendKeys(ANYTHING_GOES).encrypt(
        pair.packet(opened),
        pair.beta.identifier,
        new,
        PrivacyLevel.BASE,
        0,
        random.Random(1).randbytes,
    )
    pair.send(opened, fresh)
    assert pair.beta.bodies(ORDERS) == [SECRET, SECRET]


def test_keys_are_renewed_when_they_are_old_and_forgotten_when_they_are_of_no_use(
    pair: Pair,
) -> None:
    opened = pair.opened(pair.target())
    under_way = pair.encrypt(
        pair.packet(opened), ANYTHING_GOES, PrivacyLevel.BASE, pair.published()
    )
    made: list[OwnKey] = []

    def new_keys() -> list[OwnKey]:
        made.extend(
            own_key(provider, len(made) + 20, pair.network.now.unix_s)
            for provider in (ADVANCED, ENHANCED, BASE)
        )
        return made[-3:]

    pair.beta.new_keys = new_keys
    age(pair, KEY_LIFETIME_S + 1)
    assert len(made) == 3
    assert len(pair.beta.manager.keys.kept) == 6
    age(pair, KEY_RETENTION_S + 1)
    # At once, and not only when it starts again.
    assert list(pair.beta.manager.keys.kept) == made
    pair.beta.crash()
    assert list(pair.beta.manager.keys.kept) == made
    pair.send(opened, under_way)
    assert pair.beta.bodies(ORDERS) == []


def age(pair: Pair, seconds: int) -> None:
    """Let a long time pass at once."""
    pair.network.advance_to(pair.network.now.ticks_ms + seconds * 1000)
    pair.network.run(DIRECTORY_POLL_S * 1000)


def test_a_renewal_that_fails_is_told_and_leaves_the_old_keys(pair: Pair) -> None:
    before = pair.published()
    reply = pair.beta.soon(api.RenewKeys())
    assert isinstance(reply, api.Failed)
    assert "disk is full" in reply.detail
    assert pair.published() == before


def test_nobody_knows_the_keys_of_a_stranger(pair: Pair) -> None:
    reply = pair.alpha.ask(api.GetEncryptionKeys(bytes(16)))
    assert isinstance(reply, api.Failed)
    assert "no directory here knows" in reply.detail
    assert isinstance(pair.alpha.ask(api.GetEncryptionKeys(b"short")), api.Failed)
    assert pair.alpha.ok(api.GetEncryptionKeys(bytes(pair.alpha.identifier))).keys == []
    assert isinstance(pair.alpha.ask(api.RenewKeys()), api.Failed)


# Queues of the own computer.


def test_local_queues_verify_what_they_are_sent(pair: Pair) -> None:
    pair.alpha.create(ORDERS, authentication_required=True)
    pair.register(certificate())
    opened = pair.opened(ORDERS)
    packet = pair.packet(opened)

    def send(data: bytes) -> api.AnyReply | None:
        return pair.alpha.ask(api.Send(opened.handle, [data]))

    refused = send(packet)
    assert isinstance(refused, api.Failed)
    assert "takes only authenticated messages" in refused.detail
    signed = sign(packet, signer(), AuthenticationRequest.ALWAYS, pair.alpha.identifier)
    assert isinstance(send(signed), api.Sent)
    refused = send(spoiled(signed))
    assert isinstance(refused, api.Failed)
    assert "does not hold" in refused.detail
    [message] = pair.alpha.messages(ORDERS)
    assert level_of(message) is AuthenticationLevel.SIGNATURE_20


def test_local_queues_for_encrypted_messages_take_those_that_wanted_it(pair: Pair) -> None:
    pair.alpha.create(ORDERS, privacy=QueuePrivacy.BODY)
    opened = pair.opened(ORDERS)
    packet = pair.packet(opened)
    refused = pair.alpha.ask(api.Send(opened.handle, [packet]))
    assert isinstance(refused, api.Failed)
    assert "takes only encrypted messages" in refused.detail
    message = decode(packet)
    assert isinstance(message, UserMessage)
    wanted = msgspec.structs.replace(message.properties, privacy_level=PrivacyLevel.ADVANCED)
    marked = encode(msgspec.structs.replace(message, properties=wanted))
    assert isinstance(pair.alpha.ask(api.Send(opened.handle, [marked])), api.Sent)
