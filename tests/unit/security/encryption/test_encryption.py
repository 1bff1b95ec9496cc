"""Encrypting and decrypting bodies: every cipher, every wrong thing, and the caches."""

from __future__ import annotations

import random
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import (
    EncryptionNotSupported,
    EncryptionProviderNotSupported,
    MsmqError,
    PublicKeyNotFound,
    UnsupportedFormatName,
)
from openmsmq.model.identity import Guid
from openmsmq.model.limits import (
    KEY_CACHE_MS,
    PACKET_MAX_BYTES,
    RECEIVE_KEY_CACHE_MAX_COUNT,
    SEND_KEY_CACHE_MAX_COUNT,
)
from openmsmq.model.message import AuthenticationRequest, MessageClass, PrivacyLevel
from openmsmq.model.topology import PublicKey
from openmsmq.security import legacy, rsa
from openmsmq.security.encryption.decryption import (
    BAD_KEYS_MAX_COUNT,
    PRIVATE_KEYS_MAX_COUNT,
    BadEncryption,
    EncryptionKey,
    ReceiveKeys,
)
from openmsmq.security.encryption.encryption import SendKeys
from openmsmq.security.policy import BAD_MESSAGES_PER_KEY_MAX_COUNT, SecurityPolicy
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED, PROVIDERS, Provider
from openmsmq.security.signatures.signatures import check_signature, sign
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.headers.security import DEFAULT_PROVIDER, ProviderInfo
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.keys import ProviderType, RsaPublicKey, SessionAlgorithm, SessionKeyBlob
from openmsmq.wire.packets import UserMessage
from tests.strategies.keys import (
    ANYTHING_GOES,
    DESTINATION,
    QUEUE,
    SOURCE,
    changed,
    encryption_key,
    letter,
    private_key,
    signer,
    user_message,
    with_properties,
    with_security,
)
from tests.strategies.packets import user_messages

POLICY = SecurityPolicy()
AES = [SessionAlgorithm.AES_128, SessionAlgorithm.AES_192, SessionAlgorithm.AES_256]
OLD = [SessionAlgorithm.RC2, SessionAlgorithm.RC4]
ROUND_TRIPS = [*product([ADVANCED], AES), *product([ENHANCED, BASE], OLD)]
BAD = MessageClass.NACK_BAD_ENCRYPTION
UNSUPPORTED = MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER


def policy_for(algorithm: SessionAlgorithm, **values: object) -> SecurityPolicy:
    """Return a policy that uses one cipher."""
    return msgspec.structs.replace(
        ANYTHING_GOES,
        ciphers=frozenset({algorithm}),
        preferred_cipher=algorithm,
        preferred_old_cipher=algorithm,
        **values,
    )


def encrypted(
    message: UserMessage | None = None,
    *,
    key: EncryptionKey | None = None,
    policy: SecurityPolicy = POLICY,
    seed: int = 0,
) -> bytes:
    """Encrypt a message for one key pair, with a new session key."""
    return SendKeys(policy).encrypt(
        packets.encode(message or letter()),
        DESTINATION,
        [(key or encryption_key()).published()],
        PrivacyLevel.BASE,
        0,
        random.Random(seed).randbytes,
    )


def receiver(*keys: EncryptionKey, policy: SecurityPolicy = POLICY) -> ReceiveKeys:
    return ReceiveKeys(policy, keys or (encryption_key(),))


def refused(keys: ReceiveKeys, packet: bytes, now_ms: int = 0) -> MessageClass:
    """Return the class with which a message is refused."""
    with pytest.raises(BadEncryption) as raised:
        keys.decrypt(packet, now_ms)
    return raised.value.message_class


def outcome(keys: ReceiveKeys, packet: bytes) -> bytes | BadEncryption:
    """Return what comes of a message."""
    try:
        return keys.decrypt(packet, 0)
    except BadEncryption as error:
        return error


def blob_of(packet: bytes) -> bytes:
    header = user_message(packet).security
    assert header is not None
    return header.encryption_key


def own_session_key(
    packet: bytes, secret: bytes, algorithm: SessionAlgorithm, key: EncryptionKey | None = None
) -> bytes:
    """Put another session key into an encrypted packet."""
    public = (key or encryption_key()).key.public
    wrapped = rsa.encrypt(public, secret, random.Random(9).randbytes)
    return with_security(packet, encryption_key=SessionKeyBlob(algorithm, wrapped).encode())


