"""RSA: the published values, keys of every length, and hostile numbers."""

from __future__ import annotations

import hashlib
import random

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import InvalidParameter, MsmqError
from openmsmq.model.message import HashAlgorithm
from openmsmq.security.hashes import digest_in, digest_info
from openmsmq.security.rsa import (
    EXPONENT_MAX,
    RSA_MAX_BITS,
    RSA_MIN_BITS,
    PrivateKey,
    encrypt,
    key_problem,
    signed_info,
)
from openmsmq.wire.keys import KeyUse, RsaPublicKey
from tests.strategies.keys import private_key

# NIST CAVP, SigVer PKCS#1 v1.5 (FIPS 186-3), mod 1024, e = 3, SHA-1.
FIRST_PRIME = int(
    "c107a2fe924b76e206cb9bc4af2ab7008547c00846bf6d0680b3eac3ebcbd0c7"
    "fd7a54c2b9899b08f80cde1d3691eaaa2816b1eb11822d6be7beaf4e30977c49",
    16,
)
SECOND_PRIME = int(
    "dfea984ce4307eafc0d140c2bb82861e5dbac4f8567cbc981d70440dd6394920"
    "79031486315e305eb83e591c4a2e96064966f7c894c3ca351925b5ce82d8ef0d",
    16,
)
MESSAGE = bytes.fromhex(
    "d73829497cddbe41b705faac50e7899fdb5a38bf3a459e536357029e64f8796b"
    "a47f4fe96ba5a8b9a4396746e2164f55a25368ddd0b9a5188c7ac3da2d1f7422"
    "86c3bdee697f9d546a25efcfe53191d743fcc6b47833d993d08804daeca78fb9"
    "076c3c017f53e33a90305af06220974d46bf19ed3c9b84edbae98b45a8771258"
)
SIGNATURE = bytes.fromhex(
    "175015bda50abe0fa7d39a8353885ca01be3a7e7fcc55045744111362ee19144"
    "73a48dc537d956294b9e20a1ef661d58537acdc8de908fa050630fcc272e6d00"
    "1045e6fdeed2d10531c8603334c2e8db39e73e6d9665ee1343f9e4198302d220"
    "1b44e8e8d06b3ef49cee6197582163a8490089ca654c0012fce1ba6511089750"
)
# The same key; "hash moved to left" and "00 on end of pad removed": both must fail.
MOVED_HASH = bytes.fromhex(
    "417aa0531b1da975066a1311a9bf2fa73f5daf90f0473a8937a27a9c6378c530"
    "12e0b4db3dcb5309b85a3e7f9db161848465f2e8102f75d171b4dc5371c3dca0"
    "bd70626dff5fad68549477fea84db9ac1b405440e178f5d9f74f3935e78a6aaf"
    "774b86d509fb25bd1a93aac9a2cdbce6a897842ea3ae07d3c8b4c43f97e0bf75"
)
NO_SEPARATOR = bytes.fromhex(
    "56b25cc46a9ef9607f4f0f553265996e22a4552fc6cb2752d0595e887afad29f"
    "7f9a390c17dc427c7d9f83f19f6986c60ec6d8f8017c3419cc2a838fe2425c7c"
    "80ceebfa1a0a3de507b5601609fe54b871efde685d23e546d69fbd14a30ebc2e"
    "67ac99446ae4978f1b3c120103294318b253aa9fcee638907b84ac72b25e18fa"
)

SIZES = [512, 1024, 2048]


@pytest.fixture
def published() -> PrivateKey:
    return PrivateKey.from_primes(FIRST_PRIME, SECOND_PRIME, exponent=3)


def library_key(key: PrivateKey) -> rsa.RSAPublicKey:
    return key.library_key.public_key()


def test_a_signature_is_the_published_one_in_little_endian(published: PrivateKey) -> None:
    digest = hashlib.sha1(MESSAGE, usedforsecurity=False).digest()
    assert published.sign(HashAlgorithm.SHA1, digest) == SIGNATURE[::-1]
    assert signed_info(library_key(published), SIGNATURE) == digest_info(HashAlgorithm.SHA1, digest)


@pytest.mark.parametrize("forged", [MOVED_HASH, NO_SEPARATOR])
def test_published_forgeries_hold_no_digest(published: PrivateKey, forged: bytes) -> None:
    info = signed_info(library_key(published), forged)
    assert info is None or digest_in(HashAlgorithm.SHA1, info) is None


@pytest.mark.parametrize("bits", SIZES)
def test_a_session_key_that_we_encrypt_the_library_decrypts(bits: int) -> None:
    key = private_key(bits)
    encrypted = encrypt(key.public, b"sixteen  bytes!!", random.Random(1).randbytes)
    assert len(encrypted) == bits // 8
    assert key.library_key.decrypt(encrypted, PKCS1v15()) == b"sixteen  bytes!!"
    assert key.decrypt(encrypted) == b"sixteen  bytes!!"


