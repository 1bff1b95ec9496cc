"""The options of reading."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Final, TypeAlias

import msgspec

from openmsmq.spark.errors import BadOption
from openmsmq.spark.options import CONNECTION_OPTIONS, OptionReader, Place
from openmsmq.spark.schema import ALL_NAMES, NAMES

PARTITIONS_DEFAULT_COUNT: Final = 8
PARTITIONS_MAX_COUNT: Final = 10_000
READER_DEFAULT: Final = "spark"
ANYTHING: Final = "*"
"""Stands for any characters in the name of a queue."""
TRIGGER_DELAY_DEFAULT_S: Final = 900.0

Places: TypeAlias = tuple[tuple[str, int | str], ...]
"""Names or patterns of queues, and for each an arrival number, `earliest` or `latest`."""

_DELAY: Final = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,9})?) ?(?P<unit>ms|s|m|h)?")
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_KAFKA_WORDS: Final[dict[int, str]] = {-2: "earliest", -1: "latest"}


class Mode(Enum):
    """What a stream does to the messages that it reads."""

    CONSUME = "consume"
    BROWSE = "browse"


class UnreadBatches(Enum):
    """What becomes of a batch that Spark has committed, and that no task has read."""

    STOP = "stop"
    DROP = "drop"


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
    starting_offsets: str | Places
    starting_time_s: int | None
    max_messages: int
    max_bytes: int
    partitions: int
    push_filters: bool
    on_error: OnError
    poison_queue: str
    fail_on_data_loss: bool
    unread_batches: UnreadBatches = UnreadBatches.STOP
    min_messages: int = 0
    max_trigger_delay_s: float = TRIGGER_DELAY_DEFAULT_S
    ending_offsets: str | Places = "latest"


SOURCE_OPTIONS: Final = {
    **CONNECTION_OPTIONS,
    "queue": "Queues, separated by commas; * stands for any characters, *;journal for journals.",
    "columns": "The columns to read, separated by commas; all by default. Fewer are faster.",
    "numPartitions": "Tasks that share the reading of a batch, at most; 8 by default.",
    "onError": "What becomes of undecodable messages: row (default), fail, skip or queue.",
    "poisonQueue": "With onError=queue: the transactional queue that takes them.",
    "pushFilters": "Batches: true lets the tasks filter, where Spark's own setting allows it.",
    "mode": "Streams: consume (default) removes what was processed; browse only looks.",
    "reader": "Streams that consume: the name for which messages are reserved; spark by default.",
    "startingOffsets": "Where a new query begins: earliest (default), latest, or JSON by queue.",
    "endingOffsets": "Batches: latest (default), or JSON with a number for each queue.",
    "startingTime": "Streams: an ISO time; messages that arrived before it are left out.",
    "maxMessagesPerTrigger": "Streams: at most so many messages in a batch; queues share them.",
    "maxBytesPerTrigger": "Streams: about so many bytes in a batch; queues share them.",
    "minMessagesPerTrigger": "Streams: a batch waits for so many messages, but not for ever.",
    "maxTriggerDelay": "Streams: how long it waits for them: seconds, or 90s, 15m (default), 1h.",
    "failOnDataLoss": "Streams: true (default) stops when messages are gone; false goes on.",
    "unreadBatches": "Streams: stop (default) if Spark commits a batch that nobody read, or drop.",
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
    if given.text("startingTime") and given.text("startingOffsets"):
        raise BadOption("startingTime", "contradicts startingOffsets: give one of them")
    return SourceOptions(
        given.place(),
        queues,
        _columns(given),
        given.choice("mode", Mode.CONSUME),
        given.text("reader", READER_DEFAULT) or READER_DEFAULT,
        _places(given, "startingOffsets", "earliest", ("earliest", "latest")),
        _starting_time(given.text("startingTime")),
        given.count("maxMessagesPerTrigger", 0),
        given.count("maxBytesPerTrigger", 0),
        given.count("numPartitions", PARTITIONS_DEFAULT_COUNT, PARTITIONS_MAX_COUNT),
        given.yes("pushFilters", False),
        on_error,
        poison_queue,
        given.yes("failOnDataLoss", True),
        given.choice("unreadBatches", UnreadBatches.STOP),
        given.count("minMessagesPerTrigger", 0),
        _delay(given.text("maxTriggerDelay")),
        _places(given, "endingOffsets", "latest", ("latest",)),
    )


def matches(pattern: str, queue: str) -> bool:
    """Whether the name of a queue is what a name or pattern says; case does not matter."""
    parts = map(re.escape, pattern.split(ANYTHING))
    return re.fullmatch(".*".join(parts), queue, re.IGNORECASE | re.DOTALL) is not None


def _places(given: OptionReader, name: str, default: str, words: tuple[str, ...]) -> str | Places:
    """Read where to begin or end: a word, or JSON with a place for each queue."""
    text = given.text(name, default) or default
    if text.lower() in words:
        return text.lower()
    known = " or ".join(words)
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise BadOption(
            name, f'{text[:80]!r} is neither {known} nor JSON such as {{"private$\\\\orders": 17}}'
        )
    found: list[tuple[str, int | str]] = []
    for queue, place in content.items():
        place = _KAFKA_WORDS.get(place, place) if isinstance(place, int) else place
        is_number = isinstance(place, int) and not isinstance(place, bool) and place >= 0
        if not is_number and place not in words:
            raise BadOption(name, f"{queue}: {place!r} is no arrival number, nor {known}")
        found.append((queue, place))
    return tuple(found)


def _delay(text: str) -> float:
    if not text:
        return TRIGGER_DELAY_DEFAULT_S
    match = _DELAY.fullmatch(text)
    if match is None:
        raise BadOption("maxTriggerDelay", f"{text[:40]!r} is no time such as 90s, 15m or 1h")
    return float(match["number"]) * _UNITS_S[match["unit"] or "s"]


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
