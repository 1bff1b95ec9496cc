"""Forwarding: messages that only pass through. [MQQB 3.1.5.8.2]"""

from __future__ import annotations

from openmsmq.manager.incoming.destinations import Destination, Judging
from openmsmq.manager.incoming.refusals import Refusals
from openmsmq.manager.incoming.traces import Traces
from openmsmq.manager.incoming.unrouted import Unrouted
from openmsmq.manager.messages.staging import Staging
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.queues.guests import Guest
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.model.message import MessageClass
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import user
from openmsmq.wire.outline import Outline


class Forwarding:
    """Sends messages of others on towards their queue managers."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        judging: Judging,
        staging: Staging,
        unrouted: Unrouted,
        refusals: Refusals,
        traces: Traces,
    ) -> None:
        self._acting = base.acting
        self._counters = base.counters
        self._table = table
        self._judging = judging
        self._staging = staging
        self._unrouted = unrouted
        self._refusals = refusals
        self._runs = refusals.runs
        self._traces = traces

    def take(
        self, packet: bytes, found: Outline, to: Destination, peer: Peer, now: Instant
    ) -> None:
        """Send a message on towards its queue manager. [MQQB 3.1.5.8.2]

        Only its destination looks whether it came before: when the directory changes on its way it
        may rightly come here again, and to forget it then would lose it. Others believe us whom we
        bring messages of, so we take them only of those whom we believe.
        """
        if not self._judging.may_pass_on(to):
            self._judging.refuse_foreign(packet, found, peer, now)
            return
        if found.flags & user.TRANSACTION and (
            message_bytes.source(packet) == self._counters.identifier
        ):
            # It is our own and has come back. We have it until its destination acknowledges it.
            return
        reason: MessageClass | None = None
        queue: LocalQueue | None = None
        if message_bytes.hop_count(packet) >= HOP_MAX_COUNT:
            reason = MessageClass.NACK_HOP_COUNT_EXCEEDED
        elif self._runs.has_expired(packet, now):
            reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        else:
            queue = self._onward(to, packet, peer.engine.address, now)
            if queue is None:
                self._unrouted.refused(packet, peer.engine.address, now)
                self._refusals.tell(packet, found, MessageClass.NACK_BAD_DESTINATION_QUEUE, now)
                return
            if self._runs.quota_problem(queue, packet) is not None:
                reason = MessageClass.NACK_QUEUE_EXCEEDS_QUOTA
        if reason is not None or queue is None:
            refused = reason or MessageClass.NACK_BAD_DESTINATION_QUEUE
            self._refusals.require_room_for_dead_letter(packet, found, refused)
            self._refusals.reject(packet, found, refused, now)
            return
        counted = message_bytes.hop_counted(packet)
        self._runs.add_staged(queue, self._staging.stage(queue, counted, found), now)
        if self._traces.is_wanted:
            self._traces.arrived(counted, now)

    def _onward(
        self, to: Destination, packet: bytes, address: str, now: Instant
    ) -> LocalQueue | None:
        if to.queue is None and to.route is not None:
            has_way = self._unrouted.has_way(to.route, to.manager, now)
            if not has_way and not self._unrouted.lets_wait(
                to.route, to.manager, packet, address, now
            ):
                return None
            try:
                queue = self._table.outgoing(
                    to.route, guest=Guest(self._acting.asker, reports=False)
                )
            except MsmqError:
                return None
            if not has_way:
                # The next packet may have no room there any more.
                return queue
            to.lead_to(queue)
        return to.queue
