"""Requests and replies of the application interface that are about queues."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Name, Number, Octets, Reply, Request, Several, Text
from openmsmq.api.facts import OWN, SHOW, Check, Facts, Need, Repeats, on_manager, on_queue
from openmsmq.model.access import ManagerAccess, QueueAccess
from openmsmq.model.limits import QUEUE_PAGE_DEFAULT_COUNT


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
    kind: str = "queue"
    """The value of a `QueueRole`."""
    in_count: int = 0
    """Messages that came in since the start of the queue manager, moved ones included."""
    in_bytes: int = 0
    out_count: int = 0
    """Messages that were received, or that another queue manager has now, since the start."""
    out_bytes: int = 0
    expired_count: int = 0
    """Messages whose time was up, since the start."""
    purged_count: int = 0
    """Messages that were purged, or deleted with their queue, since the start."""
    moved_count: int = 0
    """Messages that were moved elsewhere, since the start."""
    refused_count: int = 0
    """Messages that were given up for another reason, since the start."""
    oldest_time_s: int = 0
    """When the oldest message came that is there; 0 if there is none."""
    multicast_address: str = ""
    """What is sent to this address and port comes into it; empty for none."""


class Queues(Reply, frozen=True, tag="queues"):
    """The queues asked for."""

    queues: list[QueueStatus]


class CreateQueue(Request[Queues], frozen=True, tag="create-queue"):
    r"""Create a queue; `path` is a path name such as `private$\orders`, or `.\orders` if public."""

    facts = Facts(on_manager(ManagerAccess.CREATE_QUEUE), Repeats.NEVER, is_audited=True)

    path: Name
    transactional: bool = False
    journaling: bool = False
    quota_kb: Number | None = None
    journal_quota_kb: Number | None = None
    label: Text = ""
    authentication_required: bool = False
    privacy: Number = 1
    service_type: Octets = bytes(16)
    """What kind of service the queue stands for, as others look for it. [MQMQ 2.3.1.2]"""
    base_priority: Number = 0
    """Added to the priority of messages on their way; public queues only."""
    security: Octets = b""
    """Its security descriptor, so that it is never open to others than these; without an owner it
    belongs to who creates it, and an empty one is that of a new queue."""
    multicast_address: Text = ""
    """Address and port, such as `234.1.1.1:8001`, from which it gets messages; empty for none."""


class ChangeQueue(Request[Queues], frozen=True, tag="change-queue"):
    """Change properties of a queue; what is None stays as it is."""

    facts = Facts(on_queue(QueueAccess.SET_PROPERTIES), Repeats.NEVER, is_audited=True)

    name: Name
    label: Text | None = None
    journaling: bool | None = None
    quota_kb: Number | None = None
    journal_quota_kb: Number | None = None
    authentication_required: bool | None = None
    privacy: Number | None = None
    service_type: Octets | None = None
    base_priority: Number | None = None
    multicast_address: Text | None = None
    """Empty for none."""


class DeleteQueue(Request[Done], frozen=True, tag="delete-queue"):
    """Delete a queue with everything in it."""

    facts = Facts(on_queue(QueueAccess.DELETE_QUEUE), Repeats.NEVER, is_audited=True)

    name: Name

    @property
    def patience_ms(self) -> int | None:
        """There may be very many messages: it takes as long as it takes."""
        return None


class GetQueue(Request[Queues], frozen=True, tag="get-queue"):
    """Ask for one queue, by path name or format name."""

    facts = Facts(on_queue(QueueAccess.GET_PROPERTIES), Repeats.ALWAYS, asks_directory=True)

    name: Name


class ListQueues(Request[Queues], frozen=True, tag="list-queues"):
    """Ask for all queues; journals, subqueues and system queues when wanted."""

    facts = Facts(SHOW, Repeats.ALWAYS, is_heavy=True)

    everything: bool = False


class QueueTotals(msgspec.Struct, frozen=True, array_like=True):
    """What several queues hold, and what came and went since the start of the queue manager."""

    message_count: int = 0
    message_bytes: int = 0
    in_count: int = 0
    in_bytes: int = 0
    out_count: int = 0
    out_bytes: int = 0
    expired_count: int = 0
    purged_count: int = 0


class QueuePage(Reply, frozen=True, tag="queue-page"):
    """Some of the queues that fit, in the order asked for."""

    queues: list[QueueStatus]
    total_count: int
    """How many queues fit."""
    totals: QueueTotals = QueueTotals()
    """What all queues that fit hold together, if that was asked for."""
    now_s: int = 0
    """What the clock of the queue manager says, for ages."""


class PageQueues(Request[QueuePage], frozen=True, tag="page-queues"):
    """Ask for one page of the queues whose names fit `filter`, of these kinds.

    A `filter` with `*`, `?` or `[` is a pattern for the whole path name; any other is a part of it.
    `sort` is the value of a `QueueOrder`; queues that are alike in it stand by name.
    """

    facts = Facts(SHOW, Repeats.ALWAYS, is_heavy=True)

    filter: Text = ""
    kinds: Several[Text] = msgspec.field(default_factory=list)
    """Values of `QueueRole`; empty for applications' queues alone."""
    sort: Text = "name"
    descending: bool = False
    offset: Number = 0
    limit: Number = QUEUE_PAGE_DEFAULT_COUNT
    with_totals: bool = False
    """Whether to add up what all queues that fit hold."""


class Names(Reply, frozen=True, tag="names"):
    """The names of a queue. Of a queue elsewhere, `private_name` is empty."""

    path_name: str
    format_name: str
    private_name: str
    """The format name that goes by number: `PRIVATE=`, or `MACHINE=` for a system queue."""


class GetNames(Request[Names], frozen=True, tag="get-names"):
    """Ask for the other names of a queue, by path name or format name."""

    facts = Facts(SHOW, Repeats.ALWAYS, asks_directory=True)

    name: Name


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

    name: Name
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
    """Give a cursor back; reads that wait by it are cancelled."""

    facts = Facts(OWN, Repeats.ALWAYS, ends_waits=True)

    cursor: Number
