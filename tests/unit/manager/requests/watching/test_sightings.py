"""A message is found wherever it is, by who may look there, and nobody waits long for it."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.requests.watching import sightings
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode, QueueRole
from openmsmq.security.access.callers import token_caller
from openmsmq.security.access.sids import ADMINISTRATORS
from tests.strategies.messages import Draft
from tests.unit.manager.access_cases import ALICE, only
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

ADMIN = r"private$\admin"

with_limits_of_its_own = pytest.mark.skipif(
    not sightings.__file__.endswith(".py"), reason="the compiled core has these limits built in"
)


@pytest.fixture
def office() -> Office:
    return Office()


def identifier(office: Office, number: int) -> bytes:
    return MessageId(Guid(office.ok(api.GetStatus()).manager), number).to_bytes()


def search(office: Office, wanted: bytes, app: int | None = None) -> list[api.Sightings]:
    """All steps of a search."""
    steps = [office.ok(api.FindMessage(wanted), app)]
    while steps[-1].next_queue:
        following = api.FindMessage(wanted, steps[-1].next_queue, steps[-1].next_start)
        steps.append(office.ok(following, app))
    return steps


def found(office: Office, number: int, app: int | None = None) -> list[api.Sighting]:
    wanted = identifier(office, number)
    return [one for step in search(office, wanted, app) for one in step.found]


def test_a_message_in_a_queue_is_found_with_its_place_and_times(office: Office) -> None:
    office.send(b"before")
    (number,) = office.send(b"wanted")
    office.send(b"behind", name=LEDGER)
    (one,) = found(office, number)
    assert (one.queue, one.kind) == (ORDERS, QueueRole.APPLICATION.value)
    assert one.lookup_id == office.lookup_ids()[1]
    assert one.arrived_time_s == one.sent_time_s == START_S
    assert (one.is_held, one.is_about, one.hop_count) == (False, False, 0)
    assert found(office, number + 1000) == []


def test_a_message_that_somebody_receives_is_found_and_held(office: Office) -> None:
    (number,) = office.send(b"x", name=LEDGER)
    work = office.ok(api.Begin()).transaction
    office.ok(api.Receive(office.open(LEDGER), transaction=work))
    (one,) = found(office, number)
    assert one.is_held


def test_journals_and_dead_letters_are_looked_through(office: Office) -> None:
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    received, purged = office.send(b"a", b"b", journal_on_failure=True)
    office.ok(api.Receive(office.open()))
    (one,) = found(office, received)
    assert (one.queue, one.kind) == (f"{ORDERS};journal", QueueRole.JOURNAL.value)
    office.ok(api.Purge(office.open()))
    (one,) = found(office, purged)
    assert (one.queue, one.kind) == ("system$;deadletter", QueueRole.SYSTEM.value)
    assert one.message_class == MessageClass.NACK_QUEUE_PURGED


def test_what_tells_of_a_message_is_found_with_it(office: Office) -> None:
    (number,) = office.send(b"x")
    office.ok(api.CreateQueue(ADMIN))
    handle = office.open(ADMIN, AccessMode.SEND)
    packet = Draft(body=b"answer", correlation_id=identifier(office, number)).packet()
    office.ok(api.Send(handle, [packet]))
    itself, other = found(office, number)
    assert (itself.queue, itself.is_about) == (ORDERS, False)
    assert (other.queue, other.is_about) == (ADMIN, True)


def test_a_body_that_has_an_identifier_in_it_is_not_meant(office: Office) -> None:
    (number,) = office.send(b"x")
    office.send(b"about " + identifier(office, number))
    assert len(found(office, number)) == 1


@with_limits_of_its_own
def test_a_search_goes_on_step_by_step_and_misses_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sightings, "SEARCH_STEP_MAX_COUNT", 3)
    numbers = office.send(*[b"x"] * 8) + office.send(*[b"x"] * 5, name=LEDGER)
    for number in numbers:
        steps = search(office, identifier(office, number))
        assert [one.looked_count for one in steps] == [3, 3, 3, 3, 1]
        assert sum(len(one.found) for one in steps) == 1


@with_limits_of_its_own
def test_a_step_ends_with_its_bytes(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = office.send(*[bytes(1000)] * 10)
    monkeypatch.setattr(sightings, "SEARCH_STEP_MAX_BYTES", 3000)
    steps = search(office, identifier(office, numbers[-1]))
    assert len(steps) > 2
    assert sum(one.looked_count for one in steps) == 10
    assert sum(len(one.found) for one in steps) == 1


@with_limits_of_its_own
def test_who_forges_identifiers_fills_no_answer(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sightings, "SIGHTINGS_MAX_COUNT", 2)
    monkeypatch.setattr(sightings, "SEARCH_STEP_MAX_COUNT", 1000)
    monkeypatch.setattr("openmsmq.manager.reading.by_arrival.ARRIVALS_FIRST_ROWS", 1)
    monkeypatch.setattr("openmsmq.manager.reading.by_arrival.ARRIVALS_GROWTH", 1)
    wanted = bytes(range(20))
    handle = office.open(ORDERS, AccessMode.SEND)
    for _ in range(5):
        office.ok(api.Send(handle, [Draft(correlation_id=wanted).packet()]))
    steps = search(office, wanted)
    assert [len(one.found) for one in steps] == [2, 2, 1]


def test_what_somebody_may_not_look_into_is_counted_and_not_shown(office: Office) -> None:
    (number,) = office.send(b"x")
    office.send(b"y", name=LEDGER)
    office.ok(api.SetSecurity(ORDERS, only(ALICE, 0)))
    office.ok(api.SetSecurity(LEDGER, only(ALICE, 0xF00FF)))
    alice = office.driver.connect(token_caller("alice", ALICE, None))
    (step,) = search(office, identifier(office, number), alice)
    assert (step.found, step.looked_count, step.hidden_count) == ([], 1, 1)
    root = office.driver.connect(token_caller("root", ADMINISTRATORS, None))
    (step,) = search(office, identifier(office, number), root)
    assert (len(step.found), step.hidden_count) == (1, 0)


@pytest.mark.parametrize("wanted", [b"", bytes(19), bytes(21)])
def test_an_identifier_has_twenty_bytes(office: Office, wanted: Any) -> None:
    assert office.error(api.FindMessage(wanted)) == "MQ_ERROR_ILLEGAL_PROPERTY_SIZE"