@pytest.mark.spec(
    "MQQB-3.1.7.1.5-02",
    "MQQB-3.1.7.1.5-06",
    "MQQB-3.1.7.1.5-13",
    "MQQB-3.1.5.8.3-17",
    "MQMQ-2.2.20.6-06",
)
@pytest.mark.parametrize(("provider", "algorithm"), ROUND_TRIPS)
@pytest.mark.parametrize("size", [0, 1, 7, 8, 15, 16, 17, 1024])
def test_every_cipher_carries_a_body_to_its_destination(
    provider: Provider, algorithm: SessionAlgorithm, size: int
) -> None:
    message = letter(random.Random(size).randbytes(size))
    policy = policy_for(algorithm)
    key = encryption_key(provider)
    packet = encrypted(message, key=key, policy=policy)
    if size >= 8:
        assert message.properties.body not in packet
    body = user_message(receiver(key, policy=policy).decrypt(packet, 0)).properties.body
    assert body == message.properties.body


@pytest.mark.spec(
    "MQQB-3.1.7.1.5-14",
    "MQQB-3.1.7.1.5-15",
    "MQQB-3.1.7.1.5-17",
    "MQMQ-2.2.19.3-20",
    "MQMQ-2.2.19.3-26",
    "MQDMPR-3.1.7.1.32-10",
)
@pytest.mark.parametrize(("provider", "algorithm"), ROUND_TRIPS)
def test_a_packet_says_how_its_body_is_encrypted(
    provider: Provider, algorithm: SessionAlgorithm
) -> None:
    key = encryption_key(provider)
    message = user_message(encrypted(letter(bytes(2000)), key=key, policy=policy_for(algorithm)))
    properties = message.properties
    blocks = {SessionAlgorithm.RC4: 2000, SessionAlgorithm.RC2: 2008}
    assert properties.body_size == 2000
    assert properties.allocated_size == len(properties.body) == blocks.get(algorithm, 2016)
    assert properties.privacy_level == provider.level
    assert properties.encryption_algorithm == algorithm
    assert message.security is not None
    assert message.security.body_encrypted
    blob = SessionKeyBlob.decode(message.security.encryption_key)
    assert blob.algorithm is algorithm
    assert 8 * len(blob.encrypted_key) == provider.key_bits


@pytest.mark.spec("MQDMPR-3.1.1.12-06", "MQDMPR-3.1.1.12-07", "MQDMPR-3.1.1.12-08")
@pytest.mark.parametrize(
    ("provider", "algorithm", "level", "key_bytes"),
    [
        (BASE, SessionAlgorithm.RC4, 1, 5),
        (BASE, SessionAlgorithm.RC2, 1, 5),
        (ENHANCED, SessionAlgorithm.RC4, 3, 16),
        (ENHANCED, SessionAlgorithm.RC2, 3, 16),
        (ADVANCED, SessionAlgorithm.AES_128, 5, 16),
        (ADVANCED, SessionAlgorithm.AES_192, 5, 24),
        (ADVANCED, SessionAlgorithm.AES_256, 5, 32),
    ],
)
def test_each_level_protects_a_body_with_a_key_of_its_length(
    provider: Provider, algorithm: SessionAlgorithm, level: int, key_bytes: int
) -> None:
    """40 bits, 128 bits, AES."""
    key = encryption_key(provider)
    packet = encrypted(letter(b"nobody else reads"), key=key, policy=policy_for(algorithm))
    assert b"nobody else reads" not in packet
    properties = user_message(packet).properties
    assert (properties.privacy_level, properties.encryption_algorithm) == (level, algorithm)
    secret = key.key.decrypt(SessionKeyBlob.decode(blob_of(packet)).encrypted_key)
    assert secret is not None
    assert len(secret) == key_bytes
    opened = receiver(key, policy=policy_for(algorithm)).decrypt(packet, 0)
    assert user_message(opened).properties.body == b"nobody else reads"


@pytest.mark.spec("MQQB-3.1.7.1.5-16", "MQMQ-2.2.20.6-07")
def test_a_packet_names_the_provider_of_its_key() -> None:
    header = user_message(encrypted()).security
    assert header is not None
    assert not header.flags & DEFAULT_PROVIDER
    assert ProviderInfo.decode(header.provider_info) == ProviderInfo(
        ProviderType.RSA_AES, "Microsoft Enhanced RSA and AES Cryptographic Provider"
    )


