"""One connection of a client of RPC. Samba's own tests ask for more, in `tests/runtime`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.limits import (
    RPC_BIND_MAX_BYTES,
    RPC_BINDS_MAX_COUNT,
    RPC_CALL_MAX_BYTES,
    RPC_CALLS_MAX_COUNT,
    RPC_FRAGMENT_MAX_BYTES,
    RPC_HELD_ANSWERS_MAX_BYTES,
    RPC_REQUEST_MAX_BYTES,
)
from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import (
    TRANSITIONS,
    AssociationState,
    CallCancelled,
    Proved,
    Refused,
)
from openmsmq.security.authentication.ports import Level
from openmsmq.wire.rpc.pdus import (
    WHOLE,
    BindAck,
    BindNak,
    Fault,
    Flag,
    Header,
    NakReason,
    PduType,
    Response,
    Status,
    Verifier,
    write,
)
from openmsmq.wire.rpc.syntaxes import NDR64
from tests.unit.protocol.rpc.client import (
    ECHO,
    OPERATIONS,
    STRANGER,
    VAULT,
    Caller,
    alter,
    answer,
    association,
    bind,
    bound,
    calls,
    is_closed,
    notice,
    offer,
    request,
    written,
)
from tests.unit.security.authentication.sides import ALICE, Book, initiator


def test_a_call_is_taken_and_its_results_go_back() -> None:
    machine = bound()
    machine.received(request(b"what", call=9, operation=5))
    (call,) = calls(machine.take_outputs())
    assert (call.interface, call.operation, call.stub) == (ECHO, 5, b"what")
    assert call.caller is STRANGER
    machine.returned(call.call, b"that")
    ((header, response),) = written(machine.take_outputs())
    assert (header.call, header.flags) == (9, WHOLE)
    assert response == Response(0, b"that", 4)


@pytest.mark.parametrize(
    ("sizes", "agreed"),
    [((0xFFFF, 0xFFFF), 5840), ((0, 0xFFFF), 2048), ((3199, 5840), 3192), ((5840, 4096), 4096)],
)
def test_the_smaller_size_of_fragments_is_agreed_upon(sizes: tuple[int, int], agreed: int) -> None:
    machine = association()
    _, ack = answer(machine, bind(sizes=sizes))
    assert isinstance(ack, BindAck)
    assert (ack.send_max, ack.receive_max) == (agreed, agreed)
    assert ack.address == b"2103\0"


def test_long_results_are_cut_and_each_part_says_how_much_is_left() -> None:
    machine = bound(sizes=(2048, 2048))
    machine.received(request())
    (call,) = calls(machine.take_outputs())
    stub = bytes(range(256)) * 20
    machine.returned(call.call, stub)
    found = written(machine.take_outputs())
    parts = [body for _, body in found if isinstance(body, Response)]
    assert b"".join(part.stub for part in parts) == stub
    assert all(header.length <= 2048 for header, _ in found)
    assert [header.flags & WHOLE for header, _ in found] == [Flag.FIRST, 0, Flag.LAST]
    assert [part.hint for part in parts] == [5120, 5120 - 2024, 5120 - 4048]


@given(
    st.binary(max_size=5000),
    st.lists(st.integers(1, 900), min_size=1, max_size=8),
    st.lists(st.integers(1, 700), min_size=1, max_size=8),
)
def test_however_a_call_is_cut_it_is_the_same_call(
    stub: bytes, parts: list[int], pieces: list[int]
) -> None:
    """Both into fragments, and as bytes of a connection."""
    fragments = []
    at = turn = 0
    while at < len(stub) or not fragments:
        part = stub[at : at + parts[turn % len(parts)]]
        flags = 0 if at else Flag.FIRST
        at += parts[turn % len(parts)]
        turn += 1
        if at >= len(stub):
            flags |= Flag.LAST
        fragments.append(request(part, flags=flags))
    data = b"".join(fragments)
    machine = bound()
    found = []
    at = turn = 0
    while at < len(data):
        size = pieces[turn % len(pieces)]
        machine.received(data[at : at + size])
        found += calls(machine.take_outputs())
        at += size
        turn += 1
    assert [call.stub for call in found] == [stub]
    assert machine.held_bytes == 0


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_give_calls_or_an_end(data: bytes, is_bound: bool) -> None:
    machine = bound() if is_bound else association()
    machine.received(data)
    machine.take_outputs()
    machine.received(request())
    machine.take_outputs()


@pytest.mark.parametrize("state", [AssociationState.UNBOUND, AssociationState.BOUND])
@pytest.mark.parametrize("kind", range(24))
def test_a_fragment_without_a_place_ends_the_connection(state: AssociationState, kind: int) -> None:
    machine = association() if state is AssociationState.UNBOUND else bound()
    machine.received(Header(kind, WHOLE, 16, 0, 1).encode())
    outputs = machine.take_outputs()
    has_place = kind in set(PduType) and (state, PduType(kind)) in TRANSITIONS
    if kind in (PduType.CO_CANCEL, PduType.ORPHANED) and has_place:
        assert outputs == []
    else:
        assert is_closed(outputs)
        machine.received(bind())
        assert machine.take_outputs() == []


def test_a_peer_with_another_order_of_bytes_is_told_so() -> None:
    machine = association()
    header, nak = answer(machine, Header(PduType.BIND, 3, 0x4800, 0, 1).encode()[:4] + bytes(12))
    assert nak == BindNak(NakReason.PROTOCOL_VERSION)
    assert header.call == 0


def test_only_the_way_to_write_parameters_that_we_speak_is_accepted() -> None:
    machine = association()
    _, ack = answer(machine, bind(offer(0, ECHO, NDR64), offer(1, ECHO)))
    assert isinstance(ack, BindAck)
    assert [(each.outcome, each.reason) for each in ack.results] == [(2, 2), (0, 0)]


# Limits.


def test_a_fragment_that_is_too_long_is_refused_before_it_is_there() -> None:
    machine = bound()
    size = RPC_FRAGMENT_MAX_BYTES + 1
    machine.received(Header(PduType.REQUEST, WHOLE, size, 0, 5).encode())
    outputs = machine.take_outputs()
    assert written(outputs) == [(Header(PduType.FAULT, WHOLE, 32, 0, 5), Fault(0, Status.PROTOCOL))]
    assert is_closed(outputs)


def test_a_bind_may_be_longer_but_not_as_long_as_it_likes() -> None:
    machine = association()
    machine.received(Header(PduType.BIND, WHOLE, RPC_BIND_MAX_BYTES, 0, 5).encode())
    assert machine.take_outputs() == []
    machine = association()
    _, nak = answer(machine, Header(PduType.BIND, WHOLE, RPC_BIND_MAX_BYTES + 1, 0, 5).encode())
    assert nak == BindNak(NakReason.LOCAL_LIMIT)


def begun(size: int) -> Association:
    """An association with a call of so many bytes that is not whole."""
    machine = bound()
    part = bytes(4096)
    machine.received(request(part, flags=Flag.FIRST))
    for _ in range(size // len(part) - 1):
        machine.received(request(part, flags=0))
    assert machine.take_outputs() == []
    assert machine.held_bytes == min(size, RPC_REQUEST_MAX_BYTES)
    return machine


@pytest.mark.parametrize("size", [RPC_REQUEST_MAX_BYTES, RPC_CALL_MAX_BYTES - 4096])
def test_of_a_long_call_the_end_is_counted_and_not_kept(size: int) -> None:
    machine = begun(size)
    machine.received(request(b"x" * 4096, flags=Flag.LAST))
    (call,) = calls(machine.take_outputs())
    assert call.stub == bytes(RPC_REQUEST_MAX_BYTES)
    assert machine.held_bytes == 0


def test_a_call_that_grows_too_long_ends_the_connection() -> None:
    machine = begun(RPC_CALL_MAX_BYTES)
    machine.received(request(b"x", flags=Flag.LAST))
    outputs = machine.take_outputs()
    assert [body for _, body in written(outputs)] == [Fault(0, Status.ACCESS_DENIED)]
    assert is_closed(outputs)
    assert machine.held_bytes == 0


def test_one_call_too_many_is_told_to_come_later_and_the_others_go_on() -> None:
    machine = bound(flags=WHOLE | Flag.CONCURRENT)
    for number in range(RPC_CALLS_MAX_COUNT):
        machine.received(request(call=10 + number))
    begun = calls(machine.take_outputs())
    assert len(begun) == RPC_CALLS_MAX_COUNT
    _, fault = answer(machine, request(call=500))
    assert fault == Fault(0, Status.TOO_BUSY)
    machine.returned(begun[0].call, b"")
    machine.take_outputs()
    machine.received(request(call=500))
    assert len(calls(machine.take_outputs())) == 1


def test_nobody_alters_contexts_for_ever() -> None:
    machine = bound()
    for _ in range(RPC_BINDS_MAX_COUNT - 1):
        machine.received(alter(offer()))
    assert not is_closed(machine.take_outputs())
    machine.received(alter(offer()))
    assert is_closed(machine.take_outputs())


# The order of results, and calls that nobody waits for any more.


def test_results_keep_the_order_of_calls_unless_they_may_overtake() -> None:
    for flags, order in ((WHOLE, [1, 2]), (WHOLE | Flag.CONCURRENT, [2, 1])):
        machine = bound(flags=flags)
        machine.received(request(call=1) + request(call=2))
        first, second = calls(machine.take_outputs())
        machine.returned(second.call, b"second")
        machine.returned(first.call, b"first")
        assert [header.call for header, _ in written(machine.take_outputs())] == order


def test_results_that_would_take_too_much_room_overtake() -> None:
    machine = bound()
    machine.received(request(call=1) + request(call=2))
    first, second = calls(machine.take_outputs())
    machine.returned(second.call, bytes(RPC_HELD_ANSWERS_MAX_BYTES + 1))
    assert {header.call for header, _ in written(machine.take_outputs())} == {2}
    machine.returned(first.call, b"")
    assert [header.call for header, _ in written(machine.take_outputs())] == [1]


def test_a_cancelled_call_ends_with_what_it_has_and_says_so() -> None:
    machine = bound()
    machine.received(request(call=4))
    (call,) = calls(machine.take_outputs())
    machine.received(notice(PduType.CO_CANCEL, 4) + notice(PduType.CO_CANCEL, 4))
    assert machine.take_outputs() == [CallCancelled(call.call)]
    machine.threw(call.call, Status.CANCELLED)
    ((_, fault),) = written(machine.take_outputs())
    assert fault == Fault(0, Status.CANCELLED, cancels=1)


def test_an_orphaned_call_is_cancelled_and_its_results_go_nowhere() -> None:
    machine = bound()
    machine.received(request(call=4) + request(call=5))
    orphan, other = calls(machine.take_outputs())
    machine.received(notice(PduType.ORPHANED, 4))
    assert machine.take_outputs() == [CallCancelled(orphan.call)]
    machine.returned(orphan.call, b"too late")
    assert machine.take_outputs() == []
    machine.returned(other.call, b"in time")
    assert [header.call for header, _ in written(machine.take_outputs())] == [5]


def test_a_call_ends_once() -> None:
    machine = bound(flags=WHOLE | Flag.CONCURRENT)
    machine.received(request(call=4))
    (call,) = calls(machine.take_outputs())
    machine.returned(call.call, b"")
    machine.take_outputs()
    machine.returned(call.call, b"again")
    machine.threw(call.call, Status.BAD_STUB)
    assert machine.take_outputs() == []


def test_a_number_that_is_under_way_is_not_given_to_another_call() -> None:
    machine = bound()
    machine.received(request(call=4))
    machine.take_outputs()
    machine.received(request(call=4))
    assert is_closed(machine.take_outputs())


def test_an_operation_that_is_not_there_is_refused_and_the_connection_lives() -> None:
    machine = bound()
    header, fault = answer(machine, request(operation=OPERATIONS))
    assert fault == Fault(0, Status.OPERATION_RANGE)
    assert header.flags & Flag.DID_NOT_EXECUTE
    machine.received(request(operation=OPERATIONS - 1))
    assert len(calls(machine.take_outputs())) == 1


# Who speaks.


@pytest.mark.parametrize("level", [Level.PACKET, Level.INTEGRITY, Level.PRIVACY])
def test_who_has_proved_himself_calls_and_is_answered_as_protected(level: Level) -> None:
    machine = association()
    alice = Caller(level)
    assert alice.prove(machine) == [Proved(ALICE, alice.verifier(b"").kind, level)]  # type: ignore[arg-type]
    stub = bytes(range(256)) * 8
    fragments = [
        alice.request(stub[:1000], flags=Flag.FIRST),
        alice.request(stub[1000:], flags=Flag.LAST),
    ]
    for fragment in fragments:
        machine.received(fragment)
    if level is Level.PRIVACY:
        assert all(stub[at : at + 32] not in fragments[0] for at in range(0, 900, 32))
    (call,) = calls(machine.take_outputs())
    assert (call.stub, call.caller) == (stub, ALICE)
    machine.returned(call.call, stub * 9)
    assert alice.results(machine.take_outputs()) == stub * 9


@pytest.mark.parametrize("place", [8, 20, 24, 30, -30, -1])
def test_a_changed_fragment_is_refused_and_noted(place: int) -> None:
    machine = association()
    alice = Caller(Level.INTEGRITY)
    alice.prove(machine)
    data = bytearray(alice.request(b"take the message"))
    data[place] ^= 1
    machine.received(bytes(data))
    outputs = machine.take_outputs()
    assert calls(outputs) == []
    if place != 8:
        # A changed length leaves the rest of the fragment for the next one.
        assert is_closed(outputs)
        (refused,) = (each for each in outputs if isinstance(each, Refused))
        assert (refused.caller, refused.level) in {
            ("account alice", "integrity"),
            ("", "integrity"),
        }


def test_a_fragment_that_comes_again_is_refused() -> None:
    machine = association()
    alice = Caller(Level.PRIVACY)
    alice.prove(machine)
    data = alice.request(b"once")
    machine.received(data)
    assert len(calls(machine.take_outputs())) == 1
    machine.received(data)
    outputs = machine.take_outputs()
    assert calls(outputs) == []
    assert is_closed(outputs)


def test_calls_below_the_level_of_an_interface_are_refused_and_noted() -> None:
    machine = bound()
    machine.received(alter(offer(5, VAULT)))
    machine.take_outputs()
    machine.received(request(context=5))
    outputs = machine.take_outputs()
    assert [body for _, body in written(outputs)] == [Fault(5, Status.ACCESS_DENIED)]
    assert [each.level for each in outputs if isinstance(each, Refused)] == ["none"]
    assert not is_closed(outputs)

    machine = association()
    alice = Caller(Level.INTEGRITY)
    alice.prove(machine, offer(5, VAULT))
    machine.received(alice.request(context=5))
    outputs = machine.take_outputs()
    assert calls(outputs) == []
    (refused,) = (each for each in outputs if isinstance(each, Refused))
    assert (refused.caller, refused.level) == ("account alice", "integrity")

    machine = association()
    alice = Caller(Level.PRIVACY)
    alice.prove(machine, offer(5, VAULT))
    machine.received(alice.request(context=5))
    assert len(calls(machine.take_outputs())) == 1


def test_a_wrong_password_is_noted_and_no_call_is_taken() -> None:
    machine = association()
    mallory = Caller(Level.PRIVACY, side=initiator(password="guess"))
    (refused,) = mallory.prove(machine)
    assert isinstance(refused, Refused)
    assert (refused.level, "alice" in refused.sentence) == ("privacy", True)
    machine.received(mallory.request(b"let me in"))
    outputs = machine.take_outputs()
    assert calls(outputs) == []
    assert is_closed(outputs)


def test_an_unprotected_call_after_a_proof_is_refused() -> None:
    """Somebody in between must not put in calls of his own."""
    machine = association()
    Caller(Level.PRIVACY).prove(machine)
    machine.received(request(b"give me the message"))
    outputs = machine.take_outputs()
    assert calls(outputs) == []
    assert [body for _, body in written(outputs)] == [Fault(0, Status.ACCESS_DENIED)]
    assert is_closed(outputs)


def test_a_call_on_an_unknown_context_uses_up_its_signature() -> None:
    """Both sides count: the next call would be refused for ever if we did not."""
    machine = association()
    alice = Caller(Level.PRIVACY)
    alice.prove(machine)
    _, fault = answer(machine, alice.request(context=77))
    assert fault == Fault(0, Status.UNKNOWN_INTERFACE)
    machine.received(alice.request(b"known"))
    assert [call.stub for call in calls(machine.take_outputs())] == [b"known"]


def test_a_way_to_prove_that_is_not_offered_is_refused_at_the_bind() -> None:
    machine = association()
    for kind in (16, 68):
        machine = association()
        _, nak = answer(machine, bind(verifier=Verifier(kind, Level.PRIVACY, 0, b"token")))
        assert nak == BindNak(NakReason.AUTH_TYPE)


def test_tokens_that_are_none_are_refused_and_noted() -> None:
    machine = association()
    machine.received(bind(verifier=Verifier(10, Level.PRIVACY, 0, b"no token of NTLM")))
    outputs = machine.take_outputs()
    assert [body for _, body in written(outputs)] == [BindNak(NakReason.INVALID_CHECKSUM)]
    assert any(isinstance(each, Refused) for each in outputs)
    assert is_closed(outputs)


# Groups.


def test_a_second_connection_joins_the_group_and_keeps_it() -> None:
    groups = Groups()
    book = Book()
    first = proved_association(groups, 1, book)
    second = association(groups, 2, book)
    Caller(Level.PRIVACY).prove(second, group=first.group)
    assert second.group == first.group
    assert [ended.caller for ended in groups.left(1)] == []
    assert {ended.caller for ended in groups.left(2)} == {ALICE, STRANGER}
    assert len(groups) == 0


def proved_association(groups: Groups, key: int, book: Book) -> Association:
    made = association(groups, key, book)
    Caller(Level.PRIVACY).prove(made)
    return made


def test_an_unknown_group_is_refused() -> None:
    machine = association()
    _, nak = answer(machine, bind(group=77))
    assert nak == BindNak(NakReason.NOT_SPECIFIED)


def test_a_broken_trailer_is_a_broken_fragment() -> None:
    machine = bound()
    broken = write(PduType.REQUEST, 3, Fault(0, 0), Verifier(10, 5, 0, b"x" * 16, padding=200))
    machine.received(broken)
    assert is_closed(machine.take_outputs())
