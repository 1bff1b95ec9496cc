"""Events that read messages. [MQDMPR 3.1.7.1.10-3.1.7.1.17, 3.1.2.3, 3.1.6.3]"""

from __future__ import annotations

from typing import Any, Final

import pytest

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, bodies, error_name

TIMEOUT = "MQ_ERROR_IO_TIMEOUT"
NOT_FOUND = "MQ_ERROR_MESSAGE_NOT_FOUND"
RECEIVED = "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
CANCELLED = "MQ_ERROR_OPERATION_CANCELLED"
SEQUENCE = "MQ_ERROR_TRANSACTION_SEQUENCE"
DELETED = "MQ_ERROR_QUEUE_DELETED"
ADMIN = r"private$\admin"
WISHES: Final[dict[str, Any]] = {"admin_queue": rf"OS:ALPHA\{ADMIN}", "acknowledge": 0xE}
ACK_RECEIVE, NACK_PURGED = 0x4000, 0xC001


@pytest.fixture
def office() -> Office:
    office = Office()
    office.ok(api.CreateQueue(ADMIN))
    return office


def ask_later(office: Office, request: api.AnyRequest) -> int:
    """Make a call that waits; gives its number."""
    call = office.driver.request(office.app, request)
    office.driver.pump()
    assert (office.app, call) not in office.driver.take_answers()
    return call


def send(office: Office, *sent: bytes) -> dict[int, str | list[bytes]]:
    """Send to `orders`; gives what became of the calls that waited."""
    handle = office.open(ORDERS, AccessMode.SEND)
    packets = [Draft(body=body).packet() for body in sent]
    sending = office.driver.request(office.app, api.Send(handle, packets))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert isinstance(answers.pop((office.app, sending)), api.Sent)
    return {
        call: bodies(reply) if isinstance(reply, api.Entries) else error_name(reply)
        for (_, call), reply in answers.items()
    }


def cursor_on(office: Office, handle: int) -> int:
    cursor: int = office.ok(api.CreateCursor(handle)).cursor
    return cursor


# Dequeue Message.


@pytest.mark.spec("MQDMPR-3.1.7.1.10-01", "MQDMPR-3.1.7.1.10-04")
def test_a_message_is_dequeued_from_the_front_with_its_acknowledgment(office: Office) -> None:
    office.send(b"one", b"two", **WISHES)
    handle = office.open()
    assert bodies(office.ok(api.Receive(handle))) == [b"one"]
    assert office.classes(ADMIN) == [ACK_RECEIVE]
    cursor = cursor_on(office, handle)
    assert bodies(office.ok(api.Receive(handle, cursor=cursor))) == [b"two"]
    assert office.error(api.Receive(handle, timeout_ms=0)) == TIMEOUT
    office.send(b"three", b"four")
    office.ok(api.Receive(handle, peek=True, cursor=cursor))
    office.ok(api.Receive(office.open()))
    assert office.error(api.Receive(handle, cursor=cursor)) == RECEIVED
    assert office.bodies() == [b"four"]


@pytest.mark.spec("MQDMPR-3.1.7.1.10-04", "MQDMPR-3.1.1.10-02")
def test_a_dequeue_waits_for_ever_for_as_long_as_it_says_or_not_at_all(office: Office) -> None:
    handle = office.open()
    assert office.error(api.Receive(handle, timeout_ms=0)) == TIMEOUT
    for_ever = ask_later(office, api.Receive(handle, timeout_ms=None))
    a_while = ask_later(office, api.Receive(handle, timeout_ms=5000))
    by_cursor = ask_later(
        office, api.Receive(handle, timeout_ms=None, cursor=cursor_on(office, handle))
    )
    office.pass_time(5)
    [(key, ended)] = office.driver.take_answers().items()
    assert (key[1], error_name(ended)) == (a_while, TIMEOUT)
    office.pass_time(10_000_000)
    assert send(office, b"one", b"two") == {for_ever: [b"one"], by_cursor: [b"two"]}


