"""What the protocol knows, where it begins, and what outlives a crash. [MQSRM 3.1.1, 3.1.3]"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from openmsmq.api import messages as api
from openmsmq.manager.config import HttpConfig, ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.wire.srmp.envelope import Stream, StreamReceipt
from tests.conformance.marks import shows
from tests.property.driver import Node
from tests.unit.manager.posts.mailroom import (
    BETA_PLAIN,
    BETA_STREAM,
    PEER,
    RECEIPTS,
    Mailroom,
    body_of,
    envelope_of,
    of_stream,
    receipt,
    stream_of,
    target_of,
)
from tests.unit.runtime.config.loaded import load_config

PUBLIC = "https://public.example.com:8443"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


def told(room: Mailroom) -> list[StreamReceipt]:
    """The receipts for streams that are sent once it is quiet."""
    posts = room.passes(600)
    for post in posts:
        room.answered(post)
    receipts = [envelope_of(post).stream_receipt for post in posts]
    return [receipt for receipt in receipts if receipt is not None]


@shows("MQSRM-3.1.1.1.3", 1)
def test_a_queue_manager_is_the_same_after_a_crash_and_no_other(room: Mailroom) -> None:
    identifier = room.manager.identifier
    (before,) = room.sends(BETA_PLAIN, b"1")
    room.crash()
    assert room.manager.identifier == identifier
    (after,) = room.sends(BETA_PLAIN, b"2")[-1:]
    assert {envelope_of(post).id.source for post in (before, after)} == {identifier}
    others = {
        Node(seed, ManagerConfig(name="ALPHA"), Instant(0, 1)).manager.identifier
        for seed in range(100, 120)
    }
    # Names do not make them.
    assert len(others | {identifier}) == 21


@shows("MQSRM-3.1.3.1", 5)
def test_the_first_message_of_all_has_the_number_one(room: Mailroom) -> None:
    (first,) = room.sends(BETA_PLAIN, b"1")
    (second,) = room.sends(BETA_STREAM, b"2")
    # Each message raises the ordinal by one before it goes: it was zero.
    assert [envelope_of(post).id.number for post in (first, second)] == [1, 2]


@shows("MQSRM-3.1.3.2", 4)
@pytest.mark.parametrize("crashes", [False, True])
def test_nothing_of_a_stream_counts_as_told_when_it_begins(room: Mailroom, crashes: bool) -> None:
    for number in (1, 2, 3):
        assert room.post(of_stream(number, start=number == 1)) == 200
    assert told(room) == [StreamReceipt(PEER, 5, 3)]
    if crashes:
        room.crash()
        # What was told before is not known any more: it is told as if for the first time.
        assert room.post(of_stream(3)) == 200
        assert told(room) == [StreamReceipt(PEER, 5, 3)]
    # That the one before had come to 3 does not keep the receipt for 1 of the next one.
    assert room.post(of_stream(1, start=True, sequence=6)) == 200
    assert told(room) == [StreamReceipt(PEER, 6, 1)]


def places(file: Path) -> list[str]:
    """Where the first messages of streams say that receipts go, with a configuration."""
    config = load_config({"data": str(file.parent)}, {}, str(file)).http.config
    assert isinstance(config, HttpConfig)
    room = Mailroom(http=config)
    (post,) = room.sends(BETA_STREAM, b"1")
    found = [stream_of(post).receipts_to]
    room.crash()
    (again,) = room.posted()
    return [*found, stream_of(again).receipts_to]


@shows("MQSRM-3.1.1.1.8", 1)
def test_where_receipts_of_streams_go_is_in_the_configuration_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "openmsmq.toml"
    file.write_text("[http]\nsends = true\n")
    assert {place.partition("/msmq")[0] for place in places(file)} == {"http://ALPHA"}
    file.write_text(f'[http]\nsends = true\nurl = "{PUBLIC}"\n')
    # Each start reads it again.
    for _ in range(2):
        assert {place.partition("/msmq")[0] for place in places(file)} == {PUBLIC}


@shows("MQSRM-3.1.1.1.3", 2)
def test_what_is_to_be_sent_is_there_after_a_crash_if_it_is_durable(room: Mailroom) -> None:
    for name, body, recoverable in (
        (BETA_PLAIN, b"durable", True),
        (BETA_PLAIN, b"express", False),
        (BETA_STREAM, b"stream", True),
    ):
        room.sends(name, body, recoverable=recoverable)
    assert (room.waiting(BETA_PLAIN), room.waiting(BETA_STREAM)) == (2, 1)
    room.crash()
    assert {body_of(post) for post in room.posted()} == {b"durable", b"stream"}
    assert (room.waiting(BETA_PLAIN), room.waiting(BETA_STREAM)) == (1, 1)


@shows("MQSRM-3.1.3.2", 3)
def test_no_wait_for_a_receipt_goes_on_over_a_start(room: Mailroom) -> None:
    (post,) = room.sends(BETA_STREAM, b"1")
    room.answered(post)
    assert room.passes(20_000) == []
    room.crash()
    # It goes again at once, and the wait begins with that, not where it was.
    (again,) = room.posted()
    room.answered(again)
    assert room.passes(29_999) == []
    assert [body_of(each) for each in room.passes(1)] == [b"1"]


@shows("MQSRM-3.1.1.1.6", 1)
def test_each_side_keeps_its_own_account_of_each_stream(room: Mailroom) -> None:
    """Two streams that leave, two that come: whatever happens to one says nothing of the others."""
    other = BETA_STREAM.replace("beta", "gamma")
    (one,), (two,) = room.sends(BETA_STREAM, b"1"), room.sends(other, b"2")
    stranger = Guid(bytes(15) + b"\5")
    foreign = structs.replace(
        of_stream(1, start=True), stream=Stream(stranger, 5, 1, receipts_to=RECEIPTS + "8")
    )
    for envelope in (of_stream(1, start=True), of_stream(2), foreign):
        assert room.post(envelope) == 200

    def sent() -> list[tuple[int, int]]:
        shown = [room.ok(api.ListOutgoing(name)).queues[0] for name in (BETA_STREAM, other)]
        return [(each.unacknowledged_count, each.last_acknowledged.number) for each in shown]

    def taken() -> dict[bytes, int]:
        found = room.ok(api.PageIncomingSequences()).sequences
        return {each.manager: each.number for each in found}

    came = {bytes(PEER): 2, bytes(stranger): 1}
    assert (sent(), taken()) == ([(1, 0), (1, 0)], came)
    assert room.post(receipt(two), target=target_of(two)) == 200
    assert (sent(), taken()) == ([(1, 0), (0, 1)], came)
    assert room.post(of_stream(3)) == 200
    assert (sent(), taken()) == ([(1, 0), (0, 1)], came | {bytes(PEER): 3})
    # A receipt of the first, and what is told to each sender.
    assert room.post(receipt(one), target=target_of(one)) == 200
    assert (sent(), taken()) == ([(0, 1), (0, 1)], came | {bytes(PEER): 3})
    told_of = sorted((each.source, each.last) for each in told(room))
    assert told_of == sorted([(PEER, 3), (stranger, 1)])
