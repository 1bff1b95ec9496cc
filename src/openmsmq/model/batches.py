"""How the batches of a query follow each other: which one is new, and which one comes again.

Whoever writes a batch stores its number, and the identity of the checkpoint that numbered it, with
the rows. Only the very last batch can come again: the one that was written when its query could
not note it any more. Any other number means that a checkpoint was exchanged.
"""

from __future__ import annotations

from enum import Enum


class Succession(Enum):
    """How a batch stands to the last one that its query has written."""

    NEXT = "next"
    """It is new. Numbers may be left out: a batch without rows may never come here."""
    AGAIN = "again"
    """It is the last one, and was written."""
    OLDER = "older"
    """It is below the last one of the same checkpoint, of which an older copy is used."""
    FOREIGN = "foreign"
    """Another checkpoint numbered it, so that the last number says nothing about it."""


def succession(last: int, last_checkpoint: str, batch: int, checkpoint: str) -> Succession:
    """Say how a batch stands to the last one; `last` is -1 before the first.

    A last batch without a checkpoint may be of any: versions before did not note it, and not
    everybody who writes batches has one.
    """
    if last < 0:
        return Succession.NEXT
    if last_checkpoint and checkpoint != last_checkpoint:
        return Succession.FOREIGN
    if batch == last:
        return Succession.AGAIN
    return Succession.NEXT if batch > last else Succession.OLDER
