"""What a turn does with sessions: packets are acknowledged, and entries bridged that went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError

if TYPE_CHECKING:
    from openmsmq.manager.transfer.control import TransferControl
    from openmsmq.manager.transfer.sessions import Sessions


class PacketsTaken(Effect):
    """Packets of a session were decided about: it acknowledges them when that is durable."""

    __slots__ = ("count", "now", "peer", "sessions")

    def __init__(self, sessions: Sessions, peer: Peer, count: int, now: Instant) -> None:
        self.sessions = sessions
        self.peer = peer
        self.count = count
        self.now = now
        """When they came. The input that follows is a moment later; no timer depends on that."""

    def follow(self) -> None:
        """Let the session acknowledge them."""
        self.sessions.acknowledge(self.peer, self.count, self.now)

    def revert(self, _: MsmqError, /) -> None:
        """Close the session: its peer sends them again."""
        self.sessions.refuse(self.peer, self.now)

    def describe(self) -> dict[str, Plain]:
        """Return the session, and how many packets."""
        return {"session": self.peer.number, "packets": self.count}


class TransferPaused(Effect):
    """The transfer of an outgoing queue stops. It is added before the queue is paused, so that it
    is taken back when the queue is not paused any more."""

    __slots__ = ("control", "now", "outgoing")

    def __init__(self, control: TransferControl, outgoing: OutgoingQueue, now: Instant) -> None:
        self.control = control
        self.outgoing = outgoing
        self.now = now

    def revert(self, _: MsmqError, /) -> None:
        """Go on sending, and let the peer send as it likes."""
        self.control.go_on(self.outgoing, self.now)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is."""
        return {"queue": self.outgoing.queue.name}
