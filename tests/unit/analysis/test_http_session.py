"""HTTP in captures: messages, the answers to them, other requests, and what is none of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from openmsmq.analysis.events import Anomaly, Event, HttpItem, SessionSummary, Settled
from openmsmq.analysis.http_session import WAITING_MAX_COUNT
from openmsmq.analysis.kinds import AnomalyKind, Fate, Handshake
from openmsmq.analysis.traffic import follow
from openmsmq.analysis.transports import Ports
from openmsmq.capture.frames import Frame
from openmsmq.capture.link_layers import ACK, FIN, RST, SYN, LinkType
from openmsmq.capture.recorder import tcp_packet
from openmsmq.wire.text.tree import Kind
from tests.golden import golden_request
from tests.strategies.captures import endpoint

CLIENT, SERVER = endpoint("10.0.0.1", 50_000), endpoint("10.0.0.2", 8_080)
FIRST = golden_request("mqsrm-4.4-stream-1")
# The examples have one identifier for all messages of their stream.
SECOND = golden_request("mqsrm-4.4-stream-2").replace(b"uuid:1@", b"uuid:2@")
THIRD = golden_request("mqsrm-4.4-stream-3").replace(b"uuid:1@", b"uuid:3@")
SIMPLE = golden_request("mqsrm-4.1-simple")
RECEIPT = golden_request("mqsrm-4.4-stream-receipt-1")
OTHER = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"


def read(
    *said: tuple[bool, bytes] | bytes, opened: bool = True, closed: bool = True
) -> list[Event]:
    """Return what is read of what the client (or, with False, the server) says, in that order.

    Bytes alone are those of an IP packet.
    """
    frames: list[bytes] = []
    if opened:
        frames += [
            tcp_packet(CLIENT, SERVER, 99, SYN),
            tcp_packet(SERVER, CLIENT, 99, SYN | ACK),
        ]
    places = {True: 100, False: 100}
    for each in said:
        if isinstance(each, bytes):
            frames.append(each)
            continue
        is_client, data = each
        ends = (CLIENT, SERVER) if is_client else (SERVER, CLIENT)
        frames.append(tcp_packet(*ends, places[is_client], ACK, data))
        places[is_client] += len(data)
    if closed:
        frames.append(tcp_packet(CLIENT, SERVER, places[True], FIN | ACK))
        frames.append(tcp_packet(SERVER, CLIENT, places[False], FIN | ACK))
    return list(follow(_frames(frames)))


def _frames(packets: Iterable[bytes]) -> Iterable[Frame]:
    for number, packet in enumerate(packets, 1):
        yield Frame(number, number * 1_000_000, LinkType.RAW, packet, len(packet))


def items(events: list[Event]) -> list[HttpItem]:
    return [event for event in events if isinstance(event, HttpItem)]


def fates(events: list[Event]) -> list[Fate]:
    return [event.fate for event in events if isinstance(event, Settled)]


def anomalies(events: list[Event]) -> list[AnomalyKind]:
    return [event.kind for event in events if isinstance(event, Anomaly)]


def test_a_message_and_its_answer_are_read() -> None:
    events = read((True, FIRST), (False, OK))
    message, answer = items(events)
    assert (message.kind, message.data, message.source) == (Kind.POST, FIRST, CLIENT)
    assert message.message is not None
    assert message.message.transaction is not None
    assert message.message.transaction.number == 1
    assert (answer.kind, answer.data, answer.source) == (Kind.ANSWER, OK, SERVER)
    (settled,) = [event for event in events if isinstance(event, Settled)]
    assert settled == Settled(message.number, Fate.ACKNOWLEDGED, 3_000_000, 4_000_000)
    (summary,) = [event for event in events if isinstance(event, SessionSummary)]
    assert summary.handshake is Handshake.HTTP
    assert (summary.client.messages, summary.client.bytes) == (1, len(FIRST))
    assert (summary.server.acks, summary.unacknowledged) == (1, 0)
    assert anomalies(events) == []


def test_answers_belong_to_requests_in_their_order() -> None:
    events = read((True, FIRST + OTHER + SECOND), (False, OK + OK + BUSY))
    assert [item.kind for item in items(events)] == [
        Kind.POST,
        Kind.REQUEST,
        Kind.POST,
        *[Kind.ANSWER] * 3,
    ]
    assert fates(events) == [Fate.ACKNOWLEDGED, Fate.REFUSED]
    assert anomalies(events) == [AnomalyKind.REFUSED_POST]


def test_an_interim_answer_ends_nothing() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    events = read((True, FIRST), (False, interim + BUSY))
    assert fates(events) == [Fate.REFUSED]
    assert items(events)[1].data == BUSY
    assert items(events)[1].offset == len(interim)


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
    events = read((True, FIRST), (False, answer))
    assert [item.data for item in items(events)] == [FIRST, answer]
    assert fates(events) == [Fate.ACKNOWLEDGED]


def test_the_door_of_programs_is_shown_as_requests() -> None:
    post = b"POST /queues/a/messages HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\ntea"
    (item,) = items(read((True, post)))
    assert (item.kind, item.message, item.problem) == (Kind.REQUEST, None, "")


def test_a_message_that_nobody_answered_is_told() -> None:
    events = read((True, FIRST))
    assert fates(events) == [Fate.UNACKNOWLEDGED]
    assert AnomalyKind.UNACKNOWLEDGED_MESSAGE in anomalies(events)
    assert fates(read((True, FIRST), closed=False)) == [Fate.IN_FLIGHT]


def test_a_message_that_is_posted_again_is_told_and_a_stranger_says_not_who_he_is() -> None:
    again = read((True, FIRST + FIRST), (False, OK + OK))
    assert anomalies(again) == [AnomalyKind.RESENT_MESSAGE]
    assert anomalies(read((True, SIMPLE + SIMPLE), (False, OK + OK))) == []


def test_a_message_missing_in_a_stream_is_told() -> None:
    assert anomalies(read((True, FIRST + THIRD), (False, OK + OK))) == [AnomalyKind.SEQUENCE_GAP]


def test_receipts_are_messages_of_their_own() -> None:
    (item,) = items(read((True, RECEIPT)))
    assert item.post is not None
    assert item.post.summary.startswith("receipt for a stream up to 1")


def test_a_message_that_does_not_decode_is_told_and_reading_goes_on() -> None:
    broken = FIRST.replace(b"<path", b"<bath").replace(b"</path", b"</bath")
    events = read((True, broken + SECOND), (False, OK + OK))
    assert [bool(item.problem) for item in items(events)[:2]] == [True, False]
    assert AnomalyKind.MALFORMED_PACKET in anomalies(events)
    assert fates(events) == [Fate.ACKNOWLEDGED]


def test_what_follows_a_gap_is_found_and_no_answer_is_guessed_from_then_on() -> None:
    at = 100 + len(FIRST)
    half = len(SECOND) // 2
    events = read(
        (True, FIRST),
        (False, OK),
        tcp_packet(CLIENT, SERVER, at + half, ACK, SECOND[half:] + SECOND),
        (False, OK + OK),
    )
    assert [item.data for item in items(events) if item.kind is Kind.POST] == [FIRST, SECOND]
    assert fates(events) == [Fate.ACKNOWLEDGED, Fate.UNKNOWN]
    assert AnomalyKind.MISSING_BYTES in anomalies(events)


def test_a_capture_that_begins_in_the_middle_guesses_no_fates() -> None:
    events = read((True, FIRST[300:] + SECOND), (False, OK + OK), opened=False)
    assert [item.data for item in items(events) if item.kind is Kind.POST] == [SECOND]
    assert fates(events) == [Fate.UNKNOWN]
    assert anomalies(events) == [AnomalyKind.CUT_PACKET]


def test_tls_is_told_once() -> None:
    hello = bytes((22, 3, 1, 0, 200)) + bytes(200)
    events = read((True, hello), (True, hello), (False, hello))
    told = [event for event in events if isinstance(event, Anomaly)]
    assert [each.kind for each in told] == [AnomalyKind.STRAY_BYTES] * 2
    assert told[0].description == "410 bytes: they are TLS, which cannot be read without its keys"


def test_a_connection_that_was_refused_or_reset_is_told() -> None:
    refused = read(tcp_packet(SERVER, CLIENT, 0, RST | ACK), opened=False, closed=False)
    assert anomalies(refused) == [AnomalyKind.CONNECTION_RESET]
    syn = tcp_packet(CLIENT, SERVER, 99, SYN)
    rst = tcp_packet(SERVER, CLIENT, 0, RST | ACK)
    assert anomalies(read(syn, rst, opened=False, closed=False)) == [AnomalyKind.REFUSED_CONNECTION]
    assert anomalies(read(syn, opened=False, closed=False)) == [AnomalyKind.UNANSWERED_CONNECTION]
    reset = tcp_packet(SERVER, CLIENT, 100, RST | ACK)
    events = read((True, FIRST), reset, closed=False)
    assert anomalies(events)[0] is AnomalyKind.CONNECTION_RESET
    assert fates(events) == [Fate.UNACKNOWLEDGED]


def test_ports_say_what_is_http() -> None:
    sessions_there = Ports(frozenset({8_080}), frozenset(), frozenset({8_080}))
    frames = _frames(
        [tcp_packet(CLIENT, SERVER, 99, SYN), tcp_packet(CLIENT, SERVER, 100, ACK, FIRST)]
    )
    assert items(list(follow(frames, sessions_there))) == []


@pytest.mark.parametrize("count", [WAITING_MAX_COUNT, WAITING_MAX_COUNT + 1])
def test_so_many_requests_wait_for_answers_and_no_more(count: int) -> None:
    events = read(
        (True, FIRST),
        *[(True, OTHER * 100)] * (count // 100),
        (True, OTHER * (count % 100 - 1)),
        (False, OK),
    )
    expected = Fate.ACKNOWLEDGED if count == WAITING_MAX_COUNT else Fate.UNKNOWN
    assert fates(events) == [expected]
