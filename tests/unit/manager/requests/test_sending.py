"""A packet that looks like the one before is still judged by its own bytes."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode, ShareMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import ORDERS, Office

SECOND = r"private$\second"


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


def test_what_would_be_too_much_for_all_queues_of_a_list_is_refused_before_it_is_copied() -> None:
    office = Office(transaction_bytes_max=10_000)
    office.ok(api.CreateQueue(SECOND))
    names = [rf"DIRECT=OS:ALPHA\{queue}" for queue in (ORDERS, SECOND)]
    sending = office.open(",".join(names), AccessMode.SEND)
    few, many = Draft(body=b"x" * 4_000).packet(), Draft(body=b"x").packet()
    assert len(few) * 2 < 10_000 > len(many) * 2 * 20
    office.ok(api.Send(sending, [few]))
    # Each copy names all queues: that is more than the messages themselves.
    for packets in ([few, few], [many] * 20, [many] * 100_000):
        assert office.error(api.Send(sending, packets)) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    for queue in (ORDERS, SECOND):
        assert office.bodies(queue) == [b"x" * 4_000]


def test_a_list_can_be_sent_to_and_nothing_else(office: Office) -> None:
    """It holds no messages: it is a target and no queue."""
    office.ok(api.CreateQueue(SECOND))
    name = ",".join(rf"DIRECT=OS:ALPHA\{queue}" for queue in (ORDERS, SECOND))
    denied = api.OpenQueue(name, AccessMode.SEND, ShareMode.DENY_RECEIVE)
    assert office.error(denied) == "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"
    opened = office.ok(api.OpenQueue(name, AccessMode.SEND, ShareMode.DENY_NONE))
    assert opened.path_name == opened.format_name == name.replace("private", "PRIVATE")
    assert not opened.transactional
    for request in (
        api.Receive(opened.handle),
        api.CreateCursor(opened.handle),
        api.Seek(opened.handle, "first"),
        api.Purge(opened.handle),
    ):
        assert office.error(request) == "MQ_ERROR_ACCESS_DENIED"
    office.ok(api.CloseQueue(opened.handle))
    assert office.error(api.CloseQueue(opened.handle)) == "MQ_ERROR_INVALID_HANDLE"
