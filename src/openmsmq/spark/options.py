"""The options of the data source, read once and checked before anything is asked for.

Spark hands options over as texts, with names in any case. A name that is not known is refused: a
typing mistake must not silently change what a query does.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from openmsmq.client.settings import Settings
from openmsmq.spark.errors import BadOption
from openmsmq.spark.schema import NAMES

RECONNECT_DEFAULT_S: Final = 60.0
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


class Place(msgspec.Struct, frozen=True):
    """How to reach the queue managers: values only, so that other computers connect alike."""

    addresses: tuple[str, ...]
    token: str
    token_file: str
    tls: bool
    ca: str
    reconnect_within_s: float

    def settings(self, address: str) -> Settings:
        """Make the settings of the client for one of the queue managers, where this runs."""
        token = self.token
        if self.token_file:
            try:
                token = Path(self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise BadOption(
                    "tokenFile", f"{self.token_file} cannot be read on this computer: {error}"
                ) from None
        return Settings(
            address=address,
            token=token,
            tls=self.ca or self.tls,
            reconnect_within_s=self.reconnect_within_s,
        )


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


class SinkOptions(msgspec.Struct, frozen=True):
    """Where rows go as messages, and from which columns their properties come."""

    place: Place
    queue: str
    query: str
    columns: dict[str, str]


_CONNECTION: Final = ("qm", "token", "tokenFile", "tls", "ca", "reconnectWithin")
SOURCE_OPTIONS: Final = {
    "qm": "Addresses of queue managers, separated by commas: host, host:port, or a socket's path.",
    "queue": "Queues, separated by commas; * for all that were created, *;journal for theirs.",
    "token": "The token that the queue managers ask for; tokenFile keeps it out of plans and logs.",
    "tokenFile": "A file with the token, on every computer of the cluster.",
    "tls": "true to connect with TLS, trusting the authorities of each computer.",
    "ca": "A file of certificates to trust, on every computer of the cluster; implies TLS.",
    "reconnectWithin": "Seconds for which a lost queue manager is tried again; 60 by default.",
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

PROPERTIES: Final = (
    "body",
    "label",
    "priority",
    "correlation_id",
    "response_queue",
    "admin_queue",
    "acknowledge",
    "application_tag",
    "body_type",
    "extension",
    "time_to_reach_queue_s",
    "time_to_be_received_s",
    "journal_on_failure",
    "journal_on_success",
    "dead_letter_queue",
)
"""Properties of a message that a column can give."""

SINK_OPTIONS: Final = {
    **{name: SOURCE_OPTIONS[name] for name in _CONNECTION},
    "queue": "The transactional queue, by path name or format name, to which messages are sent.",
    "query": "Names what is written, which then is written once; by default the id of the query.",
    **{
        name: f"The column that gives {name}; by default the one of this name, if there is one."
        for name in PROPERTIES
    },
}
"""The options of writing, for the guides."""

# What Spark itself puts among the options.
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "path", "queryname", "outputmode"})

Choice = TypeVar("Choice", bound=Enum)


class _Reader:
    """Takes options one by one, and notices those that nobody took."""

    def __init__(self, options: Mapping[str, str], known: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        names = {name.lower() for name in known}
        for given in options:
            if given.lower() not in names | _SPARKS_OWN:
                raise BadOption(given, f"is not known; there are {', '.join(known)}")

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name.lower(), default).strip()

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def yes(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        if not text:
            return default
        if text not in ("true", "false"):
            raise BadOption(name, f"{text!r} is neither true nor false")
        return text == "true"

    def count(self, name: str, default: int, highest: int = 1 << 62) -> int:
        text = self.text(name)
        if not text:
            return default
        is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(highest))
        if not (is_number and 0 < int(text) <= highest):
            raise BadOption(name, f"{text[:40]!r} is not a number from 1 to {highest}")
        return int(text)

    def choice(self, name: str, default: Choice) -> Choice:
        text = self.text(name).lower()
        if not text:
            return default
        kind = type(default)
        try:
            return kind(text)
        except ValueError:
            known = ", ".join(str(each.value) for each in kind)
            raise BadOption(name, f"{text!r} is not one of {known}") from None

    def place(self) -> Place:
        addresses = self.texts("qm") or ("127.0.0.1",)
        seconds = self.text("reconnectWithin")
        try:
            within_s = float(seconds) if seconds else RECONNECT_DEFAULT_S
        except ValueError:
            raise BadOption("reconnectWithin", f"{seconds!r} is not a number") from None
        if not 0 <= within_s < float("inf"):
            raise BadOption("reconnectWithin", f"{seconds} is not a number of seconds")
        place = Place(
            addresses,
            self.text("token"),
            self.text("tokenFile"),
            self.yes("tls", False),
            self.text("ca"),
            within_s,
        )
        for address in addresses:
            settings = Settings(address=address)
            if settings.unix_path is None:
                try:
                    _ = settings.host_and_port
                except ValueError as error:
                    raise BadOption("qm", str(error)) from None
        return place


def read_source_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options of a batch or a stream; raises `BadOption`."""
    given = _Reader(options, SOURCE_OPTIONS)
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


def _columns(given: _Reader) -> tuple[str, ...]:
    names = given.texts("columns")
    for name in names:
        if name not in NAMES:
            raise BadOption("columns", f"{name!r} is no column; there are {', '.join(NAMES)}")
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


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Read the options of a sink; raises `BadOption`."""
    given = _Reader(options, SINK_OPTIONS)
    place = given.place()
    if len(place.addresses) != 1:
        raise BadOption("qm", "names several queue managers: messages are sent through one")
    queue = given.text("queue")
    if not queue:
        raise BadOption("queue", r"is missing: name a queue, such as private$\results")
    columns = {name: given.text(name) for name in PROPERTIES if given.text(name)}
    return SinkOptions(place, queue, given.text("query"), columns)