@given(user_messages(), st.sampled_from(AES))
def test_encrypting_and_decrypting_changes_nothing_else(
    message: UserMessage, algorithm: SessionAlgorithm
) -> None:
    header = msgspec.structs.replace(
        message.user, destination=PublicName(QUEUE), padding=b"", destination_manager=DESTINATION
    )
    plain = packets.encode(msgspec.structs.replace(message, user=header))
    before = user_message(plain)
    if before.security is not None and before.security.body_encrypted:
        return
    policy = policy_for(algorithm)
    keys = [encryption_key().published()]
    packet = SendKeys(policy).encrypt(
        plain, DESTINATION, keys, PrivacyLevel.ADVANCED, 0, random.Random(1).randbytes
    )
    after = user_message(receiver(policy=policy).decrypt(packet, 0))
    body = before.properties.body[: before.properties.body_size]
    assert after.properties == msgspec.structs.replace(
        before.properties,
        body=body,
        body_size=len(body),
        allocated_size=len(body),
        privacy_level=5,
        encryption_algorithm=int(algorithm),
        padding=b"",
    )
    kept = ("sender_id", "signature", "sender_certificate")
    said = [getattr(before.security, item, b"") for item in kept]
    # What only served to decrypt is gone, and the header with it if there was nothing else.
    assert (after.security is None) is not any(said)
    if after.security is not None:
        assert before.security is not None
        assert not after.security.body_encrypted
        assert (after.security.encryption_key, after.security.provider_info) == (b"", b"")
        assert after.security.flags & DEFAULT_PROVIDER
        assert [getattr(after.security, item) for item in kept] == said
        assert after.security.sender_kind == before.security.sender_kind
    for part in ("user", "base", "transaction", "debug", "soap", "multi_queue", "session", "tail"):
        assert getattr(after, part) == getattr(before, part)


def test_a_packet_without_encryption_is_left_alone() -> None:
    packet = packets.encode(letter())
    assert receiver().decrypt(packet, 0) is packet


def test_a_security_header_that_has_nothing_left_is_taken_out() -> None:
    packet = with_security(encrypted(), provider_info=b"")
    decrypted = user_message(receiver().decrypt(packet, 0))
    assert decrypted.security is None
    assert decrypted.properties.body == b"one body"


def test_a_signed_message_is_decrypted_before_its_signature_is_checked() -> None:
    packet = sign(packets.encode(letter()), signer(), AuthenticationRequest.ALWAYS, SOURCE)
    sent = SendKeys(POLICY).encrypt(
        packet,
        DESTINATION,
        [encryption_key().published()],
        PrivacyLevel.ADVANCED,
        0,
        random.Random(1).randbytes,
    )
    check_signature(user_message(receiver().decrypt(sent, 0)), POLICY)


def test_the_same_random_bytes_make_the_same_packet() -> None:
    assert encrypted(seed=1) == encrypted(seed=1) != encrypted(seed=2)


# Which key and which cipher.


def choose(level: PrivacyLevel, *names: Provider, policy: SecurityPolicy = ANYTHING_GOES) -> int:
    """Return the level that a message gets for a destination with keys of some providers."""
    packet = SendKeys(policy).encrypt(
        packets.encode(letter()),
        DESTINATION,
        [encryption_key(provider).published() for provider in names],
        level,
        0,
        random.Random(1).randbytes,
    )
    return user_message(packet).properties.privacy_level


@pytest.mark.spec("MQQB-3.1.7.1.5-06")
def test_the_best_key_of_the_destination_is_used_and_the_level_says_which() -> None:
    for level in (PrivacyLevel.BASE, PrivacyLevel.ENHANCED, PrivacyLevel.ADVANCED):
        assert choose(level, BASE, ENHANCED, ADVANCED) == 5
    assert choose(PrivacyLevel.ENHANCED, BASE, ENHANCED) == 3
    assert choose(PrivacyLevel.BASE, BASE, ENHANCED) == 3
    assert choose(PrivacyLevel.BASE, BASE) == 1


@pytest.mark.spec("MQQB-3.1.7.1.5-06")
@pytest.mark.parametrize(
    ("level", "names"),
    [
        (PrivacyLevel.ADVANCED, (BASE, ENHANCED)),
        (PrivacyLevel.ENHANCED, (BASE,)),
    ],
)
def test_less_than_what_is_wanted_is_an_error(
    level: PrivacyLevel, names: tuple[Provider, ...]
) -> None:
    with pytest.raises(EncryptionProviderNotSupported, match=level.name):
        choose(level, *names)


def test_broken_ciphers_are_used_only_if_the_policy_has_them() -> None:
    with pytest.raises(EncryptionProviderNotSupported, match="security policy"):
        choose(PrivacyLevel.BASE, BASE, ENHANCED, policy=POLICY)
    assert choose(PrivacyLevel.BASE, ENHANCED, policy=policy_for(SessionAlgorithm.RC4)) == 3


