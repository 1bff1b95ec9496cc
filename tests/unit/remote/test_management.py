"""Managing programs: every property and every action, with a queue manager behind them."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.model.names import parse_format_name
from openmsmq.remote.ports import Return
from openmsmq.security.access.callers import Caller
from openmsmq.wire.rpc import management as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.variants import NULL, Variant
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS
from tests.unit.remote.doors import ORDERS_NAME, Door, Hall

INVALID_PARAMETER = 0xC00E0006
QUEUE_NOT_FOUND = 0xC00E0003
ACCESS_DENIED = 0xC00E0025
ILLEGAL_PROPID = 0xC00E0039
MACHINE = rpc.ManagedObject(1, 0)
SESSION = rpc.ManagedObject(3, 0)
AWAY = r"DIRECT=OS:BETA\private$\orders"
STRANGER = Caller("stranger", b"\1\1\0\0\0\0\0\1\7\0\0\0", ())


@pytest.fixture
def hall() -> Hall:
    return Hall()


@pytest.fixture
def program(hall: Hall) -> Door:
    return hall.manager_program()


def queue(name: str = ORDERS_NAME) -> rpc.ManagedObject:
    return rpc.ManagedObject(2, QueueFormat.of(parse_format_name(name)))


def info(program: Door, target: rpc.ManagedObject, *numbers: int) -> rpc.Info:
    values = tuple(NULL for _ in numbers)
    stub = program.stub(0, rpc.GET_INFO.encode(rpc.GetInfo(target, numbers, values)))
    return rpc.INFO.decode(stub)


def values(program: Door, target: rpc.ManagedObject, *numbers: int) -> list[tuple[int, Any]]:
    found = info(program, target, *numbers)
    assert found.result == 0, f"{found.result:#x}"
    return [(one.tag, one.value) for one in found.values]


def act(program: Door, target: rpc.ManagedObject, action: str | None) -> int:
    return rpc.DONE.decode(program.stub(1, rpc.ACTION.encode(rpc.Action(target, action)))).result


def send_away(hall: Hall, *bodies: bytes, transactional: bool = False) -> None:
    handle = hall.open(AWAY, 2)
    packets = [
        Draft(body=body, transactional=transactional).packet(r"OS:BETA\private$\orders")
        for body in bodies
    ]
    hall.ok(api.Send(handle, packets, api.OWN_TRANSACTION if transactional else 0))
    hall.ok(api.CloseQueue(handle))


# The computer.


@pytest.mark.spec("MQMR-3.1.4.1-09", "MQMR-3.1.4.1-11", "MQMR-3.1.4.1-16")
def test_the_computer_tells_of_itself(hall: Hall, program: Door) -> None:
    hall.send(b"some body")
    status = hall.ok(api.GetStatus())
    assert values(program, MACHINE, 3, 4, 5, 6) == [
        (1, None),
        (31, "CONNECTED"),
        (31, status.software),
        (20, status.message_bytes),
    ]
    assert status.message_bytes


def test_private_queues_are_listed_by_path_name(program: Door) -> None:
    [(tag, names)] = values(program, MACHINE, 2)
    assert tag == 0x101F
    assert sorted(names) == [rf"ALPHA\{LEDGER}", rf"ALPHA\{ORDERS}"]


@pytest.mark.spec("MQMQ-2.3.11.1-01")
def test_active_queues_are_those_with_messages_readers_or_another_end(
    hall: Hall, program: Door
) -> None:
    assert values(program, MACHINE, 1) == [(0x101F, ())]
    hall.send(b"one")
    send_away(hall, b"two")
    handle = hall.open(LEDGER)
    [(_, names)] = values(program, MACHINE, 1)
    shown = [hall.ok(api.GetNames(name)).format_name for name in (LEDGER, ORDERS)]
    assert sorted(names) == sorted([*shown, AWAY.replace("private$", "PRIVATE$")])
    for name in names:
        parse_format_name(name)
    hall.ok(api.CloseQueue(handle))
    assert len(values(program, MACHINE, 1)[0][1]) == 2


@pytest.mark.spec(
    "MQMR-3.1.4.2-01", "MQMR-3.1.4.2-02", "MQMR-3.1.4.2-05", "MQMR-3.1.4.2-06", "MQMQ-2.3.11.4-01"
)
def test_the_computer_is_disconnected_and_connected(program: Door) -> None:
    assert act(program, MACHINE, "DISCONNECT") == 0
    assert values(program, MACHINE, 4) == [(31, "DISCONNECTED")]
    assert act(program, MACHINE, "connect") == 0
    assert values(program, MACHINE, 4) == [(31, "CONNECTED")]


def test_tidying_up_deletes_no_message(hall: Hall, program: Door) -> None:
    hall.send(b"one")
    hall.send(b"two", name=LEDGER)
    send_away(hall, b"three")
    assert act(program, MACHINE, "TIDY") == 0
    assert (hall.bodies(), hall.bodies(LEDGER)) == ([b"one"], [b"two"])
    assert hall.ok(api.ListOutgoing(AWAY)).queues[0].message_count == 1


# Queues that are here.


@pytest.mark.spec(
    "MQMR-3.1.4.1-04",
    "MQMR-3.1.4.1-07",
    "MQMR-3.1.4.1-17",
    "MQMQ-2.3.12.3-01",
    "MQMQ-2.3.12.4-01",
    "MQMQ-2.3.12.5-01",
    "MQMQ-2.3.12.6-01",
)
def test_a_queue_tells_of_itself(hall: Hall, program: Door) -> None:
    hall.ok(api.ChangeQueue(ORDERS, journaling=True))
    hall.send(b"one", b"two")
    handle = hall.open()
    hall.ok(api.Receive(handle))
    status = hall.ok(api.GetQueue(ORDERS)).queues[0]
    assert status.message_bytes
    assert status.journal_message_bytes
    assert values(program, queue(), *range(1, 12)) == [
        (31, rf"ALPHA\{ORDERS}"),
        (31, status.format_name),
        (31, "PRIVATE"),
        (31, "LOCAL"),
        (31, "NO"),
        (31, "NO"),
        (19, 1),
        (19, status.message_bytes),
        (19, 1),
        (19, status.journal_message_bytes),
        (31, "LOCAL CONNECTION"),
    ]


@pytest.mark.spec("MQMQ-2.3.12.5-01")
def test_a_transactional_queue_says_so(program: Door) -> None:
    assert values(program, queue(r"DIRECT=OS:ALPHA\private$\ledger"), 5) == [(31, "YES")]


@pytest.mark.spec("MQMQ-2.3.12.3-01")
def test_a_system_queue_belongs_to_the_machine(program: Door) -> None:
    target = queue(r"DIRECT=OS:ALPHA\SYSTEM$;DEADLETTER")
    assert values(program, target, 3, 4, 7) == [(31, "MACHINE"), (31, "LOCAL"), (19, 0)]


def test_what_only_outgoing_queues_have_is_null_here(program: Door) -> None:
    assert values(program, queue(), *range(12, 26)) == [(1, None)] * 14


def test_subqueues_are_counted_and_named(hall: Hall, program: Door) -> None:
    assert values(program, queue(), 26, 27) == [(19, 0), (0x101F, ())]
    hall.send(b"one", b"two")
    source = hall.open()
    for lookup_id, name in zip(hall.lookup_ids(), ("later", "never"), strict=True):
        target = hall.open(f"{ORDERS};{name}", 4)
        hall.ok(api.Move(source, lookup_id, target))
    assert values(program, queue(), 26, 27) == [(19, 2), (0x101F, ("later", "never"))]


# Queues that lead elsewhere.


@pytest.mark.spec("MQMR-3.1.4.1-15", "MQMQ-2.3.12.4-01", "MQMQ-2.3.12.5-01", "MQMQ-2.3.12.6-01")
def test_an_outgoing_queue_tells_of_itself(hall: Hall, program: Door) -> None:
    send_away(hall, b"one", b"two")
    [status] = hall.ok(api.ListOutgoing(AWAY)).queues
    shown = values(program, queue(AWAY), *range(1, 12))
    assert shown == [
        (31, r"BETA\private$\orders"),
        (31, status.format_name),
        (31, "PRIVATE"),
        (31, "REMOTE"),
        (31, "UNKNOWN"),
        (31, "UNKNOWN"),
        (19, 2),
        (19, status.message_bytes),
        (1, None),
        (1, None),
        (31, status.state),
    ]


def test_an_outgoing_sequence_tells_how_far_it_has_come(hall: Hall, program: Door) -> None:
    send_away(hall, b"one", b"two", transactional=True)
    [status] = hall.ok(api.ListOutgoing(AWAY)).queues
    [xact, (tag, place), *counts] = values(program, queue(AWAY), 5, 18, 15, 19, 20, 23)
    assert xact == (31, "YES")
    assert tag == 65
    assert struct.unpack("<qII", place)[:2] == (status.sequence, status.next_number)
    assert [count for _, count in counts] == [
        status.last_ack_count,
        status.unread_count,
        status.unacknowledged_count,
        status.resend_count,
    ]
    assert [tag for tag, _ in counts] == [19] * 4
    times = values(program, queue(AWAY), 14, 21, 22)
    assert times == [
        (3, status.last_ack_time_s),
        (3, status.resend_time_s),
        (19, status.resend_interval_s),
    ]


def test_the_history_of_connections_is_four_columns(hall: Hall, program: Door) -> None:
    send_away(hall, b"one")
    hall.pass_time(1)
    [(tag, columns)] = values(program, queue(AWAY), 25)
    assert tag == 0x100C
    assert [column.tag for column in columns] == [0x1013, 0x1003, 0x1003, 0x100C]
    assert len({len(column.value) for column in columns}) == 1


def test_an_outgoing_queue_is_paused_and_resumed(hall: Hall, program: Door) -> None:
    send_away(hall, b"one")
    assert act(program, queue(AWAY), "PAUSE") == 0
    assert values(program, queue(AWAY), 11) == [(31, "ONHOLD")]
    assert act(program, queue(AWAY), "Resume") == 0
    assert values(program, queue(AWAY), 11) != [(31, "ONHOLD")]
    assert act(program, queue(AWAY), "EOD_RESEND") == 0


# Refusals.


@pytest.mark.spec("MQMR-3.1.4.1-03", "MQMR-3.1.4.1-12")
@pytest.mark.parametrize("number", [0, 7, 27, 0xFFFF_FFFF])
def test_an_unknown_property_of_the_computer_is_refused(program: Door, number: int) -> None:
    assert info(program, MACHINE, 4, number) == rpc.Info((NULL, NULL), ILLEGAL_PROPID)


@pytest.mark.spec("MQMR-3.1.4.1-13")
@pytest.mark.parametrize("number", [0, 28, 0xFFFF_FFFF])
def test_an_unknown_property_of_a_queue_is_refused(program: Door, number: int) -> None:
    assert info(program, queue(), 1, number) == rpc.Info((NULL, NULL), ILLEGAL_PROPID)


@pytest.mark.spec("MQMR-3.1.4.1-10")
def test_a_refusal_leaves_values_as_they_came(program: Door) -> None:
    came = (Variant(31, "mine"), Variant(19, 7))
    stub = program.stub(0, rpc.GET_INFO.encode(rpc.GetInfo(MACHINE, (4, 99), came)))
    assert rpc.INFO.decode(stub) == rpc.Info(came, ILLEGAL_PROPID)


@pytest.mark.spec("MQMR-3.1.4-04", "MQMR-3.1.4.1-14", "MQMR-3.1.4.1-19")
@pytest.mark.parametrize(
    ("target", "code"),
    [
        (SESSION, INVALID_PARAMETER),
        (rpc.ManagedObject(2, None), INVALID_PARAMETER),
        (rpc.ManagedObject(2, QueueFormat(0, 0, 0, None)), INVALID_PARAMETER),
        (rpc.ManagedObject(2, QueueFormat(3, 0, 0, "nonsense")), INVALID_PARAMETER),
        (queue(r"DIRECT=OS:ALPHA\private$\nowhere"), QUEUE_NOT_FOUND),
        (queue(r"DIRECT=OS:GAMMA\private$\nowhere"), None),
    ],
)
def test_an_object_that_is_none_is_refused(
    program: Door, target: rpc.ManagedObject, code: int | None
) -> None:
    found = info(program, target, 1)
    assert found.values == (NULL,)
    assert found.result >> 16 == 0xC00E
    assert code in (None, found.result)


@pytest.mark.spec("MQMR-3.1.4.2-03", "MQMR-3.1.4.2-04")
@pytest.mark.parametrize(
    ("target", "action"),
    [
        (MACHINE, "PAUSE"),
        (MACHINE, "EXPLODE"),
        (MACHINE, ""),
        (queue(AWAY), "CONNECT"),
        (queue(AWAY), "TIDY"),
        (queue(AWAY), "EXPLODE"),
        (SESSION, "CONNECT"),
        (SESSION, "PAUSE"),
        (rpc.ManagedObject(2, None), "PAUSE"),
    ],
)
def test_an_action_that_is_none_is_refused(
    hall: Hall, program: Door, target: rpc.ManagedObject, action: str
) -> None:
    send_away(hall, b"one")
    assert act(program, target, action) == INVALID_PARAMETER


def test_a_queue_of_this_computer_is_not_paused(program: Door) -> None:
    assert act(program, queue(), "PAUSE") >> 16 == 0xC00E


def test_an_action_of_one_character_is_unknown(program: Door) -> None:
    stub = bytes.fromhex("0100 0100 00000000") + "T".encode("utf-16-le")
    assert rpc.DONE.decode(program.stub(1, stub)).result == INVALID_PARAMETER


def test_who_may_not_see_is_told_nothing(hall: Hall) -> None:
    stranger = hall.manager_program(STRANGER)
    hall.send(b"one")
    for number in range(1, 7):
        assert info(stranger, MACHINE, number) == rpc.Info((NULL,), ACCESS_DENIED)
    for number in (1, 7, 26):
        found = info(stranger, queue(), number)
        assert found.values == (NULL,)
        assert found.result == ACCESS_DENIED


@pytest.mark.spec("MQMR-3-01")
def test_who_may_not_administer_does_nothing(hall: Hall, program: Door) -> None:
    stranger = hall.manager_program(STRANGER)
    send_away(hall, b"one")
    for action in ("CONNECT", "DISCONNECT", "TIDY"):
        assert act(stranger, MACHINE, action) == ACCESS_DENIED
    for action in ("PAUSE", "RESUME", "EOD_RESEND"):
        assert act(stranger, queue(AWAY), action) == ACCESS_DENIED
    assert values(program, MACHINE, 4) == [(31, "CONNECTED")]


@pytest.mark.spec("MQMR-3.1.4-01")
@pytest.mark.parametrize("operation", [0, 1])
@pytest.mark.parametrize("stub", [b"", b"\xff" * 100])
def test_a_stub_that_is_none_is_a_fault(program: Door, operation: int, stub: bytes) -> None:
    assert program.fault(operation, stub) == 0x6F7


def test_an_unknown_operation_is_a_fault(program: Door) -> None:
    assert program.fault(2, b"") == 0x1C010002


def test_a_call_cannot_be_cancelled_and_ends_once(hall: Hall, program: Door) -> None:
    request = rpc.GetInfo(MACHINE, (1, 4), (NULL, NULL))
    call = program.begin(0, rpc.GET_INFO.encode(request))
    program.carry_out(program.interface.cancelled(call, hall.driver.now))
    hall.settle()
    assert isinstance(program.ends[call], Return)
    assert program.interface.next_wake_ms is None
    assert program.interface.wake(hall.driver.now) == []
    assert program.interface.answered(99, api.Done(), hall.driver.now) == []


@pytest.mark.parametrize("target", [MACHINE, queue()])
def test_nobody_asks_for_the_same_property_twice(program: Door, target: rpc.ManagedObject) -> None:
    assert info(program, target, 2, 1).result == 0
    found = info(program, target, 2, 1, 2)
    assert found.result == INVALID_PARAMETER
    assert found.values == (NULL,) * 3
