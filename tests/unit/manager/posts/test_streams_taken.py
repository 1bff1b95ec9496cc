"""Streams that come: what is taken, what operators see of it, and when its sender hears of it."""

from __future__ import annotations

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Persist
from openmsmq.protocol.posts import OutgoingPost
from openmsmq.wire.srmp.envelope import Stream, StreamReceipt
from tests.conformance.marks import shows
from tests.unit.manager.office import LEDGER
from tests.unit.manager.posts.mailroom import (
    LEDGER_URL,
    PEER,
    RECEIPTS,
    START_S,
    Mailroom,
    envelope_of,
    message,
    of_stream,
)

TAKEN = "MQSRM-3.1.5.1.6.3"
SHOWN = "MQSRM-3.1.5.1.6.4"
TOLD = "MQSRM-3.1.6.3"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def shown(room: Mailroom) -> api.IncomingSequenceStatus:
    """What an operator sees of the only stream there is."""
    (found,) = room.ok(api.PageIncomingSequences()).sequences
    assert isinstance(found, api.IncomingSequenceStatus)
    return found


def told(posts: list[OutgoingPost]) -> list[StreamReceipt]:
    """What receipts of streams say."""
    receipts = [envelope_of(post).stream_receipt for post in posts]
    return [receipt for receipt in receipts if receipt is not None]


# What is taken.


@shows(TAKEN, 1)
@shows("MQSRM-2.2.5.3", 4)
def test_each_message_is_taken_once_and_behind_the_one_before(room: Mailroom) -> None:
    for number, is_next in ((1, True), (3, False), (1, False), (2, True), (2, False), (3, True)):
        before = len(room.bodies(LEDGER))
        assert room.post(of_stream(number, start=number == 1)) == 200
        assert len(room.bodies(LEDGER)) - before == is_next, number


@shows(TAKEN, 1)
@pytest.mark.parametrize(("previous", "is_taken"), [(0, True), (2, True), (3, False)])
def test_a_gap_is_passed_over_if_all_before_it_has_come(
    room: Mailroom, previous: int, is_taken: bool
) -> None:
    for number in (1, 2):
        room.post(of_stream(number, start=number == 1))
    later = structs.replace(of_stream(9), stream=Stream(PEER, 5, 9, previous))
    assert room.post(later, b"nine") == 200
    assert (b"nine" in room.bodies(LEDGER)) is is_taken


@shows(TAKEN, 2, 3, 4)
@shows(SHOWN, 1, 3, 8, 9)
def test_how_far_a_stream_has_come_is_known(room: Mailroom) -> None:
    for number in (1, 2, 4):
        room.post(of_stream(number, start=number == 1))
    assert (shown(room).sequence, shown(room).number) == (5, 2)
    # A younger stream of the sender begins again.
    room.post(of_stream(1, start=True, sequence=6))
    assert (shown(room).sequence, shown(room).number) == (6, 1)
    room.post(of_stream(3, sequence=5))
    assert (shown(room).sequence, shown(room).number) == (6, 1)


@shows(SHOWN, 2, 5, 6, 7, 10)
def test_a_stream_is_of_its_sender_for_its_queue(room: Mailroom) -> None:
    room.passes(7_000)
    room.post(of_stream(1, start=True))
    found = shown(room)
    assert found.manager == bytes(PEER)
    assert found.destination.lower() == f"direct={LEDGER_URL}".lower()
    assert found.last_time_s == START_S + 7
    room.passes(5_000)
    room.post(of_stream(1, start=True))
    assert shown(room).last_time_s == START_S + 12


@pytest.mark.parametrize(
    "url", [LEDGER_URL.replace("ledger", "LEDGER"), LEDGER_URL.replace("$/", "$\\")]
)
def test_a_url_in_another_spelling_does_not_make_another_stream(room: Mailroom, url: str) -> None:
    room.post(of_stream(1, start=True))
    assert room.post(structs.replace(of_stream(1, start=True), to=url)) == 200
    assert room.bodies(LEDGER) == [b"body"]
    assert room.post(structs.replace(of_stream(2), to=url)) == 200
    assert len(room.bodies(LEDGER)) == 2
    assert shown(room).number == 2


