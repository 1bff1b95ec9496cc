"""The numbers are those of the public example. [MS-NLMP 4.2.4]"""

from __future__ import annotations

import hmac
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ntlm.keys import (
    Authenticator,
    Direction,
    nt_hash,
    proof,
    rc4,
    response_key,
    sealing_key,
    session_base_key,
    signing_key,
    upper,
)

NT_HASH: Final = "a4f49c406510bdcab6824ee7c30fd852"
RESPONSE_KEY: Final = "0c868a403bfd7a93a3001ef22ef02e3f"
PROOF: Final = "68cd0ab851e51c96aabc927bebef6a1c"
SESSION_BASE_KEY: Final = "8de40ccadbc14a82f15cb0ad0de95ca3"
SESSION_KEY: Final = bytes([0x55]) * 16
BLOB: Final = bytes.fromhex(
    "0101000000000000"  # version
    "0000000000000000"  # time
    "aaaaaaaaaaaaaaaa"  # challenge of the client
    "00000000"
    "02000c0044006f006d00610069006e00"  # Domain
    "01000c00530065007200760065007200"  # Server
    "00000000"
    "00000000"
)


def test_a_password_becomes_its_hash() -> None:
    assert nt_hash("Password").hex() == NT_HASH


def test_a_user_in_a_domain_has_a_key() -> None:
    assert response_key(bytes.fromhex(NT_HASH), "User", "Domain").hex() == RESPONSE_KEY


def test_the_proof_and_the_key_that_comes_of_it() -> None:
    key = bytes.fromhex(RESPONSE_KEY)
    found = proof(key, bytes.fromhex("0123456789abcdef"), BLOB)
    assert found.hex() == PROOF
    assert session_base_key(key, found).hex() == SESSION_BASE_KEY


def test_the_key_of_the_session_travels_encrypted() -> None:
    encrypted = rc4(bytes.fromhex(SESSION_BASE_KEY)).update(SESSION_KEY)
    assert encrypted.hex() == "c5dad2544fc9799094ce1ce90bc9d03e"


def test_the_keys_of_what_the_client_sends() -> None:
    sign = signing_key(SESSION_KEY, Direction.FROM_CLIENT)
    seal = sealing_key(SESSION_KEY, Direction.FROM_CLIENT)
    assert sign.hex() == "4788dc861b4782f35d43fd98fe1a2d39"
    assert seal.hex() == "59f600973cc4960a25480a7c196e4c58"


def test_each_direction_has_keys_of_its_own() -> None:
    keys = {make(SESSION_KEY, way) for make in (signing_key, sealing_key) for way in Direction}
    assert len(keys) == 4


def test_a_letter_stays_one_letter() -> None:
    assert upper("straße ünal") == "STRAßE ÜNAL"


@given(st.binary(min_size=16, max_size=16), st.lists(st.binary(max_size=200), max_size=4))
def test_an_authenticator_is_hmac(key: bytes, messages: list[bytes]) -> None:
    found = Authenticator(key)
    for message in messages:
        assert found.digest(message) == hmac.digest(key, message, "md5")
