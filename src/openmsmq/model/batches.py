"""How the batches of a query follow each other: which one is new, and which one comes again.

Whoever writes a batch stores its number, the identity of the checkpoint that numbered it, where it
ends, and how many rows it had, with the rows. Only the very last batch can come again: the one that
was written when its query could not note it any more. Anything else means that a checkpoint was
exchanged.
"""

from __future__ import annotations

from enum import Enum

import msgspec


class BatchMark(msgspec.Struct, frozen=True):
    """What a batch is known by."""

    batch: int
    checkpoint: str = ""
    """The identity of what numbers the batches; empty if there is none."""
    row_count: int = -1
    """How many rows it has; -1 if that is not known."""
    end: str = ""
    """Where it ends in what it was read from, as the checkpoint has it; empty if not known."""


class Succession(Enum):
    """How a batch stands to the last one that its query has written."""

    NEXT = "next"
    """It is new. Numbers may be left out: a batch without rows may never come here."""
    AGAIN = "again"
    """It is the last one, and was written."""
    GROWN = "grown"
    """It has the number of the last one, and rows that this one did not have."""
    MOVED = "moved"
    """It has the number of the last one, and ends elsewhere."""
    OLDER = "older"
    """It is below the last one of the same checkpoint, of which an older copy is used."""
    FOREIGN = "foreign"
    """Another checkpoint numbered it, so that the last number says nothing about it."""


def succession(last: BatchMark | None, batch: BatchMark) -> Succession:
    """Return how a batch stands to the last one, if there was one.

    A last batch without a checkpoint may be of any: versions before did not note it, and not
    everybody who writes batches has one. A copy of a checkpoint that lacks just the last batch
    plans one of the same number, with an end of its own. If neither has rows, nothing is missing
    and nothing is there twice. If only the new one has none, the next batch may begin before the
    end of the one that was written, and have its rows. Where nobody knows the ends, rows are
    counted: from the same start to a later end there are more. Fewer are no sign, because messages
    may have been lost before they were read again.
    """
    if last is None:
        return Succession.NEXT
    if last.checkpoint and batch.checkpoint != last.checkpoint:
        return Succession.FOREIGN
    if batch.batch != last.batch:
        return Succession.NEXT if batch.batch > last.batch else Succession.OLDER
    if last.end and batch.end:
        is_moved = last.end != batch.end and not batch.row_count == last.row_count == 0
        return Succession.MOVED if is_moved else Succession.AGAIN
    has_grown = 0 <= last.row_count < batch.row_count
    return Succession.GROWN if has_grown else Succession.AGAIN


def refusal(query: str, last: BatchMark | None, batch: BatchMark, forgetting: str) -> str | None:
    """Return the sentence that refuses a batch; None if it is the next one, or comes again.

    `forgetting` is what somebody does who wants the name for another checkpoint.
    """
    follows = succession(last, batch)
    if last is None or follows in (Succession.NEXT, Succession.AGAIN):
        return None
    back = "Put the newer checkpoint back, or begin with a new checkpoint and another name"
    if follows is Succession.OLDER:
        return (
            f"batch {batch.batch} of {query!r} is older than the last one written, {last.batch}: "
            "an older copy of the checkpoint was put back, or its last files were lost. It is not "
            f"written, because some of its rows may be. {back}"
        )
    if follows is Succession.GROWN:
        return (
            f"batch {batch.batch} of {query!r} was written with {last.row_count} rows, and comes "
            f"again with {batch.row_count}: an older copy of the checkpoint was put back, or the "
            "query computes other rows each time. It is not written, because some of its rows "
            f"are. {back}"
        )
    if follows is Succession.MOVED:
        return (
            f"batch {batch.batch} of {query!r} was written, and comes again with another end: an "
            "older copy of the checkpoint was put back, or its last files were lost, and the batch "
            "was planned anew. It is not written, because some of its rows may be. "
            f"{back}"
        )
    origin = f"checkpoint {batch.checkpoint!r}" if batch.checkpoint else "no checkpoint"
    return (
        f"batch {batch.batch} of {query!r} comes from {origin}, and the last one written, "
        f"{last.batch}, from checkpoint {last.checkpoint!r}: it is not written, because it may "
        "repeat rows of that one. Go on with that checkpoint, give this one another name, or, if "
        f"all that it has may be written, forget the name with {forgetting}"
    )
