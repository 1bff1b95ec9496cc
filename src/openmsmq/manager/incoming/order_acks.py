"""Acknowledgments of transactional messages: those that come, and those we owe. [MQQB 3.1.5.6]

One that comes counts if it is of the queue manager to which the flow goes, or came on the way from
it. One that we owe goes to the queue manager whose messages it answers: of several behind one
address each has its own outgoing queue for that.
"""

from __future__ import annotations

from typing import Final

from msgspec import structs

from openmsmq.manager.incoming.destinations import NotBelieved
from openmsmq.manager.incoming.incoming_sequences import Flow, IncomingSequences
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.peers.confirmations import Confirmations
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.queues.return_queues import return_queue
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.limits import INFINITE_S, REACH_QUEUE_DEFAULT_S
from openmsmq.model.message import MessageClass
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    PrivateFormatName,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.bodies.acknowledgments import ORDER_QUEUE_NUMBER, FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import (
    ReturnAddress,
    acknowledgment_in,
    order_packet,
)
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode, encode

ORDER_ACKS_WAITING_MAX_COUNT: Final = 100
"""Order acknowledgments that wait for one sender at a time: they are in memory, and whoever cannot
be reached asks for them again by sending again."""


class FinalAcks:
    """Tells the sources of transactional messages how those ended."""

    def __init__(self, base: Foundation, reporter: Reporter, sequences: IncomingSequences) -> None:
        self._counters = base.counters
        self._reporter = reporter
        self._sequences = sequences
        self.own: list[tuple[FinalAck, MessageClass]] = []
        """What we have to tell ourselves, before the turn ends."""

    def send(self, packet: bytes, reason: MessageClass, now: Instant) -> None:
        """Tell the source of a transactional message how it ended (C-77). [MQQB 3.1.7.2.2]"""
        source = Guid(message_bytes.source(packet))
        flow = self._sequences.find(source, packet, outline(packet))
        to = source if flow is None else flow.return_address
        message = MessageId(source, message_bytes.message_number(packet))
        ack = FinalAck(*message_bytes.sequence_place(packet), message)
        if flow is not None and flow.is_http:
            # Whoever it says it is from, only who has the URL hears of it.
            receipt = receipt_packet(ack, self._counters.identifier, flow, reason)
            self._reporter.post(url_queue(flow), encode(receipt), now, is_final=True)
            return
        if flow is None and message_bytes.came_over_http(packet):
            # Nobody knows any more where its sender wants to hear of it.
            return
        if source == self._counters.identifier:
            # We reach ourselves under a name that is not known to be ours.
            self.own.append((ack, reason))
            return
        carrier = order_packet(ack, reason, source=self._counters.identifier, to=to)
        name = _order_queue(to, source)
        self._reporter.post(name, encode(carrier), now, is_final=True)


