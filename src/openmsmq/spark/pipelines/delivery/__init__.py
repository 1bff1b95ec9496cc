"""What became of each message: one row per message from the queues of many queue managers.

Rows of destination queues, journals, administration queues, report queues and dead-letter queues
come in, in any number of tables put together, in any order and also twice. What each row proves is
decided in `evidence`, what follows from it in `outcomes`. Nothing is collected
on the driver, unless the caller says that there are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from openmsmq.spark.pipelines.delivery import names as naming
from openmsmq.spark.pipelines.delivery.evidence import classify, without_bodies
from openmsmq.spark.pipelines.delivery.facts import facts_of
from openmsmq.spark.pipelines.delivery.outcomes import judged
from openmsmq.spark.pipelines.delivery.paths import hops_by_message, source_of, with_hops
from openmsmq.spark.pipelines.few import local

COLUMNS: Final = (
    "message_id",
    "label",
    "source_qm",
    "source_queue_manager",
    "destination",
    "destination_queue_manager",
    "destination_queue",
    "sent_time",
    "priority",
    "transactional",
    "size_bytes",
    "outcome",
    "reason",
    "arrived",
    "in_doubt",
    "acknowledge",
    "reached_time",
    "received_time",
    "latency_reach_s",
    "latency_receive_s",
    "path",
    "dead_letter_reason",
    "found_in",
)
"""The columns of the result."""


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
    row came into its queue. `lost_after_s` shortens the time after which a message of which
    nothing is heard is no more in transit. `names` gives names for identities of queue managers,
    beside those that the messages show.

    With `few`, the messages are few: then this computes the result now, step by step.
    """

    def step(rows: DataFrame) -> DataFrame:
        return local(rows) if few else rows

    evidence = step(without_bodies(classify(messages, taken=taken, columns=columns)))
    known = step(naming.known_names(evidence))
    placed = _with_names(step(facts_of(evidence, as_of)), known, names or {})
    traced = with_hops(placed, step(hops_by_message(evidence, known, names or {})))
    return step(judged(traced, lost_after_s).select(*COLUMNS))


def _with_names(facts: DataFrame, known: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Return which queue managers and queue it is about, by the best names there are."""
    source = known.select(
        F.col("key").alias("source_key"), F.col("queue_manager").alias("source_name")
    )
    owner = known.select(
        F.col("key").alias("owner_key"), F.col("queue_manager").alias("owner_name")
    )
    target = known.select(
        F.col("key").alias("destination"), F.struct("queue_manager", "queue").alias("learned")
    )
    destination = F.col("destination")
    given = naming.given_name(names, naming.owner_identity(destination))
    surely = F.coalesce("place.queue_manager", "learned.queue_manager", given, "owner_name")
    given_source = naming.given_name(names, F.col("source_qm"))
    identified = facts.withColumns(
        {
            "source_qm": source_of(F.col("message_id")),
            "source_key": naming.identity_key(source_of(F.col("message_id"))),
            "owner_key": naming.owner_key(destination),
        }
    )
    return (
        identified.join(F.broadcast(source), "source_key", "left")
        .join(F.broadcast(owner), "owner_key", "left")
        .join(F.broadcast(target), "destination", "left")
        .withColumns(
            {"surely_to": surely, "surely_from": F.coalesce(given_source, F.col("source_name"))}
        )
        .withColumns(
            {
                "source_queue_manager": F.coalesce("surely_from", "source_qm"),
                "destination_queue_manager": F.coalesce(
                    F.col("surely_to"), naming.owner_text(destination)
                ),
                "destination_queue": F.coalesce(
                    "place.queue", "learned.queue", naming.queue_text(destination)
                ),
            }
        )
    )
