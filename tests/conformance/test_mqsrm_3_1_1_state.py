"""What the protocol knows, where it begins, and what outlives a crash. [MQSRM 3.1.1, 3.1.3]"""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.manager.config import HttpConfig, ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.wire.srmp.envelope import StreamReceipt
from tests.conformance.marks import shows
from tests.property.driver import Node
from tests.unit.manager.posts.mailroom import (
    BETA_PLAIN,
    BETA_STREAM,
    PEER,
    Mailroom,
    envelope_of,
    of_stream,
    stream_of,
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
