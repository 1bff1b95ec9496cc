"""Remote readers: every method and every action, with a queue manager behind them."""

from __future__ import annotations

import struct

import pytest

from openmsmq.api import messages as api
from openmsmq.model import limits
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import AccessMode
from openmsmq.remote import remote_read as adapter
from openmsmq.remote.ports import Return
from openmsmq.security.access.callers import Caller
from openmsmq.wire.extensions import without_extensions
from openmsmq.wire.message_bytes import for_remote_reader
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import joined, read
from openmsmq.wire.rpc.queue_format import ObjectId, QueueFormat
from openmsmq.wire.rpc.remote_read import Action, Operation, Verdict
from tests.unit.manager.office import LEDGER, ORDERS
from tests.unit.remote.doors import (
    ORDERS_NAME,
    PORT,
    WHOLE,
    Hall,
    Reader,
    body,
    opening,
    receiving,
)

INVALID_PARAMETER = 0xC00E0006
INVALID_HANDLE = 0xC00E0007
CANCELLED = 0xC00E0008
TIMEOUT = 0xC00E001B
ACCESS_DENIED = 0xC00E0025
NO_RESOURCES = 0xC00E0027
NOT_FOUND = 0xC00E0088
QUEUE_NOT_FOUND = 0xC00E0003
TRANSACTION_USAGE = 0xC00E0050
TRANSACTION_SEQUENCE = 0xC00E0051
TRANSACTION_ENLIST = 0xC00E0058
MISMATCH = 0x1C00001A
BAD_STUB = 0x6F7
FOREVER = 0xFFFF_FFFF
SUB_NAME = ORDERS_NAME + ";later"


@pytest.fixture
def hall() -> Hall:
    return Hall()


@pytest.fixture
def reader(hall: Hall) -> Reader:
    return hall.reader()


# Open and close.


@pytest.mark.spec("MQRR-3.1.4.1-01", "MQRR-3.1.4.1-04")
def test_the_port_is_told(reader: Reader) -> None:
    stub = reader.stub(Operation.GET_SERVER_PORT, b"")
    assert rpc.PORT.decode(stub).port == PORT


@pytest.mark.spec("MQRR-3.1.4-03")
@pytest.mark.parametrize("operation", [1, 16, 99, -1])
def test_an_unknown_operation_is_a_fault(reader: Reader, operation: int) -> None:
    assert reader.fault(operation, b"") == 0x1C010002


@pytest.mark.spec("MQRR-3.1.4.2-03", "MQRR-3.1.4.2-14")
@pytest.mark.parametrize(
    "name",
    [
        ORDERS_NAME,
        r"DIRECT=OS:alpha\PRIVATE$\ORDERS",
        ORDERS_NAME + ";journal",
        SUB_NAME,
        r"DIRECT=OS:ALPHA\SYSTEM$;DEADLETTER",
        r"DIRECT=OS:ALPHA\SYSTEM$;DEADXACT",
        r"DIRECT=OS:ALPHA\SYSTEM$;JOURNAL",
    ],
)
def test_a_queue_is_opened_by_its_direct_name(reader: Reader, name: str) -> None:
    context = reader.open(name)
    assert len(context) == 20
    assert reader.receive(context).result == TIMEOUT


@pytest.mark.parametrize("suffix", [0x81, 0x82, 0x83])
def test_journal_and_dead_letter_queues_are_opened_by_the_computer(
    hall: Hall, reader: Reader, suffix: int
) -> None:
    manager = Guid(hall.driver.manager.identifier)
    end = reader.call(Operation.OPEN_QUEUE, opening(QueueFormat(4, suffix, 0, manager), 1))
    assert isinstance(end, Return)


def test_a_private_queue_is_opened_by_its_number(hall: Hall, reader: Reader) -> None:
    names = hall.ok(api.GetNames(ORDERS))
    hall.send(b"one")
    assert body(reader.receive(reader.open(names.private_name))) == b"one"


