"""What may come in which state, and what the end of a session says."""

from __future__ import annotations

import pytest

from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.session import Closed, CloseReason, Role, Session, SessionState
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)
from tests.unit.protocol.session_checks import (
    ADDRESS,
    CONFIG,
    LOCAL,
    PEER,
    ack,
    at,
    close_reason,
    establish,
    message,
    parameters,
)

STATES = [state for state in SessionState if state is not SessionState.CLOSED]
SAMPLES: dict[type[Packet], bytes] = {
    EstablishConnection: establish(LOCAL, PEER),
    ConnectionParameters: parameters(),
    SessionAck: ack(),
    UserMessage: message(),
}

# As MQQB 3.1.1.3.1, 3.1.5.3, 3.1.5.4, 3.1.5.5 and 3.1.5.8 have it; anything else ends the session.
LEADS_TO = {
    (SessionState.AWAITING_ESTABLISH, EstablishConnection): SessionState.AWAITING_PARAMETERS,
    (
        SessionState.AWAITING_ESTABLISH_REPLY,
        EstablishConnection,
    ): SessionState.AWAITING_PARAMETERS_REPLY,
    (SessionState.AWAITING_PARAMETERS, ConnectionParameters): SessionState.OPEN,
    (SessionState.AWAITING_PARAMETERS_REPLY, ConnectionParameters): SessionState.OPEN,
    (SessionState.OPEN, SessionAck): SessionState.OPEN,
    (SessionState.OPEN, UserMessage): SessionState.OPEN,
}


def session_in(state: SessionState) -> Session:
    """A session that has just come to a state."""
    accepts = state in (SessionState.AWAITING_ESTABLISH, SessionState.AWAITING_PARAMETERS)
    role = Role.ACCEPTOR if accepts else Role.INITIATOR
    session = Session(LOCAL, role, CONFIG, address=ADDRESS)
    if state is SessionState.CONNECTING:
        return session
    session.connected(at(0))
    if state is SessionState.AWAITING_PARAMETERS:
        session.receive_data(establish(PEER, LOCAL), at(0))
    if state in (SessionState.AWAITING_PARAMETERS_REPLY, SessionState.OPEN):
        session.receive_data(establish(LOCAL, PEER), at(0))
    if state is SessionState.OPEN:
        session.receive_data(parameters(), at(0))
    session.take_outputs()
    assert session.state is state
    return session


@pytest.mark.spec("MQQB-3.1.5.3-01", "MQQB-3.1.5.4-01", "MQQB-3.1.5.5-01", "MQQB-3.1.5.9-02")
@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("state", STATES)
def test_a_packet_without_a_place_in_the_table_closes_the_session(
    state: SessionState, kind: type[Packet]
) -> None:
    session = session_in(state)
    sample = SAMPLES[kind]
    if state is SessionState.AWAITING_ESTABLISH and kind is EstablishConnection:
        sample = establish(PEER, LOCAL)
    session.receive_data(sample, at(0))
    reason = close_reason(session.take_outputs())
    if (state, kind) in LEADS_TO:
        assert reason is None
        assert session.state is LEADS_TO[state, kind]
    else:
        assert reason is CloseReason.UNEXPECTED_PACKET
        assert session.state is SessionState.CLOSED


def test_a_closed_session_hears_and_says_nothing() -> None:
    session = session_in(SessionState.OPEN)
    session.receive_data(message(recoverable=True), at(0))
    session.send([1], [message()], at(0))
    session.close(CloseReason.STORE_FULL, at(0))
    session.take_outputs()
    session.receive_data(message(), at(1))
    session.settled(1, at(2))
    session.advertise(1, at(3))
    session.wake(at(1_000_000))
    session.connection_lost(at(1_000_001))
    session.close(CloseReason.STOPPING, at(1_000_002))
    session.connected(at(1_000_003))
    assert session.take_outputs() == []
    assert session.next_wake_ms is None
    assert session.room == session.room_bytes == 0
    assert session.unacknowledged() == [1]


def test_a_closed_session_holds_nothing_of_a_packet_that_never_came_whole() -> None:
    session = session_in(SessionState.OPEN)
    session.receive_data(message()[:-1], at(0))
    assert session.held_bytes > 0
    session.connection_lost(at(1))
    assert session.held_bytes == 0


@pytest.mark.parametrize("reason", CloseReason)
@pytest.mark.parametrize("state", STATES)
def test_a_session_can_be_closed_in_every_state(state: SessionState, reason: CloseReason) -> None:
    session = session_in(state)
    session.close(reason, at(5))
    assert session.take_outputs() == [Closed(reason)]
    assert session.next_wake_ms is None


@pytest.mark.parametrize("state", STATES)
def test_a_lost_connection_ends_the_session_in_every_state(state: SessionState) -> None:
    session = session_in(state)
    session.connection_lost(at(5))
    assert session.take_outputs() == [Closed(CloseReason.PEER_CLOSED)]


def test_each_reason_has_one_sentence_of_its_own() -> None:
    sentences = [reason.sentence for reason in CloseReason]
    assert len(set(sentences)) == len(CloseReason)
    assert all(s[0].isupper() and s.endswith(".") and s.count(".") == 1 for s in sentences)


def test_only_orderly_ends_are_no_failures() -> None:
    orderly = {reason for reason in CloseReason if not reason.status.is_failure}
    assert orderly == {CloseReason.IDLE, CloseReason.STOPPING}
    assert CloseReason.REFUSED.status is ConnectionStatus.CONNECTION_REFUSED
    assert CloseReason.STORE_FULL.status is ConnectionStatus.LOW_RESOURCE
