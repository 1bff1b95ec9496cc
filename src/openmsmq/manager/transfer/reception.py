"""Reception: packets are taken on the word of the peer who brings them, or its session ends."""

from __future__ import annotations

from openmsmq.manager.askers import OURSELVES
from openmsmq.manager.incoming.arrivals import Arrivals, NoRoom, NotBelieved
from openmsmq.manager.messages.reporting import Reporter
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
        reporter: Reporter,
        acquaintances: Acquaintances,
        admission: Admission,
    ) -> None:
        self._arrivals = arrivals
        self._reporter = reporter
        self._acquaintances = acquaintances
        self._admission = admission
        reporter.leads_back = acquaintances.leads_back
        reporter.knows = acquaintances.knows

    def take(self, peer: Peer, packets: list[bytes], now: Instant) -> CloseReason | None:
        """Decide about packets; gives why their session must end, if it must."""
        self._reporter.asker = self._acquaintances.asker_of(peer)
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
            self._reporter.asker = OURSELVES
        return None
