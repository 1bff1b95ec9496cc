"""The packets that open a session, and what each side makes of them. [MQQB 3.1.5.2-3.1.5.4]"""

from __future__ import annotations

from typing import Final

from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import (
    ACK_WAIT_MS,
    RECOVERABLE_ACK_SEND_FACTOR,
    RECOVERABLE_ACK_SEND_MAX_MS,
    RECOVERABLE_ACK_SEND_MIN_MS,
)
from openmsmq.protocol.session_states import CloseReason
from openmsmq.wire.headers import establish, internal
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection, encode

ACK_WAIT_MAX_MS: Final = 120_000
"""Longest wait for an acknowledgment that a peer may ask for. [MQQB 2.2.2.1]"""

WINDOW_LIMIT_COUNT: Final = 0x3FFF
"""So that 16-bit numbers tell old from new, also those still waiting to be stored (C-50)."""

_TICKS_MASK: Final = 0xFFFF_FFFF

_REPLY_BASE: Final = BaseHeader(reserved=0x5A)
"""The reserved byte may be anything; programs that look for hosts with MSMQ know this one, which
Windows sends in its answers. [MQQB 4.1]"""


def establish_request(local: Guid, remote: Guid, *, pinged: bool, now: Instant) -> bytes:
    """Ask for a session; a nil `remote` asks whoever is there. [MQQB 3.1.5.2.3]"""
    system = establish.SYSTEM_DEFAULT & (~establish.NO_PING if pinged else ~0)
    header = EstablishHeader(local, remote, now.ticks_ms & _TICKS_MASK, system)
    return encode(EstablishConnection(header))


def is_asked_for(request: EstablishConnection, local: Guid) -> bool:
    """Whether a request means this queue manager: by its identifier, or whoever it is (C-21)."""
    return not request.internal.refused and request.establish.server in (local, NIL_GUID)


def establish_reply(request: EstablishConnection, local: Guid, *, refused: bool) -> bytes:
    """Answer a request with our own identifier, whichever was asked for. [MQQB 3.1.5.3.1]"""
    asked = request.establish
    system = establish.RELEASE_VALUE | establish.SERVER_CLASS | asked.system & establish.NO_PING
    header = EstablishHeader(asked.client, local, asked.ticks_ms, system)
    marks = InternalHeader(internal.REFUSED) if refused else InternalHeader()
    return encode(EstablishConnection(header, marks, _REPLY_BASE))


def judge_reply(reply: EstablishConnection, local: Guid, remote: Guid) -> CloseReason | None:
    """Return why the answer to our request is not good, if it is not. [MQQB 3.1.5.3.2]

    Whoever was asked for only by address is learnt from the answer (C-23).
    """
    if reply.internal.refused:
        return CloseReason.REFUSED
    if reply.establish.client != local or remote not in (NIL_GUID, reply.establish.server):
        return CloseReason.WRONG_PEER
    return None


def recoverable_ack_ms(reply: EstablishConnection, now: Instant) -> int:
    """How long acknowledgments of recoverable messages may wait: eight round trips (C-37)."""
    round_trip_ms = (now.ticks_ms - reply.establish.ticks_ms) & _TICKS_MASK
    return clamped_recoverable_ms(round_trip_ms * RECOVERABLE_ACK_SEND_FACTOR)


def parameters(recoverable_ms: int, ack_wait_ms: int, window: int) -> bytes:
    """Say the timeouts and the window of a session, first or in answer. [MQQB 2.2.2]"""
    return encode(ConnectionParameters(ParametersHeader(recoverable_ms, ack_wait_ms, window)))


def clamped_recoverable_ms(milliseconds: int) -> int:
    """Bring a delay into its legal range (C-38)."""
    return max(RECOVERABLE_ACK_SEND_MIN_MS, min(milliseconds, RECOVERABLE_ACK_SEND_MAX_MS))


def clamped_ack_wait_ms(milliseconds: int, own_ms: int) -> int:
    """Bring a wait into its legal range, or that of a slow network as configured here (C-38)."""
    return max(ACK_WAIT_MS, min(milliseconds, max(ACK_WAIT_MAX_MS, own_ms)))


def clamped_window(window: int) -> int:
    """Bring a window into the range that is of use: at least one packet (C-38, C-50)."""
    return max(1, min(window, WINDOW_LIMIT_COUNT))
