"""What becomes of packets for queues of this queue manager. [MQQB 3.1.5.8]"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.access.message_security import Examined, MessageSecurity
from openmsmq.manager.incoming.destinations import Destination
from openmsmq.manager.incoming.history import History
from openmsmq.manager.incoming.incoming_sequences import Flow, IncomingSequences
from openmsmq.manager.incoming.refusals import Refusals
from openmsmq.manager.incoming.traces import Traces
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.messages.staging import Staging
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.protocol.incoming_sequence import Verdict
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import base, user
from openmsmq.wire.likeness import Likeness
from openmsmq.wire.outline import Outline, outline

_UNUSUAL: Final = (
    user.ADMIN_QUEUE | user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS | user.SECURITY
)
_RARE: Final = user.MULTI_QUEUE | user.SOAP
_TRACED: Final = base.DEBUG | base.TRACE


class LocalArrivals:
    """Takes packets into queues of this queue manager, each once and in the order of its sender."""

    def __init__(
        self,
        security: MessageSecurity,
        sequences: IncomingSequences,
        history: History,
        staging: Staging,
        shares: Shares,
        refusals: Refusals,
        traces: Traces,
    ) -> None:
        self._security = security
        self._sequences = sequences
        self._history = history
        self._staging = staging
        self._shares = shares
        self._refusals = refusals
        self._runs = refusals.runs
        self._traces = traces

    def take(
        self,
        packet: bytes,
        found: Outline,
        to: Destination,
        packets: list[bytes],
        position: int,
        now: Instant,
    ) -> int:
        """Take a packet, and those after it that are alike; return where the next one is.

        `packets` are all of the session, and `position` is where the one after this is.
        """
        if not self._is_plain(packet, found, to):
            self._take_local(packet, found, to, now)
            if found.flags & user.SECURITY:
                return self._take_sealed(packets, position, to, now)
            return position
        alike, group = Likeness(packet, found), [packet]
        if not alike.fits(packet):
            # It alone wants to be told of its end; those after it may be like the rest of it.
            self._take_local(packet, found, to, now)
            group = []
        end, count, fits = position, len(packets), alike.fits
        while end < count and fits(packets[end]):
            end += 1
        group += packets[position:end]
        if group and alike.transactional:
            self._take_sequence(group, alike, to, now)
        elif group:
            self._take_plain(group, to, now)
        return end

    def _take_sealed(
        self, packets: list[bytes], position: int, to: Destination, now: Instant
    ) -> int:
        """Take encrypted packets like the one before them; gives where the next one is."""
        queue, end, count = to.queue, position, len(packets)
        if queue is None or end == count:
            return position
        opener = self._security.opener(packets[position - 1], queue, now)
        if opener is None:
            return position
        first, found = opener.first, outline(opener.first)
        if not self._is_plain(first, found, to, opened=True):
            return position
        group: list[bytes] = []
        while end < count and opener.fits(packets[end]):
            opened = opener.open(packets[end])
            if opened is None:
                break
            group.append(opened)
            end += 1
        if group and found.flags & user.TRANSACTION:
            self._take_sequence(group, Likeness(first, found), to, now)
        elif group:
            self._take_plain(group, to, now)
        return end

    # Plain messages: nothing is asked for, nothing protected, no lifetime ends.

    def _is_plain(
        self, packet: bytes, found: Outline, to: Destination, *, opened: bool = False
    ) -> bool:
        queue = to.queue
        return (
            queue is not None
            and not found.flags & (_UNUSUAL | _RARE)
            and not found.base_flags & _TRACED
            and message_bytes.time_to_be_received_s(packet) == INFINITE_S
            and queue.can.take_messages
            and queue.properties.transactional == bool(found.flags & user.TRANSACTION)
            and (opened or self._security.may_enter_plain(queue))
        )

    def _take_plain(self, packets: list[bytes], to: Destination, now: Instant) -> None:
        """Take messages that are not transactional, and alike."""
        queue = to.queue
        assert queue is not None
        source, recoverable = to.remembered_as, message_bytes.is_recoverable(packets[0])
        if not self._runs.surely_enter(queue, packets, now):
            for packet in packets:
                self._take_one_plain(packet, source, queue, now)
            return
        identifiers = [message_bytes.message_id_under(source, packet) for packet in packets]
        new = self._history.take_new(identifiers, now, recoverable=recoverable)
        if not all(new):
            packets = [packet for packet, is_new in zip(packets, new, strict=True) if is_new]
        if packets:
            self._runs.add_plain(queue, packets, now)

    def _take_one_plain(
        self, packet: bytes, source: bytes, queue: LocalQueue, now: Instant
    ) -> None:
        identifier = message_bytes.message_id_under(source, packet)
        if self._history.saw(identifier, now):
            return
        # What has no room for now must not be remembered: it will come again.
        has_place = not self._runs.has_expired(packet, now) and not self._runs.quota_problem(
            queue, packet
        )
        self._history.note(identifier, recoverable=message_bytes.is_recoverable(packet))
        # A plain message without a place is gone: it has asked nobody to be told.
        if has_place:
            self._runs.add_plain(queue, [packet], now)
        else:
            expired = self._runs.has_expired(packet, now)
            reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT if expired else None
            self._shares.dropped(packet, reason or MessageClass.NACK_QUEUE_EXCEEDS_QUOTA)

    def _take_sequence(
        self, packets: list[bytes], alike: Likeness, to: Destination, now: Instant
    ) -> None:
        """Take transactional messages of one sequence, which are alike."""
        flow, queue = to.flow, to.queue
        assert flow is not None
        assert queue is not None
        if not self._runs.surely_enter(queue, packets, now):
            for packet in packets:
                self._take_next(packet, alike.hole_start, flow, queue, now)
            return
        accepted: list[bytes] = []
        for packet in packets:
            point = self._in_turn(packet, flow, alike.hole_start)
            if point is not None:
                self._sequences.accept(flow, *point)
                accepted.append(packet)
        if accepted:
            self._runs.add_plain(queue, accepted, now)

    def _take_next(
        self, packet: bytes, offset: int, flow: Flow, queue: LocalQueue, now: Instant
    ) -> None:
        point = self._in_turn(packet, flow, offset)
        if point is None:
            return
        # What has no room for now must not count as accepted: it will come again.
        if self._runs.has_expired(packet, now):
            reason: MessageClass | None = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        else:
            reason = self._runs.quota_problem(queue, packet)
        self._sequences.accept(flow, *point)
        if reason is None:
            self._runs.add_plain(queue, [packet], now)
        else:
            self._refusals.reject(packet, outline(packet), reason, now)

    # Messages of any kind.

    def _take_local(self, packet: bytes, found: Outline, to: Destination, now: Instant) -> None:
        identifier = message_bytes.message_id_under(to.remembered_as, packet)
        flow = to.flow
        point: tuple[SequenceId, int] | None = None
        if flow is not None:
            point = self._in_turn(packet, flow, found.transaction_offset)
            if point is None:
                return
        elif self._history.saw(identifier, now):
            return
        entering = self._examined(packet, found, to, now)
        reason = entering.refusal
        if reason is not None:
            self._refusals.require_room_for_dead_letter(packet, found, reason)
        if flow is not None and point is not None:
            # Strangers may invent queues without end: how far those have come is not stored. A
            # message that comes again after a crash is refused again.
            self._sequences.accept(flow, *point, durably=to.queue is not None)
        else:
            self._history.note(identifier, recoverable=message_bytes.is_recoverable(packet))
        if reason is not None:
            self._refusals.reject(packet, found, reason, now)
            return
        assert to.queue is not None
        staged = self._staging.stage(to.queue, entering.packet, entering.found, arrived=True)
        self._runs.add_staged(to.queue, staged, now)
        if self._traces.is_wanted:
            self._traces.arrived(packet, now)

    def _in_turn(self, packet: bytes, flow: Flow, offset: int) -> tuple[SequenceId, int] | None:
        """Return the place of a message in its sequence if it is the next, else None (C-70)."""
        sequence, number, previous = message_bytes.sequence_place(packet, offset)
        verdict = flow.sequence.judge(sequence, number, previous)
        if verdict is Verdict.ACCEPT:
            return sequence, number
        if verdict is Verdict.GAP:
            self._sequences.reject(flow)
        return None

    def _examined(self, packet: bytes, found: Outline, to: Destination, now: Instant) -> Examined:
        """Return how a message enters its queue, or why it cannot."""
        reason = self._problem(packet, found, to, now)
        if reason is not None:
            return Examined(packet, found, reason)
        queue = to.queue
        assert queue is not None
        entering = self._security.examine(packet, found, queue, now, arrived=True)
        if entering.refusal is not None:
            return entering
        return Examined(
            entering.packet, entering.found, self._runs.quota_problem(queue, entering.packet)
        )

    def _problem(
        self, packet: bytes, found: Outline, to: Destination, now: Instant
    ) -> MessageClass | None:
        """Return why a message cannot be for its queue; None when it can."""
        if self._runs.has_expired(packet, now):
            return MessageClass.NACK_REACH_QUEUE_TIMEOUT
        queue = to.queue
        if queue is None or not queue.can.take_messages:
            return MessageClass.NACK_BAD_DESTINATION_QUEUE
        transactional = bool(found.flags & user.TRANSACTION)
        if transactional and not queue.properties.transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE
        if queue.properties.transactional and not transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE
        return None
