"""Security contexts of one connection, and what they refuse."""

from __future__ import annotations

import pytest

from openmsmq.model.limits import RPC_AUTH_LEGS_MAX_COUNT, RPC_CONTEXTS_MAX_COUNT
from openmsmq.protocol.rpc.security_contexts import AuthRefused, Security, SecurityBook
from openmsmq.protocol.rpc.states import SECURITY_TRANSITIONS, SecurityState
from openmsmq.security.authentication.ports import Level, ProviderKind, Step
from openmsmq.wire.rpc.pdus import Status, Verifier
from tests.unit.protocol.rpc.client import make_context
from tests.unit.security.authentication.sides import acceptor, initiator


def first(number: int, level: Level = Level.PRIVACY) -> Verifier:
    token = initiator().step(b"").token
    return Verifier(ProviderKind.NTLM, level, number, token)


def test_there_are_not_more_contexts_than_the_limit() -> None:
    book = SecurityBook(make_context())
    for number in range(RPC_CONTEXTS_MAX_COUNT):
        assert book.begin(first(number)) is not None
    with pytest.raises(AuthRefused) as refused:
        book.begin(first(9999))
    assert refused.value.status is Status.PROTOCOL


class Endless:
    """Somebody who always has one more token."""

    def step(self, token: bytes) -> Step:
        return Step(token, is_complete=False)


def test_no_authentication_goes_on_for_ever() -> None:
    security = Security(Endless(), ProviderKind.NTLM, Level.PRIVACY, 0)  # type: ignore[arg-type]
    for _ in range(RPC_AUTH_LEGS_MAX_COUNT):
        security.step(b"more")
    with pytest.raises(AuthRefused):
        security.step(b"more")
    assert security.state is SecurityState.BROKEN


def test_a_context_that_is_settled_takes_no_more_tokens() -> None:
    book = SecurityBook(make_context())
    client = initiator()
    begun = book.begin(Verifier(ProviderKind.NTLM, Level.PRIVACY, 1, client.step(b"").token))
    assert begun is not None
    challenge = begun.step(Verifier(10, 6, 1, initiator().step(b"").token).token)
    begun.step(client.step(challenge).token)
    assert begun.state is SecurityState.PROVED
    with pytest.raises(AuthRefused) as refused:
        book.to_go_on(Verifier(ProviderKind.NTLM, Level.PRIVACY, 1, b""))
    assert refused.value.status is Status.ACCESS_DENIED


def test_a_first_token_that_is_wrong_breaks_the_context() -> None:
    security = Security(acceptor(), ProviderKind.NTLM, Level.PRIVACY, 0)
    with pytest.raises(AuthRefused):
        security.step(b"nothing of NTLM")
    assert security.state is SecurityState.BROKEN


def test_tokens_lead_on_only_while_they_are_awaited() -> None:
    assert {state for state, _ in SECURITY_TRANSITIONS} == {SecurityState.PENDING}


def test_unknown_speakers_are_refused_and_nobody_is_a_stranger() -> None:
    book = SecurityBook(make_context())
    assert book.speaker(None) is None
    with pytest.raises(AuthRefused) as refused:
        book.speaker(first(5))
    assert refused.value.status is Status.ACCESS_DENIED
    book.begin(first(5))
    with pytest.raises(AuthRefused) as refused:
        book.speaker(first(5))
    assert refused.value.status is Status.PROTOCOL