@pytest.mark.parametrize("bits", SIZES)
def test_a_session_key_that_the_library_encrypts_we_decrypt(bits: int) -> None:
    key = private_key(bits)
    assert key.decrypt(library_key(key).encrypt(bytes(32), PKCS1v15())) == bytes(32)


def test_what_is_encrypted_is_padded_as_rfc_8017_says() -> None:
    key = private_key(1024)
    drawn = random.Random(2)

    def many_zeros(size: int) -> bytes:
        return bytes(byte if byte & 3 else 0 for byte in drawn.randbytes(size))

    encrypted = encrypt(key.public, b"secret", many_zeros)
    numbers = key.library_key.private_numbers()
    padded = pow(int.from_bytes(encrypted, "big"), numbers.d, numbers.public_numbers.n)
    block = padded.to_bytes(128, "big")
    assert block[:2] == b"\0\2"
    assert block[-7:] == b"\0secret"
    assert 0 not in block[2:-7]


def test_the_same_random_bytes_encrypt_to_the_same() -> None:
    key = private_key(1024).public
    one, other = (encrypt(key, b"secret", random.Random(seed).randbytes) for seed in (1, 1))
    assert one == other
    assert one != encrypt(key, b"secret", random.Random(2).randbytes)


def test_random_bytes_that_are_zeros_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="zeros"):
        encrypt(private_key(512).public, b"secret", bytes)


def test_a_key_too_short_for_a_secret_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="512 bits cannot encrypt 54 bytes"):
        encrypt(private_key(512).public, bytes(54), random.Random(1).randbytes)


def test_a_key_too_short_for_a_hash_cannot_sign_with_it() -> None:
    key = private_key(512)
    assert len(key.sign(HashAlgorithm.SHA256, bytes(32))) == 64
    with pytest.raises(MsmqError, match="512 bits is too short") as raised:
        key.sign(HashAlgorithm.SHA512, bytes(64))
    assert raised.value.code == 0xC00E0080


@given(st.binary(max_size=140))
def test_any_bytes_are_decrypted_to_something_or_nothing_without_an_error(data: bytes) -> None:
    private_key(512).decrypt(data)
    private_key(1024).decrypt(data)


@given(st.binary(max_size=140))
def test_any_bytes_are_opened_as_a_signature_without_an_error(data: bytes) -> None:
    info = signed_info(library_key(private_key(1024)), data)
    assert info is None or digest_in(HashAlgorithm.SHA1, info) is None


@pytest.mark.parametrize("bits", SIZES)
def test_a_key_survives_its_file(bits: int) -> None:
    key = private_key(bits)
    again = PrivateKey.from_pem(key.to_pem(), KeyUse.SIGNATURE)
    assert (again.public.modulus, again.public.use) == (key.public.modulus, KeyUse.SIGNATURE)


def test_the_public_half_is_what_the_wire_carries() -> None:
    public = private_key(1024).public
    assert RsaPublicKey.decode(public.encode()) == public
    assert len(public.encode()) == 148


@pytest.mark.parametrize("bits", [512, 768, 1024])
def test_a_key_is_made_of_the_random_bytes_alone(bits: int) -> None:
    one, other = (PrivateKey.generate(bits, random.Random(5).randbytes) for _ in range(2))
    assert one.public == other.public
    assert one.public.modulus.bit_length() == bits
    numbers = one.library_key.private_numbers()
    assert abs(numbers.p - numbers.q).bit_length() > bits // 2 - 100


@pytest.mark.parametrize("bits", [0, 496, 520, RSA_MAX_BITS + 16])
def test_keys_of_other_lengths_are_not_made(bits: int) -> None:
    with pytest.raises(InvalidParameter, match=str(RSA_MAX_BITS)):
        PrivateKey.generate(bits, random.Random(1).randbytes)


@pytest.mark.parametrize(
    ("modulus", "exponent"),
    [
        (1 << 510 | 1, 65537),
        (1 << RSA_MAX_BITS | 1, 65537),
        (1 << 1023 | 1, 1),
        (1 << 1023 | 1, 65536),
        (1 << 1023 | 1, EXPONENT_MAX + 2),
        (1 << 1023, 65537),
        (0, 3),
    ],
)
def test_public_keys_that_nobody_makes_have_a_problem(modulus: int, exponent: int) -> None:
    assert key_problem(modulus, exponent, RSA_MIN_BITS)


def test_ordinary_public_keys_have_none() -> None:
    assert not key_problem(private_key(1024).public.modulus, 65537, 1024)
    assert not key_problem(1 << RSA_MAX_BITS - 1 | 1, EXPONENT_MAX, RSA_MIN_BITS)


@pytest.mark.parametrize("data", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused_without_quoting_it(data: bytes) -> None:
    with pytest.raises(InvalidParameter, match="no private key") as raised:
        PrivateKey.from_pem(data)
    assert raised.value.__cause__ is None


def test_a_key_that_is_not_of_rsa_is_refused() -> None:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(InvalidParameter, match="not of RSA"):
        PrivateKey.from_pem(pem)


def test_a_private_key_shows_its_length_only() -> None:
    assert repr(private_key(512)) == "PrivateKey(512 bits)"
