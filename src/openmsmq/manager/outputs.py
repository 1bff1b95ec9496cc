"""What a queue manager asks its driver to do."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from openmsmq.api.messages import (
    AnyReply,
    AnyRequest,
    GetConfiguration,
    OpenQueue,
    Reload,
    SetLogLevel,
)
from openmsmq.api.program import BackupPhase
from openmsmq.manager.notices import Notice
from openmsmq.model.directory import Change, Position
from openmsmq.model.errors import MsmqError
from openmsmq.protocol.posts import OutgoingPost, PostAnswer
from openmsmq.security.access.callers import Caller
from openmsmq.storage.port import Batch


class Persist(msgspec.Struct, frozen=True):
    """Make a batch durable, then call `persisted(ticket)`, or `persist_failed(ticket, …)`."""

    ticket: int
    batch: Batch


class Respond(msgspec.Struct, frozen=True):
    """Answer a call of a connection."""

    connection: int
    call: int
    reply: AnyReply


class EndConnection(msgspec.Struct, frozen=True):
    """Close the connection of an application after its answers, then call `connection_lost`."""

    connection: int
    reason: str


class Resolve(msgspec.Struct, frozen=True):
    """Look up the addresses of a host, then call `host_resolved`."""

    host: str


class Connect(msgspec.Struct, frozen=True):
    """Open a TCP connection, then call `session_connected` or `session_failed`."""

    session: int
    address: str


class SendBytes(msgspec.Struct, frozen=True):
    """Write to the connection of a session."""

    session: int
    data: bytes


class Disconnect(msgspec.Struct, frozen=True):
    """Close the connection of a session once everything given before is written.

    The driver tells nothing of the session any more.
    """

    session: int


class SendDatagram(msgspec.Struct, frozen=True):
    """Send a datagram to the ping port of an address, or answer one that came from a port."""

    address: str
    data: bytes
    port: int | None = None


class AskDirectory(msgspec.Struct, frozen=True):
    """Ask the directory for its changes, then call `directory_told` or `directory_failed`."""

    position: Position


class ChangeDirectory(msgspec.Struct, frozen=True):
    """Change the directory, then call `directory_changed` or `directory_refused`."""

    ticket: int
    changes: tuple[Change, ...]


class MakeKeys(msgspec.Struct, frozen=True):
    """Make new key pairs and keep them, then call `keys_told`."""


class BackUp(msgspec.Struct, frozen=True):
    """Back everything up into a new directory, and call `backup_told` whenever it goes on.

    There is one at a time, until `backup_told` says that it is over.
    """

    directory: str


class BackupProgress(msgspec.Struct, frozen=True):
    """How far a back-up is, as the driver tells it."""

    phase: BackupPhase
    copied_bytes: int = 0
    total_bytes: int = 0
    error: MsmqError | None = None
    """Why it failed."""


class AskProgram(msgspec.Struct, frozen=True):
    """Answer a call of a connection that is about the program, of which we know nothing."""

    connection: int
    call: int
    request: GetConfiguration | Reload | SetLogLevel


class OpenElsewhere(msgspec.Struct, frozen=True):
    """Open a queue of another computer for a connection, and answer the call.

    If that fails, call `elsewhere.failed`, too.
    """

    connection: int
    call: int
    handle: int
    request: OpenQueue
    caller: Caller


class AskElsewhere(msgspec.Struct, frozen=True):
    """Do something with a queue of another computer, and answer the call.

    `Cancel` is answered already, and may be about a call of which the driver knows nothing.
    """

    connection: int
    call: int
    handle: int
    request: AnyRequest
    cursor: int = 0
    """The number for a cursor that is to be made."""


class LeaveElsewhere(msgspec.Struct, frozen=True):
    """Close a queue of another computer; what is still asked of it ends."""

    connection: int
    handle: int


class SendMulticast(msgspec.Struct, frozen=True):
    """Send a payload to a multicast address; `multicast_left` tells what of it waits."""

    group: str
    payload: bytes


class ReadAuditLog(msgspec.Struct, frozen=True):
    """Read a page of the audit log, then call `audit_told`."""

    connection: int
    call: int
    before: str
    count: int
    filter: str


Output: TypeAlias = (
    Persist
    | Respond
    | EndConnection
    | Resolve
    | Connect
    | SendBytes
    | Disconnect
    | SendDatagram
    | AskDirectory
    | ChangeDirectory
    | MakeKeys
    | BackUp
    | AskProgram
    | OpenElsewhere
    | AskElsewhere
    | LeaveElsewhere
    | ReadAuditLog
    | OutgoingPost
    | PostAnswer
    | SendMulticast
    | Notice
)
