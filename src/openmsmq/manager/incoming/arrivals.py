"""What becomes of packets that other queue managers send. [MQQB 3.1.5.8]

The fate of a packet is decided once, in the order of its arrival, and is durable together with what
keeps it from being decided again: the place in its sequence, or its identifier in the history. Only
then does the session acknowledge it. A peer moves only its own sequences, and those of queue
managers from which it is a known way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from openmsmq.manager.access.message_security import Examined, MessageSecurity, without_claims
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.incoming.history import History
from openmsmq.manager.incoming.order_acks import OrderAcks
from openmsmq.manager.incoming.places import Place, Places
from openmsmq.manager.incoming.runs import Runs
from openmsmq.manager.incoming.streams import IncomingStreams, Stream
from openmsmq.manager.incoming.traces import arrival_report
from openmsmq.manager.incoming.unrouted import Unrouted
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.lifetimes import travel_deadline_s
from openmsmq.manager.messages.plain_delivery import PlainDelivery
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.messages.staging import Staging
from openmsmq.manager.notices import NoticeKind, Notices
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.peering import Peer, Word
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.counters import Counters
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import HOP_MAX_COUNT, INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.names import FormatName
from openmsmq.protocol.incoming_sequence import Verdict
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import base, user
from openmsmq.wire.likeness import Likeness
from openmsmq.wire.outline import Outline, outline
from openmsmq.wire.packets import decode

_UNUSUAL: Final = (
    user.ADMIN_QUEUE | user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS | user.SECURITY
)
_RARE: Final = user.MULTI_QUEUE | user.SOAP
_PASSED_OVER: Final = _RARE | user.OTHER_NAMES | user.SECURITY
_TRACED: Final = base.DEBUG | base.TRACE


class NoRoom(Exception):
    """The queue manager has no room for more messages: their sender must keep them for now."""

    def __init__(self, *, is_general: bool) -> None:
        super().__init__("the quota of the queue manager is used up, or the share of a stranger")
        self.is_general = is_general
        """Whether there is no room for anybody."""


class NotBelieved(Exception):
    """A peer brings a message under its own name, which is known to be somebody else's."""