def test_another_aes_is_used_if_the_policy_does_not_have_the_preferred_one() -> None:
    policy = SecurityPolicy(ciphers=frozenset({SessionAlgorithm.AES_192}))
    packet = encrypted(policy=policy)
    assert user_message(packet).properties.encryption_algorithm == SessionAlgorithm.AES_192


@pytest.mark.parametrize(
    "spelling",
    [
        "Microsoft Enhanced RSA and AES Cryptographic Provider",
        "microsoft enhanced RSA  and AES cryptographic provider",
        "Microsoft AES Cryptographic Provider",
    ],
)
def test_providers_are_known_in_all_their_spellings(spelling: str) -> None:
    published = encryption_key().published()
    keys = [PublicKey("Nobody's", 1, b""), PublicKey(spelling, 24, published.blob)]
    packet = SendKeys(POLICY).encrypt(
        packets.encode(letter()),
        DESTINATION,
        keys,
        PrivacyLevel.ADVANCED,
        0,
        random.Random(1).randbytes,
    )
    assert user_message(receiver().decrypt(packet, 0)).properties.body == b"one body"


@pytest.mark.spec("MQQB-3.1.7.1.5.2-01")
def test_a_published_key_is_read_as_the_key_that_it_is() -> None:
    key = encryption_key()
    published = RsaPublicKey.decode(key.published().blob)
    assert (published.bit_length, published.exponent) == (1024, 65537)
    assert published.modulus == key.key.library_key.private_numbers().public_numbers.n


def attempt(
    keys: list[PublicKey], message: UserMessage | None = None, policy: SecurityPolicy = POLICY
) -> bytes:
    return SendKeys(policy).encrypt(
        packets.encode(message or letter()),
        DESTINATION,
        keys,
        PrivacyLevel.BASE,
        0,
        random.Random(1).randbytes,
    )


def test_a_destination_without_keys_is_an_error() -> None:
    with pytest.raises(PublicKeyNotFound):
        attempt([])


@pytest.mark.parametrize("blob", [b"", b"no key", encryption_key().published().blob[:-1]])
def test_a_published_key_that_cannot_be_read_is_an_error(blob: bytes) -> None:
    with pytest.raises(EncryptionNotSupported, match="cannot be read"):
        attempt([PublicKey(ADVANCED.name, 24, blob)])


def test_a_published_key_that_is_too_short_is_an_error_unless_the_policy_takes_it() -> None:
    short = EncryptionKey(ADVANCED, private_key(512))
    with pytest.raises(EncryptionNotSupported, match="512 bits; 1024 to"):
        attempt([short.published()])
    packet = attempt([short.published()], policy=ANYTHING_GOES)
    assert receiver(short, policy=ANYTHING_GOES).decrypt(packet, 0)


def test_a_body_for_a_direct_name_cannot_be_encrypted() -> None:
    direct = msgspec.structs.replace(
        letter(), user=UserHeader(SOURCE, destination=DirectName(r"OS:host\q"))
    )
    with pytest.raises(UnsupportedFormatName):
        attempt([encryption_key().published()], direct)
    private = msgspec.structs.replace(
        letter(), user=UserHeader(SOURCE, DESTINATION, destination=PrivateOnDestination(5))
    )
    assert attempt([encryption_key().published()], private)


def test_a_packet_that_encryption_makes_too_long_is_refused() -> None:
    room = PACKET_MAX_BYTES - len(packets.encode(letter(b"")))
    with pytest.raises(EncodeError, match="shorten the body"):
        attempt([encryption_key().published()], letter(bytes(room)))


@pytest.mark.spec("MQQB-3.1.7.1.5-09", "MQQB-3.1.5.8.3-29", "MQQB-3.1.1.3-02", "MQQB-3.1.1.3-03")
def test_a_key_of_40_bits_is_filled_with_zeros_and_refused_where_it_should_be() -> None:
    policy = policy_for(SessionAlgorithm.RC2, send_rc2_40_bit=True)
    key = encryption_key(ENHANCED)
    packet = encrypted(key=key, policy=policy)
    secret = key.key.decrypt(SessionKeyBlob.decode(blob_of(packet)).encrypted_key)
    assert secret is not None
    assert (len(secret), secret[5:]) == (16, bytes(11))
    assert receiver(key, policy=policy).decrypt(packet, 0)
    strict = msgspec.structs.replace(policy, reject_rc2_40_bit=True)
    assert refused(receiver(key, policy=strict), packet) is BAD
    full = encrypted(key=key, policy=policy_for(SessionAlgorithm.RC2))
    assert receiver(key, policy=strict).decrypt(full, 0)


