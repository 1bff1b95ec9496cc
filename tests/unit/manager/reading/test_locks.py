"""Reads in two steps: locked first, then taken out or given back."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Persist
from openmsmq.model.queue import AccessMode
from openmsmq.storage.port import StoreFull
from tests.unit.manager.office import LEDGER, ORDERS, Office, bodies, error_name

ADMIN = r"private$\admin"
WISHES = {"admin_queue": r"OS:ALPHA\private$\admin", "acknowledge": 0xE}
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
LOCKED = "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"


@pytest.fixture
def office() -> Office:
    office = Office()
    office.ok(api.CreateQueue(ADMIN))
    return office


def lock(office: Office, handle: int) -> int:
    """Lock the first message of a queue; gives its lookup identifier."""
    [entry] = office.ok(api.Receive(handle, lock=True)).entries
    assert isinstance(entry, api.Entry)
    return entry.lookup_id


@pytest.mark.parametrize("name", [ORDERS, LEDGER])
def test_a_locked_message_is_out_of_sight_until_its_read_ends(office: Office, name: str) -> None:
    office.send(b"one", b"two", name=name, **WISHES)
    handle = office.open(name)
    first = lock(office, handle)
    assert office.bodies(name) == [b"two"]
    assert office.error(api.Seek(handle, "current", first)) == LOCKED
    target = office.open(name + ";sub", AccessMode.MOVE)
    assert office.error(api.Move(handle, first, target)) == LOCKED
    office.ok(api.EndReceive(handle, first, False))
    [entry] = office.ok(api.Receive(handle, peek=True)).entries
    assert (entry.lookup_id, entry.abort_count) == (first, 0)
    assert lock(office, handle) == first
    office.ok(api.EndReceive(handle, first, True))
    assert office.bodies(name) == [b"two"]
    assert office.classes(ADMIN) == [0x4000]
    for remove in (True, False):
        again = office.error(api.EndReceive(handle, first, remove))
        assert again == "MQ_ERROR_TRANSACTION_SEQUENCE"


@pytest.mark.parametrize("how", ["seek", "find", "cursor"])
def test_any_read_can_lock(office: Office, how: str) -> None:
    [number] = office.send(b"one", **WISHES)
    handle = office.open()
    [lookup_id] = office.lookup_ids()
    cursor = office.ok(api.CreateCursor(handle)).cursor
    identifier = bytes(office.driver.manager.identifier) + number.to_bytes(4, "little")
    read = {
        "seek": api.Seek(handle, "first", lock=True),
        "find": api.Find(handle, identifier, lock=True),
        "cursor": api.Receive(handle, cursor=cursor, lock=True),
    }[how]
    assert bodies(office.ok(read)) == [b"one"]
    assert office.bodies() == []
    office.ok(api.EndReceive(handle, lookup_id, True))
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


def test_a_waiting_read_can_lock_and_gets_what_another_gives_back(office: Office) -> None:
    handle, other = office.open(), office.open()
    call = office.driver.request(office.app, api.Receive(handle, timeout_ms=None, lock=True))
    office.driver.pump()
    office.send(b"one")
    [lookup_id] = office.lookup_ids()
    assert office.bodies() == []
    later = office.driver.request(office.app, api.Receive(other, timeout_ms=None, lock=True))
    office.driver.request(office.app, api.EndReceive(handle, lookup_id, False))
    office.driver.pump()
    assert bodies(office.driver.take_answers()[office.app, later]) == [b"one"]
    assert call != later


def test_a_lock_belongs_to_its_handle(office: Office) -> None:
    office.send(b"one")
    handle = office.open()
    lookup_id = lock(office, handle)
    error = office.error(api.EndReceive(office.open(), lookup_id, True))
    assert error == "MQ_ERROR_TRANSACTION_SEQUENCE"


@pytest.mark.parametrize("how", ["close", "lose", "restart"])
def test_a_lock_ends_with_its_handle_and_the_message_is_there_again(
    office: Office, how: str
) -> None:
    office.send(b"one")
    handle = office.open()
    lock(office, handle)
    if how == "close":
        office.ok(api.CloseQueue(handle))
    elif how == "lose":
        office.driver.lose(office.app)
        office.driver.pump()
        office.app = office.driver.connect()
    else:
        office.restart()
    assert office.bodies() == [b"one"]


@pytest.mark.parametrize("end", ["remove", "give back", "close"])
def test_a_purge_wins_over_what_a_reader_says_later(office: Office, end: str) -> None:
    office.send(b"one", **WISHES)
    handle = office.open()
    lookup_id = lock(office, handle)
    assert office.ok(api.Purge(handle)) == api.Removed(0)
    assert office.classes(ADMIN) == []
    if end == "close":
        office.ok(api.CloseQueue(handle))
    else:
        office.ok(api.EndReceive(handle, lookup_id, end == "remove"))
    assert office.classes(ADMIN) == [0xC001]
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


@pytest.mark.parametrize("end", ["remove", "give back", "close"])
def test_the_queue_can_be_deleted_while_a_message_is_locked(office: Office, end: str) -> None:
    office.send(b"one", **WISHES)
    handle = office.open()
    lookup_id = lock(office, handle)
    office.ok(api.DeleteQueue(ORDERS))
    if end == "close":
        office.ok(api.CloseQueue(handle))
    else:
        error = office.error(api.EndReceive(handle, lookup_id, end == "remove"))
        assert error == "MQ_ERROR_QUEUE_NOT_AVAILABLE"
    assert office.classes(ADMIN) == [0xC000]
    store = office.driver.node.store
    assert store.scan(b"X", b"Y", 10) == [], "the deletion has come to its end"


def test_a_locked_message_does_not_expire_before_it_is_given_back(office: Office) -> None:
    office.send(b"one", time_to_be_received_s=5, **WISHES)
    handle = office.open()
    lookup_id = lock(office, handle)
    office.pass_time(10)
    assert office.classes(ADMIN) == []
    office.ok(api.EndReceive(handle, lookup_id, False))
    assert office.classes(ADMIN) == [0xC002]
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


def test_an_end_that_the_disk_refuses_can_be_tried_again(office: Office) -> None:
    office.send(b"one")
    handle = office.open()
    lookup_id = lock(office, handle)
    assert office.fail(api.EndReceive(handle, lookup_id, True)) == [FULL]
    assert office.bodies() == [], "it is still locked"
    office.ok(api.EndReceive(handle, lookup_id, True))
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 0


def test_a_message_whose_reader_leaves_before_the_disk_refuses_is_there_again(
    office: Office,
) -> None:
    office.send(b"one")
    handle = office.open()
    lookup_id = lock(office, handle)
    node = office.driver.node
    office.driver.request(office.app, api.EndReceive(handle, lookup_id, True))
    [persist] = node.take()
    assert isinstance(persist, Persist)
    office.driver.lose(office.app)
    node.store.fail_next(StoreFull)
    assert not node.commit(persist, office.driver.now)
    office.driver.pump()
    office.app = office.driver.connect()
    assert office.bodies() == [b"one"]


def test_a_purged_message_that_the_disk_keeps_is_there_again(office: Office) -> None:
    office.send(b"one")
    handle = office.open()
    lock(office, handle)
    office.ok(api.Purge(handle))
    office.driver.request(office.app, api.CloseQueue(handle))
    assert office.driver.pump(fail=True)
    assert office.bodies() == [b"one"]
    handle = office.open()
    lookup_id = lock(office, handle)
    office.ok(api.EndReceive(handle, lookup_id, False))
    assert office.bodies() == [b"one"], "the purge is over"


def test_a_reader_locks_no_more_than_allowed() -> None:
    office = Office(transaction_messages_max=1)
    office.send(b"one", b"two")
    handle = office.open()
    assert office.error(api.Receive(handle, 2, lock=True)) == FULL
    lock(office, handle)
    assert office.error(api.Receive(handle, lock=True)) == FULL
    assert office.bodies() == [b"two"]


def test_a_locked_message_was_not_refused_by_the_disk(office: Office) -> None:
    """Else it would be locked for a reader who never saw it."""
    office.send(b"one")
    handle = office.open()
    read = office.driver.request(office.app, api.Receive(handle, lock=True))
    office.driver.request(office.app, api.CreateQueue(r"private$\a"))
    assert office.driver.pump(fail=True)
    assert error_name(office.driver.take_answers()[office.app, read]) == "Entries"
