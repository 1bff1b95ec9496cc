"""Ciphers of bodies: the published values, and what a wrong key or size gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.encryption.ciphers import AES_KEY_BYTES, body_cipher, key_size_fits
from openmsmq.security.legacy import rc2
from openmsmq.wire.keys import SessionAlgorithm

START = bytes(range(16))
PLAIN = bytes.fromhex(
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
SP_800_38A = [
    (
        SessionAlgorithm.AES_128,
        "2b7e151628aed2a6abf7158809cf4f3c",
        "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
        "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
    ),
    (
        SessionAlgorithm.AES_192,
        "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a"
        "571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
    ),
    (
        SessionAlgorithm.AES_256,
        "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
        "39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
    ),
]
RFC_6229 = [
    (
        "0102030405060708090a0b0c0d0e0f10",
        "9ac7cc9a609d1ef7b2932899cde41b975248c4959014126a6e8a84f11d1a9e1c",
    ),
    (
        "ebb46227c6cc8b37641910833222772a",
        "720c94b63edf44e131d950ca211a5a30c366fdeacf9ca80436be7c358424d20b",
    ),
]

keys = st.sampled_from(SessionAlgorithm).flatmap(
    lambda algorithm: st.tuples(
        st.just(algorithm),
        st.sampled_from(
            [AES_KEY_BYTES[algorithm]] if algorithm in AES_KEY_BYTES else [5, 16]
        ).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    )
)


def xor(first: bytes, second: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(first, second, strict=True))


def rc4(key: bytes, size: int) -> bytes:
    """Return the key stream, by the book."""
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    stream = bytearray()
    i = j = 0
    for _ in range(size):
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        stream.append(state[(state[i] + state[j]) % 256])
    return bytes(stream)


@pytest.mark.parametrize(("algorithm", "key", "encrypted"), SP_800_38A)
def test_aes_gives_the_values_of_sp_800_38a(
    algorithm: SessionAlgorithm, key: str, encrypted: str
) -> None:
    # The published values start with other bytes than zeros; the first block makes up for it.
    body = xor(PLAIN[:16], START) + PLAIN[16:]
    cipher = body_cipher(algorithm, bytes.fromhex(key))
    ciphertext = cipher.encrypt(body)
    assert ciphertext[:64].hex() == encrypted
    assert len(ciphertext) == 80
    assert cipher.decrypt(ciphertext, 64) == body


@pytest.mark.parametrize(("key", "stream"), RFC_6229)
def test_rc4_gives_the_values_of_rfc_6229(key: str, stream: str) -> None:
    cipher = body_cipher(SessionAlgorithm.RC4, bytes.fromhex(key))
    assert cipher.encrypt(bytes(32)).hex() == stream


def test_a_short_rc4_key_has_zeros_as_its_salt() -> None:
    key = bytes.fromhex("0102030405")
    assert rc4(key, 16).hex() == "b2396305f03dc027ccc3524a0a1118a8"  # RFC 6229: ours is right
    assert body_cipher(SessionAlgorithm.RC4, key).encrypt(bytes(40)) == rc4(key + bytes(11), 40)


@given(keys, st.binary(max_size=100))
def test_every_cipher_decrypts_what_it_encrypts_and_starts_afresh_each_time(
    drawn: tuple[SessionAlgorithm, bytes], body: bytes
) -> None:
    cipher = body_cipher(*drawn)
    ciphertext = cipher.encrypt(body)
    assert cipher.encrypt(body) == ciphertext
    assert cipher.decrypt(ciphertext, len(body)) == body
    assert body_cipher(*drawn).decrypt(ciphertext, len(body)) == body


@given(keys, st.binary(max_size=50), st.integers(-20, 20).filter(bool))
def test_another_size_than_the_body_s_decrypts_nothing(
    drawn: tuple[SessionAlgorithm, bytes], body: bytes, error: int
) -> None:
    cipher = body_cipher(*drawn)
    assert cipher.decrypt(cipher.encrypt(body), len(body) + error) is None


@given(keys, st.binary(max_size=50))
def test_any_ciphertext_gives_a_body_of_its_size_or_nothing(
    drawn: tuple[SessionAlgorithm, bytes], ciphertext: bytes
) -> None:
    for size in {0, len(ciphertext), max(0, len(ciphertext) - 1), len(ciphertext) // 2}:
        body = body_cipher(*drawn).decrypt(ciphertext, size)
        assert body is None or len(body) == size


@pytest.mark.parametrize("algorithm", sorted(AES_KEY_BYTES))
def test_a_body_of_whole_blocks_and_an_empty_one_get_one_block_more(
    algorithm: SessionAlgorithm,
) -> None:
    cipher = body_cipher(algorithm, bytes(AES_KEY_BYTES[algorithm]))
    assert len(cipher.encrypt(bytes(2000))) == 2016
    assert len(cipher.encrypt(b"")) == 16


def test_rc2_of_every_kind_that_senders_use_is_decrypted() -> None:
    body = b"body of several blocks"
    padded = body + bytes([2, 2])
    long, short = bytes(range(16)), bytes(range(5))
    for key, used, bits in (
        (long, long, 128),
        (long, long, 40),
        (short, short + bytes(11), 40),
        (short, short, 40),
    ):
        ciphertext = rc2(used, bits, padded, encrypts=True)
        assert body_cipher(SessionAlgorithm.RC2, key).decrypt(ciphertext, len(body)) == body


@pytest.mark.parametrize("algorithm", SessionAlgorithm)
def test_only_the_sizes_that_a_key_can_have_fit(algorithm: SessionAlgorithm) -> None:
    expected = {AES_KEY_BYTES[algorithm]} if algorithm in AES_KEY_BYTES else {5, 16}
    assert {size for size in range(70) if key_size_fits(algorithm, size)} == expected


@given(keys)
def test_a_cipher_does_not_show_its_key(drawn: tuple[SessionAlgorithm, bytes]) -> None:
    shown = repr(body_cipher(*drawn))
    assert drawn[1].hex() not in shown
    assert repr(drawn[1]) not in shown


@given(
    st.sampled_from([(algorithm, bytes(size)) for algorithm, size in AES_KEY_BYTES.items()]),
    st.integers(2, 16),
    st.data(),
)
def test_every_byte_of_the_padding_has_to_be_right(
    key: tuple[SessionAlgorithm, bytes], added: int, data: st.DataObject
) -> None:
    cipher = body_cipher(*key)
    wrong = data.draw(st.integers(0, added - 1))
    padding = bytearray([added] * added)
    blocks = bytes(16 - added) + bytes(padding)
    # In CBC, the blocks before the last one are the ciphertext of what they are alone.
    assert cipher.decrypt(cipher.encrypt(blocks)[:16], 16 - added) == bytes(16 - added)
    padding[wrong] ^= data.draw(st.integers(1, 255))
    spoiled = bytes(16 - added) + bytes(padding)
    assert cipher.decrypt(cipher.encrypt(spoiled)[:16], 16 - added) is None