class OrderAcks:
    """Heeds order and final acknowledgments, and sends order acknowledgments."""

    def __init__(
        self,
        base: Foundation,
        reporter: Reporter,
        finals: FinalAcks,
        outgoing: OutgoingQueues,
        confirmations: Confirmations,
        sequences: IncomingSequences,
        identities: Identities,
    ) -> None:
        self._counters = base.counters
        self._notices = base.notices
        self._reporter = reporter
        self._finals = finals
        self._outgoing = outgoing
        self._confirmations = confirmations
        self._sequences = sequences
        self._identities = identities

    def take(self, packet: bytes, peer: Peer, now: Instant) -> None:
        """Heed an OrderAck or a FinalAck; anything else to the order queue is dropped."""
        message = decode(packet)
        assert isinstance(message, UserMessage)
        ack = acknowledgment_in(message, self._counters.identifier)
        if isinstance(ack, OrderAck):
            outgoing = self._outgoing.of_sequence(ack.sequence)
            if outgoing is not None and self._counts(outgoing, packet, peer, now):
                self._confirmations.order_acked(outgoing, ack.sequence, ack.number, now)
        elif isinstance(ack, FinalAck):
            awaited = self._confirmations.awaited(ack)
            if awaited is not None and self._counts(awaited.outgoing, packet, peer, now):
                self._confirmations.final_acked(awaited, message.properties.message_class, now)
            elif awaited is not None and self._may_count_later(awaited.outgoing, packet, peer):
                raise NotBelieved

    def _counts(self, outgoing: OutgoingQueue, packet: bytes, peer: Peer, now: Instant) -> bool:
        """Whether an acknowledgment is of the one to whom the messages go."""
        source = Guid(message_bytes.source(packet))
        # What leaves over HTTP is acknowledged over HTTP, by who knows the word for it.
        if not outgoing.is_http and self._identities.may_acknowledge(peer, source, outgoing, now):
            return True
        self._notices.note(
            NoticeKind.ACKNOWLEDGMENT_REFUSED,
            "foreign-source",
            peer=peer.engine.address,
            says_it_is=str(peer.remote),
            source=str(source),
            queue=str(outgoing.name),
        )
        return False

    def _may_count_later(self, outgoing: OutgoingQueue, packet: bytes, peer: Peer) -> bool:
        """Whether it is not known yet to whom the messages go, so that it may be this peer.

        A full disk and a crash make us forget whom we have reached. A final acknowledgment is sent
        once: who brings his own keeps it until we have been there again. A stranger who does so
        loses only his session. Where nothing is left to send we do not go, and what else he has for
        us would wait behind it.
        """
        return (
            outgoing.reached == NIL_GUID
            and not outgoing.is_http
            and outgoing.queue.count > 0
            and message_bytes.source(packet) == peer.remote
        )

    @property
    def next_wake_ms(self) -> int | None:
        """When `wake` has something to do."""
        return self._sequences.timers.next_ms

    def wake(self, now: Instant) -> None:
        """Time has passed: tell senders how far their sequences have come. [MQQB 3.1.6.9]"""
        for flow in self._sequences.timers.take_due(now.ticks_ms):
            point = flow.sequence.order_ack_due(now)
            self._sequences.timers.set(flow, flow.sequence.next_wake_ms)
            if point is None:
                continue
            if flow.is_http:
                ack = OrderAck.up_to(point.id, point.number)
                receipt = receipt_packet(ack, self._counters.identifier, flow)
                self._reporter.post(
                    url_queue(flow),
                    encode(receipt),
                    now,
                    express_max_count=ORDER_ACKS_WAITING_MAX_COUNT,
                )
                continue
            if flow.source == self._counters.identifier:
                # We reach ourselves under a name that is not known to be ours.
                outgoing = self._outgoing.of_sequence(point.id)
                if outgoing is not None:
                    self._confirmations.order_acked(outgoing, point.id, point.number, now)
                continue
            packet = order_packet(
                OrderAck.up_to(point.id, point.number),
                source=self._counters.identifier,
                to=flow.return_address,
                time_to_reach_queue_s=REACH_QUEUE_DEFAULT_S,
            )
            self._reporter.post(
                _order_queue(flow.return_address, flow.source),
                encode(packet),
                now,
                express_max_count=ORDER_ACKS_WAITING_MAX_COUNT,
            )

    def heed_own(self, now: Instant) -> None:
        """Heed the final acknowledgments that we owe ourselves."""
        while self._finals.own:
            ack, reason = self._finals.own.pop(0)
            awaited = self._confirmations.awaited(ack)
            if awaited is not None:
                self._confirmations.final_acked(awaited, reason, now)


def receipt_packet(
    ack: OrderAck | FinalAck, local: Guid, flow: Flow, reason: int = MessageClass.ORDER_ACK
) -> UserMessage:
    """Carry an acknowledgment to the URL for receipts of a flow."""
    within_s = REACH_QUEUE_DEFAULT_S if isinstance(ack, OrderAck) else INFINITE_S
    made = order_packet(ack, reason, source=local, to=flow.source, time_to_reach_queue_s=within_s)
    header = structs.replace(made.user, destination=DirectName(flow.direct_address))
    return structs.replace(made, user=header)


def url_queue(flow: Flow) -> DirectFormatName:
    """Return where receipts for a flow wait to leave: all with the same URL, whatever word."""
    return DirectFormatName.from_wire_text(flow.direct_address.partition("?")[0])


def _order_queue(to: ReturnAddress, sender: Guid) -> FormatName:
    """Return where acknowledgments for a sender wait to leave."""
    if isinstance(to, str):
        return return_queue(to, sender)
    return PrivateFormatName(Guid(to), ORDER_QUEUE_NUMBER)
