"""Where packets of other queue managers go, and what the name of their source is worth.

Both are found once for all packets of a group with the same source and queue.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from openmsmq.manager.incoming.incoming_sequences import Flow, IncomingSequences
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.peers.doubts import Doubts
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.peering import Peer, Word
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid
from openmsmq.model.limits import PEER_NAMES_MAX_COUNT
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    IllegalName,
    PrivateFormatName,
    PublicFormatName,
    SystemQueue,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.bodies.acknowledgments import ORDER_QUEUE_NUMBER
from openmsmq.wire.bodies.notifications import NOTIFY_QUEUE_NUMBER
from openmsmq.wire.bodies.order_packets import ORDER_QUEUE_PATH
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.outline import Outline


class Destination:
    """Where packets with the same destination go: found once for each group of packets."""

    __slots__ = (
        "flow",
        "is_brought",
        "is_notify_queue",
        "is_order_queue",
        "local",
        "manager",
        "queue",
        "remembered_as",
        "route",
        "word",
    )

    def __init__(self, manager: Guid, word: Word, remembered_as: bytes) -> None:
        self.manager = manager
        self.word = word
        self.remembered_as = remembered_as
        """What stands for the source in the history: nobody makes another's messages look like
        ones that came already."""
        self.local = True
        self.is_brought = False
        """Whether it is a queue here, and the source nobody known, behind the one who brings it."""
        self.is_order_queue = False
        self.is_notify_queue = False
        self.queue: LocalQueue | None = None
        self.route: FormatName | None = None
        self.flow: Flow | None = None
        """The flow that its transactional messages are part of, if they may."""

    def begin_flow(self, flow: Flow) -> None:
        """Let the next packets be part of a flow."""
        self.flow = flow

    def lead_to(self, queue: LocalQueue) -> None:
        """Let the next packets go into this queue, too."""
        self.queue = queue


class Destinations:
    """The destinations of one group of packets; queues may come and go between two groups."""

    def __init__(
        self, table: QueueTable, counters: Counters, identities: Identities, peer: Peer
    ) -> None:
        self._table = table
        self._counters = counters
        self._identities = identities
        self._peer = peer
        self._destinations: dict[bytes, Destination] = {}

    def find(self, packet: bytes, found: Outline, now: Instant) -> Destination:
        """Return the destination of a packet."""
        form = found.flags >> user.DESTINATION_SHIFT & 7
        # Flows belong to a source, so it is part of what makes two destinations the same.
        form |= bool(found.flags & user.TRANSACTION) << 3
        key = b"".join(
            (
                bytes((form,)),
                message_bytes.source(packet),
                message_bytes.destination_manager(packet),
                found.destination,
            )
        )
        destination = self._destinations.get(key)
        if destination is None:
            destination = self._destinations[key] = self._find(packet, found, now)
        return destination

    def _find(self, packet: bytes, found: Outline, now: Instant) -> Destination:
        manager = Guid(message_bytes.destination_manager(packet))
        source = message_bytes.source(packet)
        word = self._identities.word(self._peer, source, now)
        destination = Destination(manager, word, self._remembered_as(source, word))
        destination.local = manager in (NIL_GUID, self._counters.identifier)
        match found.destination_name:
            case DirectName(text):
                transactional = bool(found.flags & user.TRANSACTION)
                self._find_direct(destination, text, transactional=transactional)
            case PrivateOnDestination(number):
                if not destination.local:
                    destination.route = PrivateFormatName(manager, number)
                elif number == ORDER_QUEUE_NUMBER:
                    destination.is_order_queue = True
                elif number == NOTIFY_QUEUE_NUMBER:
                    destination.is_notify_queue = True
                else:
                    destination.queue = self._or_none(
                        lambda: self._table.find_format_name(
                            PrivateFormatName(self._counters.identifier, number)
                        )
                    )
            case PublicName(queue):
                name = PublicFormatName(queue)
                if destination.local:
                    destination.queue = self._or_none(lambda: self._table.find_format_name(name))
                elif (foreign := self._table.connector_to(name)) is not None:
                    # It has reached the last queue manager that there is on its way.
                    destination.local = True
                    transactional = bool(found.flags & user.TRANSACTION)
                    destination.queue = foreign.transactional_twin if transactional else foreign
                else:
                    destination.route = name
            case _:
                pass
        if destination.local and not (destination.is_order_queue or destination.is_notify_queue):
            destination.is_brought = self._identities.is_outsider_of(self._peer, Guid(source))
        return destination

    def _remembered_as(self, source: bytes, word: Word) -> bytes:
        if word is Word.SURE:
            return source
        known = self._peer.histories
        if source not in known:
            if len(known) >= PEER_NAMES_MAX_COUNT:
                known.clear()
            text = source + self._peer.place.encode()
            known[source] = hashlib.blake2b(text, digest_size=GUID_BYTES).digest()
        return known[source]

    def _find_direct(self, destination: Destination, text: str, *, transactional: bool) -> None:
        """A direct name came to the computer it names, by whatever host name.

        Unless that is the name of a foreign computer to which there is a connector here, or the
        packet is for another queue manager (C-79).
        """
        if not destination.local:
            return
        try:
            name = DirectFormatName.from_wire_text(text)
        except IllegalName:
            return
        foreign = self._table.connector_of(name.host)
        if foreign is not None:
            destination.queue = foreign.transactional_twin if transactional else foreign
            return
        queue = name.queue
        if isinstance(queue, SystemQueue):
            return
        if text.casefold().endswith(ORDER_QUEUE_PATH.casefold()):
            destination.is_order_queue = True
            return
        destination.queue = self._or_none(lambda: self._table.find_here(queue))

    def _or_none(self, find: Callable[[], LocalQueue]) -> LocalQueue | None:
        try:
            return find()
        except MsmqError:
            return None


class NotBelieved(Exception):
    """A peer brings a message that is not taken of it now, and has to keep it."""


class Judging:
    """Says which packets are taken from whom. A peer moves only its own sequences, and those of
    queue managers from which it is a known way."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        identities: Identities,
        doubts: Doubts,
        sequences: IncomingSequences,
    ) -> None:
        self._counters = base.counters
        self._notices = base.notices
        self._table = table
        self._identities = identities
        self._doubts = doubts
        self._sequences = sequences

    def destinations(self, peer: Peer) -> Destinations:
        """Return what finds the destinations of a peer's packets."""
        return Destinations(self._table, self._counters, self._identities, peer)

    def may_come(
        self, packet: bytes, found: Outline, destination: Destination, peer: Peer, now: Instant
    ) -> bool:
        """Whether a message is taken from a peer.

        One that is not transactional may name a source that nobody knows, but no other's.
        """
        if found.flags & user.TRANSACTION:
            return self._may_move(packet, found, destination, peer, now)
        if (
            destination.local
            and destination.word is Word.FOREIGN
            and self._identities.knows_elsewhere(peer, message_bytes.source(packet), now)
        ):
            self.refuse_foreign(packet, found, peer, now)
            return False
        return True

    def may_pass_on(self, to: Destination) -> bool:
        """Whether a message is passed on, by what the name of its source is worth."""
        return to.word is not Word.FOREIGN and self._identities.ways.passes_on(
            to.manager, for_strangers=to.word is Word.OWN
        )

    def refuse_foreign(self, packet: bytes, found: Outline, peer: Peer, now: Instant) -> None:
        """Drop a message in another's name that is not transactional; raise `NotBelieved` instead
        if it is to survive a crash and may be an honest one after all.

        Then the session ends, and the peer keeps it. That is so if it is the peer's own, as he may
        be who he says he is, or we the way that he takes us for, and while the directory may yet
        say that he is a way from its source.
        What is surely forged is dropped, and the session goes on: a stranger may have made an
        honest peer bring it.
        """
        is_kept = found.flags & user.RECOVERABLE and (
            # That comes first, because it has the directory asked.
            self._doubts.leave(peer, now) or message_bytes.source(packet) == peer.remote
        )
        kind = NoticeKind.MESSAGE_LEFT if is_kept else NoticeKind.MESSAGE_DROPPED
        self.tell_of("foreign-source", kind, packet, peer)
        if is_kept:
            raise NotBelieved

    def _may_move(
        self, packet: bytes, found: Outline, destination: Destination, peer: Peer, now: Instant
    ) -> bool:
        """Whether a transactional message is of its sender, or came on the way from him.

        If not, it moves nothing: the sender has it until we acknowledge its place in the sequence.
        """
        if destination.flow is not None:
            return True
        problem = "foreign-source" if destination.word is Word.FOREIGN else ""
        if destination.local and not problem:
            durably = destination.queue is not None
            flow = self._sequences.of(packet, found, peer, destination.word, now, durably=durably)
            if isinstance(flow, Flow):
                destination.flow = flow
                self._sequences.heard(flow, now)
                return True
            problem = flow
        if not problem:
            return True
        self.tell_of(problem, NoticeKind.SEQUENCE_REFUSED, packet, peer)
        return False

    def tell_of(self, problem: str, kind: NoticeKind, packet: bytes, peer: Peer) -> None:
        """Let the operator hear of a packet that somebody brings in another's name."""
        self._notices.note(
            kind,
            problem,
            peer=peer.engine.address,
            says_it_is=str(peer.remote),
            source=str(Guid(message_bytes.source(packet))),
        )
