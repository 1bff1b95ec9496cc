from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spnego._spnego import NegTokenInit

from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment, Level
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from openmsmq.security.authentication.spnego.mechanism import LEGS_MAX_COUNT, Negotiation
from openmsmq.security.authentication.spnego.offer import Mechanism, MechanismContext
from openmsmq.security.authentication.spnego.tokens import (
    KERBEROS,
    NTLM,
    NegotiationState,
    ResponseToken,
    decode_response,
    encode_init,
    encode_mechanisms,
    encode_response,
)
from tests.unit.security.authentication.negotiations import (
    Endless,
    Quick,
    agree,
    ntlm_client,
    ntlm_server,
    two_mechanisms,
)
from tests.unit.security.authentication.sides import (
    ALICE,
    FRAGMENT,
    acceptor,
    conversation,
    initiator,
)


def exchange(sender: Negotiation, receiver: Negotiation, level: Level) -> None:
    stub, signature = sender.protect(level, FRAGMENT, signs_header=True)
    assert len(signature) == sender.signature_size(level)
    sent = Fragment(FRAGMENT.header, stub, FRAGMENT.trailer)
    assert receiver.unprotect(level, sent, signature, signs_header=True) == FRAGMENT.stub


@pytest.mark.parametrize("level", [Level.INTEGRITY, Level.PRIVACY])
def test_both_sides_agree_on_ntlm(level: Level) -> None:
    client, server = ntlm_client(), ntlm_server()
    agree(client, server)
    assert server.caller is ALICE
    for _ in range(2):
        exchange(client, server, level)
        exchange(server, client, level)


@pytest.mark.parametrize("level", [Level.INTEGRITY, Level.PRIVACY])
def test_a_hopeful_token_of_a_mechanism_that_we_lack_comes_to_nothing(level: Level) -> None:
    client, server = two_mechanisms(), ntlm_server()
    tokens = agree(client, server)
    assert server.caller is ALICE
    exchange(client, server, level)
    exchange(server, client, level)
    first = decode_response(tokens[1])
    assert first == ResponseToken(NegotiationState.WANTS_MIC, NTLM)
    assert [decode_response(token).mic is not None for token in tokens[2:]] == [
        *(False, False, True, True)
    ]


def test_the_list_is_signed_both_ways() -> None:
    client, server = ntlm_client(), ntlm_server()
    tokens = agree(client, server)
    assert [decode_response(token).mic is not None for token in tokens[1:]] == [False, True, True]


def test_a_list_that_was_changed_on_the_way_is_noticed() -> None:
    """Somebody takes the better mechanism out of the list."""
    client, server = two_mechanisms(), ntlm_server()
    client.step(b"")
    # What the server sees is a client that knows nothing but NTLM, and it takes that.
    own = initiator()
    answer = server.step(encode_init(encode_mechanisms((NTLM,)), own.step(b"").token))
    third = own.step(decode_response(answer.token).token or b"").token
    mic = own.sign_list(encode_mechanisms((KERBEROS, NTLM)))
    with pytest.raises(AuthenticationFailed, match="signature"):
        server.step(encode_response(ResponseToken(token=third, mic=mic)))


@pytest.mark.parametrize("other", [False, True])
def test_a_list_that_is_not_signed_is_refused(other: bool) -> None:
    server = ntlm_server()
    own = initiator()
    first = own.step(b"").token
    if other:
        server.step(encode_init(encode_mechanisms((KERBEROS, NTLM)), b"hope"))
        answer = server.step(encode_response(ResponseToken(token=first)))
    else:
        answer = server.step(encode_init(encode_mechanisms((NTLM,)), first))
    third = own.step(decode_response(answer.token).token or b"").token
    with pytest.raises(AuthenticationFailed, match="not signed"):
        server.step(encode_response(ResponseToken(token=third)))


def test_a_second_choice_is_signed_whatever_the_mechanism_asks_for() -> None:
    for mic, is_refused in ((None, True), (encode_mechanisms((KERBEROS, NTLM)), False)):
        server = SpnegoAcceptor((Mechanism((NTLM,), Quick),))
        server.step(encode_init(encode_mechanisms((KERBEROS, NTLM)), b"hope"))
        token = encode_response(ResponseToken(token=b"done", mic=mic))
        if is_refused:
            with pytest.raises(AuthenticationFailed, match="not signed"):
                server.step(token)
        else:
            assert server.step(token).is_complete


def test_a_client_that_knows_nothing_of_ours_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="no mechanism that is served"):
        ntlm_server().step(encode_init(encode_mechanisms((KERBEROS,)), b"hope"))


def test_a_client_without_hope_is_asked_for_the_first_token() -> None:
    server = ntlm_server()
    bare = NegTokenInit(mech_types=["1.3.6.1.4.1.311.2.2.10"]).pack()
    answer = decode_response(server.step(bare).token)
    assert answer == ResponseToken(NegotiationState.INCOMPLETE, NTLM)


def test_a_client_that_gives_up_is_believed() -> None:
    server = ntlm_server()
    server.step(ntlm_client().step(b"").token)
    with pytest.raises(AuthenticationFailed, match="given up"):
        server.step(encode_response(ResponseToken(NegotiationState.REJECTED)))


def test_a_client_that_sends_nothing_of_the_mechanism_is_refused() -> None:
    server = ntlm_server()
    server.step(ntlm_client().step(b"").token)
    with pytest.raises(AuthenticationFailed, match="nothing of the mechanism"):
        server.step(encode_response(ResponseToken(mic=b"mic")))


def test_a_wrong_password_is_refused_within_spnego_too() -> None:
    client = ntlm_client(password="wrong horse")
    with pytest.raises(AuthenticationFailed, match="password is wrong"):
        agree(client, ntlm_server())


def test_nothing_is_said_of_the_caller_before_the_end() -> None:
    server = ntlm_server()
    server.step(ntlm_client().step(b"").token)
    for ask in (
        lambda: server.caller,
        lambda: server.protect(Level.PRIVACY, FRAGMENT, signs_header=True),
        lambda: server.signature_size(Level.PRIVACY),
    ):
        with pytest.raises(AuthenticationFailed, match="not come to its end"):
            ask()


def test_a_negotiation_that_is_over_is_over() -> None:
    server = ntlm_server()
    with pytest.raises(AuthenticationFailed):
        server.step(b"nonsense")
    with pytest.raises(AuthenticationFailed, match="is over"):
        server.step(ntlm_client().step(b"").token)


def test_a_negotiation_does_not_go_on_for_ever() -> None:
    server = SpnegoAcceptor((Mechanism((NTLM,), Endless),))
    server.step(encode_init(encode_mechanisms((NTLM,)), b"1"))
    for _ in range(LEGS_MAX_COUNT - 1):
        server.step(encode_response(ResponseToken(token=b"2")))
    with pytest.raises(AuthenticationFailed, match="more than 10 tokens"):
        server.step(encode_response(ResponseToken(token=b"2")))


@given(st.binary(max_size=60))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    server = ntlm_server()
    with pytest.raises(AuthenticationFailed):
        server.step(data)
    server = ntlm_server()
    server.step(ntlm_client().step(b"").token)
    with pytest.raises(AuthenticationFailed):
        server.step(data)


def test_ntlm_fits_what_spnego_asks_of_a_mechanism() -> None:
    server, client = acceptor(), initiator()
    conversation(client, server)
    sides: tuple[MechanismContext, MechanismContext] = (client, server)
    for one, other in (sides, sides[::-1]):
        other.check_list(b"list", one.sign_list(b"list"))
