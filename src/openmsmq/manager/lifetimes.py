"""How long outgoing messages may travel, and when the clock is told of it."""

from __future__ import annotations

import struct
from typing import Final

from openmsmq.model.limits import INFINITE_S

_LIFETIMES: Final = struct.Struct("<12xI32xII")
"""Time to reach the queue, time to be received, time of sending."""

NEAR_S: Final = 3600
"""Deadlines of outgoing messages are noted in the store only when they are so near: most messages
leave long before, and a note costs as much as a message."""


def is_near(deadline_s: int, unix_s: int) -> bool:
    """Whether a deadline of an outgoing message is noted in the store by now."""
    return deadline_s - unix_s <= NEAR_S


def travel_deadline_s(packet: bytes) -> int:
    """Until when a message may travel (C-25)."""
    reach_within_s, receive_within_s, sent_s = _LIFETIMES.unpack_from(packet)
    return deadline_s(sent_s, min(reach_within_s, receive_within_s))


def deadline_s(sent_s: int, within_s: int) -> int:
    """When a lifetime ends, as a time of the wall clock."""
    return INFINITE_S if within_s == INFINITE_S else min(sent_s + within_s, INFINITE_S - 1)
