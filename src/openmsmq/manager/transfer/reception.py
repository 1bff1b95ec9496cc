"""Reception: packets are taken on the word of the peer who brings them, or its session ends."""

from __future__ import annotations

from openmsmq.manager.askers import OURSELVES, Acting
from openmsmq.manager.incoming.arrivals import Arrivals
from openmsmq.manager.incoming.places import NotBelieved
from openmsmq.manager.incoming.runs import NoRoom
from openmsmq.manager.peers.acquaintances import Acquaintances
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.transfer.admission import Admission
from openmsmq.model.clock import Instant
from openmsmq.protocol.session import CloseReason
from openmsmq.wire.errors import DecodeError


class Reception:
    """Says on whose word packets come, and what follows if they cannot be taken."""

    def __init__(
        self,
        arrivals: Arrivals,
        acting: Acting,
        acquaintances: Acquaintances,
        admission: Admission,
    ) -> None:
        self._arrivals = arrivals
        self._acting = acting
        self._acquaintances = acquaintances
        self._admission = admission

    def take(self, peer: Peer, packets: list[bytes], now: Instant) -> CloseReason | None:
        """Decide about packets; gives why their session must end, if it must."""
        self._acting.on_word_of(self._acquaintances.asker_of(peer))
        try:
            self._arrivals.take(packets, peer, now)
        except DecodeError:
            return CloseReason.MALFORMED
        except NotBelieved:
            return CloseReason.IDENTITY_REFUSED
        except NoRoom as full:
            if full.is_general:
                self._admission.throttle(now)
            return CloseReason.STORE_FULL
        finally:
            self._acting.on_word_of(OURSELVES)
        return None
