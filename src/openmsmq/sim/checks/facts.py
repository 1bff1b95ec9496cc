"""What a run knows of its messages and transactions, from outside the queue managers."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from openmsmq.model.limits import INFINITE_S

if TYPE_CHECKING:
    from openmsmq.sim.node import Node

_MARK: Final = re.compile(rb"<m(\d{6})>")


class Kind(Enum):
    """How a message is sent."""

    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class Fate(Enum):
    """What the application knows of what it asked for."""

    UNDER_WAY = "under way"
    """Handed in, not answered."""
    STAGED = "staged"
    """In a transaction whose end nobody has asked for."""
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    """Refused, or aborted: it must never be seen."""
    UNKNOWN = "unknown"
    """The connection was lost before the answer."""


MAY_TAKE_EFFECT: Final = frozenset({Fate.UNDER_WAY, Fate.ACKNOWLEDGED, Fate.UNKNOWN})


class Group:
    """Messages that take effect together: a transaction, or the packets of one call."""

    __slots__ = (
        "applied_ms",
        "commits",
        "doubtful",
        "fate",
        "messages",
        "node",
        "number",
        "prepared",
        "taken",
        "unit_of_work",
    )

    def __init__(self, number: int, node: Node) -> None:
        self.number = number
        self.node = node
        self.messages: list[SimMessage] = []
        """What it sends."""
        self.taken: list[SimMessage] = []
        """What it receives."""
        self.fate = Fate.STAGED
        self.unit_of_work = b""
        self.prepared = False
        """Whether its application heard that it is prepared."""
        self.doubtful = False
        """Whether nobody knows if it is prepared."""
        self.commits = True
        """What its coordinator decided, if it is prepared."""
        self.applied_ms: int | None = None
        """When the disk had its effects."""

    def __str__(self) -> str:
        return f"t{self.number}"


class SimMessage:
    """A message, and everything that was seen of it."""

    __slots__ = (
        "acknowledge",
        "acknowledgments",
        "arrivals",
        "arrived_ms",
        "consumed",
        "dead_letters",
        "durable_at",
        "effective",
        "group",
        "held",
        "holder",
        "journal_copies",
        "journal_on_failure",
        "journal_on_success",
        "kind",
        "lost_with",
        "message_id",
        "name",
        "number",
        "on_wire",
        "order",
        "queue",
        "removed_ms",
        "reserved_for",
        "sent_ms",
        "sent_s",
        "source",
        "target",
        "target_journal_copies",
        "time_to_be_received_s",
        "time_to_reach_queue_s",
    )

    def __init__(
        self, number: int, kind: Kind, source: Node, target: Node, queue: str, group: Group
    ) -> None:
        self.number = number
        self.kind = kind
        self.source = source
        self.target = target
        self.queue = queue
        self.name = queue
        """How its destination was written: order is kept among messages to the same name."""
        self.group = group
        self.time_to_reach_queue_s = INFINITE_S
        self.time_to_be_received_s = INFINITE_S
        self.journal_on_success = False
        self.journal_on_failure = False
        self.acknowledge = 0
        self.order = 0
        """The place of a transactional message among all that its source committed."""
        self.sent_ms = 0
        self.sent_s: int | None = None
        self.message_id = b""
        self.effective = False
        """Whether it was ever in a queue of its source, outgoing or not."""
        self.durable_at: set[int] = set()
        """Nodes whose disks have had it."""
        self.on_wire = False
        self.arrivals = 0
        self.arrived_ms = 0
        self.removed_ms: int | None = None
        """When it was taken out of its queue."""
        self.holder: Group | None = None
        self.held = False
        """Whether a transaction ever held it."""
        self.reserved_for = ""
        """The stream that has read it, and has it for itself until it completes it."""
        self.consumed = 0
        self.lost_with: Node | None = None
        """The node whose loss of power took an express message with it."""
        self.journal_copies = 0
        self.target_journal_copies = 0
        self.dead_letters: set[int] = set()
        """Nodes that have it as a dead letter."""
        self.acknowledgments: list[int] = []

    def __str__(self) -> str:
        return f"m{self.number}"

    @property
    def remote(self) -> bool:
        """Whether it has to leave its node."""
        return self.source is not self.target

    @property
    def certain(self) -> bool:
        """Whether it survives everything once it was acknowledged."""
        return self.kind is not Kind.EXPRESS

    @property
    def body(self) -> bytes:
        """What it carries: nothing but its own number."""
        return b"<m%06d>" % self.number

    def may_have_expired(self) -> bool:
        """Whether some clock that it met has passed its time."""
        if self.sent_s is None:
            return False
        within_s = self.time_to_be_received_s
        if self.remote:
            within_s = min(within_s, self.time_to_reach_queue_s)
        if within_s >= INFINITE_S:
            return False
        latest_s = max(node.clock.latest_s for node in self.source.world.nodes)
        return latest_s >= self.sent_s + within_s


def number_in(data: bytes) -> int | None:
    """Find which simulated message some bytes are."""
    found = _MARK.search(data)
    return None if found is None else int(found[1])


def numbers_in(data: bytes) -> list[int]:
    """Find all simulated messages in some bytes."""
    return [int(number) for number in _MARK.findall(data)]
