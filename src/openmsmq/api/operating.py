"""Requests and replies of the application interface for those who operate a queue manager."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Reply, Request
from openmsmq.api.facts import ADMINISTER, SHOW, Facts, Repeats
from openmsmq.model.limits import UNLIMITED_KB


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


class ListOutgoing(Request[OutgoingQueues], frozen=True, tag="list-outgoing"):
    """Ask for all outgoing queues, or for the one that leads to `name`."""

    facts = Facts(SHOW, Repeats.ALWAYS)

    name: str = ""


class ControlOutgoing(Request[Done], frozen=True, tag="control-outgoing"):
    """Pause an outgoing queue, resume it, or send again what is not acknowledged."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_audited=True)

    name: str
    action: str
    """`pause`, `resume` or `resend`."""


class SetOnline(Request[Done], frozen=True, tag="set-online"):
    """Take the queue manager offline, so that it neither sends nor accepts, or back online."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_audited=True)

    online: bool


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


class GetStatus(Request[Status], frozen=True, tag="get-status"):
    """Ask how the queue manager is."""

    facts = Facts(SHOW, Repeats.ALWAYS)
