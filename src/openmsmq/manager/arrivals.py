"""What becomes of packets that other queue managers send. [MQQB 3.1.5.8]

The fate of a packet is decided once, in the order of its arrival, and is durable together with what
keeps it from being decided again: the place in its sequence, or its identifier in the history. Only
then does the session acknowledge it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.counters import Counters
from openmsmq.manager.delivery import Delivery, travel_deadline_s
from openmsmq.manager.history import History
from openmsmq.manager.incoming import IncomingStreams, Stream
from openmsmq.manager.outgoing import OutgoingQueues, is_transactional
from openmsmq.manager.queue_table import QueueTable
from openmsmq.manager.queues import LocalQueue
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.limits import HOP_MAX_COUNT, INFINITE_S, REACH_QUEUE_DEFAULT_S
from openmsmq.model.message import MessageClass
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    FormatName,
    IllegalName,
    LocalQueueName,
    PrivateFormatName,
    PublicFormatName,
    SystemQueue,
)
from openmsmq.model.queue import QueuePrivacy
from openmsmq.protocol.incoming_sequence import Verdict
from openmsmq.storage.records import StagedSend
from openmsmq.wire.acknowledgments import ORDER_QUEUE_NUMBER, FinalAck, OrderAck
from openmsmq.wire.forwarding import count_hop
from openmsmq.wire.headers import message_properties, transaction, user
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.order_packets import (
    ORDER_QUEUE_PATH,
    acknowledgment_in,
    final_ack_packet,
    order_ack_packet,
)
from openmsmq.wire.outline import Outline, outline, transaction_offset
from openmsmq.wire.packets import UserMessage, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

_ORDER_QUEUE_NAME: Final = "order_queue$"
_UNUSUAL: Final = (
    user.ADMIN_QUEUE | user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS | user.SECURITY
)
_UNUSUAL_IN_SEQUENCE: Final = transaction.FINAL_ACK | transaction.CONNECTOR
_NEVER: Final = INFINITE_S.to_bytes(4, "little")
_INSECURE: Final = frozenset(
    {
        MessageClass.NACK_BAD_DESTINATION_QUEUE,
        MessageClass.NACK_ACCESS_DENIED,
        MessageClass.NACK_BAD_SIGNATURE,
        MessageClass.NACK_BAD_ENCRYPTION,
        MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
"""Rejections that tell a stranger about this queue manager; told only when permitted (C-88)."""


class NoRoom(Exception):
    """The queue manager has no room for more messages: their sender must keep them for now."""


class _Place:
    """Where packets with the same destination go: found once for each group of packets."""

    __slots__ = ("is_order_queue", "local", "queue", "route", "stream")

    def __init__(self) -> None:
        self.local = True
        self.is_order_queue = False
        self.queue: LocalQueue | None = None
        self.route: FormatName | None = None
        self.stream: Stream | None = None


class _Alike:
    """What packets have in common that differ only in time, number, place in sequence and body."""

    __slots__ = (
        "_head",
        "_middle",
        "_size",
        "_tail",
        "_tail_end",
        "_tail_start",
        "hole_start",
        "place",
        "transactional",
    )

    def __init__(self, packet: bytes, found: Outline, place: _Place) -> None:
        self.place = place
        self.transactional = bool(found.flags & user.TRANSACTION)
        self._size = len(packet)
        self._tail_end = found.properties_offset + message_properties.FIXED_SIZE
        self.hole_start = self._tail_start = self._tail_end
        if self.transactional:
            self.hole_start = transaction_offset(packet)
            self._tail_start = self.hole_start + transaction.FIXED_SIZE
        self._head = packet[:52]
        self._middle = packet[60 : self.hole_start]
        self._tail = packet[self._tail_start : self._tail_end]

    def fits(self, packet: bytes) -> bool:
        """Whether a packet needs no second look."""
        return (
            len(packet) == self._size
            and packet[:52] == self._head
            and packet[60 : self.hole_start] == self._middle
            and packet[self._tail_start : self._tail_end] == self._tail
            # Whoever wants to be told of the end of one message makes it an unusual one.
            and not (self.transactional and packet[self.hole_start] & _UNUSUAL_IN_SEQUENCE)
        )


class Arrivals:
    """Decides about the packets of all sessions."""

    def __init__(
        self,
        config: ManagerConfig,
        table: QueueTable,
        delivery: Delivery,
        counters: Counters,
        outgoing: OutgoingQueues,
        streams: IncomingStreams,
        history: History,
    ) -> None:
        self._config = config
        self._transfer = config.transfer
        self._table = table
        self._delivery = delivery
        self._counters = counters
        self._outgoing = outgoing
        self._streams = streams
        self._history = history
        self._places: dict[bytes, _Place] = {}
        self._run_queue: LocalQueue | None = None
        self._run: list[bytes] = []
        self._staged: list[StagedSend] = []
        self._run_bytes = 0
        delivery.send_final_ack = self.send_final_ack

    def take(self, packets: list[bytes], address: str, now: Instant) -> None:
        """Decide about packets of one session, in their order.

        Raises `DecodeError` at a packet that is none, and `NoRoom` at one that must wait; what came
        before it is decided.
        """
        self._places = {}
        try:
            self._take_all(packets, address, now)
        finally:
            self._flush(now)

    def _take_all(self, packets: list[bytes], address: str, now: Instant) -> None:
        position, count = 0, len(packets)
        while position < count:
            packet = packets[position]
            position += 1
            found = outline(packet)
            place = self._place(packet, found)
            if place.is_order_queue:
                self._take_acknowledgment(packet, now)
            elif not place.local:
                self._forward(packet, found, place, now)
            elif not self._is_plain(packet, found, place):
                self._take_local(packet, found, place, address, now)
            else:
                if found.flags & user.TRANSACTION:
                    self._take_local(packet, found, place, address, now)
                else:
                    self._take_plain([packet], place, now)
                position = self._take_alike(packets, position, _Alike(packet, found, place), now)

    def _take_alike(self, packets: list[bytes], position: int, alike: _Alike, now: Instant) -> int:
        """Take all packets like the one before them; gives where the next one is."""
        end, count, fits = position, len(packets), alike.fits
        while end < count and fits(packets[end]):
            end += 1
        if end > position:
            group = packets[position:end]
            if alike.transactional:
                for packet in group:
                    self._take_next(packet, alike, now)
            else:
                self._take_plain(group, alike.place, now)
        return end

    # Plain messages: nothing is asked for, nothing protected, no lifetime ends.

    def _is_plain(self, packet: bytes, found: Outline, place: _Place) -> bool:
        queue = place.queue
        return (
            queue is not None
            and not found.flags & _UNUSUAL
            and packet[48:52] == _NEVER
            and queue.role == "queue"
            and queue.properties.transactional == bool(found.flags & user.TRANSACTION)
            and not queue.properties.authentication_required
            and queue.properties.privacy is not QueuePrivacy.BODY
        )

    def _take_plain(self, packets: list[bytes], place: _Place, now: Instant) -> None:
        """Take messages that are not transactional, and alike."""
        queue = place.queue
        assert queue is not None
        first = packets[0]
        source = first[16:32]
        new = self._history.take_new(
            [source + packet[56:60] for packet in packets],
            now,
            recoverable=bool(first[60] & user.RECOVERABLE),
        )
        if not all(new):
            packets = [packet for packet, is_new in zip(packets, new, strict=True) if is_new]
        size = sum(map(len, packets))
        if not self._is_roomy(queue, size) or self._earliest_expired(packets, now):
            # A plain message without a place is gone: it has asked nobody to be told.
            packets = [
                packet
                for packet in packets
                if not self._has_expired(packet, now) and not self._quota_problem(queue, packet)
            ]
        if packets:
            self._add_plain(queue, packets, now)

    def _is_roomy(self, queue: LocalQueue, size: int) -> bool:
        """Whether so many more bytes are surely within all quotas."""
        size += self._run_bytes
        return queue.room_for(size) and (
            self._table.totals.bytes + size <= self._config.quota_kb * 1024
        )

    def _earliest_expired(self, packets: list[bytes], now: Instant) -> bool:
        """Whether one of packets with the same lifetime has travelled too long."""
        return bool(packets) and self._has_expired(min(packets, key=_sent_time_s), now)

    def _take_next(self, packet: bytes, alike: _Alike, now: Instant) -> None:
        """Take a transactional message of the same sequence as the one before."""
        stream, queue = alike.place.stream, alike.place.queue
        assert stream is not None
        assert queue is not None
        point = self._in_turn(packet, stream, alike.hole_start)
        if point is None:
            return
        has_place = (
            not self._has_expired(packet, now) and self._quota_problem(queue, packet) is None
        )
        self._streams.accept(stream, *point)
        if has_place:
            self._add_plain(queue, [packet], now)

    # Messages to queues of this queue manager.

    def _take_local(
        self, packet: bytes, found: Outline, place: _Place, address: str, now: Instant
    ) -> None:
        identifier = packet[16:32] + packet[56:60]
        stream: Stream | None = None
        point: tuple[SequenceId, int] | None = None
        if found.flags & user.TRANSACTION:
            stream = place.stream
            if stream is None:
                stream = place.stream = self._streams.of(packet, found, address)
                self._streams.heard(stream, now)
            point = self._in_turn(packet, stream, transaction_offset(packet))
            if point is None:
                return
        elif self._history.saw(identifier, now):
            return
        reason = self._problem(packet, found, place, now)
        if stream is not None and point is not None:
            self._streams.accept(stream, *point)
        else:
            self._history.note(identifier, recoverable=bool(packet[60] & user.RECOVERABLE))
        if reason is not None:
            self._reject(packet, found, reason, now)
            return
        assert place.queue is not None
        self._add_staged(place.queue, self._delivery.stage(place.queue, packet, found), now)

    def _in_turn(self, packet: bytes, stream: Stream, offset: int) -> tuple[SequenceId, int] | None:
        """Give the place of a message in its sequence if it is the next, else None (C-70)."""
        _, ordinal, timestamp, number, previous = transaction.LAYOUT.unpack_from(packet, offset)
        sequence = SequenceId(ordinal, timestamp)
        verdict = stream.sequence.judge(sequence, number, previous)
        if verdict is Verdict.ACCEPT:
            return sequence, number
        if verdict is Verdict.GAP:
            stream.sequence.reject()
        return None

    def _problem(
        self, packet: bytes, found: Outline, place: _Place, now: Instant
    ) -> MessageClass | None:
        """Say why a message cannot enter its queue; None when it can."""
        if self._has_expired(packet, now):
            return MessageClass.NACK_REACH_QUEUE_TIMEOUT
        queue = place.queue
        if queue is None or queue.role != "queue":
            return MessageClass.NACK_BAD_DESTINATION_QUEUE
        transactional = bool(found.flags & user.TRANSACTION)
        if transactional and not queue.properties.transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE
        if queue.properties.transactional and not transactional:
            return MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE
        return self._security_problem(packet, found, queue) or self._quota_problem(queue, packet)

    def _security_problem(
        self, packet: bytes, found: Outline, queue: LocalQueue
    ) -> MessageClass | None:
        """Nothing can be verified or decrypted yet, so what demands it is refused."""
        if queue.properties.authentication_required:
            return MessageClass.NACK_BAD_SIGNATURE
        encrypted = False
        if found.flags & user.SECURITY:
            message = decode(packet)
            assert isinstance(message, UserMessage)
            encrypted = message.security is not None and message.security.body_encrypted
        if encrypted or queue.properties.privacy is QueuePrivacy.BODY:
            return MessageClass.NACK_BAD_ENCRYPTION
        return None

    def _quota_problem(self, queue: LocalQueue, packet: bytes) -> MessageClass | None:
        waiting = self._run_bytes + len(packet)
        if self._table.totals.bytes + waiting > self._config.quota_kb * 1024:
            raise NoRoom(f"this queue manager may hold {self._config.quota_kb} KB")
        in_queue = waiting if queue is self._run_queue else len(packet)
        return None if queue.room_for(in_queue) else MessageClass.NACK_QUEUE_EXCEEDS_QUOTA

    def _has_expired(self, packet: bytes, now: Instant) -> bool:
        """Whether a message has travelled too long, another clock being off allowed for (C-24)."""
        deadline_s = travel_deadline_s(packet)
        return deadline_s != INFINITE_S and (
            now.unix_s > deadline_s + self._transfer.clock_skew_max_s
        )

    def _reject(self, packet: bytes, found: Outline, reason: MessageClass, now: Instant) -> None:
        """Tell who wants to know that a message is refused for good. [MQQB 3.1.5.8.3]"""
        if reason not in _INSECURE or self._transfer.permit_insecure_nacks:
            self._delivery.report(packet, reason, now)
        if found.flags & user.TRANSACTION:
            if _wants_final_ack(packet, found):
                self.send_final_ack(packet, reason, now)
        elif found.flags & user.JOURNAL_ON_FAILURE and reason in (
            MessageClass.NACK_QUEUE_EXCEEDS_QUOTA,
            MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        ):
            self._delivery.keep_dead_letter(packet, reason, now)

    # Messages that only pass through.

    def _forward(self, packet: bytes, found: Outline, place: _Place, now: Instant) -> None:
        """Send a message on towards its queue manager. [MQQB 3.1.5.8.2]"""
        identifier = packet[16:32] + packet[56:60]
        transactional = bool(found.flags & user.TRANSACTION)
        if not transactional and self._history.saw(identifier, now):
            return
        reason: MessageClass | None = None
        queue: LocalQueue | None = None
        if packet[60] & user.HOP_COUNT >= HOP_MAX_COUNT:
            reason = MessageClass.NACK_HOP_COUNT_EXCEEDED
        elif self._has_expired(packet, now):
            reason = MessageClass.NACK_REACH_QUEUE_TIMEOUT
        else:
            queue = self._onward(place)
            if queue is None:
                reason = MessageClass.NACK_BAD_DESTINATION_QUEUE
            elif self._quota_problem(queue, packet) is not None:
                reason = MessageClass.NACK_QUEUE_EXCEEDS_QUOTA
        if not transactional:
            self._history.note(identifier, recoverable=bool(packet[60] & user.RECOVERABLE))
        if reason is not None or queue is None:
            self._reject(packet, found, reason or MessageClass.NACK_BAD_DESTINATION_QUEUE, now)
            return
        self._add_staged(queue, self._delivery.stage(queue, count_hop(packet), found), now)

    def _onward(self, place: _Place) -> LocalQueue | None:
        if place.queue is None and place.route is not None:
            try:
                place.queue = self._table.outgoing(place.route)
            except MsmqError:
                return None
        return place.queue

    # Acknowledgments of transactional messages.

    def _take_acknowledgment(self, packet: bytes, now: Instant) -> None:
        """Heed an OrderAck or a FinalAck; anything else to the order queue is dropped."""
        message = decode(packet)
        assert isinstance(message, UserMessage)
        ack = acknowledgment_in(message, self._counters.identifier)
        if isinstance(ack, OrderAck):
            self._outgoing.order_acked(ack.sequence, ack.number, now)
        elif isinstance(ack, FinalAck):
            self._outgoing.final_acked(ack.message, message.properties.message_class, now)

    def send_order_acks(self, streams: list[Stream], now: Instant) -> None:
        """Tell senders how far their sequences have come. [MQQB 3.1.6.9]"""
        for stream in streams:
            point = stream.sequence.order_ack_due(now)
            self._streams.timers.set(stream, stream.sequence.next_wake_ms)
            if point is None:
                continue
            packet = order_ack_packet(
                OrderAck.up_to(point.id, point.number),
                source=self._counters.identifier,
                to=stream.return_address,
                message_number=0,
                sent_time_s=0,
                reach_queue_within_s=REACH_QUEUE_DEFAULT_S,
            )
            self._delivery.post(_order_queue(stream.return_address), encode(packet), now)

    def send_final_ack(self, packet: bytes, reason: MessageClass, now: Instant) -> None:
        """Tell the source of a transactional message how it ended (C-77). [MQQB 3.1.7.2.2]"""
        found = outline(packet)
        source = Guid(packet[16:32])
        stream = self._streams.find(source, packet, found)
        to = source if stream is None else stream.return_address
        offset = transaction_offset(packet)
        _, ordinal, timestamp, number, previous = transaction.LAYOUT.unpack_from(packet, offset)
        message = MessageId(source, int.from_bytes(packet[56:60], "little"))
        ack = FinalAck(SequenceId(ordinal, timestamp), number, previous, message)
        carrier = final_ack_packet(
            ack,
            reason,
            source=self._counters.identifier,
            to=to,
            message_number=0,
            sent_time_s=0,
            reach_queue_within_s=INFINITE_S,
        )
        self._delivery.post(_order_queue(to), encode(carrier), now)

    # Places.

    def _place(self, packet: bytes, found: Outline) -> _Place:
        form = found.flags >> user.DESTINATION_SHIFT & 7
        # Streams belong to a source, so it is part of what makes two destinations the same.
        key = bytes((form,)) + packet[16:48] + found.destination
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._find_place(packet, found)
        return place

    def _find_place(self, packet: bytes, found: Outline) -> _Place:
        place = _Place()
        manager = Guid(packet[32:48])
        place.local = manager in (NIL_GUID, self._counters.identifier)
        match found.destination_name:
            case DirectName(text):
                self._find_direct(place, text)
            case PrivateOnDestination(number):
                if not place.local:
                    place.route = PrivateFormatName(manager, number)
                elif number == ORDER_QUEUE_NUMBER:
                    place.is_order_queue = True
                else:
                    place.queue = self._or_none(
                        lambda: self._table.find_format_name(
                            PrivateFormatName(self._counters.identifier, number)
                        )
                    )
            case PublicName(queue):
                name = PublicFormatName(queue)
                if place.local:
                    place.queue = self._or_none(lambda: self._table.find_format_name(name))
                else:
                    place.route = name
            case _:
                pass
        return place

    def _find_direct(self, place: _Place, text: str) -> None:
        """A direct name came to the computer it names, by whatever host name (C-79)."""
        place.local = True
        try:
            queue = DirectFormatName.from_wire_text(text).queue
        except IllegalName:
            return
        if isinstance(queue, SystemQueue):
            return
        if text.casefold().endswith(ORDER_QUEUE_PATH.casefold()):
            place.is_order_queue = True
            return
        place.queue = self._or_none(lambda: self._table.find_here(queue))

    def _or_none(self, find: Callable[[], LocalQueue]) -> LocalQueue | None:
        try:
            return find()
        except MsmqError:
            return None

    # Runs: neighbours for the same queue are put together.

    def _add_plain(self, queue: LocalQueue, packets: list[bytes], now: Instant) -> None:
        run = self._run
        if (
            queue is not self._run_queue
            or self._staged
            or (run and (run[0][60] ^ packets[0][60]) & user.RECOVERABLE)
        ):
            self._flush(now)
            self._run_queue = queue
            run = self._run
        run += packets
        self._run_bytes += sum(map(len, packets))

    def _add_staged(self, queue: LocalQueue, send: StagedSend, now: Instant) -> None:
        if queue is not self._run_queue or self._run:
            self._flush(now)
            self._run_queue = queue
        self._staged.append(send)
        self._run_bytes += len(send.packet)

    def _flush(self, now: Instant) -> None:
        queue, run, staged = self._run_queue, self._run, self._staged
        self._run_queue, self._run, self._staged, self._run_bytes = None, [], [], 0
        if queue is None:
            return
        if run:
            self._delivery.put_received(queue, run, now)
        if staged:
            self._delivery.put(queue, staged, now)
            if queue.role == "queue":
                self._delivery.report_arrivals(staged, now)


def _sent_time_s(packet: bytes) -> int:
    return int.from_bytes(packet[52:56], "little")


def _order_queue(to: Guid | str) -> FormatName:
    if isinstance(to, str):
        name = LocalQueueName(_ORDER_QUEUE_NAME, private=True)
        return DirectFormatName(DirectProtocol.TCP, to, name)
    return PrivateFormatName(Guid(to), ORDER_QUEUE_NUMBER)


def _wants_final_ack(packet: bytes, found: Outline) -> bool:
    if found.flags & (user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS):
        return True
    return is_transactional(packet) and bool(
        packet[transaction_offset(packet)] & transaction.FINAL_ACK
    )
