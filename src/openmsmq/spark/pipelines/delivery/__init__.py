"""What became of each message: one row per message from the queues of many queue managers.

Rows of destination queues, journals, administration queues, report queues and dead-letter queues
come in, in any number of tables put together, in any order and also twice. What each row proves is
decided in `evidence`, what all rows say about a message in `facts`, what follows from it in
`outcomes`: in plain Python, which tasks of Spark run where there are many rows. Then nothing is
collected on the driver.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, groupby
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.model.message import MessageClass
from openmsmq.spark.pipelines.delivery.evidence import TAKEN, Seen, require_columns
from openmsmq.spark.pipelines.delivery.facts import LEARNED, SECOND, Proof, proof_of, with_names
from openmsmq.spark.pipelines.delivery.names import NAMES_MAX_COUNT, Place, learned_from
from openmsmq.spark.pipelines.delivery.outcomes import Delivery, Judge
from openmsmq.spark.pipelines.few import of_rows
from openmsmq.spark.pipelines.plain_rows import (
    TIME,
    batches_of,
    in_tasks,
    one_by_one,
    schema_of,
    tuples_of,
)

COLUMNS: Final = Delivery._fields
"""The columns of the result."""

SCHEMA: Final = schema_of(
    Delivery,
    **dict.fromkeys(("sent_time", "reached_time", "received_time"), TIME),
    **dict.fromkeys(("priority", "acknowledge"), pa.int32()),
    path=pa.list_(pa.struct([("queue_manager", pa.string()), ("time", TIME)])),
    found_in=pa.list_(pa.string()),
)
_PROOFS: Final = schema_of(Proof)
_PROVED: Final = tuple(name for name in Proof._fields if name not in LEARNED)
_LEARNED: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("key", "queue_manager", "queue")),
        ("uses", pa.int64()),
    ]
)


def delivery(
    messages: DataFrame,
    *,
    as_of: datetime | None = None,
    lost_after_s: int | None = None,
    names: Mapping[str, str] | None = None,
    taken: bool = False,
    columns: Sequence[str] | None = None,
    few: bool = False,
) -> DataFrame:
    """Return what became of each message: one row per message identifier, with `COLUMNS`.

    `messages` has the columns of `openmsmq.spark.schema`: rows of any queues of any queue
    managers. `taken` says that their reader took them out of the queues, as a stream does that
    consumes; a column `taken` says it of each row. `columns` are those of `messages`, for who must
    not ask Spark for them.

    `as_of` is the moment at which lifetimes are looked at; without it, the latest time at which a
    row came into its queue: times that senders wrote are not trusted for it. `lost_after_s`
    shortens the time after which a message of which nothing is heard is no more in transit.
    `names` gives names for identities of queue managers, beside those that the messages show.

    With `few`, the messages are few: then this computes the result now, without tasks.
    """
    known_columns = messages.columns if columns is None else columns
    require_columns(known_columns)
    was_taken = F.col(TAKEN) if TAKEN in known_columns else F.lit(taken)
    seen = messages.select(*_seen(was_taken))
    given = {identity.lower(): name for identity, name in (names or {}).items()}
    judge = Judge(given, lost_after_s)
    moment = None if as_of is None else round(as_of.timestamp() * SECOND)
    return (_few if few else _many)(seen, judge, moment)


def _seen(was_taken: Column) -> Iterator[Column]:
    """Return the columns of `Seen`."""
    body = F.col("body")
    made = {
        # Bodies may be large, and a table that is small on disk may have many that are alike.
        "body": F.when(F.col("message_class") == int(MessageClass.REPORT), body),
        "size_bytes": F.octet_length(body).cast("bigint"),
        TAKEN: was_taken,
    }
    return (made.get(name, F.col(name)).alias(name) for name in Seen._fields)


def _few(seen: DataFrame, judge: Judge, moment: int | None) -> DataFrame:
    rows = list(tuples_of(seen.toArrow(), Seen._make))
    meanings: dict[str, set[Place]] = defaultdict(set)
    for row in rows:
        for key, place in learned_from(row):
            meanings[key].add(place)
    known = {key: places.pop() for key, places in meanings.items() if len(places) == 1}
    if moment is None:
        times = (row.arrived_time for row in rows if row.arrived_time is not None)
        moment = max(times, default=None)
    proofs = [with_names(proof, known, moment) for proof in map(proof_of, rows) if proof]
    return of_rows(seen.sparkSession, _judged(judge, sorted(proofs, key=_group)), SCHEMA)


def _many(seen: DataFrame, judge: Judge, moment: int | None) -> DataFrame:
    last = F.max("arrived_time") if moment is None else F.timestamp_micros(F.lit(moment))
    as_of = seen.agg(F.unix_micros(last).alias("as_of"))
    group = F.coalesce("short", "about")
    proofs = in_tasks(seen, one_by_one(Seen._fields), _prove, _PROOFS).select(*_PROVED)
    named = (
        _with_names(proofs, _known_names(seen))
        .crossJoin(F.broadcast(as_of))
        .groupBy(group)
        .agg(F.collect_list(F.struct(*Proof._fields)).alias("proofs"))
    )
    return in_tasks(named, F.col("proofs"), partial(_judge_rows, judge), SCHEMA)


def _known_names(seen: DataFrame) -> DataFrame:
    """Learn names: key, queue_manager, queue. A key that would mean two things is left out."""
    place = F.struct("queue_manager", "queue")
    return (
        in_tasks(seen, one_by_one(Seen._fields), _learn, _LEARNED)
        .groupBy("key")
        .agg(F.min(place).alias("least"), F.max(place).alias("most"), F.sum("uses").alias("uses"))
        .where(F.col("least") == F.col("most"))
        .orderBy(F.desc("uses"), "key")
        .limit(NAMES_MAX_COUNT)
        .select("key", "least.queue_manager", "least.queue")
    )


def _with_names(proofs: DataFrame, known: DataFrame) -> DataFrame:
    """Add the names that were learned, as `with_names` does it."""
    made = {
        "source_key": {"queue_manager": "source_name"},
        "owner_key": {"queue_manager": "owner_name"},
        "destination": {"queue_manager": "destination_manager", "queue": "destination_queue"},
    }
    for key, names in made.items():
        found = known.select(
            F.col("key").alias(key), *(F.col(name).alias(as_) for name, as_ in names.items())
        )
        proofs = proofs.join(F.broadcast(found), key, "left")
    return proofs


# In tasks.


def _prove(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = chain.from_iterable(tuples_of(batch, Seen._make) for batch in batches)
    return batches_of((proof for proof in map(proof_of, rows) if proof), _PROOFS)


def _learn(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    uses: Counter[tuple[str, Place]] = Counter()
    for batch in batches:
        for row in tuples_of(batch, Seen._make):
            uses.update(learned_from(row))
    return batches_of(((key, *place, count) for (key, place), count in uses.items()), _LEARNED)


def _judge_rows(judge: Judge, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = chain.from_iterable(tuples_of(batch, Proof._make) for batch in batches)
    return batches_of(_judged(judge, rows), SCHEMA)


def _judged(judge: Judge, proofs: Iterable[Proof]) -> Iterator[Delivery]:
    """Judge rows of which those about the same message stand together."""
    for _, rows in groupby(proofs, _group):
        yield from judge.judged(list(rows))


def _group(proof: Proof) -> str:
    return proof.short or proof.about or ""
