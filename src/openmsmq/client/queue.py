"""A queue as an application holds it: its names, its open handles, its formatter.

A queue opens itself for what is asked of it, once for each access, and again on a new connection.
Opened with an access mode, it has that one handle only, as MSMQ has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeGuard

from openmsmq.api import messages as api
from openmsmq.api.messages import AnyReply, AnyRequest, Entry
from openmsmq.client.connections.engine import Keeper
from openmsmq.client.context import ClientContext
from openmsmq.client.formatters.base import Formatter
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder, format_name_of
from openmsmq.client.options import one_of
from openmsmq.client.steps import Steps, ask
from openmsmq.model.errors import StaleHandle, TransactionSequence
from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationRequest
from openmsmq.model.names import DistributionListFormatName, MultipleFormatName
from openmsmq.model.queue import AccessMode, ShareMode

LOCKED: Final = -2
"""Instead of a transaction: for whom locked messages are kept."""


class QueueHandle(Keeper):
    """What every verb of a queue works on. Threads may share it."""

    def __init__(
        self,
        context: ClientContext,
        name: str,
        formatter: Formatter,
        access: AccessMode | None = None,
        share: ShareMode = ShareMode.DENY_NONE,
    ) -> None:
        self.context = context
        """The client it belongs to."""
        self.name = name
        """The path name or format name under which it was opened."""
        self.formatter = formatter
        """What writes and reads bodies."""
        self._access = None if access is None else one_of(AccessMode, access, "access")
        self._share = one_of(ShareMode, share, "share")
        self._generation = 0
        self._handles: dict[AccessMode, int] = {}
        self._builder: PacketBuilder | None = None
        self._is_local = False
        self._subqueues: dict[str, QueueHandle] = {}
        self._kept: deque[tuple[tuple[int, int], Entry]] = deque()
        self._late_generation = 0
        self._late_count = 0
        self._locked: dict[int, tuple[int, int]] = {}

    @property
    def format_name(self) -> str:
        """Its format name, as other queue managers can use it too."""
        return str(format_name_of(self.name, self.context.manager_name))

    def handle(self, access: AccessMode) -> int | None:
        """Return the handle that is open for this access on the current connection, if any."""
        if self._generation != self.context.generation:
            return None
        if self._access is not None:
            access = self._access
        found = self._handles.get(access)
        if found is None and access is AccessMode.PEEK:
            found = self._handles.get(AccessMode.RECEIVE)
        return found

    def opening(self, access: AccessMode) -> Steps[int]:
        """Open the queue for an access."""
        access = self._access or access
        generation = self.context.generation
        opened = yield from ask(api.OpenQueue(self.name, access, self._share))
        if generation != self.context.generation:
            # Another thread has met a newer connection; on this one nothing works any more.
            return opened.handle
        if generation != self._generation:
            self._generation = generation
            self._handles = {}
            self._builder = None
        self._handles[access] = opened.handle
        if access is AccessMode.SEND and self._builder is None:
            self._builder = PacketBuilder(
                opened.direct_name,
                self.context.manager_name,
                opened.format_name,
                Guid(opened.owner),
            )
            self._is_local = opened.is_local
        return opened.handle

    def protecting(self, message: OutgoingMessage) -> Steps[Callable[[bytes], bytes] | None]:
        """Return what signs and encrypts packets as a message asks for; None if it does not."""
        if not message.is_protected:
            return None
        context = self.context
        # Loaded here, so that nobody pays for cryptography who does not use it.
        from openmsmq.client.messages.protection import Destination

        name = format_name_of(self.name, context.manager_name)
        destination = Destination(
            self.name,
            self.builder.destination_manager,
            self._is_local,
            name if isinstance(name, MultipleFormatName | DistributionListFormatName) else None,
        )
        protect = yield from context.protection.protecting(
            destination,
            context.manager,
            context.generation,
            message.certificate,
            one_of(AuthenticationRequest, message.signature, "signature"),
            encrypt=message.encrypt,
        )
        return protect

    def beside(self, suffix: str) -> QueueHandle:
        """Return a subqueue of it, always the same one, so that it is opened once."""
        found = self._subqueues.get(suffix)
        if found is None:
            found = QueueHandle(self.context, f"{self.name};{suffix}", self.formatter)
            self._subqueues[suffix] = found
        return found

    @property
    def builder(self) -> PacketBuilder:
        """What makes packets for it, once it is open."""
        return self._builder or PacketBuilder("", self.context.manager_name)

    def closed(self) -> list[int]:
        """Forget all handles; gives those that are open on the current connection."""
        handles, self._handles = list(self._handles.values()), {}
        if self._generation != self.context.generation:
            handles.clear()
        for subqueue in self._subqueues.values():
            handles += subqueue.closed()
        return handles

    def gave_up(self, request: AnyRequest) -> None:
        """Take note of a reader that has given up, and whose message may still come."""
        if _takes_messages(request):
            if self._late_generation != self.context.generation:
                self._late_generation = self.context.generation
                self._late_count = 0
            self._late_count += 1

    def keep(self, request: AnyRequest, reply: AnyReply) -> None:
        """Keep messages that were received after their reader had given up."""
        if not _takes_messages(request):
            return
        self._late_count -= 1
        if isinstance(reply, api.Entries):
            owner = self._owner(LOCKED if request.lock else request.transaction)
            self._kept.extend((owner, entry) for entry in reply.entries)
            if request.lock:
                self.locked(request.handle, [entry.lookup_id for entry in reply.entries])

    def take_kept(self, transaction: int) -> Entry | None:
        """Return a message kept for this transaction, for none, or for those who are `LOCKED`."""
        owner = self._owner(transaction)
        for kept in self._kept:
            if kept[0] == owner:
                self._kept.remove(kept)
                return kept[1]
        return None

    def _owner(self, transaction: int) -> tuple[int, int]:
        # Numbers of transactions are good for one connection only.
        return (self.context.generation, transaction) if transaction else (0, 0)

    def locked(self, handle: int, lookup_ids: list[int]) -> None:
        """Take note of messages that are locked, and of the handle that locks them."""
        place = self.context.generation, handle
        self._locked.update((lookup_id, place) for lookup_id in lookup_ids)

    def unlocking(self, lookup_id: int) -> int | None:
        """Return the handle that locks a message; None when its connection was lost with it."""
        found = self._locked.get(lookup_id)
        if found is None:
            raise TransactionSequence(f"lookup id {lookup_id} in {self.name} is not locked")
        return found[1] if found[0] == self.context.generation else None

    def unlocked(self, lookup_id: int) -> None:
        """Forget a lock that has ended."""
        self._locked.pop(lookup_id, None)

    @property
    def has_late(self) -> bool:
        """Whether there are, or may be soon, messages for a reader who has given up."""
        return bool(self._kept or self._late_count)

    def is_settled(self) -> bool:
        """Whether all who gave up have had their answers, or lost them with their connection."""
        return not self._late_count or self._late_generation != self.context.generation


def _takes_messages(request: AnyRequest) -> TypeGuard[api.Receive | api.Seek | api.Find]:
    return isinstance(request, api.Receive | api.Seek | api.Find) and not request.peek


class CursorHandle(Keeper):
    """A place in a queue. It belongs to one connection and is stale on the next."""

    def __init__(self, queue: QueueHandle, access: AccessMode) -> None:
        self.queue = queue
        """The queue it walks through."""
        self._access = access
        self._generation = 0
        self._numbers: tuple[int, int] | None = None
        self.started = False
        """Whether it has read its first message."""

    def numbers(self) -> Steps[tuple[int, int]]:
        """Return the handle of the queue and the number of the cursor, which is made if need be."""
        generation = self.queue.context.generation
        if self._numbers is not None:
            if self._generation != generation:
                raise StaleHandle(
                    f"the connection was lost, and with it a cursor of {self.queue.name}: make "
                    "another one"
                )
            return self._numbers
        handle = self.queue.handle(self._access) or (yield from self.queue.opening(self._access))
        created = yield from ask(api.CreateCursor(handle))
        self._generation = generation
        self._numbers = handle, created.cursor
        return self._numbers

    def closed(self) -> int | None:
        """Forget the cursor; gives its number when it is open on the current connection."""
        numbers, self._numbers = self._numbers, None
        if numbers is None or self._generation != self.queue.context.generation:
            return None
        return numbers[1]

    def gave_up(self, request: AnyRequest) -> None:
        """Let the queue take note of it."""
        self.queue.gave_up(request)

    def keep(self, request: AnyRequest, reply: AnyReply) -> None:
        """Let the queue keep the messages."""
        self.queue.keep(request, reply)