@pytest.mark.spec("MQDMPR-3.1.7.1.10-04", "MQDMPR-3.1.7.1.11-02", "MQDMPR-3.1.7.3.1-02")
@pytest.mark.parametrize(
    "how", ["dequeue", "begin", "by lookup identifier", "peek", "peek next", "end", "find"]
)
def test_nothing_is_read_from_a_queue_that_is_gone(office: Office, how: str) -> None:
    """The error is the one that is made for this (C-140a)."""
    office.send(b"one")
    handle = office.open()
    cursor = cursor_on(office, handle)
    [lookup_id] = office.lookup_ids()
    if how == "end":
        office.ok(api.Receive(handle, lock=True))
    office.ok(api.DeleteQueue(ORDERS))
    requests: dict[str, api.AnyRequest] = {
        "dequeue": api.Receive(handle, timeout_ms=None),
        "begin": api.Receive(handle, timeout_ms=None, lock=True),
        "by lookup identifier": api.Seek(handle, "current", lookup_id),
        "peek": api.Receive(handle, timeout_ms=None, peek=True),
        "peek next": api.Receive(handle, timeout_ms=None, peek=True, cursor=cursor, next=True),
        "end": api.EndReceive(handle, lookup_id, True),
        "find": api.Find(handle, bytes(20), timeout_ms=None),
    }
    gone = "MQ_ERROR_QUEUE_NOT_AVAILABLE" if how == "end" else DELETED
    assert office.error(requests[how]) == gone


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.10-01", "MQDMPR-3.1.7.1.10-02", "MQDMPR-3.1.1.13-02", "MQDMPR-3.1.1.13-04"
)
@pytest.mark.parametrize("commit", [True, False])
def test_a_dequeue_in_a_transaction_is_an_operation_of_it_with_the_reason_received(
    office: Office, commit: bool
) -> None:
    office.send(b"one", name=LEDGER, **WISHES)
    handle, work = office.open(LEDGER), office.begin()
    assert bodies(office.ok(api.Receive(handle, transaction=work))) == [b"one"]
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 1, "it is only locked"
    assert office.error(api.Receive(handle)) == TIMEOUT
    assert office.classes(ADMIN) == []
    office.ok(api.Commit(work) if commit else api.Abort(work))
    assert office.classes(ADMIN) == ([ACK_RECEIVE] if commit else [])
    assert office.bodies(LEDGER) == ([] if commit else [b"one"])


@pytest.mark.spec("MQDMPR-3.1.7.1.10-03")
def test_a_read_is_in_a_transaction_or_in_two_steps_and_not_both(office: Office) -> None:
    office.send(b"one", name=LEDGER)
    handle, work = office.open(LEDGER), office.begin()
    for request in (
        api.Receive(handle, transaction=work, lock=True),
        api.Seek(handle, "first", transaction=work, lock=True),
        api.Find(handle, bytes(20), transaction=work, lock=True),
    ):
        assert office.error(request) == "MQ_ERROR_INVALID_PARAMETER"
    assert office.bodies(LEDGER) == [b"one"]


# Dequeue Message Begin and End.


@pytest.mark.spec("MQDMPR-3.1.7.1.10-02", "MQDMPR-3.1.7.1.11-01", "MQDMPR-3.1.7.1.11-02")
def test_the_first_step_of_a_read_locks_the_message_and_leaves_it(office: Office) -> None:
    office.send(b"one", b"two", **WISHES)
    handle = office.open()
    assert bodies(office.ok(api.Receive(handle, lock=True))) == [b"one"]
    cursor = cursor_on(office, handle)
    assert bodies(office.ok(api.Receive(handle, cursor=cursor, lock=True))) == [b"two"]
    assert office.error(api.Receive(handle, lock=True)) == TIMEOUT
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 2
    assert office.classes(ADMIN) == []
    waiting = ask_later(office, api.Receive(handle, lock=True, timeout_ms=1000))
    assert send(office, b"three") == {waiting: [b"three"]}
    assert office.bodies() == []


@pytest.mark.spec("MQDMPR-3.1.7.1.12-01", "MQDMPR-3.1.7.1.12-02")
@pytest.mark.parametrize("purged", [False, True])
@pytest.mark.parametrize("remove", [False, True])
def test_the_second_step_takes_the_message_out_or_makes_it_available(
    office: Office, remove: bool, purged: bool
) -> None:
    office.send(b"one", **WISHES)
    handle = office.open()
    [lookup_id] = office.lookup_ids()
    assert office.error(api.EndReceive(handle, lookup_id, remove)) == SEQUENCE, "it is available"
    office.ok(api.Receive(handle, lock=True))
    if purged:
        office.ok(api.Purge(handle))
    office.ok(api.EndReceive(handle, lookup_id, remove))
    assert office.bodies() == ([] if remove or purged else [b"one"])
    told = [NACK_PURGED] if purged else [ACK_RECEIVE] if remove else []
    assert office.classes(ADMIN) == told


