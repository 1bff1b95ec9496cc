"""The plan of a replay: for each dead letter what would be sent, where, and how.

A plan is a table. It fixes which letters a run sends, with what changes and in which batches, so
that a run that is repeated does the same. Nothing in it needs the letters that it does not name.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

import msgspec
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from openmsmq.client.blocking import QueueManager
from openmsmq.client.messages.outgoing import format_name_of
from openmsmq.model.errors import MsmqError, RemoteMachineNotAvailable
from openmsmq.model.message import MessageClass
from openmsmq.spark.connecting import connected, explained
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.pipelines.replay.letters import KEY, SETTABLE, Transform, letter_options
from openmsmq.spark.pipelines.replay.packets import is_addressable
from openmsmq.spark.schema import spark_schema
from openmsmq.spark.source.options import read_source_options

BATCH_MAX_COUNT: Final = 1000
"""Messages that are sent together."""

BATCH_MAX_BYTES: Final = 16 << 20
"""Bytes after which a batch takes no more messages."""

DESTINATIONS_MAX_COUNT: Final = 10_000
"""Different destinations of one plan."""

_TOKEN_BYTES: Final = 8
"""A plan is told by it from one of another audit table whose run has the same name."""

PLANNED: Final = "planned"
SKIPPED: Final = "skipped"

_CHANGEABLE: Final = tuple(name for name in SETTABLE if name != "destination")
_CHANGES: Final = spark_schema(_CHANGEABLE)
_NEEDED: Final = (
    *KEY,
    "arrival_number",
    "message_id",
    "label",
    "reason",
    "age_s",
    "destination",
    "transactional",
    "encrypted",
    "error",
    "size",
    "new_destination",
    "changed",
    "changes",
)
PLAN: Final = StructType(
    [
        StructField("queue_manager", StringType()),
        StructField("queue", StringType()),
        StructField("lookup_id", LongType()),
        StructField("arrival_number", LongType()),
        StructField("message_id", StringType()),
        StructField("label", StringType()),
        StructField("reason", StringType()),
        StructField("age_s", LongType()),
        StructField("destination", StringType()),
        StructField("new_destination", StringType()),
        StructField("address", StringType()),
        StructField("method", StringType()),
        StructField("batch", IntegerType()),
        StructField("changed", ArrayType(StringType())),
        StructField("changes", _CHANGES),
        StructField("action", StringType()),
        StructField("note", StringType()),
        StructField("token", StringType()),
    ]
)
"""The columns of a plan."""


class Method(Enum):
    """How a message is sent and its dead letter removed."""

    TOGETHER = "together"
    """Both in one transaction."""
    SENT_FIRST = "sent first"
    """In a transaction that is known by its batch; the letter is removed when it is committed."""
    ONE_BY_ONE = "one by one"
    """Without a transaction: the queue takes none."""


class Route(msgspec.Struct, frozen=True):
    """Where the letters of one queue with one destination go, and how; or why they do not."""

    queue_manager: str
    queue: str
    new_destination: str
    in_transaction: bool
    address: str | None = None
    method: str | None = None
    problem: str | None = None


_ROUTES: Final = (
    "queue_manager string, queue string, new_destination string, in_transaction boolean, "
    "address string, method string, problem string"
)
_ROUTE_KEY: Final = ("queue_manager", "queue", "new_destination", "in_transaction")


def plan_replay(
    letters: DataFrame,
    options: Mapping[str, str],
    *,
    transform: Transform | None = None,
    to: str = "",
    taken: DataFrame | None = None,
) -> DataFrame:
    """Say for each dead letter what would be sent where; nothing is sent, and nothing changed.

    `transform` gets the letters and gives those that are to be sent, changed as it likes; it must
    keep the columns that name a letter. `to` is the one queue for all of them. `taken` names
    letters that an unfinished run has begun to send.
    """
    # Most columns are only of interest to who changes them.
    rows = _with_changes(letters, transform).select(*_NEEDED)
    rows = rows.withColumns(
        {
            "new_destination": F.lit(to) if to else F.col("new_destination"),
            "in_transaction": _in_transaction(),
        }
    )
    rows = _with_routes(rows, options)
    rows = _with_runs(rows, taken)
    rows = rows.withColumn("note", _note())
    rows = rows.withColumns(
        {
            "action": F.when(F.col("note").isNull(), PLANNED).otherwise(SKIPPED),
            "method": F.when(F.col("note").isNull(), F.col("method")),
        }
    )
    rows = _with_batches(rows)
    rows = rows.withColumn("token", F.lit(secrets.token_hex(_TOKEN_BYTES)))
    return rows.select(*(F.col(field.name).cast(field.dataType) for field in PLAN.fields))


# What is changed.


def _with_changes(letters: DataFrame, transform: Transform | None) -> DataFrame:
    """Return the letters that are left after a transformation, and what it has changed of each."""
    letters = letters.withColumn("size", F.octet_length("body") + F.octet_length("extension"))
    if transform is None:
        return letters.withColumns(
            {
                "new_destination": F.col("destination"),
                "changed": F.array().cast(ArrayType(StringType())),
                "changes": F.lit(None).cast(_CHANGES),
            }
        )
    after = _as_text(transform(letters))
    _require_letters(after)
    present = [name for name in SETTABLE if name in after.columns]
    types = {field.name: field.dataType for field in spark_schema(present)}
    new = after.select(
        *KEY, *(F.col(name).cast(types[name]).alias(f"new_{name}") for name in present)
    )
    rows = letters.join(new, list(KEY))
    if "destination" not in present:
        rows = rows.withColumn("new_destination", F.col("destination"))
    differs = {
        name: ~F.col(name).eqNullSafe(F.col(f"new_{name}"))
        for name in _CHANGEABLE
        if name in present
    }
    names = [F.when(condition, F.lit(name)) for name, condition in differs.items()]
    fields = [
        (
            F.when(differs[field.name], F.col(f"new_{field.name}"))
            if field.name in differs
            else F.lit(None)
        )
        .cast(field.dataType)
        .alias(field.name)
        for field in _CHANGES.fields
    ]
    return rows.withColumns(
        {"changed": F.array_compact(F.array(*names)), "changes": F.struct(*fields)}
    )


def _as_text(letters: DataFrame) -> DataFrame:
    """Take a body that has become text for what it is."""
    types = {field.name: field.dataType for field in letters.schema.fields}
    if isinstance(types.get("body"), StringType):
        return letters.withColumn("text", F.col("body")).drop("body")
    return letters


def _require_letters(after: DataFrame) -> None:
    missing = [name for name in KEY if name not in after.columns]
    if missing:
        raise BadOption("transform", f"leaves out {', '.join(missing)}, which name a dead letter")
    if after.groupBy(*KEY).count().where("count > 1").limit(1).collect():
        raise BadOption("transform", "makes several rows of one dead letter: it is sent once")


# Where it goes.


def _in_transaction() -> Column:
    """Return whether a destination that cannot be asked takes messages in transactions.

    A letter that was refused because of that tells; otherwise it is as it was.
    """
    return (
        F.when(F.col("reason") == MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE.name, False)
        .when(F.col("reason") == MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE.name, True)
        .otherwise(F.col("transactional"))
    )


def _with_routes(rows: DataFrame, options: Mapping[str, str]) -> DataFrame:
    """Ask the queue managers about each destination, once."""
    known = rows.where(F.col("error").isNull() & F.col("new_destination").isNotNull())
    wanted = known.select(*_ROUTE_KEY).distinct().limit(DESTINATIONS_MAX_COUNT + 1).collect()
    if len(wanted) > DESTINATIONS_MAX_COUNT:
        raise QueueProblem(
            f"the dead letters have more than {DESTINATIONS_MAX_COUNT} destinations: choose fewer"
        )
    routes = find_routes([Route(*row) for row in wanted], options)
    table = rows.sparkSession.createDataFrame(
        [msgspec.structs.astuple(route) for route in routes], _ROUTES
    )
    return rows.join(F.broadcast(table), list(_ROUTE_KEY), "left")


def find_routes(wanted: Iterable[Route], options: Mapping[str, str]) -> list[Route]:
    """Find the way to each destination, through the queue manager that has the letters."""
    place = read_source_options(letter_options(options)).place
    by_manager: dict[str, list[Route]] = {}
    for route in wanted:
        by_manager.setdefault(route.queue_manager, []).append(route)
    found: list[Route] = []
    for address in place.addresses:
        with connected(place, address) as manager:
            for route in by_manager.get(manager.name, ()):
                with explained(address, route.queue):
                    transactional = manager.queue(route.queue).properties().transactional
                found.append(_route(manager, route, transactional))
    return found


def _route(manager: QueueManager, wanted: Route, letters_transactional: bool) -> Route:
    try:
        address = format_name_of(wanted.new_destination, manager.name)
        in_transaction = wanted.in_transaction
        try:
            status = manager.queue(wanted.new_destination).properties()
            in_transaction = status.transactional
            address = format_name_of(status.format_name, manager.name)
        except RemoteMachineNotAvailable:
            # It waits in an outgoing queue then, as it did before.
            pass
    except MsmqError as error:
        return msgspec.structs.replace(wanted, problem=str(error))
    if not is_addressable(address):
        return msgspec.structs.replace(
            wanted, problem=f"{address}: only DIRECT= and PRIVATE= names can be sent to"
        )
    method = Method.ONE_BY_ONE
    if in_transaction:
        method = Method.TOGETHER if letters_transactional else Method.SENT_FIRST
    return msgspec.structs.replace(wanted, address=str(address), method=method.value)


# What is not sent.


def _with_runs(rows: DataFrame, taken: DataFrame | None) -> DataFrame:
    """Note which letters a run that is not finished may have sent already."""
    if taken is None:
        return rows.withColumn("unfinished_run", F.lit(None).cast("string"))
    runs = taken.groupBy(*KEY, "message_id").agg(F.min("run").alias("unfinished_run"))
    return rows.join(runs, [*KEY, "message_id"], "left")


def _note() -> Column:
    """Return why a letter is not sent; null if it is."""
    return (
        F.when(F.col("error").isNotNull(), F.concat(F.lit("it cannot be decoded: "), "error"))
        .when(
            F.col("unfinished_run").isNotNull(),
            F.concat(
                F.lit("run "),
                "unfinished_run",
                F.lit(" has begun to send it and has not finished: repeat that run first"),
            ),
        )
        .when(
            F.col("new_destination").isNull(),
            "it does not say to which queue it was sent: name one",
        )
        .when(
            F.col("encrypted") & (F.size("changed") > 0),
            "it is encrypted: it can only be sent as it is",
        )
        # A letter that came after the destinations were asked about.
        .when(F.col("problem").isNull() & F.col("method").isNull(), "it is new: plan it again")
        .otherwise(F.col("problem"))
    )


def _with_batches(rows: DataFrame) -> DataFrame:
    """Number the batches: in the order of arrival, and each with one method."""
    arrivals = Window.partitionBy("queue_manager", "method").orderBy("queue", "arrival_number")
    by_count = F.floor((F.row_number().over(arrivals) - 1) / BATCH_MAX_COUNT)
    by_size = F.floor(F.coalesce(F.sum("size").over(arrivals), F.lit(0)) / BATCH_MAX_BYTES)
    batches = Window.partitionBy("queue_manager").orderBy("method", "part")
    return rows.withColumn("part", by_count + by_size).withColumn(
        "batch", F.when(F.col("method").isNotNull(), F.dense_rank().over(batches))
    )
