"""What becomes of offers. Samba's own tests ask for more, in `tests/runtime`."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import Guid
from openmsmq.model.limits import RPC_CONTEXTS_MAX_COUNT
from openmsmq.protocol.rpc.presentation import BadOffer, Presentation
from openmsmq.protocol.rpc.states import InterfaceFacts
from openmsmq.wire.rpc.pdus import Offer, Result
from openmsmq.wire.rpc.syntaxes import NDR, NO_SYNTAX, Syntax

ONE = Syntax.of("11111111-2222-3333-4444-555555555555", 1, 4)
OTHER = Syntax.of("99999999-2222-3333-4444-555555555555", 1)
FEATURES = Syntax.of("6cb71c2c-9812-4540-ff00-000000000000", 1)


def presentation() -> Presentation:
    return Presentation({ONE: InterfaceFacts(1), OTHER: InterfaceFacts(1)})


@pytest.mark.parametrize(
    ("major", "minor", "reason"), [(1, 4, 0), (1, 0, 0), (1, 5, 1), (2, 0, 1), (0, 4, 1)]
)
def test_an_older_minor_version_is_served_and_no_other(major: int, minor: int, reason: int) -> None:
    found = presentation()
    wanted = Syntax(ONE.uuid, major, minor)
    (result,) = found.negotiate((Offer(0, wanted, (NDR,)),), first=True)
    assert result.reason == reason
    assert found.find(0) == (None if reason else ONE)


def test_two_interfaces_are_accepted_at_once() -> None:
    found = presentation()
    offers = (Offer(0, ONE, (NDR,)), Offer(1, OTHER, (NDR,)))
    assert found.negotiate(offers, first=True) == (Result(0, 0, NDR), Result(0, 0, NDR))
    assert (found.find(0), found.find(1)) == (ONE, OTHER)


def test_features_that_we_do_not_have_are_left_out() -> None:
    (result,) = presentation().negotiate((Offer(0, ONE, (FEATURES,)),), first=True)
    assert result == Result(3, 3, NO_SYNTAX)


def test_features_are_no_matter_of_an_alteration() -> None:
    (result,) = presentation().negotiate((Offer(0, ONE, (FEATURES,)),), first=False)
    assert (result.outcome, result.reason) == (2, 2)


def test_there_are_not_more_contexts_than_the_limit() -> None:
    found = presentation()
    for context in range(RPC_CONTEXTS_MAX_COUNT):
        assert found.negotiate((Offer(context, ONE, (NDR,)),), first=False)[0].outcome == 0
    (result,) = found.negotiate((Offer(999, ONE, (NDR,)),), first=False)
    assert (result.outcome, result.reason) == (2, 3)
    # Those that are there can still be named.
    assert found.negotiate((Offer(0, ONE, (NDR,)),), first=False)[0].outcome == 0


def test_a_context_keeps_its_interface() -> None:
    found = presentation()
    found.negotiate((Offer(0, ONE, (NDR,)),), first=True)
    with pytest.raises(BadOffer):
        found.negotiate((Offer(0, OTHER, (NDR,)),), first=False)
    with pytest.raises(BadOffer):
        found.negotiate((Offer(0, Syntax(Guid(16), 1), (NDR,)),), first=False)
    assert found.find(0) == ONE


@pytest.mark.parametrize("offers", [(), (Offer(0, ONE, ()),)])
def test_an_offer_of_nothing_is_none(offers: tuple[Offer, ...]) -> None:
    with pytest.raises(BadOffer):
        presentation().negotiate(offers, first=True)
