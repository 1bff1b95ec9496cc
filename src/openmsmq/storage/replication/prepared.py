"""A batch between two steps: it has its room, and only its record in the journal is left.

In between, a log that several computers share may take it. What goes there is the batch itself and
not the record of this store's journal: which file has what is set aside is a matter of each store,
and the values go with the batch.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.storage.bundles.checksums import pack, unpack
from openmsmq.storage.frames import Changes, Moves
from openmsmq.storage.port import Batch, StoreDamaged, Taken

BOOKKEEPING_MAX_BYTES: Final = 64
"""What a deletion may write beside it and still be one: the counts of its queue, for example."""

_CHANGES_ONLY: Final = b"c"
"""What the record of a batch begins with that only puts and deletes."""
_WHOLE: Final = b"w"
"""What that of any other batch begins with."""


class _Whole(msgspec.Struct, frozen=True, array_like=True):
    """The durable part of a batch, with what it sets aside."""

    changes: list[tuple[bytes, bytes | None]]
    ranges: list[tuple[bytes, bytes]]
    aside: list[tuple[bytes, list[bytes]]]
    taken: list[Taken]
    dropped: list[bytes]


_ENCODER: Final = msgspec.msgpack.Encoder()
_CHANGES_DECODER: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]])
_WHOLE_DECODER: Final = msgspec.msgpack.Decoder(_Whole)


class Prepared:
    """A batch that lacks but its record in the journal."""

    __slots__ = ("_changes", "batch", "moves", "payload")

    def __init__(self, batch: Batch, changes: Changes, moves: Moves | None, payload: bytes) -> None:
        self.batch = batch
        self.moves = moves
        self.payload = payload
        """What the journal gets; nothing if nothing of the batch is durable."""
        self._changes = changes

    @property
    def adds(self) -> bool:
        """Whether it makes the store larger, deletions and their bookkeeping apart."""
        batch = self.batch
        put_bytes, deleted_count = 0, len(batch.ranges) + len(batch.dropped)
        for _, value in self._changes:
            if value is None:
                deleted_count += 1
            else:
                put_bytes += len(value)
        return bool(batch.aside) or put_bytes > BOOKKEEPING_MAX_BYTES * deleted_count

    def record(self) -> bytes:
        """Return the durable part of the batch for other stores."""
        batch = self.batch
        if not (batch.ranges or batch.moves):
            return _CHANGES_ONLY + self.payload
        parts = (self._changes, batch.ranges, batch.aside, batch.taken, batch.dropped)
        return _WHOLE + _ENCODER.encode(parts)


def seal(record: bytes, log: str, number: int) -> bytes:
    """Put a checksum of a record and of its place behind it."""
    return pack(_place(log, number), record)


def unseal(sealed: bytes, log: str, number: int) -> bytes:
    """Return the record; raise `StoreDamaged` if it is not the one that was put at this place."""
    record = unpack(_place(log, number), sealed)
    if record is None:
        raise StoreDamaged(
            f"record {number} of the log in the database is not what its primary has written: it "
            "was changed, or is one of another log. Restore the database, or begin a new log"
        )
    return record


def _place(log: str, number: int) -> bytes:
    return f"{log} {number}".encode()


def decode_batch(record: bytes) -> Batch:
    """Return the batch of a record; raise `StoreDamaged` if there is none in it."""
    body = memoryview(record)[1:]
    try:
        if record[:1] == _CHANGES_ONLY:
            return Batch(_CHANGES_DECODER.decode(body))
        if record[:1] == _WHOLE:
            whole = _WHOLE_DECODER.decode(body)
            return Batch(
                whole.changes,
                ranges=whole.ranges,
                aside=whole.aside,
                taken=whole.taken,
                dropped=whole.dropped,
            )
    except msgspec.DecodeError as error:
        raise StoreDamaged(
            f"a record of the log in the database is not readable ({error})"
        ) from None
    raise StoreDamaged(
        "a record of the log in the database was written by a later version of this software: "
        "use that version here, too"
    )
