"""A request without its facts, or with facts that contradict it, cannot be."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.api.base import Done, Request
from openmsmq.api.facts import OWN, Check, Facts, Need, Repeats


def test_a_request_without_facts_is_refused() -> None:
    with pytest.raises(TypeError, match="Ring has no facts"):

        class Ring(Request[Done], frozen=True, tag="ring"):
            times: int


def test_a_request_must_say_whether_it_repeats_and_what_it_needs() -> None:
    with pytest.raises(TypeError, match="repeats"):
        Facts(OWN)  # type: ignore[call-arg]


def test_one_that_repeats_sometimes_says_when() -> None:
    with pytest.raises(TypeError, match="Ring repeats sometimes"):

        class Ring(Request[Done], frozen=True, tag="ring"):
            facts = Facts(OWN, Repeats.SOMETIMES)


def test_one_that_never_repeats_does_not_say_when() -> None:
    with pytest.raises(TypeError, match="Ring repeats never"):

        class Ring(Request[Done], frozen=True, tag="ring"):
            facts = Facts(OWN, Repeats.NEVER)

            @property
            def may_repeat(self) -> bool:
                return True


def test_one_that_waits_says_how_long() -> None:
    with pytest.raises(TypeError, match="how long"):

        class Ring(Request[Done], frozen=True, tag="ring"):
            facts = Facts(OWN, Repeats.ALWAYS, waits=True)


def test_one_that_needs_rights_on_a_queue_names_it() -> None:
    with pytest.raises(TypeError, match="does not name"):

        class Ring(Request[Done], frozen=True, tag="ring"):
            facts = Facts(Need(Check.QUEUE, 1), Repeats.ALWAYS)

            path: str


def test_a_request_knows_its_reply() -> None:
    assert api.Send.reply is api.Sent
    assert api.Purge.reply is api.Removed
    assert api.Cancel(1).reply is api.Done