@shows(SHOWN, 11, 12)
def test_what_is_rejected_is_counted_until_something_is_taken(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    for count, number in enumerate((3, 1, 4), 1):
        assert room.post(of_stream(number)) == 200
        assert shown(room).rejected_count == count
    room.post(of_stream(2))
    assert shown(room).rejected_count == 0


# Receipts.


@shows(TAKEN, 5, 6)
@shows(TOLD, 6, 7, 8, 9)
@shows("MQSRM-2.2.5.6", 2, 4)
def test_a_receipt_names_the_stream_and_the_last_message(room: Mailroom) -> None:
    for number in (1, 2, 3):
        room.post(of_stream(number, start=number == 1))
    (post,) = room.passes(500)
    found = envelope_of(post)
    assert (post.url, found.to) == (RECEIPTS, RECEIPTS)
    assert told([post]) == [StreamReceipt(PEER, 5, 3)]
    assert found.action == "MSMQ:QM Ordering Ack"


@shows(TAKEN, 8, 13)
@shows("MQSRM-3.1.2.3", 1, 2, 3)
@shows(TOLD, 1, 2, 3)
def test_a_receipt_waits_until_half_a_second_is_quiet(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    assert room.passes(400) == []
    room.post(of_stream(2))
    assert room.passes(499) == []
    assert [receipt.last for receipt in told(room.passes(1))] == [2]
    assert room.passes(60_000) == []


@shows(TAKEN, 7, 9, 10, 11, 12)
def test_a_sender_who_is_never_quiet_hears_after_ten_seconds(room: Mailroom) -> None:
    heard: list[int] = []
    for number in range(1, 60):
        room.post(of_stream(number, start=number == 1))
        posts = room.passes(400)
        for post in posts:
            room.answered(post)
        heard += [400 * number] * len(posts)
    assert len(heard) == 2, heard
    assert 10_000 <= heard[0] <= 11_200
    assert 10_000 <= heard[1] - heard[0] <= 11_200


@shows(TOLD, 5, 10)
@shows("MQSRM-3.1.1.3.2", 1)
def test_what_was_told_is_not_told_again_and_numbers_grow(room: Mailroom) -> None:
    lasts: list[int] = []
    for number in (1, 2, 5, 3):
        room.post(of_stream(number, start=number == 1))
        posts = room.passes(600)
        for post in posts:
            room.answered(post)
        lasts += [receipt.last for receipt in told(posts)]
    # The one too early is not told of; its sender hears again how far he has come.
    assert lasts == [1, 2, 2, 3]
    assert room.passes(100_000) == []


@shows("MQSRM-3.1.1.3.2", 2)
def test_nothing_is_told_of_what_is_not_on_the_disk(room: Mailroom) -> None:
    node = room.driver.node
    room.hand_in(of_stream(1, start=True))
    (persist,) = (output for output in node.take() if isinstance(output, Persist))
    now = structs.replace(room.driver.now, ticks_ms=room.driver.now.ticks_ms + 5_000)
    node.manager.wake(now)
    assert not any(isinstance(output, OutgoingPost) for output in node.take())
    assert node.commit(persist, now)
    room.driver.now = now
    assert room.bodies(LEDGER) == [b"body"]
    assert [receipt.last for receipt in told(room.passes(5_000))] == [1]


@shows("MQSRM-3.1.1.1.6", 5, 6, 7, 8)
@shows("MQSRM-3.1.1.1.1", 1, 2)
def test_how_far_a_stream_has_come_is_known_after_a_crash(room: Mailroom) -> None:
    for number in (1, 2):
        room.post(of_stream(number, start=number == 1))
    room.crash()
    assert room.post(of_stream(2)) == 200
    assert room.post(of_stream(3), b"third") == 200
    assert room.bodies(LEDGER) == [b"body", b"body", b"third"]
    assert told(room.passes(600)) == [StreamReceipt(PEER, 5, 3)]


@shows("MQSRM-3.1.3.2", 1, 5, 7)
@shows("MQSRM-3.1.4.1", 1)
def test_after_a_start_nothing_is_told_before_something_comes(room: Mailroom) -> None:
    room.post(of_stream(1, start=True))
    room.crash()
    assert room.passes(100_000) == []
    room.post(of_stream(1))
    assert room.passes(400) == []
    # What came before the start does not make it hurry.
    room.post(of_stream(2))
    assert room.passes(499) == []
    assert told(room.passes(1)) == [StreamReceipt(PEER, 5, 2)]
    assert len(room.bodies(LEDGER)) == 2


def test_a_message_of_a_stream_wants_a_part_of_message_queuing(room: Mailroom) -> None:
    bare = structs.replace(message(to=LEDGER_URL, stream=Stream(PEER, 5, 1)), msmq=None)
    assert room.post(bare) == 400