@pytest.mark.parametrize(
    ("secret", "used", "bits"),
    [
        (bytes(range(16)), bytes(range(16)), 40),
        (bytes(range(5)), bytes(range(5)) + bytes(11), 40),
        (bytes(range(5)), bytes(range(5)), 40),
    ],
)
def test_rc2_of_old_senders_is_decrypted(secret: bytes, used: bytes, bits: int) -> None:
    key = encryption_key(ENHANCED)
    policy = policy_for(SessionAlgorithm.RC2)
    body = legacy.rc2(used, bits, b"old body" + b"\x08" * 8, encrypts=True)
    packet = own_session_key(
        encrypted(letter(b"12345678"), key=key, policy=policy), secret, SessionAlgorithm.RC2, key
    )
    decrypted = receiver(key, policy=policy).decrypt(with_properties(packet, body=body), 0)
    assert user_message(decrypted).properties.body == b"old body"


# What is wrong, and the class that says so.


@pytest.mark.spec("MQQB-3.1.5.8.3-33")
@pytest.mark.parametrize(("provider", "algorithm"), [*product([ADVANCED], AES)])
def test_a_key_of_another_queue_manager_is_bad_encryption(
    provider: Provider, algorithm: SessionAlgorithm
) -> None:
    policy = policy_for(algorithm)
    for seed in range(8):
        packet = encrypted(key=encryption_key(provider, 1), policy=policy, seed=seed)
        keys = receiver(encryption_key(provider), policy=policy)
        assert refused(keys, packet) is BAD
        assert len(keys.cache) == 0


@pytest.mark.spec("MQQB-3.1.5.8.3-18", "MQMQ-2.2.19.3-21")
@pytest.mark.parametrize("level", [0, 2, 4, 6, 0xFFFFFFFF])
def test_a_privacy_level_that_is_none_is_bad_encryption(level: int) -> None:
    assert refused(receiver(), with_properties(encrypted(), privacy_level=level)) is BAD


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_without_a_key_here_is_unsupported(provider: Provider) -> None:
    algorithm = SessionAlgorithm.AES_256 if provider is ADVANCED else SessionAlgorithm.RC4
    packet = encrypted(key=encryption_key(provider), policy=policy_for(algorithm))
    others = [encryption_key(other) for other in PROVIDERS if other is not provider]
    assert refused(receiver(*others, policy=ANYTHING_GOES), packet) is UNSUPPORTED
    assert refused(ReceiveKeys(ANYTHING_GOES), packet) is UNSUPPORTED


def test_a_key_that_the_policy_finds_too_short_is_as_good_as_none() -> None:
    key = encryption_key(BASE)
    packet = encrypted(key=key, policy=policy_for(SessionAlgorithm.RC4))
    strict = msgspec.structs.replace(ANYTHING_GOES, smallest_key_bits=1024)
    assert refused(receiver(key, policy=strict), packet) is UNSUPPORTED


@pytest.mark.spec("MQMQ-2.2.19.3-25")
@pytest.mark.parametrize("cipher", [0, 0x6601, 0x6802, 0xFFFFFFFF, *OLD])
def test_a_cipher_that_is_not_allowed_is_bad_encryption(cipher: int) -> None:
    packet = with_properties(encrypted(), encryption_algorithm=int(cipher))
    assert refused(receiver(), packet) is BAD


@pytest.mark.parametrize("algorithm", OLD)
def test_an_old_cipher_with_the_provider_of_aes_is_bad_encryption(
    algorithm: SessionAlgorithm,
) -> None:
    key = encryption_key(ENHANCED)
    packet = encrypted(key=key, policy=policy_for(algorithm))
    keys = receiver(key, EncryptionKey(ADVANCED, key.key), policy=ANYTHING_GOES)
    assert keys.decrypt(packet, 0)
    assert refused(keys, with_properties(packet, privacy_level=5)) is BAD


def test_a_session_key_for_another_cipher_than_the_body_s_is_bad_encryption() -> None:
    packet = encrypted(policy=policy_for(SessionAlgorithm.AES_128))
    assert receiver().decrypt(packet, 0)
    other = with_properties(packet, encryption_algorithm=int(SessionAlgorithm.AES_256))
    assert refused(receiver(), other) is BAD


@pytest.mark.parametrize("level", [1, 3])
def test_aes_on_a_lower_level_is_decrypted_with_the_key_for_aes(level: int) -> None:
    packet = with_properties(encrypted(), privacy_level=level)
    decrypted = user_message(receiver().decrypt(packet, 0))
    assert (decrypted.properties.body, decrypted.properties.privacy_level) == (b"one body", level)


