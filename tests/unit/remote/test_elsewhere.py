"""Reading a queue of another computer; the test plays that computer."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.model.errors import (
    AccessDenied,
    BufferOverflow,
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MessageNotFound,
    MsmqError,
    NoTransactionCoordinator,
    OperationCancelled,
    QueueNotAvailable,
    QueueNotFound,
    ReceiveTimeout,
    StaleHandle,
    UnsupportedOperation,
)
from openmsmq.model.identity import Guid
from openmsmq.model.limits import ELSEWHERE_READS_MAX_COUNT
from openmsmq.model.names import DirectFormatName, DirectProtocol, LocalQueueName
from openmsmq.model.queue import AccessMode, RemoteReadState
from openmsmq.remote.elsewhere import QueueElsewhere
from openmsmq.remote.elsewhere_ports import Invoke, Output, Over, Tell
from openmsmq.wire.message_bytes import for_remote_reader
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import sections
from openmsmq.wire.rpc.remote_read import Action, Operation, Standing, Verdict
from tests.unit.manager.office import ORDERS, Office

NAME = DirectFormatName(DirectProtocol.OS, "beta", LocalQueueName("orders", private=True))
ME = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
CONTEXT = bytes(4) + b"\x07" * 16
OPEN = 1
READ = 2
LOOKUP_ID = 4 << 56 | 5
"""Of the message that comes: its priority is 3, and it was the fifth."""


def _packet() -> bytes:
    office = Office()
    office.send(b"hello")
    [entry] = office.ok(api.Receive(office.open(ORDERS), peek=True)).entries
    assert isinstance(entry, api.Entry)
    return entry.packet


PACKET = _packet()
GIVEN = for_remote_reader(PACKET)
"""As it is given to readers on other computers."""


class Far:
    """The queue as it is opened, and what the other computer is asked."""

    def __init__(self) -> None:
        request = api.OpenQueue(str(NAME), int(AccessMode.RECEIVE))
        self.queue = QueueElsewhere(NAME, 9, request, ME)
        [asked] = self.queue.open(OPEN)
        assert isinstance(asked, Invoke)
        self.opening = asked
        self.told: list[Tell] = []

    def open(self) -> Far:
        self.take(self.queue.returned(self.opening.number, rpc.OPENED.encode(rpc.Opened(CONTEXT))))
        self.told.clear()
        return self

    def with_cursor(self) -> Far:
        [making] = self.ask(api.CreateCursor(9), cursor=31)
        self.answer(making, rpc.CURSOR_MADE.encode(rpc.CursorMade(77, 0)))
        self.told.clear()
        return self

    def take(self, outputs: list[Output]) -> list[Invoke]:
        self.told += [each for each in outputs if isinstance(each, Tell)]
        return [each for each in outputs if isinstance(each, Invoke)]

    def ask(self, request: api.AnyRequest, cursor: int = 0, call: int = READ) -> list[Invoke]:
        return self.take(self.queue.asked(call, request, cursor))

    def answer(self, asked: Invoke, stub: bytes) -> list[Invoke]:
        return self.take(self.queue.returned(asked.number, stub))

    def code(self) -> int:
        [told] = self.told
        assert isinstance(told.reply, api.Failed)
        return told.reply.code


def packet_in(told: Tell) -> bytes:
    assert isinstance(told.reply, api.Entries)
    [entry] = told.reply.entries
    return entry.packet


def result(code: int = 0) -> bytes:
    return rpc.RESULT.encode(rpc.Result(code))


def message(lookup_id: int = 5, result: int = 0) -> bytes:
    parts = sections(PACKET, Standing(1, 2, 3), 0xFFFF_FFFF)
    return rpc.RECEIVED.encode(rpc.Received(1000, lookup_id, parts, result))


def nothing(code: int) -> bytes:
    return rpc.RECEIVED.encode(rpc.Received(0, 0, (), code))


def started(asked: list[Invoke]) -> tuple[Invoke, rpc.StartReceive]:
    [invoke] = asked
    assert invoke.operation == Operation.START_RECEIVE
    return invoke, rpc.START_RECEIVE.decode(invoke.stub)


@pytest.mark.spec("MQRR-3.2.1-01", "MQRR-3.2.4.1-01", "MQRR-3.2.4.1-03", "MQRR-3.2.4.1-05")
def test_a_queue_is_opened_by_its_name() -> None:
    far = Far()
    asked = rpc.OPEN_QUEUE.decode(far.opening.stub)
    assert far.opening.operation == Operation.OPEN_QUEUE
    assert asked.name.name() == NAME
    assert (asked.access, asked.share_mode) == (1, 0)
    far.take(far.queue.returned(far.opening.number, rpc.OPENED.encode(rpc.Opened(CONTEXT))))
    [told] = far.told
    assert isinstance(told.reply, api.Opened)
    assert (told.call, told.reply.handle, told.reply.is_local) == (OPEN, 9, False)


@pytest.mark.spec(*(f"MQRR-3.1.4.2-{number:02d}" for number in (4, 6, 7, 9, 11, 13)))
def test_who_opens_says_who_he_is() -> None:
    asked = rpc.OPEN_QUEUE.decode(Far().opening.stub)
    assert asked.client == ME
    assert (asked.is_non_routing_server, asked.is_workgroup) == (1, 1)
    assert (asked.major, asked.minor, asked.build) == (6, 1, 7600)


def test_nothing_is_asked_of_a_queue_before_it_is_open() -> None:
    far = Far()
    assert far.ask(api.Receive(9)) == []
    assert far.code() == InvalidHandle.code


@pytest.mark.spec("MQDMPR-3.1.1.16-09")
def test_a_handle_is_known_here_then_on_both_sides_and_then_of_no_use() -> None:
    assert {state.name for state in RemoteReadState} == {"NONE", "OPENED", "READY_FOR_READ"}
    far = Far()
    assert far.queue.state is RemoteReadState.OPENED
    assert far.ask(api.Receive(9)) == []
    assert far.code() == InvalidHandle.code
    far.open()
    assert far.queue.state is RemoteReadState.READY_FOR_READ
    started(far.ask(api.Receive(9)))
    far.queue.lost(QueueNotAvailable("the cable is cut"))
    assert far.queue.state is RemoteReadState.NONE
    left = Far().open()
    left.queue.leave()
    assert left.queue.state is RemoteReadState.NONE
    refused = Far()
    refused.queue.threw(refused.opening.number, QueueNotFound.code)
    assert refused.queue.state is RemoteReadState.NONE


@pytest.mark.spec("MQRR-3.1.4.2-15", "MQRR-3.1.4.2-16")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (QueueNotFound.code, QueueNotFound),
        (0x5, AccessDenied),
        (0x6F7, QueueNotAvailable),
    ],
)
def test_what_cannot_be_opened_is_over(status: int, error: type[MsmqError]) -> None:
    far = Far()
    outputs = far.queue.threw(far.opening.number, status)
    assert [type(output) for output in outputs] == [Tell, Over]
    far.take(outputs)
    assert far.code() == error.code
    # Whatever was the reason, nothing is open.
    assert far.ask(api.Receive(9)) == []


@pytest.mark.spec(
    "MQRR-3.2.4.4-01",
    "MQRR-3.2.4.4.1-01",
    "MQRR-3.2.4.4.1-02",
    "MQRR-3.2.4.4.1-03",
    "MQRR-3.2.4.4.1-04",
    "MQRR-3.2.4.4.1-06",
    "MQRR-3.2.4.4.1-07",
)
def test_a_message_is_received_in_two_steps() -> None:
    far = Far().open()
    invoke, asked = started(far.ask(api.Receive(9, timeout_ms=700)))
    assert (asked.context, asked.action, asked.cursor) == (CONTEXT, Action.RECEIVE, 0)
    assert (asked.lookup_id, asked.timeout_ms, asked.max_body_bytes) == (0, 700, 0xFFFF_FFFF)
    [second] = far.answer(invoke, message())
    ended = rpc.END_RECEIVE.decode(second.stub)
    assert (ended.context, ended.verdict, ended.request) == (CONTEXT, Verdict.ACK, asked.request)
    [told] = far.told
    assert far.answer(second, result()) == []
    assert far.told == [told]
    assert isinstance(told.reply, api.Entries)
    [entry] = told.reply.entries
    assert (told.call, entry.lookup_id, entry.arrived_time_s) == (READ, LOOKUP_ID, 1000)
    assert (entry.abort_count, entry.move_count, entry.moved_time_s) == (1, 2, 3)


@pytest.mark.parametrize("how", ["result", "fault", "lost"])
def test_what_was_given_is_never_lost_whatever_the_second_step_says(how: str) -> None:
    far = Far().open()
    invoke, _ = started(far.ask(api.Receive(9)))
    [second] = far.answer(invoke, message())
    if how == "result":
        far.answer(second, result(InvalidHandle.code))
    elif how == "fault":
        far.take(far.queue.threw(second.number, 0x1C00_001A))
    else:
        far.take(far.queue.lost(StaleHandle()))
    [told] = far.told
    assert isinstance(told.reply, api.Entries)


def test_the_next_message_is_asked_for_while_the_one_before_is_taken_out() -> None:
    far = Far().open()
    invoke, first = started(far.ask(api.Receive(9)))
    [end] = far.answer(invoke, message())
    invoke, second = started(far.ask(api.Receive(9), call=READ + 1))
    # The number of the first is not free before the other computer has taken it out.
    assert first.request != second.request
    [next_end] = far.answer(invoke, message(6))
    assert rpc.END_RECEIVE.decode(next_end.stub).request == second.request
    assert far.answer(next_end, result()) == far.answer(end, result()) == []
    assert [told.call for told in far.told] == [READ, READ + 1]


@pytest.mark.spec("MQRR-3.2.4.4.1-05")
@pytest.mark.parametrize("stub", [b"", message()[:60], nothing(0)])
def test_what_is_no_message_is_given_back(stub: bytes) -> None:
    far = Far().open()
    invoke, asked = started(far.ask(api.Receive(9)))
    [second] = far.answer(invoke, stub)
    ended = rpc.END_RECEIVE.decode(second.stub)
    assert (ended.verdict, ended.request) == (Verdict.NACK, asked.request)
    assert far.code() == QueueNotAvailable.code


def test_a_body_that_is_too_long_is_given_back() -> None:
    far = Far().open()
    invoke, _ = started(far.ask(api.Receive(9, body_max_bytes=1)))
    [second] = far.answer(invoke, message())
    assert rpc.END_RECEIVE.decode(second.stub).verdict == Verdict.NACK
    assert far.code() == BufferOverflow.code


@pytest.mark.spec(
    "MQRR-3.2.4.3-01",
    "MQRR-3.2.4.3-02",
    "MQRR-3.2.4.3-03",
    "MQRR-3.2.4.3-04",
    "MQRR-3.2.4.3-05",
    "MQRR-3.2.4.3-06",
)
def test_what_is_only_looked_at_needs_no_second_step() -> None:
    far = Far().open()
    invoke, asked = started(far.ask(api.Receive(9, peek=True, timeout_ms=None)))
    assert (asked.action, asked.timeout_ms) == (Action.PEEK_CURRENT, 0xFFFF_FFFF)
    assert far.answer(invoke, message()) == []
    [told] = far.told
    assert packet_in(told) == GIVEN


@pytest.mark.parametrize(
    ("request_", "action", "lookup_id"),
    [
        (api.Seek(9, "current", 4), Action.LOOKUP_RECEIVE_CURRENT, 4),
        (api.Seek(9, "next", 4, peek=True), Action.LOOKUP_PEEK_NEXT, 4),
        (api.Seek(9, "previous", 4, peek=True), Action.LOOKUP_PEEK_PREVIOUS, 4),
        (api.Seek(9, "last", peek=True), Action.LOOKUP_PEEK_PREVIOUS, 0xFFFF_FFFF_FFFF_FFFF),
        (api.Seek(9, "first", peek=True), Action.PEEK_CURRENT, 0),
    ],
)
def test_messages_are_found_by_lookup_identifiers(
    request_: api.Seek, action: Action, lookup_id: int
) -> None:
    far = Far().open()
    invoke, asked = started(far.ask(request_))
    assert (asked.action, asked.lookup_id, asked.timeout_ms) == (action, lookup_id, 0)
    far.answer(invoke, nothing(ReceiveTimeout.code))
    assert far.code() == MessageNotFound.code


@pytest.mark.spec("MQRR-3.1.4.7-36")
@pytest.mark.parametrize("stub", [nothing(ReceiveTimeout.code), message(result=0xC00E_001B)])
def test_a_read_that_finds_nothing_says_why_and_has_nothing(stub: bytes) -> None:
    far = Far().open()
    invoke, _ = started(far.ask(api.Receive(9, lock=True)))
    assert far.answer(invoke, stub) == []
    assert far.code() == ReceiveTimeout.code
    far.told.clear()
    assert far.ask(api.EndReceive(9, LOOKUP_ID, remove=True)) == []
    assert far.code() == InvalidHandle.code


@pytest.mark.spec(
    "MQRR-3.2.4.8-01",
    "MQRR-3.2.4.8-02",
    "MQRR-3.2.4.8-03",
    "MQRR-3.2.4.8-04",
    "MQRR-3.2.4.9-01",
    "MQRR-3.2.4.9-02",
    "MQRR-3.2.4.9-03",
    "MQRR-3.2.4.9-04",
)
def test_cursors_are_those_of_the_other_computer() -> None:
    far = Far().open()
    [making] = far.ask(api.CreateCursor(9), cursor=31)
    assert rpc.OF_QUEUE.decode(making.stub).context == CONTEXT
    far.answer(making, rpc.CURSOR_MADE.encode(rpc.CursorMade(77, 0)))
    assert far.told.pop() == Tell(READ, api.CursorCreated(31))
    for next_, action in ((False, Action.PEEK_CURRENT), (True, Action.PEEK_NEXT)):
        invoke, asked = started(far.ask(api.Receive(9, peek=True, cursor=31, next=next_)))
        assert (asked.context, asked.action) == (CONTEXT, action)
        assert (asked.cursor, asked.lookup_id) == (77, 0)
        assert far.answer(invoke, message()) == []
        assert packet_in(far.told.pop()) == GIVEN


@pytest.mark.spec("MQRR-3.2.4.10-01", *(f"MQRR-3.2.4.10.1-{number:02d}" for number in range(1, 7)))
def test_a_message_is_received_where_a_cursor_stands() -> None:
    far = Far().open().with_cursor()
    invoke, asked = started(far.ask(api.Receive(9, cursor=31)))
    assert (asked.context, asked.action, asked.cursor) == (CONTEXT, Action.RECEIVE, 77)
    [second] = far.answer(invoke, message())
    ended = rpc.END_RECEIVE.decode(second.stub)
    assert ended == rpc.EndReceive(CONTEXT, Verdict.ACK, asked.request)
    far.answer(second, result())
    assert packet_in(far.told.pop()) == GIVEN


@pytest.mark.spec("MQRR-3.1.4.4-08")
def test_a_cursor_that_was_not_made_is_none_whatever_number_comes() -> None:
    far = Far().open()
    [making] = far.ask(api.CreateCursor(9), cursor=31)
    far.answer(making, rpc.CURSOR_MADE.encode(rpc.CursorMade(77, InsufficientResources.code)))
    assert far.code() == InsufficientResources.code
    far.told.clear()
    assert far.ask(api.Receive(9, cursor=31)) == []
    assert far.code() == InvalidHandle.code


@pytest.mark.spec("MQRR-3.2.4.12-02")
def test_a_cursor_that_is_closed_ends_the_reads_that_wait_by_it() -> None:
    far = Far().open().with_cursor()
    waiting, asked = started(far.ask(api.Receive(9, timeout_ms=None, cursor=31), call=5))
    started(far.ask(api.Receive(9, timeout_ms=None), call=6))
    cancel, closing = far.ask(api.CloseCursor(31))
    assert rpc.CANCEL_RECEIVE.decode(cancel.stub) == rpc.CancelReceive(CONTEXT, asked.request)
    assert closing.operation == Operation.CLOSE_CURSOR
    far.answer(waiting, nothing(OperationCancelled.code))
    assert far.told.pop().call == 5


@pytest.mark.spec(*(f"MQRR-3.2.4.12-{number:02d}" for number in (1, 3, 4, 5, 6)))
def test_a_cursor_is_closed_there_and_known_here_no_more() -> None:
    far = Far().open().with_cursor()
    [closing] = far.ask(api.CloseCursor(31))
    assert rpc.CLOSE_CURSOR.decode(closing.stub) == rpc.CloseCursor(CONTEXT, 77)
    far.answer(closing, result())
    assert far.told.pop() == Tell(READ, api.Done())
    far.ask(api.Receive(9, cursor=31))
    assert far.code() == InvalidHandle.code


@pytest.mark.spec("MQRR-3.2.4.7-01", "MQRR-3.2.4.7-02", "MQRR-3.2.4.7-03")
def test_a_queue_is_purged() -> None:
    far = Far().open()
    [purge] = far.ask(api.Purge(9))
    assert purge.operation == Operation.PURGE_QUEUE
    assert rpc.OF_QUEUE.decode(purge.stub).context == CONTEXT
    far.answer(purge, result())
    assert far.told == [Tell(READ, api.Removed(0))]


@pytest.mark.spec("MQRR-3.2.4.11-01", "MQRR-3.2.4.11-02", "MQRR-3.2.4.11-03", "MQRR-3.2.4.11-04")
def test_a_read_that_waits_is_cancelled() -> None:
    far = Far().open()
    invoke, asked = started(far.ask(api.Receive(9, timeout_ms=None)))
    [cancel] = far.take(far.queue.cancel(READ))
    assert rpc.CANCEL_RECEIVE.decode(cancel.stub) == rpc.CancelReceive(CONTEXT, asked.request)
    assert far.queue.cancel(READ) == []
    far.answer(cancel, result())
    far.answer(invoke, nothing(OperationCancelled.code))
    assert far.code() == OperationCancelled.code


def test_a_message_that_came_before_the_cancel_goes_back() -> None:
    far = Far().open()
    invoke, _ = started(far.ask(api.Receive(9, timeout_ms=None)))
    far.queue.cancel(READ)
    [second] = far.answer(invoke, message())
    assert rpc.END_RECEIVE.decode(second.stub).verdict == Verdict.NACK
    assert far.code() == OperationCancelled.code


@pytest.mark.spec("MQRR-3.1.4.7-01", "MQRR-3.1.4.9-01")
@pytest.mark.parametrize(("remove", "verdict"), [(True, Verdict.ACK), (False, Verdict.NACK)])
def test_a_locked_message_is_ended_by_the_application(remove: bool, verdict: Verdict) -> None:
    far = Far().open()
    invoke, asked = started(far.ask(api.Receive(9, lock=True)))
    assert far.answer(invoke, message()) == []
    far.told.clear()
    [ending] = far.ask(api.EndReceive(9, LOOKUP_ID, remove))
    assert rpc.END_RECEIVE.decode(ending.stub) == rpc.EndReceive(CONTEXT, verdict, asked.request)
    far.answer(ending, result())
    assert far.told == [Tell(READ, api.Done())]
    far.told.clear()
    assert far.ask(api.EndReceive(9, LOOKUP_ID, remove)) == []
    assert far.code() == InvalidHandle.code


@pytest.mark.spec("MQRR-3.2.4.13-01", "MQRR-3.2.4.13-02", "MQRR-3.2.4.13-03", "MQRR-3.2.4.13-05")
def test_a_queue_that_is_left_ends_what_waits_and_finishes_what_is_taken() -> None:
    far = Far().open()
    waiting, _ = started(far.ask(api.Receive(9, timeout_ms=None), call=3))
    taking, _ = started(far.ask(api.Receive(9), call=4))
    [second] = far.answer(taking, message())
    [cancel] = far.take(far.queue.leave())
    assert cancel.operation == Operation.CANCEL_RECEIVE
    assert far.answer(cancel, result()) == []
    assert far.answer(second, result()) == []
    [closing] = far.answer(waiting, nothing(OperationCancelled.code))
    assert closing.operation == Operation.CLOSE_QUEUE
    assert rpc.OF_QUEUE.decode(closing.stub).context == CONTEXT
    closed = rpc.CLOSED.encode(rpc.Closed(rpc.NO_CONTEXT, 0))
    assert far.queue.returned(closing.number, closed) == [Over()]
    by_call = {told.call: type(told.reply) for told in far.told}
    assert by_call == {3: api.Failed, 4: api.Entries}


@pytest.mark.spec("MQRR-3.2.4.13-04", "MQRR-3.2.4.13-06")
def test_a_queue_that_is_left_closes_its_cursors_and_is_known_no_more() -> None:
    far = Far().open().with_cursor()
    cursor, queue = far.take(far.queue.leave())
    assert rpc.CLOSE_CURSOR.decode(cursor.stub) == rpc.CloseCursor(CONTEXT, 77)
    assert queue.operation == Operation.CLOSE_QUEUE
    assert far.ask(api.Purge(9)) == []
    assert far.code() == InvalidHandle.code
    assert far.answer(cursor, result()) == []
    assert far.queue.returned(queue.number, result()) == [Over()]


def test_a_lost_connection_ends_every_call_once_and_all_that_follow() -> None:
    far = Far().open()
    for call in (3, 4):
        far.ask(api.Receive(9, timeout_ms=None), call=call)
    outputs = far.queue.lost(StaleHandle("gone"))
    assert outputs[-1] == Over()
    far.take(outputs)
    assert [told.call for told in far.told] == [3, 4]
    far.told.clear()
    assert far.ask(api.Receive(9)) == []
    assert far.code() == StaleHandle.code
    assert far.queue.leave() == [Over()]


@pytest.mark.spec("MQRR-3.2.4.2-01", "MQRR-3.2.4.4.2-02", "MQRR-3.2.4.10.2-01")
@pytest.mark.parametrize(
    "request_",
    [
        api.Receive(9, transaction=1),
        api.Seek(9, "current", 4, transaction=1),
        api.Receive(9, cursor=31, transaction=1),
        api.Move(9, LOOKUP_ID, 10, transaction=1),
    ],
)
def test_nothing_is_read_in_a_transaction_in_which_the_other_computer_takes_no_part(
    request_: api.AnyRequest,
) -> None:
    far = Far().open().with_cursor()
    assert far.ask(request_) == []
    assert far.code() == NoTransactionCoordinator.code


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (api.Receive(9, transaction=1), NoTransactionCoordinator),
        (api.Seek(9, "current", 4, transaction=1), NoTransactionCoordinator),
        (api.Find(9, bytes(20)), UnsupportedOperation),
        (api.CloseCursor(5), InvalidHandle),
    ],
)
def test_what_cannot_be_asked_of_another_computer(request_: Any, error: type[MsmqError]) -> None:
    far = Far().open()
    assert far.ask(request_) == []
    assert far.code() == error.code


def test_only_so_many_reads_are_under_way() -> None:
    far = Far().open()
    for _ in range(ELSEWHERE_READS_MAX_COUNT):
        far.ask(api.Receive(9, timeout_ms=None))
    assert far.told == []
    assert far.ask(api.Receive(9)) == []
    assert far.code() == InsufficientResources.code


@pytest.mark.parametrize(
    "request_",
    [
        api.Seek(9, "sideways"),
        api.Seek(9, "next", lookup_id=-1),
        api.Receive(9, timeout_ms=-1),
    ],
)
def test_what_no_call_can_say_is_refused_and_waits_for_nothing(request_: api.AnyRequest) -> None:
    far = Far().open()
    assert far.ask(request_) == []
    assert far.code() == InvalidParameter.code
    far.told.clear()
    for _ in range(ELSEWHERE_READS_MAX_COUNT):
        started(far.ask(api.Receive(9)))
    assert far.told == []


@pytest.mark.parametrize(
    ("request_", "patience_ms"),
    [
        (api.Receive(9, timeout_ms=700), 700),
        (api.Receive(9, timeout_ms=None), None),
        (api.Seek(9, "next", 5), 0),
        (api.Purge(9), 0),
    ],
)
def test_only_a_read_without_end_is_waited_for_without_end(
    request_: api.AnyRequest, patience_ms: int | None
) -> None:
    far = Far().open()
    [invoke] = far.ask(request_)
    assert invoke.patience_ms == patience_ms


# Moving.


def into(access: AccessMode = AccessMode.MOVE) -> QueueElsewhere:
    """A subqueue of the queue, as the application has it open."""
    name = DirectFormatName(
        DirectProtocol.OS, "beta", LocalQueueName("orders", private=True, subqueue="later")
    )
    return QueueElsewhere(name, 10, api.OpenQueue(str(name), int(access)), ME)


def moving(far: Far, target: QueueElsewhere | None) -> list[Invoke]:
    return far.take(far.queue.asked(READ, api.Move(9, LOOKUP_ID, 10), 0, target))


@pytest.mark.spec(*(f"MQRR-3.1.4.11-{number:02d}" for number in (7, 8, 11, 12, 14, 16, 18)))
def test_a_target_is_opened_for_moving_by_who_says_who_he_is() -> None:
    [asked] = into().open(OPEN)
    assert isinstance(asked, Invoke)
    assert asked.operation == Operation.OPEN_QUEUE_FOR_MOVE
    found = rpc.OPEN_QUEUE.decode(asked.stub)
    assert (found.access, found.share_mode, found.client) == (AccessMode.MOVE, 0, ME)
    assert (found.is_non_routing_server, found.is_workgroup) == (1, 1)
    assert (found.major, found.minor, found.build) == (6, 1, 7600)


@pytest.mark.spec("MQRR-3.1.4.11-21", "MQRR-3.1.4.11-22")
@pytest.mark.parametrize("status", [QueueNotFound.code, 0x5, 0x6F7])
def test_a_target_that_cannot_be_opened_is_none(status: int) -> None:
    far = Far().open()
    [opening] = moving(far, into())
    assert far.take(far.queue.threw(opening.number, status)) == []
    assert isinstance(far.told.pop().reply, api.Failed)
    # Reads go on.
    started(far.ask(api.Receive(9)))


@pytest.mark.spec(*(f"MQRR-3.2.4.6-{number:02d}" for number in (1, 2, 5, 6, 7, 8, 9)))
@pytest.mark.parametrize("code", [0, MessageNotFound.code])
def test_a_message_is_moved_by_a_target_of_the_same_connection(code: int) -> None:
    far = Far().open()
    [opening] = moving(far, into())
    assert opening.operation == Operation.OPEN_QUEUE_FOR_MOVE
    there = bytes(4) + b"\x08" * 16
    [move] = far.answer(opening, rpc.OPENED_FOR_MOVE.encode(rpc.OpenedForMove(55, there)))
    assert move.operation == Operation.MOVE_MESSAGE
    assert rpc.MOVE_MESSAGE.decode(move.stub) == rpc.MoveMessage(CONTEXT, 55, LOOKUP_ID, bytes(16))
    assert far.told == []
    [closing] = far.answer(move, result(code))
    assert closing.operation == Operation.CLOSE_QUEUE
    assert rpc.OF_QUEUE.decode(closing.stub).context == there
    reply = far.told.pop().reply
    assert reply == api.Done() if not code else isinstance(reply, api.Failed)


@pytest.mark.parametrize("target", [None, into(AccessMode.RECEIVE)])
def test_only_a_queue_that_is_open_for_moving_is_a_target(target: QueueElsewhere | None) -> None:
    far = Far().open()
    assert moving(far, target) == []
    assert far.code() == InvalidHandle.code
