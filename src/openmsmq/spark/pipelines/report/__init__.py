"""Pipeline: deliveries to one page that an operator acts on, and can show to a colleague.

    html = report(deliveries)

The page is one file: style, figures and a small script that filters are inside, and it fetches
nothing. Spark computes the numbers; what comes to the driver is bounded (`data`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from openmsmq.spark.pipelines.few import is_here
from openmsmq.spark.pipelines.report.collecting import collect
from openmsmq.spark.pipelines.report.data import Event
from openmsmq.spark.pipelines.report.page import page

__all__ = ["DEFAULT_TITLE", "Event", "report"]

DEFAULT_TITLE: Final = "Delivery of messages"


def report(
    deliveries: DataFrame,
    *,
    title: str = DEFAULT_TITLE,
    events: Sequence[Event] = (),
    before: DataFrame | None = None,
    before_name: str = "the time before",
) -> str:
    """Write the page about what `delivery` gave.

    `events` are drawn on the time axis: what the rows cannot tell, such as that a queue manager was
    started. `before` are the deliveries of another time, such as the day before, to compare with;
    `before_name` is what the page calls them.
    """
    # They are looked at several times, and perhaps not in a table yet.
    keeps = not is_here(deliveries) and not deliveries.is_cached
    if keeps:
        deliveries.persist()
    try:
        data = collect(
            deliveries,
            events=events,
            before=None if before is None else (before_name, before),
        )
    finally:
        if keeps:
            deliveries.unpersist()
    return page(data, title)
