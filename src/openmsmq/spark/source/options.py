"""The options of reading."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Final

import msgspec

from openmsmq.spark.errors import BadOption
from openmsmq.spark.options import CONNECTION_OPTIONS, OptionReader, Place
from openmsmq.spark.schema import ALL_NAMES, NAMES

PARTITIONS_DEFAULT_COUNT: Final = 8
PARTITIONS_MAX_COUNT: Final = 10_000
READER_DEFAULT: Final = "spark"
EVERY_QUEUE: Final = "*"
EVERY_JOURNAL: Final = "*;journal"


class Mode(Enum):
    """What a stream does to the messages that it reads."""

    CONSUME = "consume"
    BROWSE = "browse"


class OnError(Enum):
    """What becomes of a message whose packet cannot be decoded."""

    FAIL = "fail"
    SKIP = "skip"
    ROW = "row"
    QUEUE = "queue"


class SourceOptions(msgspec.Struct, frozen=True):
    """How queues are read."""

    place: Place
    queues: tuple[str, ...]
    columns: tuple[str, ...]
    mode: Mode
    reader: str
    starting_offsets: str
    starting_time_s: int | None
    max_messages: int
    max_bytes: int
    partitions: int
    push_filters: bool
    on_error: OnError
    poison_queue: str
    fail_on_data_loss: bool


SOURCE_OPTIONS: Final = {
    **CONNECTION_OPTIONS,
    "queue": "Queues, separated by commas; * for all that were created, *;journal for theirs.",
    "columns": "The columns to read, separated by commas; all by default. Fewer are faster.",
    "numPartitions": "Tasks that share the reading of one queue; 8 by default.",
    "onError": "What becomes of undecodable messages: row (default), fail, skip or queue.",
    "poisonQueue": "With onError=queue: the transactional queue that takes them.",
    "pushFilters": "Batches: true lets the tasks filter, where Spark's own setting allows it.",
    "mode": "Streams: consume (default) removes what was processed; browse only looks.",
    "reader": "Streams that consume: the name for which messages are reserved; spark by default.",
    "startingOffsets": "Streams: earliest (default) or latest; counts only for a new query.",
    "startingTime": "Streams: an ISO time; messages that arrived before it are left out.",
    "maxMessagesPerTrigger": "Streams: at most so many messages in a batch; queues share them.",
    "maxBytesPerTrigger": "Streams: about so many bytes in a batch; queues share them.",
    "failOnDataLoss": "Streams: true (default) stops when messages are gone; false goes on.",
}
"""The options of reading, for the guides."""


def read_source_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options of a batch or a stream; raises `BadOption`."""
    given = OptionReader(options, SOURCE_OPTIONS)
    queues = given.texts("queue")
    if not queues:
        raise BadOption("queue", r"is missing: name a queue, such as private$\orders")
    on_error = given.choice("onError", OnError.ROW)
    poison_queue = given.text("poisonQueue")
    if (on_error is OnError.QUEUE) != bool(poison_queue):
        raise BadOption("poisonQueue", "belongs to onError=queue, which needs it")
    starting = given.text("startingOffsets", "earliest").lower()
    if starting not in ("earliest", "latest"):
        raise BadOption("startingOffsets", f"{starting!r} is neither earliest nor latest")
    if given.text("startingTime") and given.text("startingOffsets"):
        raise BadOption("startingTime", "contradicts startingOffsets: give one of them")
    return SourceOptions(
        given.place(),
        queues,
        _columns(given),
        given.choice("mode", Mode.CONSUME),
        given.text("reader", READER_DEFAULT) or READER_DEFAULT,
        starting,
        _starting_time(given.text("startingTime")),
        given.count("maxMessagesPerTrigger", 0),
        given.count("maxBytesPerTrigger", 0),
        given.count("numPartitions", PARTITIONS_DEFAULT_COUNT, PARTITIONS_MAX_COUNT),
        given.yes("pushFilters", False),
        on_error,
        poison_queue,
        given.yes("failOnDataLoss", True),
    )


def _columns(given: OptionReader) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    for name in given.texts("columns"):
        if name not in (*ALL_NAMES, "*"):
            raise BadOption("columns", f"{name!r} is no column; there are {', '.join(ALL_NAMES)}")
        names += NAMES if name == "*" else (name,)
    if len(set(names)) != len(names):
        raise BadOption("columns", "names a column twice")
    return names or NAMES


def _starting_time(text: str) -> int | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise BadOption(
            "startingTime", f"{text!r} is no time; write it like 2026-01-31T08:00:00Z"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return max(0, int(time.timestamp()))
