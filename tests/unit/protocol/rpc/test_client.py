from __future__ import annotations

from collections.abc import Callable
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.limits import (
    RPC_AUTH_LEGS_MAX_COUNT,
    RPC_CALLS_MAX_COUNT,
    RPC_FRAGMENT_MAX_BYTES,
    RPC_REQUEST_MAX_BYTES,
    RPC_RESULTS_MAX_BYTES,
)
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import (
    Bound,
    ClientState,
    Failed,
    FailureKind,
    Protection,
    Returned,
    Threw,
)
from openmsmq.protocol.rpc.states import Written
from openmsmq.security.authentication.ports import Level, ProviderKind
from openmsmq.wire.rpc.pdus import (
    WHOLE,
    BindAck,
    BindNak,
    Fault,
    Flag,
    NakReason,
    Notice,
    Outcome,
    PduType,
    Response,
    Result,
    Status,
    Verifier,
    write,
)
from openmsmq.wire.rpc.syntaxes import NDR, NO_SYNTAX, Syntax
from tests.unit.protocol.rpc.conversations import OPEN, SAFE, Conversation, by_ntlm, by_spnego
from tests.unit.security.authentication.negotiations import Endless

WAYS = [by_ntlm, by_spnego]


def failure(machine: ClientAssociation) -> Failed:
    (failed,) = (each for each in machine.take_outputs() if isinstance(each, Failed))
    assert machine.state is ClientState.ENDED
    return failed


def ack(*results: Result, flags: int = WHOLE | Flag.CONCURRENT, size: int = 5840) -> bytes:
    found = results or (Result(Outcome.ACCEPTED, 0, NDR),)
    return write(PduType.BIND_ACK, 1, BindAck(size, size, 7, b"2103\0", found), None, flags)


def bound(*, concurrent: bool = True) -> ClientAssociation:
    """A client that a test plays the server for, with nothing to prove."""
    machine = ClientAssociation(OPEN)
    machine.connected()
    machine.received(ack(flags=WHOLE | (Flag.CONCURRENT if concurrent else 0)))
    assert machine.take_outputs()[-1] == Bound(7, concurrent)
    return machine


def response(call: int, stub: bytes, flags: int = WHOLE) -> bytes:
    return write(PduType.RESPONSE, call, Response(0, stub, len(stub)), None, flags)


