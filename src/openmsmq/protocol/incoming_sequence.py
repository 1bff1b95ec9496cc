"""Which transactional messages of one sender a queue takes, and when the sender hears of it.

A message is taken once and in its turn. Two positions are kept: the *assumed* one decides about
the next message, the *settled* one is on disk and is all that an order acknowledgment tells.
A crash or a refusing disk takes back what was only assumed, and the sender still has it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId, SequencePoint
from openmsmq.model.limits import ORDER_ACK_SEND_MS
from openmsmq.protocol.config import TransferConfig

ORDER_ACK_AFTER_COUNT: Final = 1_000
"""So many settled messages are acknowledged at once: a busy sender must not run out of room."""


class Verdict(Enum):
    """What becomes of a transactional message that has arrived. [MQQB 3.1.5.8.6]"""

    ACCEPT = "accept"
    DUPLICATE = "duplicate"
    GAP = "gap"
    STALE = "stale"


class IncomingSequence:
    """The transactional messages of one sender to one queue (C-62). [MQQB 3.1.5.8.6]"""

    def __init__(
        self,
        config: TransferConfig,
        id: SequenceId,
        number: int,
        *,
        rejected_count: int = 0,
        last_access_time_s: int = 0,
    ) -> None:
        self.id = id
        """The sequence of the last message that is on disk."""
        self.number = number
        """The number of the last message that is on disk; 0 when there was none."""
        self.rejected_count = rejected_count
        """Messages dropped for a gap since the last one that was taken."""
        self.last_access_time_s = last_access_time_s
        self._assumed_id = id
        self._assumed_number = number
        self._max_delay_ms = config.order_ack_max_delay_s * 1000
        self._heard_ms = 0
        self._order_ack_at_ms: int | None = None
        # A new sequence counts as acknowledged when its first message comes, so that the longest
        # delay runs from there.
        self._acknowledged_at_ms: int | None = None
        self._acknowledged_number = number

    def judge(self, id: SequenceId, number: int, previous: int) -> Verdict:
        """Return what becomes of a message; changes nothing. [MQQB 3.1.5.8.6]"""
        if id == self._assumed_id:
            if number <= self._assumed_number:
                return Verdict.DUPLICATE
            return Verdict.ACCEPT if previous <= self._assumed_number else Verdict.GAP
        if id < self._assumed_id:
            return Verdict.STALE
        # A younger sequence begins after its sender was told of all older messages, or gave them
        # up. A message without a number has no place in any sequence.
        return Verdict.ACCEPT if previous == 0 and number > 0 else Verdict.GAP

    def is_younger(self, id: SequenceId) -> bool:
        """Whether a sequence is a younger one than that of the last message accepted."""
        return id > self._assumed_id

    def assume(self, id: SequenceId, number: int) -> None:
        """Go on from an accepted message, which is not on disk yet."""
        self._assumed_id = id
        self._assumed_number = number
        self.rejected_count = 0

    @property
    def assumed(self) -> tuple[SequenceId, int]:
        """The place of the last accepted message, whether it is on disk yet or not."""
        return self._assumed_id, self._assumed_number

    def reject(self) -> None:
        """Count a message that was dropped for a gap."""
        self.rejected_count += 1

    def settle(self, id: SequenceId, number: int) -> None:
        """Note that everything up to this message is on disk. Positions only grow."""
        if id != self.id:
            if id < self.id:
                return
            self._acknowledged_number = 0
        elif number <= self.number:
            return
        self.id = id
        self.number = number
        if id > self._assumed_id or (id == self._assumed_id and number > self._assumed_number):
            self._assumed_id = id
            self._assumed_number = number
        if (
            self._order_ack_at_ms is not None
            and number - self._acknowledged_number >= ORDER_ACK_AFTER_COUNT
        ):
            self._order_ack_at_ms = self._heard_ms

    def forget_assumed(self) -> None:
        """Go back to what is on disk, because the disk refused the rest."""
        self._assumed_id = self.id
        self._assumed_number = self.number

    def heard(self, now: Instant) -> None:
        """Plan an order acknowledgment: messages have come, whatever their verdict was.

        Further messages put it off, but not when the last one was long ago. [MQQB 3.1.2.7]
        """
        self.last_access_time_s = now.unix_s
        self._heard_ms = ticks_ms = now.ticks_ms
        if self._acknowledged_at_ms is None:
            self._acknowledged_at_ms = ticks_ms
        if (
            self._order_ack_at_ms is None
            or ticks_ms - self._acknowledged_at_ms < self._max_delay_ms
        ):
            self._order_ack_at_ms = ticks_ms + ORDER_ACK_SEND_MS

    def order_ack_due(self, now: Instant) -> SequencePoint | None:
        """Return the place to acknowledge, once, when its time has come. [MQQB 3.1.6.9]

        Before the first message is on disk there is nothing to tell (C-74). While messages are on
        their way to the disk, the next acknowledgment is planned at once: the sender would not
        hear of them otherwise.
        """
        if self._order_ack_at_ms is None or now.ticks_ms < self._order_ack_at_ms:
            return None
        on_the_way = self._assumed_number != self.number or self._assumed_id != self.id
        self._order_ack_at_ms = now.ticks_ms + ORDER_ACK_SEND_MS if on_the_way else None
        if self.number == 0:
            return None
        self._acknowledged_at_ms = now.ticks_ms
        self._acknowledged_number = self.number
        return SequencePoint(self.id, self.number, self.number - 1)

    @property
    def next_wake_ms(self) -> int | None:
        """When `order_ack_due` is to be asked again; None while no message has come."""
        return self._order_ack_at_ms
