"""Refusals: what follows from a message of others that is not taken. [MQQB 3.1.5.8.3]"""

from __future__ import annotations

from openmsmq.manager.incoming.order_acks import FinalAcks
from openmsmq.manager.incoming.runs import Runs
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.messages.shares import Shares
from openmsmq.model.clock import Instant
from openmsmq.model.message import MessageClass
from openmsmq.wire.headers import user
from openmsmq.wire.outline import Outline


class Refusals:
    """Counts messages that are refused for good, and tells who wants to know."""

    def __init__(
        self, delivery: Delivery, reporter: Reporter, finals: FinalAcks, shares: Shares, runs: Runs
    ) -> None:
        self._delivery = delivery
        self._reporter = reporter
        self._finals = finals
        self._shares = shares
        self.runs = runs

    def require_room_for_dead_letter(
        self, packet: bytes, found: Outline, reason: MessageClass
    ) -> None:
        """Raise `NoRoom` if a refused message would be kept, and there is no room for it."""
        if _leaves_dead_letter(found, reason) and not self._shares.is_beyond_share(len(packet)):
            self.runs.require_room(packet)

    def reject(self, packet: bytes, found: Outline, reason: MessageClass, now: Instant) -> None:
        """Count a message that is refused for good, and tell who wants to know."""
        self._shares.dropped(packet, reason)
        self.tell(packet, found, reason, now)

    def tell(self, packet: bytes, found: Outline, reason: MessageClass, now: Instant) -> None:
        """Tell who wants to know that a message is refused for good. [MQQB 3.1.5.8.3]"""
        if self._shares.may_report(reason):
            self._reporter.report(packet, reason, now)
        if found.flags & user.TRANSACTION:
            self._finals.send(packet, self._shares.told(reason), now)
        elif _leaves_dead_letter(found, reason) and not self._shares.is_beyond_share(len(packet)):
            kept = self._delivery.keep_dead_letter(packet, reason, now)
            if kept is not None:
                self._shares.charge(kept, len(packet))


def _leaves_dead_letter(found: Outline, reason: MessageClass) -> bool:
    """Whether a refused message is kept here: its source has been told that it arrived (C-84)."""
    return (
        not found.flags & user.TRANSACTION
        and bool(found.flags & user.JOURNAL_ON_FAILURE)
        and reason in (MessageClass.NACK_QUEUE_EXCEEDS_QUOTA, MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    )
