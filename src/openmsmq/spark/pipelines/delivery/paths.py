"""The way of a message: which queue managers had it, and since when, as far as reports tell.

A trace report names its message by four digits of the source's identity and by the number of the
message [MQQB 3.1.5.8.9]. Two sources can share the digits: then the destination decides, and if
that does not either, the report is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from openmsmq.model.message import MessageClass
from openmsmq.spark.pipelines.delivery.evidence import Evidence
from openmsmq.spark.pipelines.delivery.names import given_name, identity_key

PATH_TYPE: Final = "array<struct<queue_manager:string,time:timestamp>>"
"""The type of the column `path`."""

_LABEL: Final = r"(?i)^([0-9a-f]{4}:[0-9a-f]{8}):([0-9a-f]{2}) (received|sent) by "
_TARGET: Final = r"<TARGET QUEUE>([^<\r\n]*)<"
_ID_SOURCE: Final = r"^\{([0-9a-fA-F-]{36})\}\\[0-9]{1,10}$"
_ID_NUMBER: Final = r"^\{[0-9a-fA-F-]{36}\}\\([0-9]{1,10})$"


def source_of(message_id: Column) -> Column:
    """The identity of the queue manager that sent a message, from the message's identifier."""
    return F.lower(F.nullif(F.regexp_extract(message_id, _ID_SOURCE, 1), F.lit("")))


def short_of(message_id: Column) -> Column:
    """How trace reports name a message: four digits of its source, and its number."""
    number = F.regexp_extract(message_id, _ID_NUMBER, 1).try_cast("bigint")
    digits = F.upper(F.substring(source_of(message_id), 1, 4))
    return F.concat(digits, F.lit(":"), F.lpad(F.hex(number), 8, "0"))


def departures(evidence: DataFrame) -> DataFrame:
    """Reports that show a message leaving its source: only these say its whole identifier."""
    reports = _reports(evidence)
    identity = F.lower("reporter")
    own = F.upper(F.substring("reporter", 1, 4)) == F.substring("short", 1, 4)
    number = F.conv(F.substring("short", 6, 8), 16, 10)
    return reports.where(F.col("departed") & (F.col("hop") == 0) & own).select(
        F.concat(F.lit("{"), identity, F.lit("}\\"), number).alias("about"),
        F.col("time").alias("left_time"),
        F.nullif(F.col("target"), F.lit("")).alias("target"),
    )


def hops_by_message(evidence: DataFrame, known: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """Collect the reports about each message: short, and an array of hops.

    A hop is one queue manager: how many had passed the message on before, whether it passed it on
    too, the first time it reported, its identity, its name if known, and the message's target.
    """
    by_manager = (
        _reports(evidence)
        .groupBy("short", "target", "reporter")
        .agg(
            F.max("hop").alias("hop"),
            F.bool_or("departed").alias("departed"),
            F.min("time").alias("time"),
        )
        .withColumn("key", identity_key(F.col("reporter")))
        .join(F.broadcast(known.select("key", "queue_manager")), "key", "left")
    )
    hop = F.struct(
        "hop",
        # At the same count, who passed it on had it before who did not.
        F.when(F.col("departed"), 0).otherwise(1).alias("rank"),
        "time",
        "reporter",
        F.coalesce(given_name(names, F.col("reporter")), F.col("queue_manager")).alias("name"),
        "target",
    )
    return by_manager.groupBy("short").agg(F.collect_list(hop).alias("hops"))


def with_hops(messages: DataFrame, hops: DataFrame) -> DataFrame:
    """Assign each message the hops that are surely its own, in their order.

    Messages have the column `short`, and those that share one are in the same partition.
    """
    alike = Window.partitionBy("short")
    alike_and_there = Window.partitionBy("short", F.lower("destination"))
    own = F.filter(F.col("hops"), lambda hop: F.lower(hop["target"]) == F.lower("destination"))
    chosen = F.when(F.col("alike") == 1, F.col("hops")).when(F.col("alike_there") == 1, own)
    return (
        messages.withColumns(
            {
                "alike": F.count("*").over(alike),
                "alike_there": F.count("*").over(alike_and_there),
            }
        )
        .join(hops, "short", "left")
        .withColumn("hops", F.array_sort(chosen))
    )


def path_of(reached: Column, reached_time: Column) -> Column:
    """Make the path: the source, the hops between, and the destination if it was reached.

    Takes the columns source_qm, source_queue_manager, sent_time, hops and
    destination_queue_manager.
    """
    destination = F.col("destination_queue_manager")
    between = F.filter(
        F.coalesce(F.col("hops"), F.array()), lambda hop: hop["reporter"] != F.col("source_qm")
    )
    count = F.size(between)

    def node(hop: Column, index: Column) -> Column:
        # Reports know identities only. The last is of the destination, if that was reached.
        is_last = (index == count - 1) & (hop["rank"] == 1) & reached
        name = F.coalesce(hop["name"], F.when(is_last, destination), hop["reporter"])
        return F.struct(name.alias("queue_manager"), hop["time"].alias("time"))

    nodes = F.transform(between, node).cast(PATH_TYPE)
    start = F.array(F.struct("source_queue_manager", "sent_time")).cast(PATH_TYPE)
    walked = F.concat(start, nodes)
    end = F.array(F.struct(destination, reached_time)).cast(PATH_TYPE)
    arrived = F.element_at(walked, -1)["queue_manager"] == destination
    return F.when(reached & destination.isNotNull() & ~arrived, F.concat(walked, end)).otherwise(
        walked
    )


def _reports(evidence: DataFrame) -> DataFrame:
    """Read trace reports; what is no report by its label is left out."""
    # Bodies are UTF-16 from anybody: bytes are taken one by one, which no body can make fail, and
    # only plain letters matter here.
    body = F.translate(F.decode("body", "ISO-8859-1"), "\0", "")
    # The class is named apart, because Spark can skip parts of a table by it.
    reports = evidence.where(F.col("message_class") == int(MessageClass.REPORT))
    return reports.where(
        (F.col("evidence") == Evidence.TRACE) & F.col("label").rlike(_LABEL)
    ).select(
        F.upper(F.regexp_extract("label", _LABEL, 1)).alias("short"),
        F.conv(F.regexp_extract("label", _LABEL, 2), 16, 10).cast("int").alias("hop"),
        (F.lower(F.regexp_extract("label", _LABEL, 3)) == "sent").alias("departed"),
        F.lower("source_qm").alias("reporter"),
        # When the report was written; the time in its label depends on a place and a language.
        F.col("sent_time").alias("time"),
        F.coalesce(F.regexp_extract(body, _TARGET, 1), F.lit("")).alias("target"),
    )
