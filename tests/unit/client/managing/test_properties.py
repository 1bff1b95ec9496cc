from __future__ import annotations

import pytest

from openmsmq.client.managing.properties import (
    MACHINE_PROPERTIES,
    QUEUE_PROPERTIES,
    machine_of,
    queue_of,
    texts_of,
)
from openmsmq.wire.rpc.variants import EMPTY, NULL, Variant, VariantTag

TEXT = VariantTag.LPWSTR


def test_what_a_computer_does_not_tell_is_none() -> None:
    queue = queue_of([NULL] * len(QUEUE_PROPERTIES))
    assert (queue.path_name, queue.is_local, queue.message_count) == (None, None, None)
    assert queue.next_hops == ()
    machine = machine_of([EMPTY] * len(MACHINE_PROPERTIES))
    assert (machine.software, machine.online, machine.message_bytes) == (None, None, None)


def test_what_has_another_shape_than_it_should_is_as_if_not_told() -> None:
    queue = queue_of([Variant(VariantTag.UI4, 7)] * len(QUEUE_PROPERTIES))
    assert (queue.path_name, queue.state, queue.next_hops) == (None, None, ())
    assert queue.message_count == 7
    assert texts_of(Variant(VariantTag.LPWSTR_VECTOR, ("a", None, "b"))) == ["a", "b"]


@pytest.mark.parametrize(("said", "is_online"), [("CONNECTED", True), ("DISCONNECTED", False)])
def test_whether_a_computer_is_online(said: str, is_online: bool) -> None:
    machine = machine_of([Variant(TEXT, said), Variant(TEXT, "MSMQ"), NULL, NULL])
    assert machine.online is is_online
    assert machine.software == "MSMQ"
