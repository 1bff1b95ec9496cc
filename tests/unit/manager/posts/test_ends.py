"""What is told of messages that came: that they are here, and how they ended."""

from __future__ import annotations

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Persist
from openmsmq.model.identity import MessageId
from openmsmq.model.message import MessageClass
from openmsmq.protocol.posts import OutgoingPost
from openmsmq.wire.srmp.dates import write_date
from openmsmq.wire.srmp.envelope import Envelope, Services, StreamReceipt
from tests.conformance.marks import shows
from tests.unit.manager.office import LEDGER, ORDERS, START_S
from tests.unit.manager.posts.mailroom import (
    PEER,
    RECEIPTS,
    Mailroom,
    envelope_of,
    message,
    of_stream,
)

TOLD = "http://peer/msmq/private$/told"
ENDS = "MQSRM-3.1.7.3.1"
STREAM_ENDS = "MQSRM-3.1.7.3.3"
DELETED = "deleted"
RECEIVED = "received"
PURGED = "purged"
EXPIRED = "expired"
REASONS = {
    RECEIVED: MessageClass.ACK_RECEIVE,
    PURGED: MessageClass.NACK_QUEUE_PURGED,
    DELETED: MessageClass.NACK_QUEUE_DELETED,
    EXPIRED: MessageClass.NACK_RECEIVE_TIMEOUT,
}


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def wanting(*wishes: str, **parts: object) -> Services:
    """Ask for receipts: `delivery`, `positive`, `negative`."""
    asked = {wish: True for wish in wishes}
    commitment = bool({"positive", "negative", "commitment"} & set(wishes))
    return Services(**{"commitment": commitment, "send_to": TOLD, **asked, **parts})


def mortal(envelope: Envelope, *, dead_letter: bool = False) -> Envelope:
    """A message that may be received within ten seconds."""
    assert envelope.msmq is not None
    msmq = structs.replace(envelope.msmq, dead_letter=dead_letter)
    return structs.replace(envelope, expires_s=START_S + 10, msmq=msmq)


def ends(room: Mailroom, how: str, name: str = ORDERS) -> list[OutgoingPost]:
    """Let a message end; gives what is posted of it."""
    room.posted()
    if how == EXPIRED:
        return room.passes(11_000)
    if how == RECEIVED:
        room.ok(api.Receive(room.open(name), 1, 0))
    elif how == PURGED:
        room.ok(api.Purge(room.open(name)))
    else:
        room.ok(api.DeleteQueue(name))
    return room.posted()


# That a message is here.


@shows("MQSRM-3.1.5.1.6.2", 2, 3, 4, 5, 6)
@shows("MQSRM-3.1.5.1.1", 7)
def test_a_delivery_receipt_says_when_which_message_came(room: Mailroom) -> None:
    room.passes(7_000)
    assert room.post(message(services=wanting("delivery"))) == 200
    (post,) = room.posted()
    found = envelope_of(post)
    assert (post.url, found.to) == (TOLD, TOLD)
    assert found.delivery_receipt is not None
    assert write_date(found.delivery_receipt.received_s) == write_date(START_S + 7)
    assert found.delivery_receipt.id == MessageId(PEER, 7)
    assert found.msmq is not None
    assert found.msmq.message_class == MessageClass.ACK_REACH_QUEUE
    assert dict(post.headers)["Content-Type"] == "text/xml"


@shows("MQSRM-2.2.5.2.2", 4, 5)
@shows("MQSRM-2.2.5.4", 1, 5, 6)
def test_who_does_not_ask_hears_nothing_of_it(room: Mailroom) -> None:
    for services, count in (
        (Services(durable=True), 0),
        (wanting("positive", "negative"), 0),
        (wanting("delivery"), 1),
    ):
        room.post(message(100 + count, services=services))
        posts = room.posted()
        assert len(posts) == count
        for post in posts:
            receipt = envelope_of(post).delivery_receipt
            assert receipt is not None
            assert (post.url, receipt.id) == (TOLD, MessageId(PEER, 101))


@shows("MQSRM-2.2.5.2.1", 3)
def test_a_durable_message_is_on_the_disk_before_anything_is_told(room: Mailroom) -> None:
    node = room.driver.node
    room.hand_in(message(services=wanting("delivery", durable=True)))
    (persist,) = node.take()
    assert isinstance(persist, Persist)
    assert node.commit(persist, room.driver.now)
    room.driver.pump()
    (post,) = room.posted()
    assert envelope_of(post).delivery_receipt is not None
    room.crash()
    assert room.bodies(ORDERS) == [b"body"]


# How a message ended.


@pytest.mark.parametrize("how", REASONS)
@pytest.mark.parametrize("wish", ["positive", "negative"])
@shows(ENDS, 1, 2, 3, 7, 8)
@shows("MQSRM-3.1.1.3.4", 1, 2)
@shows("MQSRM-3.1.7.3", 5)
def test_a_commitment_receipt_is_sent_for_the_end_that_is_asked_for(
    room: Mailroom, how: str, wish: str
) -> None:
    room.post(mortal(message(services=wanting(wish))))
    posts = ends(room, how)
    assert len(posts) == ((how == RECEIVED) is (wish == "positive"))
    for post in posts:
        found = envelope_of(post)
        assert found.commitment_receipt is not None
        assert found.commitment_receipt.positive is (how == RECEIVED)
        assert found.msmq is not None
        assert found.msmq.message_class == REASONS[how]


