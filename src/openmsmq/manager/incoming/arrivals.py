"""What becomes of packets that other queue managers send. [MQQB 3.1.5.8]

The fate of a packet is decided once, in the order of its arrival, and is durable together with what
keeps it from being decided again: the place in its sequence, or its identifier in the history. Only
then does the session acknowledge it.
"""

from __future__ import annotations

from typing import Final

from openmsmq.manager.access.message_security import without_claims
from openmsmq.manager.askers import OURSELVES, Acting, Asker
from openmsmq.manager.incoming.destinations import Judging
from openmsmq.manager.incoming.forwarding import Forwarding
from openmsmq.manager.incoming.local_arrivals import LocalArrivals
from openmsmq.manager.incoming.notifications import Heeded
from openmsmq.manager.incoming.order_acks import OrderAcks
from openmsmq.manager.incoming.runs import Runs
from openmsmq.manager.peers.peering import Peer
from openmsmq.model.clock import Instant
from openmsmq.wire.headers import base, user
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import check

_PASSED_OVER: Final = user.MULTI_QUEUE | user.SOAP | user.OTHER_NAMES | user.SECURITY
_TRACED: Final = base.DEBUG | base.TRACE


class Arrivals:
    """Decides about the packets of all sessions."""

    def __init__(
        self,
        acting: Acting,
        judging: Judging,
        local: LocalArrivals,
        forwarding: Forwarding,
        acks: OrderAcks,
        notifications: Heeded,
        runs: Runs,
    ) -> None:
        self._acting = acting
        self._judging = judging
        self._local = local
        self._forwarding = forwarding
        self._acks = acks
        self._notifications = notifications
        self._runs = runs

    def take(self, packets: list[bytes], peer: Peer, asker: Asker, now: Instant) -> None:
        """Decide about packets of one session, in their order, on the word of who brings them.

        Raise `DecodeError` at a packet that is none, `NotBelieved` at one under another's name, and
        `NoRoom` at one that must wait; what came before it is decided.
        """
        self._acting.on_word_of(asker)
        try:
            self._take_all(packets, peer, asker, now)
        finally:
            self._runs.flush(now)
            self._acting.on_word_of(OURSELVES)

    def _take_all(self, packets: list[bytes], peer: Peer, asker: Asker, now: Instant) -> None:
        destinations = self._judging.destinations(peer)
        position, count = 0, len(packets)
        while position < count:
            packet = packets[position]
            position += 1
            found = outline(packet)
            if found.flags & _PASSED_OVER or found.base_flags & _TRACED:
                # An outline passes over these headers, and nobody could read the message without.
                check(packet)
                # Wherever it ends up, as a dead letter or on its way, it says what is proved only.
                packet = without_claims(packet, found)
            to = destinations.find(packet, found, now)
            if asker.known and to.is_brought is not self._acting.asker.is_brought:
                self._go_on_for(asker, now, is_brought=to.is_brought)
            if to.is_order_queue:
                self._acks.take(packet, peer, now)
            elif to.is_notify_queue:
                self._notifications.take(packet, now)
            elif self._judging.may_come(packet, found, to, peer, now):
                if to.local:
                    position = self._local.take(packet, found, to, packets, position, now)
                else:
                    self._forwarding.take(packet, found, to, peer, now)

    def _go_on_for(self, asker: Asker, now: Instant, *, is_brought: bool) -> None:
        """Act on the word of who is behind the asker from now on, or of the asker again.

        What was taken before is charged to the one on whose word it was.
        """
        self._runs.flush(now)
        if is_brought:
            asker = Asker(asker.address, asker.manager, known=True, is_brought=True)
        self._acting.on_word_of(asker)
