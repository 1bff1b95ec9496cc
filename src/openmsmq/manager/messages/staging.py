"""What a packet will cause once it is in a queue, noted before it is put there."""

from __future__ import annotations

from typing import Final

from openmsmq.manager.messages.lifetimes import receive_deadline_s, travel_deadline_s
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.turn.counters import Counters
from openmsmq.model.limits import INFINITE_S
from openmsmq.storage.records import (
    ASKS_DEAD_LETTER,
    ASKS_FINAL_ACK,
    ASKS_RECEIVE_REPORT,
    SENT_HERE,
    StagedSend,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_RECEIVE,
)
from openmsmq.wire.outline import Outline

_SOURCE_JOURNAL: Final = user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS


class Staging:
    """Reads what packets ask for."""

    def __init__(self, counters: Counters, clock_skew_max_s: int) -> None:
        self._own = counters.identifier
        self._clock_skew_max_s = clock_skew_max_s

    def stage(
        self,
        queue: LocalQueue,
        packet: bytes,
        found: Outline,
        *,
        arrived: bool = False,
        sent_here: bool = False,
    ) -> StagedSend:
        """Note what a stamped packet will cause once it is in the queue.

        One that `arrived` came in a session, perhaps from ourselves under another name. One that
        was `sent_here` comes from an application of this computer.
        """
        if queue.can.lead_away:
            return self._stage_outgoing(queue, packet, found, sent_here=sent_here)
        asks = SENT_HERE if sent_here and found.flags & _SOURCE_JOURNAL else 0
        if found.flags & user.ADMIN_QUEUE and (
            message_bytes.acknowledge(packet, found) & (POSITIVE_RECEIVE | NEGATIVE_RECEIVE)
        ):
            asks |= ASKS_RECEIVE_REPORT
        if found.flags & user.TRANSACTION and (
            arrived or message_bytes.source(packet) != self._own
        ):
            # The source keeps the dead letter of a transactional message; it wants to be told.
            # Over HTTP only a wish for a dead letter says so.
            over_http = found.flags & user.OVER_HTTP
            wishes = user.JOURNAL_ON_FAILURE if over_http else _SOURCE_JOURNAL
            if found.flags & wishes or message_bytes.wants_final_ack(
                packet, found.transaction_offset
            ):
                asks |= ASKS_FINAL_ACK
        elif found.flags & user.JOURNAL_ON_FAILURE:
            asks |= ASKS_DEAD_LETTER
        return StagedSend(queue.id, packet, receive_deadline_s(packet), asks)

    def _stage_outgoing(
        self, queue: LocalQueue, packet: bytes, found: Outline, *, sent_here: bool
    ) -> StagedSend:
        """Note until when a packet may travel, and what follows if it does not arrive."""
        asks = SENT_HERE if sent_here and found.flags & _SOURCE_JOURNAL else 0
        if (
            found.flags & user.ADMIN_QUEUE
            and message_bytes.acknowledge(packet, found) & NEGATIVE_ARRIVAL
        ):
            asks |= ASKS_RECEIVE_REPORT
        own = message_bytes.source(packet) == self._own
        if found.flags & user.JOURNAL_ON_FAILURE and (own or not found.flags & user.TRANSACTION):
            asks |= ASKS_DEAD_LETTER
        deadline_s = travel_deadline_s(packet)
        if not own and deadline_s != INFINITE_S:
            # The clock of its source may be ahead of ours, or ours of it (C-24).
            deadline_s = min(deadline_s + self._clock_skew_max_s, INFINITE_S - 1)
        return StagedSend(queue.id, packet, deadline_s, asks)
