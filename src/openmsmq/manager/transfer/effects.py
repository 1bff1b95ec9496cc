"""What a turn does with sessions: packets are acknowledged, and entries bridged that went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError

if TYPE_CHECKING:
    from openmsmq.manager.transfer.transfer import Transfer


class PacketsTaken(Effect):
    """Packets of a session were decided about: it acknowledges them when that is durable."""

    __slots__ = ("count", "now", "peer", "transfer")

    def __init__(self, transfer: Transfer, peer: Peer, count: int, now: Instant) -> None:
        self.transfer = transfer
        self.peer = peer
        self.count = count
        self.now = now
        """When they came. The input that follows is a moment later; no timer depends on that."""

    def follow(self) -> None:
        """Let the session acknowledge them."""
        self.transfer.acknowledge(self.peer, self.count, self.now)

    def revert(self, _: MsmqError, /) -> None:
        """Close the session: its peer sends them again."""
        self.transfer.refuse(self.peer, self.now)

    def describe(self) -> dict[str, Plain]:
        """Return the session, and how many packets."""
        return {"session": self.peer.number, "packets": self.count}


class TransferPaused(Effect):
    """The transfer of an outgoing queue stops. It is added before the queue is paused, so that it
    is taken back when the queue is not paused any more."""

    __slots__ = ("now", "outgoing", "transfer")

    def __init__(self, transfer: Transfer, outgoing: OutgoingQueue, now: Instant) -> None:
        self.transfer = transfer
        self.outgoing = outgoing
        self.now = now

    def revert(self, _: MsmqError, /) -> None:
        """Go on sending, and let the peer send as it likes."""
        self.transfer.go_on(self.outgoing, self.now)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is."""
        return {"queue": self.outgoing.queue.name}


class EntriesGivenUp(Effect):
    """Entries leave an outgoing queue unsent: when that is durable, their places are bridged.

    Until then no transactional message of the queue leaves.
    """

    __slots__ = ("outgoing", "ready", "rows")

    def __init__(
        self, outgoing: OutgoingQueue, rows: list[Row], ready: dict[LocalQueue, None]
    ) -> None:
        self.outgoing = outgoing
        self.rows = rows
        self.ready = ready

    def apply(self) -> None:
        """Let others wait until it is known what goes before them."""
        self.outgoing.leaving_count += 1

    def follow(self) -> None:
        """Let the sequence go on without them."""
        for lookup_id, _ in self.rows:
            self.outgoing.sequence.gone(lookup_id)
        self._look_again()

    def revert(self, _: MsmqError, /) -> None:
        """Let everything leave as before."""
        self._look_again()

    def _look_again(self) -> None:
        self.outgoing.leaving_count -= 1
        self.ready[self.outgoing.queue] = None

    def describe(self) -> dict[str, Plain]:
        """Return the queue, and how many entries."""
        return {"queue": self.outgoing.queue.name, "entries": len(self.rows)}
