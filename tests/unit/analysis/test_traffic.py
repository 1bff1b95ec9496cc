"""A capture gives back exactly the packets that were sent, whatever the network did to them."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openmsmq.analysis.events import (
    Anomaly,
    DatagramItem,
    Event,
    Item,
    Moment,
    PacketItem,
    SessionSummary,
    Settled,
)
from openmsmq.analysis.kinds import OF_BYTES
from openmsmq.analysis.traffic import Traffic, follow
from openmsmq.analysis.transports import Ports, TransportReader
from openmsmq.capture.frames import Frame, read_frames
from openmsmq.capture.link_layers import ACK, SYN, LinkType
from openmsmq.capture.pcapng import file_start, frame_block
from openmsmq.capture.recorder import tcp_packet, udp_packet
from openmsmq.capture.source import CaptureError
from openmsmq.model.identity import Guid
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import SessionAck, UserMessage
from tests.effort import steps_of
from tests.strategies.captures import (
    FILES,
    Recording,
    TimedFrame,
    endpoint,
    fragments,
    frames_of,
    recordings,
    said_in,
)

CLIENT = endpoint("10.0.0.1", 50_000)
SERVER = endpoint("10.0.0.2", 1801)
OTHER = endpoint("10.0.0.3", 50_000)
ACKS = [packets.encode(SessionAck(SessionHeader(number))) for number in range(8)]
ACK_BYTES = len(ACKS[0])


def message(body: bytes) -> bytes:
    return packets.encode(UserMessage(UserHeader(Guid(16)), MessageProperties.of(body)))


def items_of(*packets_of_ip: bytes, step_ns: int = 1) -> list[Item]:
    frames = (
        Frame(number, number * step_ns, LinkType.RAW, packet, len(packet))
        for number, packet in enumerate(packets_of_ip, 1)
    )
    return read_part(follow(frames))


def read_part(events: Iterable[Event]) -> list[Item]:
    """Return packets, datagrams and what could not be read of them."""
    return [
        event
        for event in events
        if isinstance(event, PacketItem | DatagramItem)
        or (isinstance(event, Anomaly) and event.kind in OF_BYTES)
    ]


def segment(sequence: int, data: bytes, source=CLIENT, destination=SERVER) -> bytes:
    return tcp_packet(source, destination, sequence, ACK, data)


def data_of(items: list[Item]) -> list[bytes]:
    return [item.data for item in items if isinstance(item, PacketItem)]


def problems_of(items: list[Item]) -> list[str]:
    return [item.description for item in items if isinstance(item, Anomaly)]


def read_as_far_as_possible(file: bytes) -> tuple[list[Event], CaptureError | None]:
    items: list[Event] = []
    found = follow(frames_of(file))
    try:
        while True:
            items.append(next(found))
    except StopIteration:
        return items, None
    except CaptureError as error:
        return items, error


class Running:
    """Traffic that is given frames one by one."""

    def __init__(self, **limits: int) -> None:
        self._reader = TransportReader(Ports())
        self._traffic = Traffic(**limits)

    def add(self, frame: Frame) -> list[Item]:
        transport = self._reader.take(frame)
        assert transport is not None
        return read_part(self._traffic.add(transport, Moment(frame.number, frame.time_ns)))

    def finish(self) -> list[Item]:
        return read_part(self._traffic.finish())


@given(recordings())
def test_any_capture_gives_exactly_the_packets_that_were_sent(recording: Recording):
    items = read_part(follow(frames_of(recording.file)))
    assert problems_of(items) == []
    for said in recording.said:
        heard = [
            item.data
            for item in items
            if isinstance(item, PacketItem)
            and (item.source, item.destination) == (said.source, said.destination)
        ]
        assert heard == said.packets
    datagrams = [
        (item.source, item.destination, item.data)
        for item in items
        if isinstance(item, DatagramItem)
    ]
    assert datagrams == recording.datagrams
    assert [item.frame for item in items] == sorted(item.frame for item in items)
    assert [item.time_ns for item in items] == sorted(item.time_ns for item in items)


@settings(max_examples=50)
@given(recordings(), st.data())
def test_a_damaged_capture_gives_items_and_then_at_most_a_capture_error(recording, data):
    file = bytearray(recording.file)
    for _ in range(data.draw(st.integers(1, 5))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    del file[data.draw(st.integers(len(file) // 2, len(file))) :]
    items, error = read_as_far_as_possible(bytes(file))
    assert all(isinstance(item, Item | Settled | SessionSummary) for item in items)
    assert error is None or 0 <= error.offset <= len(file)


@given(st.binary(max_size=200))
@example(b"")
def test_any_bytes_as_frames_give_items_and_nothing_else(data):
    for link_type in (*LinkType, 147):
        assert all(
            isinstance(item, Item | Settled | SessionSummary)
            for item in follow([Frame(1, 0, link_type, data, len(data))] * 2)
        )


@settings(max_examples=50)
@given(recordings(), st.data())
def test_a_capture_that_is_cut_short_gives_what_came_before(recording, data):
    whole = said_in(frames_of(recording.file))
    size = data.draw(st.integers(0, len(recording.file) - 1))
    items, error = read_as_far_as_possible(recording.file[:size])
    assert error is None or error.offset <= size
    packets_before = [item for item in items if isinstance(item, PacketItem | DatagramItem)]
    assert len(packets_before) <= len(whole)
    assert {item.data for item in packets_before} <= {item.data for item in whole}


def test_offsets_count_from_the_first_byte_of_the_stream():
    items = items_of(
        tcp_packet(CLIENT, SERVER, 99, SYN), segment(100, ACKS[0] + ACKS[1]), segment(172, ACKS[2])
    )
    assert [(item.offset, item.connection.number) for item in items] == [(0, 1), (36, 1), (72, 1)]


def test_other_ports_are_followed_when_asked_for():
    udp = udp_packet(endpoint("10.0.0.1", 1), endpoint("10.0.0.2", 7), b"ping")
    tcp = tcp_packet(CLIENT, endpoint("10.0.0.2", 8), 0, ACK, ACKS[0])
    frames = [Frame(1, 0, LinkType.RAW, udp, 0), Frame(2, 0, LinkType.RAW, tcp, 0)]
    assert list(follow(frames)) == []
    found = said_in(frames, 7, 8)
    assert [item.data for item in found] == [b"ping", ACKS[0]]


def test_a_gap_is_reported_and_reading_goes_on_at_the_next_packet():
    items = items_of(
        tcp_packet(CLIENT, SERVER, 99, SYN),
        segment(100, ACKS[0] + ACKS[1][:10]),
        segment(100 + ACK_BYTES + 20, ACKS[1][20:] + ACKS[2]),
        segment(100 + 3 * ACK_BYTES, ACKS[3]),
    )
    assert data_of(items) == [ACKS[0], ACKS[2], ACKS[3]]
    assert problems_of(items) == [
        "10 bytes of a packet, but the rest of it is missing in the capture",
        "10 bytes are missing in the capture",
        "16 bytes skipped: they follow a gap and belong to no whole packet",
    ]


def test_a_signature_inside_a_body_is_not_taken_for_a_packet_after_a_gap():
    bait = message(b"....\x10\0\x03\0LIOR\x40\0\0\0" + bytes(80) + ACKS[5])
    items = items_of(
        tcp_packet(CLIENT, SERVER, 99, SYN),
        segment(110, bait + ACKS[1] + ACKS[2]),
    )
    assert data_of(items) == [bait, ACKS[1], ACKS[2]]
    # Cut inside the message: the bait looks like a header but announces no properties.
    cut = message(b"x" * 40)[60:] + b"\x10\0\x03\0LIOR\x40\0\0\0" + b"\xff" * 80
    items = items_of(tcp_packet(CLIENT, SERVER, 99, SYN), segment(110, cut + ACKS[1] + ACKS[2]))
    assert data_of(items) == [ACKS[1], ACKS[2]]


def test_a_capture_that_starts_in_the_middle_of_a_packet_finds_the_next():
    items = items_of(segment(5_000, ACKS[0][7:] + ACKS[1]))
    assert data_of(items) == [ACKS[1]]
    assert problems_of(items) == [
        "29 bytes skipped: the capture starts in the middle of the stream"
    ]


def test_a_capture_that_starts_between_two_packets_has_no_problem():
    items = items_of(segment(5_000, ACKS[0]), segment(5_036, ACKS[1]))
    assert data_of(items) == [ACKS[0], ACKS[1]]
    assert problems_of(items) == []


def test_a_stream_that_is_not_msmq_is_said_to_be_so_once():
    items = items_of(
        tcp_packet(CLIENT, SERVER, 99, SYN),
        segment(100, b"GET / HTTP/1.1\r\n"),
        segment(116, b"Host: example.com\r\n\r\n" * 400),
    )
    assert len(items) == 1
    (problem,) = problems_of(items)
    assert problem.startswith("8416 bytes skipped: no packet starts here (BaseHeader at offset 0")
    assert items[0].data.startswith(b"GET / HTTP/1.1")


def test_a_packet_that_is_broken_inside_is_given_and_the_next_is_found():
    broken = bytearray(
        packets.encode(
            UserMessage(
                UserHeader(Guid(16)), MessageProperties.of(b"body"), session=SessionHeader(1)
            )
        )
    )
    broken[16 + 44 + 2] = 0
    items = items_of(
        tcp_packet(CLIENT, SERVER, 99, SYN), segment(100, bytes(broken) + ACKS[1] + ACKS[2])
    )
    assert data_of(items) == [bytes(broken[:-16]), ACKS[1], ACKS[2]]
    assert problems_of(items) == []


def test_items_stay_in_order_when_a_hole_is_given_up_at_the_end():
    items = items_of(
        tcp_packet(CLIENT, SERVER, 99, SYN),
        tcp_packet(OTHER, SERVER, 99, SYN),
        segment(100 + ACK_BYTES, ACKS[1]),
        segment(100, ACKS[2], OTHER),
        segment(100 + 2 * ACK_BYTES, ACKS[3]),
        segment(100 + ACK_BYTES, ACKS[4], OTHER),
    )
    assert [(item.frame, item.data) for item in items if isinstance(item, PacketItem)] == [
        (3, ACKS[1]),
        (4, ACKS[2]),
        (5, ACKS[3]),
        (6, ACKS[4]),
    ]
    assert [item.frame for item in items] == sorted(item.frame for item in items)


def test_a_hole_does_not_hold_back_for_longer_than_a_minute():
    frames = [
        Frame(1, 0, LinkType.RAW, tcp_packet(CLIENT, SERVER, 99, SYN), 0),
        Frame(2, 1, LinkType.RAW, segment(100 + ACK_BYTES, ACKS[1]), 0),
        Frame(3, 2, LinkType.RAW, segment(100, ACKS[2], OTHER), 0),
        Frame(4, 60_000_000_002, LinkType.RAW, segment(136, ACKS[3], OTHER), 0),
    ]
    running = Running()
    given_at = [[item.data for item in running.add(frame) if item.data] for frame in frames]
    assert given_at == [[], [], [], [ACKS[1], ACKS[2], ACKS[3]]]


def test_a_gap_that_is_told_late_does_not_go_back_in_the_order():
    minute_ns = 60_000_000_000
    sent = [
        (0, tcp_packet(CLIENT, SERVER, 99, SYN)),
        (1, segment(100, ACKS[0])),
        (2, segment(0, ACKS[1], OTHER)),
        (3, segment(100 + 2 * ACK_BYTES, ACKS[2])),
        (4 + minute_ns, segment(36, ACKS[3], OTHER)),
    ]
    frames = [
        Frame(number, time_ns, LinkType.RAW, data, 0)
        for number, (time_ns, data) in enumerate(sent, 1)
    ]
    items = read_part(follow(frames))
    assert data_of(items) == [ACKS[0], ACKS[1], ACKS[2], ACKS[3]]
    assert [item.frame for item in items] == [2, 3, 4, 4, 5]


def test_no_more_than_the_limit_is_held_back():
    running = Running(held_bytes_max=100)
    packets_of_ip = [
        tcp_packet(CLIENT, SERVER, 99, SYN),
        segment(100 + ACK_BYTES, ACKS[1]),
        segment(100, ACKS[2], OTHER),
        segment(136, ACKS[3], OTHER),
        segment(172, ACKS[4], OTHER),
    ]
    given_at = [
        [item.data for item in running.add(Frame(number, 0, LinkType.RAW, data, 0)) if item.data]
        for number, data in enumerate(packets_of_ip, 1)
    ]
    assert given_at == [[], [], [], [], [ACKS[1], ACKS[2], ACKS[3], ACKS[4]]]


def test_an_unfinished_packet_is_given_up_when_all_together_are_too_much():
    running = Running(held_bytes_max=100)
    packets_of_ip = [
        tcp_packet(CLIENT, SERVER, 99, SYN),
        tcp_packet(OTHER, SERVER, 99, SYN),
        segment(100, message(b"x" * 500)[:90]),
        segment(100, ACKS[0][:30], OTHER),
    ]
    frames = [Frame(number, 0, LinkType.RAW, data, 0) for number, data in enumerate(packets_of_ip)]
    during = [item.description for frame in frames for item in running.add(frame)]
    assert [problem.split("(")[1] for problem in during] == ["no longer followed)"]
    assert [item.description.split("(")[1] for item in running.finish()] == ["the capture ends)"]


def test_a_datagram_that_the_capture_cut_is_a_problem():
    packet = udp_packet(endpoint("10.0.0.1", 9), endpoint("10.0.0.2", 3527), b"abcdefgh")[:-3]
    item, _ = items_of(packet)
    assert isinstance(item, Anomaly)
    assert item.data == b"abcde"
    assert item.description == "the capture left out the last 3 bytes of a datagram"


def test_frames_that_cannot_be_read_are_counted():
    items = items_of(b"\x45" * 10, b"\x75" * 40)
    assert problems_of(items) == [
        "2 frames cannot be read; the first is frame 1: an IPv4 header of 10 bytes; 20 needed"
    ]


def test_fragments_without_the_rest_are_counted():
    datagram = udp_packet(endpoint("10.0.0.1", 9), endpoint("10.0.0.2", 3527), bytes(64))
    items = items_of(*fragments(datagram, 7, 16)[:-1])
    assert problems_of(items) == ["1 fragmented IP packets are not whole"]


def test_what_came_before_the_damage_is_given():
    file = file_start(LinkType.RAW) + frame_block(segment(0, ACKS[0]), 5)
    items = follow(read_frames(io.BytesIO(file + b"\x06\0\0\0\x07\0\0\0").read))
    assert next(items).data == ACKS[0]
    with pytest.raises(CaptureError, match=rf"at byte {len(file) + 4}: a block of 7 bytes"):
        list(items)


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_format_keeps_times(name):
    time_ns = 1_700_000_000_123_456_000
    file = FILES[name]([TimedFrame(LinkType.RAW, time_ns, segment(0, ACKS[0]))])
    assert [item.time_ns for item in said_in(frames_of(file))] == [time_ns]


# What hostile captures cost: four times the capture takes about four times the steps.


def steps_to_read(packets_of_ip: list[bytes]) -> int:
    return steps_of(lambda: items_of(*packets_of_ip))


def holes_behind_each_other(count: int) -> list[bytes]:
    return [segment(2 * number, b"x") for number in range(count)]


def holes_in_many_connections(count: int) -> list[bytes]:
    sources = [endpoint("10.0.0.9", 1_024 + number) for number in range(count)]
    return [
        segment(sequence, b"x", source) for sequence in (0, 9, 9, 9, 9, 20) for source in sources
    ]


def fragments_that_never_end(count: int) -> list[bytes]:
    parts = fragments(udp_packet(CLIENT, SERVER, bytes(8 * count)), 1, 8)
    return [parts[-1], *parts[:-2]]


@pytest.mark.parametrize(
    "make", [holes_behind_each_other, holes_in_many_connections, fragments_that_never_end]
)
def test_the_effort_grows_with_the_capture_and_not_with_its_square(make):
    assert steps_to_read(make(400)) < 6 * steps_to_read(make(100))
