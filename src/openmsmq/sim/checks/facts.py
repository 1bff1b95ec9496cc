"""What a run knows of its messages and transactions, from outside the queue managers."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.model.limits import INFINITE_S

if TYPE_CHECKING:
    from openmsmq.sim.node import Node

FOREVER_MS: Final = 1 << 62
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


class Group(msgspec.Struct, eq=False):
    """Messages that take effect together: a transaction, or the packets of one call."""

    number: int
    node: Node
    messages: list[SimMessage] = []
    """What it sends."""
    taken: list[SimMessage] = []
    """What it receives."""
    fate: Fate = Fate.STAGED
    unit_of_work: bytes = b""
    prepared: bool = False
    """Whether its application heard that it is prepared."""
    doubtful: bool = False
    """Whether nobody knows if it is prepared."""
    commits: bool = True
    """What its coordinator decided, if it is prepared."""
    applied_ms: int | None = None
    """When the disk had its effects."""
    is_plain: bool = False
    """Whether all that it sends stays here and asks for nothing more: it can be set aside."""

    def __str__(self) -> str:
        return f"t{self.number}"


class SimMessage(msgspec.Struct, eq=False):
    """A message, and everything that was seen of it."""

    number: int
    kind: Kind
    source: Node
    target: Node
    queue: str
    name: str
    """How its destination was written: order is kept among messages to the same name."""
    group: Group
    time_to_reach_queue_s: int = INFINITE_S
    time_to_be_received_s: int = INFINITE_S
    journal_on_success: bool = False
    journal_on_failure: bool = False
    acknowledge: int = 0
    order: int = 0
    """The place of a transactional message among all that its source committed."""
    sent_ms: int = 0
    sent_s: int | None = None
    message_id: bytes = b""
    effective: bool = False
    """Whether it was ever in a queue of its source, outgoing or not."""
    durable_at: set[int] = set()
    """Nodes whose disks have had it."""
    on_wire: bool = False
    arrivals: int = 0
    arrived_ms: int = 0
    removed_ms: int | None = None
    """When it was taken out of its queue."""
    holder: Group | None = None
    held: bool = False
    """Whether a transaction ever held it."""
    reserved_for: str = ""
    """The stream that has read it, and has it for itself until it completes it."""
    purged_ms: int | None = None
    """When a purge was answered that must have removed it: it was there before that came."""
    consumed: int = 0
    lost_with: Node | None = None
    """The node whose loss of power took an express message with it."""
    journal_copies: int = 0
    target_journal_copies: int = 0
    dead_letters: set[int] = set()
    """Nodes that have it as a dead letter."""
    acknowledgments: list[int] = []
    padding_bytes: int = 0
    """How much it carries beside its number."""

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
    def is_there(self) -> bool:
        """Whether it lies in the queue that it is for."""
        return self.arrivals > 0 and self.removed_ms is None and self.lost_with is None

    @property
    def body(self) -> bytes:
        """What it carries: its own number, and nothing that means anything."""
        return b"<m%06d>" % self.number + bytes(self.padding_bytes)

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
