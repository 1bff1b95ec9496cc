"""RC2: the published values, and the library's where it has the cipher."""

from __future__ import annotations

import random

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import RC2
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import CBC
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.encryption import rc2

LONG = "88bca90e90875a7f0f79c384627bafb2"
RFC_2268 = [
    ("0000000000000000", 63, "0000000000000000", "ebb773f993278eff"),
    ("ffffffffffffffff", 64, "ffffffffffffffff", "278b27e42e2f0d49"),
    ("3000000000000000", 64, "1000000000000001", "30649edf9be7d2c2"),
    ("88", 64, "0000000000000000", "61a8a244adacccf0"),
    ("88bca90e90875a", 64, "0000000000000000", "6ccf4308974c267f"),
    (LONG, 64, "0000000000000000", "1a807d272bbe5db1"),
    (LONG, 128, "0000000000000000", "2269552ab0f85ca6"),
    (LONG + "16f80a6f85920584c42fceb0be255daf1e", 129, "0000000000000000", "5b78d3a43dfff1f1"),
]


@pytest.mark.parametrize(("key", "bits", "plain", "encrypted"), RFC_2268)
def test_blocks_are_those_of_rfc_2268(key: str, bits: int, plain: str, encrypted: str) -> None:
    words = rc2.expand_key(bytes.fromhex(key), bits)
    assert rc2.encrypt_block(words, bytes.fromhex(plain)).hex() == encrypted
    assert rc2.decrypt_block(words, bytes.fromhex(encrypted)).hex() == plain


@given(st.binary(min_size=16, max_size=16), st.integers(1, 6), st.integers(0))
def test_with_128_effective_bits_it_is_the_library_s_cipher(
    key: bytes, count: int, seed: int
) -> None:
    blocks = random.Random(seed).randbytes(8 * count)
    library = Cipher(RC2(key), CBC(bytes(8))).encryptor().update(blocks)
    assert rc2.encrypt(rc2.expand_key(key, 128), blocks) == library


@given(
    st.binary(min_size=1, max_size=128),
    st.integers(1, 1024),
    st.integers(0, 5).flatmap(lambda count: st.binary(min_size=8 * count, max_size=8 * count)),
)
def test_what_is_encrypted_can_be_decrypted(key: bytes, bits: int, blocks: bytes) -> None:
    words = rc2.expand_key(key, bits)
    encrypted = rc2.encrypt(words, blocks)
    assert rc2.decrypt(words, encrypted) == blocks
    assert all(
        rc2.decrypt(words, encrypted, first) == blocks[first:] for first in range(0, len(blocks), 8)
    )
