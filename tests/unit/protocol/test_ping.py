"""Pings and who waits for them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.protocol.ping import PINGS_MAX_COUNT, PingAnswered, PingTable, answer
from openmsmq.wire.datagrams import PingPacket

HERE = Guid(b"H" * 16)
THERE = Guid(b"T" * 16)
START = Instant(1_000, 1_700_000_000)


def after(milliseconds: int) -> Instant:
    return Instant(START.ticks_ms + milliseconds, START.unix_s + milliseconds // 1_000)


def wrong_signature(data: bytes) -> bytes:
    return data[:2] + b"XX" + data[4:]


@pytest.mark.spec("MQQB-3.1.7.6-04", "MQQB-3.1.7.6-05", "MQQB-3.1.7.6-06", "MQQB-3.1.1.3-10")
def test_a_question_carries_a_fresh_cookie_and_the_asker_and_no_flags() -> None:
    table = PingTable(HERE)
    for cookie in (1, 2, 3):
        assert table.ask("10.0.0.1", cookie, START) == struct.pack(
            "<HHI16s", 0, 0x5548, cookie, HERE
        )


@pytest.mark.spec("MQQB-3.1.7.6-08", "MQQB-3.1.7.8-04")
@pytest.mark.parametrize("refuse", [False, True])
def test_an_answer_in_time_says_whether_a_session_would_be_taken(refuse: bool) -> None:
    table = PingTable(HERE)
    reply = answer(table.ask("10.0.0.1", "link", START), THERE, refuse)
    assert reply is not None
    table.received(reply, after(999))
    assert table.take_outputs() == [PingAnswered("link", "10.0.0.1", not refuse)]
    assert table.take_outputs() == []
    assert table.next_wake_ms is None


@pytest.mark.spec(
    "MQQB-3.1.7.7-04", "MQQB-3.1.7.7-05", "MQQB-3.1.7.7-06", "MQQB-3.1.7.7-07", "MQQB-2.2.7-03"
)
@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF), st.booleans())
def test_an_answer_repeats_the_cookie_and_the_class_of_the_asker(
    flags: int, cookie: int, refuse: bool
) -> None:
    reply = answer(PingPacket(HERE, cookie, flags).encode(), THERE, refuse)
    assert reply == struct.pack("<HHI16s", flags & 1 | refuse << 1, 0x5548, cookie, THERE)


@pytest.mark.spec("MQQB-3.1.7.7-02")
@given(st.binary(max_size=40) | st.builds(lambda c: PingPacket(HERE, c).encode(), st.just(1)))
def test_only_a_ping_is_answered(data: bytes) -> None:
    is_ping = len(data) == 24 and data[2:4] == b"\x48\x55"
    assert (answer(data, THERE, False) is not None) == is_ping
    assert answer(wrong_signature(data.ljust(24)), THERE, False) is None


@pytest.mark.spec("MQQB-3.1.7.8-02")
def test_what_is_no_ping_answers_no_question() -> None:
    table = PingTable(HERE)
    reply = answer(table.ask("10.0.0.1", "link", START), THERE, False)
    assert reply is not None
    for data in (b"", reply[:-1], reply + b"\0", wrong_signature(reply)):
        table.received(data, START)
        assert table.take_outputs() == []
    table.received(reply, START)
    assert len(table.take_outputs()) == 1


@pytest.mark.spec("MQQB-3.1.7.8-03")
def test_an_answer_with_a_cookie_that_nobody_waits_for_is_ignored() -> None:
    table = PingTable(HERE)
    table.ask("10.0.0.1", "link", START)
    for cookie in (0, 2, 0xFFFFFFFF):
        table.received(PingPacket(THERE, cookie).encode(), START)
    assert table.take_outputs() == []


@pytest.mark.spec("MQQB-3.1.7.8-05")
def test_a_second_answer_is_ignored() -> None:
    table = PingTable(HERE)
    table.ask("10.0.0.1", "link", START)
    for _ in range(2):
        table.received(PingPacket(THERE, 1).encode(), START)
    assert len(table.take_outputs()) == 1


@pytest.mark.spec("MQQB-3.1.6.8-01")
def test_no_answer_within_a_second_means_no() -> None:
    table = PingTable(HERE)
    table.ask("10.0.0.1", "link", START)
    assert table.next_wake_ms == after(1_000).ticks_ms
    table.wake(after(999))
    assert table.take_outputs() == []
    table.wake(after(1_000))
    assert table.take_outputs() == [PingAnswered("link", "10.0.0.1", False)]
    table.received(PingPacket(THERE, 1).encode(), after(1_001))
    table.wake(after(5_000))
    assert table.take_outputs() == []


def test_an_answer_that_comes_too_late_is_no_even_before_the_table_is_woken() -> None:
    table = PingTable(HERE)
    table.ask("10.0.0.1", "link", START)
    table.received(PingPacket(THERE, 1).encode(), after(1_000))
    assert table.take_outputs() == [PingAnswered("link", "10.0.0.1", False)]


def test_pings_at_the_same_time_do_not_disturb_each_other() -> None:
    table = PingTable(HERE)
    questions = {waiter: table.ask(f"10.0.0.{waiter}", waiter, START) for waiter in range(1, 5)}
    for waiter in (3, 1, 4, 2):
        reply = answer(questions[waiter], THERE, waiter % 2 == 0)
        assert reply is not None
        table.received(reply, START)
    expected = [PingAnswered(w, f"10.0.0.{w}", w % 2 == 1) for w in (3, 1, 4, 2)]
    assert table.take_outputs() == expected


def test_beyond_the_limit_the_oldest_question_is_given_up() -> None:
    table = PingTable(HERE)
    for waiter in range(PINGS_MAX_COUNT + 3):
        table.ask("10.0.0.1", waiter, START)
    assert len(table) == PINGS_MAX_COUNT
    assert [answered.waiter for answered in table.take_outputs()] == [0, 1, 2]


@given(
    st.lists(
        st.tuples(st.sampled_from(["ask", "answer", "refuse", "wake"]), st.integers(0, 700)),
        max_size=60,
    )
)
def test_every_question_has_exactly_one_result_and_within_a_second(
    steps: list[tuple[str, int]],
) -> None:
    table = PingTable(HERE)
    asked: dict[int, int] = {}
    results: dict[int, bool] = {}
    expected: dict[int, bool] = {}
    elapsed_ms = 0

    def collect() -> None:
        for output in table.take_outputs():
            assert isinstance(output.waiter, int)
            assert output.waiter not in results
            results[output.waiter] = output.accepted

    for step, pause_ms in steps:
        elapsed_ms += pause_ms
        now = after(elapsed_ms)
        if step == "ask":
            waiter = len(asked) + 1
            table.ask("10.0.0.1", waiter, now)
            asked[waiter] = elapsed_ms
        elif step == "wake":
            table.wake(now)
        elif open_ones := [w for w in asked if w not in results and w not in expected]:
            waiter = open_ones[len(open_ones) // 2]
            expected[waiter] = step == "answer" and elapsed_ms - asked[waiter] < 1_000
            packet = PingPacket(THERE, waiter)
            table.received(packet.answer(THERE, refuse=step == "refuse").encode(), now)
        collect()
        late = [w for w, at in asked.items() if elapsed_ms - at >= 1_000 and w not in results]
        assert not late or table.next_wake_ms == after(asked[late[0]] + 1_000).ticks_ms
    table.wake(after(elapsed_ms + 1_000))
    collect()
    assert results == {waiter: expected.get(waiter, False) for waiter in asked}
