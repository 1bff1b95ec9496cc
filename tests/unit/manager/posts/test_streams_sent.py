"""Streams that leave: their numbers, what operators see of them, and how receipts change that."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.message import MessageClass
from openmsmq.protocol.posts import OutgoingPost
from tests.conformance.marks import shows
from tests.unit.manager.posts.mailroom import (
    BETA_STREAM,
    START_S,
    Mailroom,
    body_of,
    envelope_of,
    receipt,
    stream_of,
    target_of,
)

ELSEWHERE = "DIRECT=HTTPS://gamma/msmq/private$/stream"
DEAD = r".\system$;deadxact"
JOURNAL = r".\system$;journal"
NUMBERED = "MQSRM-3.1.7.2.3"
COUNTED = "MQSRM-3.1.5.1.8.2"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def shown(room: Mailroom, name: str = BETA_STREAM) -> api.OutgoingStatus:
    """What an operator sees of an outgoing queue."""
    (found,) = room.ok(api.ListOutgoing(name)).queues
    assert isinstance(found, api.OutgoingStatus)
    return found


def told(
    room: Mailroom,
    post: OutgoingPost,
    end: MessageClass | None = None,
    *,
    word: OutgoingPost | None = None,
    **parts: int,
) -> None:
    """Let the receiver of a post say how far its stream has come, or how its message ended.

    `word` is the post that told where receipts go, if it is another one.
    """
    target = target_of(post if word is None else word)
    assert room.post(receipt(post, end, **parts), target=target) == 200


# Numbers.


@shows(NUMBERED, 1, 4, 6, 10, 11, 13, 14)
@shows("MQSRM-2.2.5.3.2", 3)
def test_a_stream_has_an_identity_and_its_messages_are_numbered_from_one(room: Mailroom) -> None:
    streams = [stream_of(post) for post in room.sends(BETA_STREAM, b"1", b"2", b"3")]
    assert [stream.source for stream in streams] == [room.manager.identifier] * 3
    assert len({stream.sequence for stream in streams}) == 1
    assert [stream.current for stream in streams] == [1, 2, 3]
    # Where nothing is said of the one before, there is none.
    assert [stream.previous or 0 for stream in streams] == [0, 1, 2]
    (plain,) = room.sends("DIRECT=HTTP://beta/msmq/private$/plain", b"4")
    assert envelope_of(plain).stream is None


@shows(NUMBERED, 3, 5, 7, 8, 9)
def test_each_queue_has_a_stream_of_its_own(room: Mailroom) -> None:
    (one,) = room.sends(BETA_STREAM, b"1")
    (other,) = room.sends(ELSEWHERE, b"2")
    assert stream_of(one).sequence != stream_of(other).sequence
    assert (stream_of(one).current, stream_of(other).current) == (1, 1)
    told(room, other)
    assert (room.waiting(BETA_STREAM), room.waiting(ELSEWHERE)) == (1, 0)
    (next_,) = room.sends(ELSEWHERE, b"3")
    # Ordinals go on by one, and no stream is like one before.
    before, after = stream_of(other).sequence, stream_of(next_).sequence
    assert after & 0xFFFFFFFF == (before & 0xFFFFFFFF) + 1
    assert after > before


@shows("MQSRM-3.1.1.2", 1, 2, 3)
@shows("MQSRM-2.2.5.3.4", 4)
def test_when_all_is_acknowledged_a_new_stream_begins(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2")
    assert [bool(stream_of(post).receipts_to) for post in (first, second)] == [True, False]
    told(room, first)
    told(room, second, word=first)
    posts = room.sends(BETA_STREAM, b"3", b"4")
    assert [stream_of(post).current for post in posts] == [1, 2]
    assert {stream_of(post).sequence for post in posts} == {stream_of(posts[0]).sequence}
    before, after = stream_of(first).sequence, stream_of(posts[0]).sequence
    assert (after > before, after & 0xFFFFFFFF) == (True, (before & 0xFFFFFFFF) + 1)
    assert [bool(stream_of(post).receipts_to) for post in posts] == [True, False]


@shows("MQSRM-3.1.1.1.5", 1, 2)
@shows("MQSRM-3.1.1.1.6", 2, 3, 4)
@shows("MQSRM-3.1.3.1", 4, 6)
@shows("MQSRM-3.1.3.2", 2)
def test_numbers_and_streams_go_on_after_a_crash(room: Mailroom) -> None:
    (one,) = room.sends(BETA_STREAM, b"1")
    (plain,) = room.sends("DIRECT=HTTP://beta/msmq/private$/plain", b"2")
    room.crash()
    again = {body_of(post): post for post in room.posted()}
    assert stream_of(again[b"1"]) == stream_of(one)
    assert envelope_of(again[b"1"]).id == envelope_of(one).id
    (two,) = room.sends(BETA_STREAM, b"3")
    assert (stream_of(two).sequence, stream_of(two).current) == (stream_of(one).sequence, 2)
    assert envelope_of(two).id.number > envelope_of(plain).id.number
    (other,) = room.sends(ELSEWHERE, b"4")
    assert stream_of(other).sequence != stream_of(one).sequence


@shows(NUMBERED, 12)
def test_a_gap_is_bridged_when_a_message_goes_again(room: Mailroom) -> None:
    first, second, third = room.sends(BETA_STREAM, b"1", b"2", b"3")
    room.answered(first)
    room.answered(second, 400)
    room.answered(third)
    told(room, first)
    (again,) = room.passes(30_000)
    assert body_of(again) == b"3"
    # Of those that are still there none is before it: what was acknowledged need not be named.
    stream = stream_of(again)
    assert stream.current == 3
    assert (stream.previous or 0) < 2


@shows("MQSRM-3.1.7.2.2", 1, 2)
def test_messages_are_numbered_one_after_the_other(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1", b"2") + room.sends(ELSEWHERE, b"3")
    ids = [envelope_of(post).id for post in posts]
    assert {id.source for id in ids} == {room.manager.identifier}
    assert [id.number - ids[0].number for id in ids] == [0, 1, 2]


# What operators see.


@shows(NUMBERED, 15, 17, 18, 22, 23, 24, 25)
def test_what_was_sent_last_waits_for_its_receipt(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1", b"2", b"3")
    found = shown(room)
    sequence = stream_of(posts[0]).sequence
    assert found.last_unacknowledged == api.SequencePlace(sequence, 3, 2)
    assert (found.message_count, found.unacknowledged_count) == (3, 3)


@shows(NUMBERED, 26, 27, 28, 29, 30, 35)
def test_the_place_of_the_next_message_is_known(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1")
    sequence = stream_of(posts[0]).sequence
    found = shown(room)
    assert found.next_place == api.SequencePlace(sequence, 2, 1)
    assert found.first_unacknowledged == found.last_unacknowledged
    assert found.first_unacknowledged == api.SequencePlace(sequence, 1, 0)
    room.sends(BETA_STREAM, b"2")
    assert (shown(room).unacknowledged_count, shown(room).next_place.number) == (2, 3)
    assert shown(room).first_unacknowledged == found.first_unacknowledged


@shows(NUMBERED, 19, 20, 31, 32, 33, 34)
def test_the_counts_of_a_stream_begin_with_its_first_message(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2")
    told(room, first)
    told(room, second, word=first)
    assert shown(room).last_ack_count == 2
    (post,) = room.sends(BETA_STREAM, b"3")
    found = shown(room)
    assert found.last_acknowledged == api.SequencePlace(stream_of(post).sequence, 0, 0)
    assert (found.last_ack_count, found.unacknowledged_count) == (0, 1)


@shows(NUMBERED, 36, 37)
@shows("MQSRM-3.1.6.2", 1, 3, 4)
def test_what_has_no_receipt_goes_again_when_operators_see_that_it_will(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    room.answered(post)
    assert shown(room).resend_time_s == START_S + 30
    assert room.passes(29_000) == []
    (again,) = room.passes(1_000)
    room.answered(again)
    assert (shown(room).resend_count, shown(room).resend_time_s) == (1, START_S + 60)
    (last,) = room.passes(30_000)
    assert last.body == again.body == post.body


@pytest.mark.parametrize("wants_dead_letter", [True, False])
@shows(NUMBERED, 16)
@shows("MQSRM-3.1.5.1.8.3", 1)
@shows("MQSRM-3.1.1.3.2", 3)
def test_only_what_wants_a_dead_letter_waits_for_its_end(
    room: Mailroom, wants_dead_letter: bool
) -> None:
    (post,) = room.sends(BETA_STREAM, b"1", journal_on_failure=wants_dead_letter)
    told(room, post)
    assert room.waiting(BETA_STREAM) == 0
    assert [each.unread_count for each in room.ok(api.ListOutgoing(BETA_STREAM)).queues] == [
        int(wants_dead_letter)
    ]


# Receipts.


@shows(COUNTED, 1, 2, 3, 4, 5)
@shows("MQSRM-3.1.5.1.8.1", 1, 2, 3)
def test_a_receipt_is_counted_and_what_it_names_is_acknowledged(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1", b"2", b"3")
    room.sends(ELSEWHERE, b"4")
    room.passes(5_000)
    told(room, posts[1], word=posts[0])
    found = shown(room)
    assert (found.last_ack_time_s, found.last_ack_count) == (START_S + 5, 1)
    assert found.last_acknowledged.number == 2
    assert (found.unacknowledged_count, room.waiting(BETA_STREAM)) == (1, 1)
    told(room, posts[0])
    # An older one is counted and says nothing new; other queues hear nothing of it.
    found = shown(room)
    assert (found.last_ack_count, found.last_acknowledged.number) == (2, 2)
    assert (shown(room, ELSEWHERE).last_ack_count, room.waiting(ELSEWHERE)) == (0, 1)


@shows(COUNTED, 7, 8, 9, 10, 11, 12)
def test_the_first_that_is_left_is_shown_and_then_none(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1", b"2", b"3")
    sequence = stream_of(posts[0]).sequence
    told(room, posts[0])
    assert shown(room).first_unacknowledged.number == 2
    told(room, posts[1], word=posts[0])
    assert shown(room).first_unacknowledged == api.SequencePlace(sequence, 3, 0)
    assert shown(room).last_unacknowledged == api.SequencePlace(sequence, 3, 0)
    told(room, posts[2], word=posts[0])
    assert shown(room).first_unacknowledged == api.SequencePlace()
    assert shown(room).last_unacknowledged == api.SequencePlace()


@shows("MQSRM-3.1.5.1.8.4", 1)
@shows("MQSRM-3.1.5.2.2", 1)
@shows("MQSRM-3.1.5.2", 1)
def test_what_has_come_is_in_the_journal_if_it_asked(room: Mailroom) -> None:
    wanted, unwanted = (
        room.sends(BETA_STREAM, body, journal_on_success=wanted)[0]
        for body, wanted in ((b"1", True), (b"2", False))
    )
    told(room, unwanted, word=wanted)
    assert room.bodies(JOURNAL) == [b"1"]
    assert room.waiting(BETA_STREAM) == 0


@pytest.mark.parametrize(
    ("end", "dead"),
    [(MessageClass.ACK_RECEIVE, False), (MessageClass.NACK_QUEUE_PURGED, True)],
)
@shows("MQSRM-3.1.5.1.9", 1)
@shows("MQSRM-3.1.5.1.9.1", 1, 3, 4, 6)
@shows("MQSRM-3.1.5.1.9.2", 1, 2)
@shows("MQSRM-3.1.5.1.9.3", 1)
def test_the_end_of_a_message_is_the_end_of_its_copy(
    room: Mailroom, end: MessageClass, dead: bool
) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2", journal_on_failure=True)
    told(room, second, word=first)
    (found,) = room.ok(api.ListOutgoing(BETA_STREAM)).queues
    assert found.unread_count == 2
    told(room, first, end)
    (found,) = room.ok(api.ListOutgoing(BETA_STREAM)).queues
    assert found.unread_count == 1
    assert room.bodies(DEAD) == ([b"1"] if dead else [])


@shows("MQSRM-3.1.5.2.1.2", 1)
@shows("MQSRM-3.1.5.2.1", 1)
def test_a_dead_letter_of_a_stream_is_transactional_and_only_for_who_asked(room: Mailroom) -> None:
    asked, silent = (
        room.sends(BETA_STREAM, body, journal_on_failure=wanted)[0]
        for body, wanted in ((b"1", True), (b"2", False))
    )
    for post in (asked, silent):
        told(room, post, MessageClass.NACK_RECEIVE_TIMEOUT, word=asked)
    assert room.bodies(DEAD) == [b"1"]
    assert room.bodies(r".\system$;deadletter") == []


@pytest.mark.parametrize("which", ["stream", "number", "identity"])
@shows("MQSRM-3.1.5.1.9.1", 2, 5)
def test_the_end_of_what_nobody_knows_changes_nothing(room: Mailroom, which: str) -> None:
    (post,) = room.sends(BETA_STREAM, b"1", journal_on_failure=True)
    wrong = {
        "stream": {"sequence": stream_of(post).sequence + 1},
        "number": {"last": 2},
        "identity": {"number": envelope_of(post).id.number + 1},
    }[which]
    told(room, post, MessageClass.NACK_QUEUE_PURGED, **wrong)
    assert (room.waiting(BETA_STREAM), room.bodies(DEAD)) == (1, [])


@shows("MQSRM-3.1.7.6", 1, 2, 3, 4)
@shows("MQSRM-3.1.5.1.9.1", 7)
def test_a_stream_ends_with_its_last_message_and_not_before(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2")
    told(room, first)
    (third,) = room.sends(BETA_STREAM, b"3")
    assert stream_of(third).sequence == stream_of(first).sequence
    told(room, second, word=first)
    told(room, third, word=first)
    (fourth,) = room.sends(BETA_STREAM, b"4")
    assert stream_of(fourth).sequence > stream_of(first).sequence


@shows("MQSRM-3.1.7.2.1", 1, 2, 3, 4, 5)
def test_what_has_expired_is_not_sent_and_is_a_dead_letter(room: Mailroom) -> None:
    wishes = {"time_to_reach_queue_s": 5, "journal_on_failure": True}
    posts = room.sends(BETA_STREAM, b"1", **wishes)
    room.failed(posts[0])
    assert room.passes(30_000) == []
    assert (room.waiting(BETA_STREAM), room.bodies(DEAD)) == (0, [b"1"])
    (next_,) = room.sends(BETA_STREAM, b"2")
    # Its stream is over with it.
    assert stream_of(next_).current == 1
