"""Which queue manager and queue a name in a message means, as far as the messages show it.

Messages name queue managers by identity, by address or by computer name; people want one name. A
message that was found in a queue shows what its destination means, and one in a journal of sent
messages shows the identity of the queue manager that has the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from openmsmq.model.identity import NIL_GUID
from openmsmq.model.names import SystemQueue
from openmsmq.spark.pipelines.delivery.evidence import ARRIVED, Evidence

NAMES_MAX_COUNT: Final = 200_000
"""Names that are learned, most used first: every task gets all of them."""

_DIRECT_HOST: Final = r"(?i)^DIRECT=[a-z]+:(?://)?([^\\/]+)[\\/]"
_DIRECT_QUEUE: Final = r"(?i)^DIRECT=[a-z]+:(?://)?[^\\/]+[\\/](.+)$"
_PRIVATE_OWNER: Final = r"(?i)^PRIVATE=\{?([0-9a-f-]{36})\}?\\"
_SEVERAL: Final = r"(?i)^(MULTICAST|DL)=|,"


def known_names(evidence: DataFrame) -> DataFrame:
    """Learn names: key, queue_manager, queue. A key that would mean two things is left out.

    Keys are a whole destination, `host:` with an address or computer, `id:` with an identity.
    """
    queue = F.lower("queue")
    arrived = F.col("evidence").isin(*ARRIVED) & ~F.col("destination").rlike(_SEVERAL)
    at_source = (F.col("evidence") == Evidence.SENT) | queue.endswith(
        SystemQueue.TRANSACTIONAL_DEAD_LETTER.path_text
    )
    # Few rows are left after this, and Spark does it once, however often names are looked up.
    seen = (
        evidence.select(
            "queue_manager",
            F.substring_index("queue", ";", 1).alias("queue"),
            F.when(arrived, F.col("destination")).alias("destination"),
            F.when(at_source, F.col("source_qm")).alias("source_qm"),
        )
        .where("queue_manager IS NOT NULL AND (destination IS NOT NULL OR source_qm IS NOT NULL)")
        .groupBy("queue_manager", "queue", "destination", "source_qm")
        .agg(F.count("*").alias("uses"))
    )
    facts = F.array(
        F.struct(F.col("destination").alias("key"), F.col("queue")),
        F.struct(owner_key(F.col("destination")).alias("key"), _no_text().alias("queue")),
        F.struct(identity_key(F.col("source_qm")).alias("key"), _no_text().alias("queue")),
    )
    place = F.struct("queue_manager", "fact.queue")
    return (
        seen.select("queue_manager", "uses", F.explode(facts).alias("fact"))
        .where(F.col("fact.key").isNotNull())
        .groupBy(F.col("fact.key").alias("key"))
        .agg(F.min(place).alias("least"), F.max(place).alias("most"), F.sum("uses").alias("uses"))
        .where(F.col("least") == F.col("most"))
        .orderBy(F.desc("uses"), "key")
        .limit(NAMES_MAX_COUNT)
        .select("key", "least.queue_manager", "least.queue")
    )


def owner_key(destination: Column) -> Column:
    """The key of the queue manager that a destination names; null if it names none."""
    host = _found(destination, _DIRECT_HOST)
    owner = F.lower(_found(destination, _PRIVATE_OWNER))
    by_identity = F.when(owner != str(NIL_GUID), identity_key(owner))
    return F.coalesce(F.concat(F.lit("host:"), F.lower(host)), by_identity)


def owner_text(destination: Column) -> Column:
    """The address, computer or identity that a destination has, when nothing better is known."""
    return F.coalesce(_found(destination, _DIRECT_HOST), _found(destination, _PRIVATE_OWNER))


def owner_identity(destination: Column) -> Column:
    """The identity of the queue manager that a destination names; null if it is named otherwise."""
    return F.lower(_found(destination, _PRIVATE_OWNER))


def queue_text(destination: Column) -> Column:
    """The path name of the queue in a direct format name, else the whole format name."""
    path = F.regexp_replace(
        _found(destination, _DIRECT_QUEUE), r"(?i)^private\$[\\/]", r"private\$\\"
    )
    return F.coalesce(path, destination)


def identity_key(identity: Column) -> Column:
    """The key of a queue manager by its identity."""
    return F.concat(F.lit("id:"), F.lower(identity))


def given_name(names: Mapping[str, str], identity: Column) -> Column:
    """The name that the user gave for an identity; null if none."""
    if not names:
        return _no_text()
    pairs = [F.lit(text) for pair in names.items() for text in (pair[0].lower(), pair[1])]
    return F.try_element_at(F.create_map(*pairs), F.lower(identity))


def _found(text: Column, pattern: str) -> Column:
    return F.nullif(F.regexp_extract(text, pattern, 1), F.lit(""))


def _no_text() -> Column:
    return F.lit(None).cast("string")
