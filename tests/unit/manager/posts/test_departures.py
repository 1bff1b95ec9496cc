"""Posts of ours: what leaves, what comes of each answer, and when it goes again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.console.asking.manager_views import is_stuck
from openmsmq.manager.outputs import Persist
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.wire.headers.message_properties import NEGATIVE_RECEIVE, POSITIVE_ARRIVAL
from openmsmq.wire.headers.security import BODY_ENCRYPTED, SecurityHeader
from openmsmq.wire.packets import UserMessage, decode, encode
from openmsmq.wire.srmp.limits import POSTS_UNDER_WAY_MAX_COUNT, POSTS_UNDER_WAY_PER_QUEUE_BYTES
from tests.conformance.marks import shows
from tests.strategies.messages import Draft
from tests.unit.manager.posts.mailroom import (
    BETA_PLAIN,
    BETA_STREAM,
    Mailroom,
    body_of,
    envelope_of,
)

DEAD = r".\system$;deadletter"
DEAD_TRANSACTIONAL = r".\system$;deadxact"
JOURNAL = r".\system$;journal"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


@pytest.mark.spec("MQSRM-2.2.4.2-03", "MQSRM-3.1.7.2.5-01")
def test_a_message_is_posted_to_its_queue(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"hello")
    assert post.url == "http://beta:8080/msmq/private$/plain"
    assert dict(post.headers)["SOAPAction"] == '"MSMQMessage"'
    assert body_of(post) == b"hello"
    found = envelope_of(post)
    assert found.to == post.url
    assert found.services is not None
    assert found.services.durable
    assert found.stream is None


def test_it_leaves_when_the_disk_has_it_and_not_before(room: Mailroom) -> None:
    handle = room.open(BETA_PLAIN, AccessMode.SEND)
    node = room.driver.node
    packet = Draft().packet(BETA_PLAIN.removeprefix("DIRECT="))
    room.driver.request(room.app, api.Send(handle, [packet]))
    outputs = node.take()
    (persist,) = (output for output in outputs if isinstance(output, Persist))
    assert not any(isinstance(output, OutgoingPost) for output in outputs)
    node.commit(persist, room.driver.now)
    assert any(isinstance(output, OutgoingPost) for output in node.take())


@pytest.mark.spec("MQSRM-3.1.7.2.5-03", "MQSRM-3.1.7.2.5-04")
def test_what_is_answered_is_gone_and_in_the_journal_if_it_asked(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"hello", journal_on_success=True)
    assert (room.waiting(BETA_PLAIN), room.bodies(JOURNAL)) == (1, [])
    room.answered(post)
    assert (room.waiting(BETA_PLAIN), room.bodies(JOURNAL)) == (0, [b"hello"])
    assert room.passes(100_000) == []


@pytest.mark.parametrize("status", [400, 413])
@pytest.mark.spec("MQSRM-3.1.7.2.5-06", "MQSRM-3.1.7.2.5-07")
def test_what_is_refused_is_dead(room: Mailroom, status: int) -> None:
    (post,) = room.sends(BETA_PLAIN, b"hello", journal_on_failure=True)
    room.answered(post, status)
    assert (room.waiting(BETA_PLAIN), room.bodies(DEAD)) == (0, [b"hello"])
    assert room.classes(DEAD) == [MessageClass.NACK_BAD_DESTINATION_QUEUE]


@pytest.mark.parametrize("status", [500, 503, 404, 301, 202, 401])
@shows("MQSRM-2.2.5.1.2", 2)
@shows("MQSRM-3.1.2.1", 1)
@shows("MQSRM-3.1.6.1", 1, 2, 3, 4)
def test_whatever_else_is_answered_it_goes_again(room: Mailroom, status: int) -> None:
    (post,) = room.sends(BETA_PLAIN, b"hello")
    room.answered(post, status)
    assert room.passes(29_999) == []
    (again,) = room.passes(1)
    assert (again.body, again.url) == (post.body, post.url)
    assert again.call != post.call


@shows("MQSRM-3.1.3.1", 8, 9, 10, 11, 12)
def test_pauses_grow_and_end_with_what_is_accepted(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    for pause_s in (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21_600, 21_600):
        room.failed(post)
        assert room.passes(pause_s * 1000 - 1) == []
        (post,) = room.passes(1)
    room.answered(post)
    (post,) = room.sends(BETA_PLAIN, b"2")
    room.failed(post)
    assert len(room.passes(30_000)) == 1


def test_a_driver_with_too_much_to_do_is_asked_again_soon(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    room.failed(post, PostFailure.BUSY)
    assert len(room.passes(1_000)) == 1


def test_an_operator_need_not_wait_for_the_pause(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    room.failed(post)
    room.posted()
    room.ok(api.ControlOutgoing(BETA_PLAIN, "resume"))
    assert len(room.posted()) == 1


@shows("MQSRM-3.1.7.2.5", 9, 12)
@shows("MQSRM-3.1.7.9", 7)
def test_an_operator_sees_how_it_stands(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    (shown,) = room.ok(api.ListOutgoing(BETA_PLAIN)).queues
    assert (shown.state, shown.failing, is_stuck(shown)) == ("CONNECTED", False, False)
    room.failed(post)
    (shown,) = room.ok(api.ListOutgoing(BETA_PLAIN)).queues
    assert shown.state == "INACTIVE"
    assert shown.explanation == (
        f"There is no connection to {shown.format_name}: no answer; next try in 30 s."
    )
    assert shown.failing


def test_what_fails_is_stuck_until_something_was_accepted(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    room.failed(post)
    for _ in range(3):
        (shown,) = room.ok(api.ListOutgoing(BETA_PLAIN)).queues
        assert is_stuck(shown)
        # It is tried again, and nobody knows yet whether it is better now.
        (post,) = room.passes(30_000)
        (shown,) = room.ok(api.ListOutgoing(BETA_PLAIN)).queues
        assert (shown.state, is_stuck(shown)) == ("CONNECTED", True)
        room.failed(post)
    (post,) = room.passes(300_000)
    (other,) = room.sends(BETA_PLAIN, b"2")
    room.answered(post)
    (shown,) = room.ok(api.ListOutgoing(BETA_PLAIN)).queues
    assert (shown.message_count, shown.failing, is_stuck(shown)) == (1, False, False)
    room.answered(other)
    assert room.waiting(BETA_PLAIN) == 0


def test_a_driver_with_too_much_to_do_is_no_failure(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"1")
    room.failed(post, PostFailure.BUSY)
    (shown,) = room.ok(api.ListOutgoing(BETA_PLAIN)).queues
    assert not is_stuck(shown)


def test_many_are_under_way_in_their_order(room: Mailroom) -> None:
    bodies = [b"%d" % number for number in range(POSTS_UNDER_WAY_MAX_COUNT + 5)]
    posts = room.sends(BETA_PLAIN, *bodies)
    assert list(map(body_of, posts)) == bodies[:POSTS_UNDER_WAY_MAX_COUNT]
    room.answered(posts[0])
    room.answered(posts[1])
    assert list(map(body_of, room.posted())) == bodies[POSTS_UNDER_WAY_MAX_COUNT:][:2]


def test_large_messages_are_fewer(room: Mailroom) -> None:
    size = POSTS_UNDER_WAY_PER_QUEUE_BYTES // 3
    assert len(room.sends(BETA_PLAIN, *[bytes(size)] * 6)) == 3


def test_what_expires_while_it_waits_is_not_posted(room: Mailroom) -> None:
    (post,) = room.sends(BETA_PLAIN, b"hello", time_to_reach_queue_s=5, journal_on_failure=True)
    room.failed(post)
    assert room.passes(30_000) == []
    assert room.bodies(DEAD) == [b"hello"]


@shows("MQSRM-3.1.7.5", 1)
def test_a_paused_queue_posts_nothing(room: Mailroom) -> None:
    room.open(BETA_PLAIN, AccessMode.SEND)
    room.ok(api.ControlOutgoing(BETA_PLAIN, "pause"))
    assert room.sends(BETA_PLAIN, b"1") == []
    room.ok(api.ControlOutgoing(BETA_PLAIN, "resume"))
    assert len(room.posted()) == 1


@pytest.mark.parametrize("name", [BETA_PLAIN, BETA_STREAM])
@pytest.mark.parametrize("outcome", [200, 500, None])
@shows("MQSRM-3.1.7.4", 2)
@shows("MQSRM-3.1.7.5", 2, 3)
def test_in_a_paused_queue_no_time_is_up(room: Mailroom, name: str, outcome: int | None) -> None:
    first, second = room.sends(name, b"1", b"2")
    room.ok(api.ControlOutgoing(name, "pause"))
    for post in (first, second):
        if outcome is None:
            room.failed(post)
        else:
            room.answered(post, outcome)
    (shown,) = room.ok(api.ListOutgoing(name)).queues
    assert shown.state == "ONHOLD"
    assert room.passes(30_000_000) == []
    room.ok(api.ControlOutgoing(name, "resume"))
    bodies = [body_of(post) for post in room.posted()]
    assert bodies == ([] if outcome == 200 and name == BETA_PLAIN else [b"1", b"2"])


@shows("MQSRM-3.1.3.1", 13, 14)
def test_how_long_to_wait_is_configured() -> None:
    room = Mailroom(transfer=TransferConfig(resend_first_s=7, resend_second_s=11))
    (post,) = room.sends(BETA_PLAIN, b"1")
    for pause_s in (7, 7, 7, 11, 11):
        room.failed(post)
        assert room.passes(pause_s * 1000 - 1) == []
        (post,) = room.passes(1)


@shows("MQSRM-3.1.7.2.5", 10)
def test_what_failed_goes_again_once_and_not_for_its_receipt_too(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    room.passes(20_000)
    room.answered(post, 500)
    assert room.passes(29_999) == []
    (again,) = room.passes(1)
    room.answered(again)
    assert room.passes(29_999) == []


@shows("MQSRM-3.1.7.7", 1, 3)
@shows("MQSRM-3.1.7.8", 1, 2)
@shows("MQSRM-3.1.7.2", 1)
@shows("MQSRM-3.1.1.1.3", 3)
def test_a_message_leaves_as_soon_as_it_is_there(room: Mailroom) -> None:
    (first,) = room.sends(BETA_PLAIN, b"1")
    (second,) = room.sends(BETA_PLAIN, b"2")
    assert [body_of(post) for post in (first, second)] == [b"1", b"2"]
    room.failed(first)
    # Nothing leaves while what came before it waits to go again.
    assert room.sends(BETA_PLAIN, b"3") == []
    assert [body_of(post) for post in room.passes(30_000)] == [b"1", b"3"]


def test_a_message_of_another_class_is_told_at_once(room: Mailroom) -> None:
    handle = room.open(BETA_PLAIN, AccessMode.SEND)
    bare = decode(Draft().packet(BETA_PLAIN.removeprefix("DIRECT=")))
    assert isinstance(bare, UserMessage)
    report = structs.replace(bare.properties, message_class=MessageClass.REPORT)
    packet = encode(structs.replace(bare, properties=report))
    assert room.error(api.Send(handle, [packet])) == "MQ_ERROR_INVALID_PARAMETER"


def test_nothing_is_lost_by_a_crash(room: Mailroom) -> None:
    room.sends(BETA_PLAIN, b"1", b"2")
    room.posted()
    room.driver.node.crash(room.driver.now, committed=False)
    room.app = room.driver.connect()
    room.driver.pump()
    assert list(map(body_of, room.posted())) == [b"1", b"2"]


def test_what_is_asked_for_stands_in_the_envelope(room: Mailroom) -> None:
    (post,) = room.sends(
        BETA_PLAIN,
        b"1",
        acknowledge=POSITIVE_ARRIVAL | NEGATIVE_RECEIVE,
        admin_queue="HTTP://alpha/msmq/private$/told",
    )
    services = envelope_of(post).services
    assert services is not None
    assert services.send_to == "http://alpha/msmq/private$/told"
    assert (services.delivery, services.positive, services.negative) == (True, False, True)


def test_acknowledgments_come_over_http_or_not_at_all(room: Mailroom) -> None:
    handle = room.open(BETA_PLAIN, AccessMode.SEND)
    packet = Draft(acknowledge=POSITIVE_ARRIVAL, admin_queue=r"OS:alpha\private$\told").packet(
        BETA_PLAIN.removeprefix("DIRECT=")
    )
    assert room.error(api.Send(handle, [packet])) == "MQ_ERROR_INVALID_PARAMETER"


def test_what_is_protected_does_not_leave_without_its_protection(room: Mailroom) -> None:
    handle = room.open(BETA_PLAIN, AccessMode.SEND)
    bare = decode(Draft().packet(BETA_PLAIN.removeprefix("DIRECT=")))
    assert isinstance(bare, UserMessage)
    packet = encode(
        structs.replace(bare, security=SecurityHeader(encryption_key=b"key!", flags=BODY_ENCRYPTED))
    )
    assert room.error(api.Send(handle, [packet])) == "MQ_ERROR_INVALID_PARAMETER"


# Streams.


def test_the_first_message_of_a_stream_says_where_receipts_go(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2")
    one, two = envelope_of(first).stream, envelope_of(second).stream
    assert one is not None
    assert two is not None
    start, word = one.receipts_to.split("?SenderStream=")
    assert start == "http://ALPHA/msmq/private$/order_queue$"
    assert len(word) == 32
    assert (one.current, one.previous or 0, two.current, two.previous) == (1, 0, 2, 1)
    assert (one.source, one.sequence) == (room.manager.identifier, two.sequence)
    assert two.receipts_to == ""


@pytest.mark.spec("MQSRM-3.1.6.2-02")
def test_a_message_of_a_stream_waits_for_its_receipt(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    room.answered(post)
    assert room.waiting(BETA_STREAM) == 1
    (again,) = room.passes(30_000)
    assert again.body == post.body


def test_what_follows_one_that_failed_goes_again_with_it(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2")
    room.answered(first, 500)
    # It was ignored: the one before it had not come.
    room.answered(second, 200)
    assert list(map(body_of, room.passes(30_000))) == [b"1", b"2"]


def test_a_message_of_a_stream_that_is_refused_is_bridged(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2", journal_on_failure=True)
    room.answered(first, 400)
    room.answered(second, 200)
    assert room.bodies(DEAD_TRANSACTIONAL) == [b"1"]
    (again,) = room.passes(30_000)
    stream = envelope_of(again).stream
    assert stream is not None
    assert (stream.current, stream.previous) == (2, 0)
    assert stream.receipts_to


@settings(max_examples=40)
@given(st.lists(st.sampled_from([200, 400, 500, None]), min_size=3, max_size=12))
def test_whatever_is_answered_each_message_has_one_end(outcomes: list[int | None]) -> None:
    room = Mailroom()
    posts = room.sends(BETA_PLAIN, b"1", b"2", b"3", journal_on_failure=True)
    accepted: list[bytes] = []
    for outcome in outcomes:
        if not posts:
            posts = room.passes(30_000_000)
        if not posts:
            break
        post = posts.pop(0)
        if outcome is None:
            room.failed(post)
        else:
            room.answered(post, outcome)
        if outcome == 200:
            accepted.append(body_of(post))
        posts += room.posted()
    left = room.waiting(BETA_PLAIN)
    assert sorted([*accepted, *room.bodies(DEAD)]) == sorted({*accepted, *room.bodies(DEAD)})
    assert len(accepted) + len(room.bodies(DEAD)) + left == 3
