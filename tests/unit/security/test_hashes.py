"""Hashes: the published values, and the names that RSA signatures give them."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.message import HashAlgorithm
from openmsmq.security.hashes import (
    digest_in,
    digest_info,
    hasher,
)

LETTERS = b"abcdefghijklmnopqrstuvwxyz"
ALPHANUMERIC = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
DIGITS = b"1234567890" * 8

RFC_1319 = {
    b"": "8350e5a3e24c153df2275c9f80692773",
    b"a": "32ec01ec4a6dac72c0ab96fb34c0b5d1",
    b"abc": "da853b0d3f88d99b30283a69e6ded6bb",
    b"message digest": "ab4f496bfb2a530b219ff33031fe06b0",
    LETTERS: "4e8ddff3650292ab5a4108c3aa47940b",
    ALPHANUMERIC: "da33def2a42df13975352846c30338cd",
    DIGITS: "d5976f79d83d3a0dc9806c3c66f3efd8",
}
RFC_1320 = {
    b"": "31d6cfe0d16ae931b73c59d7e0c089c0",
    b"a": "bde52cb31de33e46245e05fbdbd6fb24",
    b"abc": "a448017aaf21d8525fc10ae87aa6729d",
    b"message digest": "d9130a8164549fe818874806e1c7014b",
    LETTERS: "d79e1c308aa5bbcdeea8ed63df412da9",
    ALPHANUMERIC: "043f8582f241db351ce627e153e7f0e4",
    DIGITS: "e33b4ddc9c38f2199c3e7b164fcc0536",
}
OF_ABC = {
    HashAlgorithm.MD5: "900150983cd24fb0d6963f7d28e17f72",
    HashAlgorithm.SHA1: "a9993e364706816aba3e25717850c26c9cd0d89d",
    HashAlgorithm.SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    HashAlgorithm.SHA512: (
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    ),
}


def digest(algorithm: HashAlgorithm, data: bytes) -> bytes:
    hashed = hasher(algorithm)
    hashed.update(data)
    return hashed.digest()


@pytest.mark.parametrize(("data", "expected"), RFC_1319.items())
def test_md2_gives_the_values_of_rfc_1319(data: bytes, expected: str) -> None:
    assert digest(HashAlgorithm.MD2, data).hex() == expected


@pytest.mark.parametrize(("data", "expected"), RFC_1320.items())
def test_md4_gives_the_values_of_rfc_1320(data: bytes, expected: str) -> None:
    assert digest(HashAlgorithm.MD4, data).hex() == expected


@pytest.mark.parametrize(("algorithm", "expected"), OF_ABC.items())
def test_the_others_give_the_values_of_rfc_1321_and_fips_180(
    algorithm: HashAlgorithm, expected: str
) -> None:
    assert digest(algorithm, b"abc").hex() == expected


@given(st.sampled_from(HashAlgorithm), st.lists(st.binary(max_size=100), max_size=4), st.binary())
def test_hashing_in_pieces_is_hashing_the_whole_and_a_copy_goes_its_own_way(
    algorithm: HashAlgorithm, pieces: list[bytes], more: bytes
) -> None:
    hashed = hasher(algorithm)
    for piece in pieces:
        hashed.update(piece)
    other = hashed.copy()
    other.update(more)
    assert hashed.digest() == digest(algorithm, b"".join(pieces))
    assert other.digest() == digest(algorithm, b"".join([*pieces, more]))


@pytest.mark.parametrize("algorithm", HashAlgorithm)
def test_a_digest_is_found_in_its_digest_info_and_in_no_other(algorithm: HashAlgorithm) -> None:
    value = digest(algorithm, b"abc")
    info = digest_info(algorithm, value)
    assert digest_in(algorithm, info) == value
    assert all(digest_in(other, info) is None for other in HashAlgorithm if other is not algorithm)


@given(st.sampled_from(HashAlgorithm), st.binary(min_size=1, max_size=40))
def test_nothing_may_stand_behind_a_digest(algorithm: HashAlgorithm, garbage: bytes) -> None:
    info = digest_info(algorithm, digest(algorithm, b"abc"))
    assert digest_in(algorithm, info + garbage) is None
    assert digest_in(algorithm, info[:-1]) is None


def test_the_digest_info_of_sha256_is_that_of_rfc_8017() -> None:
    value = hashlib.sha256(b"").digest()
    prefix = "3031300d060960864801650304020105000420"
    assert digest_info(HashAlgorithm.SHA256, value).hex() == prefix + value.hex()
