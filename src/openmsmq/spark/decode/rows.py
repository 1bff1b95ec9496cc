"""Messages as rows, one by one, with the scalar codec: what `decode` must be equal to.

It also reads the few messages that `decode` does not read itself: those with rare headers, and
those that cannot be decoded at all.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterator
from typing import Any, Final, TypeAlias

from openmsmq.api.messages import PLACE_FORMAT, Entry, Packets
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.properties import FOUND, PLAIN, PROPERTIES
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.spark.decode.headers import headers_of
from openmsmq.spark.decode.packed import PLACE_BYTES, Packed
from openmsmq.spark.schema import ALL_NAMES
from openmsmq.wire.errors import DecodeError

_PLACE: Final = struct.Struct(PLACE_FORMAT)
_PLACE_READERS: Final = {
    name: read for name, read in PLAIN.items() if PROPERTIES[name].group == FOUND
}
"""What can be read of a message whose packet cannot be decoded."""
_READERS: Final = {
    name: read for name, read in PLAIN.items() if name in ALL_NAMES and name not in _PLACE_READERS
}

Row: TypeAlias = dict[str, Any]
"""A value for each column: text, bytes, a number, a time, pairs of texts, or None."""


def entries_in(raw: Packets) -> Iterator[Entry]:
    """Yield the messages of an answer one by one."""
    packed = Packed(raw)
    for row in range(packed.count):
        yield entry_at(packed, row)


def entry_at(packed: Packed, row: int) -> Entry:
    """Return one message of an answer."""
    start, end = int(packed.starts[row]), int(packed.ends[row])
    arrived_time_s, moved_time_s, abort_count, move_count = _PLACE.unpack_from(packed.data, start)
    return Entry(
        int(packed.lookup_ids[row]),
        arrived_time_s,
        abort_count,
        move_count,
        bytes(packed.data[start + PLACE_BYTES : end]),
        moved_time_s,
    )


def row_of(
    entry: Entry, *, queue_manager: str, queue: str, columns: Container[str] = ALL_NAMES
) -> Row:
    """Return a message as a value for each column; one that cannot be decoded says so in `error`.

    The headers are read only if they are among the `columns`: they are the only ones that cost.
    """
    message = ReceivedMessage(entry, DEFAULT_FORMATTER)
    row: Row = dict.fromkeys(ALL_NAMES)
    row |= {"queue_manager": queue_manager, "queue": queue}
    row |= {name: read(message) for name, read in _PLACE_READERS.items()}
    try:
        row |= {name: read(message) for name, read in _READERS.items()}
        if "headers" in columns:
            row["headers"] = headers_of(message.extension)
    except DecodeError as error:
        row |= {"body": entry.packet, "error": str(error)}
    return row
