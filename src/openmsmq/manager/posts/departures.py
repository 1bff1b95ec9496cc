"""Posts of ours: messages of outgoing queues whose names are URLs. [MQSRM 3.1.7.2.5]

Several are under way to one queue at a time, in the order of the queue. A plain message is gone
when its post is answered 200; one of a stream waits on for its receipt. What is refused is dead;
whatever else becomes of a post, its message is sent again after a pause that grows.
"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import Housekeeping
from openmsmq.manager.messages.news import News
from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.posts.effects import ACCEPTED, MALFORMED
from openmsmq.manager.posts.receipts import StreamReceipts
from openmsmq.manager.queues.entries import IN_TRANSIT
from openmsmq.manager.queues.queue import Row
from openmsmq.manager.transfer.departures import Departures
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.timers import Timers
from openmsmq.model.clock import Instant
from openmsmq.model.message import MessageClass
from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.alike import DepartingRow
from openmsmq.wire.srmp.departing import Departing
from openmsmq.wire.srmp.limits import (
    POSTS_UNDER_WAY_BYTES,
    POSTS_UNDER_WAY_MAX_COUNT,
    POSTS_UNDER_WAY_PER_QUEUE_BYTES,
)

_TOO_LARGE: Final = 413
_REJECTED: Final = (MALFORMED, _TOO_LARGE)
"""Answers after which a message would be refused again and again."""
_BUSY_MS: Final = 1_000
"""The pause after the driver has had too much to do."""


class Lane:
    """What is under way to one queue, and when it goes on after a failure."""

    __slots__ = ("attempt", "bytes", "problem", "retry_at_ms", "sends_again", "under_way")

    def __init__(self) -> None:
        self.under_way: dict[int, Row] = {}
        """The messages by the numbers of their posts."""
        self.bytes = 0
        self.attempt = 0
        """Failures since something was accepted."""
        self.retry_at_ms: int | None = None
        self.sends_again = False
        """Whether what went after a message of a stream that failed has to go again, too."""
        self.problem = ""
        """Why the last post failed, for people."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known that a new one would not."""
        return not self.under_way and self.retry_at_ms is None and not self.attempt


