from __future__ import annotations

from collections.abc import Callable

import pytest

from openmsmq.client.connections.rpc_connection import RpcConnection, RpcFailed
from openmsmq.client.managing.host import RemoteHost
from openmsmq.model.errors import QueueNotFound
from openmsmq.protocol.rpc.states import CallArrived
from openmsmq.wire.rpc import management as rpc
from openmsmq.wire.rpc.variants import NULL, Variant, VariantTag
from tests.unit.client.connections.test_rpc_connection import ours, played
from tests.unit.protocol.rpc.conversations import OPEN

Answer = Callable[[CallArrived], bytes | int]


def asked(answer: Answer, ask: Callable[[RemoteHost], object]) -> object:
    with played(ours(answer)) as place, RpcConnection(place, OPEN, None, 10) as connection:
        return ask(RemoteHost("beta", connection))


def test_the_names_that_people_give_are_those_of_the_computer() -> None:
    host = RemoteHost("beta", None)  # type: ignore[arg-type]
    assert str(host.name_of(r"private$\q")) == r"DIRECT=OS:beta\PRIVATE$\q"
    assert str(host.name_of(r".\q")) == r"DIRECT=OS:beta\q"
    assert str(host.name_of(r"GAMMA\private$\q")) == r"DIRECT=OS:GAMMA\PRIVATE$\q"
    assert str(host.name_of(r"DIRECT=OS:x\q")) == r"DIRECT=OS:x\q"
    by_address = RemoteHost("192.0.2.7", None)  # type: ignore[arg-type]
    assert str(by_address.name_of(r"private$\q")) == r"DIRECT=TCP:192.0.2.7\PRIVATE$\q"


@pytest.mark.spec("MQMR-3.2.4-02", "MQMR-3.2.4-03")
def test_values_beside_an_error_are_ignored() -> None:
    def answer(_: CallArrived) -> bytes:
        names = Variant(VariantTag.LPWSTR_VECTOR, ("a",))
        return rpc.INFO.encode(rpc.Info((names,), QueueNotFound.code))

    with pytest.raises(QueueNotFound):
        asked(answer, lambda host: host.private_queues())


@pytest.mark.spec("MQMR-3.2.4-04", "MQMR-3.2.4-05")
@pytest.mark.parametrize(
    "stub",
    [
        b"",
        rpc.INFO.encode(rpc.Info((NULL, NULL), 0)),
        # A vector of three texts that points nowhere.
        bytes.fromhex("01000000 00000000 1f10 000000000000 1f10 0000 03000000 00000000 00000000"),
    ],
)
def test_an_answer_that_cannot_be_right_is_none(stub: bytes) -> None:
    with pytest.raises(RpcFailed):
        asked(lambda _: stub, lambda host: host.private_queues())
