"""Requests and replies of the application interface for those who operate a queue manager."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Name, Number, Octets, Reply, Request, Text
from openmsmq.api.facts import ADMINISTER, SHOW, Facts, Repeats
from openmsmq.model.limits import SEQUENCE_PAGE_DEFAULT_COUNT, UNLIMITED_KB


class ConnectionAttempt(msgspec.Struct, frozen=True, array_like=True):
    """How one attempt to reach a neighbour went."""

    status: int
    """A `ConnectionStatus`."""
    time_s: int
    addresses: list[str]


class SequencePlace(msgspec.Struct, frozen=True, array_like=True):
    """A place in a sequence of transactional messages; all 0 where there is none. [MQMQ 2.2.5]"""

    sequence: int = 0
    number: int = 0
    previous: int = 0


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
    last_acknowledged: SequencePlace = SequencePlace()
    first_unacknowledged: SequencePlace = SequencePlace()
    last_unacknowledged: SequencePlace = SequencePlace()
    next_place: SequencePlace = SequencePlace()
    """The place of the next message."""
    last_ack_count: int = 0
    """How often the last order acknowledgment came."""
    resend_interval_s: int = 0
    """How long it is between two attempts, now."""
    open_count: int = 0
    """How often applications have it open."""
    failing: bool = False
    """Whether nothing leaves although its state is that of a queue at rest: posts over HTTP fail,
    or it is locked."""


class OutgoingQueues(Reply, frozen=True, tag="outgoing-queues"):
    """Outgoing queues."""

    queues: list[OutgoingStatus]


class ListOutgoing(Request[OutgoingQueues], frozen=True, tag="list-outgoing"):
    """Ask for all outgoing queues, or for the one that leads to `name`."""

    facts = Facts(SHOW, Repeats.ALWAYS)

    name: Name = ""


class ControlOutgoing(Request[Done], frozen=True, tag="control-outgoing"):
    """Pause an outgoing queue, resume it, or send again what is not acknowledged."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_audited=True)

    name: Name
    action: Text
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


class StandbyStatus(msgspec.Struct, frozen=True, array_like=True):
    """A computer that follows the primary, as far as the database knows."""

    name: str
    record: int
    """The last record that it has stored."""
    lag_s: int
    """How long ago the log had the first one that it lacks; 0 if it lacks none."""
    silent_s: int
    """When it said so."""
    differing: list[str]
    """Files beside the store, such as keys, that it has not as the primary has them."""


class Replication(msgspec.Struct, frozen=True, array_like=True):
    """The log of a queue manager on several computers, as its primary has seen it last."""

    member: str
    """What the computer is called that is the primary."""
    epoch: int = 0
    record: int = 0
    """The last record of the log."""
    log_records: int = 0
    """Records that the database has."""
    standbys: list[StandbyStatus] = []
    lag_s: int = 0
    """How far the standby is behind that is least so; for how long there is none."""
    problem: str = ""
    """Why nothing is known; empty while all is well."""


class Vitals(msgspec.Struct, frozen=True, array_like=True):
    """What the program around a queue manager has measured; -1 where it has not."""

    free_disk_bytes: int = -1
    """Room on the disk of the store."""
    store_bytes: int = -1
    """What the store takes of the disk."""
    commit_count: int = 0
    """Commits of the store since the start."""
    commit_total_us: int = 0
    """How long all of them took."""
    commit_last_us: int = -1
    commit_worst_us: int = -1
    lag_us: int = -1
    """How late the program was the last time that it wanted to be woken."""
    lag_worst_us: int = -1
    disk_bytes: int = -1
    """The size of the disk of the store."""
    http_answers: dict[str, int] = {}
    """How many requests of HTTP were answered with each status since the start."""
    replication: Replication | None = None
    """None for a queue manager on one computer."""
    multicast_packets: dict[str, int] = {}
    """Packets of multicast since the start, by what became of them."""
    multicast_sources: int = 0
    """Sources of others that are followed."""
    multicast_backlog_bytes: int = 0
    """What waits for the rate of its multicast address."""


class RaisedAlarm(msgspec.Struct, frozen=True, array_like=True):
    """An alarm that is raised, for one queue or for the queue manager as a whole."""

    queue: str
    """Empty for the queue manager as a whole."""
    value: int
    """What was seen the last time."""
    since_s: int
    """Since when it is so."""
    text: str
    """It in a sentence."""