class PostDepartures:
    """Posts what is in outgoing queues, and hears what became of it."""

    def __init__(
        self,
        base: Foundation,
        news: News,
        departures: Departures,
        delivery: Delivery,
        housekeeping: Housekeeping,
        receipts: StreamReceipts,
    ) -> None:
        self._enabled = base.config.http.enabled
        self._pauses_s = base.config.transfer.resend_s
        self._outputs = base.outputs
        self._news = news
        self._departures = departures
        self._delivery = delivery
        self._housekeeping = housekeeping
        self._receipts = receipts
        self._lanes: dict[OutgoingQueue, Lane] = {}
        self._queue_of: dict[int, OutgoingQueue] = {}
        """The queues of all posts under way."""
        self._crowded: dict[OutgoingQueue, None] = {}
        """Queues that wait for others: too much is under way in all."""
        self._row = DepartingRow()
        self._bytes = 0
        self._last_call = 0
        self._timers: Timers[OutgoingQueue] = Timers()

    # What leaves.

    def dispatch(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Post what a queue has, as far as there is room."""
        if not self._enabled:
            return
        lane = self._lanes.setdefault(outgoing, Lane())
        while lane.retry_at_ms is None and self._send_some(outgoing, lane, now):
            pass
        self._drop_if_idle(outgoing, lane)

    def _send_some(self, outgoing: OutgoingQueue, lane: Lane, now: Instant) -> bool:
        """Post a few messages; say whether there may be more to post."""
        room = POSTS_UNDER_WAY_MAX_COUNT - len(lane.under_way)
        own, all_bytes = POSTS_UNDER_WAY_PER_QUEUE_BYTES - lane.bytes, POSTS_UNDER_WAY_BYTES
        if room <= 0 or own <= 0:
            return False
        if self._bytes >= all_bytes:
            self._crowded[outgoing] = None
            return False
        rows, packets, more = self._departures.take(
            outgoing, room, min(own, all_bytes - self._bytes), now
        )
        for row, packet in zip(rows, packets, strict=True):
            self._post(outgoing, lane, row, packet, now)
        return more

    def _post(
        self, outgoing: OutgoingQueue, lane: Lane, row: Row, packet: bytes, now: Instant
    ) -> None:
        request = self._request(outgoing, lane, packet)
        if request is None:
            self._reject(outgoing, row, now)
            return
        self._last_call += 1
        call = self._last_call
        lane.under_way[call] = row
        self._queue_of[call] = outgoing
        lane.bytes += len(row[1])
        self._bytes += len(row[1])
        self._outputs.append(OutgoingPost(call, request.url, request.headers, request.content))

    def _request(self, outgoing: OutgoingQueue, lane: Lane, packet: bytes) -> Departing | None:
        """Return a message as a request; None if it can be none."""
        try:
            return self._row.request(
                packet, lambda message: self._receipts_to(outgoing, lane, message)
            )
        except (DecodeError, EncodeError):
            return None

    def _receipts_to(self, outgoing: OutgoingQueue, lane: Lane, message: UserMessage) -> str:
        """Return the URL for receipts, for the first message of a stream that arrives.

        After a failure it is told again: the receiver may have forgotten how the stream began.
        """
        place = message.transaction
        if place is None or place.previous_number:
            return ""
        if outgoing.sequence.has_begun(place.sequence) and not lane.attempt:
            return ""
        return self._receipts.url_for(outgoing)

    # What became of it.

    def answered(self, call: int, status: int, now: Instant) -> None:
        """A post was answered."""
        if status == ACCEPTED:
            taken = self._take_back(call)
            if taken is not None:
                outgoing, lane, row = taken
                lane.attempt = 0
                lane.problem = ""
                self._departures.acknowledged([(outgoing, *row)], now)
        elif status in _REJECTED:
            taken = self._take_back(call)
            if taken is not None:
                outgoing, lane, row = taken
                lane.attempt = 0
                lane.problem = f"the answer was {status}"
                self._reject(outgoing, row, now)
        else:
            self._fail(call, f"the answer was {status}", now)
            return
        if taken is not None:
            self._go_on(taken[0], taken[1])

    def failed(self, call: int, failure: PostFailure, reason: str, now: Instant) -> None:
        """A post has no answer."""
        self._fail(call, reason or failure.value, now, is_busy=failure is PostFailure.BUSY)

    def _fail(self, call: int, problem: str, now: Instant, *, is_busy: bool = False) -> None:
        taken = self._take_back(call)
        if taken is None:
            return
        outgoing, lane, row = taken
        lane.problem = problem
        lookup_id, value = row
        if lookup_id in outgoing.in_flight:
            outgoing.in_flight.discard(lookup_id)
            # Those after it were not accepted, whatever was answered.
            lane.sends_again = True
            outgoing.sequence.unreached()
        self._departures.give_back(outgoing.queue, lookup_id, value, now)
        if lane.retry_at_ms is None:
            pause_ms = _BUSY_MS
            if not is_busy:
                pauses = self._pauses_s
                pause_ms = pauses[min(lane.attempt, len(pauses) - 1)] * 1000
                lane.attempt += 1
            lane.retry_at_ms = now.ticks_ms + pause_ms
            self._timers.set(outgoing, lane.retry_at_ms)
        self._wake_crowded()

    def _take_back(self, call: int) -> tuple[OutgoingQueue, Lane, Row] | None:
        """Return what a post was about; None if nobody waits for it any more."""
        outgoing = self._queue_of.pop(call, None)
        if outgoing is None:
            return None
        lane = self._lanes[outgoing]
        row = lane.under_way.pop(call)
        lane.bytes -= len(row[1])
        self._bytes -= len(row[1])
        return outgoing, lane, row

    def _reject(self, outgoing: OutgoingQueue, row: Row, now: Instant) -> None:
        """Take out a message that nobody will ever accept."""
        queue = outgoing.queue
        if not queue.entries.is_held_by(row[0], IN_TRANSIT):
            return
        outgoing.in_flight.discard(row[0])
        reason = MessageClass.NACK_BAD_DESTINATION_QUEUE
        self._housekeeping.surely(
            queue, [row], lambda moment: self._delivery.end(queue, [row], reason, moment), now
        )

    def _go_on(self, outgoing: OutgoingQueue, lane: Lane) -> None:
        self._news.ready[outgoing.queue] = None
        self._wake_crowded()
        self._drop_if_idle(outgoing, lane)

    def _wake_crowded(self) -> None:
        if self._crowded and self._bytes < POSTS_UNDER_WAY_BYTES:
            for waiting in self._crowded:
                self._news.ready[waiting.queue] = None
            self._crowded.clear()

    def _drop_if_idle(self, outgoing: OutgoingQueue, lane: Lane) -> None:
        if lane.is_idle:
            self._lanes.pop(outgoing, None)

    # Time, operators, and what they may see.

    def wake(self, now: Instant) -> None:
        """Time has passed: pauses end."""
        for outgoing in self._timers.take_due(now.ticks_ms):
            self.retry_now(outgoing, now)

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self._timers.next_ms

    def retry_now(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Go on at once after a failure."""
        lane = self._lanes.get(outgoing)
        if lane is None:
            return
        lane.retry_at_ms = None
        self._timers.set(outgoing, None)
        if lane.sends_again:
            lane.sends_again = False
            self._departures.send_again(outgoing, now)
        self._news.ready[outgoing.queue] = None

    def forget(self, outgoing: OutgoingQueue) -> None:
        """An outgoing queue is gone."""
        self._timers.set(outgoing, None)
        self._crowded.pop(outgoing, None)
        lane = self._lanes.pop(outgoing, None)
        if lane is not None:
            for call, row in lane.under_way.items():
                self._queue_of.pop(call, None)
                self._bytes -= len(row[1])

    def lane_of(self, outgoing: OutgoingQueue) -> Lane | None:
        """Return what is known of the posts of a queue, if there is something."""
        return self._lanes.get(outgoing)
