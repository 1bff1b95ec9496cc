"""A packet that trickles: the session ends before its sender has had our time for nothing."""

from __future__ import annotations

import pytest

from openmsmq.protocol.session import (
    PACKET_MS,
    PACKET_RATE_MIN_BYTES_PER_S,
    CloseReason,
    SessionState,
)
from tests.unit.protocol.session_checks import at, close_reason, message, open_acceptor

KIB = 1024
LONG = message(1, body=bytes(64 * KIB))
LONG_MS = PACKET_MS + 1_000 * len(LONG) // PACKET_RATE_MIN_BYTES_PER_S


def test_a_packet_that_comes_byte_by_byte_has_to_be_whole_in_time():
    session = open_acceptor()
    ms = 0
    while ms + 1_000 < LONG_MS:
        session.receive_data(LONG[ms // 1_000 :][:1], at(ms))
        ms += 1_000
        session.wake(at(ms))
        assert session.state is SessionState.OPEN
    assert session.next_wake_ms == at(LONG_MS).ticks_ms
    session.wake(at(LONG_MS))
    assert session.state is SessionState.CLOSED
    assert close_reason(session.take_outputs()) is CloseReason.TOO_SLOW


def test_one_who_stops_before_the_size_of_a_packet_is_known_has_the_least_time():
    session = open_acceptor()
    session.receive_data(LONG[:10], at(0))
    session.wake(at(PACKET_MS))
    assert close_reason(session.take_outputs()) is CloseReason.TOO_SLOW


def test_a_long_packet_over_a_slow_line_arrives():
    session = open_acceptor()
    step = PACKET_RATE_MIN_BYTES_PER_S
    for number, start in enumerate(range(0, len(LONG), step)):
        session.receive_data(LONG[start : start + step], at(1_000 * number))
        session.wake(at(1_000 * number))
    assert session.state is SessionState.OPEN
    assert session.held_bytes == 0


@pytest.mark.parametrize("whole", [1, 3])
def test_the_time_of_a_packet_begins_with_its_own_first_bytes(whole):
    session = open_acceptor()
    session.receive_data(LONG[:100], at(0))
    assert session.held_bytes == 100
    end = LONG[100:] + LONG * (whole - 1)
    session.receive_data(end + LONG[:50], at(PACKET_MS - 1))
    session.settled(whole, at(PACKET_MS - 1))
    session.wake(at(PACKET_MS + 10_000))
    assert session.state is SessionState.OPEN
    assert session.held_bytes == 50


def test_one_who_waits_between_packets_is_not_slow():
    session = open_acceptor()
    session.receive_data(LONG, at(0))
    session.settled(1, at(0))
    session.wake(at(PACKET_MS * 3))
    assert session.state is SessionState.OPEN
