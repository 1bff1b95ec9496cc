"""The client engine matches answers to calls, whatever way the bytes are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api.framing import FrameReader, encode_frame, encode_frames
from openmsmq.api.messages import (
    Answer,
    AnyReply,
    AnyRequest,
    Call,
    Cancel,
    Done,
    Entries,
    Entry,
    Failed,
    GetQueue,
    GetStatus,
    Hello,
    Receive,
    Welcome,
)
from openmsmq.client.connections.engine import ClientEngine, EngineState, Keeper
from openmsmq.client.errors import ConnectionLost, NotSent
from openmsmq.model.errors import AccessDenied

WELCOME = Welcome(1, "OpenMSMQ", "ALPHA", bytes(16))


class Keeping(Keeper):
    def __init__(self) -> None:
        self.given_up: list[AnyRequest] = []
        self.kept: list[tuple[AnyRequest, AnyReply]] = []

    def gave_up(self, request: AnyRequest) -> None:
        self.given_up.append(request)

    def keep(self, request: AnyRequest, reply: AnyReply) -> None:
        self.kept.append((request, reply))


def open_engine(calls_max: int = 8) -> ClientEngine:
    engine = ClientEngine("secret", calls_max)
    engine.data_to_send()
    engine.receive_data(encode_frame(Answer(0, WELCOME)))
    return engine


def calls_in(data: bytes) -> list[Call]:
    reader: FrameReader[Call] = FrameReader(Call)
    reader.feed(data)
    return list(reader.items())


def test_a_connection_begins_with_a_greeting_and_is_open_after_the_welcome() -> None:
    engine = ClientEngine("secret")
    assert calls_in(engine.data_to_send()) == [Call(0, Hello(1, "secret"))]
    assert engine.state is EngineState.GREETING
    assert engine.receive_data(encode_frame(Answer(0, WELCOME))) == []
    assert engine.state is EngineState.OPEN
    assert engine.welcome == WELCOME


def test_no_call_is_taken_before_the_welcome() -> None:
    with pytest.raises(NotSent):
        ClientEngine().submit(GetStatus())


def test_a_refused_greeting_is_the_queue_managers_error() -> None:
    engine = ClientEngine()
    with pytest.raises(AccessDenied, match="token"):
        engine.receive_data(encode_frame(Answer(0, Failed(AccessDenied.code, "wrong token"))))
    assert engine.state is EngineState.CLOSED


@given(data=st.data(), count=st.integers(1, 8))
def test_answers_find_their_calls_in_any_order_and_any_pieces(
    data: st.DataObject, count: int
) -> None:
    engine = open_engine()
    calls = [engine.submit(GetQueue(f"q{index}")) for index in range(count)]
    assert calls_in(engine.data_to_send()) == [
        Call(call, GetQueue(f"q{index}")) for index, call in enumerate(calls)
    ]
    order = data.draw(st.permutations(calls))
    wanted: list[tuple[int, AnyReply]] = [(call, Failed(call, "")) for call in order]
    stream = encode_frames(Answer(call, reply) for call, reply in wanted)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    found: list[tuple[int, AnyReply]] = []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += engine.receive_data(stream[start:stop])
    assert found == wanted
    assert engine.calls_under_way == 0


def test_calls_under_way_are_bounded() -> None:
    engine = open_engine(calls_max=2)
    first = engine.submit(GetStatus())
    engine.submit(GetStatus())
    assert engine.is_full
    with pytest.raises(RuntimeError, match="2 calls"):
        engine.submit(GetStatus())
    engine.receive_data(encode_frame(Answer(first, Done())))
    assert not engine.is_full


def test_data_to_send_is_given_once() -> None:
    engine = open_engine()
    engine.submit(GetStatus())
    assert engine.data_to_send()
    assert engine.data_to_send() == b""


def test_a_call_given_up_is_cancelled_and_its_late_answer_is_kept() -> None:
    engine = open_engine()
    keeper = Keeping()
    request = Receive(1, timeout_ms=None)
    call = engine.submit(request)
    engine.data_to_send()
    engine.give_up(call, keeper)
    assert keeper.given_up == [request]
    (cancel,) = calls_in(engine.data_to_send())
    assert cancel.request == Cancel(call)
    late = Entries([Entry(1, 2, 0, 0, b"packet")])
    answers = encode_frames([Answer(call, late), Answer(cancel.id, Done())])
    assert engine.receive_data(answers) == []
    assert keeper.kept == [(request, late)]
    assert engine.calls_under_way == 0


def test_giving_up_an_answered_call_does_nothing() -> None:
    engine = open_engine()
    call = engine.submit(GetStatus())
    engine.data_to_send()
    engine.receive_data(encode_frame(Answer(call, Done())))
    engine.give_up(call)
    assert engine.data_to_send() == b""


def test_the_end_of_the_transport_names_the_calls_that_somebody_waits_for() -> None:
    engine = open_engine()
    waiting, given_up = engine.submit(GetStatus()), engine.submit(GetStatus())
    engine.give_up(given_up)
    assert engine.connection_lost() == [waiting]
    assert engine.state is EngineState.CLOSED
    with pytest.raises(NotSent):
        engine.submit(GetStatus())


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x01\x00\x00\x00\xc1",
        encode_frame(Answer(77, Done())),
    ],
    ids=["too long", "no answer", "answer to nobody"],
)
def test_bytes_that_make_no_sense_end_the_connection(data: bytes) -> None:
    engine = open_engine()
    with pytest.raises(ConnectionLost):
        engine.receive_data(data)
    assert engine.state is EngineState.CLOSED


def test_a_first_answer_that_is_no_welcome_ends_the_connection() -> None:
    with pytest.raises(ConnectionLost, match="welcome"):
        ClientEngine().receive_data(encode_frame(Answer(0, Done())))


@given(st.binary(max_size=64))
def test_any_bytes_give_answers_or_end_the_connection(data: bytes) -> None:
    engine = open_engine()
    try:
        engine.receive_data(data)
    except ConnectionLost:
        assert engine.state is EngineState.CLOSED
