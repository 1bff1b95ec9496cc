"""Why the first message of an outgoing queue has not left yet, in one sentence."""

from __future__ import annotations

from enum import Enum
from typing import assert_never

import msgspec

from openmsmq.protocol.link import LinkState


class MessageStage(Enum):
    """How far the first message of an outgoing queue has come."""

    QUEUED = "queued"
    """Not sent, or to be sent again."""
    IN_FLIGHT = "in flight"
    """Sent in the open session, which has not acknowledged it."""
    AWAITING_ORDER_ACK = "awaiting order ack"
    """Stored by the neighbour; the destination has not said that it came in order."""
    AWAITING_FINAL_ACK = "awaiting final ack"
    """In its queue; whether it is received or fails is not known yet."""


class StuckFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about an outgoing queue; times are seconds from now, into either direction."""

    neighbour: str
    """Where the link leads, as people know it."""
    message_count: int
    """Messages in the queue, those sent and not acknowledged included."""
    offline: bool = False
    hardened: bool = False
    paused: bool = False
    stage: MessageStage = MessageStage.QUEUED
    link: LinkState = LinkState.IDLE
    """Open too while a session serves that the neighbour has opened."""
    address: str = ""
    """The address that is tried or in use."""
    last_problem: str = ""
    """Why the attempt before failed."""
    link_since_s: int = 0
    """How long ago the link came into its state."""
    retry_in_s: int = 0
    """When a waiting link tries again."""
    window: int = 0
    """Packets that may be in flight in the open session."""
    in_flight_count: int = 0
    silent_for_s: int = 0
    """How long ago the open session got its last acknowledgment, or sent its first packet."""
    sent_s: int = 0
    """How long ago the first message was sent last."""
    resend_in_s: int = 0
    """When it is sent again unless the destination acknowledges its order."""


def explain(facts: StuckFacts) -> str:
    """Say in one sentence what the first message of the queue waits for."""
    if not facts.message_count:
        return "The queue is empty."
    if facts.stage is MessageStage.AWAITING_FINAL_ACK:
        return (
            f"The first message was sent {duration(facts.sent_s)} ago and has reached its queue; "
            "whether it is received there is not known yet."
        )
    if held := _held_back(facts):
        return held
    if facts.stage is MessageStage.AWAITING_ORDER_ACK:
        return (
            f"The first message was sent {duration(facts.sent_s)} ago and the destination has "
            "not acknowledged its order yet; it is sent again in "
            f"{duration(facts.resend_in_s)}."
        )
    return _explain_link(facts)


def duration(seconds: int) -> str:
    """Return a duration as people say it: 45 s, 5 min, 6 h."""
    seconds = max(seconds, 0)
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7_200:
        return f"{seconds // 60} min"
    return f"{seconds // 3_600} h"


def _held_back(facts: StuckFacts) -> str:
    if facts.hardened:
        return (
            "The queue is locked: this queue manager is hardened and sends nothing by the binary "
            "protocol."
        )
    if facts.offline:
        return "This queue manager is offline: bring it online to send."
    if facts.paused:
        return "The queue is paused: resume it to send."
    return ""


def _explain_link(facts: StuckFacts) -> str:
    neighbour = facts.neighbour
    match facts.link:
        case LinkState.IDLE:
            return f"A connection to {neighbour} is about to be opened."
        case LinkState.RESOLVING:
            return _under_way(facts, f"The address of {neighbour} is being looked up")
        case LinkState.PINGING:
            return _under_way(facts, f"{_place(facts)} was asked whether it takes a session")
        case LinkState.CONNECTING:
            return _under_way(facts, f"A connection to {_place(facts)} is being opened")
        case LinkState.OPENING:
            return _under_way(
                facts, f"{_place(facts)} is connected, but has not finished opening the session"
            )
        case LinkState.WAITING:
            problem = facts.last_problem or "the last session has ended"
            next_try = duration(facts.retry_in_s)
            return f"There is no connection to {neighbour}: {problem}; next try in {next_try}."
        case LinkState.OPEN:
            return _explain_session(facts)
        case _:
            assert_never(facts.link)


def _explain_session(facts: StuckFacts) -> str:
    place = _place(facts)
    if facts.stage is MessageStage.IN_FLIGHT:
        return (
            f"The first message was sent to {place} {duration(facts.sent_s)} ago and is not "
            "acknowledged yet."
        )
    if facts.in_flight_count >= facts.window:
        return (
            f"The window of {facts.window} messages to {place} is full: nothing was acknowledged "
            f"for {duration(facts.silent_for_s)}."
        )
    return f"The first message is being sent to {place} right now."


def _under_way(facts: StuckFacts, what: str) -> str:
    since = f"{what}, for {duration(facts.link_since_s)} now"
    return f"{since}; before, {facts.last_problem}." if facts.last_problem else f"{since}."


def _place(facts: StuckFacts) -> str:
    if facts.address in ("", facts.neighbour):
        return facts.neighbour
    return f"{facts.neighbour} ({facts.address})"