# Read Message By Lookup Identifier.


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.13-01",
    "MQDMPR-3.1.7.1.13-02",
    "MQDMPR-3.1.7.1.13-04",
    "MQDMPR-3.1.7.1.13-05",
)
@pytest.mark.parametrize("action", ["first", "previous", "current", "next", "last"])
def test_a_message_is_read_by_lookup_identifier_to_stay_to_be_locked_or_to_go(
    office: Office, action: str
) -> None:
    office.send(b"first", b"previous", b"current", b"next", b"last", **WISHES)
    middle = office.lookup_ids()[2]
    handle = office.open()
    sent = office.bodies()
    assert bodies(office.ok(api.Seek(handle, action, middle, peek=True))) == [action.encode()]
    assert office.bodies() == sent
    [entry] = office.ok(api.Seek(handle, action, middle, lock=True)).entries
    assert len(office.bodies()) == 4
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 5
    office.ok(api.EndReceive(handle, entry.lookup_id, False))
    assert bodies(office.ok(api.Seek(handle, action, middle))) == [action.encode()]
    assert office.bodies() == [body for body in sent if body != action.encode()]
    assert office.classes(ADMIN) == [ACK_RECEIVE]


@pytest.mark.spec("MQDMPR-3.1.7.1.13-03", "MQDMPR-3.1.7.1.13-05")
def test_a_transaction_takes_by_lookup_identifier_and_a_peek_has_none(office: Office) -> None:
    """A transaction that is named with a peek takes nothing. [MQDMPR 3.1.7.1.13]"""
    office.send(b"one", name=LEDGER, **WISHES)
    handle, work = office.open(LEDGER), office.begin()
    [lookup_id] = office.lookup_ids(LEDGER)
    office.ask(api.Seek(handle, "current", lookup_id, peek=True, transaction=work))
    assert bodies(office.ok(api.Receive(handle, peek=True))) == [b"one"], "it is not locked"
    office.ok(api.Seek(handle, "current", lookup_id, transaction=work))
    assert office.error(api.Receive(handle)) == TIMEOUT
    office.ok(api.Commit(work))
    assert office.classes(ADMIN) == [ACK_RECEIVE]


@pytest.mark.spec("MQDMPR-3.1.7.3.3-01")
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("available", None),
        ("locked", "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"),
        ("locked, peeked", "MQ_ERROR_TRANSACTION_USAGE"),
        ("locked, peeked by leave", None),
        ("gone", NOT_FOUND),
    ],
)
def test_what_a_lookup_identifier_finds_depends_on_the_state_of_its_message(
    office: Office, how: str, error: str | None
) -> None:
    office.send(b"one", name=LEDGER)
    handle = office.open(LEDGER)
    [lookup_id] = office.lookup_ids(LEDGER)
    if how.startswith("locked"):
        by_leave = "leave" in how
        office.ok(
            api.Seek(handle, "first", transaction=office.begin(), allow_peek=by_leave),
        )
    elif how == "gone":
        office.ok(api.Receive(handle))
    reply = office.ask(api.Seek(handle, "current", lookup_id, peek="peeked" in how))
    found = error_name(reply) if isinstance(reply, api.Failed) else None
    assert found == error


# Peek Next Message, Peek Message.


@pytest.mark.spec("MQDMPR-3.1.7.1.14-01", "MQDMPR-3.1.7.1.14-02")
def test_the_next_message_is_peeked_now_or_when_it_comes(office: Office) -> None:
    office.send(b"one", b"two")
    handle = office.open()
    cursor = cursor_on(office, handle)

    def on(timeout_ms: int | None = 0) -> api.Receive:
        return api.Receive(handle, timeout_ms=timeout_ms, peek=True, cursor=cursor, next=True)

    assert office.error(on()) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    office.ok(api.Receive(handle, peek=True, cursor=cursor))
    assert bodies(office.ok(on())) == [b"two"]
    assert office.error(on()) == TIMEOUT
    waiting = ask_later(office, on(1000))
    office.pass_time(1)
    assert error_name(office.driver.take_answers()[office.app, waiting]) == TIMEOUT
    peeking = ask_later(office, on(None))
    assert send(office, b"three") == {peeking: [b"three"]}
    assert bodies(office.ok(api.Receive(handle, peek=True, cursor=cursor))) == [b"three"]
    assert office.bodies() == [b"one", b"two", b"three"]


