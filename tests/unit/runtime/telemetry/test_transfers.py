"""A tap knows which message an acknowledgment is for; where it does not, it does no harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.protocol.session_windows import ReceiveWindow
from openmsmq.runtime.telemetry.transfers import SessionTap
from openmsmq.wire.packet_buffer import session_ack
from tests.runtime.collector import Collector
from tests.unit.runtime.telemetry.traced_packets import SPAN, Making, context, making, packet

NOW = Instant(0, 0)
PACKETS = [
    packet(context(), 1),
    packet(b"", 2),
    packet(context(), 3, recoverable=False),
    packet(context(flags=0), 4),
    packet(context(), 5),
]
MADE = ["\\1", "\\3", "\\5"]


class Receiver:
    """The other queue manager: says what it has taken."""

    def __init__(self) -> None:
        self._window = ReceiveWindow(64)

    def takes(self, packets: list[bytes]) -> bytes:
        self._window.arrived(packets, NOW)
        self._window.settle(len(packets), NOW)
        return session_ack(self._window.header(0, 0, NOW))


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def test_a_span_is_made_when_the_message_is_acknowledged_and_not_before() -> None:
    receiver = Receiver()
    with Collector() as collector, making(collector) as made:
        tap = SessionTap(made.spans, "10.0.0.7")
        # However the bytes come, and with a message of the other side among them.
        for piece in cut(b"".join(PACKETS), 100):
            tap.sent(piece)
        for piece in cut(packet(context(), 99) + receiver.takes(PACKETS[:2]), 7):
            tap.received(piece)
        assert made.spans.made_count == 1
        tap.received(receiver.takes(PACKETS[2:]))
        assert made.spans.made_count == 3
        found = collector.spans(3)
        identifiers = sorted(str(span.facts["messaging.message.id"])[-2:] for span in found)
        assert identifiers == MADE
        for span in found:
            assert span.name == r"transfer DIRECT=TCP:10.0.0.7\PRIVATE$\orders"
            assert span.parent_id == f"{SPAN:016x}"
            assert span.facts["network.peer.address"] == "10.0.0.7"


def test_an_acknowledgment_of_what_was_never_sent_makes_no_span() -> None:
    with Collector() as collector, making(collector) as made:
        tap = SessionTap(made.spans, "10.0.0.7")
        tap.sent(PACKETS[0])
        tap.received(Receiver().takes(PACKETS))
        tap.sent(PACKETS[0])
        tap.received(Receiver().takes(PACKETS[:1]))
        assert made.spans.made_count == 0
        assert made.lines == []


@pytest.fixture(scope="module")
def maker() -> Iterator[Making]:
    with Collector() as collector, making(collector) as made:
        yield made


@given(pieces=st.lists(st.tuples(st.booleans(), st.binary(max_size=200)), max_size=6))
def test_no_bytes_do_harm(maker: Making, pieces: list[tuple[bool, bytes]]) -> None:
    tap = SessionTap(maker.spans, "10.0.0.7")
    for is_sent, data in pieces:
        (tap.sent if is_sent else tap.received)(data)
    assert maker.spans.made_count == 0
    assert maker.lines == []