def test_a_key_of_the_same_length_is_tried_whichever_provider_it_stands_for() -> None:
    swapped = EncryptionKey(ENHANCED, encryption_key(ADVANCED, 1).key)
    packet = encrypted(key=EncryptionKey(ADVANCED, swapped.key))
    keys = receiver(encryption_key(), swapped)
    assert user_message(keys.decrypt(packet, 0)).properties.body == b"one body"


@pytest.mark.spec("MQQB-3.1.5.8.3-24")
@pytest.mark.parametrize(
    "blob",
    [b"", b"x", bytes(140), b"\1\2\0\0\x0e\x66\0\0\0\xa4\0\0" + bytes(128)],
    ids=["none", "short", "zeros", "another cipher"],
)
def test_what_is_no_session_key_is_bad_encryption(blob: bytes) -> None:
    assert refused(receiver(), with_security(encrypted(), encryption_key=blob)) is BAD


@pytest.mark.spec("MQQB-3.1.5.8.3-24")
@pytest.mark.parametrize("place", range(4), ids=["type", "version", "reserved", "reserved too"])
def test_a_session_key_is_a_simple_blob(place: int) -> None:
    packet = encrypted()
    blob = bytearray(blob_of(packet))
    blob[place] ^= 7
    assert refused(receiver(), with_security(packet, encryption_key=bytes(blob))) is BAD


@pytest.mark.spec("MQQB-3.1.5.8.3-33")
@given(st.data())
def test_whatever_is_wrong_with_key_or_body_is_one_and_the_same_class(data: st.DataObject) -> None:
    packet = encrypted(letter(b"a body of more than one block"))
    message = user_message(packet)
    blob = blob_of(packet)
    start = packet.index(blob) + 12
    key_bytes = range(start, start + len(blob) - 12)
    body_start = packet.index(message.properties.body)
    body_bytes = range(body_start, body_start + len(message.properties.body))
    at = data.draw(st.sampled_from([*key_bytes]) | st.sampled_from([*body_bytes]))
    mangled = changed(packet, at, data.draw(st.integers(1, 255)))
    keys = receiver()
    found = outcome(keys, mangled)
    if isinstance(found, BadEncryption):
        assert found.message_class is BAD
        assert found.reason == "the session key or the body is not what it should be"
        assert len(keys.cache) == 0
        return
    # Encryption alone does not protect a body against changes; a signature does.
    assert at in body_bytes
    assert len(found) == len(keys.decrypt(packet, 0))


@pytest.mark.parametrize("size", [1, 64, 127, 129, 256, 60_000])
def test_a_session_key_that_fits_no_key_pair_is_bad_encryption(size: int) -> None:
    blob = blob_of(encrypted())[:12] + bytes(size)
    keys = receiver()
    packet = with_security(encrypted(), encryption_key=blob)
    for _ in range(BAD_MESSAGES_PER_KEY_MAX_COUNT + 1):
        with pytest.raises(BadEncryption, match=f"{size} bytes, which fits no key here") as raised:
            keys.decrypt(packet, 0)
        assert raised.value.message_class is BAD


@pytest.mark.parametrize("size", [0, 1, 8, 15, 17, 24, 31, 33, 64, 100])
def test_a_session_key_of_a_wrong_size_is_bad_encryption(size: int) -> None:
    packet = own_session_key(encrypted(), bytes(size), SessionAlgorithm.AES_256)
    keys = receiver()
    assert refused(keys, packet) is BAD
    assert len(keys.cache) == 0


def test_the_key_that_stands_in_for_a_wrong_one_opens_nothing() -> None:
    # Whoever knows it must not be able to send with it.
    policy = policy_for(SessionAlgorithm.AES_256)
    for stand_in in (bytes(32), b"\xff" * 32):
        sender = SendKeys(policy)
        good = sender.encrypt(
            packets.encode(letter()),
            DESTINATION,
            [encryption_key().published()],
            PrivacyLevel.ADVANCED,
            0,
            lambda size, fill=stand_in: fill[:1] * size if size == 32 else b"\1" * size,
        )
        wrong = with_security(good, encryption_key=blob_of(good)[:12] + bytes(128))
        assert refused(receiver(policy=policy), wrong) is BAD
        wrong = own_session_key(good, bytes(5), SessionAlgorithm.AES_256)
        assert refused(receiver(policy=policy), wrong) is BAD


