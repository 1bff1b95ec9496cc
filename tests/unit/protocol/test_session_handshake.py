"""How a session opens: who says what, in which order, and who is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.session import (
    Called,
    Closed,
    CloseReason,
    Opened,
    Role,
    Session,
    SessionState,
    Written,
)
from openmsmq.wire.headers import establish as establish_header
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection, encode
from tests.golden import golden
from tests.unit.protocol.session_checks import (
    ADDRESS,
    CONFIG,
    LOCAL,
    PEER,
    REFUSED,
    STRANGER,
    at,
    close_reason,
    establish,
    message,
    of_type,
    open_acceptor,
    open_initiator,
    parameters,
    written,
)


def initiator(config: TransferConfig = CONFIG, *, remote: Guid = NIL_GUID) -> Session:
    session = Session(LOCAL, Role.INITIATOR, config, address=ADDRESS, called=Called(remote))
    session.connected(at(0))
    return session


def acceptor(config: TransferConfig = CONFIG) -> Session:
    session = Session(LOCAL, Role.ACCEPTOR, config, address=ADDRESS)
    session.connected(at(0))
    return session


def only_establish(session: Session) -> EstablishConnection:
    packets = written(session.take_outputs())
    assert len(packets) == 1
    assert isinstance(packets[0], EstablishConnection)
    return packets[0]


def only_parameters(session: Session) -> ConnectionParameters:
    packets = written(session.take_outputs())
    assert len(packets) == 1
    assert isinstance(packets[0], ConnectionParameters)
    return packets[0]


@pytest.mark.spec(
    "MQQB-3.1.5.2.3-03",
    "MQQB-3.1.5.2.3-04",
    "MQQB-3.1.5.2.3-05",
    "MQQB-3.1.5.2.3-06",
    "MQQB-3.1.5.2.3-07",
    "MQQB-3.1.5.2.3-08",
    "MQQB-3.1.5.2.3-12",
    "MQQB-3.1.5.2.3-13",
)
def test_an_initiator_introduces_itself_as_soon_as_it_is_connected() -> None:
    session = initiator(remote=PEER)
    outputs = session.take_outputs()
    (raw,) = of_type(outputs, Written)
    base_flags, internal_flags = raw.data[2], raw.data[18]
    assert base_flags & 0x08
    assert internal_flags & 0x0F == 2
    (packet,) = written(outputs)
    assert packet == EstablishConnection(
        establish_header.EstablishHeader(LOCAL, PEER, at(0).ticks_ms, 0x0310)
    )
    assert session.state is SessionState.AWAITING_ESTABLISH_REPLY


@pytest.mark.spec("MQQB-3.1.5.2.3-09", "MQQB-2.2.3.1-01")
def test_an_initiator_that_knows_only_an_address_asks_whoever_is_there() -> None:
    assert only_establish(initiator()).establish.server == NIL_GUID
    assert only_establish(initiator(remote=PEER)).establish.server == PEER


@pytest.mark.spec("MQQB-3.1.5.2.3-11", "MQQB-2.2.3.1-05")
@pytest.mark.parametrize(("pinged", "system"), [(False, 0x0310), (True, 0x0210)])
def test_an_initiator_says_whether_it_has_sent_a_ping(pinged: bool, system: int) -> None:
    session = Session(LOCAL, Role.INITIATOR, CONFIG, address=ADDRESS, called=Called(pinged=pinged))
    session.connected(at(0))
    assert only_establish(session).establish.system == system


def test_the_request_has_the_bytes_of_a_captured_one() -> None:
    captured = golden("mqqb-4.1-frame-3-establish-request")
    local, remote = Guid(captured[20:36]), Guid(captured[36:52])
    session = Session(local, Role.INITIATOR, CONFIG, address=ADDRESS, called=Called(remote))
    ticks_ms = int.from_bytes(captured[52:56], "little")
    session.connected(at(ticks_ms - at(0).ticks_ms))
    (packet,) = session.take_outputs()
    # Byte 1 is reserved; what was captured has something in it.
    assert packet.data == captured[:1] + b"\0" + captured[2:]  # type: ignore[union-attr]


@pytest.mark.spec("MQQB-3.1.5.10-02", "MQQB-3.1.3.2-36")
def test_an_acceptor_waits_to_be_asked() -> None:
    session = acceptor()
    assert session.take_outputs() == []
    assert session.state is SessionState.AWAITING_ESTABLISH


def marks_of(session: Session) -> tuple[int, int]:
    """The flags of the base header and of the internal header of the packet that was written."""
    (output,) = of_type(session.take_outputs(), Written)
    return output.data[2], output.data[18]


@pytest.mark.spec(
    "MQQB-3.1.5.3.1-02", "MQQB-3.1.5.3.1-03", "MQQB-3.1.5.3.1-04", "MQQB-3.1.5.3.1-05"
)
def test_the_answer_of_an_acceptor_is_an_internal_packet_of_type_2_that_refuses_nothing() -> None:
    session = acceptor()
    session.receive_data(establish(PEER, LOCAL), at(0))
    base_flags, internal_flags = marks_of(session)
    assert base_flags & 0x08
    assert internal_flags == 2


@pytest.mark.spec(
    "MQQB-3.1.5.3.1-01",
    "MQQB-3.1.5.3.1-07",
    "MQQB-3.1.5.3.1-08",
    "MQQB-3.1.5.3.1-09",
    "MQQB-3.1.5.3.1-11",
    "MQQB-3.1.5.3.1-12",
)
@pytest.mark.parametrize("server", [LOCAL, NIL_GUID], ids=["by identifier", "by address"])
def test_an_acceptor_that_is_meant_answers_with_its_own_identifier(server: Guid) -> None:
    session = acceptor()
    session.receive_data(establish(PEER, server, 4_000_000_000), at(0))
    (packet,) = written(session.take_outputs())
    assert isinstance(packet, EstablishConnection)
    assert packet.establish == establish_header.EstablishHeader(PEER, LOCAL, 4_000_000_000, 0x0310)
    assert not packet.internal.refused
    assert session.remote == PEER
    assert session.state is SessionState.AWAITING_PARAMETERS


@pytest.mark.spec("MQQB-3.1.5.3.1-10", "MQQB-2.2.3.1-06")
@pytest.mark.parametrize(("asked", "answered"), [(0x0710, 0x0310), (0x0010, 0x0210)])
def test_an_acceptor_repeats_whether_a_ping_was_sent_and_says_the_rest_itself(
    asked: int, answered: int
) -> None:
    session = acceptor()
    header = establish_header.EstablishHeader(PEER, LOCAL, 1, asked)
    session.receive_data(encode(EstablishConnection(header)), at(0))
    assert only_establish(session).establish.system == answered


@pytest.mark.spec("MQQB-3.1.5.3.1-06")
@pytest.mark.parametrize(
    "request_packet",
    [establish(PEER, STRANGER), establish(PEER, LOCAL, internal=REFUSED)],
    ids=["somebody else is meant", "the request is a refusal"],
)
def test_an_acceptor_that_is_not_meant_refuses_and_closes(request_packet: bytes) -> None:
    session = acceptor()
    session.receive_data(request_packet, at(0))
    outputs = session.take_outputs()
    (packet,) = written(outputs)
    assert isinstance(packet, EstablishConnection)
    assert packet.internal.refused
    assert packet.establish.server == LOCAL
    assert close_reason(outputs) is CloseReason.REFUSED_PEER
    assert session.state is SessionState.CLOSED


@pytest.mark.parametrize(
    ("server", "marks"),
    [(LOCAL, "0200"), (STRANGER, "1200")],
    ids=["accepted", "refused"],
)
def test_whoever_looks_for_hosts_with_msmq_finds_the_bytes_of_one(server: Guid, marks: str) -> None:
    """What Windows sends first, as the example of MQQB 4.1 has it, and as a refusal is marked."""
    session = acceptor()
    session.receive_data(establish(PEER, server), at(0))
    (answer,) = of_type(session.take_outputs(), Written)
    begins = bytes.fromhex("105a0b00 4c494f52 3c020000 ffffffff 0000" + marks)
    assert answer.data.startswith(begins)
    assert len(answer.data) == 572


@pytest.mark.spec(
    "MQQB-3.1.5.3.2-03",
    "MQQB-3.1.5.3.2-07",
    "MQQB-3.1.5.3.2-08",
    "MQQB-3.1.5.3.2-09",
    "MQQB-3.1.5.3.2-10",
    "MQQB-3.1.3.2-27",
)
def test_an_initiator_that_was_answered_says_its_timeouts_and_window() -> None:
    session = initiator(TransferConfig(round_trip_delay_ms=300, window=64), remote=PEER)
    session.take_outputs()
    session.receive_data(establish(LOCAL, PEER, at(0).ticks_ms), at(100))
    packet = only_parameters(session)
    assert not packet.internal.refused
    assert packet.parameters.recoverable_ack_timeout_ms == 800
    assert packet.parameters.ack_timeout_ms == 20_300
    assert packet.parameters.window == 64
    assert session.state is SessionState.AWAITING_PARAMETERS_REPLY


@pytest.mark.spec("MQQB-3.1.5.3.2-04", "MQQB-3.1.5.3.2-05", "MQQB-3.1.5.3.2-06")
def test_the_parameters_of_an_initiator_are_an_internal_packet_of_type_3() -> None:
    session = initiator(remote=PEER)
    session.take_outputs()
    session.receive_data(establish(LOCAL, PEER), at(0))
    base_flags, internal_flags = marks_of(session)
    assert base_flags & 0x08
    assert internal_flags == 3


@pytest.mark.spec("MQQB-3.1.5.3.2-02")
@pytest.mark.parametrize(
    ("round_trip_ms", "expected_ms"),
    [(0, 500), (62, 500), (63, 504), (14_999, 119_992), (15_001, 120_000), (59_000, 120_000)],
)
def test_acknowledgments_of_recoverable_messages_wait_eight_round_trips(
    round_trip_ms: int, expected_ms: int
) -> None:
    session = initiator()
    session.take_outputs()
    session.receive_data(establish(LOCAL, PEER, at(0).ticks_ms), at(round_trip_ms))
    assert only_parameters(session).parameters.recoverable_ack_timeout_ms == expected_ms


@pytest.mark.parametrize("before_wrap_ms", [50, -5_000], ids=["in it", "before it"])
def test_the_round_trip_is_right_when_the_32_bit_clock_has_wrapped(before_wrap_ms: int) -> None:
    session = Session(LOCAL, Role.INITIATOR, CONFIG, address=ADDRESS)
    start = (1 << 32) - before_wrap_ms - at(0).ticks_ms
    session.connected(at(start))
    sent = only_establish(session).establish.ticks_ms
    assert sent == -before_wrap_ms & 0xFFFF_FFFF
    session.receive_data(establish(LOCAL, PEER, sent), at(start + 100))
    assert only_parameters(session).parameters.recoverable_ack_timeout_ms == 800


def test_an_initiator_learns_who_answers_when_it_knew_only_an_address() -> None:
    session = initiator()
    session.receive_data(establish(LOCAL, PEER), at(0))
    assert session.remote == PEER


@pytest.mark.spec("MQQB-3.1.5.3.2-01")
@pytest.mark.parametrize(
    ("remote", "reply", "reason"),
    [
        (PEER, establish(LOCAL, PEER, internal=REFUSED), CloseReason.REFUSED),
        (PEER, establish(LOCAL, STRANGER), CloseReason.WRONG_PEER),
        (PEER, establish(STRANGER, PEER), CloseReason.WRONG_PEER),
        (NIL_GUID, establish(STRANGER, PEER), CloseReason.WRONG_PEER),
    ],
    ids=["refused", "another server", "another client", "another client of a direct name"],
)
def test_an_initiator_closes_when_the_answer_is_not_good(
    remote: Guid, reply: bytes, reason: CloseReason
) -> None:
    session = initiator(remote=remote)
    session.take_outputs()
    session.receive_data(reply, at(0))
    assert session.take_outputs() == [Closed(reason)]


@pytest.mark.spec(
    "MQQB-3.1.5.4.1-05",
    "MQQB-3.1.5.4.1-06",
    "MQQB-3.1.5.4.1-07",
    "MQQB-3.1.5.4.1-08",
    "MQQB-3.1.5.4.1-09",
    "MQQB-3.1.5.4.1-10",
    "MQQB-3.1.5.4.1-11",
    "MQQB-3.1.5.4.1-13",
)
def test_an_acceptor_repeats_the_timeouts_says_its_window_and_is_open() -> None:
    session = acceptor(TransferConfig(window=20))
    session.receive_data(establish(), at(0))
    session.take_outputs()
    session.receive_data(parameters(7, 31_000, 900), at(0))
    outputs = session.take_outputs()
    (packet,) = written(outputs)
    assert isinstance(packet, ConnectionParameters)
    assert not packet.internal.refused
    assert packet.parameters.recoverable_ack_timeout_ms == 900
    assert packet.parameters.ack_timeout_ms == 31_000
    assert packet.parameters.window == 20
    assert of_type(outputs, Opened) == [Opened(PEER)]
    assert session.state is SessionState.OPEN


@pytest.mark.spec("MQQB-3.1.5.4.2-01", "MQQB-3.1.5.4.2-04")
def test_an_initiator_is_open_when_its_parameters_are_answered() -> None:
    session = initiator()
    session.receive_data(establish(LOCAL, PEER), at(0))
    session.take_outputs()
    session.receive_data(parameters(7), at(0))
    assert session.take_outputs() == [Opened(PEER)]
    assert session.state is SessionState.OPEN
    assert session.room == 7


@pytest.mark.spec("MQQB-3.1.5.4.1-01")
@pytest.mark.parametrize(
    ("window", "room"), [(0, 1), (1, 1), (20, 20), (64, 64), (65, 64), (0xFFFF, 64)]
)
def test_no_more_is_sent_than_both_windows_allow_and_one_always(window: int, room: int) -> None:
    assert open_acceptor(window=window).room == room
    assert open_initiator(window=window).room == room


@pytest.mark.parametrize("role", Role)
def test_refused_parameters_close_the_session(role: Role) -> None:
    session = initiator() if role is Role.INITIATOR else acceptor()
    client, server = (LOCAL, PEER) if role is Role.INITIATOR else (PEER, LOCAL)
    session.receive_data(establish(client, server), at(0))
    session.take_outputs()
    session.receive_data(parameters(internal=REFUSED), at(0))
    assert session.take_outputs() == [Closed(CloseReason.REFUSED)]


@pytest.mark.spec("MQQB-3.1.2.1-01", "MQQB-3.1.5.2.3-15")
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("steps", [0, 1], ids=["silent", "stops half way"])
def test_a_session_that_does_not_open_in_time_is_given_up(role: Role, steps: int) -> None:
    config = TransferConfig(round_trip_delay_ms=1_000)
    session = initiator(config) if role is Role.INITIATOR else acceptor(config)
    client, server = (LOCAL, PEER) if role is Role.INITIATOR else (PEER, LOCAL)
    if steps:
        session.receive_data(establish(client, server), at(30_000))
    session.take_outputs()
    assert session.next_wake_ms == at(62_000).ticks_ms
    session.wake(at(61_999))
    assert session.take_outputs() == []
    session.wake(at(62_000))
    assert session.take_outputs() == [Closed(CloseReason.HANDSHAKE_TIMEOUT)]
    assert session.next_wake_ms is None


@pytest.mark.spec("MQQB-3.1.5.4.1-12", "MQQB-3.1.5.4.2-03")
@pytest.mark.parametrize("opened", [open_initiator, open_acceptor])
def test_an_open_session_no_longer_fears_the_handshake_timer(opened: object) -> None:
    session = opened()  # type: ignore[operator]
    session.wake(at(61_000))
    assert session.take_outputs() == []
    assert session.state is SessionState.OPEN


def test_one_slow_peer_does_not_give_another_more_time() -> None:
    slow = acceptor()
    other = Session(LOCAL, Role.ACCEPTOR, CONFIG, address=ADDRESS)
    other.connected(at(50_000))
    slow.wake(at(60_000))
    other.wake(at(60_000))
    assert slow.state is SessionState.CLOSED
    assert other.state is SessionState.AWAITING_ESTABLISH


@given(st.lists(st.integers(1, 600), max_size=8))
def test_a_handshake_may_come_in_any_pieces(cuts: list[int]) -> None:
    data = establish() + parameters() + message()
    places = sorted({cut for cut in cuts if cut < len(data)})
    session = acceptor()
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        session.receive_data(data[start:end], at(0))
    outputs = session.take_outputs()
    assert of_type(outputs, Opened) == [Opened(PEER)]
    assert [type(packet) for packet in written(outputs)] == [
        EstablishConnection,
        ConnectionParameters,
    ]
    assert session.describe()["received_count"] == 1


def test_a_peer_that_pours_in_bytes_before_it_is_known_is_closed_at_once() -> None:
    session = acceptor()
    huge = message(body=bytes(100_000))
    session.receive_data(huge[:4_000], at(0))
    assert session.take_outputs() == []
    session.receive_data(huge[4_000:8_000], at(0))
    assert session.take_outputs() == [Closed(CloseReason.MALFORMED)]


@pytest.mark.parametrize(
    ("asked_ms", "waits_ms"),
    [(0, 20_000), (31_000, 31_000), (120_000, 120_000), (4_000_000_000, 120_000)],
)
@pytest.mark.spec("MQQB-3.1.5.4.1-02")
def test_an_acceptor_waits_for_acknowledgments_as_long_as_it_is_asked_to(
    asked_ms: int, waits_ms: int
) -> None:
    session = open_acceptor(ack_ms=asked_ms)
    session.send([1], [message()], at(0))
    assert session.next_wake_ms == at(waits_ms).ticks_ms


@pytest.mark.parametrize(("asked_ms", "waits_ms"), [(0, 500), (700, 700), (4_000_000_000, 10_000)])
@pytest.mark.spec("MQQB-3.1.5.4.1-04")
def test_an_acceptor_acknowledges_recoverable_messages_as_soon_as_it_is_asked_to(
    asked_ms: int, waits_ms: int
) -> None:
    session = acceptor()
    session.receive_data(
        establish() + parameters(recoverable_ms=asked_ms) + message(recoverable=True), at(0)
    )
    # A delay beyond that of express messages would be no hurry at all.
    assert session.next_wake_ms == at(waits_ms).ticks_ms
