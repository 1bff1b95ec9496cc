"""What operators ask about outgoing queues: how far they are, and why they are stuck."""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.posts.departures import PostDepartures
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.entries import IN_TRANSIT
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.transfer.control import TransferControl
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter, UnsupportedAccessMode
from openmsmq.model.identity import SequencePoint
from openmsmq.model.queue import OutgoingQueueState
from openmsmq.protocol.explain import MessageStage, StuckFacts, explain
from openmsmq.protocol.link import LinkState
from openmsmq.storage import records
from openmsmq.wire.srmp.limits import POSTS_UNDER_WAY_MAX_COUNT

_ACTIONS: Final = ("pause", "resume", "resend")


class OutgoingRequests:
    """Shows outgoing queues, and lets operators hold and release them."""

    def __init__(
        self,
        table: QueueTable,
        outgoing: OutgoingQueues,
        control: TransferControl,
        posts: PostDepartures,
        replies: Replies,
        *,
        hardened: bool,
    ) -> None:
        self._hardened = hardened
        self._table = table
        self._outgoing = outgoing
        self._control = control
        self._posts = posts
        self._replies = replies

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.ListOutgoing, self.list_outgoing)
        handlers.add(api.ControlOutgoing, self.control)
        handlers.add(api.SetOnline, self.set_online)

    def list_outgoing(
        self, state: Connection, call: int, request: api.ListOutgoing, now: Instant
    ) -> None:
        """Show one outgoing queue, or all."""
        if request.name:
            wanted = [self._find(request.name)]
        else:
            wanted = [
                self._outgoing.of(queue) for queue in list(self._table) if queue.can.lead_away
            ]
        reply = api.OutgoingQueues([self._status_of(outgoing, now) for outgoing in wanted])
        self._replies.answer(state.id, call, reply)

    def control(
        self, state: Connection, call: int, request: api.ControlOutgoing, now: Instant
    ) -> None:
        """Pause, resume or resend. [MQDMPR 3.1.7.2.3, 3.1.7.2.4]"""
        outgoing = self._find(request.name)
        if request.action == "pause":
            self._control.pause(outgoing, now)
        elif request.action == "resume":
            self._control.resume(outgoing, now)
        elif request.action == "resend":
            self._control.resend(outgoing, now)
        else:
            raise InvalidParameter(f"{request.action!r} is none of {', '.join(_ACTIONS)}")
        self._replies.answer_when_done(state.id, call, api.Done())

    def set_online(
        self, state: Connection, call: int, request: api.SetOnline, now: Instant
    ) -> None:
        """Take part in the transfer between queue managers, or not."""
        self._control.set_online(online=request.online, now=now)
        self._replies.answer_when_done(state.id, call, api.Done())

    def explanation(self, name: str, now: Instant) -> str:
        """Say why the first message of an outgoing queue has not left yet."""
        return explain(self._facts(self._find(name), now))

    def _find(self, name: str) -> OutgoingQueue:
        queue = self._table.find_outgoing(name)
        if not queue.can.lead_away:
            raise UnsupportedAccessMode(f"{name} is a queue of this computer, not an outgoing one")
        return self._outgoing.of(queue)

    def _status_of(self, outgoing: OutgoingQueue, now: Instant) -> api.OutgoingStatus:
        link = self._control.link_of(outgoing)
        session = self._control.session_of(outgoing)
        queue, awaiting = outgoing.queue, outgoing.awaiting
        unread = 0 if awaiting is None else awaiting.count
        sequence = outgoing.sequence.status(unread)
        return api.OutgoingStatus(
            format_name=queue.name,
            state=self._state_of(outgoing).management_text,
            explanation=explain(self._facts(outgoing, now)),
            paused=outgoing.paused,
            message_count=queue.count,
            message_bytes=queue.size,
            unread_count=unread,
            next_hops=[] if link is None else list(link.next_hops),
            address="" if session is None else session.address,
            in_flight_count=0 if session is None else session.in_flight_count,
            sequence=0 if outgoing.sequence.id is None else int(outgoing.sequence.id),
            next_number=0 if sequence.next is None else sequence.next.number,
            unacknowledged_count=sequence.unacknowledged_count,
            last_acknowledged_number=(
                0 if sequence.last_acknowledged is None else sequence.last_acknowledged.number
            ),
            last_ack_time_s=sequence.last_ack_time_s,
            resend_count=sequence.resend_count,
            resend_time_s=sequence.resend_time_s,
            history=[
                api.ConnectionAttempt(event.status, event.time_s, list(event.addresses))
                for event in (() if link is None else link.history)
            ],
            last_acknowledged=_place(sequence.last_acknowledged),
            first_unacknowledged=_place(sequence.first_unacknowledged),
            last_unacknowledged=_place(sequence.last_unacknowledged),
            next_place=_place(sequence.next),
            last_ack_count=sequence.last_ack_count,
            resend_interval_s=sequence.resend_interval_s,
            open_count=queue.open_count,
            failing=self._is_failing(outgoing),
        )

    def _state_of(self, outgoing: OutgoingQueue) -> OutgoingQueueState:
        if self._hardened and not outgoing.is_http:
            return OutgoingQueueState.LOCKED
        if outgoing.paused:
            return OutgoingQueueState.ON_HOLD
        lane = self._posts.lane_of(outgoing)
        if outgoing.session is not None or (lane is not None and lane.under_way):
            return OutgoingQueueState.CONNECTED
        if lane is not None and lane.retry_at_ms is not None:
            # A post has failed, and none leaves before its time. [MQSRM 3.1.7.2.5]
            return OutgoingQueueState.INACTIVE
        if outgoing.is_http and not outgoing.queue.count:
            # The next message makes a connection. [MQSRM 3.1.6.4]
            return OutgoingQueueState.DISCONNECTED
        link = self._control.link_of(outgoing)
        return OutgoingQueueState.INACTIVE if link is None else link.queue_state

    def _is_failing(self, outgoing: OutgoingQueue) -> bool:
        """Whether nothing leaves, which the state does not say: INACTIVE means two things."""
        if self._hardened and not outgoing.is_http:
            return True
        lane = self._posts.lane_of(outgoing)
        return lane is not None and lane.attempt > 0

    def _facts(self, outgoing: OutgoingQueue, now: Instant) -> StuckFacts:
        link = self._control.link_of(outgoing)
        session = self._control.session_of(outgoing)
        awaiting = outgoing.awaiting
        count = outgoing.queue.count
        if not count and awaiting is not None:
            count = awaiting.count
        status = outgoing.sequence.status(0)
        described = {} if session is None else session.describe()
        unheard_ms = described.get("unheard_since_ms")
        window = described.get("window")
        state = LinkState.IDLE if link is None else link.state
        lane = self._posts.lane_of(outgoing)
        problem = "" if link is None else link.last_problem
        if lane is not None:
            state = LinkState.OPEN if lane.retry_at_ms is None else LinkState.WAITING
            problem, retry_at_ms = lane.problem, lane.retry_at_ms
            in_flight_count = len(lane.under_way)
        else:
            retry_at_ms = None if link is None else link.retry_at_ms
            in_flight_count = 0 if session is None else session.in_flight_count
        silent_s = (now.ticks_ms - unheard_ms) // 1000 if isinstance(unheard_ms, int) else 0
        return StuckFacts(
            neighbour=outgoing.queue.name if link is None else link.name,
            message_count=count,
            offline=not self._control.online,
            hardened=self._hardened and not outgoing.is_http,
            paused=outgoing.paused,
            stage=self._stage_of(outgoing),
            link=LinkState.OPEN if session is not None else state,
            address="" if session is None else session.address,
            last_problem=problem,
            link_since_s=0 if link is None else (now.ticks_ms - link.since_ms) // 1000,
            retry_in_s=0 if retry_at_ms is None else max(retry_at_ms - now.ticks_ms, 0) // 1000,
            window=window if isinstance(window, int) else POSTS_UNDER_WAY_MAX_COUNT,
            in_flight_count=in_flight_count,
            silent_for_s=silent_s,
            sent_s=self._sent_s(outgoing, silent_s, now),
            resend_in_s=max(status.resend_time_s - now.unix_s, 0),
        )

    def _sent_s(self, outgoing: OutgoingQueue, silent_s: int, now: Instant) -> int:
        """How long ago the first message left, or arrived if it waits for its end."""
        status = outgoing.sequence.status(0)
        if not outgoing.queue.count and outgoing.awaiting is not None:
            first = next(outgoing.awaiting.rows(-1), None)
            arrived_s = now.unix_s if first is None else records.place_of(first[1])[0]
            return max(now.unix_s - arrived_s, 0)
        if status.unacknowledged_count:
            return max(now.unix_s - status.resend_time_s + status.resend_interval_s, 0)
        return silent_s

    def _stage_of(self, outgoing: OutgoingQueue) -> MessageStage:
        first = next(outgoing.queue.rows(-1), None)
        if first is None:
            return MessageStage.AWAITING_FINAL_ACK
        lookup_id = first[0]
        if not outgoing.queue.entries.is_held_by(lookup_id, IN_TRANSIT):
            return MessageStage.QUEUED
        waits_for_order = outgoing.sequence.is_outstanding(lookup_id)
        if waits_for_order and lookup_id not in outgoing.in_flight:
            return MessageStage.AWAITING_ORDER_ACK
        return MessageStage.IN_FLIGHT


def _place(point: SequencePoint | None) -> api.SequencePlace:
    if point is None:
        return api.SequencePlace()
    return api.SequencePlace(int(point.id), point.number, point.previous)
