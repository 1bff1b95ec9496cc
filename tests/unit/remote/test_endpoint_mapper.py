"""Where interfaces are, by every way to ask for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.remote.endpoint_mapper import Endpoint, EndpointMapper
from openmsmq.remote.ports import Return, Throw
from openmsmq.wire.rpc.endpoint_mapper import (
    FOUND,
    FREE_HANDLE,
    FREED,
    LOOKUP,
    MAP,
    MAPPED,
    NO_HANDLE,
    NOT_REGISTERED,
    FreeHandle,
    Inquiry,
    Lookup,
    Map,
    Operation,
    VersionOption,
)
from openmsmq.wire.rpc.pdus import Status
from openmsmq.wire.rpc.syntaxes import NDR, Syntax
from openmsmq.wire.rpc.towers import Floor, Tower

NOW = Instant(1_000, 1_700_000_000)
READ = Syntax.of("1a9134dd-7b39-45ba-ad88-44d01ca47f28", 1, 3)
MANAGE = Syntax.of("41208ee0-e970-11d1-9b9e-00e02c064c39", 1)
MAPPER = EndpointMapper(
    [
        Endpoint(READ, "192.0.2.7", 2103, "remote read"),
        Endpoint(MANAGE, "192.0.2.7", 2114, "management"),
    ]
)


def returned(operation: int, stub: bytes) -> bytes:
    (answer,) = MAPPER.called(5, operation, stub, NOW)
    assert isinstance(answer, Return)
    assert answer.call == 5
    return answer.stub


def mapped(tower: Tower, most: int = 4) -> tuple[list[int | None], int]:
    asked = Map(None, tower.encode(), NO_HANDLE, most)
    found = MAPPED.decode(returned(Operation.MAP, MAP.encode(asked)))
    assert found.handle == NO_HANDLE
    assert found.count == len(found.towers.items)
    return [Tower.decode(each).port for each in found.towers.items], found.status


def looked(
    inquiry: Inquiry = Inquiry.ALL,
    interface: Syntax | None = None,
    versions: VersionOption = VersionOption.ALL,
    most: int = 10,
    handle: bytes = NO_HANDLE,
) -> tuple[list[bytes], bytes, int]:
    asked = Lookup(inquiry, None, interface, versions, handle, most)
    found = FOUND.decode(returned(Operation.LOOKUP, LOOKUP.encode(asked)))
    return [each.annotation for each in found.entries.items], found.handle, found.status


def test_an_interface_is_mapped_to_its_port() -> None:
    assert mapped(Tower.over_tcp(MANAGE, "0.0.0.0", 135)) == ([2114], 0)


@pytest.mark.parametrize(
    ("major", "minor", "ports"), [(1, 3, [2103]), (1, 0, [2103]), (1, 4, []), (2, 0, [])]
)
def test_older_minor_versions_are_served(major: int, minor: int, ports: list[int]) -> None:
    found, status = mapped(Tower.over_tcp(Syntax(READ.uuid, major, minor), "0.0.0.0", 0))
    assert found == ports
    assert (status == NOT_REGISTERED) == (not ports)


def test_what_is_not_over_tcp_is_not_registered() -> None:
    pipes = Tower(
        (
            Floor.of_syntax(READ),
            Floor.of_syntax(NDR),
            Floor(b"\x0b", bytes(2)),
            Floor(b"\x0f", b"\\pipe\\x\0"),
            Floor(b"\x11", b"host\0"),
        )
    )
    assert mapped(pipes) == ([], NOT_REGISTERED)
    assert mapped(Tower(())) == ([], NOT_REGISTERED)


def test_no_more_towers_come_than_are_welcome() -> None:
    assert mapped(Tower.over_tcp(READ, "0.0.0.0", 0), most=0) == ([], NOT_REGISTERED)


def test_all_entries_are_listed_however_few_at_a_time() -> None:
    assert looked() == ([b"remote read", b"management"], NO_HANDLE, 0)
    first, handle, status = looked(most=1)
    assert (first, status) == ([b"remote read"], 0)
    assert handle != NO_HANDLE
    assert looked(most=1, handle=handle) == ([b"management"], NO_HANDLE, 0)


@pytest.mark.parametrize(
    ("interface", "versions", "found"),
    [
        (READ, VersionOption.EXACT, True),
        (Syntax(READ.uuid, 1, 1), VersionOption.EXACT, False),
        (Syntax(READ.uuid, 1, 1), VersionOption.COMPATIBLE, True),
        (Syntax(READ.uuid, 1, 4), VersionOption.COMPATIBLE, False),
        (Syntax(READ.uuid, 1, 9), VersionOption.MAJOR_ONLY, True),
        (Syntax(READ.uuid, 2, 0), VersionOption.MAJOR_ONLY, False),
        (Syntax(READ.uuid, 2, 0), VersionOption.UP_TO, True),
        (Syntax(READ.uuid, 0, 9), VersionOption.UP_TO, False),
        (Syntax(READ.uuid, 9, 9), VersionOption.ALL, True),
        (None, VersionOption.ALL, False),
    ],
)
def test_entries_are_found_by_interface_and_version(
    interface: Syntax | None, versions: VersionOption, found: bool
) -> None:
    entries, _, status = looked(Inquiry.BY_INTERFACE, interface, versions)
    assert entries == ([b"remote read"] if found else [])
    assert (status == NOT_REGISTERED) == (not found)


def test_nothing_of_ours_is_about_an_object() -> None:
    assert looked(Inquiry.BY_OBJECT)[0] == []
    assert looked(Inquiry.BY_BOTH, READ)[0] == []


def test_a_handle_is_given_back() -> None:
    _, handle, _ = looked(most=1)
    stub = returned(Operation.FREE_HANDLE, FREE_HANDLE.encode(FreeHandle(handle)))
    assert FREED.decode(stub).handle == NO_HANDLE


def test_a_handle_of_somebody_else_is_refused() -> None:
    stub = FREE_HANDLE.encode(FreeHandle(b"x" * 20))
    assert MAPPER.called(5, Operation.FREE_HANDLE, stub, NOW) == [Throw(5, Status.CONTEXT_MISMATCH)]


@pytest.mark.parametrize("operation", [0, 1, 5, 6, 7])
def test_nobody_registers_anything_here(operation: int) -> None:
    assert MAPPER.called(5, operation, b"", NOW) == [Throw(5, Status.ACCESS_DENIED)]


@given(st.integers(2, 4), st.binary(max_size=200))
def test_any_parameters_are_answered_once(operation: int, stub: bytes) -> None:
    (answer,) = MAPPER.called(5, operation, stub, NOW)
    assert isinstance(answer, Return | Throw)
