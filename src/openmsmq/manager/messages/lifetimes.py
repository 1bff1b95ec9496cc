"""How long messages may travel and wait, and when the clock is told of it."""

from __future__ import annotations

from typing import Final

from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.message_bytes import sent_time_s, time_to_be_received_s, time_to_reach_queue_s

NEAR_S: Final = 3600
"""Deadlines of outgoing messages are noted in the store only when they are so near: most messages
leave long before, and a note costs as much as a message."""


def is_near(deadline_s: int, unix_s: int) -> bool:
    """Whether a deadline of an outgoing message is noted in the store by now."""
    return deadline_s - unix_s <= NEAR_S


def travel_deadline_s(packet: bytes) -> int:
    """Until when a message may travel (C-25)."""
    within_s = min(time_to_reach_queue_s(packet), time_to_be_received_s(packet))
    return deadline_s(sent_time_s(packet), within_s)


def receive_deadline_s(packet: bytes) -> int:
    """Until when a message may be received."""
    return deadline_s(sent_time_s(packet), time_to_be_received_s(packet))


def deadline_s(sent_s: int, within_s: int) -> int:
    """When a lifetime ends, as a time of the wall clock."""
    return INFINITE_S if within_s == INFINITE_S else min(sent_s + within_s, INFINITE_S - 1)
