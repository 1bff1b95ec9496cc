"""Sending, receiving, browsing, moving and purging messages, with the errors they can meet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from openmsmq.api import messages as api
from openmsmq.manager.messages.housekeeping import SLICE_ROWS
from openmsmq.manager.outputs import Persist
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from openmsmq.storage.port import StoreFull
from openmsmq.wire.packets import UserMessage, encode
from tests.strategies.messages import Draft
from tests.strategies.packets import user_messages
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, bodies, error_name, message

ADMIN = r"private$\admin"
ADMIN_NAME = r"OS:ALPHA\private$\admin"
PACKET = Draft().packet()
NUMBER = Draft(transactional=True).packet()
NOT_THERE = (4 << 56) + 12345


@pytest.fixture
def office() -> Office:
    office = Office()
    office.ok(api.CreateQueue(ADMIN))
    return office


# Handles 1 to 5 of `_handles` below: send and receive `orders`, peek it, send and receive `ledger`.
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (api.Send(99, [PACKET]), "MQ_ERROR_INVALID_HANDLE"),
        (api.Send(2, [PACKET]), "MQ_ERROR_ACCESS_DENIED"),
        (api.Send(1, [PACKET], api.OWN_TRANSACTION), "MQ_ERROR_TRANSACTION_USAGE"),
        (api.Send(1, [NUMBER]), "MQ_ERROR_TRANSACTION_USAGE"),
        (api.Send(4, [NUMBER]), "MQ_ERROR_TRANSACTION_USAGE"),
        (api.Send(4, [PACKET], api.OWN_TRANSACTION), "MQ_ERROR_TRANSACTION_USAGE"),
        (api.Send(4, [NUMBER], 77), "MQ_ERROR_TRANSACTION_SEQUENCE"),
        (api.Send(1, [PACKET], -5), "MQ_ERROR_TRANSACTION_SEQUENCE"),
        (api.Send(1, [PACKET, b"garbage"]), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Send(1, [PACKET + b"more"]), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Send(1, [b""]), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Send(1, [bytes(4_194_305)]), "MQ_ERROR_INSUFFICIENT_RESOURCES"),
        (api.Receive(99), "MQ_ERROR_INVALID_HANDLE"),
        (api.Receive(1), "MQ_ERROR_ACCESS_DENIED"),
        (api.Receive(3), "MQ_ERROR_ACCESS_DENIED"),
        (api.Receive(2), "MQ_ERROR_IO_TIMEOUT"),
        (api.Receive(2, count=0), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Receive(2, timeout_ms=-1), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Receive(2, cursor=9), "MQ_ERROR_INVALID_HANDLE"),
        (api.Receive(2, peek=True, next=True), "MQ_ERROR_ILLEGAL_CURSOR_ACTION"),
        (api.Receive(2, transaction=77), "MQ_ERROR_TRANSACTION_SEQUENCE"),
        (api.Receive(5, transaction=-1), "MQ_ERROR_TRANSACTION_SEQUENCE"),
        (api.Receive(2, lock=True, peek=True), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Receive(3, lock=True), "MQ_ERROR_ACCESS_DENIED"),
        (api.Receive(2, body_max_bytes=-1), "MQ_ERROR_INVALID_PARAMETER"),
        (api.EndReceive(99, NOT_THERE, True), "MQ_ERROR_INVALID_HANDLE"),
        (api.EndReceive(2, NOT_THERE, True), "MQ_ERROR_TRANSACTION_SEQUENCE"),
        (api.Seek(2, "first", allow_peek=True), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Seek(2, "first"), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "last"), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "next", -(1 << 60)), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "next", (1 << 64) - 1), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "previous", -1), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "previous", 1 << 70), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "current", -1), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "current", 1 << 64), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(2, "sideways"), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Seek(3, "first"), "MQ_ERROR_ACCESS_DENIED"),
        (api.Find(2), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Find(2, bytes(20), bytes(20)), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Find(2, bytes(19)), "MQ_ERROR_ILLEGAL_PROPERTY_SIZE"),
        (api.Find(2, None, bytes(21)), "MQ_ERROR_ILLEGAL_PROPERTY_SIZE"),
        (api.Find(2, bytes(20)), "MQ_ERROR_IO_TIMEOUT"),
        (api.FetchRange(1, 0, 10), "MQ_ERROR_ACCESS_DENIED"),
        (api.FetchRange(2, 0, 10, 0), "MQ_ERROR_INVALID_PARAMETER"),
        (api.RemoveRange(3, 0, 10), "MQ_ERROR_ACCESS_DENIED"),
        (api.Purge(3), "MQ_ERROR_ACCESS_DENIED"),
        (api.Purge(99), "MQ_ERROR_INVALID_HANDLE"),
        (api.CreateCursor(1), "MQ_ERROR_ACCESS_DENIED"),
        (api.CreateCursor(99), "MQ_ERROR_INVALID_HANDLE"),
        (api.CloseCursor(99), "MQ_ERROR_INVALID_HANDLE"),
        (api.Cancel(99), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Move(2, NOT_THERE, 99), "MQ_ERROR_INVALID_HANDLE"),
        (api.Move(2, NOT_THERE, 5), "MQ_ERROR_ACCESS_DENIED"),
        (api.Move(2, NOT_THERE, 7), "MQ_ERROR_INVALID_PARAMETER"),
        (api.Move(2, NOT_THERE, 6), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Move(2, -1, 6), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Move(3, NOT_THERE, 6), "MQ_ERROR_ACCESS_DENIED"),
        (api.Move(2, NOT_THERE, 6, 77), "MQ_ERROR_TRANSACTION_SEQUENCE"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_call_that_makes_no_sense_gets_the_name_of_its_error(
    office: Office, request_: api.AnyRequest, error: str
) -> None:
    for name, access in (
        (ORDERS, AccessMode.SEND),
        (ORDERS, AccessMode.RECEIVE),
        (ORDERS, AccessMode.PEEK),
        (LEDGER, AccessMode.SEND),
        (LEDGER, AccessMode.RECEIVE),
        (ORDERS + ";sub", AccessMode.MOVE),
        (LEDGER + ";sub", AccessMode.MOVE),
    ):
        office.open(name, access)
    assert office.error(request_) == error
    assert office.bodies() == []


@pytest.mark.spec("MQMQ-2.2.19.1-03")
def test_messages_come_by_priority_and_then_by_arrival(office: Office) -> None:
    for priority in (3, 7, 0, 3):
        office.send(b"%d" % priority, priority=priority)
    assert office.bodies() == [b"7", b"3", b"3", b"0"]
    handle = office.open()
    assert bodies(office.ok(api.Receive(handle, 3))) == [b"7", b"3", b"3"]


def test_a_transactional_queue_keeps_the_order_of_arrival(office: Office) -> None:
    for priority in (3, 7, 0):
        office.send(b"%d" % priority, name=LEDGER, priority=priority)
    assert office.bodies(LEDGER) == [b"3", b"7", b"0"]


@pytest.mark.spec("MQMQ-2.2.19.2-06")
def test_the_queue_manager_stamps_number_time_and_source(office: Office) -> None:
    [number] = office.send(b"one")
    handle = office.open()
    [entry] = office.ok(api.Receive(handle)).entries
    header = message(entry).user
    assert (header.message_number, header.sent_time_s) == (number, START_S)
    assert header.source == office.driver.manager.identifier
    assert entry.arrived_time_s == START_S


def test_all_packets_of_a_send_are_taken_or_none(office: Office) -> None:
    handle = office.open(ORDERS, AccessMode.SEND)
    assert office.error(api.Send(handle, [PACKET, b""])) == "MQ_ERROR_INVALID_PARAMETER"
    assert office.bodies() == []


def test_a_queue_takes_no_more_than_its_quota(office: Office) -> None:
    office.ok(api.CreateQueue(r"private$\small", quota_kb=1))
    handle = office.open(r"private$\small", AccessMode.SEND)
    big = Draft(body=bytes(700)).packet()
    office.ok(api.Send(handle, [big]))
    assert office.error(api.Send(handle, [big])) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    office.ok(api.Receive(office.open(r"private$\small")))
    office.ok(api.Send(handle, [big]))


def test_subqueues_share_the_quota_of_their_queue(office: Office) -> None:
    office.ok(api.CreateQueue(r"private$\small", quota_kb=1))
    handle = office.open(r"private$\small", AccessMode.SEND)
    big = Draft(body=bytes(700)).packet()
    office.ok(api.Send(handle, [big]))
    target = office.open(r"private$\small;sub", AccessMode.MOVE)
    [lookup_id] = office.lookup_ids(r"private$\small")
    office.ok(api.Move(office.open(r"private$\small"), lookup_id, target))
    assert office.error(api.Send(handle, [big])) == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_the_queue_manager_takes_no_more_than_its_quota() -> None:
    office = Office(quota_kb=1)
    handle = office.open(ORDERS, AccessMode.SEND)
    big = Draft(body=bytes(700)).packet()
    office.ok(api.Send(handle, [big]))
    assert office.error(api.Send(handle, [big])) == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_a_full_journal_takes_no_copies(office: Office) -> None:
    name = r"private$\kept"
    office.ok(api.CreateQueue(name, journaling=True, journal_quota_kb=1))
    office.send(bytes(700), bytes(701), name=name)
    handle = office.open(name)
    office.ok(api.Receive(handle, 2))
    assert [len(body) for body in office.bodies(name + ";journal")] == [700]
    office.ok(api.ChangeQueue(name, journal_quota_kb=2))
    office.send(bytes(702), name=name)
    office.ok(api.Receive(handle))
    assert [len(body) for body in office.bodies(name + ";journal")] == [700, 702]


def test_only_received_messages_are_journaled(office: Office) -> None:
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    office.send(b"one", b"two", b"three", b"four")
    handle = office.open()
    office.ok(api.Receive(handle))
    office.ok(api.RemoveRange(handle, 0, (office.lookup_ids()[0] & ((1 << 56) - 1)) + 1))
    office.ok(api.Receive(handle, peek=True))
    office.ok(api.Purge(handle))
    assert office.bodies(ORDERS + ";journal") == [b"one", b"two"]


def test_what_is_received_from_a_subqueue_is_not_journaled(office: Office) -> None:
    """A subqueue has no journal, and what happens in it does not happen in its queue."""
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    office.send(b"one")
    target = office.open(ORDERS + ";sub", AccessMode.MOVE)
    office.ok(api.Move(office.open(), office.lookup_ids()[0], target))
    office.ok(api.Receive(office.open(ORDERS + ";sub")))
    assert office.bodies(ORDERS + ";journal") == []


def test_a_sender_gets_copies_and_acknowledgments_as_it_wished(office: Office) -> None:
    wishes = {"admin_queue": ADMIN_NAME, "acknowledge": 0xF}
    office.send(b"one", journal_on_success=True, **wishes)
    assert office.classes(ADMIN) == [0x0002]
    assert office.bodies("system$;journal") == [b"one"]
    office.ok(api.Receive(office.open()))
    assert office.classes(ADMIN) == [0x0002, 0x4000]
    office.send(b"two", journal_on_failure=True, **wishes)
    office.ok(api.Purge(office.open()))
    assert office.classes(ADMIN) == [0x0002, 0x4000, 0x0002, 0xC001]
    assert office.bodies("system$;deadletter") == [b"two"]


@pytest.mark.parametrize(
    "admin",
    [
        r"OS:ALPHA\private$\no",
        r"OS:ALPHA\system$;deadletter",
        r"OS:ALPHA\private$\ledger",
        r"OS:ALPHA\private$\orders;new",
        "nonsense",
    ],
)
def test_an_acknowledgment_that_nobody_can_take_is_dropped(office: Office, admin: str) -> None:
    before = len(office.ok(api.ListQueues(everything=True)).queues)
    office.send(b"one", admin_queue=admin, acknowledge=0xF)
    status = office.ok(api.GetStatus())
    assert status.message_count == 1
    assert len(office.ok(api.ListQueues(everything=True)).queues) == before


@given(packet=user_messages())
@settings(max_examples=200)
def test_no_packet_harms_the_queue_manager(packet: UserMessage) -> None:
    office = Office()
    data = encode(packet)
    inside = packet.transaction is not None
    handle = office.open(LEDGER if inside else ORDERS, AccessMode.SEND)
    office.ask(api.Send(handle, [data], api.OWN_TRANSACTION if inside else 0))
    for name in (ORDERS, LEDGER):
        office.ask(api.Receive(office.open(name)))


@pytest.mark.parametrize(
    ("action", "found"),
    [("first", b"0"), ("last", b"4"), ("current", b"2"), ("next", b"3"), ("previous", b"1")],
)
def test_a_message_is_found_from_a_lookup_identifier(
    office: Office, action: str, found: bytes
) -> None:
    office.send(b"0", b"1", b"2", b"3", b"4")
    handle = office.open()
    middle = office.lookup_ids()[2]
    assert bodies(office.ok(api.Seek(handle, action, middle, peek=True))) == [found]
    assert bodies(office.ok(api.Seek(handle, action, middle))) == [found]
    assert found not in office.bodies()


def test_the_neighbours_of_a_vanished_message_are_still_found(office: Office) -> None:
    office.send(b"0", b"1", b"2")
    handle = office.open()
    middle = office.lookup_ids()[1]
    office.ok(api.Seek(handle, "current", middle))
    assert bodies(office.ok(api.Seek(handle, "next", middle, peek=True))) == [b"2"]
    assert bodies(office.ok(api.Seek(handle, "previous", middle, peek=True))) == [b"0"]
    assert office.error(api.Seek(handle, "current", middle)) == "MQ_ERROR_MESSAGE_NOT_FOUND"


def test_a_message_is_found_by_identifier_and_by_correlation(office: Office) -> None:
    office.send(b"0", b"1")
    [number] = office.send(b"2", correlation_id=b"c" * 20)
    identifier = bytes(office.driver.manager.identifier) + number.to_bytes(4, "little")
    handle = office.open()
    assert bodies(office.ok(api.Find(handle, identifier, peek=True))) == [b"2"]
    assert bodies(office.ok(api.Find(handle, correlation_id=b"c" * 20))) == [b"2"]
    assert office.bodies() == [b"0", b"1"]


def test_ranges_go_by_arrival_whatever_the_priority(office: Office) -> None:
    for priority in (0, 7, 3):
        office.send(b"%d" % priority, priority=priority)
    handle = office.open()
    everything = office.ok(api.FetchRange(handle, 0, 1 << 56))
    assert bodies(everything) == [b"0", b"7", b"3"]
    assert office.ok(api.FetchRange(handle, -5, 1 << 63)) == everything
    assert len(office.ok(api.FetchRange(handle, 0, 1 << 56, bytes_max=1)).entries) == 1
    second = everything.entries[1].lookup_id & ((1 << 56) - 1)
    assert office.ok(api.RemoveRange(handle, 0, second + 1)) == api.Removed(2)
    assert office.ok(api.RemoveRange(handle, 0, second + 1)) == api.Removed(0)
    assert office.ok(api.RemoveRange(handle, -9, 1 << 63)) == api.Removed(1)


# Cursors.


def test_a_cursor_goes_from_message_to_message(office: Office) -> None:
    office.send(b"0", b"1", b"2")
    handle = office.open()
    cursor = office.ok(api.CreateCursor(handle)).cursor
    first = api.Receive(handle, peek=True, cursor=cursor)
    on = api.Receive(handle, peek=True, cursor=cursor, next=True)
    assert office.error(on) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    assert bodies(office.ok(first)) == bodies(office.ok(first)) == [b"0"]
    assert bodies(office.ok(on)) == [b"1"]
    office.ok(api.Seek(office.open(), "current", office.lookup_ids()[1]))
    assert office.error(first) == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    assert bodies(office.ok(on)) == [b"2"]
    assert office.error(on) == "MQ_ERROR_IO_TIMEOUT"
    office.send(b"3")
    assert bodies(office.ok(on)) == [b"3"]
    office.ok(api.CloseCursor(cursor))
    assert office.error(on) == "MQ_ERROR_INVALID_HANDLE"


def test_a_cursor_belongs_to_one_handle(office: Office) -> None:
    cursor = office.ok(api.CreateCursor(office.open())).cursor
    assert office.error(api.Receive(office.open(), cursor=cursor)) == "MQ_ERROR_INVALID_HANDLE"


# Waiting.


def test_a_waiting_read_gets_the_next_message_and_the_oldest_is_first(office: Office) -> None:
    handle, app = office.open(), office.app
    first = office.driver.request(app, api.Receive(handle, timeout_ms=None))
    second = office.driver.request(app, api.Receive(handle, timeout_ms=None))
    sender = office.open(ORDERS, AccessMode.SEND)
    office.driver.request(app, api.Send(sender, [Draft(body=b"%d" % i).packet() for i in (1, 2)]))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert bodies(answers[app, first]) == [b"1"]
    assert bodies(answers[app, second]) == [b"2"]


def test_a_waiting_read_ends_in_time_and_not_before(office: Office) -> None:
    handle = office.open()
    assert office.ask(api.Receive(handle, timeout_ms=2000)) is None
    office.pass_time(1)
    assert office.driver.take_answers() == {}
    # A wall clock that is set back does not delay it.
    office.driver.now = Instant(2000, START_S - 500)
    office.driver.pump()
    [reply] = office.driver.take_answers().values()
    assert error_name(reply) == "MQ_ERROR_IO_TIMEOUT"


def test_a_waiting_read_can_be_cancelled_once(office: Office) -> None:
    call = office.driver.request(office.app, api.Receive(office.open(), timeout_ms=None))
    office.driver.request(office.app, api.Cancel(call))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert error_name(answers[office.app, call]) == "MQ_ERROR_OPERATION_CANCELLED"
    assert office.error(api.Cancel(call)) == "MQ_ERROR_INVALID_PARAMETER"


def test_closing_a_queue_cancels_the_reads_that_wait_on_it(office: Office) -> None:
    handle = office.open()
    call = office.driver.request(office.app, api.Receive(handle, timeout_ms=None))
    office.driver.request(office.app, api.CloseQueue(handle))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert error_name(answers[office.app, call]) == "MQ_ERROR_OPERATION_CANCELLED"


def test_a_read_is_cancelled_too_if_the_disk_refuses_what_it_had_when_its_queue_was_closed(
    office: Office,
) -> None:
    handle, sending = office.open(), office.open(access=AccessMode.SEND)
    call = office.driver.request(office.app, api.Receive(handle, timeout_ms=None))
    office.driver.pump()
    office.driver.request(office.app, api.Send(sending, [Draft(body=b"refused").packet()]))
    office.driver.request(office.app, api.CloseQueue(handle))
    assert office.driver.pump(fail=1) == 1
    answers = office.driver.take_answers()
    assert error_name(answers[office.app, call]) == "MQ_ERROR_OPERATION_CANCELLED"


def test_no_more_reads_wait_than_configured() -> None:
    office = Office(waiting_reads_max=1)
    handle = office.open()
    assert office.ask(api.Receive(handle, timeout_ms=None)) is None
    full = office.error(api.Receive(handle, timeout_ms=None))
    assert full == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_a_read_whose_message_the_disk_refuses_waits_on_though_others_have_all_places() -> None:
    office = Office(waiting_reads_max=1)
    reading, sending = office.open(), office.open(access=AccessMode.SEND)
    first = office.driver.request(office.app, api.Receive(reading, timeout_ms=None))
    office.driver.pump()
    office.driver.request(office.app, api.Send(sending, [Draft(body=b"refused").packet()]))
    second = office.driver.request(office.app, api.Receive(reading, timeout_ms=None))
    assert office.driver.pump(fail=1) == 1
    assert not {(office.app, first), (office.app, second)} & office.driver.take_answers().keys()
    packets = [Draft(body=body).packet() for body in (b"one", b"two")]
    office.driver.request(office.app, api.Send(sending, packets))
    office.driver.pump()
    answers = office.driver.take_answers()
    received = [bodies(answers[office.app, call]) for call in (first, second)]
    assert sorted(received) == [[b"one"], [b"two"]]


def test_reads_that_ended_early_leave_nothing_behind(office: Office) -> None:
    handle = office.open()
    assert office.ask(api.Receive(handle, timeout_ms=1000)) is None
    for _ in range(1000):
        call = office.driver.request(office.app, api.Receive(handle, timeout_ms=3_600_000))
        office.driver.request(office.app, api.Cancel(call))
    office.driver.pump()
    reads = office.driver.manager._reads  # noqa: SLF001 - memory is what is tested
    assert len(reads._timeouts) < 200  # noqa: SLF001 - as above
    assert office.ok(api.GetQueue(ORDERS)).queues[0].waiting_count == 1


# Express and recoverable.


@pytest.mark.spec("MQMQ-2.2.19.2-10", "MQMQ-2.2.19.2-11")
def test_express_messages_are_lost_with_the_power_and_recoverable_ones_are_not(
    office: Office,
) -> None:
    office.send(b"express", recoverable=False)
    office.send(b"durable")
    assert office.bodies() == [b"express", b"durable"]
    office.restart()
    assert office.bodies() == [b"durable"]
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 1


def test_numbers_are_never_given_twice(office: Office) -> None:
    seen = office.send(b"one", b"two")
    lookup_ids = office.lookup_ids()
    office.ok(api.Purge(office.open()))
    for _ in range(3):
        office.restart()
        numbers = office.send(b"more")
        assert not set(numbers) & set(seen)
        assert not set(office.lookup_ids()) & set(lookup_ids)
        seen += numbers
        lookup_ids += office.lookup_ids()
        office.ok(api.Purge(office.open()))


# Expiry.


@pytest.mark.spec("MQMQ-2.2.19.2-05")
def test_a_message_that_nobody_received_in_time_is_gone(office: Office) -> None:
    office.send(
        b"short",
        time_to_be_received_s=5,
        journal_on_failure=True,
        admin_queue=ADMIN_NAME,
        acknowledge=0x8,
    )
    office.send(b"long")
    office.pass_time(4)
    assert office.bodies() == [b"short", b"long"]
    office.pass_time(1)
    assert office.bodies() == [b"long"]
    assert office.bodies("system$;deadletter") == [b"short"]
    assert office.classes(ADMIN) == [0xC002]


@pytest.mark.parametrize("how", ["front", "front, count", "cursor", "seek", "find", "range"])
def test_no_read_gives_a_message_whose_time_is_up(office: Office, how: str) -> None:
    """Even if the read comes before the clock woke the queue manager."""
    [number] = office.send(b"short", time_to_be_received_s=5)
    identifier = bytes(office.driver.manager.identifier) + number.to_bytes(4, "little")
    handle = office.open()
    cursor = office.ok(api.CreateCursor(handle)).cursor
    [lookup_id] = office.lookup_ids()
    office.driver.now = Instant(5000, START_S + 5)
    request = {
        "front": api.Receive(handle),
        "front, count": api.Receive(handle, 10, peek=True),
        "cursor": api.Receive(handle, cursor=cursor),
        "seek": api.Seek(handle, "current", lookup_id, peek=True),
        "find": api.Find(handle, identifier),
        "range": api.FetchRange(handle, 0, 1 << 56),
    }[how]
    reply = office.ask(request)
    assert reply == api.Entries([]) or error_name(reply) in (
        "MQ_ERROR_IO_TIMEOUT",
        "MQ_ERROR_MESSAGE_NOT_FOUND",
    )


def test_a_message_that_may_not_wait_at_all_is_never_received(office: Office) -> None:
    handle = office.open()
    assert office.ask(api.Receive(handle, timeout_ms=None)) is None
    office.send(b"never", time_to_be_received_s=0, journal_on_failure=True)
    assert office.driver.take_answers() == {}
    assert office.bodies("system$;deadletter") == [b"never"]


def test_a_crowd_of_expired_messages_goes_in_slices(office: Office) -> None:
    sender = office.open(ORDERS, AccessMode.SEND)
    packet = Draft(time_to_be_received_s=5, recoverable=False).packet()
    office.ok(api.Send(sender, [packet] * (2 * SLICE_ROWS + 1)))
    office.pass_time(5)
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


def test_what_expires_while_the_disk_is_full_goes_when_it_has_room(office: Office) -> None:
    office.send(b"short", time_to_be_received_s=5)
    office.driver.now = Instant(5000, START_S + 5)
    office.driver.wake()
    assert office.driver.pump(fail=True)
    due_ms = office.driver.manager.next_wake_ms(office.driver.now)
    assert due_ms == 6000, "it must not try again at once"
    office.pass_time(1)
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


def test_deadlines_survive_a_restart(office: Office) -> None:
    office.send(b"short", time_to_be_received_s=5)
    office.restart()
    office.pass_time(5)
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


# Purge and move.


def test_purge_removes_everything_also_after_a_restart(office: Office) -> None:
    office.send(b"one", b"two")
    office.restart()
    assert office.ok(api.Purge(office.open())) == api.Removed(2)
    assert office.bodies() == []


def test_a_long_purge_takes_several_turns(office: Office) -> None:
    sender = office.open(ORDERS, AccessMode.SEND)
    count = 2 * SLICE_ROWS + 1
    office.ok(api.Send(sender, [Draft(recoverable=False).packet()] * count))
    assert office.ok(api.Purge(office.open())) == api.Removed(count)


def test_a_refused_purge_is_answered_and_removes_nothing(office: Office) -> None:
    office.send(b"one")
    assert office.fail(api.Purge(office.open())) == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert office.bodies() == [b"one"]
    assert office.ok(api.Purge(office.open())) == api.Removed(1)


def test_a_purge_of_which_two_slices_are_refused_is_answered_once(office: Office) -> None:
    sender = office.open(ORDERS, AccessMode.SEND)
    office.ok(api.Send(sender, [Draft(recoverable=False).packet()] * (SLICE_ROWS + 1)))
    node = office.driver.node
    call = office.driver.request(office.app, api.Purge(office.open()))
    [persist] = node.take()
    assert isinstance(persist, Persist)
    # The second slice is of the next turn, which falls with the first.
    office.driver.wake()
    assert node.take() == []
    node.store.fail_next(StoreFull)
    assert not node.commit(persist, office.driver.now)
    office.driver.pump()
    refused = office.driver.take_answers()[office.app, call]
    assert error_name(refused) == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_a_message_moves_to_a_subqueue_and_back_and_keeps_its_lookup_identifier(
    office: Office,
) -> None:
    office.send(b"one", b"two")
    sub = ORDERS + ";sub"
    handles = office.open(), office.open(sub, AccessMode.MOVE)
    first, second = office.lookup_ids()
    office.ok(api.Move(handles[0], first, handles[1]))
    assert (office.bodies(), office.bodies(sub)) == ([b"two"], [b"one"])
    assert office.lookup_ids(sub) == [first]
    [entry] = office.ok(api.Receive(office.open(sub), peek=True)).entries
    assert (entry.move_count, entry.moved_time_s) == (1, START_S)
    [other] = office.ok(api.Receive(office.open(), peek=True)).entries
    assert (other.move_count, other.moved_time_s) == (0, 0)
    office.ok(api.Move(office.open(sub), first, office.open(ORDERS, AccessMode.MOVE)))
    assert office.bodies() == [b"one", b"two"]
    assert office.lookup_ids() == [first, second]


def test_a_refused_move_leaves_the_message_to_those_who_wait(office: Office) -> None:
    office.send(b"one")
    handle, target = office.open(), office.open(ORDERS + ";sub", AccessMode.MOVE)
    [lookup_id] = office.lookup_ids()
    move = office.driver.request(office.app, api.Move(handle, lookup_id, target))
    read = office.driver.request(office.app, api.Receive(handle, timeout_ms=None))
    assert office.driver.pump(fail=True)
    answers = office.driver.take_answers()
    assert error_name(answers[office.app, move]) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert bodies(answers[office.app, read]) == [b"one"]


@pytest.mark.parametrize("what", ["send", "receive", "remove", "own transaction"])
def test_what_the_disk_refuses_did_not_happen(office: Office, what: str) -> None:
    office.send(b"one", journal_on_success=True)
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    handle = office.open()
    request = {
        "send": api.Send(office.open(ORDERS, AccessMode.SEND), [PACKET]),
        "own transaction": api.Send(
            office.open(LEDGER, AccessMode.SEND), [NUMBER], api.OWN_TRANSACTION
        ),
        "receive": api.Receive(handle),
        "remove": api.RemoveRange(handle, 0, 1 << 56),
    }[what]
    before = office.ok(api.GetStatus()).message_bytes
    assert office.fail(request) == ["MQ_ERROR_INSUFFICIENT_RESOURCES"]
    assert office.ok(api.GetStatus()).message_bytes == before
    assert office.bodies() == [b"one"]
    assert office.bodies(LEDGER) == office.bodies(ORDERS + ";journal") == []
