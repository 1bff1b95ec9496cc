"""Requests and replies of the application interface that are about queues."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Number, Reply, Request
from openmsmq.api.facts import OWN, SHOW, Check, Facts, Need, Repeats, on_manager, on_queue
from openmsmq.model.access import ManagerAccess, QueueAccess


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
    reserved_for: str = ""
    """The reader for which messages are reserved, if any are."""
    reserved_start: int = 0
    reserved_stop: int = 0
    service_type: bytes = bytes(16)
    base_priority: int = 0
    is_public: bool = False


class Queues(Reply, frozen=True, tag="queues"):
    """The queues asked for."""

    queues: list[QueueStatus]


class CreateQueue(Request[Queues], frozen=True, tag="create-queue"):
    r"""Create a queue; `path` is a path name such as `private$\orders`, or `.\orders` if public."""

    facts = Facts(on_manager(ManagerAccess.CREATE_QUEUE), Repeats.NEVER, is_audited=True)

    path: str
    transactional: bool = False
    journaling: bool = False
    quota_kb: Number | None = None
    journal_quota_kb: Number | None = None
    label: str = ""
    authentication_required: bool = False
    privacy: Number = 1
    service_type: bytes = bytes(16)
    """What kind of service the queue stands for, as others look for it. [MQMQ 2.3.1.2]"""
    base_priority: Number = 0
    """Added to the priority of messages on their way; public queues only."""


class ChangeQueue(Request[Queues], frozen=True, tag="change-queue"):
    """Change properties of a queue; what is None stays as it is."""

    facts = Facts(on_queue(QueueAccess.SET_PROPERTIES), Repeats.NEVER, is_audited=True)

    name: str
    label: str | None = None
    journaling: bool | None = None
    quota_kb: Number | None = None
    journal_quota_kb: Number | None = None
    authentication_required: bool | None = None
    privacy: Number | None = None
    service_type: bytes | None = None
    base_priority: Number | None = None


class DeleteQueue(Request[Done], frozen=True, tag="delete-queue"):
    """Delete a queue with everything in it."""

    facts = Facts(on_queue(QueueAccess.DELETE_QUEUE), Repeats.NEVER, is_audited=True)

    name: str

    @property
    def patience_ms(self) -> int | None:
        """There may be very many messages: it takes as long as it takes."""
        return None


class GetQueue(Request[Queues], frozen=True, tag="get-queue"):
    """Ask for one queue, by path name or format name."""

    facts = Facts(on_queue(QueueAccess.GET_PROPERTIES), Repeats.ALWAYS, asks_directory=True)

    name: str


class ListQueues(Request[Queues], frozen=True, tag="list-queues"):
    """Ask for all queues; journals, subqueues and system queues when wanted."""

    facts = Facts(SHOW, Repeats.ALWAYS, is_heavy=True)

    everything: bool = False


class Names(Reply, frozen=True, tag="names"):
    """The names of a queue. Of a queue elsewhere, `private_name` is empty."""

    path_name: str
    format_name: str
    private_name: str
    """The format name that goes by number: `PRIVATE=`, or `MACHINE=` for a system queue."""


class GetNames(Request[Names], frozen=True, tag="get-names"):
    """Ask for the other names of a queue, by path name or format name."""

    facts = Facts(SHOW, Repeats.ALWAYS, asks_directory=True)

    name: str


class Opened(Reply, frozen=True, tag="opened"):
    """The queue is open under this handle, until it or the connection is closed."""

    handle: int
    path_name: str
    format_name: str
    direct_name: str
    """What a sender writes as the destination of its packets: a direct name without DIRECT=."""
    transactional: bool
    owner: bytes = bytes(16)
    """The queue manager to which packets for a public queue are addressed."""
    is_local: bool = True
    """Whether messages stay on the computer of the queue manager."""


class OpenQueue(Request[Opened], frozen=True, tag="open-queue"):
    """Open a queue. `access` and `share` are `AccessMode` and `ShareMode`."""

    facts = Facts(Need(Check.OPEN), Repeats.ALWAYS, asks_directory=True)

    name: str
    access: Number
    share: Number = 0


class CloseQueue(Request[Done], frozen=True, tag="close-queue"):
    """Give a handle back; waiting reads of it are cancelled, its cursors closed."""

    facts = Facts(OWN, Repeats.ALWAYS, ends_waits=True)

    handle: Number


class CursorCreated(Reply, frozen=True, tag="cursor-created"):
    """The cursor, good until it, its queue or the connection is closed."""

    cursor: int


class CreateCursor(Request[CursorCreated], frozen=True, tag="create-cursor"):
    """Make a cursor on an open queue."""

    facts = Facts(OWN, Repeats.ALWAYS)

    handle: Number


class CloseCursor(Request[Done], frozen=True, tag="close-cursor"):
    """Give a cursor back."""

    facts = Facts(OWN, Repeats.ALWAYS)

    cursor: Number
