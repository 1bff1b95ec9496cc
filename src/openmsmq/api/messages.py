"""Requests and replies of the application interface.

A connection carries calls and answers in any order; each answer names its call, so an application
may have many under way. Messages travel as MSMQ packets, encoded and decoded by the application's
side: the queue manager only fills in who sent it, when, and under which number.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

PROTOCOL_VERSION: Final = 1

OWN_TRANSACTION: Final = -1
"""In a `Send`: the packets are a transaction of their own, committed with the call."""

_ARRIVAL_MASK: Final = (1 << 56) - 1


class Request(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Something an application asks for."""


class Reply(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What the queue manager answers."""


# Connection.


class Hello(Request, frozen=True, tag="hello"):
    """Opens every connection. `token` is what the queue manager's operator gave out."""

    version: int = PROTOCOL_VERSION
    token: str = ""


class Welcome(Reply, frozen=True, tag="welcome"):
    """The connection is open; this is who answers."""

    version: int
    software: str
    manager_name: str
    manager: bytes


class Failed(Reply, frozen=True, tag="failed"):
    """The call was refused or went wrong; nothing of it took effect."""

    code: int
    """The MQ_ERROR code."""
    detail: str


class Done(Reply, frozen=True, tag="done"):
    """The call took effect and has nothing more to say."""


# Queues.


class CreateQueue(Request, frozen=True, tag="create-queue"):
    """Create a queue; `path` is a path name such as `private$\\orders`."""

    path: str
    transactional: bool = False
    journaling: bool = False
    quota_kb: int | None = None
    journal_quota_kb: int | None = None
    label: str = ""
    authentication_required: bool = False
    privacy: int = 1


class ChangeQueue(Request, frozen=True, tag="change-queue"):
    """Change properties of a queue; what is None stays as it is."""

    name: str
    label: str | None = None
    journaling: bool | None = None
    quota_kb: int | None = None
    journal_quota_kb: int | None = None
    authentication_required: bool | None = None
    privacy: int | None = None


class DeleteQueue(Request, frozen=True, tag="delete-queue"):
    """Delete a queue with everything in it."""

    name: str


class GetQueue(Request, frozen=True, tag="get-queue"):
    """Ask for one queue, by path name or format name."""

    name: str


class ListQueues(Request, frozen=True, tag="list-queues"):
    """Ask for all queues; journals, subqueues and system queues when wanted."""

    everything: bool = False


class QueueStatus(msgspec.Struct, frozen=True, array_like=True):
    """A queue as its manager sees it now."""

    path_name: str
    format_name: str
    identifier: bytes
    transactional: bool
    journaling: bool
    quota_kb: int
    journal_quota_kb: int
    label: str
    authentication_required: bool
    privacy: int
    message_count: int
    message_bytes: int
    journal_message_count: int
    journal_message_bytes: int
    created_time_s: int
    modified_time_s: int
    open_count: int
    waiting_count: int
    last_arrival_number: int


class Queues(Reply, frozen=True, tag="queues"):
    """The queues asked for."""

    queues: list[QueueStatus]


class OpenQueue(Request, frozen=True, tag="open-queue"):
    """Open a queue. `access` and `share` are `AccessMode` and `ShareMode`."""

    name: str
    access: int
    share: int = 0


class Opened(Reply, frozen=True, tag="opened"):
    """The queue is open under this handle, until it or the connection is closed."""

    handle: int
    path_name: str
    format_name: str
    direct_name: str
    """What a sender writes as the destination of its packets: a direct name without DIRECT=."""
    transactional: bool


class CloseQueue(Request, frozen=True, tag="close-queue"):
    """Give a handle back; waiting reads of it are cancelled, its cursors closed."""

    handle: int


# Messages.


class Send(Request, frozen=True, tag="send"):
    """Put packets into a queue, all or none; in `transaction` they appear when it commits.

    `transaction` may be `OWN_TRANSACTION`.
    """

    handle: int
    packets: list[bytes]
    transaction: int = 0


class Sent(Reply, frozen=True, tag="sent"):
    """The numbers under which the packets are known, and when they were sent."""

    numbers: list[int]
    sent_time_s: int


class Receive(Request, frozen=True, tag="receive"):
    """Take up to `count` messages from the front, waiting up to `timeout_ms` for the first.

    With `peek` they stay. With a `cursor` it is the message at the cursor, and `next` moves the
    cursor on first. A `timeout_ms` of None waits for ever.
    """

    handle: int
    count: int = 1
    timeout_ms: int | None = 0
    peek: bool = False
    cursor: int = 0
    next: bool = False
    transaction: int = 0
    bytes_max: int = 1 << 20


class Seek(Request, frozen=True, tag="seek"):
    """Take or peek the message at a lookup identifier, or beside it; never waits.

    `action` is the value of a `SeekAction`.
    """

    handle: int
    action: str
    lookup_id: int = 0
    peek: bool = False
    transaction: int = 0


class Find(Request, frozen=True, tag="find"):
    """Take or peek the first message with this identifier or correlation identifier."""

    handle: int
    message_id: bytes | None = None
    correlation_id: bytes | None = None
    timeout_ms: int | None = 0
    peek: bool = False
    transaction: int = 0


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message in its place in a queue."""

    lookup_id: int
    arrived_time_s: int
    abort_count: int
    move_count: int
    packet: bytes

    @property
    def arrival_number(self) -> int:
        """When it became available, as a number: what `FetchRange` goes by."""
        return self.lookup_id & _ARRIVAL_MASK


class Entries(Reply, frozen=True, tag="entries"):
    """The messages asked for, in their order."""

    entries: list[Entry]


class FetchRange(Request, frozen=True, tag="fetch-range"):
    """Peek messages by arrival number, `start` <= number < `stop`, lowest first.

    Arrival numbers are given when a message becomes available, so none appears below one that
    was already seen: they are what a stream of messages is read by.
    """

    handle: int
    start: int
    stop: int
    count: int = 1000
    bytes_max: int = 4 << 20


class RemoveRange(Request, frozen=True, tag="remove-range"):
    """Take out messages by arrival number, as if received; those already gone do not matter."""

    handle: int
    start: int
    stop: int


class Removed(Reply, frozen=True, tag="removed"):
    """How many messages were taken out."""

    count: int


class CreateCursor(Request, frozen=True, tag="create-cursor"):
    """Make a cursor on an open queue."""

    handle: int


class CursorCreated(Reply, frozen=True, tag="cursor-created"):
    """The cursor, good until it, its queue or the connection is closed."""

    cursor: int


class CloseCursor(Request, frozen=True, tag="close-cursor"):
    """Give a cursor back."""

    cursor: int


class Cancel(Request, frozen=True, tag="cancel"):
    """Cancel a read that waits; the read itself then fails as cancelled."""

    call: int


class Purge(Request, frozen=True, tag="purge"):
    """Delete all messages of an open queue."""

    handle: int


class Move(Request, frozen=True, tag="move"):
    """Move a message between a queue and its subqueues; `target` is a handle open for moving."""

    handle: int
    lookup_id: int
    target: int
    transaction: int = 0


# Transactions.


class Begin(Request, frozen=True, tag="begin"):
    """Begin a transaction; it ends with the connection if it was not prepared."""


class Begun(Reply, frozen=True, tag="begun"):
    """The number by which this connection names the transaction, and its lasting name."""

    transaction: int
    unit_of_work: bytes


class Prepare(Request, frozen=True, tag="prepare"):
    """Make a transaction survive everything until a coordinator commits or aborts it."""

    transaction: int


class Commit(Request, frozen=True, tag="commit"):
    """Make everything in the transaction take effect, at once."""

    transaction: int


class Abort(Request, frozen=True, tag="abort"):
    """Undo everything in the transaction."""

    transaction: int


class ListTransactions(Request, frozen=True, tag="list-transactions"):
    """Ask for the prepared transactions that wait for their coordinator's word."""


class InDoubt(msgspec.Struct, frozen=True, array_like=True):
    """A prepared transaction."""

    unit_of_work: bytes
    prepared_time_s: int
    sent_count: int
    received_count: int


class Transactions(Reply, frozen=True, tag="transactions"):
    """The prepared transactions."""

    transactions: list[InDoubt]


class Resolve(Request, frozen=True, tag="resolve"):
    """Commit or abort a prepared transaction by its lasting name."""

    unit_of_work: bytes
    commit: bool


# The queue manager.


class GetStatus(Request, frozen=True, tag="get-status"):
    """Ask how the queue manager is."""


class Status(Reply, frozen=True, tag="status"):
    """How the queue manager is."""

    manager_name: str
    manager: bytes
    software: str
    queue_count: int
    message_count: int
    message_bytes: int
    connection_count: int
    transaction_count: int
    started_time_s: int
    now_s: int


AnyRequest: TypeAlias = (
    Hello
    | CreateQueue
    | ChangeQueue
    | DeleteQueue
    | GetQueue
    | ListQueues
    | OpenQueue
    | CloseQueue
    | Send
    | Receive
    | Seek
    | Find
    | FetchRange
    | RemoveRange
    | CreateCursor
    | CloseCursor
    | Cancel
    | Purge
    | Move
    | Begin
    | Prepare
    | Commit
    | Abort
    | ListTransactions
    | Resolve
    | GetStatus
)
AnyReply: TypeAlias = (
    Welcome
    | Failed
    | Done
    | Queues
    | Opened
    | Sent
    | Entries
    | Removed
    | CursorCreated
    | Begun
    | Transactions
    | Status
)


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A request under way; `id` is the caller's, and unique among its calls under way."""

    id: int
    request: AnyRequest


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The end of a call."""

    id: int
    reply: AnyReply
