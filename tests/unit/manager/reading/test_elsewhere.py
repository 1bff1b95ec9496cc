"""Queues of other computers: who may open them, and what is passed on of what is asked."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.manager import QueueManager
from openmsmq.manager.outputs import AskElsewhere, LeaveElsewhere, OpenElsewhere, Output, Respond
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidHandle,
    RemoteMachineNotAvailable,
)
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import UNLIMITED, Caller, Scope, anonymous
from openmsmq.security.access.sids import Sid, identities
from tests.unit.manager.office import START_S, Office

FAR = r"DIRECT=OS:beta\private$\orders"
APP = 77
NOW = Instant(0, START_S)
_SID = Sid.of(5, 21, 1, 2, 3, 1000)
SENDER = Caller("token t", _SID, identities(_SID), frozenset({Scope.SEND}))
READER = Caller("token t", _SID, identities(_SID), frozenset({Scope.RECEIVE}))
ELSEWHERE = Caller("token t", _SID, identities(_SID), queues=("*local*",))


class Reader:
    """One application, and what comes out of its requests."""

    def __init__(self, caller: Caller = UNLIMITED, **config: Any) -> None:
        office = Office(**{"reads_elsewhere": True, **config})
        self.manager: QueueManager = office.driver.manager
        self.manager.connected(APP, caller)
        self.call = 0

    def ask(self, request: api.AnyRequest) -> list[Output]:
        self.call += 1
        self.manager.request(APP, self.call, request, NOW)
        return self.manager.take_outputs()

    def open(self) -> int:
        [opening] = self.ask(api.OpenQueue(FAR, int(AccessMode.RECEIVE)))
        assert isinstance(opening, OpenElsewhere)
        assert (opening.connection, opening.call, opening.request.name) == (APP, self.call, FAR)
        return opening.handle


def error(outputs: list[Output]) -> int:
    [said] = outputs
    assert isinstance(said, Respond)
    assert isinstance(said.reply, api.Failed)
    return said.reply.code


def test_without_leave_nothing_is_read_elsewhere() -> None:
    reader = Reader(reads_elsewhere=False)
    said = reader.ask(api.OpenQueue(FAR, int(AccessMode.RECEIVE)))
    assert error(said) == RemoteMachineNotAvailable.code


@pytest.mark.parametrize("caller", [anonymous("192.0.2.1"), SENDER, ELSEWHERE])
def test_whoever_may_not_read_there_is_refused_here(caller: Caller) -> None:
    said = Reader(caller).ask(api.OpenQueue(FAR, int(AccessMode.RECEIVE)))
    assert error(said) == AccessDenied.code


def test_a_known_reader_may() -> None:
    reader = Reader(READER)
    [opening] = reader.ask(api.OpenQueue(FAR, int(AccessMode.PEEK)))
    assert isinstance(opening, OpenElsewhere)
    assert opening.caller == READER


def test_what_is_asked_of_the_handle_leaves_with_it() -> None:
    reader = Reader()
    handle = reader.open()
    for request in (api.Receive(handle), api.Seek(handle, "first"), api.Purge(handle)):
        assert reader.ask(request) == [AskElsewhere(APP, reader.call, handle, request)]


def test_cursors_have_numbers_of_the_connection() -> None:
    reader = Reader()
    handle = reader.open()
    [making] = reader.ask(api.CreateCursor(handle))
    assert isinstance(making, AskElsewhere)
    assert making.cursor not in (0, handle)
    closing = api.CloseCursor(making.cursor)
    assert reader.ask(closing) == [AskElsewhere(APP, reader.call, handle, closing)]
    assert error(reader.ask(closing)) == InvalidHandle.code


def test_a_closed_handle_is_left_and_gone() -> None:
    reader = Reader()
    handle = reader.open()
    outputs = reader.ask(api.CloseQueue(handle))
    assert LeaveElsewhere(APP, handle) in outputs
    assert Respond(APP, reader.call, api.Done()) in outputs
    assert error(reader.ask(api.Receive(handle))) == InvalidHandle.code


def test_a_handle_that_came_to_nothing_is_gone() -> None:
    reader = Reader()
    handle = reader.open()
    reader.manager.elsewhere.failed(APP, handle)
    assert error(reader.ask(api.Receive(handle))) == InvalidHandle.code
    reader.manager.elsewhere.failed(APP + 1, handle)


def test_a_lost_application_leaves_all_its_queues() -> None:
    reader = Reader()
    handles = [reader.open(), reader.open()]
    reader.manager.connection_lost(APP, NOW)
    assert reader.manager.take_outputs() == [LeaveElsewhere(APP, each) for each in handles]


def test_a_cancel_is_answered_here_and_passed_on() -> None:
    reader = Reader()
    reader.open()
    outputs = reader.ask(api.Cancel(1))
    assert outputs[0] == AskElsewhere(APP, reader.call, 0, api.Cancel(1))
    assert isinstance(outputs[1], Respond)


def test_queues_elsewhere_count_as_open_queues() -> None:
    reader = Reader(open_queues_max=2)
    reader.open()
    reader.open()
    said = reader.ask(api.OpenQueue(FAR, int(AccessMode.RECEIVE)))
    assert error(said) == InsufficientResources.code
