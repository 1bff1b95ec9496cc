from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ntlm.context import REQUIRED
from openmsmq.security.authentication.ntlm.initiator import NtlmInitiator
from openmsmq.security.authentication.ntlm.messages import (
    AvId,
    Challenge,
    Flag,
    decode_authenticate,
    decode_challenge,
    decode_client_proof,
    encode_pairs,
)
from openmsmq.security.authentication.ntlm.parties import Chance, Credentials
from openmsmq.security.authentication.ports import AuthenticationFailed
from tests.unit.security.authentication.sides import acceptor, conversation, initiator


def challenge(**changes: object) -> bytes:
    token = acceptor().step(initiator().step(b"").token).token
    return msgspec.structs.replace(decode_challenge(token), **changes).encode()


def test_the_third_message_says_who_calls_and_where_to() -> None:
    client = initiator()
    _, _, token = conversation(client, acceptor())
    said = decode_authenticate(token)
    assert (said.user, said.domain, said.workstation) == ("alice", "WORKGROUP", "BETA")
    assert said.lm_response == bytes(24)
    given_proof = decode_client_proof(said.nt_response)
    assert given_proof.has_mic
    assert given_proof.pairs[AvId.TARGET_NAME].decode("utf-16-le") == "host/alpha.example"


@pytest.mark.parametrize("missing", [*REQUIRED, Flag.SIGN, Flag.SEAL, Flag.TARGET_INFO])
def test_a_server_that_offers_less_is_refused(missing: Flag) -> None:
    client = initiator()
    client.step(b"")
    flags = decode_challenge(challenge()).flags & ~missing
    with pytest.raises(AuthenticationFailed, match="the server does not offer"):
        client.step(challenge(flags=flags))


def test_the_time_of_the_server_counts_before_ours() -> None:
    for pairs, expected in (({AvId.TIMESTAMP: b"12345678"}, b"12345678"), ({}, None)):
        client = initiator()
        client.step(b"")
        token = client.step(challenge(target_info=encode_pairs(dict(pairs)))).token
        blob = decode_client_proof(decode_authenticate(token).nt_response).blob
        assert blob[8:16] == (expected or (0x01DC_0000_0000_0000).to_bytes(8, "little"))


def test_a_time_that_is_none_is_refused() -> None:
    client = initiator()
    client.step(b"")
    with pytest.raises(AuthenticationFailed, match="no time"):
        client.step(challenge(target_info=encode_pairs({AvId.TIMESTAMP: b"1"})))


@given(st.binary(max_size=200))
def test_any_bytes_of_a_server_are_taken_or_refused(data: bytes) -> None:
    client = initiator()
    client.step(b"")
    with pytest.raises(AuthenticationFailed):
        client.step(data)
    client = initiator()
    client.step(b"")
    try:
        client.step(challenge()[:40] + data)
    except AuthenticationFailed:
        return
    # A challenge that can be read was made: then nobody believes what it leads to, but we.
    assert isinstance(decode_challenge(challenge()[:40] + data), Challenge)


def test_it_begins_once_and_ends_once() -> None:
    client = initiator()
    with pytest.raises(AuthenticationFailed, match="over"):
        client.step(challenge())
    client = initiator()
    conversation(client, acceptor())
    with pytest.raises(AuthenticationFailed, match="over"):
        client.step(b"")


def test_ntlm_does_not_say_who_a_server_is() -> None:
    client = initiator()
    conversation(client, acceptor())
    with pytest.raises(AuthenticationFailed, match="who a server is"):
        _ = client.caller


def test_chance_has_its_sizes() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        NtlmInitiator(Credentials("a", "b", bytes(16)), Chance(b"1", bytes(16), 0))
