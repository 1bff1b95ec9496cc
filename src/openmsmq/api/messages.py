"""Requests and replies of the application interface.

A connection carries calls and answers in any order; each answer names its call, so an application
may have many under way. Messages travel as MSMQ packets, encoded and decoded by the application's
side: the queue manager only fills in who sent it, when, and under which number.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from openmsmq.api.base import Number as Number
from openmsmq.api.base import Reply as Reply
from openmsmq.api.base import Request as Request
from openmsmq.api.bulk_messages import PLACE_FORMAT as PLACE_FORMAT
from openmsmq.api.bulk_messages import Complete as Complete
from openmsmq.api.bulk_messages import Completed as Completed
from openmsmq.api.bulk_messages import Epoch as Epoch
from openmsmq.api.bulk_messages import Epochs as Epochs
from openmsmq.api.bulk_messages import FetchPackets as FetchPackets
from openmsmq.api.bulk_messages import FetchRange as FetchRange
from openmsmq.api.bulk_messages import GetEpochs as GetEpochs
from openmsmq.api.bulk_messages import Measure as Measure
from openmsmq.api.bulk_messages import Measured as Measured
from openmsmq.api.bulk_messages import Packets as Packets
from openmsmq.api.bulk_messages import Part as Part
from openmsmq.api.bulk_messages import Release as Release
from openmsmq.api.bulk_messages import Removed as Removed
from openmsmq.api.bulk_messages import RemoveRange as RemoveRange
from openmsmq.api.bulk_messages import Reserve as Reserve
from openmsmq.api.bulk_messages import Reserved as Reserved
from openmsmq.api.bulk_messages import Survey as Survey
from openmsmq.api.bulk_messages import Surveyed as Surveyed
from openmsmq.api.directory_messages import ChangeDirectory as ChangeDirectory
from openmsmq.api.directory_messages import DirectoryChanged as DirectoryChanged
from openmsmq.api.directory_messages import DirectoryPart as DirectoryPart
from openmsmq.api.directory_messages import FindQueues as FindQueues
from openmsmq.api.directory_messages import FoundQueues as FoundQueues
from openmsmq.api.directory_messages import ObjectRow as ObjectRow
from openmsmq.api.directory_messages import ReadDirectory as ReadDirectory
from openmsmq.api.directory_messages import RefreshDirectory as RefreshDirectory
from openmsmq.api.queue_messages import CallerStatus as CallerStatus
from openmsmq.api.queue_messages import ChangeQueue as ChangeQueue
from openmsmq.api.queue_messages import CloseQueue as CloseQueue
from openmsmq.api.queue_messages import CreateQueue as CreateQueue
from openmsmq.api.queue_messages import DeleteQueue as DeleteQueue
from openmsmq.api.queue_messages import GetCaller as GetCaller
from openmsmq.api.queue_messages import GetNames as GetNames
from openmsmq.api.queue_messages import GetQueue as GetQueue
from openmsmq.api.queue_messages import GetSecurity as GetSecurity
from openmsmq.api.queue_messages import ListQueues as ListQueues
from openmsmq.api.queue_messages import Names as Names
from openmsmq.api.queue_messages import Opened as Opened
from openmsmq.api.queue_messages import OpenQueue as OpenQueue
from openmsmq.api.queue_messages import Queues as Queues
from openmsmq.api.queue_messages import QueueStatus as QueueStatus
from openmsmq.api.queue_messages import Security as Security
from openmsmq.api.queue_messages import SetSecurity as SetSecurity
from openmsmq.api.queue_messages import TakeOwnership as TakeOwnership
from openmsmq.api.security_messages import Certificates as Certificates
from openmsmq.api.security_messages import EncryptionKey as EncryptionKey
from openmsmq.api.security_messages import EncryptionKeys as EncryptionKeys
from openmsmq.api.security_messages import GetEncryptionKeys as GetEncryptionKeys
from openmsmq.api.security_messages import ListCertificates as ListCertificates
from openmsmq.api.security_messages import RegisterCertificate as RegisterCertificate
from openmsmq.api.security_messages import RemoveCertificate as RemoveCertificate
from openmsmq.api.security_messages import RenewKeys as RenewKeys
from openmsmq.api.transaction_messages import Abort as Abort
from openmsmq.api.transaction_messages import AbortBatch as AbortBatch
from openmsmq.api.transaction_messages import BatchCommitted as BatchCommitted
from openmsmq.api.transaction_messages import Begin as Begin
from openmsmq.api.transaction_messages import Begun as Begun
from openmsmq.api.transaction_messages import Commit as Commit
from openmsmq.api.transaction_messages import CommitBatch as CommitBatch
from openmsmq.api.transaction_messages import ForgetQuery as ForgetQuery
from openmsmq.api.transaction_messages import GetBatch as GetBatch
from openmsmq.api.transaction_messages import InDoubt as InDoubt
from openmsmq.api.transaction_messages import LastBatch as LastBatch
from openmsmq.api.transaction_messages import ListQueries as ListQueries
from openmsmq.api.transaction_messages import ListTransactions as ListTransactions
from openmsmq.api.transaction_messages import Prepare as Prepare
from openmsmq.api.transaction_messages import Queries as Queries
from openmsmq.api.transaction_messages import QueryStatus as QueryStatus
from openmsmq.api.transaction_messages import Resolve as Resolve
from openmsmq.api.transaction_messages import Transactions as Transactions
from openmsmq.model.limits import UNLIMITED_KB

PROTOCOL_VERSION: Final = 1

OWN_TRANSACTION: Final = -1
"""In a `Send`: the packets are a transaction of their own, committed with the call."""

ARRIVAL_MASK: Final = (1 << 56) - 1


# Connection.


class Hello(Request, frozen=True, tag="hello"):
    """Opens every connection. `token` is what the queue manager's operator gave out."""

    version: Number = PROTOCOL_VERSION
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


