"""How messages leave over HTTP and how they end, where the tests beside the rooms do not look."""

from __future__ import annotations

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.posts import OutgoingPost
from openmsmq.wire.bodies.acknowledgments import FinalAck
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import NEGATIVE_RECEIVE, MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.compound import read_compound
from openmsmq.wire.srmp.departing import departing
from openmsmq.wire.srmp.envelope import Envelope, Services, Stream, StreamReceipt
from openmsmq.wire.srmp.reading import read_envelope
from tests.conformance.marks import shows
from tests.unit.manager.office import LEDGER, ORDERS, START_S
from tests.unit.manager.posts.mailroom import (
    BETA_PLAIN,
    BETA_STREAM,
    LEDGER_URL,
    PEER,
    Mailroom,
    body_of,
    message,
    of_stream,
    receipt,
    stream_of,
    target_of,
)

SAME_HOST = "DIRECT=HTTPS://beta/msmq/stream"
OWN = Guid(bytes(16))
JOURNAL = r".\system$;journal"
TOLD = "http://peer/msmq/private$/told"
DEAD = r".\system$;deadletter"
DEAD_TRANSACTIONAL = r".\system$;deadxact"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def shown(room: Mailroom, name: str = BETA_STREAM) -> api.OutgoingStatus:
    """What an operator sees of an outgoing queue."""
    (found,) = room.ok(api.ListOutgoing(name)).queues
    assert isinstance(found, api.OutgoingStatus)
    return found


def told(
    room: Mailroom, post: OutgoingPost, word: OutgoingPost, end: MessageClass | None = None
) -> None:
    """Let the receiver say that a message has come, or how it ended."""
    assert room.post(receipt(post, end), target=target_of(word)) == 200


# Streams.


@shows("MQSRM-3.1.7.6", 3, 4)
@shows("MQSRM-3.1.7.2.3", 21)
@pytest.mark.parametrize("end", [MessageClass.ACK_RECEIVE, MessageClass.NACK_QUEUE_PURGED])
def test_a_stream_goes_on_until_the_end_of_its_messages_is_known(
    room: Mailroom, end: MessageClass
) -> None:
    (first,) = room.sends(BETA_STREAM, b"1", journal_on_failure=True)
    told(room, first, first)
    assert (shown(room).unacknowledged_count, shown(room).unread_count) == (0, 1)
    (second,) = room.sends(BETA_STREAM, b"2")
    assert (stream_of(second).sequence, stream_of(second).current) == (stream_of(first).sequence, 2)
    told(room, second, first)
    told(room, first, first, end)
    (third,) = room.sends(BETA_STREAM, b"3")
    assert stream_of(third).sequence > stream_of(first).sequence
    # So nothing is unread when the first message of a stream leaves.
    assert (stream_of(third).current, shown(room).unread_count) == (1, 0)


def test_a_stream_whose_end_is_open_goes_on_after_a_crash(room: Mailroom) -> None:
    (first,) = room.sends(BETA_STREAM, b"1", journal_on_failure=True)
    told(room, first, first)
    room.crash()
    (second,) = room.sends(BETA_STREAM, b"2")
    assert (stream_of(second).sequence, stream_of(second).current) == (stream_of(first).sequence, 2)
    # Who has forgotten how it began is told again where receipts go.
    assert stream_of(second).receipts_to == stream_of(first).receipts_to


def test_two_queues_of_one_computer_have_a_stream_each(room: Mailroom) -> None:
    (one,) = room.sends(BETA_STREAM, b"1")
    (other,) = room.sends(SAME_HOST, b"2")
    assert stream_of(one).sequence != stream_of(other).sequence
    assert [stream_of(post).current for post in (one, other)] == [1, 1]


@shows("MQSRM-3.1.1.1.6", 1)
def test_what_leaves_and_what_comes_is_counted_apart_under_one_ordinal(room: Mailroom) -> None:
    (one,) = room.sends(BETA_STREAM, b"1")
    sequence = stream_of(one).sequence
    for number in (1, 2, 3):
        assert room.post(of_stream(number, start=number == 1, sequence=sequence)) == 200
    (came,) = room.ok(api.PageIncomingSequences()).sequences
    assert (came.sequence, came.number, shown(room).next_place.number) == (sequence, 3, 2)
    (two,) = room.sends(BETA_STREAM, b"2")
    assert (stream_of(two).sequence, stream_of(two).current) == (sequence, 2)
    told(room, two, one)
    (came,) = room.ok(api.PageIncomingSequences()).sequences
    assert (came.number, room.waiting(BETA_STREAM)) == (3, 0)


def test_a_gap_that_its_sender_names_holds_no_receipt_back(room: Mailroom) -> None:
    for number in (1, 2):
        assert room.post(of_stream(number, start=number == 1)) == 200
    gap = Stream(PEER, 5, 9, 2)
    assert room.post(message(9, to=LEDGER_URL, stream=gap)) == 200
    (post,) = room.passes(500)
    found = read_envelope(read_compound("text/xml", post.body).envelope)
    assert found.stream_receipt == StreamReceipt(PEER, 5, 9)


