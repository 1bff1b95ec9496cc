"""Streams come out in order and once; holes, resets and reused ports are told."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.capture.link_layers import ACK, FIN, RST, SYN, TcpSegment
from openmsmq.capture.tcp_streams import (
    HOLE_WAIT_NS,
    StreamData,
    StreamEnd,
    StreamGap,
    TcpStreams,
)
from tests.strategies.captures import endpoint

CLIENT = endpoint("10.0.0.1", 50_000)
SERVER = endpoint("10.0.0.2", 1801)


def segment(sequence: int, data: bytes = b"", flags: int = ACK, missing: int = 0) -> TcpSegment:
    return TcpSegment(CLIENT, SERVER, sequence % 2**32, flags, data, missing)


def answer(sequence: int, data: bytes = b"", flags: int = ACK) -> TcpSegment:
    return TcpSegment(SERVER, CLIENT, sequence % 2**32, flags, data)


def told(events) -> list[tuple]:
    """What events say, without when they say it."""
    found = []
    for event in events:
        match event:
            case StreamData():
                found.append((event.stream.connection, event.offset, event.data))
            case StreamGap():
                found.append((event.stream.connection, event.offset, f"gap of {event.size}"))
            case StreamEnd():
                found.append((event.stream.connection, event.offset, event.reason))
    return found


def run(*segments: TcpSegment, streams: TcpStreams | None = None) -> list[tuple]:
    streams = streams or TcpStreams()
    events = [
        event for frame, one in enumerate(segments, 1) for event in streams.add(one, frame, frame)
    ]
    return told(events + streams.finish())


@given(st.binary(min_size=1, max_size=60), st.integers(0, 2**32 - 1), st.data())
def test_any_cut_order_and_repetition_gives_the_stream(stream, first, data):
    # Drawn cuts cover the stream, and further spans repeat parts of it.
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream)), max_size=8)) | {len(stream)})
    spans = list(zip([0, *cuts], cuts, strict=False))
    spans += data.draw(st.lists(st.tuples(*[st.integers(0, len(stream))] * 2), max_size=4))
    spans = data.draw(st.permutations(spans))
    found = run(
        segment(first - 1, flags=SYN),
        *[segment(first + start, stream[start:end]) for start, end in spans],
    )
    assert b"".join(text for _, _, text in found[:-1]) == stream
    assert found[-1] == (1, len(stream), "the capture ends")


def test_the_first_of_two_that_disagree_is_believed():
    assert run(segment(0, b"abc"), segment(1, b"XYZ"))[:2] == [(1, 0, b"abc"), (1, 3, b"Z")]
    found = run(segment(9, flags=SYN), segment(12, b"cd"), segment(10, b"abXYe"))
    assert found[:3] == [(1, 0, b"ab"), (1, 2, b"cd"), (1, 4, b"e")]


def test_a_fin_ends_a_direction_when_all_before_it_has_come():
    found = run(segment(9, flags=SYN), segment(13, b"d", FIN | ACK), segment(10, b"abc"))
    assert found == [(1, 0, b"abc"), (1, 3, b"d"), (1, 4, "closed")]


def test_nothing_comes_behind_the_end():
    found = run(segment(9, flags=SYN), segment(10, b"a", FIN), segment(10, b"a"), segment(11, b"b"))
    assert found == [(1, 0, b"a"), (1, 1, "closed")]


def test_bytes_that_the_capture_cut_off_are_a_gap():
    found = run(
        segment(9, flags=SYN), segment(10, b"ab", missing=3), segment(15, b"c", FIN, missing=2)
    )
    assert found == [
        (1, 0, b"ab"),
        (1, 2, "gap of 3"),
        (1, 5, b"c"),
        (1, 6, "gap of 2"),
        (1, 8, "the capture ends"),
    ]


def test_a_reset_ends_both_directions():
    found = run(
        segment(9, flags=SYN),
        answer(99, flags=SYN | ACK),
        answer(100, b"x"),
        segment(12, b"c"),
        segment(13, flags=RST),
        segment(10, b"ab"),
    )
    assert found == [
        (1, 0, b"x"),
        (1, 0, "gap of 2"),
        (1, 2, b"c"),
        (1, 3, "reset"),
        (1, 1, "reset"),
    ]


def test_reused_ports_are_another_connection():
    found = run(
        segment(9, flags=SYN),
        segment(9, flags=SYN),
        segment(10, b"a"),
        segment(5_000, flags=SYN),
        answer(77, flags=SYN | ACK),
        segment(5_001, b"b"),
        answer(78, b"c"),
    )
    assert found[:4] == [
        (1, 0, b"a"),
        (1, 1, "its ports are used again"),
        (2, 0, b"b"),
        (2, 0, b"c"),
    ]


def test_a_sequence_number_out_of_reach_is_another_connection():
    found = run(segment(0, b"a"), segment(2**31, b"b"))
    assert found[:3] == [(1, 0, b"a"), (1, 1, "its ports are used again"), (2, 0, b"b")]


def test_an_answer_to_an_opening_that_was_not_seen_opens_another_connection():
    found = run(segment(0, b"a"), answer(5, flags=SYN | ACK), answer(6, b"b"))
    assert found[:3] == [(1, 0, b"a"), (1, 1, "its ports are used again"), (2, 0, b"b")]


def test_a_late_answer_to_an_opening_belongs_to_its_connection():
    found = run(segment(9, flags=SYN), segment(10, b"a"), answer(5, flags=SYN | ACK))
    assert [connection for connection, _, _ in found] == [1, 1, 1]


def test_whether_a_stream_was_seen_from_its_start_is_known():
    streams = TcpStreams()
    streams.add(segment(9, flags=SYN), 1, 1)
    (opened,) = streams.add(segment(10, b"a"), 2, 2)
    (joined,) = streams.add(answer(10, b"a"), 3, 3)
    assert opened.stream.from_start
    assert not joined.stream.from_start


def test_the_oldest_hole_is_given_up_when_too_much_is_held():
    streams = TcpStreams(held_bytes_max=300)
    opened = streams.add(segment(9, flags=SYN), 1, 1)
    assert told(opened + streams.add(segment(12, b"c"), 2, 2)) == []
    assert told(streams.add(segment(14, b"e"), 3, 3)) == []
    assert streams.waiting_since_frame == 2
    assert told(streams.add(segment(16, b"g"), 4, 4)) == [(1, 0, "gap of 2"), (1, 2, b"c")]
    assert streams.waiting_since_frame == 3
    assert told(streams.skip_oldest_hole()) == [(1, 3, "gap of 1"), (1, 4, b"e")]


def test_the_connection_silent_longest_is_forgotten():
    streams = TcpStreams(connections_max=2)
    others = [endpoint("10.0.0.3", port) for port in range(3)]
    events = []
    for frame, source in enumerate((others[0], others[1], others[0], others[2])):
        events += streams.add(TcpSegment(source, SERVER, frame, ACK, b"a"), frame, frame)
    ended = [event for event in events if isinstance(event, StreamEnd)]
    assert [event.stream.source for event in ended] == [others[1]]
    assert ended[0].reason == "no longer followed"


def test_a_hole_waits_from_when_it_was_seen_and_not_from_when_an_earlier_one_was():
    streams = TcpStreams()
    streams.add(segment(9, flags=SYN), 1, 0)
    streams.add(segment(12, b"c"), 2, 0)
    streams.add(segment(14, b"e"), 3, HOLE_WAIT_NS)
    streams.add(segment(10, b"ab"), 4, HOLE_WAIT_NS)
    assert streams.waiting_since_frame == 3
    assert told(streams.add(segment(13, b"d"), 5, 2 * HOLE_WAIT_NS)) == [
        (1, 3, b"d"),
        (1, 4, b"e"),
    ]
    assert streams.waiting_since_frame is None


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(1, 2)), min_size=6, max_size=20
    )
)
def test_the_oldest_frame_that_is_held_back_is_known(sent):
    streams = TcpStreams()
    sources = [endpoint("10.0.0.3", port) for port in range(2)]
    for source in sources:
        streams.add(TcpSegment(source, SERVER, 2**32 - 1, SYN, b""), 0, 0)
    # For each byte of each stream, the first frame that brought it.
    frames: list[dict[int, int]] = [{} for _ in sources]
    for frame, (index, start, size) in enumerate(sent, 1):
        streams.add(TcpSegment(sources[index], SERVER, start, ACK, bytes(size)), frame, frame)
        for at in range(start, start + size):
            frames[index].setdefault(at, frame)
        held = [
            known[at]
            for known in frames
            for at in known
            if any(before not in known for before in range(at))
        ]
        assert streams.waiting_since_frame == min(held, default=None)


@pytest.mark.parametrize("far", [b"z", b""])
def test_nothing_is_remembered_of_what_no_longer_waits(far):
    # One hole stays open, in this connection or in another, while thousands come and go.
    streams = TcpStreams()
    other = endpoint("10.0.0.3", 7)
    opened = [segment(9, flags=SYN), TcpSegment(other, SERVER, 9, SYN, b"")]
    waits = [segment(2**20, far), TcpSegment(other, SERVER, 20, ACK, b"z")]
    for frame, one in enumerate([*opened, *waits]):
        streams.add(one, frame, frame)
    tracemalloc.start()
    for number in range(4_000):
        at = 10 + 2 * number
        streams.add(segment(at + 1, b"b"), 10 + number, 9)
        streams.add(segment(at, b"a"), 10 + number, 9)
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_bytes < 40_000
