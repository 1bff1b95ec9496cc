"""Who is connected, with what; and how an operator ends a connection."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.outputs import EndConnection, Respond
from openmsmq.model.errors import AccessDenied
from openmsmq.model.limits import HANDLES_SHOWN_MAX_COUNT
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Origin, unix_caller
from tests.unit.manager.office import LEDGER, ORDERS, Office

ROOT = unix_caller("root", 0, frozenset({0}), administrator=True)
BOB = unix_caller("bob", 70_002, frozenset({70_002}), administrator=False)


@pytest.fixture
def office() -> Office:
    return Office()


def shown(office: Office, number: int) -> api.ConnectedApplication:
    found = office.ok(api.ListConnections()).connections
    return next(each for each in found if each.number == number)


def test_a_connection_shows_who_it_is_and_from_where(office: Office) -> None:
    office.driver.manager.connected(50, BOB, Origin("192.0.2.7:4711", "tcp", 1_000_123))
    found = shown(office, 50)
    assert (found.caller, found.user) == ("user bob", bytes(BOB.user))
    assert (found.peer, found.door, found.since_s) == ("192.0.2.7:4711", "tcp", 1_000_123)
    assert not found.is_own
    assert shown(office, office.app).is_own


def test_it_shows_what_is_open_and_which_reads_wait(office: Office) -> None:
    other = office.driver.connect()
    reader = office.open(ORDERS, app=other)
    office.open(LEDGER, AccessMode.SEND, app=other)
    office.driver.request(other, api.Receive(reader, 1, 60_000))
    office.driver.pump()
    # The reads of others at the same queue are not this one's.
    office.driver.request(office.app, api.Receive(office.open(ORDERS), 1, 60_000))
    office.driver.pump()
    found = shown(office, other)
    assert [(each.name, each.access, each.waiting_count) for each in found.queues] == [
        (ORDERS, AccessMode.RECEIVE, 1),
        (LEDGER, AccessMode.SEND, 0),
    ]
    assert (found.queue_count, found.waiting_count, found.transaction_count) == (2, 1, 0)
    office.ok(api.Begin(), other)
    office.ok(api.CloseQueue(reader), other)
    found = shown(office, other)
    assert (found.queue_count, found.waiting_count, found.transaction_count) == (1, 0, 1)


def test_of_very_many_open_queues_some_are_named_and_all_are_counted(office: Office) -> None:
    for _ in range(HANDLES_SHOWN_MAX_COUNT + 3):
        office.open()
    found = shown(office, office.app)
    assert len(found.queues) == HANDLES_SHOWN_MAX_COUNT
    assert found.queue_count == HANDLES_SHOWN_MAX_COUNT + 3


def test_what_an_operator_closes_the_driver_is_asked_to_end(office: Office) -> None:
    other, root = office.driver.connect(), office.driver.connect(ROOT)
    office.send(b"taken", name=LEDGER)
    transaction = office.ok(api.Begin(), other).transaction
    office.ok(api.Receive(office.open(LEDGER, app=other), transaction=transaction), other)
    assert office.bodies(LEDGER) == []
    call = office.driver.request(root, api.CloseConnection(other))
    assert office.driver.node.take() == [
        Respond(root, call, api.Done()),
        EndConnection(other, "user root has closed it"),
    ]
    office.driver.lose(other)
    office.driver.pump()
    assert office.bodies(LEDGER) == [b"taken"]
    assert other not in {each.number for each in office.ok(api.ListConnections()).connections}
    assert office.error(api.CloseConnection(other), root) == "MQ_ERROR_INVALID_PARAMETER"


def test_who_may_only_look_learns_nothing_of_others(office: Office) -> None:
    bob = office.driver.connect(BOB)
    for request in (
        api.ListConnections(),
        api.CloseConnection(office.app),
        api.CloseConnection(1 << 40),
    ):
        office.driver.request(bob, request)
        (answer,) = office.driver.node.take()
        assert isinstance(answer, Respond)
        assert isinstance(answer.reply, api.Failed)
        assert answer.reply.code == AccessDenied.code
