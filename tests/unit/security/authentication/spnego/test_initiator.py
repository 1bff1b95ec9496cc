from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.authentication.ports import AuthenticationFailed
from openmsmq.security.authentication.spnego.tokens import (
    KERBEROS,
    NTLM,
    NegotiationState,
    ResponseToken,
    decode_init,
    decode_response,
    encode_response,
)
from tests.unit.security.authentication.negotiations import (
    agree,
    ntlm_client,
    ntlm_server,
    two_mechanisms,
)


def test_it_offers_what_it_has_in_order() -> None:
    offered = decode_init(two_mechanisms().step(b"").token)
    assert offered.mechanisms == (KERBEROS, NTLM)
    assert offered.token == b"more"


def last_words(**changes: object) -> ResponseToken:
    """Return the last token of a server as somebody on the way changes it."""
    last = decode_response(agree(ntlm_client(), ntlm_server())[-1])
    return ResponseToken(**{"state": last.state, "mic": last.mic, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"mic": None}, "not signed"),
        ({"mic": bytes(16)}, "signature"),
        ({"state": NegotiationState.REJECTED}, "takes none"),
        ({"state": NegotiationState.INCOMPLETE}, "so do we"),
    ],
)
def test_the_last_token_is_judged(changes: dict[str, object], reason: str) -> None:
    client, server = ntlm_client(), ntlm_server()
    answer = server.step(client.step(b"").token)
    server.step(client.step(answer.token).token)
    token = encode_response(last_words(**changes))
    if not reason:
        assert client.step(token).is_complete
        return
    with pytest.raises(AuthenticationFailed, match=reason):
        client.step(token)


def test_a_mechanism_that_was_not_offered_is_refused() -> None:
    client = ntlm_client()
    client.step(b"")
    with pytest.raises(AuthenticationFailed, match="not offered"):
        client.step(encode_response(ResponseToken(NegotiationState.WANTS_MIC, KERBEROS)))


def test_a_server_that_is_done_too_early_is_not_believed() -> None:
    client, server = ntlm_client(), ntlm_server()
    answer = decode_response(server.step(client.step(b"").token).token)
    early = ResponseToken(NegotiationState.COMPLETED, NTLM, answer.token)
    with pytest.raises(AuthenticationFailed, match="not signed"):
        client.step(encode_response(early))


def test_a_client_begins() -> None:
    with pytest.raises(AuthenticationFailed, match="begins"):
        ntlm_client().step(encode_response(ResponseToken()))


@given(st.binary(max_size=60))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    client = ntlm_client()
    client.step(b"")
    with pytest.raises(AuthenticationFailed):
        client.step(data)
