from __future__ import annotations

import pytest
from Crypto.Hash import MD4
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ntlm.md4 import md4


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (b"", "31d6cfe0d16ae931b73c59d7e0c089c0"),
        (b"a", "bde52cb31de33e46245e05fbdbd6fb24"),
        (b"abc", "a448017aaf21d8525fc10ae87aa6729d"),
        (b"message digest", "d9130a8164549fe818874806e1c7014b"),
        (b"abcdefghijklmnopqrstuvwxyz", "d79e1c308aa5bbcdeea8ed63df412da9"),
    ],
)
def test_the_examples_of_the_specification(text: bytes, digest: str) -> None:
    assert md4(text).hex() == digest


@given(st.binary(max_size=300))
def test_it_agrees_with_pycryptodome(data: bytes) -> None:
    assert md4(data) == MD4.new(data).digest()
