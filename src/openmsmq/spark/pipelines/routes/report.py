"""Routes from files to tables: what is read, what is written, and what is worth saying about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from openmsmq.routing.changes import Change
from openmsmq.routing.graph import Graph
from openmsmq.routing.routes import RouteState
from openmsmq.spark.pipelines import routes
from openmsmq.spark.pipelines.routes.input import (
    Plan,
    RouteInputError,
    read_changes,
    read_plan,
    read_traffic,
)

ROUTING_TABLES: Final = "routing_tables"
LINK_TRAFFIC: Final = "link_traffic"
ROUTED_TRAFFIC: Final = "routed_traffic"
CHANGED_PAIRS: Final = "changed_pairs"
CHANGED_LINKS: Final = "changed_links"

SUFFIXES: Final = (".csv", ".json", ".jsonl", ".parquet")

Rows: TypeAlias = list[dict[str, Any]]
Step: TypeAlias = tuple[str, Callable[[], None]]


class Inputs(msgspec.Struct, frozen=True):
    """What the pipeline works on, checked."""

    plan: Plan
    traffic: DataFrame | None
    changes: Sequence[Change]


class Summary(msgspec.Struct, frozen=True):
    """What is worth saying about the tables that were written; lists are cut, counts are not."""

    site_count: int
    link_count: int
    closed_sites: list[str]
    """Sites without a gate; all of them."""
    pairs_by_state: dict[str, int]
    loaded_links: Rows
    undelivered: Rows
    pairs_by_change: dict[str, int]
    changed_pairs: Rows
    overloaded_links: Rows


def read_table(spark: SparkSession, path: str) -> DataFrame:
    """Read a table from a file, or from a directory of files, by what its name ends with."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise RouteInputError(f"{path} must end with one of {', '.join(SUFFIXES)}")
    if "://" not in path and not Path(path).exists():
        raise RouteInputError(f"{path} does not exist")
    if suffix == ".csv":
        return spark.read.csv(path, header=True)
    if suffix == ".parquet":
        return spark.read.parquet(path)
    return spark.read.json(path, multiLine=_is_one_array(path))


def read_inputs(
    spark: SparkSession, sites: str, links: str, traffic: str | None, changes: Sequence[Change]
) -> Inputs:
    """Read and check everything before the long work begins."""
    plan = read_plan(read_table(spark, sites), read_table(spark, links))
    checked = read_changes(plan, changes)
    known = None if traffic is None else read_traffic(plan, read_table(spark, traffic))
    return Inputs(plan, known, checked)


def steps(
    spark: SparkSession, inputs: Inputs, output: str, written: dict[str, DataFrame]
) -> Iterator[Step]:
    """Yield what is to be done, each with a word for it; every step writes one table.

    What was written is put into `written`, by its name, to look at it.
    """
    plan, traffic = inputs.plan, inputs.traffic

    def write(table: DataFrame, name: str) -> None:
        table.write.parquet(f"{output}/{name}")
        # A small plan has its rows at hand. The others are read, as Spark would make them again.
        again = spark.read.schema(table.schema).parquet(f"{output}/{name}")
        written[name] = table if plan.is_small else again

    yield "routing tables", partial(write, routes.tables_of(spark, plan), ROUTING_TABLES)
    loads = None
    if traffic is not None:
        loads = routes.loads_of(plan, plan.snapshot, traffic)
        yield "links", partial(write, loads, LINK_TRAFFIC)
        yield "traffic", partial(write, routes.routed_of(plan, traffic), ROUTED_TRAFFIC)
    if inputs.changes:
        found = routes.what_if_of(spark, plan, inputs.changes, traffic, loads)
        yield "changed pairs", partial(write, found.pairs, CHANGED_PAIRS)
        if found.links is not None:
            yield "changed links", partial(write, found.links, CHANGED_LINKS)


def summarise(inputs: Inputs, written: Mapping[str, DataFrame], limit: int) -> Summary:
    """Look at the tables that were written."""
    tables = written[ROUTING_TABLES]
    loaded, routed, pairs, changed_links = map(
        written.get, (LINK_TRAFFIC, ROUTED_TRAFFIC, CHANGED_PAIRS, CHANGED_LINKS)
    )
    graph = Graph.of(inputs.plan.snapshot)
    busiest = F.desc("messages"), F.col("from_site"), F.col("to_site")
    return Summary(
        len(graph.sites),
        len(graph.costs),
        [key for key, closed in zip(graph.sites, graph.closed, strict=True) if closed],
        _counts(tables, "state"),
        _first(loaded, limit, F.desc_nulls_last("share"), F.desc("bytes"), "site_1", "site_2"),
        _first(
            None if routed is None else routed.where(F.col("state") != RouteState.OPEN.label),
            limit,
            *busiest,
        ),
        {} if pairs is None else _counts(pairs, "change"),
        _first(pairs, limit, *(busiest[1:] if inputs.traffic is None else busiest)),
        _first(
            None if changed_links is None else changed_links.where("overloads"),
            limit,
            F.desc("new_share"),
            "site_1",
            "site_2",
        ),
    )


def _counts(table: DataFrame, column: str) -> dict[str, int]:
    return {row[0]: row[1] for row in table.groupBy(column).count().orderBy(column).collect()}


def _first(table: DataFrame | None, limit: int, *order: Any) -> Rows:
    if table is None:
        return []
    return [row.asDict() for row in table.orderBy(*order).limit(limit).collect()]


def _is_one_array(path: str) -> bool:
    """Return whether a JSON file is one array of objects, and not an object on each line."""
    if not Path(path).is_file():
        return False
    with open(path, encoding="utf-8") as file:
        return file.read(1024).lstrip().startswith("[")
