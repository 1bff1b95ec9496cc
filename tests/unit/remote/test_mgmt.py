"""What the server of RPC tells of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.remote.mgmt import ServerManagement
from openmsmq.remote.ports import Return, Throw
from openmsmq.wire.rpc.mgmt import (
    ACCESS_DENIED,
    ASK_PRINCIPAL,
    ASK_STATISTICS,
    INTERFACES,
    LISTENING,
    PRINCIPAL,
    STATISTICS,
    STOPPED,
    UNKNOWN_AUTHENTICATION,
    AskPrincipal,
    AskStatistics,
    Operation,
    Principal,
)
from openmsmq.wire.rpc.pdus import Status
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, MANAGEMENT

NOW = Instant(1_000, 1_700_000_000)
TOLD = (ENDPOINT_MAPPER, MANAGEMENT)


def returned(operation: int, stub: bytes = b"", principal: str = "host/alpha.example") -> bytes:
    (answer,) = ServerManagement(TOLD, principal).called(3, operation, stub, NOW)
    assert isinstance(answer, Return)
    return answer.stub


def test_it_tells_its_interfaces() -> None:
    assert INTERFACES.decode(returned(Operation.INTERFACES)).interfaces == TOLD


def test_it_listens_and_nobody_stops_it() -> None:
    assert LISTENING.decode(returned(Operation.IS_LISTENING)).is_listening == 1
    assert STOPPED.decode(returned(Operation.STOP)).status == ACCESS_DENIED


@pytest.mark.parametrize(("asked", "told"), [(0, 0), (2, 2), (4, 4), (1000, 4)])
def test_it_gives_as_many_numbers_as_there_are(asked: int, told: int) -> None:
    stub = returned(Operation.STATISTICS, ASK_STATISTICS.encode(AskStatistics(asked)))
    assert STATISTICS.decode(stub).numbers == (0,) * told


def principal(kind: int, room: int, name: str = "host/alpha.example") -> Principal:
    asked = ASK_PRINCIPAL.encode(AskPrincipal(kind, room))
    return PRINCIPAL.decode(returned(Operation.PRINCIPAL, asked, name))


def test_it_tells_its_name_to_clients_of_kerberos_alone() -> None:
    assert principal(16, 100) == Principal(b"host/alpha.example", 0)
    assert principal(9, 100) == Principal(b"host/alpha.example", 0)
    assert principal(10, 100) == Principal(b"", UNKNOWN_AUTHENTICATION)
    assert principal(16, 100, "") == Principal(b"", UNKNOWN_AUTHENTICATION)


def test_a_name_that_does_not_fit_is_not_told() -> None:
    assert principal(16, 18).name == b""
    assert principal(16, 18).status not in (0, UNKNOWN_AUTHENTICATION)
    assert principal(16, 19).name == b"host/alpha.example"


@given(st.integers(0, 4), st.binary(max_size=60))
def test_any_parameters_are_answered_once(operation: int, stub: bytes) -> None:
    (answer,) = ServerManagement(TOLD, "").called(3, operation, stub, NOW)
    assert isinstance(answer, Return) or answer == Throw(3, Status.BAD_STUB)
