"""What transactions wait to send counts before it is there: for quotas, memory and owners."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.api import messages as api
from openmsmq.model.limits import ASIDE_FROM_BYTES
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, Office

FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
SIZE = len(Draft(body=bytes(600), transactional=True).packet())
QUOTA_KB = 1
"""Room for one such message, and not for two."""


@pytest.fixture(params=[1, ASIDE_FROM_BYTES], ids=["aside", "stored twice"])
def aside(request: pytest.FixtureRequest) -> int:
    number = request.param
    assert isinstance(number, int)
    return number


def of_the_queue(aside: int) -> Office:
    office = Office(aside_min_bytes=aside)
    office.ok(api.ChangeQueue(LEDGER, quota_kb=QUOTA_KB))
    return office


def of_the_manager(aside: int) -> Office:
    return Office(aside_min_bytes=aside, quota_kb=QUOTA_KB)


def of_all_transactions(aside: int) -> Office:
    return Office(aside_min_bytes=aside, staged_bytes_max=2 * SIZE - 1)


@pytest.fixture(params=[of_the_queue, of_the_manager, of_all_transactions])
def office(request: pytest.FixtureRequest, aside: int) -> Office:
    make: Callable[[int], Office] = request.param
    return make(aside)


def staging(office: Office, transaction: int) -> api.Send:
    packets = [Draft(body=bytes(600), transactional=True).packet()]
    return api.Send(office.open(LEDGER, AccessMode.SEND), packets, transaction)


def staged(office: Office) -> api.Begun:
    """Begin a transaction that has sent a message."""
    begun = office.ok(api.Begin())
    assert isinstance(begun, api.Begun)
    office.ok(staging(office, begun.transaction))
    return begun


def is_full(office: Office) -> bool:
    """Whether another transaction may not send a message more."""
    number = office.begin()
    reply = office.ask(staging(office, number))
    office.ok(api.Abort(number))
    return isinstance(reply, api.Failed)


def test_what_waits_takes_its_room_until_it_is_given_up(office: Office) -> None:
    begun = staged(office)
    assert is_full(office)
    office.ok(api.Abort(begun.transaction))
    assert not is_full(office)


def test_what_is_prepared_takes_its_room_also_after_a_restart(office: Office) -> None:
    begun = staged(office)
    office.ok(api.Prepare(begun.transaction))
    assert is_full(office)
    office.restart()
    assert is_full(office)
    office.ok(api.Resolve(begun.unit_of_work, commit=False))
    assert not is_full(office)


def test_a_connection_that_ends_gives_its_room_back(office: Office) -> None:
    staged(office)
    office.driver.lose(office.app)
    office.driver.pump()
    office.app = office.driver.connect()
    assert not is_full(office)


@pytest.mark.parametrize("make", [of_the_queue, of_the_manager])
def test_a_commit_brings_what_there_was_room_for_and_takes_no_more(
    make: Callable[[int], Office], aside: int
) -> None:
    office = make(aside)
    begun = staged(office)
    office.ok(api.Prepare(begun.transaction))
    office.ok(api.Commit(begun.transaction))
    assert office.bodies(LEDGER) == [bytes(600)]
    assert is_full(office), "now the message itself has the room"
    office.restart()
    handle = office.open(LEDGER)
    number = office.begin()
    office.ok(api.Receive(handle, 1, 0, transaction=number))
    assert is_full(office), "until its removal is committed"
    office.ok(api.Commit(number))
    assert not is_full(office)


def test_a_commit_that_the_disk_refuses_leaves_the_room_taken(office: Office) -> None:
    begun = staged(office)
    assert office.fail(api.Prepare(begun.transaction)) == [FULL]
    assert is_full(office)
    office.ok(api.Prepare(begun.transaction))
    assert office.fail(api.Commit(begun.transaction)) == [FULL]
    assert is_full(office)
    assert office.fail(api.Abort(begun.transaction)) == [FULL]
    assert is_full(office)
    office.ok(api.Abort(begun.transaction))
    assert not is_full(office)


def test_a_queue_that_is_deleted_takes_no_room_of_the_queue_manager_when_all_is_over() -> None:
    office = of_the_manager(ASIDE_FROM_BYTES)
    begun = staged(office)
    office.ok(api.DeleteQueue(LEDGER))
    office.ok(api.CreateQueue(LEDGER, transactional=True))
    assert is_full(office)
    office.ok(api.Commit(begun.transaction))
    assert not is_full(office)
    assert office.bodies(LEDGER) == []


def test_what_is_in_memory_has_a_bound_of_its_own() -> None:
    office = Office(aside_min_bytes=1, staged_memory_bytes_max=2 * SIZE - 1)
    begun = staged(office)
    assert is_full(office)
    office.ok(api.Prepare(begun.transaction))
    assert not is_full(office), "what is set aside is on the disk"
    office.restart()
    assert not is_full(office)


def test_copies_for_a_list_need_room_for_all_of_them() -> None:
    office = Office(quota_kb=QUOTA_KB)
    office.ok(api.CreateQueue(r"private$\other", transactional=True))
    both = ",".join(rf"DIRECT=OS:.\private$\{name}" for name in ("ledger", "other"))
    handle = office.open(both, AccessMode.SEND)
    number = office.begin()
    packets = [Draft(body=bytes(600), transactional=True).packet()]
    assert office.error(api.Send(handle, packets, number)) == FULL