@pytest.mark.parametrize("error", [-9, -8, -1, 1, 7, 8, 16])
@pytest.mark.parametrize(("provider", "algorithm"), ROUND_TRIPS)
def test_another_size_of_the_body_is_bad_encryption(
    provider: Provider, algorithm: SessionAlgorithm, error: int
) -> None:
    policy = policy_for(algorithm)
    key = encryption_key(provider)
    packet = encrypted(letter(bytes(20)), key=key, policy=policy)
    size = 20 + error
    body = user_message(packet).properties.body
    if size > len(body):
        # RC4 has no padding: there a body that fits its size cannot be told from a right one.
        body += bytes(size - len(body) + (algorithm is SessionAlgorithm.RC4))
    packet = with_properties(packet, body=body, body_size=size, allocated_size=len(body))
    assert refused(receiver(key, policy=policy), packet) is BAD


@given(st.binary(max_size=200))
def test_what_is_no_packet_is_left_to_the_decoder(data: bytes) -> None:
    with pytest.raises(DecodeError):
        receiver().decrypt(data, 0)


@given(st.data())
def test_an_encrypted_packet_with_any_byte_changed_gives_no_other_error(
    data: st.DataObject,
) -> None:
    packet = encrypted()
    at = data.draw(st.integers(0, len(packet) - 1))
    mangled = changed(packet, at, data.draw(st.integers(1, 255)))
    try:
        found = outcome(receiver(), mangled)
    except DecodeError:
        return
    assert isinstance(found, bytes) or found.message_class in (BAD, UNSUPPORTED)


@pytest.mark.parametrize("at", [0, 2, 4, 8, 11], ids=["version", "kind", "mark", "size", "size 2"])
def test_a_packet_whose_first_header_lies_is_left_to_the_decoder(at: int) -> None:
    with pytest.raises(DecodeError):
        receiver().decrypt(changed(encrypted(), at, 8), 0)


# Caches.


@pytest.mark.spec("MQQB-3.1.7.1.5-07", "MQQB-3.1.7.1.5-08", "MQQB-3.1.7.1.5-10")
def test_a_session_key_is_used_again_for_the_same_destination_until_its_time_is_over() -> None:
    keys = SendKeys(POLICY)
    draw = random.Random(1).randbytes
    published = [encryption_key().published()]

    def blob(now_ms: int, destination: Guid = DESTINATION) -> bytes:
        return blob_of(
            keys.encrypt(
                packets.encode(letter()),
                destination,
                published,
                PrivacyLevel.ADVANCED,
                now_ms,
                draw,
            )
        )

    first = blob(0)
    assert blob(KEY_CACHE_MS - 1) == first
    assert blob(0, SOURCE) != first
    assert blob(KEY_CACHE_MS) != first
    assert keys.cache.next_expiry_ms == KEY_CACHE_MS


def test_a_new_key_of_the_destination_is_used_at_once() -> None:
    keys = SendKeys(POLICY)
    draw = random.Random(1).randbytes
    for seed in (0, 1):
        key = encryption_key(seed=seed)
        packet = keys.encrypt(
            packets.encode(letter()),
            DESTINATION,
            [key.published()],
            PrivacyLevel.ADVANCED,
            0,
            draw,
        )
        assert receiver(key).decrypt(packet, 0)


@pytest.mark.spec("MQQB-3.1.7.1.5-11")
def test_a_full_cache_for_sending_forgets_its_older_half() -> None:
    keys = SendKeys(POLICY)
    draw = random.Random(1).randbytes
    published = [encryption_key().published()]
    destinations = [Guid(bytes([number]) * 16) for number in range(SEND_KEY_CACHE_MAX_COUNT + 1)]
    for now_ms, destination in enumerate(destinations):
        keys.encrypt(
            packets.encode(letter()),
            destination,
            published,
            PrivacyLevel.ADVANCED,
            now_ms,
            draw,
        )
        assert len(keys.cache) <= SEND_KEY_CACHE_MAX_COUNT
    assert len(keys.cache) == SEND_KEY_CACHE_MAX_COUNT - SEND_KEY_CACHE_MAX_COUNT // 2 + 1
    assert keys.cache.next_expiry_ms == KEY_CACHE_MS + SEND_KEY_CACHE_MAX_COUNT // 2


