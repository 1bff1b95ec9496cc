"""What must hold for whatever comes to the doors of RPC, from strangers and from others."""

from __future__ import annotations

from functools import cache
from typing import Final

from openmsmq.model.clock import Instant
from openmsmq.model.limits import RPC_BIND_MAX_BYTES, RPC_CALLS_MAX_COUNT, RPC_REQUEST_MAX_BYTES
from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import CallArrived, CallCancelled, Closed, Output, Written
from openmsmq.remote.endpoint_mapper import Endpoint, EndpointMapper
from openmsmq.remote.mgmt import ServerManagement
from openmsmq.remote.ports import Return, Throw
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.fragments import read_body, read_header, read_verifier
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, MANAGEMENT
from openmsmq.wire.rpc.towers import Tower
from tests.fuzz.registry import Target
from tests.unit.protocol.rpc.client import STRANGER, door, make_context

NOW: Final = Instant(1_000, 1_700_000_000)
_HELD_MAX_BYTES: Final = RPC_BIND_MAX_BYTES + RPC_REQUEST_MAX_BYTES


def associations(data: bytes) -> None:
    """However a stream is cut, the same comes of it; nobody makes us hold more than a little."""
    if not data:
        return
    size, stream = 1 + data[0], data[1:]
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    whole, cut = _played([stream]), _played(pieces)
    assert whole == cut
    numbers = [each.call for each in whole if isinstance(each, CallArrived)]
    assert len(numbers) == len(set(numbers)) <= RPC_CALLS_MAX_COUNT
    assert {each.call for each in whole if isinstance(each, CallCancelled)} <= set(numbers)
    closed = [each for each in whole if isinstance(each, Closed)]
    assert len(closed) <= 1
    assert not closed or closed == whole[-1:]
    written = b"".join(each.data for each in whole if isinstance(each, Written))
    while written:
        header = read_header(written)
        read_body(header, written[: header.length])
        written = written[header.length :]


def _played(pieces: list[bytes]) -> list[Output]:
    machine = Association(door(), Groups(), 1, STRANGER, make_context())
    outputs: list[Output] = []
    for piece in pieces:
        machine.received(piece)
        assert machine.held_bytes <= _HELD_MAX_BYTES + len(piece)
        outputs += machine.take_outputs()
    return outputs


def fragments(data: bytes) -> None:
    """Bytes are a fragment or none; what is read of one is within it."""
    try:
        header = read_header(data)
        body = read_body(header, data)
    except DecodeError:
        return
    assert body is not None
    try:
        verifier = read_verifier(header, data)
    except DecodeError:
        return
    assert verifier is None or len(verifier.token) == header.auth_length


@cache
def _interfaces() -> tuple[EndpointMapper, ServerManagement]:
    endpoints = [
        Endpoint(interface, "127.0.0.1", 2103, "an interface")
        for interface in (ENDPOINT_MAPPER, MANAGEMENT)
    ]
    return EndpointMapper(endpoints), ServerManagement((MANAGEMENT,), "host/alpha")


def mapper(data: bytes) -> None:
    """Every call is answered once, with results or a fault; a tower is its own encoding."""
    if not data:
        return
    for interface in _interfaces():
        (answer,) = interface.called(7, data[0] % 9, data[1:], NOW)
        assert isinstance(answer, Return | Throw)
        assert answer.call == 7
    try:
        tower = Tower.decode(data[1:])
    except DecodeError:
        return
    assert data[1:].startswith(tower.encode())


TARGETS: Final[dict[str, Target]] = {
    "associations": associations,
    "fragments": fragments,
    "mapper": mapper,
}
