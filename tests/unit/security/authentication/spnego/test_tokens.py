from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spnego._spnego import unpack_token

from openmsmq.security.authentication.spnego.tokens import (
    KERBEROS,
    KERBEROS_OF_WINDOWS,
    MECHANISMS_MAX_COUNT,
    NTLM,
    TOKEN_MAX_BYTES,
    NegotiationState,
    ResponseToken,
    decode_init,
    decode_response,
    encode_init,
    encode_mechanisms,
    encode_response,
)
from openmsmq.wire.errors import DecodeError

responses = st.builds(
    ResponseToken,
    st.none() | st.sampled_from(NegotiationState),
    st.none() | st.binary(min_size=1, max_size=12),
    st.none() | st.binary(max_size=300),
    st.none() | st.binary(max_size=30),
)


@given(st.lists(st.binary(min_size=1, max_size=12), min_size=1, max_size=5), st.binary())
def test_a_first_token_survives(mechanisms: list[bytes], token: bytes) -> None:
    offered = encode_mechanisms(tuple(mechanisms))
    found = decode_init(encode_init(offered, token))
    assert found.mechanisms == tuple(mechanisms)
    assert found.mechanism_list == offered
    assert found.token == token


@given(responses)
def test_another_token_survives(response: ResponseToken) -> None:
    assert decode_response(encode_response(response)) == response


def test_pyspnego_reads_the_same() -> None:
    offered = encode_mechanisms((KERBEROS_OF_WINDOWS, KERBEROS, NTLM))
    found = unpack_token(encode_init(offered, b"token"))
    assert found.mech_types == [
        "1.2.840.48018.1.2.2",
        "1.2.840.113554.1.2.2",
        "1.3.6.1.4.1.311.2.2.10",
    ]
    assert found.mech_token == b"token"
    state = ResponseToken(NegotiationState.WANTS_MIC, NTLM, b"token", b"mic")
    answer = unpack_token(encode_response(state))
    assert (answer.neg_state, answer.supported_mech) == (3, "1.3.6.1.4.1.311.2.2.10")
    assert (answer.response_token, answer.mech_list_mic) == (b"token", b"mic")


@pytest.mark.parametrize("decode", [decode_init, decode_response])
@given(data=st.data())
def test_any_bytes_give_a_value_or_the_one_error(
    decode: Callable[[bytes], object], data: st.DataObject
) -> None:
    good = encode_init(encode_mechanisms((NTLM,)), b"t" * 20)
    if decode is decode_response:
        good = encode_response(ResponseToken(NegotiationState.COMPLETED, NTLM, b"t" * 20, b"m"))
    raw = bytearray(good)
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        decode(bytes(raw) + data.draw(st.binary(max_size=3)))


def test_too_many_mechanisms_are_refused() -> None:
    most = encode_mechanisms((NTLM,) * MECHANISMS_MAX_COUNT)
    assert len(decode_init(encode_init(most, b"")).mechanisms) == MECHANISMS_MAX_COUNT
    more = encode_mechanisms((NTLM,) * (MECHANISMS_MAX_COUNT + 1))
    with pytest.raises(DecodeError, match="more than"):
        decode_init(encode_init(more, b""))


def test_no_mechanism_at_all_is_refused() -> None:
    with pytest.raises(DecodeError, match="no mechanism"):
        decode_init(encode_init(encode_mechanisms(()), b""))


def test_a_token_that_is_too_long_is_refused() -> None:
    with pytest.raises(DecodeError, match="longer"):
        decode_init(encode_init(encode_mechanisms((NTLM,)), bytes(TOKEN_MAX_BYTES)))


def test_a_state_that_does_not_exist_is_refused() -> None:
    token = encode_response(ResponseToken(NegotiationState.WANTS_MIC)).replace(
        b"\x0a\1\3", b"\x0a\1\4"
    )
    with pytest.raises(DecodeError, match="state"):
        decode_response(token)


def test_another_mechanism_in_the_frame_is_refused() -> None:
    token = encode_init(encode_mechanisms((NTLM,)), b"").replace(
        b"\x2b\x06\x01\x05", b"\x2b\x06\x01\x06"
    )
    with pytest.raises(DecodeError, match="another mechanism"):
        decode_init(token)