@given(
    st.lists(st.integers(1, 9_000), min_size=1, max_size=20),
    st.binary(max_size=200),
    st.integers(0, RPC_REQUEST_MAX_BYTES // 200),
    st.sampled_from([Level.CONNECT, Level.PACKET, Level.INTEGRITY, Level.PRIVACY]),
    st.sampled_from(WAYS),
)
def test_calls_come_back_however_bytes_are_cut(
    sizes: list[int],
    piece: bytes,
    times: int,
    level: Level,
    way: Callable[[Level], Protection],
) -> None:
    cuts = (size for _ in repeat(None) for size in sizes)
    stub = piece * times
    talk = Conversation(ClientAssociation(OPEN, way(level)), cuts)
    assert talk.heard == [Bound(1, is_concurrent=True)]
    first = talk.client.call(1, stub)
    second = talk.client.call(1, stub[::-1])
    talk.settle()
    assert talk.heard[1:] == [Returned(first, stub), Returned(second, stub[::-1])]
    assert talk.client.held_bytes == 0


@pytest.mark.parametrize("way", WAYS)
def test_what_wants_privacy_is_called_with_it(way: Callable[[], Protection]) -> None:
    talk = Conversation(ClientAssociation(SAFE, way()))
    call = talk.client.call(0, b"secret")
    (written,) = talk.client.take_outputs()
    assert isinstance(written, Written)
    assert b"secret" not in written.data
    talk.server.received(written.data)
    talk.settle()
    assert talk.heard[-1] == Returned(call, b"secret")


def test_too_low_a_level_is_a_fault_of_the_call_only() -> None:
    talk = Conversation(ClientAssociation(SAFE, by_ntlm(Level.INTEGRITY)))
    call = talk.client.call(0, b"")
    talk.settle()
    assert talk.heard[-1] == Threw(call, Status.ACCESS_DENIED, is_executed=False)
    assert talk.client.can_call


def test_a_wrong_password_is_said_before_any_call() -> None:
    talk = Conversation(ClientAssociation(SAFE, by_spnego(password="wrong")))
    (failed,) = talk.heard
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.NOT_AUTHENTICATED


def test_a_wrong_password_without_a_last_answer_is_said_at_the_first_call() -> None:
    talk = Conversation(ClientAssociation(SAFE, by_ntlm(password="wrong")))
    call = talk.client.call(0, b"")
    talk.settle()
    assert talk.heard[1] == Threw(call, Status.ACCESS_DENIED, is_executed=True)


def test_an_interface_that_is_not_there_is_said() -> None:
    talk = Conversation(ClientAssociation(Syntax.of("0" * 8 + "-0000-0000-0000-000000000001", 1)))
    (failed,) = talk.heard
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.NO_INTERFACE


def test_several_calls_end_in_any_order_and_each_is_cancelled_alone() -> None:
    talk = Conversation(ClientAssociation(OPEN, by_ntlm()), answer=lambda _: None)
    calls = [talk.client.call(1, bytes([number])) for number in range(3)]
    talk.settle()
    talk.client.cancel(calls[1])
    talk.settle()
    assert talk.cancelled == [2]
    talk.end(2, Status.CANCELLED)
    talk.end(3, b"third")
    talk.settle()
    assert talk.heard[1:] == [
        Threw(calls[1], Status.CANCELLED, is_executed=True),
        Returned(calls[2], b"third"),
    ]
    talk.client.lost("gone")
    talk.settle()
    assert talk.heard[-1] == Failed(FailureKind.LOST, "gone", (calls[0],))


def test_results_of_many_fragments_of_several_calls_may_be_mixed() -> None:
    machine = bound()
    one, two = machine.call(1, b""), machine.call(1, b"")
    machine.take_outputs()
    machine.received(response(one, b"a", Flag.FIRST) + response(two, b"x", Flag.FIRST))
    machine.received(response(one, b"b", 0) + response(two, b"y", Flag.LAST))
    machine.received(response(one, b"c", Flag.LAST))
    assert machine.take_outputs() == [Returned(two, b"xy"), Returned(one, b"abc")]


def test_no_more_calls_are_made_than_a_connection_takes() -> None:
    machine = bound()
    for _ in range(RPC_CALLS_MAX_COUNT):
        assert machine.can_call
        machine.call(1, b"")
    assert not machine.can_call


def test_a_server_that_takes_one_call_at_a_time_gets_one() -> None:
    machine = bound(concurrent=False)
    call = machine.call(1, b"")
    assert not machine.can_call
    machine.received(response(call, b""))
    assert machine.can_call


def test_a_call_that_no_server_takes_is_not_made() -> None:
    machine = bound()
    with pytest.raises(ValueError, match="at most"):
        machine.call(1, bytes(RPC_REQUEST_MAX_BYTES + 1))


def test_a_second_connection_joins_the_group_of_the_first() -> None:
    machine = ClientAssociation(OPEN, group=7)
    machine.connected()
    (written,) = machine.take_outputs()
    assert isinstance(written, Written)
    assert written.data[20:24] == b"\x07\0\0\0"


# Servers that mean no good.


def test_endless_results_are_cut_off() -> None:
    machine = bound()
    calls = [machine.call(1, b"") for _ in range(2)]
    stub = bytes(RPC_FRAGMENT_MAX_BYTES - 24)
    flags: int = Flag.FIRST
    for _ in range(RPC_RESULTS_MAX_BYTES // len(stub) // 2 + 1):
        for call in calls:
            machine.received(response(call, stub, flags))
        flags = 0
        assert machine.held_bytes <= RPC_RESULTS_MAX_BYTES
    failed = failure(machine)
    assert failed.kind is FailureKind.BROKEN
    assert failed.calls == tuple(calls)
    assert machine.held_bytes == 0


@pytest.mark.parametrize("flags", [(Flag.FIRST, Flag.FIRST), (Flag.LAST,)])
def test_results_that_begin_twice_or_not_at_all_end_the_connection(flags: tuple[int, ...]) -> None:
    machine = bound()
    call = machine.call(1, b"")
    for each in flags:
        machine.received(response(call, b"a", each))
    assert failure(machine).kind is FailureKind.BROKEN


def test_a_server_that_is_never_content_with_a_token_is_given_up() -> None:
    machine = ClientAssociation(OPEN, Protection(ProviderKind.NTLM, Level.PRIVACY, Endless()))
    machine.connected()
    kind = PduType.BIND_ACK
    for call in range(1, RPC_AUTH_LEGS_MAX_COUNT + 1):
        body = BindAck(5840, 5840, 7, b"", (Result(Outcome.ACCEPTED, 0, NDR),))
        machine.received(write(kind, call, body, Verifier(10, 6, 1, b"more")))
        kind = PduType.ALTER_CONTEXT_RESPONSE
    assert failure(machine).kind is FailureKind.NOT_AUTHENTICATED


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (write(PduType.BIND_NAK, 1, BindNak(NakReason.AUTH_TYPE)), FailureKind.NOT_AUTHENTICATED),
        (write(PduType.BIND_NAK, 1, BindNak(NakReason.LOCAL_LIMIT)), FailureKind.REFUSED),
        (write(PduType.BIND_NAK, 1, BindNak(NakReason.NOT_SPECIFIED)), FailureKind.REFUSED),
        (write(PduType.FAULT, 1, Fault(0, Status.PROTOCOL)), FailureKind.REFUSED),
        (write(PduType.FAULT, 1, Fault(0, 5)), FailureKind.NOT_AUTHENTICATED),
        (ack(Result(2, 1, NO_SYNTAX)), FailureKind.NO_INTERFACE),
        (response(1, b""), FailureKind.BROKEN),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FailureKind.BROKEN),
        (write(PduType.SHUTDOWN, 1, Notice(PduType.SHUTDOWN)), FailureKind.LOST),
    ],
)
def test_what_a_server_answers_instead_of_agreeing(data: bytes, kind: FailureKind) -> None:
    machine = ClientAssociation(OPEN)
    machine.connected()
    machine.received(data)
    assert failure(machine).kind is kind