@pytest.mark.spec("MQDMPR-3.1.7.1.15-01", "MQDMPR-3.1.7.1.15-02")
@pytest.mark.parametrize("by_cursor", [False, True])
def test_a_message_is_peeked_now_or_when_it_comes(office: Office, by_cursor: bool) -> None:
    handle = office.open()
    cursor = cursor_on(office, handle) if by_cursor else 0

    def peek(timeout_ms: int | None = 0) -> api.Receive:
        return api.Receive(handle, timeout_ms=timeout_ms, peek=True, cursor=cursor)

    assert office.error(peek()) == TIMEOUT
    waiting = ask_later(office, peek(1000))
    office.pass_time(1)
    assert error_name(office.driver.take_answers()[office.app, waiting]) == TIMEOUT
    waiting = ask_later(office, peek(None))
    assert send(office, b"one") == {waiting: [b"one"]}
    assert bodies(office.ok(peek())) == bodies(office.ok(peek())) == [b"one"]
    office.ok(api.Receive(handle))
    assert office.error(peek()) == (RECEIVED if by_cursor else TIMEOUT)


# Waiting: the timer, and what ends it.


@pytest.mark.spec(
    "MQDMPR-3.1.2.3-01",
    "MQDMPR-3.1.2.3-02",
    "MQDMPR-3.1.6.3-01",
    "MQDMPR-3.1.6.3-02",
    "MQDMPR-3.1.7.3.4-01",
    "MQDMPR-3.1.7.3.4-02",
    "MQDMPR-3.1.7.3.4-03",
)
def test_a_waiting_read_ends_after_its_time_and_it_alone(office: Office) -> None:
    handle = office.open()
    calls = {
        ask_later(office, api.Receive(handle, timeout_ms=timeout_ms)): timeout_ms
        for timeout_ms in (3000, 1500, 2000)
    }
    ended: dict[int, int] = {}
    for ticks_ms in range(0, 4000, 500):
        office.driver.now = Instant(ticks_ms, START_S + ticks_ms // 1000)
        office.driver.pump()
        for (_, call), reply in office.driver.take_answers().items():
            assert error_name(reply) == TIMEOUT
            ended[call] = ticks_ms
    assert ended == calls


@pytest.mark.spec("MQDMPR-3.1.2.3-03")
def test_a_read_that_waits_for_ever_does(office: Office) -> None:
    waiting = ask_later(office, api.Receive(office.open(), timeout_ms=None))
    assert office.driver.manager.next_wake_ms(office.driver.now) is None
    office.pass_time(100 * 365 * 86_400)
    assert office.driver.take_answers() == {}
    assert send(office, b"one") == {waiting: [b"one"]}


@pytest.mark.spec("MQDMPR-3.1.7.3.1-01", "MQDMPR-3.1.7.3.1-02", "MQDMPR-3.1.7.3.6-01")
def test_a_read_that_was_satisfied_waits_no_more(office: Office) -> None:
    handle = office.open()
    waiting = ask_later(office, api.Receive(handle, timeout_ms=5000))
    assert office.ok(api.GetQueue(ORDERS)).queues[0].waiting_count == 1
    assert send(office, b"one") == {waiting: [b"one"]}
    assert office.ok(api.GetQueue(ORDERS)).queues[0].waiting_count == 0
    office.pass_time(5)
    assert office.driver.take_answers() == {}, "its timer has ended with it"
    assert office.bodies() == []


@pytest.mark.spec(
    "MQDMPR-3.1.7.2.2-01",
    "MQDMPR-3.1.7.2.2-02",
    "MQDMPR-3.1.7.3.6-01",
    "MQDMPR-3.1.7.3.7-01",
    "MQDMPR-3.1.1.10-01",
)
def test_readers_are_released_one_after_the_other_up_to_the_first_that_takes(
    office: Office,
) -> None:
    handle, other = office.open(), office.open()
    first = ask_later(office, api.Receive(handle, timeout_ms=None, peek=True))
    second = ask_later(office, api.Receive(other, timeout_ms=None, peek=True))
    taking = ask_later(office, api.Receive(handle, timeout_ms=None))
    third = ask_later(office, api.Receive(handle, timeout_ms=None, peek=True))
    fourth = ask_later(office, api.Receive(other, timeout_ms=None))
    assert send(office, b"one") == {first: [b"one"], second: [b"one"], taking: [b"one"]}
    assert send(office, b"two") == {third: [b"two"], fourth: [b"two"]}
    assert office.bodies() == []


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.17-01",
    "MQDMPR-3.1.7.1.17-02",
    "MQDMPR-3.1.7.3.5-01",
    "MQDMPR-3.1.7.3.5-02",
)
def test_a_waiting_read_is_cancelled_by_its_tag_and_no_other(office: Office) -> None:
    handle = office.open()
    cancelled = ask_later(office, api.Receive(handle, timeout_ms=2000))
    stays = ask_later(office, api.Receive(handle, timeout_ms=2000))
    office.driver.request(office.app, api.Cancel(cancelled))
    office.driver.pump()
    answers = {call: reply for (_, call), reply in office.driver.take_answers().items()}
    assert error_name(answers.pop(cancelled)) == CANCELLED
    assert list(answers.values()) == [api.Done()]
    assert office.error(api.Cancel(cancelled)) == "MQ_ERROR_INVALID_PARAMETER", "it is not there"
    office.pass_time(2)
    [(key, ended)] = office.driver.take_answers().items()
    assert (key[1], error_name(ended)) == (stays, TIMEOUT), "each ends with its own status"


