from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ntlm import messages
from openmsmq.security.authentication.ntlm.messages import (
    AV_PAIRS_MAX_COUNT,
    MESSAGE_MAX_BYTES,
    MIC_OFFSET,
    NAME_MAX_CHARACTERS,
    Authenticate,
    AvId,
    Challenge,
    Flag,
    Negotiate,
    decode_authenticate,
    decode_challenge,
    decode_client_proof,
    decode_negotiate,
    decode_pairs,
    encode_pairs,
)
from openmsmq.wire.errors import DecodeError

flags = st.integers(0, 0xFFFF_FFFF).map(Flag)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=NAME_MAX_CHARACTERS // 2)
pairs = st.dictionaries(st.integers(1, 0xFFFF), st.binary(max_size=60), max_size=12)
authenticates = st.builds(
    Authenticate,
    flags=flags,
    user=names,
    domain=names,
    nt_response=st.binary(max_size=300),
    lm_response=st.binary(max_size=24),
    encrypted_key=st.binary(max_size=16),
    mic=st.binary(min_size=16, max_size=16),
    workstation=names,
)


@given(flags)
def test_a_negotiate_survives(found: Flag) -> None:
    assert decode_negotiate(Negotiate(found).encode()) == Negotiate(found)


@given(flags, st.binary(min_size=8, max_size=8), names, pairs)
def test_a_challenge_survives(
    found: Flag, challenge: bytes, target: str, told: dict[int, bytes]
) -> None:
    message = Challenge(found, challenge, target, encode_pairs(told))
    assert decode_challenge(message.encode()) == message
    assert decode_pairs(message.target_info) == told


@given(authenticates)
def test_an_authenticate_survives(message: Authenticate) -> None:
    assert decode_authenticate(message.encode()) == message


DECODERS = [
    decode_negotiate,
    decode_challenge,
    decode_authenticate,
    decode_client_proof,
    decode_pairs,
]


@pytest.mark.parametrize("decode", DECODERS)
@given(data=st.data())
def test_any_bytes_give_a_value_or_the_one_error(
    decode: Callable[[bytes], object], data: st.DataObject
) -> None:
    kind = DECODERS.index(decode) + 1
    head = messages.PREFIX + bytes((kind, 0, 0, 0))
    rest = data.draw(st.binary(max_size=200))
    with suppress(DecodeError):
        decode(data.draw(st.sampled_from((b"", head, b"\x01" * 18))) + rest)


@given(authenticates, st.integers(12, 63), st.integers(0, 255))
def test_fields_that_lie_give_a_value_or_the_one_error(
    message: Authenticate, place: int, value: int
) -> None:
    raw = bytearray(message.encode())
    raw[place] = value
    with suppress(DecodeError):
        decode_authenticate(bytes(raw))


def authenticate() -> Authenticate:
    return Authenticate(Flag.UNICODE, "alice", "D", b"n" * 40, b"l" * 24, b"k" * 16, b"m" * 16)


def test_a_value_behind_the_end_is_refused() -> None:
    with pytest.raises(DecodeError, match="behind the end"):
        decode_authenticate(authenticate().encode()[:-1])


def test_another_message_is_refused() -> None:
    with pytest.raises(DecodeError, match="message 1 instead of 3"):
        decode_authenticate(Negotiate(Flag(0)).encode() + bytes(64))


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(DecodeError, match="no message of NTLM"):
        decode_negotiate(bytes(40))


def test_a_message_that_is_too_long_is_refused() -> None:
    longest = Negotiate(Flag(0)).encode().ljust(MESSAGE_MAX_BYTES, b"\0")
    decode_negotiate(longest)
    with pytest.raises(DecodeError, match="longer"):
        decode_negotiate(longest + b"\0")


def test_a_name_that_is_too_long_is_refused() -> None:
    message = msgspec.structs.replace(authenticate(), user="u" * NAME_MAX_CHARACTERS)
    assert decode_authenticate(message.encode()) == message
    with pytest.raises(DecodeError, match="characters"):
        decode_authenticate(
            msgspec.structs.replace(message, user="u" * (NAME_MAX_CHARACTERS + 1)).encode()
        )


def test_half_a_letter_is_refused() -> None:
    message = msgspec.structs.replace(authenticate(), user="\ud800")
    with pytest.raises(DecodeError, match="UTF-16"):
        decode_authenticate(message.encode())


def test_where_values_begin_before_the_mic_there_is_none() -> None:
    raw = bytearray(authenticate().encode())
    raw[16:20] = MIC_OFFSET.to_bytes(4, "little")
    assert decode_authenticate(bytes(raw)).mic == b""


def test_a_pair_that_comes_twice_is_refused() -> None:
    one = encode_pairs({AvId.FLAGS: b"\0\0\0\0"})[:-4]
    with pytest.raises(DecodeError, match="twice"):
        decode_pairs(one + one + bytes(4))


def test_too_many_pairs_are_refused() -> None:
    most = {1000 + number: b"" for number in range(AV_PAIRS_MAX_COUNT)}
    assert decode_pairs(encode_pairs(most)) == most
    with pytest.raises(DecodeError, match="more than"):
        decode_pairs(encode_pairs({**most, 1: b""}))


@pytest.mark.parametrize("data", [b"", b"\1\0\4\0abc", b"\1\0\4\0abcd"])
def test_pairs_without_an_end_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_pairs(data)


def test_a_response_of_another_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="version"):
        decode_client_proof(bytes(60))
