"""Which messages are traced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import MessageId
from openmsmq.runtime.telemetry.messages import traced
from tests.unit.runtime.telemetry.traced_packets import SOURCE, context, packet


def test_a_message_whose_sender_records_the_trace_is_traced() -> None:
    found = traced(packet(context()))
    assert found is not None
    assert found.message_id == str(MessageId(SOURCE, 7))
    assert found.body_bytes == len(b"tea")
    assert found.destination == r"DIRECT=TCP:10.0.0.7\PRIVATE$\orders"


@pytest.mark.parametrize("extension", [b"", b"mine", context(flags=0), context(0)])
def test_others_are_not(extension: bytes) -> None:
    assert traced(packet(extension)) is None


@given(st.binary(max_size=300))
def test_what_is_no_message_is_not_traced(data: bytes) -> None:
    assert traced(data) is None
    assert traced(packet(context())[: len(data)]) is None