# Messages.


class Send(Request, frozen=True, tag="send"):
    """Put packets into a queue, all or none; in `transaction` they appear when it commits.

    `transaction` may be `OWN_TRANSACTION`.
    """

    handle: Number
    packets: list[bytes]
    transaction: Number = 0


class Sent(Reply, frozen=True, tag="sent"):
    """The numbers under which the packets are known, and when they were sent."""

    numbers: list[int]
    sent_time_s: int


class Receive(Request, frozen=True, tag="receive"):
    """Take up to `count` messages from the front, waiting up to `timeout_ms` for the first.

    With `peek` they stay. With a `cursor` it is the message at the cursor, and `next` moves the
    cursor on first. A `timeout_ms` of None waits for ever. With `lock` they stay too, but nobody
    else gets them before an `EndReceive`. A body above `body_max_bytes` is an error, and its
    message stays.
    """

    handle: Number
    count: Number = 1
    timeout_ms: Number | None = 0
    peek: bool = False
    cursor: Number = 0
    next: bool = False
    transaction: Number = 0
    bytes_max: Number = 1 << 20
    body_max_bytes: Number | None = None
    lock: bool = False


class Seek(Request, frozen=True, tag="seek"):
    """Take or peek the message at a lookup identifier, or beside it; never waits.

    `action` is the value of a `SeekAction`. With `allow_peek`, others may look at a message that
    a transaction takes until that commits. The rest is as in `Receive`.
    """

    handle: Number
    action: str
    lookup_id: Number = 0
    peek: bool = False
    transaction: Number = 0
    allow_peek: bool = False
    body_max_bytes: Number | None = None
    lock: bool = False


class Find(Request, frozen=True, tag="find"):
    """Take or peek the first message with this identifier or correlation identifier."""

    handle: Number
    message_id: bytes | None = None
    correlation_id: bytes | None = None
    timeout_ms: Number | None = 0
    peek: bool = False
    transaction: Number = 0
    body_max_bytes: Number | None = None
    lock: bool = False


