"""The window of a source: order, parts, bounds; and what one who lies can do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.pgm.limits import PGM_SPAN_MAX_COUNT
from openmsmq.protocol.pgm.serial import after
from openmsmq.protocol.pgm.window import Window
from openmsmq.wire.pgm.options import NO_OPTIONS, Fragment, Options
from openmsmq.wire.pgm.packets import Data, Spm

PATH = bytes(4)


def window(bytes_max: int = 100_000) -> Window:
    return Window(Random(1), bytes_max)


def plain(number: int, data: bytes = b"x", trail: int = 0, *, is_repair: bool = False) -> Data:
    return Data(number & 0xFFFFFFFF, trail, data, is_repair)


def part(number: int, first: int, offset: int, length: int, data: bytes) -> Data:
    return Data(number, 0, data, False, Options(Fragment(first, offset, length)))


@given(
    st.integers(0, 0xFFFFFFFF),
    st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_in_whatever_order_they_come_they_are_passed_on_in_theirs(
    first: int, payloads: list[bytes], random: Random
) -> None:
    found = window()
    found.told(Spm(0, first, after(first, -1), PATH), 0)
    packets = [Data(after(first, place), first, payload) for place, payload in enumerate(payloads)]
    packets += random.choices(packets, k=5)
    random.shuffle(packets)
    for packet in packets:
        found.data(packet, True, 0)
    assert found.payloads == payloads
    assert found.duplicate_count == 5
    assert (found.held_bytes, found.missing_count, found.lost_count) == (0, 0, 0)


def test_it_begins_with_the_first_packet_and_asks_for_none_before() -> None:
    found = window()
    found.data(plain(10, b"ten"), True, 0)
    found.data(plain(9, b"nine"), True, 0)
    assert found.payloads == [b"ten"]
    assert found.missing_count == 0


def test_it_does_not_begin_with_a_repair() -> None:
    found = window()
    found.data(plain(3, is_repair=True), True, 0)
    found.data(plain(1_000, b"now"), True, 0)
    assert (found.payloads, found.missing_count) == ([b"now"], 0)


def test_it_begins_behind_what_the_source_says() -> None:
    found = window()
    found.told(Spm(1, 5, 9, PATH), 0)
    found.data(plain(11), True, 0)
    assert found.missing_count == 1


def test_the_end_that_is_missing_is_known_by_what_the_source_says() -> None:
    found = window()
    found.data(plain(1), True, 0)
    found.told(Spm(1, 0, 4, PATH), 0)
    assert found.missing_count == 3


def test_older_news_are_none() -> None:
    found = window()
    found.data(plain(1), True, 0)
    found.told(Spm(5, 0, 1, PATH), 0)
    found.told(Spm(4, 0, 9, PATH), 0)
    found.told(Spm(5, 0, 9, PATH), 0)
    assert found.missing_count == 0
    found.told(Spm(6, 9, 5, PATH), 0)
    assert found.missing_count == 0


def test_what_the_source_cannot_repair_any_more_is_lost() -> None:
    found = window()
    found.data(plain(1, b"1"), True, 0)
    found.data(plain(4, b"4"), True, 0)
    found.data(plain(6, b"6", trail=5), True, 0)
    assert found.payloads == [b"1", b"4"]
    assert (found.lost_count, found.missing_count) == (2, 1)
    found.told(Spm(1, 50, 60, PATH), 0)
    assert found.payloads == [b"1", b"4", b"6"]
    assert (found.lost_count, found.missing_count, found.held_bytes) == (2 + 1 + 43, 11, 0)


def test_what_is_given_up_is_passed_over() -> None:
    found = window()
    found.data(plain(1, b"1"), True, 0)
    found.data(plain(3, b"3"), True, 0)
    now_ms = 0
    while (due_ms := found.next_wake_ms) is not None:
        now_ms = due_ms
        found.due(now_ms, 63)
    assert found.payloads == [b"1", b"3"]
    assert found.lost_count == 1


def test_parts_become_one() -> None:
    found = window()
    for number, offset, data in ((1, 0, b"ab"), (3, 4, b"e"), (2, 2, b"cd")):
        found.data(part(number, 1, offset, 5, data), True, 0)
    assert found.payloads == [b"abcde"]


@pytest.mark.parametrize(
    "parts",
    [
        [part(1, 0, 2, 4, b"cd")],
        [part(1, 1, 0, 4, b"ab"), part(2, 1, 3, 4, b"d")],
        [part(1, 1, 0, 4, b"ab"), part(2, 2, 2, 4, b"cd")],
        [part(1, 1, 0, 65_537, b"ab"), part(2, 1, 2, 4, b"cd")],
        [part(1, 1, 0, 4, b"ab"), part(2, 1, 2, 4, b"")],
        [part(1, 1, 0, 4, b"ab"), plain(2, b"whole")],
    ],
)
def test_parts_that_do_not_fit_are_dropped(parts: list[Data]) -> None:
    found = window()
    for each in parts:
        found.data(each, True, 0)
    found.data(plain(len(parts) + 1, b"next"), True, 0)
    assert found.payloads in ([b"next"], [b"whole", b"next"])


def test_packets_may_run_ahead_so_far_and_no_further() -> None:
    found = window()
    found.data(plain(0), True, 0)
    found.data(plain(PGM_SPAN_MAX_COUNT + 2), True, 0)
    assert (found.missing_count, found.refused_count) == (0, 1)
    found.told(Spm(1, 0, 0x7FFF_FFFE, PATH), 0)
    assert found.missing_count == PGM_SPAN_MAX_COUNT
    found.told(Spm(2, 0x7000_0000, 0x7FFF_FFFE, PATH), 0)
    assert found.missing_count == PGM_SPAN_MAX_COUNT


def test_packets_that_wait_have_so_much_room_and_no_more() -> None:
    found = window(10)
    found.data(plain(1), True, 0)
    found.data(plain(3, b"12345678"), True, 0)
    found.data(plain(4, b"123"), True, 0)
    found.data(plain(5, b"1"), False, 0)
    assert (found.held_bytes, found.refused_count) == (8, 2)
    # The one that all wait for always fits.
    found.data(plain(2, b"12345678901"), True, 0)
    assert found.payloads == [b"x", b"12345678901", b"12345678"]


def test_a_source_that_breaks_off_is_heard_no_more() -> None:
    found = window()
    found.data(plain(1), True, 0)
    found.data(plain(3), True, 0)
    found.break_off()
    found.data(plain(2), True, 0)
    found.told(Spm(1, 0, 9, PATH), 0)
    assert (found.payloads, found.held_bytes, found.next_wake_ms) == ([b"x"], 0, None)


NUMBERS = st.integers(0, 40).map(lambda each: after(0xFFFFFFF0, each)) | st.integers(0, 0xFFFFFFFF)
LIES = st.one_of(
    st.builds(
        Data,
        NUMBERS,
        NUMBERS,
        st.binary(max_size=4),
        st.booleans(),
        st.just(NO_OPTIONS)
        | st.builds(Options, st.builds(Fragment, NUMBERS, st.integers(0, 9), st.integers(0, 9))),
    ),
    st.builds(Spm, NUMBERS, NUMBERS, NUMBERS, st.just(PATH)),
    st.integers(0, 5_000),
)


@given(st.lists(LIES, max_size=20))
def test_whatever_a_source_says_its_window_stays_within_bounds(
    lies: list[Data | Spm | int],
) -> None:
    found = window(16)
    now_ms = 0
    for each in lies:
        if isinstance(each, Data):
            found.data(each, True, now_ms)
        elif isinstance(each, Spm):
            found.told(each, now_ms)
        else:
            now_ms += each
            found.due(now_ms, 63)
        assert 0 <= found.held_bytes <= 16
        assert found.missing_count <= PGM_SPAN_MAX_COUNT
