from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.protocol.rpc.endpoint_lookup import OPERATION, port_in, question
from openmsmq.remote.endpoint_mapper import Endpoint, EndpointMapper
from openmsmq.remote.ports import Return
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.endpoint_mapper import MAPPED, NO_HANDLE, OK, Mapped, Varying
from openmsmq.wire.rpc.syntaxes import ENDPOINT_MAPPER, MANAGEMENT, Syntax
from openmsmq.wire.rpc.towers import Tower

QUEUES = Syntax.of("11111111-2222-3333-4444-555555555555", 1)


def asked(mapper: EndpointMapper, interface: Syntax) -> bytes:
    (answer,) = mapper.called(1, OPERATION, question(interface), Instant(0, 0))
    assert isinstance(answer, Return)
    return answer.stub


def test_the_mapper_says_where_an_interface_is() -> None:
    mapper = EndpointMapper([Endpoint(QUEUES, "192.0.2.1", 2103, "queues")])
    assert port_in(QUEUES, asked(mapper, QUEUES)) == 2103
    assert port_in(MANAGEMENT, asked(mapper, MANAGEMENT)) is None


def test_what_is_about_another_interface_is_passed_over() -> None:
    towers = tuple(
        Tower.over_tcp(interface, "192.0.2.1", port).encode()
        for interface, port in ((ENDPOINT_MAPPER, 135), (QUEUES, 0), (QUEUES, 2114))
    )
    stub = MAPPED.encode(Mapped(NO_HANDLE, 3, Varying(4, towers), OK))
    assert port_in(QUEUES, stub) == 2114


@given(st.binary(max_size=300))
def test_any_answer_is_read_or_refused(stub: bytes) -> None:
    with suppress(DecodeError):
        port_in(QUEUES, stub)
