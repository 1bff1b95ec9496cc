"""What an application has open: its connection, its queues, its cursors."""

from __future__ import annotations

from collections.abc import Iterator

from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.reads import Cursor
from openmsmq.manager.queues.targets import Target
from openmsmq.model.errors import AccessDenied, InvalidHandle
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.security.access.callers import UNKNOWN_ORIGIN, UNLIMITED, Caller, Origin


class OpenQueue:
    """A queue as one application has it open. [MQDMPR 3.1.1.17]"""

    __slots__ = ("access", "connection", "handle", "locked", "share", "target")

    def __init__(
        self, handle: int, connection: int, target: Target, access: AccessMode, share: ShareMode
    ) -> None:
        self.handle = handle
        self.connection = connection
        self.target = target
        self.access = access
        self.share = share
        self.locked: set[int] = set()
        """Lookup identifiers of messages read with a lock, whose reads have not ended yet."""

    @property
    def queue(self) -> LocalQueue:
        """The queue; refused if it is something that can only be sent to."""
        if not isinstance(self.target, LocalQueue):
            raise AccessDenied(f"{self.target.name} is only open for sending")
        return self.target

    @property
    def reads(self) -> bool:
        """Whether messages can be seen through it."""
        return self.access not in (AccessMode.SEND, AccessMode.MOVE)


class Connection:
    """One application's connection and all that ends with it."""

    __slots__ = (
        "caller",
        "cursors",
        "elsewhere",
        "handles",
        "id",
        "lock_holder",
        "origin",
        "queues",
        "reads_as",
        "transactions",
    )

    def __init__(
        self,
        number: int,
        handles: Iterator[int],
        caller: Caller = UNLIMITED,
        origin: Origin = UNKNOWN_ORIGIN,
    ) -> None:
        self.id = number
        self.handles = handles
        """The numbers that nobody has used; all connections of the queue manager share them."""
        self.caller = caller
        self.origin = origin
        self.queues: dict[int, OpenQueue] = {}
        self.cursors: dict[int, Cursor] = {}
        self.elsewhere: dict[int, set[int]] = {}
        """Handles that stand for queues of other computers, each with its cursors."""
        self.transactions: set[int] = set()
        self.reads_as: set[tuple[int, str]] = set()
        """Queues that a query reads through it by arrival numbers, with the name of the reader."""
        self.lock_holder = 0
        """Who holds the messages that it reads with a lock; 0 before the first."""

    def lock_as(self, holder: int) -> None:
        """Let its reads with a lock be known by a number."""
        self.lock_holder = holder

    def take_handle(self) -> int:
        """Return a number that no handle or cursor has had. [MQDMPR 3.1.1.16, 3.2.1.2]"""
        return next(self.handles)

    def queue(self, handle: int) -> OpenQueue:
        """Find an open queue by its handle."""
        try:
            return self.queues[handle]
        except KeyError:
            raise InvalidHandle(f"no queue is open under handle {handle}") from None

    def cursor(self, number: int, opened: OpenQueue) -> Cursor:
        """Find a cursor of an open queue."""
        cursor = self.cursors.get(number)
        if cursor is None or cursor.owner is not opened:
            raise InvalidHandle(f"the queue has no cursor {number}")
        return cursor
