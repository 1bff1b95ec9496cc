"""What a receipt for a stream of ours does, in all its steps. [MQSRM 3.1.5.1.8]"""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.message import MessageClass
from openmsmq.protocol.posts import OutgoingPost
from tests.conformance.marks import shows
from tests.unit.manager.office import START_S
from tests.unit.manager.posts.mailroom import (
    BETA_STREAM,
    LEDGER_URL,
    PEER,
    Mailroom,
    body_of,
    of_stream,
    receipt,
    target_of,
)

JOURNAL = r".\system$;journal"
COUNTED = "MQSRM-3.1.5.1.8.2"
TABLE_S = (30, 30, 30, 300, 300, 300, 1_800, 1_800, 1_800, 21_600)


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def shown(room: Mailroom) -> api.OutgoingStatus:
    """What an operator sees of the outgoing queue."""
    (found,) = room.ok(api.ListOutgoing(BETA_STREAM)).queues
    assert isinstance(found, api.OutgoingStatus)
    return found


def tells(
    room: Mailroom, first: OutgoingPost, post: OutgoingPost, end: MessageClass | None = None
) -> None:
    """Let the receiver say how far the stream of a post has come, or how its message ended."""
    assert room.post(receipt(post, end), target=target_of(first)) == 200


@shows("MQSRM-3.1.5.1.8", 1)
def test_a_receipt_acknowledges_counts_deletes_and_copies(room: Mailroom) -> None:
    posts = [
        room.sends(BETA_STREAM, body, journal_on_success=wanted)[0]
        for body, wanted in ((b"1", True), (b"2", False), (b"3", True))
    ]
    for post in posts:
        room.answered(post)
    room.passes(5_000)
    before = shown(room)
    assert (before.unacknowledged_count, before.last_ack_count, before.message_count) == (3, 0, 3)
    assert room.bodies(JOURNAL) == []
    tells(room, posts[0], posts[1])
    after = shown(room)
    # Acknowledged: only the third goes again. Counted, for operators. Deleted. Copied, if wanted.
    assert (after.unacknowledged_count, after.first_unacknowledged.number) == (1, 3)
    assert (after.last_ack_count, after.last_ack_time_s) == (1, START_S + 5)
    assert after.message_count == 1
    assert room.bodies(JOURNAL) == [b"1"]
    assert [body_of(post) for post in room.passes(30_000)] == [b"3"]


@shows(COUNTED, 6)
def test_each_that_is_acknowledged_counts_as_unread_until_it_is_deleted(room: Mailroom) -> None:
    posts = room.sends(BETA_STREAM, b"1", b"2", b"3", journal_on_failure=True)
    assert shown(room).unread_count == 0
    for count, post in enumerate(posts, 1):
        tells(room, posts[0], post)
        assert (shown(room).unread_count, shown(room).unacknowledged_count) == (count, 3 - count)
    # One receipt may be for several.
    again = room.sends(BETA_STREAM, b"4", b"5", journal_on_failure=True)
    tells(room, target_for(again, posts), again[1])
    assert shown(room).unread_count == 5
    # One that waits for no end is deleted with its receipt, and counts no more.
    (silent,) = room.sends(BETA_STREAM, b"6")
    tells(room, target_for([silent], posts), silent)
    assert shown(room).unread_count == 5
    tells(room, posts[0], posts[0], MessageClass.ACK_RECEIVE)
    assert shown(room).unread_count == 4


def target_for(posts: list[OutgoingPost], before: list[OutgoingPost]) -> OutgoingPost:
    """The post that says where receipts go: the first of its stream."""
    return posts[0] if target_of(posts[0]) else before[0]


@shows(COUNTED, 14, 15)
def test_how_long_a_receipt_is_waited_for_is_what_the_table_says(room: Mailroom) -> None:
    first, second = room.sends(BETA_STREAM, b"1", b"2")
    for post in (first, second):
        room.answered(post)
    # Behind its end the table has nothing: its last entry counts on.
    for pause_s in (*TABLE_S, TABLE_S[-1], TABLE_S[-1]):
        assert shown(room).resend_interval_s == pause_s
        assert room.passes(pause_s * 1_000 - 1) == []
        posts = room.passes(1)
        assert {body_of(post) for post in posts} == {b"1", b"2"}
        for post in posts:
            room.answered(post)
    tells(room, first, first)
    # What it is after a receipt is in the table, too, and it is what happens (S-18).
    assert shown(room).resend_interval_s == TABLE_S[0]
    assert room.passes(TABLE_S[0] * 1_000 - 1) == []
    assert [body_of(post) for post in room.passes(1)] == [b"2"]


@shows("MQSRM-3.1.5.1.6.4", 4)
def test_what_is_known_of_a_stream_that_comes_is_said_of_its_last_message(room: Mailroom) -> None:
    room.passes(9_000)
    for number in (1, 2):
        assert room.post(of_stream(number, start=number == 1, sequence=77)) == 200
    assert room.post(of_stream(5, sequence=77)) == 200
    (found,) = room.ok(api.PageIncomingSequences()).sequences
    assert found.destination.lower() == f"direct={LEDGER_URL}".lower()
    assert found.manager == bytes(PEER)
    assert (found.sequence, found.number) == (77, 2)
    assert found.last_time_s == START_S + 9
    assert found.rejected_count == 1