# Move Message.


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.16-01",
    "MQDMPR-3.1.7.1.16-03",
    "MQDMPR-3.1.7.1.16-04",
)
def test_a_moved_message_is_available_in_the_other_queue_at_its_place(office: Office) -> None:
    office.send(b"low", priority=1)
    office.send(b"high", priority=6)
    office.send(b"middle", priority=3)
    sub = ORDERS + ";sub"
    handle, target = office.open(), office.open(sub, AccessMode.MOVE)
    waiting = ask_later(office, api.Receive(office.open(sub), timeout_ms=None, peek=True))
    high, middle, low = office.lookup_ids()
    move = office.driver.request(office.app, api.Move(handle, low, target))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert answers[office.app, move] == api.Done()
    assert bodies(answers[office.app, waiting]) == [b"low"]
    for lookup_id in (middle, high):
        office.ok(api.Move(handle, lookup_id, target))
    assert office.bodies() == []
    assert office.bodies(sub) == [b"high", b"middle", b"low"]


@pytest.mark.spec("MQDMPR-3.1.7.1.16-03", "MQDMPR-3.1.1.13-03", "MQDMPR-3.1.4.4-03")
def test_a_move_in_a_transaction_names_its_target_and_ends_with_it(office: Office) -> None:
    office.send(b"one", b"two", name=LEDGER)
    sub, other = LEDGER + ";sub", LEDGER + ";other"
    handle = office.open(LEDGER)
    targets = [office.open(name, AccessMode.MOVE) for name in (sub, other)]
    one, two = office.lookup_ids(LEDGER)
    work = office.begin()
    assert office.error(api.Move(handle, one, 99, work)) == "MQ_ERROR_INVALID_HANDLE"
    office.ok(api.Move(handle, two, targets[0], work))
    office.ok(api.Move(handle, one, targets[0], work))
    assert office.bodies(LEDGER) == office.bodies(sub) == [], "locked, and not there yet"
    office.ok(api.Commit(work))
    assert office.bodies(sub) == [b"one", b"two"], "in the order of a queue"
    assert office.bodies(other) == []


@pytest.mark.spec("MQDMPR-3.1.7.1.16-02")
@pytest.mark.parametrize("name", ["system$;deadletter", "system$;deadxact", "system$;journal"])
def test_nothing_is_moved_into_a_system_queue_by_a_transaction(office: Office, name: str) -> None:
    assert office.error(api.OpenQueue(name, AccessMode.MOVE)) == "MQ_ERROR_ACCESS_DENIED"