class Arrivals:
    """Decides about the packets of all sessions."""

    def __init__(
        self,
        config: ManagerConfig,
        table: QueueTable,
        delivery: Delivery,
        plain: PlainDelivery,
        staging: Staging,
        counters: Counters,
        acks: OrderAcks,
        streams: IncomingStreams,
        history: History,
        security: MessageSecurity,
        identities: Identities,
        notices: Notices,
        shares: Shares,
    ) -> None:
        self._identities = identities
        self._notices = notices
        self._config = config
        self._transfer = config.transfer
        self._table = table
        self._delivery = delivery
        self._staging = staging
        self._counters = counters
        self._streams = streams
        self._history = history
        self._acks = acks
        self._security = security
        self._shares = shares
        self.has_way: Callable[[FormatName, Guid, Instant], bool] = lambda *_: True
        """Says whether it is known how to reach a queue of a queue manager."""
        self.unrouted: Unrouted
        """Must be there before the first packet."""
        self.notified: Callable[[bytes, Instant], None] = lambda _packet, _now: None
        """Hears of packets to the queue of change notifications."""
        self._runs = Runs(delivery, plain, shares)

    def take(self, packets: list[bytes], peer: Peer, now: Instant) -> None:
        """Decide about packets of one session, in their order.

        Raises `DecodeError` at a packet that is none, and `NoRoom` at one that must wait; what came
        before it is decided.
        """
        try:
            self._take_all(packets, peer, now)
        finally:
            self._runs.flush(now)

    def _take_all(self, packets: list[bytes], peer: Peer, now: Instant) -> None:
        places = Places(self._table, self._counters, self._identities, peer)
        position, count = 0, len(packets)
        while position < count:
            packet = packets[position]
            position += 1
            found = outline(packet)
            if found.flags & _PASSED_OVER or found.base_flags & _TRACED:
                # An outline passes over these headers, and nobody could read the message without.
                decode(packet)
                # Wherever it ends up, as a dead letter or on its way, it says what is proved only.
                packet = without_claims(packet, found)
            place = places.find(packet, found, now)
            if place.is_order_queue:
                self._acks.take(packet, peer, now)
            elif place.is_notify_queue:
                self.notified(packet, now)
            elif not self._may_come(packet, found, place, peer, now):
                continue
            elif not place.local:
                self._forward(packet, found, place, peer, now)
            elif not self._is_plain(packet, found, place):
                self._take_local(packet, found, place, now)
                if found.flags & user.SECURITY:
                    position = self._take_sealed(packets, position, place, now)
            else:
                if found.flags & user.TRANSACTION:
                    self._take_local(packet, found, place, now)
                else:
                    self._take_plain([packet], place, now)
                alike = Likeness(packet, found)
                position = self._take_alike(packets, position, alike, place, now)

    def _may_come(
        self, packet: bytes, found: Outline, place: Place, peer: Peer, now: Instant
    ) -> bool:
        """Whether a message is taken from a peer.

        One that is not transactional may name a source that nobody knows, but no other's. It is
        dropped, and the session goes on: a stranger may have made an honest peer bring it. If it is
        the peer's own, and is to survive a crash, the session ends instead: should the peer be who
        it says it is after all, it keeps the message until we believe it.
        """
        if found.flags & user.TRANSACTION:
            return self._may_move(packet, found, place, peer, now)
        if (
            place.local
            and place.word is Word.FOREIGN
            and self._identities.knows_elsewhere(peer, message_bytes.source(packet), now)
        ):
            self._tell_of("foreign-source", NoticeKind.MESSAGE_DROPPED, packet, peer)
            if message_bytes.source(packet) == peer.remote and found.flags & user.RECOVERABLE:
                raise NotBelieved
            return False
        return True

    def _may_move(
        self, packet: bytes, found: Outline, place: Place, peer: Peer, now: Instant
    ) -> bool:
        """Whether a transactional message is of its sender, or came on the way from him.

        If not, it moves nothing: the sender has it until we acknowledge its place in the sequence.
        """
        if place.stream is not None:
            return True
        problem = "foreign-source" if place.word is Word.FOREIGN else ""
        if place.local and not problem:
            durably = place.queue is not None
            stream = self._streams.of(packet, found, peer, place.word, now, durably=durably)
            if isinstance(stream, Stream):
                place.stream = stream
                self._streams.heard(stream, now)
                return True
            problem = stream
        if not problem:
            return True
        self._tell_of(problem, NoticeKind.SEQUENCE_REFUSED, packet, peer)
        return False

    def _tell_of(self, problem: str, kind: NoticeKind, packet: bytes, peer: Peer) -> None:
        self._notices.note(
            kind,
            problem,
            peer=peer.engine.address,
            says_it_is=str(peer.remote),
            source=str(Guid(message_bytes.source(packet))),
        )

    def _take_alike(
        self, packets: list[bytes], position: int, alike: Likeness, place: Place, now: Instant
    ) -> int:
        """Take all packets like the one before them; gives where the next one is."""
        end, count, fits = position, len(packets), alike.fits
        while end < count and fits(packets[end]):
            end += 1
        if end > position:
            group = packets[position:end]
            if alike.transactional:
                self._take_sequence(group, alike, place, now)
            else:
                self._take_plain(group, place, now)
        return end

    def _take_sealed(self, packets: list[bytes], position: int, place: Place, now: Instant) -> int:
        """Take encrypted packets like the one before them; gives where the next one is."""
        queue, end, count = place.queue, position, len(packets)
        if queue is None or end == count:
            return position
        opener = self._security.opener(packets[position - 1], queue, now)
        if opener is None:
            return position
        first, found = opener.first, outline(opener.first)
        if not self._is_plain(first, found, place, opened=True):
            return position
        group: list[bytes] = []
        while end < count and opener.fits(packets[end]):
            opened = opener.open(packets[end])
            if opened is None:
                break
            group.append(opened)
            end += 1
        if group and found.flags & user.TRANSACTION:
            self._take_sequence(group, Likeness(first, found), place, now)
        elif group:
            self._take_plain(group, place, now)
        return end

    # Plain messages: nothing is asked for, nothing protected, no lifetime ends.

    def _is_plain(
        self, packet: bytes, found: Outline, place: Place, *, opened: bool = False
    ) -> bool:
        queue = place.queue
        return (
            queue is not None
            and not found.flags & (_UNUSUAL | _RARE)
            and not found.base_flags & _TRACED
            and message_bytes.time_to_be_received_s(packet) == INFINITE_S
            and queue.can.take_messages
            and queue.properties.transactional == bool(found.flags & user.TRANSACTION)
            and (opened or self._security.may_enter_plain(queue))
        )

    def _take_plain(self, packets: list[bytes], place: Place, now: Instant) -> None:
        """Take messages that are not transactional, and alike."""
        queue = place.queue
        assert queue is not None
        source, recoverable = place.remembered_as, message_bytes.is_recoverable(packets[0])
        if not self._surely_enter(queue, packets, now):
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
        has_place = not self._has_expired(packet, now) and not self._quota_problem(queue, packet)
        self._history.note(identifier, recoverable=message_bytes.is_recoverable(packet))
        # A plain message without a place is gone: it has asked nobody to be told.
        if has_place:
            self._runs.add_plain(queue, [packet], now)
        else:
            expired = self._has_expired(packet, now)
            reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT if expired else None
            self._shares.dropped(packet, reason or MessageClass.NACK_QUEUE_EXCEEDS_QUOTA)

    def _surely_enter(self, queue: LocalQueue, packets: list[bytes], now: Instant) -> bool:
        """Whether packets with the same lifetime are all in time and within all quotas."""
        size = self._runs.bytes + sum(map(len, packets))
        if not queue.room_for(size) or not self._shares.take_all(packets, size):
            return False
        moments = {message_bytes.sent_time_s(packet): packet for packet in packets}
        return not any(self._has_expired(packet, now) for packet in moments.values())

    def _take_sequence(
        self, packets: list[bytes], alike: Likeness, place: Place, now: Instant
    ) -> None:
        """Take transactional messages of one sequence, which are alike."""
        stream, queue = place.stream, place.queue
        assert stream is not None
        assert queue is not None
        if not self._surely_enter(queue, packets, now):
            for packet in packets:
                self._take_next(packet, alike.hole_start, stream, queue, now)
            return
        accepted: list[bytes] = []
        for packet in packets:
            point = self._in_turn(packet, stream, alike.hole_start)
            if point is not None:
                self._streams.accept(stream, *point)
                accepted.append(packet)
        if accepted:
            self._runs.add_plain(queue, accepted, now)

    def _take_next(
        self, packet: bytes, offset: int, stream: Stream, queue: LocalQueue, now: Instant
    ) -> None:
        point = self._in_turn(packet, stream, offset)
        if point is None:
            return
        # What has no room for now must not count as accepted: it will come again.
        if self._has_expired(packet, now):
            reason: MessageClass | None = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        else:
            reason = self._quota_problem(queue, packet)
        self._streams.accept(stream, *point)
        if reason is None:
            self._runs.add_plain(queue, [packet], now)
        else:
            self._reject(packet, outline(packet), reason, now)

    # Messages to queues of this queue manager.

    def _take_local(self, packet: bytes, found: Outline, place: Place, now: Instant) -> None:
        identifier = message_bytes.message_id_under(place.remembered_as, packet)
        stream = place.stream
        point: tuple[SequenceId, int] | None = None
        if stream is not None:
            point = self._in_turn(packet, stream, found.transaction_offset)
            if point is None:
                return
        elif self._history.saw(identifier, now):
            return
        entering = self._examined(packet, found, place, now)
        reason = entering.refusal
        self._require_room_for_dead_letter(packet, found, reason)
        if stream is not None and point is not None:
            # Strangers may invent queues without end: how far those have come is not stored. A
            # message that comes again after a crash is refused again.
            self._streams.accept(stream, *point, durably=place.queue is not None)
        else:
            self._history.note(identifier, recoverable=message_bytes.is_recoverable(packet))
        if reason is not None:
            self._reject(packet, found, reason, now)
            return
        assert place.queue is not None
        staged = self._staging.stage(place.queue, entering.packet, entering.found, arrived=True)
        self._runs.add_staged(place.queue, staged, now)
        self._trace(packet, now)

    def _in_turn(self, packet: bytes, stream: Stream, offset: int) -> tuple[SequenceId, int] | None:
        """Return the place of a message in its sequence if it is the next, else None (C-70)."""
        sequence, number, previous = message_bytes.sequence_place(packet, offset)
        verdict = stream.sequence.judge(sequence, number, previous)
        if verdict is Verdict.ACCEPT:
            return sequence, number
        if verdict is Verdict.GAP:
            stream.sequence.reject()
        return None

    def _examined(self, packet: bytes, found: Outline, place: Place, now: Instant) -> Examined:
        """Return how a message enters its queue, or why it cannot."""
        reason = self._problem(packet, found, place, now)
        if reason is not None:
            return Examined(packet, found, reason)
        queue = place.queue
        assert queue is not None
        entering = self._security.examine(packet, found, queue, now, arrived=True)
        if entering.refusal is not None:
            return entering
        return Examined(
            entering.packet, entering.found, self._quota_problem(queue, entering.packet)
        )

    def _problem(
        self, packet: bytes, found: Outline, place: Place, now: Instant
    ) -> MessageClass | None:
        """Return why a message cannot be for its queue; None when it can."""
        if self._has_expired(packet, now):
            return MessageClass.NACK_REACH_QUEUE_TIMEOUT
        queue = place.queue
        if queue is None or not queue.can.take_messages:
            return MessageClass.NACK_BAD_DESTINATION_QUEUE
        transactional = bool(found.flags & user.TRANSACTION)
        if transactional and not queue.properties.transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE
        if queue.properties.transactional and not transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE
        return None

    def _quota_problem(self, queue: LocalQueue, packet: bytes) -> MessageClass | None:
        self._require_room(packet)
        waiting = self._runs.bytes + len(packet)
        in_queue = waiting if queue is self._runs.queue else len(packet)
        if queue.room_for(in_queue) and self._shares.has_memory(packet, self._runs.bytes):
            return None
        return MessageClass.NACK_QUEUE_EXCEEDS_QUOTA

    def _require_room(self, packet: bytes) -> None:
        size = self._runs.bytes + len(packet)
        if not self._shares.takes(size):
            raise NoRoom(is_general=not self._table.totals.room_for(size))

    def _require_room_for_dead_letter(
        self, packet: bytes, found: Outline, reason: MessageClass | None
    ) -> None:
        if reason is not None and _leaves_dead_letter(found, reason):
            self._require_room(packet)

    def _has_expired(self, packet: bytes, now: Instant) -> bool:
        """Whether a message has travelled too long, another clock being off allowed for (C-24)."""
        deadline_s = travel_deadline_s(packet)
        return deadline_s != INFINITE_S and (
            now.unix_s > deadline_s + self._transfer.clock_skew_max_s
        )

    def _reject(self, packet: bytes, found: Outline, reason: MessageClass, now: Instant) -> None:
        """Count a message that is refused for good, and tell who wants to know."""
        self._shares.dropped(packet, reason)
        self._tell_refusal(packet, found, reason, now)

    def _tell_refusal(
        self, packet: bytes, found: Outline, reason: MessageClass, now: Instant
    ) -> None:
        """Tell who wants to know that a message is refused for good. [MQQB 3.1.5.8.3]"""
        if self._shares.may_report(reason):
            self._delivery.report(packet, reason, now)
        if found.flags & user.TRANSACTION:
            self._acks.send_final(packet, self._shares.told(reason), now)
        elif _leaves_dead_letter(found, reason):
            kept = self._delivery.keep_dead_letter(packet, reason, now)
            if kept is not None:
                self._shares.charge(kept, len(packet))

    # Messages that only pass through.

    def _forward(
        self, packet: bytes, found: Outline, place: Place, peer: Peer, now: Instant
    ) -> None:
        """Send a message on towards its queue manager. [MQQB 3.1.5.8.2]

        Only its destination looks whether it came before: when the directory changes on its way it
        may rightly come here again, and to forget it then would lose it. Others believe us whom we
        bring messages of, so we take them only of those whom we believe.
        """
        if place.word is Word.FOREIGN:
            self._tell_of("foreign-source", NoticeKind.MESSAGE_DROPPED, packet, peer)
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
        elif self._has_expired(packet, now):
            reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        else:
            queue = self._onward(place, packet, peer.engine.address, now)
            if queue is None:
                self.unrouted.refused(packet, peer.engine.address, now)
                self._tell_refusal(packet, found, MessageClass.NACK_BAD_DESTINATION_QUEUE, now)
                return
            if self._quota_problem(queue, packet) is not None:
                reason = MessageClass.NACK_QUEUE_EXCEEDS_QUOTA
        self._require_room_for_dead_letter(packet, found, reason)
        if reason is not None or queue is None:
            self._reject(packet, found, reason or MessageClass.NACK_BAD_DESTINATION_QUEUE, now)
            return
        counted = message_bytes.hop_counted(packet)
        self._runs.add_staged(queue, self._staging.stage(queue, counted, found), now)
        self._trace(counted, now)

    def _trace(self, packet: bytes, now: Instant) -> None:
        """Report a traced message that was taken, if reports are wanted here."""
        if self._transfer.trace_reports and message_bytes.is_traced(packet):
            owner_of = self._table.published.owner_of
            report = arrival_report(packet, self._counters.identifier, now, owner_of)
            if report is not None:
                self._delivery.post(*report, now)

    def _onward(self, place: Place, packet: bytes, address: str, now: Instant) -> LocalQueue | None:
        if place.queue is None and place.route is not None:
            has_way = self.has_way(place.route, place.manager, now)
            if not has_way and not self.unrouted.lets_wait(
                place.route, place.manager, packet, address, now
            ):
                return None
            try:
                queue = self._table.outgoing(place.route, guest=self._shares.guest)
            except MsmqError:
                return None
            if not has_way:
                # The next packet may have no room there any more.
                return queue
            place.queue = queue
        return place.queue


def _leaves_dead_letter(found: Outline, reason: MessageClass) -> bool:
    """Whether a refused message is kept here: its source has been told that it arrived (C-84)."""
    return (
        not found.flags & user.TRANSACTION
        and bool(found.flags & user.JOURNAL_ON_FAILURE)
        and reason in (MessageClass.NACK_QUEUE_EXCEEDS_QUOTA, MessageClass.NACK_REACH_QUEUE_TIMEOUT)
    )
