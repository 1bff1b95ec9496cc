"""What is done with whatever comes, step by step. [MQSRM 3.1.5.1, 3.1.5.1.6]"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Output, Persist
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.posts import OutgoingPost, PostAnswer
from openmsmq.wire.srmp.envelope import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    Services,
    StreamReceipt,
)
from tests.conformance.marks import shows
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S
from tests.unit.manager.posts.mailroom import (
    BETA_PLAIN,
    BETA_STREAM,
    PEER,
    RECEIPTS,
    Mailroom,
    envelope_of,
    message,
    of_stream,
)

TOLD = "http://peer/msmq/private$/told"
ABOUT = MessageId(Guid(bytes(15) + b"\7"), 9)


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def of_class(envelope: Envelope, kind: int) -> Envelope:
    assert envelope.msmq is not None
    return structs.replace(envelope, msmq=structs.replace(envelope.msmq, message_class=kind))


def late(envelope: Envelope) -> Envelope:
    """The same, to be there a while ago."""
    assert envelope.msmq is not None
    msmq = structs.replace(envelope.msmq, reach_by_s=START_S - 400)
    return structs.replace(envelope, sent_s=START_S - 1_000, msmq=msmq)


DELIVERED = message(delivery_receipt=DeliveryReceipt(START_S, ABOUT))
ENDED = message(commitment_receipt=CommitmentReceipt(START_S, True, ABOUT))


@shows("MQSRM-3.1.5.1", 1)
@pytest.mark.parametrize(
    "right",
    [
        pytest.param(message(), id="message"),
        pytest.param(of_class(DELIVERED, MessageClass.ACK_REACH_QUEUE), id="delivery receipt"),
        pytest.param(of_class(ENDED, MessageClass.ACK_RECEIVE), id="commitment receipt"),
    ],
)
def test_whatever_comes_goes_through_every_step(room: Mailroom, right: Envelope) -> None:
    def number(value: int, envelope: Envelope = right) -> Envelope:
        return structs.replace(envelope, id=MessageId(PEER, value))

    assert right.msmq is not None
    # It is read, and refused if it cannot be.
    assert room.post(number(1), headers={"content-type": "text/plain"}) == 400
    # What is wrong is handled: another computer, no such queue.
    assert (
        room.post(number(2, structs.replace(right, to="http://beta/msmq/private$/orders"))) == 400
    )
    assert room.post(number(3, structs.replace(right, to="http://alpha/msmq/private$/x"))) == 400
    # What is too late is dropped.
    assert room.post(number(4, late(right))) == 200
    # What is of no kind is refused.
    assert room.post(number(5, of_class(right, MessageClass.REPORT))) == 400
    assert room.bodies() == []
    # The rest is told from what came already, and enters its queue.
    assert [room.post(number(6)), room.post(number(6)), room.post(number(7))] == [200] * 3
    assert room.classes(ORDERS) == [right.msmq.message_class] * 2


def posts_in(outputs: list[Output]) -> list[OutgoingPost]:
    return [output for output in outputs if isinstance(output, OutgoingPost)]


@shows("MQSRM-3.1.5.1.6", 1)
def test_a_message_of_an_application_goes_through_the_steps_for_its_kind(room: Mailroom) -> None:
    stream = of_stream(1, start=True, services=Services(durable=True, delivery=True, send_to=TOLD))
    # Its signature: it has none, and a queue that wants one takes nothing.
    room.ok(api.ChangeQueue(LEDGER, authentication_required=True))
    assert room.post(stream) == 400
    assert room.ok(api.PageIncomingSequences()).sequences == []
    room.ok(api.ChangeQueue(LEDGER, authentication_required=False))
    # As a durable message: it is saved, and then its sender hears that it is here.
    room.posted()
    room.hand_in(stream)
    node = room.driver.node
    (persist,) = (output for output in node.take() if isinstance(output, Persist))
    assert node.commit(persist, room.driver.now)
    room.driver.pump()
    (delivery,) = room.posted()
    room.answered(delivery)
    assert delivery.url == TOLD
    assert envelope_of(delivery).delivery_receipt is not None
    # As one of a stream: its number is noted, operators see it, and its sender hears of it.
    (shown,) = room.ok(api.PageIncomingSequences()).sequences
    assert (shown.sequence, shown.number, shown.rejected_count) == (5, 1, 0)
    (told,) = room.passes(500)
    assert told.url == RECEIPTS
    assert envelope_of(told).stream_receipt == StreamReceipt(PEER, 5, 1)
    # A second one is none, and the first is in its queue.
    assert room.post(stream) == 200
    assert room.bodies(LEDGER) == [b"body"]
    (shown,) = room.ok(api.PageIncomingSequences()).sequences
    assert (shown.number, shown.rejected_count) == (1, 1)


@shows("MQSRM-2.2.5.2.1", 2)
@pytest.mark.parametrize("name", [BETA_PLAIN, BETA_STREAM])
def test_what_is_durable_is_on_the_disk_of_its_sender_before_it_leaves(
    room: Mailroom, name: str
) -> None:
    handle = room.ok(api.OpenQueue(name, AccessMode.SEND)).handle
    inside = name == BETA_STREAM
    packet = Draft(transactional=inside, body=b"order").packet(name.removeprefix("DIRECT="))
    own = api.OWN_TRANSACTION if inside else 0
    room.driver.request(room.app, api.Send(handle, [packet], own))
    node = room.driver.node
    outputs = node.take()
    (persist,) = (output for output in outputs if isinstance(output, Persist))
    assert posts_in(outputs) == []
    assert node.commit(persist, room.driver.now)
    outputs = node.take()
    (post,) = posts_in(outputs)
    assert b"<durable/>" in post.body


@shows("MQSRM-2.2.5.2.1", 2)
@pytest.mark.parametrize("durable", [message(), of_stream(1, start=True)], ids=["plain", "stream"])
def test_what_is_durable_is_on_the_disk_of_its_receiver_before_anything_else(
    room: Mailroom, durable: Envelope
) -> None:
    room.hand_in(durable)
    node = room.driver.node
    outputs = node.take()
    (persist,) = (output for output in outputs if isinstance(output, Persist))
    assert not [each for each in outputs if isinstance(each, PostAnswer | OutgoingPost)]
    assert node.commit(persist, room.driver.now)
    assert PostAnswer(1, 200) in node.take()


def is_one_envelope(post: OutgoingPost) -> bool:
    """Whether a post is an envelope from its first byte to its last, and says so."""
    kind = dict(post.headers)["Content-Type"]
    name = ElementTree.fromstring(post.body).tag
    return kind == "text/xml" and name == "{http://schemas.xmlsoap.org/soap/envelope/}Envelope"


@shows("MQSRM-2.2.2", 8)
def test_no_receipt_has_a_second_part(room: Mailroom) -> None:
    asking = Services(durable=True, delivery=True, commitment=True, positive=True, send_to=TOLD)
    room.posted()
    room.post(message(services=asking))
    (delivery,) = room.posted()
    room.answered(delivery)
    room.ok(api.Receive(room.open(), 1, 0))
    (commitment,) = room.posted()
    room.answered(commitment)
    stream = of_stream(1, start=True)
    assert stream.msmq is not None
    room.post(structs.replace(stream, msmq=structs.replace(stream.msmq, dead_letter=True)))
    (told,) = room.passes(600)
    room.answered(told)
    room.ok(api.Receive(room.open(LEDGER), 1, 0))
    (final,) = room.posted()
    posts = (delivery, commitment, told, final)
    assert [is_one_envelope(post) for post in posts] == [True] * 4
    found = [
        (
            each.delivery_receipt is not None,
            each.commitment_receipt is not None,
            each.stream_receipt is not None,
        )
        for each in map(envelope_of, posts)
    ]
    assert found == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (False, True, True),
    ]
    assert isinstance(envelope_of(final).msmq, Msmq)