class EndReceive(Request, frozen=True, tag="end-receive"):
    """End a read with `lock`: take the message out, or give it back to the other readers."""

    handle: Number
    lookup_id: Number
    remove: bool


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message in its place in a queue."""

    lookup_id: int
    arrived_time_s: int
    abort_count: int
    move_count: int
    packet: bytes
    moved_time_s: int = 0
    """When it was last moved; 0 if never."""

    @property
    def arrival_number(self) -> int:
        """When it became available, as a number: what `FetchRange` goes by."""
        return self.lookup_id & ARRIVAL_MASK


class Entries(Reply, frozen=True, tag="entries"):
    """The messages asked for, in their order."""

    entries: list[Entry]


class CreateCursor(Request, frozen=True, tag="create-cursor"):
    """Make a cursor on an open queue."""

    handle: Number


class CursorCreated(Reply, frozen=True, tag="cursor-created"):
    """The cursor, good until it, its queue or the connection is closed."""

    cursor: int


class CloseCursor(Request, frozen=True, tag="close-cursor"):
    """Give a cursor back."""

    cursor: Number


class Cancel(Request, frozen=True, tag="cancel"):
    """Cancel a read that waits; the read itself then fails as cancelled."""

    call: Number


class Purge(Request, frozen=True, tag="purge"):
    """Delete all messages of an open queue."""

    handle: Number


class Move(Request, frozen=True, tag="move"):
    """Move a message between a queue and its subqueues; `target` is a handle open for moving."""

    handle: Number
    lookup_id: Number
    target: Number
    transaction: Number = 0


# Outgoing queues.


class ListOutgoing(Request, frozen=True, tag="list-outgoing"):
    """Ask for all outgoing queues, or for the one that leads to `name`."""

    name: str = ""


class ConnectionAttempt(msgspec.Struct, frozen=True, array_like=True):
    """How one attempt to reach a neighbour went."""

    status: int
    """A `ConnectionStatus`."""
    time_s: int
    addresses: list[str]


class OutgoingStatus(msgspec.Struct, frozen=True):
    """How far the messages for a queue of another computer have come. [MQMQ 2.3.12]"""

    format_name: str
    state: str
    explanation: str
    """Why the first message has not left yet, in one sentence."""
    paused: bool
    message_count: int
    message_bytes: int
    unread_count: int
    """Messages that arrived and of which the end is still to be heard."""
    next_hops: list[str]
    address: str
    """The address of the open session, if there is one."""
    in_flight_count: int
    sequence: int
    """The transactional sequence in use, as one number; 0 before the first."""
    next_number: int
    unacknowledged_count: int
    last_acknowledged_number: int
    last_ack_time_s: int
    resend_count: int
    resend_time_s: int
    history: list[ConnectionAttempt]


class OutgoingQueues(Reply, frozen=True, tag="outgoing-queues"):
    """Outgoing queues."""

    queues: list[OutgoingStatus]


class ControlOutgoing(Request, frozen=True, tag="control-outgoing"):
    """Pause an outgoing queue, resume it, or send again what is not acknowledged."""

    name: str
    action: str
    """`pause`, `resume` or `resend`."""


class SetOnline(Request, frozen=True, tag="set-online"):
    """Take the queue manager offline, so that it neither sends nor accepts, or back online."""

    online: bool


# The queue manager.


class GetStatus(Request, frozen=True, tag="get-status"):
    """Ask how the queue manager is."""


class NoticeCount(msgspec.Struct, frozen=True, array_like=True):
    """How often something happened since the start that an operator should hear of."""

    event: str
    """The name of the event in the log."""
    reason: str
    count: int


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
    online: bool = True
    outgoing_count: int = 0
    """Outgoing queues that have messages."""
    directory: str = "none"
    """The value of a `DirectoryRole`."""
    directory_problem: str = ""
    """Why the directory could not be asked the last time; empty while all is well."""
    directory_number: int = 0
    """The last change of the directory that is known here."""
    quota_kb: int = UNLIMITED_KB
    """Room for the messages of all queues."""
    store_problem: str = ""
    """Why the store took nothing the last time that it was asked to; empty while all is well."""
    store_problem_since_s: int = 0
    express_memory_kb: int = UNLIMITED_KB
    """Memory for express messages."""
    express_memory_bytes: int = 0
    """What express messages take of it."""
    notices: list[NoticeCount] = msgspec.field(default_factory=list)
    """What an operator should hear of since the start: what happened, why, and how often."""


AnyRequest: TypeAlias = (
    Hello
    | CreateQueue
    | ChangeQueue
    | DeleteQueue
    | GetQueue
    | GetNames
    | ListQueues
    | GetSecurity
    | SetSecurity
    | TakeOwnership
    | OpenQueue
    | CloseQueue
    | Send
    | Receive
    | Seek
    | Find
    | EndReceive
    | FetchRange
    | FetchPackets
    | RemoveRange
    | Reserve
    | Measure
    | Survey
    | GetEpochs
    | Complete
    | Release
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
    | GetBatch
    | ListQueries
    | CommitBatch
    | AbortBatch
    | ForgetQuery
    | ListOutgoing
    | ControlOutgoing
    | SetOnline
    | ReadDirectory
    | ChangeDirectory
    | RefreshDirectory
    | FindQueues
    | GetEncryptionKeys
    | RenewKeys
    | RegisterCertificate
    | RemoveCertificate
    | ListCertificates
    | GetStatus
    | GetCaller
)
AnyReply: TypeAlias = (
    Welcome
    | Failed
    | Done
    | Queues
    | Names
    | Security
    | CallerStatus
    | Opened
    | Sent
    | Entries
    | Packets
    | Removed
    | Reserved
    | Measured
    | Surveyed
    | Epochs
    | Completed
    | CursorCreated
    | Begun
    | Transactions
    | LastBatch
    | Queries
    | BatchCommitted
    | OutgoingQueues
    | DirectoryPart
    | DirectoryChanged
    | FoundQueues
    | EncryptionKeys
    | Certificates
    | Status
)


class Call(msgspec.Struct, frozen=True, array_like=True):
    """A request under way; `id` is the caller's, and unique among its calls under way."""

    id: Number
    request: AnyRequest


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The end of a call."""

    id: int
    reply: AnyReply
