"""Routes from files to tables: what is read, what is written, and what is worth saying about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from pyspark.sql import DataFrame, SparkSession

from openmsmq.routing.changes import Change
from openmsmq.routing.graph import Graph
from openmsmq.routing.routes import RouteState
from openmsmq.spark.pipelines import routes
from openmsmq.spark.pipelines.few import Choice, first_rows, is_here, table_of, write_parquet
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
Order: TypeAlias = tuple[tuple[str, bool], ...]
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
        write_parquet(table, f"{output}/{name}", plan.is_small)
        # A small plan has its rows at hand. The others are read, as Spark would make them again.
        if plan.is_small:
            written[name] = table
        else:
            written[name] = spark.read.schema(table.schema).parquet(f"{output}/{name}")

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
    graph = Graph.of(inputs.plan.snapshot)
    busiest: Order = (("messages", True), ("from_site", False), ("to_site", False))
    by_ends: Order = (("site_1", False), ("site_2", False))

    def first(name: str, order: Order, chosen: Choice | None = None) -> Rows:
        table = written.get(name)
        return [] if table is None else first_rows(table, order, limit, chosen)

    return Summary(
        len(graph.sites),
        len(graph.costs),
        [key for key, closed in zip(graph.sites, graph.closed, strict=True) if closed],
        _counts(written[ROUTING_TABLES], "state"),
        first(LINK_TRAFFIC, (("share", True), ("bytes", True), *by_ends)),
        first(ROUTED_TRAFFIC, busiest, lambda column: column("state") != RouteState.OPEN.label),
        _counts(written[CHANGED_PAIRS], "change") if CHANGED_PAIRS in written else {},
        first(CHANGED_PAIRS, busiest[1:] if inputs.traffic is None else busiest),
        first(CHANGED_LINKS, (("new_share", True), *by_ends), lambda column: column("overloads")),
    )


def _counts(table: DataFrame, column: str) -> dict[str, int]:
    if is_here(table):
        return dict(sorted(Counter(table_of(table).column(column).to_pylist()).items()))
    return {row[0]: row[1] for row in table.groupBy(column).count().orderBy(column).collect()}


def _is_one_array(path: str) -> bool:
    """Return whether a JSON file is one array of objects, and not an object on each line."""
    if not Path(path).is_file():
        return False
    with open(path, encoding="utf-8") as file:
        return file.read(1024).lstrip().startswith("[")
