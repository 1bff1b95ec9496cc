"""What is told of turns: what came in, what it did, what it stored, and how it ended."""

from __future__ import annotations

import json

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

SECRET = b"the combination is 7-3-9"


def traced() -> Office:
    office = Office()
    office.driver.manager.turns.is_on = True
    return office


def test_a_turn_is_told_with_what_came_in_what_it_did_and_what_it_stored() -> None:
    office = traced()
    handle = office.open(ORDERS, AccessMode.SEND)
    office.driver.manager.turns.take()
    packet = Draft(body=SECRET, recoverable=True).packet()
    office.ok(api.Send(handle, [packet]))
    (turn,) = office.driver.manager.turns.take()
    assert turn["outcome"] == "settled"
    assert turn["ticket"] is not None
    assert turn["inputs"] == [
        {"input": "request", "unix_s": START_S, "ticks_ms": 0, "about": "Send"}
    ]
    effects = turn["effects"]
    assert isinstance(effects, list)
    assert effects[-1]["effect"] == "Replied"
    assert effects[-1]["reply"] == "Sent"
    assert isinstance(turn["stored_bytes"], int)
    assert turn["stored_bytes"] > len(packet)
    # At least one record of the message, and one of the counts of its queue.
    assert isinstance(turn["records"], int)
    assert turn["records"] >= 2


def test_a_turn_that_stores_nothing_has_no_ticket() -> None:
    office = traced()
    office.ok(api.GetQueue(ORDERS))
    (turn,) = office.driver.manager.turns.take()
    assert turn["ticket"] is None
    assert (turn["outcome"], turn["records"], turn["stored_bytes"]) == ("settled", 0, 0)


def test_a_turn_that_the_disk_refused_is_told_as_such_and_what_came_of_it_is_the_next() -> None:
    office = traced()
    office.fail(api.CreateQueue(r"private$\other"))
    (turn,) = office.driver.manager.turns.take()
    assert turn["outcome"] == "revoked"
    office.ok(api.CreateQueue(r"private$\other"))
    (turn,) = office.driver.manager.turns.take()
    assert turn["outcome"] == "settled"
    inputs = turn["inputs"]
    assert isinstance(inputs, list)
    assert inputs[-1]["about"] == "CreateQueue"


def test_what_came_to_nothing_is_told_nowhere() -> None:
    office = traced()
    office.pass_time(1)
    office.ok(api.GetQueue(ORDERS))
    (turn,) = office.driver.manager.turns.take()
    assert turn["inputs"] == [
        {"input": "request", "unix_s": START_S + 1, "ticks_ms": 1000, "about": "GetQueue"}
    ]


def test_nothing_of_a_message_stands_in_it() -> None:
    office = traced()
    for name in (ORDERS, LEDGER):
        office.send(SECRET, name=name)
        handle = office.open(name, AccessMode.RECEIVE)
        office.ok(api.Receive(handle, 1, 0))
    told = json.dumps(office.driver.manager.turns.take())
    assert '"Replied"' in told
    assert SECRET.decode() not in told


def test_nothing_is_told_unless_somebody_asks() -> None:
    office = Office()
    office.send(b"x")
    assert office.driver.manager.turns.take() == []