class AlarmStatus(msgspec.Struct, frozen=True, array_like=True):
    """An alarm of the configuration."""

    name: str
    measure: str
    """The key of its threshold: what it looks at."""
    threshold: int
    raised_count: int
    """For how many queues it is raised; 1 for the queue manager as a whole."""
    raised: list[RaisedAlarm]
    """Those of queues that the caller may see."""


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
    vitals: Vitals = Vitals()
    in_doubt_count: int = 0
    """Transactions that are prepared, and wait for their coordinator's word."""
    session_count: int = 0
    """Sessions with other queue managers."""
    unreached_count: int = 0
    """Attempts to reach another queue manager that failed, since the start."""
    resend_count: int = 0
    """How often messages without an acknowledgment were sent again, since the start."""
    staged_bytes: int = 0
    """What transactions have sent and not committed; it counts for the quota."""
    alarms: list[AlarmStatus] = msgspec.field(default_factory=list)
    """The alarms of the configuration, whether they are raised or not."""
    roles: list[str] = msgspec.field(default_factory=list)
    """What it does for others: values of `ManagerRole`. [MQOD 2.1.4]"""


class GetStatus(Request[Status], frozen=True, tag="get-status"):
    """Ask how the queue manager is."""

    facts = Facts(SHOW, Repeats.ALWAYS)


class SessionStatus(msgspec.Struct, frozen=True):
    """A session with another queue manager, as it is now. [MQQB 3.1.1.3.1]"""

    number: int
    manager: bytes
    """The identifier that the other queue manager has told; nil while it has not."""
    name: str
    """The name of that queue manager in the directory, if it is known there."""
    address: str
    is_dialled: bool
    """Whether this queue manager has opened it, and not the other one."""
    state: str
    """The value of a `SessionState`."""
    waits_for: str
    """The value of a `SessionWait`."""
    since_s: int
    """When it was begun."""
    proven: str
    """Over TLS, the rule of `[peers]` whose certificate the other side has shown; else empty."""
    window: int
    """How many packets may be in flight to the other side."""
    in_flight_count: int
    """Packets that the other side has not acknowledged."""
    unstored_count: int
    """Recoverable packets that the other side has not said to have stored."""
    unsettled_count: int
    """Packets that have come, and of which the other side has not been told yet."""
    sent_count: int
    """Packets with messages, since it was begun."""
    sent_bytes: int
    """All bytes, those of acknowledgments included."""
    received_count: int
    received_bytes: int
    queues: list[str]
    """Outgoing queues whose messages go through it; the first ones, if there are many."""
    queue_count: int


class OpenSessions(Reply, frozen=True, tag="open-sessions"):
    """The sessions with other queue managers."""

    sessions: list[SessionStatus]


class ListSessions(Request[OpenSessions], frozen=True, tag="list-sessions"):
    """Ask for the sessions with other queue managers, in the order in which they began."""

    facts = Facts(SHOW, Repeats.ALWAYS, is_heavy=True)


class IncomingSequenceStatus(msgspec.Struct, frozen=True):
    """How far the transactional messages of one sender to one destination have come here."""

    manager: bytes
    """The identifier of the sender."""
    name: str
    """The name of that queue manager in the directory, if it is known there."""
    address: str
    """Where the sender was seen himself; empty if others bring his messages."""
    destination: str
    """The queue, as the sender's messages name it."""
    sequence: int
    """The sequence of the last message that was taken; 0 if none was."""
    number: int
    """The number of that message in its sequence."""
    rejected_count: int
    """Messages since then that came before their turn and were dropped; the sender has them."""
    since_s: int
    """When the sequence began, as its identifier says: by the sender's clock, and some seconds
    later if he has begun several at once; 0 if no message was taken."""
    last_time_s: int
    """When a message of it came last, by the clock of this queue manager."""


class IncomingSequencePage(Reply, frozen=True, tag="incoming-sequence-page"):
    """Some of the incoming sequences that fit, by sender."""

    sequences: list[IncomingSequenceStatus]
    total_count: int
    """How many there are in all, whether they fit or not."""
    after: bytes = b""
    """Where the next page goes on; empty if there is none. Fewer than asked for do not mean that:
    a page ends with what was looked at, too."""


