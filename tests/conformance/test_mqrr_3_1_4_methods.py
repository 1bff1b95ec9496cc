"""What the methods of remote reading have in common. [MQRR 3.1.4]"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.model.identity import Guid
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.remote_read import Operation, Verdict
from tests.unit.manager.office import LEDGER
from tests.unit.remote.doors import WHOLE, Hall, Reader, body, receiving

MISMATCH = 0x1C00001A
LEDGER_NAME = QueueFormat(3, 0, 0, r"OS:ALPHA\private$\ledger")
NO_UNIT = bytes(16)


@pytest.fixture
def hall() -> Hall:
    return Hall()


@pytest.fixture
def reader(hall: Hall) -> Reader:
    return hall.reader()


def transactional(context: bytes, request: int = 1, size: int = WHOLE, cursor: int = 0) -> bytes:
    return rpc.START_TRANSACTIONAL_RECEIVE.encode(
        rpc.StartTransactionalReceive(context, 0, cursor, 0, 0, request, size, 0, NO_UNIT)
    )


STUBS: dict[Operation, Callable[[bytes], bytes]] = {
    Operation.CLOSE_QUEUE: lambda context: rpc.OF_QUEUE.encode(rpc.OfQueue(context)),
    Operation.CREATE_CURSOR: lambda context: rpc.OF_QUEUE.encode(rpc.OfQueue(context)),
    Operation.CLOSE_CURSOR: lambda context: rpc.CLOSE_CURSOR.encode(rpc.CloseCursor(context, 1)),
    Operation.PURGE_QUEUE: lambda context: rpc.OF_QUEUE.encode(rpc.OfQueue(context)),
    Operation.START_RECEIVE: receiving,
    Operation.CANCEL_RECEIVE: lambda context: rpc.CANCEL_RECEIVE.encode(
        rpc.CancelReceive(context, 1)
    ),
    Operation.END_RECEIVE: lambda context: rpc.END_RECEIVE.encode(rpc.EndReceive(context, 2, 1)),
    Operation.MOVE_MESSAGE: lambda context: rpc.MOVE_MESSAGE.encode(
        rpc.MoveMessage(context, 1, 1, NO_UNIT)
    ),
    Operation.START_TRANSACTIONAL_RECEIVE: transactional,
    Operation.SET_USER_ACKNOWLEDGEMENT_CLASS: lambda context: rpc.SET_ACKNOWLEDGEMENT_CLASS.encode(
        rpc.SetAcknowledgementClass(context, 1, 0)
    ),
    Operation.END_TRANSACTIONAL_RECEIVE: lambda context: rpc.END_RECEIVE.encode(
        rpc.EndReceive(context, 2, 1)
    ),
}


IDS: dict[Operation, tuple[str, ...]] = {
    Operation.CLOSE_QUEUE: tuple(f"MQRR-3.1.4.3-{number:02d}" for number in (2, 3, 4, 7)),
    Operation.CREATE_CURSOR: tuple(f"MQRR-3.1.4.4-{number:02d}" for number in (2, 3, 4)),
    Operation.CLOSE_CURSOR: tuple(f"MQRR-3.1.4.5-{number:02d}" for number in (4, 5)),
    Operation.PURGE_QUEUE: tuple(f"MQRR-3.1.4.6-{number:02d}" for number in (2, 3, 4)),
    Operation.START_RECEIVE: tuple(f"MQRR-3.1.4.7-{number:02d}" for number in (3, 4, 5)),
    Operation.CANCEL_RECEIVE: tuple(f"MQRR-3.1.4.8-{number:02d}" for number in (2, 3, 4)),
    Operation.END_RECEIVE: tuple(f"MQRR-3.1.4.9-{number:02d}" for number in (3, 4, 5)),
    Operation.MOVE_MESSAGE: tuple(f"MQRR-3.1.4.10-{number:02d}" for number in (3, 4, 5)),
    Operation.START_TRANSACTIONAL_RECEIVE: (
        "MQRR-3.1.4.13-03",
        "MQRR-3.1.4.13-04",
        "MQRR-3.2.4.4.2-04",
        "MQRR-3.2.4.4.2-05",
        "MQRR-3.2.4.10.2-03",
        "MQRR-3.2.4.10.2-04",
    ),
    Operation.SET_USER_ACKNOWLEDGEMENT_CLASS: (
        *(f"MQRR-3.1.4.14-{number:02d}" for number in (3, 4, 5)),
        "MQRR-3.2.4.5-03",
        "MQRR-3.2.4.5-04",
    ),
    Operation.END_TRANSACTIONAL_RECEIVE: tuple(
        f"MQRR-3.1.4.15-{number:02d}" for number in (3, 4, 5)
    ),
}
"""What is shown by refusing a handle, by the method that refuses it."""


@pytest.mark.parametrize(
    "operation", [pytest.param(each, marks=pytest.mark.spec(*IDS[each])) for each in STUBS]
)
@pytest.mark.parametrize("which", ["null", "closed", "another's", "guessed"])
def test_a_handle_that_is_not_the_callers_or_not_open_is_refused(
    hall: Hall, reader: Reader, operation: Operation, which: str
) -> None:
    hall.send(b"one")
    context = {
        "null": bytes(20),
        "closed": reader.open(),
        "another's": hall.reader().open(),
        "guessed": bytes(4) + b"g" * 16,
    }[which]
    if which == "closed":
        reader.close(context)
    assert reader.fault(operation, STUBS[operation](context)) == MISMATCH
    assert hall.bodies() == [b"one"]


@pytest.mark.spec(
    *(f"MQRR-3.1.4.2-{number:02d}" for number in (5, 8, 10, 12)),
    *(f"MQRR-3.1.4.11-{number:02d}" for number in (9, 13, 15, 17)),
)
@pytest.mark.parametrize("operation", [Operation.OPEN_QUEUE, Operation.OPEN_QUEUE_FOR_MOVE])
def test_what_a_caller_says_of_itself_is_ignored(reader: Reader, operation: Operation) -> None:
    access = 1 if operation is Operation.OPEN_QUEUE else 4
    for said in (
        (Guid(b"\xff" * 16), 0, 0, 0, 0, 0),
        (Guid(bytes(16)), 1, 255, 255, 65_535, 1),
        (Guid(bytes(16)), -1, 5, 0, 2600, -7),
    ):
        request = rpc.OpenQueue(LEDGER_NAME, access, 0, *said)
        reader.stub(operation, rpc.OPEN_QUEUE.encode(request))


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(
            0,
            marks=pytest.mark.spec(
                *(f"MQRR-3.1.4.13-{number:02d}" for number in (10, 16, 17, 18, 25))
            ),
        ),
        pytest.param(
            1,
            marks=pytest.mark.spec(*(f"MQRR-3.1.4.13-{number:02d}" for number in (23, 24, 26, 27))),
        ),
        pytest.param(
            8,
            marks=pytest.mark.spec(
                *(f"MQRR-3.1.4.13-{number:02d}" for number in (28, 29, 30, 31, 32))
            ),
        ),
        pytest.param(
            9,
            marks=pytest.mark.spec(*(f"MQRR-3.1.4.13-{number:02d}" for number in (19, 20, 21, 22))),
        ),
        pytest.param(
            WHOLE,
            marks=pytest.mark.spec(
                "MQRR-3.1.4.7-15",
                *(f"MQRR-3.1.4.13-{number:02d}" for number in (13, 14, 15, 35, 38)),
            ),
        ),
    ],
)
def test_a_receive_in_no_transaction_fills_sections_as_an_ordinary_one(
    hall: Hall, reader: Reader, size: int
) -> None:
    hall.send(b"some body", name=LEDGER)
    context = reader.open(r"DIRECT=OS:ALPHA\private$\ledger")
    # The size of a compound message says nothing about any other.
    ordinary = reader.peek(context, max_body_bytes=WHOLE, max_compound_bytes=0)
    [whole] = ordinary.sections
    stub = transactional(context, size=size)
    found = rpc.RECEIVED.decode(reader.stub(Operation.START_TRANSACTIONAL_RECEIVE, stub))
    assert found.result == 0
    assert found.arrived_unix_s == ordinary.arrived_unix_s == hall.driver.now.unix_s
    [lookup_id] = hall.lookup_ids(LEDGER)
    assert found.sequence_id == lookup_id & (1 << 56) - 1
    if size >= 9:
        assert found.sections == (rpc.Section(0, len(whole.data), whole.data),)
        return
    first, second = found.sections
    assert (first.kind, second.kind) == (1, 2)
    assert first.size_alloc == len(first.data) + 9 - size
    assert second.size_alloc == len(second.data)
    assert first.data + b"some body"[size:] + second.data == whole.data


@pytest.mark.spec(*(f"MQRR-3.1.4.13-{number:02d}" for number in (5, 6, 7, 8, 9, 33, 36, 37)))
def test_such_a_receive_has_cursors_requests_and_a_time_to_be_spoken_of(
    hall: Hall, reader: Reader
) -> None:
    hall.send(b"one", b"two", name=LEDGER)
    context = reader.open(r"DIRECT=OS:ALPHA\private$\ledger")
    start = Operation.START_TRANSACTIONAL_RECEIVE
    cursor = reader.cursor(context).cursor
    first = rpc.RECEIVED.decode(reader.stub(start, transactional(context, 1, cursor=cursor)))
    assert body(first) == b"one"
    reader.close_cursor(context, cursor)
    closed = rpc.RECEIVED.decode(reader.stub(start, transactional(context, 2, cursor=cursor)))
    assert closed.result == 0xC0000008
    again = rpc.RECEIVED.decode(reader.stub(start, transactional(context, 1)))
    assert again.result == 0xC00E0006
    hall.pass_time(300)
    assert hall.bodies(LEDGER) == [b"one", b"two"]


@pytest.mark.spec(*(f"MQRR-3.1.4.15-{number:02d}" for number in (6, 8, 9, 10, 11, 12)))
def test_the_end_of_such_a_receive_is_that_of_an_ordinary_one(hall: Hall, reader: Reader) -> None:
    hall.send(b"one", name=LEDGER)
    context = reader.open(r"DIRECT=OS:ALPHA\private$\ledger")
    end = Operation.END_TRANSACTIONAL_RECEIVE
    nack = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.NACK, 1))
    assert reader.result(end, nack) == 0xC00E0007
    reader.stub(Operation.START_TRANSACTIONAL_RECEIVE, transactional(context, 1))
    other = rpc.END_RECEIVE.encode(rpc.EndReceive(context, Verdict.NACK, 2))
    assert reader.result(end, other) == 0xC00E0006
    assert reader.fault(end, nack[:20] + b"\3\0\0\0\1\0\0\0") == 0x6F7
    assert reader.result(end, nack) == 0
    assert hall.bodies(LEDGER) == [b"one"]


@pytest.mark.spec("MQRR-3.1.4.11-05")
@pytest.mark.parametrize(
    "name", [QueueFormat(0, 0, 0, None), QueueFormat(5, 0, 0, Guid(bytes(16)))]
)
def test_a_target_has_a_name_of_the_right_kind(reader: Reader, name: QueueFormat) -> None:
    request = rpc.OpenQueue(name, 4, 0, Guid(bytes(16)), 1, 6, 1, 7600, 1)
    stub = rpc.OPEN_QUEUE.encode(request)
    assert reader.fault(Operation.OPEN_QUEUE_FOR_MOVE, stub) == 0xC00E0006


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(0, marks=pytest.mark.spec("MQRR-3.1.4.11-04")),
        pytest.param(-28, marks=pytest.mark.spec("MQRR-3.1.4.11-10")),
    ],
)
def test_what_is_passed_by_reference_stands_in_the_stub(reader: Reader, size: int) -> None:
    """A reference says nowhere that it is NULL: without what it leads to, there is no call."""
    request = rpc.OpenQueue(LEDGER_NAME, 4, 0, Guid(bytes(16)), 1, 6, 1, 7600, 1)
    stub = rpc.OPEN_QUEUE.encode(request)
    assert stub[-28:-12] == bytes(16)
    assert reader.fault(Operation.OPEN_QUEUE_FOR_MOVE, stub[:size]) == 0x6F7
    reader.stub(Operation.OPEN_QUEUE_FOR_MOVE, stub)
