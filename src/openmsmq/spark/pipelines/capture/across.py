"""What only a comparison of sessions shows: messages sent again, lost, or out of sequence.

Sessions end and others go on where they stopped, in this file or the next. Messages are compared
between the same two addresses, so that one that is passed on is not taken for one sent again.
The rules are those of `openmsmq.analysis.comparison`, for more messages than fit into a memory.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from openmsmq.analysis.comparison import SENTENCES
from openmsmq.analysis.kinds import AnomalyKind, Fate, severity
from openmsmq.spark.pipelines.capture.rows import ANOMALIES
from openmsmq.wire.bodies.acknowledgments import OrderAck

_LINK: Final = ("source_address", "destination_address")
# A message to several queues of one computer has the same identifier in each.
_MESSAGE: Final = (*_LINK, "destination", "message_id")
_ORDER: Final = ("time", "file", "frame", "stream_offset")


def with_copies(packets: DataFrame) -> DataFrame:
    """Return the messages among packets, with a column `copy`: 1 when sent the first time."""
    copies = Window.partitionBy(*_MESSAGE).orderBy(*_ORDER)
    number = F.row_number().over(copies)
    return packets.where(F.col("message_id").isNotNull()).withColumn("copy", number)


def session_figures(messages: DataFrame) -> DataFrame:
    """Return what messages say about their sessions: how many came again, and round trips."""
    return messages.groupBy("session").agg(
        F.sum((F.col("copy") > 1).cast("long")).alias("resent_messages"),
        F.percentile_approx("round_trip_ms", 0.5).alias("round_trip_p50_ms"),
        F.percentile_approx("round_trip_ms", 0.95).alias("round_trip_p95_ms"),
    )


def anomalies_across(messages: DataFrame) -> DataFrame:
    """Find messages that were sent again, lost, or are out of sequence."""
    copies = Window.partitionBy(*_MESSAGE)
    # Messages outside of sequences are kept apart from each other, or one task would get them all.
    sequence = F.coalesce("sequence_id", "message_id")
    before = (
        Window.partitionBy(*_LINK, "source_qm", "destination", sequence)
        .orderBy(*_ORDER)
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    is_first = F.col("copy") == 1
    is_order_ack = F.col("packet") == OrderAck.__name__
    is_acknowledged = (F.col("fate") == Fate.ACKNOWLEDGED).cast("int")
    number = F.col("sequence_number")
    compared = messages.withColumns(
        {
            "copies": F.max("copy").over(copies),
            "acknowledged": F.max(is_acknowledged).over(copies),
            "sent_before": F.max(F.when(F.col("transactional") & is_first, number)).over(before),
            "acked_before": F.max(F.when(is_order_ack & is_first, number)).over(before),
        }
    )
    findings = F.array_compact(
        F.array(
            _finding(AnomalyKind.RESENT_MESSAGE, F.col("copy") > 1),
            _finding(
                AnomalyKind.UNACKNOWLEDGED_MESSAGE,
                (F.col("copy") == F.col("copies"))
                & (F.col("acknowledged") == 0)
                & (F.col("fate") == Fate.UNACKNOWLEDGED),
            ),
            _finding(
                AnomalyKind.SEQUENCE_GAP,
                F.col("transactional")
                & is_first
                & (F.col("previous_number") > F.col("sent_before")),
            ),
            _finding(
                AnomalyKind.ORDER_ACK_BACK,
                is_order_ack & is_first & (number < F.col("acked_before")),
            ),
        )
    )
    found = compared.withColumn("finding", F.explode(findings)).withColumns(
        {name: F.col(f"finding.{name}") for name in ("kind", "severity", "description")}
    )
    return found.select(*(column.name for column in ANOMALIES))


def _finding(kind: AnomalyKind, condition: Column) -> Column:
    """Return the finding where the condition holds, and null elsewhere."""
    text, *names = SENTENCES[kind]
    description = F.format_string(text, *(F.col(name).cast("string") for name in names))
    return F.when(
        condition,
        F.struct(
            F.lit(kind.value).alias("kind"),
            F.lit(severity(kind).value).alias("severity"),
            description.alias("description"),
        ),
    )