@pytest.mark.parametrize("how", REASONS)
@shows("MQSRM-2.2.5.2.3", 4, 5, 7)
@shows("MQSRM-2.2.5.5", 1)
@shows("MQSRM-3.1.7.3", 1)
def test_who_asks_for_both_hears_how_it_was(room: Mailroom, how: str) -> None:
    room.post(mortal(message(services=wanting("positive", "negative"))))
    (post,) = ends(room, how)
    receipt = envelope_of(post).commitment_receipt
    assert receipt is not None
    assert receipt.positive is (how == RECEIVED)


@pytest.mark.parametrize("how", REASONS)
@shows("MQSRM-2.2.5.2.3", 6)
@shows(ENDS, 4)
@shows("MQSRM-3.1.1.3.4", 3)
def test_who_asks_for_neither_hears_nothing(room: Mailroom, how: str) -> None:
    room.post(mortal(message(services=wanting("commitment"))))
    assert ends(room, how) == []


@shows(ENDS, 5, 6, 10)
@shows("MQSRM-2.2.5.5", 7, 8)
@shows("MQSRM-2.2.4.1", 3)
@shows("MQSRM-3.1.7.3", 3, 4)
def test_a_commitment_receipt_says_when_which_message_ended(room: Mailroom) -> None:
    services = wanting("positive", "delivery")
    room.post(message(services=services, action="MSMQ:a label"))
    (delivery,) = room.posted()
    room.passes(9_000)
    (post,) = ends(room, RECEIVED)
    found = envelope_of(post)
    assert (post.url, found.to) == (TOLD, TOLD)
    assert found.commitment_receipt is not None
    assert found.commitment_receipt.id == MessageId(PEER, 7)
    assert write_date(found.commitment_receipt.decided_s) == write_date(START_S + 9)
    assert [envelope_of(each).action for each in (delivery, post)] == ["MSMQ:a label"] * 2
    assert b"<decision>positive</decision>" in post.body


@shows("MQSRM-2.2.5.2.3", 5)
def test_who_is_too_late_or_finds_no_room_hears_of_it(room: Mailroom) -> None:
    services = wanting("negative")
    late = message(services=services)
    assert late.msmq is not None
    late = structs.replace(late, msmq=structs.replace(late.msmq, reach_by_s=START_S - 400))
    assert room.post(structs.replace(late, sent_s=START_S - 1000)) == 200
    room.ok(api.ChangeQueue(ORDERS, quota_kb=1))
    assert room.post(message(8, services=services), b"x" * 2000) == 200
    found = [envelope_of(post) for post in room.posted()]
    classes = [each.msmq.message_class for each in found if each.msmq is not None]
    assert classes == [MessageClass.NACK_REACH_QUEUE_TIMEOUT, MessageClass.NACK_QUEUE_EXCEEDS_QUOTA]
    decisions = [each.commitment_receipt for each in found]
    assert [each is not None and each.positive for each in decisions] == [False, False]


@pytest.mark.parametrize("how", [PURGED, EXPIRED])
@pytest.mark.parametrize("dead_letter", [True, False])
@shows("MQSRM-3.1.7.3.2", 1)
@shows("MQSRM-3.1.5.2.1.1", 1)
def test_what_ends_unread_is_a_dead_letter_if_it_asked(
    room: Mailroom, how: str, dead_letter: bool
) -> None:
    room.post(mortal(message(), dead_letter=dead_letter))
    ends(room, how)
    assert room.bodies(r".\system$;deadletter") == ([b"body"] if dead_letter else [])
    assert room.bodies(ORDERS) == []


# The end of a message of a stream.


@pytest.mark.parametrize("how", REASONS)
@shows(STREAM_ENDS, 1, 2, 4, 5, 7, 8)
def test_the_end_of_a_message_of_a_stream_is_told_if_it_wants_a_dead_letter(
    room: Mailroom, how: str
) -> None:
    for number in (1, 2):
        stream = of_stream(number, start=number == 1)
        room.post(mortal(stream, dead_letter=number == 2))
    for post in room.passes(600):
        room.answered(post)
    if how == RECEIVED:
        assert ends(room, how, LEDGER) == []
    (post,) = ends(room, how, LEDGER)
    found = envelope_of(post)
    assert (post.url, found.to) == (RECEIPTS, RECEIPTS)
    assert found.stream_receipt == StreamReceipt(PEER, 5, 2)
    assert found.commitment_receipt is not None
    assert found.commitment_receipt.id == MessageId(PEER, 2)
    assert found.commitment_receipt.positive is (how == RECEIVED)
    assert found.msmq is not None
    assert found.msmq.message_class == REASONS[how]


@shows(STREAM_ENDS, 3)
@shows("MQSRM-2.2.5.5", 1)
@shows("MQSRM-3.1.7.3", 6)
def test_it_is_told_when_it_ended(room: Mailroom) -> None:
    room.post(mortal(of_stream(1, start=True), dead_letter=True))
    for post in room.passes(5_000):
        room.answered(post)
    (post,) = ends(room, RECEIVED, LEDGER)
    receipt = envelope_of(post).commitment_receipt
    assert receipt is not None
    assert write_date(receipt.decided_s) == write_date(START_S + 5)
    assert b"<decision>positive</decision>" in post.body
