"""What transactions will send, counted from when it is staged until it is in its queue or nowhere.

It counts for the quotas of its queue and of the queue manager like what is there: so no commit
brings more than they allow, and none is refused because of them. What it takes of the memory and
of the disk meanwhile is shared out among owners.
"""

from __future__ import annotations

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.transactions.work import Transaction
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.limits import OWNER_SHARE_FACTOR


class _Counted:
    """What is counted of one transaction."""

    __slots__ = ("by_queue", "memory_bytes", "owner")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.by_queue: dict[int, int] = {}
        self.memory_bytes = 0


class _Owned:
    """What is counted of one owner, or of all."""

    __slots__ = ("memory_bytes", "size")

    def __init__(self) -> None:
        self.size = 0
        self.memory_bytes = 0

    def add(self, size: int, memory_bytes: int) -> None:
        self.size += size
        self.memory_bytes += memory_bytes


class Staged:
    """Counts what transactions will send, by queue, by owner and in all."""

    def __init__(self, config: ManagerConfig, table: QueueTable) -> None:
        self._config = config
        self._table = table
        self._counted: dict[int, _Counted] = {}
        self._owners: dict[str, _Owned] = {}
        self._all = _Owned()

    def has_room(self, work: Transaction, size: int, *, administers: bool) -> bool:
        """Whether a transaction may send so many more bytes, and leaves others what is theirs."""
        own, config = self._owners.get(work.owner) or _Owned(), self._config
        # Copies for a list were compared with the quota one by one.
        return (
            self._table.totals.room_for(size)
            and _is_within(config.staged_bytes_max, own.size, self._all.size, size, administers)
            and _is_within(
                config.staged_memory_bytes_max,
                own.memory_bytes,
                self._all.memory_bytes,
                size,
                administers,
            )
        )

    def refusal(self, work: Transaction, *, administers: bool) -> InsufficientResources:
        """Return why there is no room, and what to do."""
        own, config = self._owners.get(work.owner) or _Owned(), self._config
        size_max, memory_max = config.staged_bytes_max, config.staged_memory_bytes_max
        if not administers:
            size_max = share_of(size_max, self._all.size - own.size)
            memory_max = share_of(memory_max, self._all.memory_bytes - own.memory_bytes)
        return InsufficientResources(
            f"transactions wait with {self._all.size} bytes to send, {own.size} of them yours, and "
            f"you may have {size_max}, and {memory_max} of them before they are prepared: commit "
            "or abort some, or send less in one"
        )

    def add(self, work: Transaction, queue: int, size: int) -> None:
        """Count what a transaction will put into a queue."""
        counted = self._counted.get(work.number)
        if counted is None:
            counted = self._counted[work.number] = _Counted(work.owner)
        counted.by_queue[queue] = counted.by_queue.get(queue, 0) + size
        memory_bytes = 0 if work.aside else size
        counted.memory_bytes += memory_bytes
        self._account(queue, size)
        self._share(counted.owner, size, memory_bytes)

    def drop(self, work: Transaction) -> None:
        """Count nothing of a transaction: it puts what it has into queues, or has ended."""
        counted = self._counted.pop(work.number, None)
        if counted is None:
            return
        for queue, size in counted.by_queue.items():
            self._account(queue, -size)
        self._share(counted.owner, -sum(counted.by_queue.values()), -counted.memory_bytes)

    def take_up(self, work: Transaction) -> None:
        """Count all that a transaction will send, as it is now."""
        self.drop(work)
        if work.aside:
            for run in work.aside:
                self.add(work, run.queue, run.size)
        else:
            for send in work.sends:
                self.add(work, send.queue, len(send.packet))

    def _account(self, queue: int, size: int) -> None:
        found = self._table.by_id(queue)
        if found is not None:
            found.whole.stage(size)
        self._table.totals.stage(size)

    def _share(self, owner: str, size: int, memory_bytes: int) -> None:
        self._all.add(size, memory_bytes)
        own = self._owners.setdefault(owner, _Owned())
        own.add(size, memory_bytes)
        if not own.size:
            del self._owners[owner]


def _is_within(most: int, own: int, everybodys: int, size: int, administers: bool) -> bool:
    if administers:
        return everybodys + size <= most
    return own + size <= share_of(most, everybodys - own)


def share_of(most: int, others: int) -> int:
    """Return how much of something one owner may have: a part of what the others have left."""
    return max(most - others, 0) // OWNER_SHARE_FACTOR
