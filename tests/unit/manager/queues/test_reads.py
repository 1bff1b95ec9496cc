"""Readers that say how large a body they take."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, Office, bodies, error_name

OVERFLOW = "MQ_ERROR_BUFFER_OVERFLOW"


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.parametrize("peek", [False, True])
@pytest.mark.parametrize("how", ["front", "seek", "find", "cursor", "lock", "transaction"])
def test_a_body_too_large_for_its_reader_stays(office: Office, how: str, peek: bool) -> None:
    name = LEDGER if how == "transaction" else ORDERS
    [number] = office.send(bytes(11), name=name)
    handle = office.open(name)
    [lookup_id] = office.lookup_ids(name)
    identifier = bytes(office.driver.manager.identifier) + number.to_bytes(4, "little")
    cursor = office.ok(api.CreateCursor(handle)).cursor
    work = office.begin()

    def read(body_max_bytes: int) -> api.AnyRequest:
        limit = {"body_max_bytes": body_max_bytes}
        return {
            "front": api.Receive(handle, peek=peek, **limit),
            "seek": api.Seek(handle, "current", lookup_id, peek=peek, **limit),
            "find": api.Find(handle, identifier, peek=peek, **limit),
            "cursor": api.Receive(handle, peek=peek, cursor=cursor, **limit),
            "lock": api.Receive(handle, lock=not peek, peek=peek, **limit),
            "transaction": api.Receive(handle, peek=peek, transaction=work, **limit),
        }[how]

    for too_small in (0, 10):
        assert office.error(read(too_small)) == OVERFLOW
    assert office.bodies(name) == [bytes(11)]
    assert bodies(office.ok(read(11))) == [bytes(11)]


def test_messages_before_one_that_is_too_large_are_given(office: Office) -> None:
    office.send(bytes(1), bytes(2), bytes(9), bytes(3))
    handle = office.open()
    given = office.ok(api.Receive(handle, 10, body_max_bytes=5))
    assert bodies(given) == [bytes(1), bytes(2)]
    assert office.error(api.Receive(handle, 10, body_max_bytes=5)) == OVERFLOW
    assert office.bodies() == [bytes(9), bytes(3)]


def test_a_waiting_reader_hears_of_a_message_that_is_too_large_for_it(office: Office) -> None:
    handle, app = office.open(), office.app
    small = office.driver.request(app, api.Receive(handle, timeout_ms=None, body_max_bytes=1))
    large = office.driver.request(app, api.Receive(handle, timeout_ms=None))
    sender = office.open(ORDERS, AccessMode.SEND)
    office.driver.request(app, api.Send(sender, [Draft(body=bytes(2)).packet()]))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert error_name(answers[app, small]) == OVERFLOW
    assert bodies(answers[app, large]) == [bytes(2)]


def test_a_cursor_stands_at_the_message_that_was_too_large(office: Office) -> None:
    office.send(b"1", bytes(9), b"3")
    handle = office.open()
    cursor = office.ok(api.CreateCursor(handle)).cursor
    office.ok(api.Receive(handle, peek=True, cursor=cursor))
    on = api.Receive(handle, peek=True, cursor=cursor, next=True, body_max_bytes=5)
    assert office.error(on) == OVERFLOW
    assert bodies(office.ok(api.Receive(handle, peek=True, cursor=cursor))) == [bytes(9)]
    assert bodies(office.ok(on)) == [b"3"]