# What is sent again.


@shows("MQSRM-3.1.6.1", 2, 3)
def test_all_that_waits_goes_again_in_its_order(room: Mailroom) -> None:
    bodies = [b"%d" % number for number in range(10)]
    posts = room.sends(BETA_PLAIN, *bodies)
    for post in posts:
        room.failed(post)
    assert room.passes(29_999) == []
    assert [body_of(post) for post in room.passes(1)] == bodies


@shows("MQSRM-3.1.6.1", 2)
def test_where_nothing_waits_nothing_is_sent(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    room.answered(post)
    assert room.passes(100_000_000) == []


@shows("MQSRM-3.1.6.2", 2)
def test_what_has_its_receipt_does_not_go_again(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1", b"2", b"3")
    for post in posts:
        room.answered(post)
    told(room, posts[0], posts[0])
    assert [body_of(post) for post in room.passes(30_000)] == [b"2", b"3"]


@shows("MQSRM-3.1.7.5", 1, 2, 3)
def test_all_that_has_gathered_leaves_when_a_queue_goes_on(room: Mailroom) -> None:
    (first,) = room.sends(BETA_PLAIN, b"0")
    room.answered(first)
    room.ok(api.ControlOutgoing(BETA_PLAIN, "pause"))
    bodies = [b"%d" % number for number in range(1, 6)]
    assert room.sends(BETA_PLAIN, *bodies) == []
    assert room.passes(100_000_000) == []
    room.posted()
    room.ok(api.ControlOutgoing(BETA_PLAIN, "resume"))
    assert [body_of(post) for post in room.posted()] == bodies


@shows("MQSRM-3.1.7.2.3", 12)
def test_a_gap_is_bridged_to_what_is_still_there(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, *(b"%d" % number for number in range(1, 7)))
    for number, post in enumerate(posts, 1):
        room.answered(post, 400 if number in (2, 3, 5) else 200)
    again = [stream_of(post) for post in room.passes(30_000)]
    places = [(stream.current, stream.previous or 0) for stream in again]
    assert places == [(1, 0), (4, 1), (6, 4)]


@pytest.mark.parametrize("recoverable", [True, False], ids=["durable", "regular"])
@shows("MQSRM-3.1.7.2.5", 3, 4)
def test_a_plain_message_is_gone_with_its_answer_and_one_of_a_stream_is_not(
    room: Mailroom, recoverable: bool
) -> None:
    (plain,) = room.sends(BETA_PLAIN, b"plain", recoverable=recoverable, journal_on_success=True)
    (stream,) = room.sends(BETA_STREAM, b"stream", journal_on_success=True)
    for post in (plain, stream):
        assert room.bodies(JOURNAL) == ([] if post is plain else [b"plain"])
        room.answered(post)
    assert (room.waiting(BETA_PLAIN), room.waiting(BETA_STREAM)) == (0, 1)
    assert room.bodies(JOURNAL) == [b"plain"]


# What is too late to leave.


@pytest.mark.parametrize("wants_dead_letter", [True, False])
@pytest.mark.parametrize(("name", "grave"), [(BETA_PLAIN, DEAD), (BETA_STREAM, DEAD_TRANSACTIONAL)])
@shows("MQSRM-3.1.7.2.1", 1, 2, 3, 4)
def test_what_has_expired_is_gone_whatever_it_asked_for(
    room: Mailroom, name: str, grave: str, wants_dead_letter: bool
) -> None:
    wishes = {"time_to_reach_queue_s": 31, "journal_on_failure": wants_dead_letter}
    (post,) = room.sends(name, b"1", **wishes)
    room.failed(post)
    # It leaves while it may, and not when its time is over.
    (post,) = room.passes(30_000)
    assert body_of(post) == b"1"
    room.failed(post)
    assert room.passes(30_000) == []
    assert room.waiting(name) == 0
    assert room.bodies(grave) == ([b"1"] if wants_dead_letter else [])
    if wants_dead_letter:
        assert room.classes(grave) == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]


# How messages end.


REASONS = pytest.mark.parametrize(
    ("reason", "decision"),
    [
        (MessageClass.ACK_RECEIVE, "positive"),
        (MessageClass.NACK_PURGED, "negative"),
        (MessageClass.NACK_QUEUE_DELETED, "negative"),
        (MessageClass.NACK_QUEUE_PURGED, "negative"),
        (MessageClass.NACK_RECEIVE_TIMEOUT, "negative"),
        (MessageClass.NACK_RECEIVE_REJECTED, "negative"),
    ],
)
ABOUT = MessageId(PEER, 7)


def reported(queue: str, reason: MessageClass, body: bytes = b"") -> tuple[bytes, Envelope]:
    """What is posted of a report about a message; as bytes, and read."""
    properties = MessageProperties.of(body, message_class=reason, correlation_id=ABOUT.to_bytes())
    header = UserHeader(
        OWN,
        sent_time_s=START_S,
        message_number=1,
        destination=DirectName(f"http://peer/msmq/private$/{queue}"),
        destination_manager=PEER,
    )
    report = UserMessage(header, properties, BaseHeader(3, INFINITE_S))
    content = departing(report, "").content
    return content, read_envelope(read_compound("text/xml", content).envelope)


@REASONS
@shows("MQSRM-3.1.7.3.1", 5, 7, 8)
@shows("MQSRM-3.1.7.2.4", 92)
def test_a_reason_is_a_decision(reason: MessageClass, decision: str) -> None:
    content, envelope = reported("told", reason)
    assert content.count(f"<decision>{decision}</decision>".encode()) == 1
    assert content.count(b"<decision>") == 1
    assert f"<Class>{int(reason)}</Class>".encode() in content
    assert envelope.stream_receipt is None
    assert envelope.commitment_receipt is not None
    assert envelope.commitment_receipt.id == ABOUT


@REASONS
@shows("MQSRM-3.1.7.3.3", 2, 4, 5)
def test_a_reason_is_a_decision_about_a_message_of_a_stream(
    reason: MessageClass, decision: str
) -> None:
    ack = FinalAck(SequenceId.from_int(5), 9, 8, ABOUT)
    content, envelope = reported("order_queue$", reason, ack.encode())
    assert content.count(f"<decision>{decision}</decision>".encode()) == 1
    assert content.count(b"<decision>") == 1
    assert envelope.stream_receipt == StreamReceipt(PEER, 5, 9)
    assert envelope.commitment_receipt is not None
    assert envelope.commitment_receipt.id == ABOUT


def test_a_message_of_a_stream_that_came_too_late_has_an_end_too(room: Mailroom) -> None:
    late = of_stream(1, start=True)
    assert late.msmq is not None
    msmq = structs.replace(late.msmq, reach_by_s=START_S - 400, dead_letter=True)
    room.posted()
    assert room.post(structs.replace(late, sent_s=START_S - 1000, msmq=msmq)) == 200
    (post,) = room.posted()
    found = read_envelope(read_compound("text/xml", post.body).envelope)
    assert found.commitment_receipt is not None
    assert not found.commitment_receipt.positive
    assert found.stream_receipt == StreamReceipt(PEER, 5, 1)
    assert found.msmq is not None
    assert found.msmq.message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT


@shows("MQSRM-3.1.7.3", 2, 3, 4)
@pytest.mark.parametrize("is_here", [True, False], ids=["arrived", "outgoing"])
def test_what_leaves_an_outgoing_queue_has_no_commitment_receipt(
    room: Mailroom, is_here: bool
) -> None:
    if is_here:
        services = Services(commitment=True, negative=True, send_to=TOLD)
        assert room.post(message(services=services)) == 200
    else:
        (post,) = room.sends(BETA_PLAIN, b"1", acknowledge=NEGATIVE_RECEIVE, admin_queue=TOLD)
        room.failed(post)
    room.posted()
    name = r"private$\orders" if is_here else BETA_PLAIN
    access = AccessMode.RECEIVE if is_here else AccessMode.RECEIVE_ADMIN
    room.ok(api.Purge(room.open(name, access)))
    assert [post.url for post in room.posted()] == ([TOLD] if is_here else [])
    assert (room.bodies(), room.waiting(BETA_PLAIN)) == ([], 0)


@pytest.mark.parametrize("in_stream", [False, True])
@pytest.mark.parametrize("is_read", [True, False])
@shows("MQSRM-3.1.7.3.1", 6)
@shows("MQSRM-3.1.7.3.3", 3)
def test_when_a_message_ended_and_how_is_told(
    room: Mailroom, is_read: bool, in_stream: bool
) -> None:
    services = Services(durable=True, commitment=True, positive=True, negative=True, send_to=TOLD)
    envelope = of_stream(1, start=True) if in_stream else message(services=services)
    assert envelope.msmq is not None
    msmq = structs.replace(envelope.msmq, dead_letter=in_stream)
    assert room.post(structs.replace(envelope, msmq=msmq)) == 200
    for post in room.passes(77_000):
        room.answered(post)
    handle = room.open(LEDGER if in_stream else ORDERS)
    room.posted()
    room.ok(api.Receive(handle, 1, 0) if is_read else api.Purge(handle))
    room.passes(5_000)
    content = _last(room).body
    # That is 77 seconds after the start, the second 1,000,000.
    assert content.count(b"<decidedAt>19700112T134757</decidedAt>") == 1
    decision = b"positive" if is_read else b"negative"
    assert content.count(b"<decision>" + decision + b"</decision>") == 1


def _last(room: Mailroom) -> OutgoingPost:
    """The post that left last."""
    return [output for output in room.driver.seen if isinstance(output, OutgoingPost)][-1]