@pytest.mark.spec("MQRR-3.1.4.2-17")
@pytest.mark.parametrize(
    ("queue", "access", "share", "status"),
    [
        (ORDERS_NAME, 2, 0, INVALID_PARAMETER),
        (ORDERS_NAME, 4, 0, INVALID_PARAMETER),
        (ORDERS_NAME, 1, 2, INVALID_PARAMETER),
        (QueueFormat(0, 0, 0, None), 1, 0, INVALID_PARAMETER),
        (QueueFormat(3, 0, 0, None), 1, 0, INVALID_PARAMETER),
        (QueueFormat(3, 0, 0, "nonsense"), 1, 0, INVALID_PARAMETER),
        (QueueFormat(3, 0x81, 0, r"OS:ALPHA\private$\orders"), 1, 0, INVALID_PARAMETER),
        (QueueFormat(3, 0, 0, r"HTTP://alpha/msmq/private$/orders"), 1, 0, INVALID_PARAMETER),
        (QueueFormat(4, 0, 0, NIL_GUID), 1, 0, INVALID_PARAMETER),
        (QueueFormat(5, 0, 0, NIL_GUID), 1, 0, INVALID_PARAMETER),
        (QueueFormat(8, 5, 0, r"OS:ALPHA\private$\orders"), 1, 0, INVALID_PARAMETER),
        (QueueFormat(3, 0, 0, r"OS:ALPHA\private$\nowhere"), 1, 0, QUEUE_NOT_FOUND),
        (QueueFormat(2, 0, 0, ObjectId(NIL_GUID, 77)), 1, 0, None),
        (QueueFormat(3, 0, 0, r"OS:BETA\private$\orders"), 1, 0, None),
    ],
)
def test_a_queue_that_cannot_be_opened_is_a_fault_with_the_code(
    reader: Reader, queue: str | QueueFormat, access: int, share: int, status: int | None
) -> None:
    found = reader.fault(Operation.OPEN_QUEUE, opening(queue, access, share))
    assert found >> 16 == 0xC00E
    assert status in (None, found)


@pytest.mark.spec("MQRR-3.1.4.11-06")
def test_only_a_queue_for_moving_is_opened_as_a_target(reader: Reader) -> None:
    for access in (1, 0x20):
        stub = opening(ORDERS_NAME, access)
        assert reader.fault(Operation.OPEN_QUEUE_FOR_MOVE, stub) == INVALID_PARAMETER


@pytest.mark.spec("MQDMPR-3.1.1.16-03")
def test_two_handles_have_nothing_in_common(reader: Reader) -> None:
    first, second = reader.open(), reader.open()
    assert first[:4] == second[:4] == bytes(4)
    assert first != second


@pytest.mark.spec(
    "MQRR-2.2.4-01", "MQRR-3.1.4.2-01", "MQRR-3.1.4.3-05", "MQRR-3.1.4.3-06", "MQRR-3.1.4.3-08"
)
def test_a_closed_handle_becomes_nothing_and_is_known_no_more(reader: Reader) -> None:
    context = reader.open()
    assert reader.close(context) == rpc.Closed(bytes(20), 0)
    of_queue = rpc.OF_QUEUE.encode(rpc.OfQueue(context))
    for operation in (Operation.CLOSE_QUEUE, Operation.CREATE_CURSOR, Operation.PURGE_QUEUE):
        assert reader.fault(operation, of_queue) == MISMATCH
    assert reader.fault(Operation.START_RECEIVE, receiving(context)) == MISMATCH


def test_a_handle_is_of_no_use_to_another_caller(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    other = hall.reader()
    assert other.fault(Operation.START_RECEIVE, receiving(context)) == MISMATCH
    assert other.fault(Operation.CLOSE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(context))) == MISMATCH
    assert body(reader.receive(context)) == b"one"


def test_nobody_else_opens_a_queue_that_is_not_shared(hall: Hall, reader: Reader) -> None:
    context = reader.open(share=1)
    assert hall.reader().fault(Operation.OPEN_QUEUE, opening(ORDERS_NAME, 1)) == 0xC00E0009
    reader.close(context)
    hall.reader().open()


def test_a_caller_has_so_many_queues_open_and_no_more(
    hall: Hall, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "REMOTE_QUEUES_MAX_COUNT", 2)
    assert limits.REMOTE_QUEUES_MAX_COUNT == 512
    first = reader.open()
    # What is being opened counts as well.
    calls = [reader.begin(Operation.OPEN_QUEUE, opening(ORDERS_NAME, 1)) for _ in range(2)]
    hall.settle()
    assert isinstance(reader.ends[calls[0]], Return)
    assert reader.ends[calls[1]].status == NO_RESOURCES
    reader.close(first)
    reader.open()


# Rights.


@pytest.mark.spec("MQRR-2.1-02")
def test_who_may_not_receive_is_refused(hall: Hall) -> None:
    stranger = hall.reader(Caller("stranger", b"\1\1\0\0\0\0\0\1\7\0\0\0", ()))
    found = stranger.fault(Operation.OPEN_QUEUE, opening(ORDERS_NAME, 1))
    assert found == ACCESS_DENIED


