"""A packet that looks like the one before is still judged by its own bytes."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import ORDERS, Office


@pytest.fixture
def office() -> Office:
    return Office()


def test_messages_alike_but_for_their_bodies_keep_their_own_bodies(office: Office) -> None:
    bodies = [b"%04d" % number for number in range(20)]
    office.send(*bodies)
    assert office.bodies() == bodies


def test_a_packet_that_is_not_whole_is_refused_though_others_like_it_were_good(
    office: Office,
) -> None:
    good = Draft(body=b"1234").packet()
    sending = office.open(ORDERS, AccessMode.SEND)
    error = office.error(api.Send(sending, [good, good, good + b"5678"]))
    assert error == "MQ_ERROR_INVALID_PARAMETER"
    assert office.bodies() == []


def test_priorities_of_messages_sent_together_are_kept_apart(office: Office) -> None:
    drafts = [Draft(body=b"low1", priority=1), Draft(body=b"high", priority=7)]
    sending = office.open(ORDERS, AccessMode.SEND)
    office.ok(api.Send(sending, [drafts[0].packet(), drafts[1].packet(), drafts[0].packet()]))
    assert office.bodies() == [b"high", b"low1", b"low1"]


def test_a_packet_with_broken_headers_is_refused_though_it_is_as_long_as_a_good_one(
    office: Office,
) -> None:
    good = Draft(body=b"1234").packet()
    broken = good[:4] + b"LIAR" + good[8:]
    sending = office.open(ORDERS, AccessMode.SEND)
    assert office.error(api.Send(sending, [good, broken])) == "MQ_ERROR_INVALID_PARAMETER"
    assert office.bodies() == []
