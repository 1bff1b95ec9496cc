"""The life of a transaction, as a table. [MQDMPR 3.1.4]

What a transaction has come to is assumed at once, and may have to be taken back when the disk
refuses it. What is not in the table is a defect of the queue manager, and raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from openmsmq.manager.turn.defects import Defect


class TransactionState(Enum):
    """How far a transaction has come. The value follows "it is" in sentences for people."""

    ACTIVE = "active"
    """Its application adds to it, and will end it; it goes when the application goes."""
    PREPARED = "prepared"
    """It is stored, or on its way to the disk, and waits for its coordinator's word."""
    COMMITTING = "being committed"
    """It was active, and its effects wait for the disk."""
    COMMITTING_PREPARED = "being committed after it was prepared"
    """It was prepared, and its effects wait for the disk."""
    ABORTING_PREPARED = "being aborted after it was prepared"
    """It was prepared, and that it is not any more waits for the disk."""
    COMMITTED = "committed"
    """Its effects are durable."""
    ABORTED = "aborted"
    """It has had no effects."""


class TransactionEvent(Enum):
    """What happens to a transaction."""

    PREPARE = "prepare"
    """Its application lets a coordinator decide, or the store has it from before the start."""
    COMMIT = "commit"
    """It is to take effect."""
    ABORT = "abort"
    """It is to have no effect, or its application is gone."""
    SETTLE = "settle"
    """The disk has its end."""
    REFUSE = "refuse"
    """The disk refused what was done last."""


TRANSITIONS: Final[Mapping[tuple[TransactionState, TransactionEvent], TransactionState]] = (
    MappingProxyType(
        {
            (TransactionState.ACTIVE, TransactionEvent.PREPARE): TransactionState.PREPARED,
            (TransactionState.ACTIVE, TransactionEvent.COMMIT): TransactionState.COMMITTING,
            (TransactionState.ACTIVE, TransactionEvent.ABORT): TransactionState.ABORTED,
            (
                TransactionState.PREPARED,
                TransactionEvent.COMMIT,
            ): TransactionState.COMMITTING_PREPARED,
            (TransactionState.PREPARED, TransactionEvent.ABORT): TransactionState.ABORTING_PREPARED,
            (TransactionState.PREPARED, TransactionEvent.REFUSE): TransactionState.ACTIVE,
            (TransactionState.COMMITTING, TransactionEvent.SETTLE): TransactionState.COMMITTED,
            (TransactionState.COMMITTING, TransactionEvent.REFUSE): TransactionState.ACTIVE,
            (
                TransactionState.COMMITTING_PREPARED,
                TransactionEvent.SETTLE,
            ): TransactionState.COMMITTED,
            (
                TransactionState.COMMITTING_PREPARED,
                TransactionEvent.REFUSE,
            ): TransactionState.PREPARED,
            (
                TransactionState.ABORTING_PREPARED,
                TransactionEvent.SETTLE,
            ): TransactionState.ABORTED,
            (
                TransactionState.ABORTING_PREPARED,
                TransactionEvent.REFUSE,
            ): TransactionState.PREPARED,
        }
    )
)
"""Where an event leads from a state. Any other pair is a defect.

Nothing of an active transaction is on the disk, so it is aborted at once.
"""

UNDER_WAY: Final = (TransactionState.ACTIVE, TransactionState.PREPARED)
"""The states in which nobody has ended a transaction yet."""


def after(number: int, state: TransactionState, event: TransactionEvent) -> TransactionState:
    """Return where an event leads a transaction; raise `Defect` if it must not happen."""
    found = TRANSITIONS.get((state, event))
    if found is None:
        raise Defect(
            f"transaction {number} is {state.value}, and no event {event.value!r} leads on from "
            "there"
        )
    return found