@pytest.mark.spec("MQRR-3.1.4.6-06", "MQRR-3.1.4.7-06")
def test_a_queue_open_for_peeking_gives_no_message_away(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open(access=AccessMode.PEEK)
    assert body(reader.peek(context)) == b"one"
    assert reader.receive(context).result == ACCESS_DENIED
    assert reader.purge(context) == 0xC0000022
    assert hall.bodies() == [b"one"]


# Receive.


@pytest.mark.spec(
    "MQRR-3.1.4.7-16",
    "MQRR-3.1.4.7-17",
    "MQRR-3.1.4.7-34",
    "MQRR-3.1.4.7-39",
    "MQRR-3.1.4.7-40",
    "MQRR-3.1.4.7-41",
    "MQRR-3.1.4.9-07",
    "MQRR-3.1.4.9-10",
)
def test_a_message_is_received_in_two_steps(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two")
    [lookup_id, _] = hall.lookup_ids()
    context = reader.open()
    received = reader.receive(context)
    assert body(received) == b"one"
    assert received.arrived_unix_s == hall.driver.now.unix_s
    assert received.sequence_id == lookup_id & (1 << 56) - 1
    assert hall.bodies() == [b"two"]
    assert reader.end(context) == 0
    assert hall.bodies() == [b"two"]
    assert len(hall.lookup_ids()) == 1
    assert reader.end(context) == INVALID_HANDLE


@pytest.mark.spec("MQRR-3.1.4.9-08")
def test_a_message_that_did_not_arrive_is_there_again(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two")
    context = reader.open()
    reader.receive(context)
    assert reader.end(context, Verdict.NACK) == 0
    assert hall.bodies() == [b"one", b"two"]
    assert body(reader.receive(context)) == b"one"


def test_two_readers_never_get_one_message(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two")
    other = hall.reader()
    mine, theirs = reader.open(), other.open()
    assert body(reader.receive(mine)) == b"one"
    assert body(other.receive(theirs)) == b"two"
    assert other.receive(theirs, 2).result == TIMEOUT


def test_a_reader_waits_for_a_message(hall: Hall, reader: Reader) -> None:
    context = reader.open()
    call = reader.begin_receive(context, timeout_ms=FOREVER)
    hall.settle()
    assert reader.received(call) is None
    # The connection is free for others meanwhile.
    assert reader.peek(context, 2).result == TIMEOUT
    hall.send(b"one")
    hall.settle()
    assert body(reader.received(call)) == b"one"
    assert reader.end(context) == 0


@pytest.mark.spec("MQRR-3.1.2-01", "MQRR-3.1.2.1-01", "MQRR-3.1.2.1-02", "MQRR-3.1.4.7-35")
def test_a_reader_waits_no_longer_than_it_wants(hall: Hall, reader: Reader) -> None:
    context = reader.open()
    call = reader.begin_receive(context, timeout_ms=5_000)
    hall.settle()
    hall.pass_time(4)
    assert reader.received(call) is None
    hall.pass_time(1)
    assert reader.received(call) == rpc.Received(0, 0, (), TIMEOUT)
    # The number of the request is free again.
    hall.send(b"one")
    assert body(reader.receive(context)) == b"one"


@pytest.mark.spec("MQRR-3.1.4.9-06")
@pytest.mark.parametrize("verdict", [0, 3])
def test_a_verdict_that_is_none_is_a_fault(reader: Reader, verdict: int) -> None:
    stub = reader.open() + struct.pack("<II", verdict, 1)
    assert reader.fault(Operation.END_RECEIVE, stub) == BAD_STUB


@pytest.mark.spec("MQRR-3.1.4.7-09", "MQRR-3.1.4.7-11")
def test_a_request_that_is_not_over_cannot_be_made_twice(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two")
    context = reader.open()
    reader.receive(context, 7)
    assert reader.receive(context, 7).result == INVALID_PARAMETER
    waiting = reader.open(ORDERS_NAME + ";journal")
    reader.begin_receive(waiting, 7, timeout_ms=FOREVER)
    assert reader.receive(waiting, 7).result == INVALID_PARAMETER
    assert body(reader.receive(context, 8)) == b"two"


@pytest.mark.spec("MQRR-3.1.4.7-10", "MQRR-3.1.4.9-09", "MQRR-3.1.4.9-11", "MQRR-3.1.4.9-12")
def test_a_read_that_waits_or_is_unknown_cannot_be_ended(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    assert reader.end(context) == INVALID_HANDLE
    reader.receive(context, 1)
    assert reader.end(context, request=2) == INVALID_PARAMETER
    reader.begin_receive(context, 3, timeout_ms=FOREVER)
    hall.settle()
    assert reader.end(context, request=3) == NOT_FOUND


def test_a_peek_has_no_second_step(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    assert body(reader.peek(context)) == b"one"
    assert reader.end(context) == INVALID_HANDLE
    assert hall.bodies() == [b"one"]


LOOKUPS = {
    Action.LOOKUP_PEEK_CURRENT: b"two",
    Action.LOOKUP_PEEK_NEXT: b"three",
    Action.LOOKUP_PEEK_PREVIOUS: b"one",
    Action.LOOKUP_RECEIVE_CURRENT: b"two",
    Action.LOOKUP_RECEIVE_NEXT: b"three",
    Action.LOOKUP_RECEIVE_PREVIOUS: b"one",
}


@pytest.mark.parametrize("action", LOOKUPS)
def test_a_message_is_read_by_its_place(hall: Hall, reader: Reader, action: Action) -> None:
    hall.send(b"one", b"two", b"three")
    [_, second, _] = hall.lookup_ids()
    context = reader.open()
    received = reader.receive(context, lookup_id=second, action=action)
    assert body(received) == LOOKUPS[action]
    assert received.arrived_unix_s == hall.driver.now.unix_s
    is_received = action >= Action.LOOKUP_RECEIVE_CURRENT
    # All receives have two steps.
    assert reader.end(context) == (0 if is_received else INVALID_HANDLE)
    assert (LOOKUPS[action] in hall.bodies()) is not is_received


@pytest.mark.parametrize("lookup_id", [1 << 63, (1 << 64) - 1])
def test_behind_all_messages_is_the_last_one(hall: Hall, reader: Reader, lookup_id: int) -> None:
    hall.send(b"one", b"two")
    context = reader.open()
    before = reader.receive(context, lookup_id=lookup_id, action=Action.LOOKUP_PEEK_PREVIOUS)
    assert body(before) == b"two"
    there = reader.receive(context, lookup_id=lookup_id, action=Action.LOOKUP_PEEK_CURRENT)
    assert there.result == NOT_FOUND


SENSELESS = [
    {"action": 1},
    {"action": 0x80000002},
    {"action": 0x40000013},
    {"action": Action.RECEIVE, "lookup_id": 1},
    {"action": Action.PEEK_CURRENT, "lookup_id": 1},
    {"action": Action.PEEK_NEXT},
    {"action": Action.PEEK_NEXT, "cursor": 1, "lookup_id": 1},
    *({"action": action} for action in LOOKUPS),
    *({"action": action, "lookup_id": 1, "cursor": 1} for action in LOOKUPS),
    *({"action": action, "lookup_id": 1, "timeout_ms": 1} for action in LOOKUPS),
]


@pytest.mark.spec("MQRR-3.1.4.7-37")
@pytest.mark.parametrize("parameters", SENSELESS)
def test_parameters_that_do_not_fit_are_refused(
    hall: Hall, reader: Reader, parameters: dict[str, int]
) -> None:
    hall.send(b"one")
    context = reader.open()
    reader.cursor(context)
    received = reader.receive(context, **parameters)
    assert received == rpc.Received(0, 0, (), INVALID_PARAMETER)


def test_so_many_messages_are_waited_for_or_had_and_no_more(
    hall: Hall, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "REMOTE_RECEIVES_MAX_COUNT", 2)
    assert limits.REMOTE_RECEIVES_MAX_COUNT == 1_024
    hall.send(b"one")
    context = reader.open()
    reader.receive(context, 1)
    call = reader.begin_receive(context, 2, timeout_ms=FOREVER)
    hall.settle()
    assert reader.receive(context, 3).result == NO_RESOURCES
    reader.end(context, request=1)
    assert reader.receive(context, 3).result == TIMEOUT
    assert reader.received(call) is None


# What a message looks like.


def test_a_reader_gets_the_message_as_it_is_kept_but_for_its_lifetime_and_address(
    hall: Hall, reader: Reader
) -> None:
    hall.send(b"some body")
    handle = hall.open(access=AccessMode.PEEK)
    [kept] = hall.ok(api.Receive(handle, peek=True)).entries
    [section] = reader.peek(reader.open()).sections
    assert (section.kind, section.size_alloc) == (0, len(section.data))
    assert without_extensions(section.data) == for_remote_reader(kept.packet)
    [again] = hall.ok(api.Receive(handle, peek=True)).entries
    assert again == kept


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(
            0,
            marks=pytest.mark.spec(
                "MQRR-3.1.4.7-12",
                "MQRR-3.1.4.7-18",
                "MQRR-3.1.4.7-19",
                "MQRR-3.1.4.7-20",
                "MQRR-3.1.4.7-27",
            ),
        ),
        pytest.param(
            1,
            marks=pytest.mark.spec(
                "MQRR-3.1.4.7-25", "MQRR-3.1.4.7-26", "MQRR-3.1.4.7-28", "MQRR-3.1.4.7-29"
            ),
        ),
        pytest.param(
            8,
            marks=pytest.mark.spec(
                "MQRR-3.1.4.7-30",
                "MQRR-3.1.4.7-31",
                "MQRR-3.1.4.7-32",
                "MQRR-3.1.4.7-33",
                "MQRR-3.1.1.4-01",
            ),
        ),
        pytest.param(
            9,
            marks=pytest.mark.spec(
                "MQRR-3.1.4.7-21", "MQRR-3.1.4.7-22", "MQRR-3.1.4.7-23", "MQRR-3.1.4.7-24"
            ),
        ),
    ],
)
def test_a_reader_gets_as_much_of_the_body_as_it_wants(
    hall: Hall, reader: Reader, size: int
) -> None:
    hall.send(b"some body")
    context = reader.open()
    [whole] = reader.peek(context).sections
    assert whole.size_alloc == len(whole.data) == struct.unpack_from("<I", whole.data, 8)[0]
    parts = reader.peek(context, max_body_bytes=size).sections
    if size == 9:
        assert parts == (whole,)
        return
    first, second = parts
    assert (first.kind, second.kind) == (1, 2)
    assert first.size_alloc - len(first.data) == 9 - size
    assert second.size_alloc == len(second.data)
    assert first.data + b"some body"[size:] + second.data == whole.data
    assert joined(parts) == whole.data.replace(b"some body", b"some body"[:size] + bytes(9 - size))
    # The rest is there for who asks again.
    assert body(reader.receive(context)) == b"some body"


@pytest.mark.spec("MQRR-2.2.5.3-05")
def test_behind_a_message_stands_what_its_queue_knows_of_it(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    [lookup_id] = hall.lookup_ids()
    source = reader.open()
    target = reader.open_for_move(SUB_NAME)
    assert reader.move(source, target.move_context, lookup_id) == 0
    received = reader.receive(reader.open(SUB_NAME))
    _, standing = read(joined(received.sections))
    assert standing.subqueue == "later"
    assert standing.move_count == 1
    assert standing.moved_time_s == hall.driver.now.unix_s


# Cursors.


@pytest.mark.spec(
    "MQRR-3.1.4.4-05",
    "MQRR-3.1.4.4-06",
    "MQRR-3.1.4.4-09",
    "MQRR-3.1.4.7-07",
    "MQRR-3.1.4.7-08",
)
def test_a_cursor_walks_through_the_queue(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two", b"three")
    context = reader.open()
    made = reader.cursor(context)
    assert made.result == 0
    assert made.cursor
    cursor = made.cursor
    assert body(reader.peek(context, cursor=cursor)) == b"one"
    step = {"cursor": cursor, "action": Action.PEEK_NEXT}
    assert body(reader.receive(context, **step)) == b"two"
    assert body(reader.receive(context, cursor=cursor)) == b"two"
    assert reader.end(context) == 0
    assert body(reader.receive(context, **step)) == b"three"
    assert reader.close_cursor(context, cursor) == 0
    assert reader.receive(context, **step).result == 0xC0000008


@pytest.mark.spec(
    "MQRR-3.1.4.5-01",
    "MQRR-3.1.4.5-06",
    "MQRR-3.1.4.5-07",
    "MQRR-3.1.4.5-08",
    "MQRR-3.1.4.5-09",
    "MQRR-3.1.4.5-10",
)
def test_a_cursor_is_closed_once_and_makes_room(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "REMOTE_QUEUES_MAX_COUNT", 1)
    context = reader.open()
    cursor = reader.cursor(context).cursor
    assert reader.cursor(context).result == NO_RESOURCES
    assert reader.close_cursor(context, cursor + 1) == 0xC0000008
    assert reader.close_cursor(context, cursor) == 0
    assert reader.close_cursor(context, cursor) == 0xC0000008
    assert reader.cursor(context).result == 0


@pytest.mark.spec("MQRR-3.1.4.5-03")
def test_a_cursor_belongs_to_its_queue(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    first, second = reader.open(), reader.open()
    cursor = reader.cursor(first).cursor
    assert reader.peek(second, cursor=cursor).result == 0xC0000008
    assert reader.close_cursor(second, cursor) == 0xC0000008
    assert body(reader.peek(first, cursor=cursor)) == b"one"


@pytest.mark.spec("MQRR-3.1.4.4-07")
def test_a_queue_has_so_many_cursors_and_no_more(
    hall: Hall, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "REMOTE_QUEUES_MAX_COUNT", 1)
    assert limits.REMOTE_QUEUES_MAX_COUNT == 512
    context = reader.open()
    stub = rpc.OF_QUEUE.encode(rpc.OfQueue(context))
    calls = [reader.begin(Operation.CREATE_CURSOR, stub) for _ in range(2)]
    hall.settle()
    results = [rpc.CURSOR_MADE.decode(reader.ends[call].stub) for call in calls]
    assert [made.result for made in results] == [0, NO_RESOURCES]
    reader.close_cursor(context, results[0].cursor)
    assert reader.cursor(context).result == 0


# Cancel.


@pytest.mark.spec("MQRR-3.1.4.8-05", "MQRR-3.1.4.8-06", "MQRR-3.1.4.8-08")
@pytest.mark.parametrize("action", [Action.RECEIVE, Action.PEEK_CURRENT])
def test_a_waiting_read_is_cancelled(hall: Hall, reader: Reader, action: Action) -> None:
    context = reader.open()
    call = reader.begin_receive(context, 5, timeout_ms=FOREVER, action=action)
    hall.settle()
    assert reader.cancel(context, 5) == 0
    assert reader.received(call) == rpc.Received(0, 0, (), CANCELLED)
    hall.send(b"one")
    assert hall.bodies() == [b"one"]
    assert reader.cancel(context, 5) == INVALID_PARAMETER


@pytest.mark.spec("MQRR-3.1.4.8-07")
def test_what_does_not_wait_cannot_be_cancelled(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    assert reader.cancel(context, 1) == INVALID_PARAMETER
    reader.receive(context, 1)
    assert reader.cancel(context, 1) == INVALID_PARAMETER
    assert reader.end(context) == 0


def test_a_cancellation_that_comes_too_late_fails_and_the_message_is_had(
    hall: Hall, reader: Reader
) -> None:
    hall.send(b"one")
    context = reader.open()
    call = reader.begin_receive(context)
    stub = rpc.CANCEL_RECEIVE.encode(rpc.CancelReceive(context, 1))
    late = reader.begin(Operation.CANCEL_RECEIVE, stub)
    hall.settle()
    assert body(reader.received(call)) == b"one"
    assert rpc.RESULT.decode(reader.ends[late].stub).result == INVALID_PARAMETER
    assert reader.end(context) == 0


def test_a_caller_that_does_not_want_to_wait_any_more_is_answered_once(
    hall: Hall, reader: Reader
) -> None:
    context = reader.open()
    call = reader.begin_receive(context, timeout_ms=FOREVER)
    hall.settle()
    for _ in range(2):
        reader.carry_out(reader.interface.cancelled(call, hall.driver.now))
    hall.settle()
    assert reader.received(call) == rpc.Received(0, 0, (), CANCELLED)
    assert reader.interface.cancelled(call, hall.driver.now) == []


def test_a_message_for_a_caller_that_left_goes_back_at_once(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    call = reader.begin_receive(context)
    reader.carry_out(reader.interface.cancelled(call, hall.driver.now))
    hall.settle()
    assert reader.received(call) == rpc.Received(0, 0, (), CANCELLED)
    assert hall.bodies() == [b"one"]
    assert reader.interface.next_wake_ms is None


# What is never said.


@pytest.mark.spec("MQRR-3.1.2.2-01", "MQRR-3.1.2.2-02", "MQRR-3.1.4.7-38", "MQRR-3.1.5.1-01")
def test_a_message_of_which_nothing_is_said_goes_back_after_five_minutes(
    hall: Hall, reader: Reader
) -> None:
    assert limits.REMOTE_RECEIVE_MS == 300_000
    hall.send(b"one")
    context = reader.open()
    reader.receive(context)
    hall.pass_time(299)
    assert hall.bodies() == []
    hall.pass_time(1)
    assert hall.bodies() == [b"one"]
    assert reader.interface.given_back_count == 1
    assert reader.end(context) == INVALID_HANDLE
    assert body(reader.receive(context)) == b"one"
    assert reader.end(context) == 0
    hall.pass_time(600)
    assert reader.interface.given_back_count == 1


def test_the_time_begins_when_the_caller_gets_the_message(hall: Hall, reader: Reader) -> None:
    context = reader.open()
    call = reader.begin_receive(context, timeout_ms=FOREVER)
    hall.settle()
    hall.pass_time(1_000)
    hall.send(b"one")
    hall.settle()
    assert body(reader.received(call)) == b"one"
    hall.pass_time(299)
    assert reader.end(context) == 0
    assert hall.bodies() == []


STEPS = ["open", "cursor", "wait", "received", "ending", "ended"]


@pytest.mark.spec("MQRR-3.1.6.1-01", "MQRR-3.1.6.2-01")
@pytest.mark.parametrize("how", ["close", "die"])
@pytest.mark.parametrize("step", STEPS)
def test_a_lost_caller_gives_everything_back(
    hall: Hall, reader: Reader, step: str, how: str
) -> None:
    context = reader.open(share=1)
    if step == "cursor":
        reader.cursor(context)
    if step == "wait":
        reader.begin_receive(context, timeout_ms=FOREVER)
        hall.settle()
    hall.send(b"one", b"two") if step != "wait" else None
    if step in ("received", "ending", "ended"):
        reader.receive(context)
    if step == "ending":
        stub = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.ACK, 1))
        reader.begin(Operation.END_RECEIVE, stub)
    if step == "ended":
        reader.end(context)
    if how == "close":
        reader.close(context)
    else:
        reader.die()
    if step == "wait":
        hall.send(b"one", b"two")
    taken = step in ("ending", "ended")
    assert hall.bodies() == ([b"two"] if taken else [b"one", b"two"])
    other = hall.reader()
    mine = other.open(share=1)
    assert body(other.receive(mine)) == (b"two" if taken else b"one")
    assert reader.interface.next_wake_ms is None or how == "die"


def test_a_close_ends_what_waits_and_what_is_under_way(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    reader.receive(context, 1)
    waiting = reader.begin_receive(context, 2, timeout_ms=FOREVER)
    hall.settle()
    assert reader.close(context).result == 0
    assert reader.received(waiting) == rpc.Received(0, 0, (), CANCELLED)
    assert hall.bodies() == [b"one"]


def test_a_message_that_comes_while_its_queue_is_closed_stays(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    call = reader.begin_receive(context)
    close = reader.begin(Operation.CLOSE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(context)))
    hall.settle()
    assert reader.received(call).result == CANCELLED
    assert rpc.CLOSED.decode(reader.ends[close].stub).result == 0
    assert hall.bodies() == [b"one"]
    assert reader.interface.next_wake_ms is None


def test_what_the_full_disk_refuses_can_be_said_again(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two")
    context = reader.open()
    reader.receive(context)
    stub = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.ACK, 1))
    call = reader.begin(Operation.END_RECEIVE, stub)
    hall.settle(fail=1)
    assert rpc.RESULT.decode(reader.ends[call].stub).result == NO_RESOURCES
    assert hall.bodies() == [b"two"]
    assert reader.end(context) == 0
    assert hall.bodies() == [b"two"]
    assert len(hall.lookup_ids()) == 1


def test_what_the_full_disk_refuses_goes_back_in_the_end(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    reader.receive(context)
    reader.begin(
        Operation.END_RECEIVE, rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.ACK, 1))
    )
    hall.settle(fail=1)
    assert hall.bodies() == []
    hall.pass_time(300)
    assert hall.bodies() == [b"one"]


def test_what_the_full_disk_refuses_goes_back_if_its_number_is_in_use_again(
    hall: Hall, reader: Reader
) -> None:
    hall.send(b"one", b"two")
    context = reader.open()
    reader.receive(context)
    stub = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.ACK, 1))
    reader.begin(Operation.END_RECEIVE, stub)
    again = reader.begin_receive(context)
    hall.settle(fail=1)
    received = reader.received(again)
    assert received is not None
    assert received.result == 0
    assert hall.bodies() == [b"one"]
    assert reader.end(context) == 0
    assert hall.bodies() == [b"one"]


def test_a_queue_that_is_deleted_takes_its_messages_along(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    context = reader.open()
    reader.receive(context)
    hall.ok(api.DeleteQueue(ORDERS))
    assert reader.end(context) >> 16 == 0xC00E
    assert reader.interface.next_wake_ms is None


# Purge, move, reject, transactions.


@pytest.mark.spec("MQRR-3.1.4.6-05", "MQRR-3.1.4.6-07")
def test_a_purge_leaves_nothing(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", b"two")
    context = reader.open()
    assert reader.purge(context) == 0
    assert hall.bodies() == []


@pytest.mark.spec(
    "MQRR-3.1.4.10-01",
    "MQRR-3.1.4.10-08",
    "MQRR-3.1.4.10-12",
    "MQRR-3.1.4.10-14",
)
def test_a_message_moves_between_a_queue_and_its_subqueue(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    [lookup_id] = hall.lookup_ids()
    main, sub = reader.open(), reader.open_for_move(SUB_NAME)
    assert reader.move(main, sub.move_context, lookup_id) == 0
    assert hall.bodies() == []
    assert hall.bodies(ORDERS + ";later") == [b"one"]
    back = reader.open_for_move(ORDERS_NAME)
    [lookup_id] = hall.lookup_ids(ORDERS + ";later")
    assert reader.move(reader.open(SUB_NAME), back.move_context, lookup_id) == 0
    assert hall.bodies() == [b"one"]
    assert reader.close(back.context).result == 0
    assert reader.move(main, back.move_context, lookup_id) == INVALID_HANDLE


@pytest.mark.spec(
    "MQRR-3.1.4.11-01",
    "MQRR-3.1.4.11-03",
    "MQRR-3.1.4.11-19",
    "MQRR-3.1.4.11-20",
    "MQRR-3.1.4.11-23",
)
def test_a_target_is_known_by_a_number_that_nobody_can_guess(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    [lookup_id] = hall.lookup_ids()
    main = reader.open()
    targets = [reader.open_for_move(SUB_NAME) for _ in range(9)]
    numbers = {target.move_context for target in targets}
    assert len(numbers) == len({target.context for target in targets}) == 9
    assert max(numbers) - min(numbers) > 1 << 32
    assert reader.move(main, max(numbers) + 1, lookup_id) == INVALID_HANDLE
    assert reader.move(main, targets[4].move_context, lookup_id) == 0
    assert hall.bodies(ORDERS + ";later") == [b"one"]


@pytest.mark.spec(
    "MQRR-3.1.4.10-06",
    "MQRR-3.1.4.10-07",
    "MQRR-3.1.4.10-09",
    "MQRR-3.1.4.10-10",
    "MQRR-3.1.4.10-11",
    "MQRR-3.1.4.10-13",
    "MQRR-3.1.4.10-15",
)
def test_a_move_that_cannot_be_is_refused(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    [lookup_id] = hall.lookup_ids()
    main = reader.open()
    sub = reader.open_for_move(SUB_NAME).move_context
    other = reader.open_for_move(r"DIRECT=OS:ALPHA\private$\ledger;later").move_context
    assert reader.move(main, 12345, lookup_id) == INVALID_HANDLE
    assert reader.move(main, other, lookup_id) == 0xC000000D
    assert reader.move(main, sub, lookup_id + 1) == NOT_FOUND
    assert reader.move(main, sub, (1 << 64) - 1) == NOT_FOUND
    assert reader.move(main, sub, lookup_id, b"u" * 16) == TRANSACTION_USAGE
    assert reader.move(main, other, lookup_id, b"u" * 16) == TRANSACTION_SEQUENCE
    assert (
        hall.reader().fault(
            Operation.MOVE_MESSAGE,
            rpc.MOVE_MESSAGE.encode(rpc.MoveMessage(main, sub, lookup_id, bytes(16))),
        )
        == MISMATCH
    )
    assert hall.bodies() == [b"one"]


@pytest.mark.spec("MQRR-3.1.4.14-06", "MQRR-3.1.4.14-07", "MQRR-3.1.4.14-09", "MQRR-3.1.4.14-10")
def test_nothing_can_be_rejected_outside_of_a_transaction(hall: Hall, reader: Reader) -> None:
    hall.send(b"one")
    [lookup_id] = hall.lookup_ids()
    context = reader.open()
    assert reader.set_class(context, lookup_id, 0xC004) == TRANSACTION_USAGE
    assert reader.set_class(context, lookup_id + 1, 0xC004) == NOT_FOUND
    assert reader.set_class(context, lookup_id, 0xC005) == INVALID_PARAMETER
    reader.receive(context)
    assert reader.set_class(context, lookup_id, 0xC004) == TRANSACTION_USAGE
    assert reader.end(context) == 0


@pytest.mark.spec("MQRR-3.1.4.12-10", "MQRR-3.1.4.12-12")
def test_we_take_part_in_no_transaction_of_another_computer(reader: Reader) -> None:
    name = QueueFormat(3, 0, 0, r"OS:ALPHA\private$\ledger")
    stub = rpc.ENLIST_REMOTE_TRANSACTION.encode(
        rpc.EnlistRemoteTransaction(b"u" * 16, b"token", name)
    )
    assert reader.result(Operation.ENLIST_REMOTE_TRANSACTION, stub) == TRANSACTION_ENLIST


def _transactional(context: bytes, unit: bytes) -> bytes:
    return rpc.START_TRANSACTIONAL_RECEIVE.encode(
        rpc.StartTransactionalReceive(context, 0, 0, 0, 0, 1, WHOLE, WHOLE, unit)
    )


def test_a_receive_in_a_transaction_takes_nothing(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", name=LEDGER)
    context = reader.open(r"DIRECT=OS:ALPHA\private$\ledger")
    stub = _transactional(context, b"u" * 16)
    received = rpc.RECEIVED.decode(reader.stub(Operation.START_TRANSACTIONAL_RECEIVE, stub))
    assert received == rpc.Received(0, 0, (), TRANSACTION_ENLIST)
    ending = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.ACK, 1))
    assert reader.result(Operation.END_TRANSACTIONAL_RECEIVE, ending) == INVALID_HANDLE
    assert hall.bodies(LEDGER) == [b"one"]


def test_a_receive_in_no_transaction_is_an_ordinary_one(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", name=LEDGER)
    context = reader.open(r"DIRECT=OS:ALPHA\private$\ledger")
    stub = _transactional(context, bytes(16))
    received = rpc.RECEIVED.decode(reader.stub(Operation.START_TRANSACTIONAL_RECEIVE, stub))
    assert body(received) == b"one"
    ending = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.ACK, 1))
    assert reader.result(Operation.END_TRANSACTIONAL_RECEIVE, ending) == 0
    assert hall.bodies(LEDGER) == []


# Hostile callers.


@pytest.mark.spec("MQRR-3.1.4-01")
@pytest.mark.parametrize("operation", [op for op in Operation if op])
@pytest.mark.parametrize("stub", [b"", b"\xff" * 7, b"\xff" * 300])
def test_a_stub_that_is_none_is_a_fault_and_costs_nothing(
    hall: Hall, reader: Reader, operation: Operation, stub: bytes
) -> None:
    hall.send(b"one")
    assert reader.fault(operation, stub) == BAD_STUB
    assert hall.bodies() == [b"one"]


def test_a_reply_to_nothing_is_not_heeded(reader: Reader, hall: Hall) -> None:
    assert reader.interface.answered(999, api.Done(), hall.driver.now) == []
