"""Stored packets that are sent again, and why a message has become a dead letter."""

from __future__ import annotations

import pytest

from openmsmq.api.messages import Entry
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.again import PacketRewriter, dead_letter_reason
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.errors import InvalidParameter

ORDERS = r"DIRECT=OS:beta\PRIVATE$\orders"


def received(packet: bytes, arrived_time_s: int = 0) -> ReceivedMessage:
    return ReceivedMessage(Entry(1, arrived_time_s, 0, 0, packet), DEFAULT_FORMATTER)


def packet_of(message: OutgoingMessage, *, transactional: bool = False) -> bytes:
    builder = PacketBuilder(r"OS:alpha\private$\a", "ALPHA")
    return builder.build(message, DEFAULT_FORMATTER, transactional)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_packet_fits_the_queue_that_it_is_sent_to(before: bool, after: bool) -> None:
    packet = packet_of(OutgoingMessage(body="hello", label="l"), transactional=before)
    rewriter = PacketRewriter(transactional=after, format_name=ORDERS)
    again = received(rewriter.rewrite(packet))
    assert (again.body, again.label) == ("hello", "l")
    assert str(again.destination) == ORDERS
    assert again.transactional == after
    # An express message survives a restart from the moment it is part of a transaction.
    assert again.recoverable == (before or after)


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="not a message"):
        PacketRewriter(transactional=False).rewrite(b"nonsense")


def test_a_message_whose_time_was_up_has_that_as_its_reason() -> None:
    message = OutgoingMessage(body="x", time_to_be_received_s=10)
    assert dead_letter_reason(received(packet_of(message), 10)) == "NACK_RECEIVE_TIMEOUT"
    assert dead_letter_reason(received(packet_of(message), 9)) is None
