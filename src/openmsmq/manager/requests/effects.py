"""What a turn does for applications beyond answers: queues are opened, and readers sent away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.api import messages as api
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replied, Replies
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.model.errors import MsmqError

if TYPE_CHECKING:
    from openmsmq.manager.requests.opening import OpenRequests
    from openmsmq.manager.requests.removal import QueueRemoval


class QueueOpened(Replied):
    """An application has a queue open, which may have come into being for it."""

    __slots__ = ("opened", "requests", "state")

    def __init__(
        self,
        replies: Replies,
        requests: OpenRequests,
        state: Connection,
        call: int,
        opened: OpenQueue,
        reply: api.AnyReply,
    ) -> None:
        super().__init__(replies, state.id, call, reply)
        self.requests = requests
        self.state = state
        self.opened = opened

    def apply(self) -> None:
        """Let the application's handle count."""
        self.state.queues[self.opened.handle] = self.opened

    def revert(self, error: MsmqError, /) -> None:
        """Close it, and refuse the call."""
        if self.opened.handle in self.state.queues:
            self.requests.close_queue(self.state, self.opened, error)
        super().revert(error)

    def describe(self) -> dict[str, Plain]:
        """Return who has which queue open, and what for."""
        opened = self.opened
        return super().describe() | {"queue": opened.target.name, "access": opened.access.name}


class DeletedQueuesLeft(Effect):
    """Queues are deleted: who waits there is sent away, and entries begin to go."""

    __slots__ = ("family", "removal")

    def __init__(self, removal: QueueRemoval, family: list[LocalQueue]) -> None:
        self.removal = removal
        self.family = family

    def follow(self) -> None:
        """Tell those who wait, and let the entries go bit by bit."""
        for member in self.family:
            self.removal.clear(member)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is, and how many go with it."""
        return {"queue": self.family[0].name, "queues": len(self.family)}
