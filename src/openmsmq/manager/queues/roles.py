"""What a queue is there for, and what may therefore be done with it.

Nobody asks for the role of a queue by its name: whoever wants to know what it takes, whose it is
or what its end means asks its capabilities, which stand here side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from openmsmq.model.message import MessageClass
from openmsmq.model.queue import QueueRole


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What may be done with the queues of one role."""

    take_messages: bool = False
    """Applications and other queue managers send to it."""
    take_moved: bool = False
    """Messages can be moved into it."""
    stand_alone: bool = False
    """It has properties and rights of its own, and can be deleted."""
    lead_away: bool = False
    """Its messages wait to leave for another computer."""
    hold_sent: bool = False
    """What is in it was sent to another computer: only administrators look into it."""
    hold_copies: bool = False
    """It is the journal of another: to take from it needs a right of its own."""
    belong_to_manager: bool = False
    """It is there with the queue manager, whose rights are its rights."""
    be_part: bool = False
    """It shares the quota of its parent, and messages can be moved between them."""
    be_charged: bool = False
    """What strangers put into it counts as theirs."""
    tell_of_expiry: bool = True
    """A message that expires there is lost, and that is noted."""
    when_purged: MessageClass = MessageClass.NACK_QUEUE_PURGED
    """What its messages become when it is emptied."""
    when_expired: MessageClass = MessageClass.NACK_RECEIVE_TIMEOUT
    """What its messages become when their time is up."""

    @property
    def be_sent_to(self) -> bool:
        """Whether applications may open it for sending."""
        return self.take_messages or self.lead_away


CAPABILITIES: Final = {
    QueueRole.APPLICATION: Capabilities(
        take_messages=True, take_moved=True, stand_alone=True, be_charged=True
    ),
    QueueRole.JOURNAL: Capabilities(hold_copies=True),
    QueueRole.SUBQUEUE: Capabilities(take_moved=True, be_part=True),
    QueueRole.SYSTEM: Capabilities(belong_to_manager=True, be_charged=True),
    QueueRole.OUTGOING: Capabilities(
        lead_away=True,
        hold_sent=True,
        when_purged=MessageClass.NACK_PURGED,
        when_expired=MessageClass.NACK_REACH_QUEUE_TIMEOUT,
    ),
    QueueRole.AWAITING: Capabilities(
        hold_sent=True,
        tell_of_expiry=False,
        when_expired=MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER,
    ),
}
