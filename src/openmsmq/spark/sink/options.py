"""The options of writing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from openmsmq.client.messages import properties
from openmsmq.spark.errors import BadOption
from openmsmq.spark.options import CONNECTION_OPTIONS, OptionReader, Place

BATCH_MAX: Final = (1 << 62) - 1
"""The highest number of a data frame in a series."""


class SinkOptions(msgspec.Struct, frozen=True):
    """Where rows go as messages, and from which columns their properties come."""

    place: Place
    queue: str
    """Where rows go that name no queue; empty if each has to name one."""
    query: str
    columns: dict[str, str]
    """The columns that options name, by property; `QUEUE` is that of the option queueColumn."""
    batch: int | None = None
    """The number of a data frame in a series; none for a stream, whose batches are numbered."""
    checkpoint: str = ""
    """Where the checkpoint of a stream is, if Spark was told so with this query."""


QUEUE: Final = "queue"
"""What a column gives that says where a row goes, among the properties that columns give."""


PROPERTIES: Final = tuple(
    key for key, row in properties.PROPERTIES.items() if row.sent and row.is_set_by_rows
)
"""Properties of a message that a column can give."""

SINK_OPTIONS: Final = {
    **CONNECTION_OPTIONS,
    "queue": "The transactional queue, by path name or format name, to which messages are sent.",
    "queueColumn": "The column that names the queue of each row; the option queue is for the rest.",
    "query": "Names what is written, which then is written once; by default the id of the query.",
    "batch": "Data frames: the number of this one under the name of the option query, from 0 on.",
    **{
        name: f"The column that gives {name}; by default the one of this name, if there is one."
        for name in PROPERTIES
    },
}
"""The options of writing, for the guides."""


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Read the options of a sink; raises `BadOption`."""
    given = OptionReader(options, SINK_OPTIONS)
    place = given.place()
    if len(place.addresses) != 1:
        raise BadOption("qm", "names several queue managers: messages are sent through one")
    queue, column, query = (given.text(name) for name in ("queue", "queueColumn", "query"))
    if not queue and not column:
        raise BadOption(
            "queue",
            r"is missing: name a queue, such as private$\results, or in the option queueColumn the "
            "column that names one for each row",
        )
    columns = {name: given.text(name) for name in PROPERTIES if given.text(name)}
    if column:
        columns[QUEUE] = column
    batch = _batch(given.text("batch"), query)
    return SinkOptions(place, queue, query, columns, batch, given.text("checkpointLocation"))


def _batch(text: str, query: str) -> int | None:
    """Read the number of a data frame in a series."""
    if not text:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(BATCH_MAX))
    if not (is_number and int(text) <= BATCH_MAX):
        raise BadOption("batch", f"{text[:40]!r} is not a number from 0 to {BATCH_MAX}")
    if not query:
        raise BadOption("batch", "numbers what the option query names: set that, too")
    return int(text)