class PageIncomingSequences(
    Request[IncomingSequencePage], frozen=True, tag="page-incoming-sequences"
):
    """Ask for one page of the incoming sequences: what each sender of transactional messages has
    brought to which queue."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_heavy=True)

    after: Octets = b""
    """Where to go on, as the last page said."""
    limit: Number = SEQUENCE_PAGE_DEFAULT_COUNT
    filter: Text = ""
    """Only those with this text in the sender's name, identifier or address, or in the queue."""
    only_rejected: bool = False
    """Only those that wait for a message that has not come."""


class OpenHandle(msgspec.Struct, frozen=True, array_like=True):
    """A queue that an application has open."""

    handle: int
    name: str
    access: int
    """An `AccessMode`."""
    share: int
    """A `ShareMode`."""
    waiting_count: int = 0
    """Reads that wait there for a message."""


class ConnectedApplication(msgspec.Struct, frozen=True):
    """A connection of an application, and what it has open."""

    number: int
    caller: str
    """Who it is to the queue manager."""
    user: bytes
    """The SID of the user."""
    peer: str
    """From where it comes: an address with a port, or a process of this computer."""
    door: str
    """`tcp` or `unix`; empty for the program itself."""
    since_s: int
    is_own: bool
    """Whether it is the connection that has asked."""
    queues: list[OpenHandle]
    """What it has open; the first ones, if there are many."""
    queue_count: int
    waiting_count: int
    """Reads that wait for a message."""
    transaction_count: int
    """Transactions that it has begun and not ended."""


class Connections(Reply, frozen=True, tag="connections"):
    """The connections of applications."""

    connections: list[ConnectedApplication]


class ListConnections(Request[Connections], frozen=True, tag="list-connections"):
    """Ask for the connections of all applications, in the order in which they came."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_heavy=True)


class CloseConnection(Request[Done], frozen=True, tag="close-connection"):
    """End the connection of an application; what it has not committed is undone."""

    facts = Facts(ADMINISTER, Repeats.NEVER, is_audited=True)

    connection: Number
    """Its number, as `ListConnections` tells it."""


class Sighting(msgspec.Struct, frozen=True, array_like=True):
    """A place where a message is, where a copy of it was kept, or where another tells of it."""

    queue: str
    """The path name; of an outgoing queue, the format name of where it leads to."""
    kind: str
    """The value of a `QueueRole`."""
    lookup_id: int
    arrived_time_s: int
    sent_time_s: int
    message_class: int
    hop_count: int
    destination: str
    """Where it was sent, as its packet says."""
    is_held: bool
    """Whether it is on its way out: somebody receives it, or it is being transferred."""
    lives_s: int
    """How long it may wait to be received; `INFINITE_S` for ever."""
    is_about: bool
    """Whether it is another message, which answers this one or tells what became of it."""
    source: bytes
    """The queue manager that sent it."""


class Sightings(Reply, frozen=True, tag="sightings"):
    """What one step of a search has found."""

    found: list[Sighting]
    looked_count: int
    """Messages that were looked at."""
    hidden_count: int
    """Queues with messages into which the caller may not look."""
    next_queue: int = 0
    """Where to go on; 0 if all queues were looked through."""
    next_start: int = 0


class FindMessage(Request[Sightings], frozen=True, tag="find-message"):
    """Look for a message, and for what others tell of it, in all queues that the caller may look
    into, a step at a time.

    One step looks at so many messages that others need not wait; the reply says where to go on.
    """

    facts = Facts(SHOW, Repeats.ALWAYS, is_heavy=True)

    message_id: Octets
    queue: Number = 0
    start: Number = 0


class AuditLines(Reply, frozen=True, tag="audit-lines"):
    """A page of the audit log."""

    lines: list[str]
    """The newest first, each a JSON object."""
    before: str
    """Where the next page goes on; empty if there is none. Fewer lines than asked for do not mean
    that: a page ends with the bytes that were looked through, too."""
    is_kept: bool = True
    """Whether there is an audit log."""


class ReadAudit(Request[AuditLines], frozen=True, tag="read-audit"):
    """Ask for a page of the audit log, from its end."""

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_heavy=True)

    before: Text = ""
    """Where to go on, as the last page said."""
    count: Number = 50
    filter: Text = ""
    """Only lines with this text in them."""