def test_a_server_that_does_not_ask_who_we_are_is_not_called() -> None:
    machine = ClientAssociation(SAFE, by_ntlm())
    machine.connected()
    machine.received(ack())
    assert failure(machine).kind is FailureKind.NOT_AUTHENTICATED


def test_results_without_protection_are_not_believed() -> None:
    talk = Conversation(ClientAssociation(SAFE, by_ntlm()), answer=lambda _: None)
    call = talk.client.call(0, b"")
    talk.settle()
    talk.client.received(response(call, b"forged"))
    failed = failure(talk.client)
    assert failed.kind is FailureKind.NOT_AUTHENTICATED
    assert failed.calls == (call,)


@pytest.mark.parametrize("level", [Level.PACKET, Level.INTEGRITY, Level.PRIVACY])
def test_results_that_somebody_has_changed_are_not_believed(level: Level) -> None:
    for place in (30, -1, -20):
        talk = Conversation(ClientAssociation(OPEN, by_ntlm(level)), answer=lambda _: None)
        call = talk.client.call(0, b"")
        talk.settle()
        talk.server.returned(1, b"results")
        (output,) = talk.server.take_outputs()
        assert isinstance(output, Written)
        changed = bytearray(output.data)
        changed[place] ^= 1
        talk.client.received(bytes(changed))
        assert failure(talk.client).calls == (call,)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_of_a_server_are_read_or_end_the_connection(data: bytes, is_bound: bool) -> None:
    machine = bound() if is_bound else ClientAssociation(OPEN)
    if is_bound:
        machine.call(1, b"")
    else:
        machine.connected()
    machine.received(data)
    machine.received(data)
    assert machine.held_bytes <= 2 * len(data)


@given(st.data())
def test_any_change_of_what_a_server_says_ends_in_results_or_a_failure(data: st.DataObject) -> None:
    machine = bound()
    call = machine.call(1, b"")
    machine.take_outputs()
    said = bytearray(response(call, b"ab", Flag.FIRST) + response(call, b"cd", Flag.LAST))
    said[data.draw(st.integers(0, len(said) - 1))] = data.draw(st.integers(0, 255))
    machine.received(bytes(said))
    for output in machine.take_outputs():
        assert isinstance(output, Returned | Threw | Failed)
