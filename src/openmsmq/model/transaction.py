"""What a transaction has done so far, as values that can be stored. [MQDMPR 3.1.1.13, 3.1.1.14]

Nothing of a transaction is visible to others before it commits: an enqueued message waits, a
dequeued one is locked. The steps say what commit has to finish and abort has to undo.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from openmsmq.model.identity import Guid


class TransactionState(Enum):
    """How far a transaction has come. Prepared ones wait for a coordinator's word."""

    ACTIVE = "active"
    PREPARED = "prepared"
    COMMITTED = "committed"
    ABORTED = "aborted"


class EnqueueStep(msgspec.Struct, frozen=True, gc=False, tag="enqueue"):
    """A message was put into a queue; it appears on commit and vanishes on abort.

    `arrival_number` finds the message: it is unique in its queue manager and never changes.
    """

    queue: Guid
    arrival_number: int


class DequeueStep(msgspec.Struct, frozen=True, gc=False, tag="dequeue"):
    """A message was taken from a queue; `reason` is the class that commit reports for it."""

    queue: Guid
    arrival_number: int
    reason: int


class MoveStep(msgspec.Struct, frozen=True, gc=False, tag="move"):
    """A message was moved to a subqueue or back; abort leaves it where it was."""

    queue: Guid
    arrival_number: int
    target: Guid


TransactionStep = EnqueueStep | DequeueStep | MoveStep
