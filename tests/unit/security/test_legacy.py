"""Old algorithms: the published values, and what is said where their package is missing."""

from __future__ import annotations

import random
import sys

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import RC2
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.modes import CBC
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import InvalidParameter
from openmsmq.security import legacy

LONG = "88bca90e90875a7f0f79c384627bafb2"
# Those of the RFC with keys and effective lengths that the package takes: of 5 bytes, 40 bits or
# more.
RFC_2268 = [
    ("0000000000000000", 63, "0000000000000000", "ebb773f993278eff"),
    ("ffffffffffffffff", 64, "ffffffffffffffff", "278b27e42e2f0d49"),
    ("3000000000000000", 64, "1000000000000001", "30649edf9be7d2c2"),
    ("88bca90e90875a", 64, "0000000000000000", "6ccf4308974c267f"),
    (LONG, 64, "0000000000000000", "1a807d272bbe5db1"),
    (LONG, 128, "0000000000000000", "2269552ab0f85ca6"),
    (LONG + "16f80a6f85920584c42fceb0be255daf1e", 129, "0000000000000000", "5b78d3a43dfff1f1"),
]
# With 40 effective bits, for which the RFC has no example: computed once by an implementation
# that was written from the RFC alone and gave all its values.
FORTY_BITS = [
    ("0001020304", "8a038e072ba9bc6f042add5a57cbe198"),
    ("00010203040000000000000000000000", "565568976f36a3150d0c604def7fee22"),
    ("000102030405060708090a0b0c0d0e0f", "3b959996ff0827ad87bc560e7146b149"),
]


@pytest.mark.parametrize(("key", "bits", "plain", "encrypted"), RFC_2268)
def test_blocks_are_those_of_rfc_2268(key: str, bits: int, plain: str, encrypted: str) -> None:
    made = legacy.rc2(bytes.fromhex(key), bits, bytes.fromhex(plain), encrypts=True)
    assert made.hex() == encrypted
    assert legacy.rc2(bytes.fromhex(key), bits, made, encrypts=False).hex() == plain


@pytest.mark.parametrize(("key", "encrypted"), FORTY_BITS)
def test_40_effective_bits_give_what_the_rfc_says(key: str, encrypted: str) -> None:
    made = legacy.rc2(bytes.fromhex(key), 40, bytes(range(16)), encrypts=True)
    assert made.hex() == encrypted


@given(st.binary(min_size=16, max_size=16), st.integers(1, 6), st.integers(0))
def test_with_128_effective_bits_it_is_the_cipher_of_the_other_library(
    key: bytes, count: int, seed: int
) -> None:
    blocks = random.Random(seed).randbytes(8 * count)
    other = Cipher(RC2(key), CBC(bytes(8))).encryptor().update(blocks)
    assert legacy.rc2(key, 128, blocks, encrypts=True) == other


@given(
    st.binary(min_size=5, max_size=128),
    st.integers(40, 1024),
    st.integers(0, 5).flatmap(lambda count: st.binary(min_size=8 * count, max_size=8 * count)),
)
def test_what_is_encrypted_can_be_decrypted(key: bytes, bits: int, blocks: bytes) -> None:
    encrypted = legacy.rc2(key, bits, blocks, encrypts=True)
    assert legacy.rc2(key, bits, encrypted, encrypts=False) == blocks


@pytest.mark.parametrize("name", ["MD2", "MD4", "RC2", "512 bits"])
def test_without_the_package_it_is_said_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in [name for name in sys.modules if name.split(".")[0] == "Crypto"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [])
    calls = {
        "MD2": legacy.md2,
        "MD4": legacy.md4,
        "RC2": lambda: legacy.rc2(bytes(5), 40, bytes(8), encrypts=True),
        "512 bits": lambda: legacy.primes(512, 65537, random.Random(1).randbytes),
    }
    assert not legacy.is_installed()
    with pytest.raises(
        InvalidParameter, match=rf"{name} needs .* pip install 'openmsmq\[legacy\]'"
    ):
        calls[name]()
