"""A stream of packets, cut anywhere, gives runs of messages and what stands between them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.protocol.session import Closed, CloseReason
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import base, session
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.message_bytes import MESSAGE_MIN_BYTES, laden
from openmsmq.wire.packet_buffer import PacketBuffer, StreamEvent, can_carry
from openmsmq.wire.packets import Packet, SessionAck, UserMessage, decode, encode, headers_end
from tests.golden import golden
from tests.strategies.packets import packets, user_messages
from tests.unit.protocol.session_checks import (
    ack,
    at,
    establish,
    message,
    open_acceptor,
    parameters,
)


def plain(packet: UserMessage) -> bytes:
    """The message as if it had never carried a SessionHeader."""
    return encode(
        UserMessage(
            packet.user,
            packet.properties,
            packet.base,
            packet.transaction,
            packet.security,
            packet.debug,
            packet.soap,
            packet.multi_queue,
            tail=packet.tail,
        )
    )


def flat(events: list[StreamEvent]) -> list[object]:
    """The events, with runs resolved: how a stream was fed must not show beyond runs."""
    return [part for event in events for part in (event if isinstance(event, list) else [event])]


def expected(packet: Packet) -> list[object]:
    if isinstance(packet, UserMessage):
        carried = [] if packet.session is None else [packet.session]
        return [plain(packet), *carried]
    return [packet.session] if isinstance(packet, SessionAck) else [packet]


def small(packet: Packet) -> bool:
    return isinstance(packet, UserMessage) or len(encode(packet)) <= 4096


@given(st.lists(packets.filter(small), max_size=4), st.data())
def test_a_stream_gives_messages_without_headers_and_the_headers_however_it_is_cut(
    sent: list[Packet], data: st.DataObject
) -> None:
    raw = b"".join(encode(packet) for packet in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    stream = PacketBuffer()
    events: list[StreamEvent] = []
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        events += stream.feed(raw[start:end])
    assert stream.problem == ""
    assert stream.held_bytes == 0
    assert flat(events) == [part for packet in sent for part in expected(packet)]


@given(packets.filter(small), packets.filter(small))
def test_a_stream_that_comes_byte_by_byte_gives_each_packet_at_its_last_byte(
    first: Packet, second: Packet
) -> None:
    stream = PacketBuffer()
    whole = {len(encode(first)): first, len(encode(first) + encode(second)): second}
    for place, byte in enumerate(encode(first) + encode(second), start=1):
        due = expected(whole[place]) if place in whole else []
        assert flat(stream.feed(bytes((byte,)))) == due


def test_messages_in_a_row_are_one_run() -> None:
    run = [message(number) for number in range(5)]
    assert PacketBuffer().feed(b"".join(run)) == [run]


@pytest.mark.parametrize("counted", [False, True], ids=["behind the packet", "inside its size"])
def test_a_session_header_is_found_and_taken_away_wherever_it_is(counted: bool) -> None:
    header = SessionHeader(1, 2, 3, 4, 5, 6, 7)
    carrier = message(7, session=header, counted=counted)
    following = message(8)
    size = int.from_bytes(carrier[8:12], "little")
    assert len(carrier) - size == (0 if counted else session.SIZE)
    assert PacketBuffer().feed(carrier + following) == [[message(7)], header, [following]]


@given(st.binary(max_size=600))
@example(message()[:60] + b"\xff" * 40)
def test_any_bytes_give_packets_or_a_problem_and_never_an_exception(data: bytes) -> None:
    stream = PacketBuffer()
    stream.feed(data)
    if not stream.problem and len(data) >= base.SIZE:
        assert data[0] == base.VERSION


@given(st.data())
def test_a_damaged_stream_gives_the_same_packets_as_the_careful_reader(data: st.DataObject) -> None:
    raw = bytearray(message(1) + ack() + message(2, session=SessionHeader()) + message(3))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] = data.draw(st.integers(0, 255))
    stream = PacketBuffer()
    events = flat(stream.feed(bytes(raw)))
    due, is_good = read_carefully(bytes(raw))
    assert events == due
    # The careful reader would wait for the end of an internal packet of any size.
    assert (stream.problem == "") == is_good or "internal packet" in stream.problem


def read_carefully(raw: bytes) -> tuple[list[object], bool]:
    """What a stream should give: read packet by packet, and whether nothing was wrong."""
    due: list[object] = []
    try:
        for packet in take_packets(bytearray(raw)):
            flags = packet[2] & (base.INTERNAL | base.SESSION)
            if flags == base.SESSION:
                size = int.from_bytes(packet[8:12], "little")
                place = headers_end(packet[:size])
                place = place if size - place >= session.SIZE else size
                rest = packet[:place] + packet[place + session.SIZE :]
                lead = rest[:2] + bytes((rest[2] & ~base.SESSION,)) + rest[3:8]
                due.append(lead + len(rest).to_bytes(4, "little") + rest[12:])
                due.append(session.read(packet, place)[0])
            elif flags:
                due += expected(decode(packet))
            elif len(packet) < MESSAGE_MIN_BYTES:
                return due, False
            else:
                due.append(packet)
    except ValueError:
        return due, False
    return due, True


def bad_base(offset: int, value: bytes) -> bytes:
    raw = bytearray(message())
    raw[offset : offset + len(value)] = value
    return bytes(raw)


@pytest.mark.spec("MQQB-3.1.5.1.2-01", "MQQB-3.1.5.1.3-01")
@pytest.mark.parametrize(
    "bad",
    [
        bad_base(0, b"\x11"),
        bad_base(4, b"liar"),
        bad_base(8, (19).to_bytes(4, "little")),
        bad_base(8, (MESSAGE_MIN_BYTES - 1).to_bytes(4, "little")),
        bad_base(8, (PACKET_MAX_BYTES + 1).to_bytes(4, "little")),
        bad_base(8, b"\xff\xff\xff\xff"),
        ack()[:18] + b"\x04\0" + ack()[20:],
        ack()[:18] + b"\x11\0" + ack()[20:],
        ack()[:8] + (5000).to_bytes(4, "little") + ack()[12:],
        parameters()[:8] + (28).to_bytes(4, "little") + parameters()[12:28],
        establish()[:2] + b"\x1b" + establish()[3:],
        message(session=SessionHeader())[:60] + b"\xff\xff\xff\xff" + bytes(200),
    ],
    ids=[
        "version",
        "signature",
        "too small for any packet",
        "too small for a message",
        "too large",
        "huge",
        "unknown internal type",
        "acknowledgment that refuses",
        "internal packet too large",
        "internal packet too short",
        "wrong header bits",
        "message that cannot be measured",
    ],
)
def test_bytes_that_are_no_packet_close_the_session_after_what_came_before(bad: bytes) -> None:
    engine = open_acceptor()
    engine.receive_data(message(1) + bad + message(2), at(0))
    arrived, closed = engine.take_outputs()
    assert arrived.packets == [message(1)]  # type: ignore[union-attr]
    assert closed == Closed(CloseReason.MALFORMED)


def test_a_bad_base_header_is_noticed_without_waiting_for_the_rest() -> None:
    engine = open_acceptor()
    engine.receive_data(bad_base(8, b"\xff\xff\xff\xff")[: base.SIZE], at(0))
    assert engine.take_outputs() == [Closed(CloseReason.MALFORMED)]


def test_what_waits_for_its_end_is_never_more_than_one_packet() -> None:
    stream = PacketBuffer()
    large = message(body=bytes(1_000_000))
    for start in range(0, len(large) - 1, 65_536):
        assert stream.feed(large[start : min(start + 65_536, len(large) - 1)]) == []
    assert stream.held_bytes == len(large) - 1
    assert stream.feed(large[-1:] + message()) == [[large, message()]]
    assert stream.held_bytes == 0


@given(user_messages())
def test_what_rides_on_a_message_comes_off_again(packet: UserMessage) -> None:
    raw = plain(packet)
    header = SessionHeader(9, 8, 7, 6, 5, 4)
    fits = len(raw) - headers_end(raw) < session.SIZE and packet.properties.message_class == 0
    assert can_carry(raw) == fits
    if fits:
        assert PacketBuffer().feed(laden(raw, header.write())) == [[raw], header]


@pytest.mark.parametrize(
    "packet",
    [
        message(tail=bytes(16)),
        message(message_class=0x00FF),
        message(message_class=0x4000),
        golden("order-ack-private"),
        message()[:70],
    ],
    ids=["unknown tail", "order ack", "final ack", "captured order ack", "not a message"],
)
def test_some_messages_carry_nothing(packet: bytes) -> None:
    assert not can_carry(packet)
