"""Receipts for streams of ours are believed where their URL has our word, and nowhere else."""

from __future__ import annotations

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.notices import Notice, NoticeKind
from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.wire.srmp.envelope import CommitmentReceipt, Envelope, Msmq, StreamReceipt
from tests.strategies.messages import Draft
from tests.unit.manager.posts.mailroom import (
    BETA_STREAM,
    PEER,
    RECEIPTS_PATH,
    START_S,
    Mailroom,
    body_of,
    receipt,
    stream_of,
    target_of,
)

DEAD = r".\system$;deadxact"
JOURNAL = r".\system$;journal"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


@pytest.mark.spec("MQSRM-3.1.5.1.8.3-01")
def test_what_has_come_is_gone(room: Mailroom) -> None:
    first, second, third = room.sends(BETA_STREAM, b"1", b"2", b"3")
    for post in (first, second, third):
        room.answered(post)
    assert room.post(receipt(second), target=target_of(first)) == 200
    assert room.waiting(BETA_STREAM) == 1
    assert list(map(body_of, room.passes(30_000))) == [b"3"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "?SenderStream=",
        "?SenderStream=" + "0" * 32,
        "?SenderStream=" + "0" * 31,
        "?Other={word}",
        "?SenderStream={word}0",
        "?SenderStream={half}",
    ],
)
def test_without_the_word_nobody_is_believed(room: Mailroom, query: str) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    room.answered(post)
    word = target_of(post).partition("=")[2]
    target = RECEIPTS_PATH + query.format(word=word, half=word[:16])
    for end in (None, MessageClass.ACK_RECEIVE, MessageClass.NACK_QUEUE_PURGED):
        asking = receipt(post, end)
        assert room.post(asking, target=target) in (200, 400)
        assert room.waiting(BETA_STREAM) == 1
    refused = [
        output
        for output in room.driver.seen
        if isinstance(output, Notice) and output.kind is NoticeKind.ACKNOWLEDGMENT_REFUSED
    ]
    assert refused


def test_the_word_of_one_queue_is_none_for_another(room: Mailroom) -> None:
    (one,) = room.sends(BETA_STREAM, b"1")
    name = "DIRECT=HTTPS://gamma/msmq/private$/stream"
    room.posted()
    handle = room.open(name, AccessMode.SEND)
    packet = Draft(transactional=True).packet(name.removeprefix("DIRECT="))
    room.ok(api.Send(handle, [packet], api.OWN_TRANSACTION))
    (other,) = room.posted()
    assert target_of(one) != target_of(other)
    assert room.post(receipt(other), target=target_of(one)) == 400
    assert room.waiting(name) == 1


def test_nobody_acknowledges_what_was_never_sent(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    assert room.post(receipt(post, last=99), target=target_of(post)) == 200
    assert room.waiting(BETA_STREAM) == 1


def test_a_receipt_for_somebody_else_is_refused(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    stream = stream_of(post)
    foreign = Envelope(
        to=f"http://alpha{RECEIPTS_PATH}",
        stream_receipt=StreamReceipt(Guid(bytes(15) + b"\1"), stream.sequence, 1),
        msmq=Msmq(255, 0, 0, NIL_GUID, 0),
    )
    assert room.post(foreign, target=target_of(post)) == 400
    assert room.post(Envelope(to=f"http://alpha{RECEIPTS_PATH}"), target=target_of(post)) == 400


def test_the_word_is_the_same_after_a_crash(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    room.driver.node.crash(room.driver.now, committed=False)
    room.app = room.driver.connect()
    room.driver.pump()
    (again,) = room.posted()
    assert target_of(again) == target_of(post)
    assert room.post(receipt(post), target=target_of(post)) == 200
    assert room.waiting(BETA_STREAM) == 0


# The end of a message.


def test_a_message_that_wants_a_dead_letter_waits_for_its_end(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1", journal_on_failure=True)
    room.answered(post)
    assert room.post(receipt(post), target=target_of(post)) == 200
    assert room.waiting(BETA_STREAM) == 0
    assert room.bodies(DEAD) == []
    final = receipt(post, MessageClass.NACK_QUEUE_PURGED)
    assert room.post(final, target=target_of(post)) == 200
    assert room.bodies(DEAD) == [b"1"]
    assert room.classes(DEAD) == [MessageClass.NACK_QUEUE_PURGED]


@pytest.mark.spec("MQSRM-3.1.5.1.8.4-01")
def test_one_that_wants_a_copy_only_has_it_when_it_has_come(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1", journal_on_success=True)
    room.answered(post)
    assert room.bodies(JOURNAL) == []
    assert room.post(receipt(post), target=target_of(post)) == 200
    assert room.bodies(JOURNAL) == [b"1"]


@pytest.mark.spec("MQSRM-3.1.5.1.9.1-05")
def test_the_end_of_a_message_that_nobody_knows_is_nothing(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1", journal_on_failure=True)
    unknown = receipt(post, MessageClass.ACK_RECEIVE)
    assert unknown.commitment_receipt is not None
    wrong = CommitmentReceipt(START_S, True, MessageId(PEER, 99))
    changed = structs.replace(unknown, commitment_receipt=wrong)
    assert room.post(changed, target=target_of(post)) == 200
    assert room.waiting(BETA_STREAM) == 1
