"""Requests and replies of the application interface that are about queues."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Number, Reply, Request


class CreateQueue(Request, frozen=True, tag="create-queue"):
    r"""Create a queue; `path` is a path name such as `private$\orders`, or `.\orders` if public."""

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


class ChangeQueue(Request, frozen=True, tag="change-queue"):
    """Change properties of a queue; what is None stays as it is."""

    name: str
    label: str | None = None
    journaling: bool | None = None
    quota_kb: Number | None = None
    journal_quota_kb: Number | None = None
    authentication_required: bool | None = None
    privacy: Number | None = None
    service_type: bytes | None = None
    base_priority: Number | None = None


class DeleteQueue(Request, frozen=True, tag="delete-queue"):
    """Delete a queue with everything in it."""

    name: str


class GetQueue(Request, frozen=True, tag="get-queue"):
    """Ask for one queue, by path name or format name."""

    name: str


class GetNames(Request, frozen=True, tag="get-names"):
    """Ask for the other names of a queue, by path name or format name."""

    name: str


class Names(Reply, frozen=True, tag="names"):
    """The names of a queue. Of a queue elsewhere, `private_name` is empty."""

    path_name: str
    format_name: str
    private_name: str
    """The format name that goes by number: `PRIVATE=`, or `MACHINE=` for a system queue."""


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


class OpenQueue(Request, frozen=True, tag="open-queue"):
    """Open a queue. `access` and `share` are `AccessMode` and `ShareMode`."""

    name: str
    access: Number
    share: Number = 0


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


class CloseQueue(Request, frozen=True, tag="close-queue"):
    """Give a handle back; waiting reads of it are cancelled, its cursors closed."""

    handle: Number


# Who may do what.


class GetSecurity(Request, frozen=True, tag="get-security"):
    """Ask for the security descriptor of a queue, or of the queue manager if `name` is empty."""

    name: str = ""


class Security(Reply, frozen=True, tag="security"):
    """Whose an object is and who may do what with it: a self-relative SECURITY_DESCRIPTOR."""

    descriptor: bytes
    is_default: bool
    """Whether nobody has changed it."""


class SetSecurity(Request, frozen=True, tag="set-security"):
    """Give a queue, or the queue manager, another security descriptor.

    One without an owner leaves the owner as it is; an empty one is the default.
    """

    name: str
    descriptor: bytes


class TakeOwnership(Request, frozen=True, tag="take-ownership"):
    """Become the owner of a queue, or of the queue manager if `name` is empty."""

    name: str = ""


class GetCaller(Request, frozen=True, tag="get-caller"):
    """Ask who the queue manager takes the caller for."""


class CallerStatus(Reply, frozen=True, tag="caller"):
    """Who the caller is to the queue manager."""

    name: str
    user: bytes
    """The SID of the user."""
    sids: list[bytes]
    """The SIDs of the user and of all groups."""
    scopes: list[str] | None
    """What the token of the caller is good for; None without bounds."""
    queues: list[str]
    """Patterns of the names of queues that the token is good for; empty for all."""
    exact_signatures: bool = False
    """Whether all queue managers of the directory understand exact signatures."""
