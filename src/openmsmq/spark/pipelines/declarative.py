r"""Messages and their delivery as a declarative pipeline of Spark: what is kept, not how.

A definitions file of a project of Spark Declarative Pipelines says which queues are read:

    define({"alpha": {"qm": "127.0.0.2", "queue": r"private$\orders", "mode": "browse"}})

and each run of `spark-pipelines` brings these tables up to date:

| Table | Kind | Content |
|---|---|---|
| `messages` | streaming table | every message that was read |
| `delivery` | materialized view | what became of each message |
| `by_queue`, `by_hour`, `by_link` | materialized views | deliveries summed up |

`messages` has the columns of the data source, and `taken`: whether it was taken out of its queue.
`openmsmq pipeline init` writes such a project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from openmsmq.spark.errors import BadOption
from openmsmq.spark.pipelines.delivery import delivery
from openmsmq.spark.pipelines.delivery.evidence import TAKEN
from openmsmq.spark.pipelines.delivery.rollups import by_hour, by_link, by_queue
from openmsmq.spark.schema import NAMES
from openmsmq.spark.source.options import Mode, read_source_options

MESSAGES: Final = "messages"
DELIVERY: Final = "delivery"
READER: Final = "declarative"
"""The reader for which messages are reserved, if nobody names another one."""

_SUMS: Final[dict[str, tuple[Callable[[DataFrame], DataFrame], str]]] = {
    "by_queue": (by_queue, "Deliveries by destination queue."),
    "by_hour": (by_hour, "Deliveries by the hour of sending."),
    "by_link": (by_link, "Deliveries by link between two queue managers."),
}


def define(
    sources: Mapping[str, Mapping[str, str]],
    *,
    names: Mapping[str, str] | None = None,
    lost_after_s: int | None = None,
) -> None:
    """Define the tables of messages from these sources, and of what became of the messages.

    Each source has a name, under which Spark keeps how far it was read, and the options of the
    data source `msmq`. `names` and `lost_after_s` are those of `delivery`. To be called in a
    definitions file: what is defined belongs to the pipeline that loads the file.
    """
    if not sources:
        raise BadOption("queue", "is missing: name at least one source")
    for name, options in sources.items():
        _check(name, options)
    pipelines.create_streaming_table(MESSAGES, comment="Messages as they were read from queues.")
    for name, options in sources.items():
        pipelines.append_flow(target=MESSAGES, name=name)(_reading({"reader": READER, **options}))

    messages = _define_view(MESSAGES)

    def delivered() -> DataFrame:
        # The columns are told, because a definition must not ask Spark for them.
        return delivery(
            _table(messages), names=names, lost_after_s=lost_after_s, columns=(*NAMES, TAKEN)
        )

    pipelines.materialized_view(name=DELIVERY, comment="What became of each message.")(delivered)
    deliveries = _define_view(DELIVERY)
    for name, (sum_up, comment) in _SUMS.items():
        pipelines.materialized_view(name=name, comment=comment)(_summing(sum_up, deliveries))


def _check(name: str, options: Mapping[str, str]) -> None:
    """Refuse a source that cannot be read, before a run is begun."""
    if not (name.isascii() and name.isidentifier()):
        raise BadOption(name, "is no name of a source: use letters, digits and _")
    if name in (MESSAGES, DELIVERY, *_SUMS):
        raise BadOption(name, "is the name of a table: call the source otherwise")
    if read_source_options(options).columns != NAMES:
        raise BadOption("columns", "must be left out: the table has all columns of messages")


def _reading(options: Mapping[str, str]) -> Callable[[], DataFrame]:
    taken = read_source_options(options).mode is Mode.CONSUME

    def messages() -> DataFrame:
        stream = SparkSession.active().readStream.format("msmq").options(**options)
        return stream.load().withColumn(TAKEN, F.lit(taken))

    return messages


def _define_view(table: str) -> str:
    """Define a view of a table, and give its name, for definitions that are made from the table.

    From the second run on, the table itself is in the catalog: a plan that adds columns to it is
    bound to what is there, and does not wait for what the run adds. The view is not in the catalog.
    """
    name = f"{table}_of_this_run"
    pipelines.temporary_view(name=name)(lambda: _table(table))
    return name


def _summing(sum_up: Callable[[DataFrame], DataFrame], table: str) -> Callable[[], DataFrame]:
    def summed() -> DataFrame:
        return sum_up(_table(table))

    return summed


def _table(name: str) -> DataFrame:
    return SparkSession.active().read.table(name)
