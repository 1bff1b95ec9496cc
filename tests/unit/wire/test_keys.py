"""Key blobs, byte for byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.keys import (
    KeyUse,
    ProviderType,
    PublishedKey,
    PublishedKeys,
    RsaPublicKey,
    SessionAlgorithm,
    SessionKeyBlob,
    UserCertificate,
    UserCertificates,
)
from tests.strategies.wire_parts import (
    published_keys,
    rsa_public_keys,
    session_key_blobs,
    user_certificates,
)
from tests.unit.wire.codec_checks import (
    assert_decodes_to_same_or_refused,
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_refused_cheaply,
    damaged,
)

BASE = "Microsoft Base Cryptographic Provider v1.0"
ENHANCED = "Microsoft Enhanced Cryptographic Provider v1.0"
AES = "Microsoft Enhanced RSA and AES Cryptographic Provider"


def key_of(bits: int) -> RsaPublicKey:
    return RsaPublicKey(bits, 65537, (1 << bits) - 12345)


THREE = PublishedKeys(
    (
        PublishedKey(ProviderType.RSA_FULL, BASE, key_of(512).encode()),
        PublishedKey(ProviderType.RSA_FULL, ENHANCED, key_of(1024).encode()),
        PublishedKey(ProviderType.RSA_AES, AES, key_of(1024).encode()),
    )
)


@given(rsa_public_keys())
def test_a_public_key_survives_the_wire(key: RsaPublicKey) -> None:
    assert RsaPublicKey.decode(key.encode()) == key
    assert_fields_cover(key.fields(), len(key.encode()))
    assert_no_prefix_decodes(RsaPublicKey.decode, key.encode())


@given(session_key_blobs())
def test_a_session_key_survives_the_wire(blob: SessionKeyBlob) -> None:
    assert SessionKeyBlob.decode(blob.encode()) == blob
    assert_fields_cover(blob.fields(), len(blob.encode()))


@given(published_keys())
def test_published_keys_survive_the_wire(keys: PublishedKeys) -> None:
    assert PublishedKeys.decode(keys.encode()) == keys
    assert_fields_cover(keys.fields(), len(keys.encode()))
    assert_no_prefix_decodes(PublishedKeys.decode, keys.encode())


@given(user_certificates())
def test_certificates_survive_the_wire(certificates: UserCertificates) -> None:
    assert UserCertificates.decode(certificates.encode()) == certificates
    assert_fields_cover(certificates.fields(), len(certificates.encode()))
    assert_no_prefix_decodes(UserCertificates.decode, certificates.encode())


@given(damaged(rsa_public_keys().map(RsaPublicKey.encode)))
def test_any_bytes_are_a_public_key_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(RsaPublicKey.decode, data)


@given(damaged(session_key_blobs().map(SessionKeyBlob.encode)))
def test_any_bytes_are_a_session_key_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(SessionKeyBlob.decode, data)


@given(damaged(published_keys().map(PublishedKeys.encode)))
def test_any_bytes_are_published_keys_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(PublishedKeys.decode, data)


@given(damaged(user_certificates().map(UserCertificates.encode)))
def test_any_bytes_are_certificates_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(UserCertificates.decode, data)


@pytest.mark.spec("MQQB-2.4.1-01", "MQQB-2.4.1-02", "MQQB-2.4.1-03", "MQQB-2.4.1-04")
@pytest.mark.parametrize(("bits", "size"), [(512, 84), (1024, 148), (2048, 276)])
def test_a_public_key_has_its_prefix_and_a_little_endian_modulus(bits: int, size: int) -> None:
    blob = key_of(bits).encode()
    assert blob[:12] == bytes.fromhex("0602000000a4000052534131")
    assert struct.unpack_from("<II", blob, 12) == (bits, 65537)
    assert int.from_bytes(blob[:19:-1], "big") == key_of(bits).modulus
    assert len(blob) == size


@pytest.mark.parametrize(
    ("offset", "layout", "value"),
    [
        (0, "<B", 7),
        (1, "<B", 3),
        (2, "<H", 1),
        (4, "<I", 0x6610),
        (8, "<I", 0x32415352),
        (12, "<I", 0),
        (12, "<I", 511),
        (12, "<I", 520),
        (12, "<I", 0xFFFF_FFF8),
    ],
)
def test_a_public_key_whose_fields_lie_is_refused_cheaply(
    offset: int, layout: str, value: int
) -> None:
    blob = bytearray(key_of(512).encode())
    struct.pack_into(layout, blob, offset, value)
    assert_refused_cheaply(RsaPublicKey.decode, bytes(blob))


def test_a_signing_key_says_so() -> None:
    blob = RsaPublicKey(8, 3, 5, KeyUse.SIGNATURE).encode()
    assert blob[4:8] == bytes.fromhex("00240000")
    assert RsaPublicKey.decode(blob).use is KeyUse.SIGNATURE


@pytest.mark.parametrize(("bits", "modulus"), [(8, 256), (8, -1), (12, 1)])
def test_a_modulus_that_does_not_fit_is_not_written(bits: int, modulus: int) -> None:
    with pytest.raises(EncodeError, match="modulus"):
        RsaPublicKey(bits, 3, modulus).encode()


@pytest.mark.spec("MQQB-2.4.2-01")
@pytest.mark.parametrize(
    ("algorithm", "identifier"),
    [
        (SessionAlgorithm.AES_128, "0e660000"),
        (SessionAlgorithm.AES_192, "0f660000"),
        (SessionAlgorithm.AES_256, "10660000"),
        (SessionAlgorithm.RC2, "02660000"),
        (SessionAlgorithm.RC4, "01680000"),
    ],
)
def test_a_session_key_names_its_algorithm_and_is_little_endian(
    algorithm: SessionAlgorithm, identifier: str
) -> None:
    blob = SessionKeyBlob(algorithm, bytes(range(64))).encode()
    assert blob[:12].hex() == "01020000" + identifier + "00a40000"
    assert blob[12:] == bytes(range(63, -1, -1))


@pytest.mark.parametrize(
    ("offset", "value"), [(0, 2), (1, 1), (2, 1), (4, 0), (4, 0x11), (8, 1), (9, 0x24)]
)
def test_a_session_key_whose_fields_lie_is_refused(offset: int, value: int) -> None:
    blob = bytearray(SessionKeyBlob(SessionAlgorithm.AES_256, b"key").encode())
    blob[offset] = value
    with pytest.raises(DecodeError):
        SessionKeyBlob.decode(bytes(blob))


def test_an_empty_session_key_is_neither_written_nor_read() -> None:
    blob = SessionKeyBlob(SessionAlgorithm.RC4, b"k").encode()
    with pytest.raises(DecodeError, match="empty"):
        SessionKeyBlob.decode(blob[:-1])
    with pytest.raises(DecodeError):
        SessionKeyBlob.decode(blob[:11])
    with pytest.raises(EncodeError, match="empty"):
        SessionKeyBlob(SessionAlgorithm.RC4, b"").encode()


@pytest.mark.spec(
    "MQMQ-2.2.1-01",
    "MQMQ-2.2.1-02",
    "MQMQ-2.2.1-03",
    "MQMQ-2.2.1-05",
    "MQMQ-2.2.2-01",
    "MQMQ-2.2.2-02",
)
def test_three_keys_of_512_1024_and_1024_bits_have_712_bytes() -> None:
    raw = THREE.encode()
    assert len(raw) == 712
    assert struct.unpack_from("<IIIII", raw) == (712, 3, 84, 2 * len(BASE) + 2, 1)
    assert raw[20:106] == (BASE + "\0").encode("utf-16-le")
    assert raw[106:118] == bytes.fromhex("0602000000a4000052534131")
    assert [entry.key for entry in PublishedKeys.decode(raw).keys] == [
        key_of(512),
        key_of(1024),
        key_of(1024),
    ]


def test_one_bad_key_does_not_hide_the_others() -> None:
    bad = PublishedKey(ProviderType.RSA_FULL, "other", b"no key")
    found = PublishedKeys.decode(PublishedKeys((bad, *THREE.keys)).encode())
    assert found.keys[1].key == key_of(512)
    with pytest.raises(DecodeError):
        _ = found.keys[0].key


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        *((0, size) for size in (0, 711, 713)),
        *((4, count) for count in (0, 2, 4, 0xFFFF_FFFF)),
        *((8, key_size) for key_size in (0, 83, 85, 0xFFFF_FFFF)),
        *((12, name_size) for name_size in (0, 84, 85, 88, 0xFFFF_FFFF)),
    ],
)
def test_a_size_or_count_of_keys_that_lies_is_refused_cheaply(offset: int, value: int) -> None:
    raw = bytearray(THREE.encode())
    struct.pack_into("<I", raw, offset, value)
    assert_refused_cheaply(PublishedKeys.decode, bytes(raw))


@pytest.mark.spec("MQMQ-2.2.1-04")
@pytest.mark.parametrize("provider_type", [0, 2, 0x17, 0x19])
def test_a_provider_is_of_one_of_two_types(provider_type: int) -> None:
    assert [entry.provider_type for entry in PublishedKeys.decode(THREE.encode()).keys] == [
        1,
        1,
        24,
    ]
    raw = bytearray(THREE.encode())
    struct.pack_into("<I", raw, 16, provider_type)
    with pytest.raises(DecodeError, match="provider type"):
        PublishedKeys.decode(bytes(raw))


def test_certificates_stand_back_to_back() -> None:
    first = UserCertificate(b"d" * 16, Guid(range(16)), b"der")
    second = UserCertificate(b"e" * 16, NIL_GUID, b"more")
    raw = UserCertificates((first, second)).encode()
    assert raw == b"".join(
        (
            b"\2\0\0\0",
            b"d" * 16 + bytes(range(16)) + b"\3\0\0\0der",
            b"e" * 16 + bytes(16) + b"\4\0\0\0more",
        )
    )


@pytest.mark.parametrize(("offset", "value"), [(0, 0), (0, 2), (0, 0xFFFF_FFFF), (36, 2), (36, 4)])
def test_a_size_or_count_of_certificates_that_lies_is_refused_cheaply(
    offset: int, value: int
) -> None:
    raw = bytearray(UserCertificates((UserCertificate(bytes(16), NIL_GUID, b"der"),)).encode())
    struct.pack_into("<I", raw, offset, value)
    assert_refused_cheaply(UserCertificates.decode, bytes(raw))


def test_a_digest_has_16_bytes() -> None:
    with pytest.raises(EncodeError, match="digest"):
        UserCertificate(b"short", NIL_GUID, b"").encode()
