"""Effects are values: they print and compare, and one that says nothing does nothing."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.queues.replies import Replied, Replies
from openmsmq.manager.turn.effects import Effect
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.errors import InsufficientResources


def test_effects_with_the_same_facts_are_equal() -> None:
    replies = Replies(Ledger())
    effect = Replied(replies, 1, 2, api.Done())
    assert effect == Replied(replies, 1, 2, api.Done())
    assert hash(effect) == hash(Replied(replies, 1, 2, api.Done()))
    assert effect != Replied(replies, 1, 3, api.Done())
    assert effect != Replied(Replies(Ledger()), 1, 2, api.Done())
    assert effect != Effect()
    assert effect != 5


def test_an_effect_prints_what_it_describes() -> None:
    effect = Replied(Replies(Ledger()), 1, 2, api.Sent([7], 8))
    assert effect.describe() == {"connection": 1, "call": 2, "reply": "Sent"}
    assert repr(effect) == "Replied(connection=1, call=2, reply='Sent')"


def test_an_effect_that_says_nothing_does_nothing() -> None:
    ledger = Ledger()
    ledger.add(Effect())
    assert not ledger.idle
    assert ledger.seal() is None
    assert ledger.idle
    Effect().revert(InsufficientResources("full"))
    assert repr(Effect()) == "Effect()"