@pytest.mark.spec(
    "MQQB-3.1.5.8.3-22", "MQQB-3.1.5.8.3-23", "MQQB-3.1.5.8.3-25", "MQQB-3.1.5.8.3-28"
)
def test_a_session_key_is_remembered_until_its_time_is_over() -> None:
    keys = receiver()
    packet = encrypted()
    keys.decrypt(packet, 0)
    assert len(keys.cache) == 1
    for name in ("source", "level", "cipher", "key"):
        other = {
            "source": packet[:16] + DESTINATION + packet[32:],
            "level": with_properties(packet, privacy_level=3),
            "cipher": encrypted(policy=policy_for(SessionAlgorithm.AES_128)),
            "key": encrypted(seed=1),
        }[name]
        before = len(keys.cache)
        keys.decrypt(other, 0)
        assert len(keys.cache) == before + 1, name
    keys.decrypt(packet, KEY_CACHE_MS - 1)
    assert len(keys.cache) == 5
    keys.forget_expired(KEY_CACHE_MS)
    assert len(keys.cache) == 0


@pytest.mark.spec("MQQB-3.1.5.8.3-26")
def test_a_full_cache_for_receiving_forgets_its_older_half() -> None:
    policy = SecurityPolicy(receive_key_cache_max_count=4)
    keys = receiver(policy=policy)
    for seed in range(5):
        keys.decrypt(encrypted(seed=seed), seed)
    assert len(keys.cache) == 3
    assert keys.cache.next_expiry_ms == KEY_CACHE_MS + 2
    assert POLICY.receive_key_cache_max_count == RECEIVE_KEY_CACHE_MAX_COUNT


def test_what_was_encrypted_for_an_old_key_is_decrypted_after_renewal() -> None:
    old, new = encryption_key(), encryption_key(seed=1)
    keys = receiver(old)
    waiting = encrypted(key=old)
    keys.use([new, old])
    assert keys.decrypt(encrypted(key=new), 0)
    assert keys.decrypt(waiting, 0)
    keys.use([new])
    assert refused(keys, encrypted(key=old)) is BAD


def test_more_key_pairs_than_can_be_tried_are_refused() -> None:
    keys = [encryption_key()] * (PRIVATE_KEYS_MAX_COUNT + 1)
    assert ReceiveKeys(POLICY, keys[1:])
    with pytest.raises(ValueError, match=str(PRIVATE_KEYS_MAX_COUNT)):
        ReceiveKeys(POLICY, keys)


def damaged(packet: bytes) -> bytes:
    """Change the last block of the body, so that its padding is wrong."""
    body = user_message(packet).properties.body
    return with_properties(packet, body=body[:-1] + bytes([body[-1] ^ 0xFF]))


@pytest.mark.parametrize("known", [True, False])
def test_a_session_key_with_which_many_messages_failed_is_given_up_for_a_while(
    known: bool,
) -> None:
    keys = receiver()
    packet = encrypted()
    if known:
        keys.decrypt(packet, 0)
    for _ in range(BAD_MESSAGES_PER_KEY_MAX_COUNT):
        assert refused(keys, damaged(packet), 1) is BAD
    assert refused(keys, packet, 2) is BAD
    # Another source does not help, nor does another level.
    assert refused(keys, packet[:16] + DESTINATION + packet[32:], 2) is BAD
    assert refused(keys, with_properties(packet, privacy_level=3), 2) is BAD
    assert keys.decrypt(encrypted(seed=1), 2)
    assert keys.decrypt(packet, KEY_CACHE_MS + 1)


def test_made_up_keys_do_not_make_an_attacked_one_forgotten() -> None:
    keys = receiver()
    packet = encrypted()
    for _ in range(BAD_MESSAGES_PER_KEY_MAX_COUNT):
        refused(keys, damaged(packet))
    made_up = with_security(packet, encryption_key=blob_of(packet)[:12] + b"\xff" * 128)
    blob = blob_of(made_up)
    for number in range(BAD_KEYS_MAX_COUNT + 1):
        at = made_up.index(blob) + 12
        mangled = made_up[:at] + number.to_bytes(2, "big") + made_up[at + 2 :]
        assert refused(keys, mangled, 1) is BAD
    assert refused(keys, packet, 2) is BAD


def test_nothing_shows_a_key() -> None:
    send, receive = SendKeys(POLICY), receiver()
    packet = send.encrypt(
        packets.encode(letter()),
        DESTINATION,
        [encryption_key().published()],
        PrivacyLevel.ADVANCED,
        0,
        lambda size: b"K" * size,
    )
    receive.decrypt(packet, 0)
    shown = repr((send, send.cache, receive, receive.cache, encryption_key()))
    assert "KKK" not in shown
    assert "4b4b4b" not in shown
    assert "1 of 53" in shown
    assert str(encryption_key().key.library_key.private_numbers().d) not in shown


def test_an_error_says_what_to_do() -> None:
    with pytest.raises(MsmqError) as raised:
        attempt([])
    assert "published its keys in the directory" in str(raised.value)
