"""Multicast in captures: packets of PGM become messages again, and what is missing is counted."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.analysis.events import Anomaly, DatagramItem, Event, HttpItem, Moment
from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.analysis.multicast import (
    HELD_BYTES_MAX,
    MESSAGE_MAX_BYTES,
    SOURCES_MAX_COUNT,
    UNFINISHED_MAX_COUNT,
    FoundMessage,
    MulticastReader,
)
from openmsmq.analysis.traffic import datagram_kind, follow
from openmsmq.capture.frames import Frame
from openmsmq.capture.link_layers import LinkType, PgmDatagram, Protocol
from openmsmq.capture.recorder import ip_packet
from openmsmq.wire.pgm.options import NO_OPTIONS, Fragment, Options
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, SourceId
from openmsmq.wire.text.tree import Kind
from tests.golden import golden_request
from tests.strategies.captures import endpoint, fragments

SENDER, GROUP = endpoint("10.0.0.1", 4_321), endpoint("234.1.1.1", 8_001)
SOURCE = SourceId(b"sender", SENDER.port)
POST = golden_request("mqsrm-4.5-multicast")
PART_BYTES = 400
AT = Moment(1, 1)


def packet(
    number: int, data: bytes, options: Options = NO_OPTIONS, *, repair: bool = False
) -> bytes:
    return Packet(SOURCE, GROUP.port, Data(number % 2**32, 0, data, repair, options)).encode()


def parts_of(first: int, payload: bytes) -> list[bytes]:
    """Return the packets of a message in parts."""
    return [
        packet(
            first + index,
            payload[start : start + PART_BYTES],
            Options(Fragment(first % 2**32, start, len(payload))),
        )
        for index, start in enumerate(range(0, len(payload), PART_BYTES))
    ]


def read(*packets: bytes) -> list[Event]:
    frames = (
        Frame(number, number, LinkType.RAW, ip_packet(SENDER, GROUP, Protocol.PGM, each), len(each))
        for number, each in enumerate(packets, 1)
    )
    return list(follow(frames))


def messages(events: list[Event]) -> list[HttpItem]:
    return [event for event in events if isinstance(event, HttpItem)]


def anomalies(events: list[Event]) -> list[Anomaly]:
    return [event for event in events if isinstance(event, Anomaly)]


def test_a_message_in_parts_is_whole_with_its_last_part() -> None:
    packets = parts_of(7, POST)
    assert len(packets) > 2
    events = read(*packets)
    (message,) = messages(events)
    assert (message.frame, message.source, message.destination) == (len(packets), SENDER, GROUP)
    assert (message.data, message.kind, message.connection) == (POST, Kind.POST, None)
    assert message.message is not None
    assert message.message.properties.label_text == "mqsender label"
    shown = [event for event in events if isinstance(event, DatagramItem)]
    assert [event.data for event in shown] == packets
    assert {datagram_kind(event) for event in shown} == {Kind.PGM}
    assert anomalies(events) == []


@given(
    st.permutations(range(4)),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([0, 2**32 - 2]),
)
def test_late_double_and_repaired_packets_change_nothing(
    order: list[int], again: list[int], first: int
) -> None:
    packets = parts_of(first, POST)
    assert len(packets) == 4
    events = read(*[packets[each] for each in (*order, *again)])
    assert [message.data for message in messages(events)] == [POST]
    assert anomalies(events) == []


def test_a_repair_counts_as_the_packet_that_was_missed() -> None:
    packets = parts_of(7, POST)
    repair = packet(
        8,
        POST[PART_BYTES : 2 * PART_BYTES],
        Options(Fragment(7, PART_BYTES, len(POST))),
        repair=True,
    )
    events = read(packets[0], *packets[2:], repair)
    assert [message.data for message in messages(events)] == [POST]
    assert anomalies(events) == []


def test_what_nobody_has_seen_is_counted_at_the_end() -> None:
    events = read(packet(7, POST), packet(10, POST))
    assert len(messages(events)) == 2
    missing = [each for each in anomalies(events) if each.kind is AnomalyKind.MISSING_PACKETS]
    assert [each.description for each in missing] == [
        "2 packets of multicast of source 73656e646572.4321 were seen neither when they were sent "
        "nor as repairs"
    ]


def test_two_sources_are_kept_apart() -> None:
    other = Packet(SourceId(b"others", 1), GROUP.port, Data(500, 0, POST)).encode()
    assert [each.kind for each in anomalies(read(packet(7, POST), other, packet(8, POST)))] == [
        AnomalyKind.RESENT_MESSAGE,
        AnomalyKind.RESENT_MESSAGE,
    ]


def test_a_packet_in_fragments_of_ip_is_whole() -> None:
    whole = ip_packet(SENDER, GROUP, Protocol.PGM, packet(7, POST))
    frames = (Frame(1, 1, LinkType.RAW, each, len(each)) for each in fragments(whole, 3, 512))
    assert [message.data for message in messages(list(follow(frames)))] == [POST]


def test_what_asks_for_repairs_is_shown() -> None:
    asked = Packet(
        SOURCE, GROUP.port, Nak(PacketType.NAK, 7, SENDER.address, GROUP.address)
    ).encode()
    (shown,) = read(asked)
    assert isinstance(shown, DatagramItem)
    assert (shown.source.port, shown.destination.port) == (GROUP.port, SENDER.port)


def test_wrong_packets_and_wrong_messages_are_told() -> None:
    wrong = bytearray(packet(7, POST))
    wrong[-1] ^= 1
    events = read(bytes(wrong), packet(8, b"POST nothing"))
    assert [each.kind for each in anomalies(events)] == [AnomalyKind.MALFORMED_PACKET] * 2
    assert [bool(each.problem) for each in messages(events)] == [True]


def test_a_capture_that_cut_packets_says_so() -> None:
    whole = ip_packet(SENDER, GROUP, Protocol.PGM, packet(7, POST))
    events = list(follow([Frame(1, 1, LinkType.RAW, whole[:100], len(whole))]))
    assert [each.kind for each in anomalies(events)] == [
        AnomalyKind.MISSING_BYTES,
        AnomalyKind.TRUNCATED_CAPTURE,
    ]


def test_a_packet_without_ports_cannot_be_read() -> None:
    tiny = ip_packet(SENDER, GROUP, Protocol.PGM, b"abc")
    (told,) = follow([Frame(1, 1, LinkType.RAW, tiny, len(tiny))])
    assert isinstance(told, Anomaly)
    assert told.description.endswith("a PGM packet of 3 bytes; its ports are 4")


# What lies.


def take(reader: MulticastReader, data: bytes) -> list[FoundMessage | Anomaly]:
    return list(reader.take(PgmDatagram(SENDER, GROUP, data), AT))


@pytest.mark.parametrize("length", [0, MESSAGE_MAX_BYTES + 1, 2**32 - 1])
def test_parts_of_what_no_message_can_be_are_not_kept(length: int) -> None:
    reader = MulticastReader()
    data = packet(7, b"", Options(Fragment(7, 0, length)))
    if length:
        data = packet(7, b"abc", Options(Fragment(7, 0, length)))
    assert take(reader, data) == []
    assert len(reader) == 0


def test_so_many_messages_are_kept_unfinished_and_no_more() -> None:
    reader = MulticastReader()
    for number in range(UNFINISHED_MAX_COUNT):
        take(reader, packet(2 * number, b"abc", Options(Fragment(2 * number, 0, 6))))
    held = len(reader)
    take(reader, packet(10_000, b"abc", Options(Fragment(10_000, 0, 6))))
    assert len(reader) == held
    rest = packet(1, b"def", Options(Fragment(0, 3, 6)))
    assert take(reader, rest) == []
    (whole,) = take(reader, packet(10_001, b"def", Options(Fragment(10_000, 3, 6))))
    assert isinstance(whole, FoundMessage)
    assert whole.data == b"abcdef"


def test_parts_hold_so_many_bytes_and_no_more() -> None:
    reader = MulticastReader(held_bytes_max=100_000)
    most = 0
    for source in range(100):
        name = SourceId(struct.pack(">IH", source, 0), 1)
        for number in range(3):
            data = Data(
                number, 0, bytes(10_000), False, Options(Fragment(0, number * 10_000, 60_000))
            )
            take(reader, Packet(name, 8_001, data).encode())
            most = max(most, len(reader))
    assert 80_000 < most <= 100_000 < HELD_BYTES_MAX


def test_so_many_sources_are_followed_and_no_more() -> None:
    reader = MulticastReader()
    told: list[FoundMessage | Anomaly] = []
    for source in range(SOURCES_MAX_COUNT + 1):
        name = SourceId(struct.pack(">IH", source, 0), 1)
        for number in (0, 2):
            told += take(reader, Packet(name, 8_001, Data(number, 0, b"")).encode())
    assert [each.kind for each in told if isinstance(each, Anomaly)] == [
        AnomalyKind.MISSING_PACKETS
    ]
    assert len(list(reader.finish())) == SOURCES_MAX_COUNT
