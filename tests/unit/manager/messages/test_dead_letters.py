"""Applications' own dead-letter queues."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.messages.dead_letters import dead_letter_queue
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, Office, message

FAILED = r"private$\failed"
FAILED_LEDGER = r"private$\failed_ledger"
SYSTEM = "system$;deadletter"
SYSTEM_LEDGER = "system$;deadxact"


@pytest.fixture
def office() -> Office:
    office = Office()
    office.ok(api.CreateQueue(FAILED))
    office.ok(api.CreateQueue(FAILED_LEDGER, transactional=True))
    return office


def send(office: Office, body: bytes, name: str, dead_letter: str, **wishes: Any) -> None:
    office.send(body, name=name, journal_on_failure=True, dead_letter_queue=dead_letter, **wishes)


@pytest.mark.spec("MQDMPR-3.1.1.12-02")
@pytest.mark.parametrize(
    ("name", "dead_letter", "found"),
    [
        (ORDERS, FAILED, FAILED),
        (ORDERS, r"alpha\PRIVATE$\FAILED", FAILED),
        (ORDERS, rf".\{FAILED}", FAILED),
        (LEDGER, FAILED_LEDGER, FAILED_LEDGER),
        (ORDERS, FAILED_LEDGER, SYSTEM),
        (LEDGER, FAILED, SYSTEM_LEDGER),
        (ORDERS, r"private$\nothing", SYSTEM),
        (ORDERS, rf"beta\{FAILED}", SYSTEM),
        (ORDERS, FAILED + ";journal", SYSTEM),
        (ORDERS, FAILED + ";sub", SYSTEM),
        (LEDGER, "system$;deadletter", SYSTEM_LEDGER),
        (ORDERS, "no;such;name", SYSTEM),
    ],
)
def test_a_failed_message_goes_to_the_queue_it_names_if_that_takes_it(
    office: Office, name: str, dead_letter: str, found: str
) -> None:
    send(office, b"one", name, dead_letter)
    office.ok(api.Purge(office.open(name)))
    for queue in (FAILED, FAILED_LEDGER, SYSTEM, SYSTEM_LEDGER):
        assert office.bodies(queue) == ([b"one"] if queue == found else [])
    [entry] = office.ok(api.Receive(office.open(found))).entries
    assert message(entry).properties.message_class == 0xC001


@pytest.mark.parametrize("how", ["expiry", "deletion", "deletion and restart"])
def test_all_ways_to_fail_lead_there(office: Office, how: str) -> None:
    send(office, b"one", LEDGER, FAILED_LEDGER, time_to_be_received_s=5)
    if how == "expiry":
        office.pass_time(5)
    else:
        office.driver.request(office.app, api.DeleteQueue(LEDGER))
        if how == "deletion":
            office.driver.pump()
        else:
            office.restart()
    assert office.bodies(FAILED_LEDGER) == [b"one"]
    assert office.bodies(SYSTEM_LEDGER) == []


def test_what_was_received_is_no_dead_letter(office: Office) -> None:
    send(office, b"one", ORDERS, FAILED)
    office.ok(api.Receive(office.open()))
    assert office.bodies(FAILED) == office.bodies(SYSTEM) == []


def test_a_send_in_a_transaction_that_cannot_be_delivered_goes_there(office: Office) -> None:
    work, sender = office.begin(), office.open(LEDGER, AccessMode.SEND)
    draft = Draft(
        body=b"one", transactional=True, journal_on_failure=True, dead_letter_queue=FAILED_LEDGER
    )
    office.ok(api.Send(sender, [draft.packet()], work))
    office.ok(api.DeleteQueue(LEDGER))
    office.ok(api.Commit(work))
    assert office.bodies(FAILED_LEDGER) == [b"one"]


@pytest.mark.spec("MQDMPR-3.1.1.12-22")
def test_a_full_dead_letter_queue_takes_no_copy(office: Office) -> None:
    office.ok(api.ChangeQueue(FAILED, quota_kb=1))
    send(office, bytes(1000), ORDERS, FAILED)
    office.ok(api.Purge(office.open()))
    assert office.bodies(FAILED) == office.bodies(SYSTEM) == []


def test_a_waiting_reader_gets_a_dead_letter(office: Office) -> None:
    call = office.driver.request(office.app, api.Receive(office.open(FAILED), timeout_ms=None))
    send(office, b"one", ORDERS, FAILED)
    office.driver.take_answers()
    office.driver.request(office.app, api.Purge(office.open()))
    office.driver.pump()
    assert isinstance(office.driver.take_answers()[office.app, call], api.Entries)


def test_only_what_was_sent_here_names_a_queue_here(office: Office) -> None:
    table = office.driver.manager._stock.table  # noqa: SLF001 - what is asked is inside
    packet = Draft(journal_on_failure=True, dead_letter_queue=FAILED).packet()
    ours = packet[:16] + office.driver.manager.identifier + packet[32:]
    assert dead_letter_queue(table, ours, sent_here=True).name == FAILED
    assert dead_letter_queue(table, ours, sent_here=False).name == SYSTEM


@pytest.mark.parametrize(
    "door", [{"authentication_required": True}, {"privacy": 2}], ids=["authentication", "privacy"]
)
def test_a_closed_queue_is_no_dead_letter_queue(office: Office, door: dict[str, Any]) -> None:
    send(office, b"before", ORDERS, FAILED)
    office.ok(api.ChangeQueue(FAILED, **door))
    packet = Draft(body=b"after", journal_on_failure=True, dead_letter_queue=FAILED).packet()
    opened = office.open(ORDERS, AccessMode.SEND)
    assert office.error(api.Send(opened, [packet])) == "MQ_ERROR_ACCESS_DENIED"
    office.ok(api.Purge(office.open()))
    assert office.bodies(FAILED) == []
    assert office.bodies(SYSTEM) == [b"before"], "what was sent before the door was closed"
