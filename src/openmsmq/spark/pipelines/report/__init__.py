"""Pipeline: deliveries to one page that a person can show to a colleague.

    html = report(deliveries)

The page is one file: style and plots are inside, it runs no scripts and fetches nothing. Spark
computes the numbers; what comes to the driver is bounded (`data`).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from openmsmq.spark.pipelines.delivery import rollups
from openmsmq.spark.pipelines.report.data import collect
from openmsmq.spark.pipelines.report.page import page

DEFAULT_TITLE: Final = "Delivery of messages"


def report(
    deliveries: DataFrame,
    *,
    by_queue: DataFrame | None = None,
    by_hour: DataFrame | None = None,
    by_link: DataFrame | None = None,
    title: str = DEFAULT_TITLE,
) -> str:
    """Write the page about what `delivery` gave; sums that were not handed over are computed."""
    # They are looked at several times, and perhaps not in a table yet.
    keeps = any(sums is None for sums in (by_queue, by_hour, by_link)) and not deliveries.is_cached
    if keeps:
        deliveries.persist()
    try:
        data = collect(
            deliveries,
            rollups.by_queue(deliveries) if by_queue is None else by_queue,
            rollups.by_hour(deliveries) if by_hour is None else by_hour,
            rollups.by_link(deliveries) if by_link is None else by_link,
        )
    finally:
        if keeps:
            deliveries.unpersist()
    return page(data, title)
