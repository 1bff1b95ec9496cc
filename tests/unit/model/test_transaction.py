from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.message import MessageClass
from openmsmq.model.transaction import DequeueStep, EnqueueStep, MoveStep, TransactionStep

QUEUE = Guid.parse("00000000-0000-0000-0000-000000000001")


@pytest.mark.spec("MQDMPR-3.1.1.13-02", "MQDMPR-3.1.1.13-03", "MQDMPR-3.1.1.13-04")
def test_a_step_enqueues_dequeues_for_a_reason_or_moves_to_a_target():
    assert set(TransactionStep.__args__) == {EnqueueStep, DequeueStep, MoveStep}
    assert EnqueueStep(QUEUE, 1).arrival_number == 1
    assert DequeueStep(QUEUE, 1, MessageClass.ACK_RECEIVE).reason == 0x4000
    assert MoveStep(QUEUE, 1, NIL_GUID).target == NIL_GUID
    with pytest.raises(TypeError, match="reason"):
        DequeueStep(QUEUE, 1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="target"):
        MoveStep(QUEUE, 1)  # type: ignore[call-arg]


@given(st.binary(min_size=16, max_size=16).map(Guid), st.integers(1, 2**56 - 1))
def test_steps_are_told_apart_when_they_come_back_from_the_store(queue, number):
    steps = [EnqueueStep(queue, number), DequeueStep(queue, number, 0x4000)]
    steps.append(MoveStep(queue, number, QUEUE))
    stored = msgspec.msgpack.encode(steps, enc_hook=bytes)
    decoder = msgspec.msgpack.Decoder(
        list[EnqueueStep | DequeueStep | MoveStep],
        dec_hook=lambda kind, value: kind(value),
    )
    assert decoder.decode(stored) == steps
