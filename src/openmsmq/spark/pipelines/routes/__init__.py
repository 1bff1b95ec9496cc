"""Routes: the routing tables of all sites, what links carry, and what a change would do.

Plain functions from data frames to data frames. Sites and links are collected, since a graph is
small; the work is divided by site, and every task has the graph and the code of the queue manager.

| Data frame | Columns |
|---|---|
| `sites` | `site`; optional `name`, `gates` (array, or text with semicolons) |
| `links` | `site_1`, `site_2`, `cost`; optional `gates`, `capacity_bytes` |
| `traffic` | `from_site`, `to_site`, `messages`, `bytes` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

import openmsmq.spark.pipelines.routes.tasks as tasks
from openmsmq.routing.changes import Change, changed
from openmsmq.routing.graph import Graph
from openmsmq.routing.snapshot import Snapshot
from openmsmq.spark.pipelines.few import mapped, of_rows, of_table, table_of
from openmsmq.spark.pipelines.routes.input import Plan, read_changes, read_plan, read_traffic

_NUMBERS: Final = StructType([StructField("id", LongType())])
_ENDS: Final = [("site_1", pa.string()), ("site_2", pa.string())]
_LOADS: Final = pa.schema(
    [
        *_ENDS,
        *((name, pa.int64()) for name in ("cost", "messages", "bytes")),
        *((name, pa.int64()) for name in ("messages_1_to_2", "bytes_1_to_2")),
        *((name, pa.int64()) for name in ("messages_2_to_1", "bytes_2_to_1", "capacity_bytes")),
        ("share", pa.float64()),
    ]
)
_LOAD_CHANGES: Final = pa.schema(
    [
        *_ENDS,
        ("capacity_bytes", pa.int64()),
        *(
            (f"{time}_{name}", pa.float64() if name == "share" else pa.int64())
            for time in ("old", "new")
            for name in ("cost", "messages", "bytes", "share")
        ),
        ("overloads", pa.bool_()),
    ]
)


class WhatIf(NamedTuple):
    """What changes would do."""

    pairs: DataFrame
    """The pairs of sites for which something changes."""
    links: DataFrame | None
    """The load of every link before and after; None if the traffic is not known."""


def routing_tables(sites: DataFrame, links: DataFrame) -> DataFrame:
    """Build the routing table of every site: a row for each pair of different sites.

    Columns: from_site, to_site, state, cost, hop_count, next_sites. The first next site is where
    messages go; the others are as cheap. See `openmsmq.routing.routes.RouteState` for the states.
    """
    return tables_of(sites.sparkSession, read_plan(sites, links))


def routed_traffic(sites: DataFrame, links: DataFrame, traffic: DataFrame) -> DataFrame:
    """Say of all traffic between sites what its way costs, or why it does not get through.

    Columns: from_site, to_site, messages, bytes, state, cost, hop_count.
    """
    plan = read_plan(sites, links)
    return routed_of(plan, read_traffic(plan, traffic))


def link_traffic(sites: DataFrame, links: DataFrame, traffic: DataFrame) -> DataFrame:
    """Add up what each link carries, in each direction; traffic that cannot go is left out.

    Columns: site_1, site_2, cost, messages, bytes, messages_1_to_2, bytes_1_to_2, messages_2_to_1,
    bytes_2_to_1, capacity_bytes, share. The share is that of all bytes in the capacity.
    """
    plan = read_plan(sites, links)
    return loads_of(plan, plan.snapshot, read_traffic(plan, traffic))


def what_if(
    sites: DataFrame,
    links: DataFrame,
    changes: Iterable[Change],
    traffic: DataFrame | None = None,
) -> WhatIf:
    """Compare the routes before and after some changes.

    Pairs: from_site, to_site, change (`moves`, `lost`, `gained`, `costs`), and old and new state,
    cost, hop_count and next_site; with traffic also messages and bytes. Links: site_1, site_2,
    capacity_bytes, overloads, and old and new cost, messages, bytes and share; the new cost of a
    link that is down is null.
    """
    plan = read_plan(sites, links)
    known = None if traffic is None else read_traffic(plan, traffic)
    return what_if_of(sites.sparkSession, plan, read_changes(plan, changes), known)


# The same for a plan, and traffic, that were read and checked before.


def tables_of(spark: SparkSession, plan: Plan) -> DataFrame:
    """Build the routing table of every site of a plan."""
    return _by_site(spark, plan, partial(tasks.tables, Graph.of(plan.snapshot)), tasks.TABLES)


def routed_of(plan: Plan, traffic: DataFrame) -> DataFrame:
    """Say of all traffic which way it goes."""
    task = partial(tasks.routed, Graph.of(plan.snapshot))
    return mapped(traffic, task, tasks.ROUTED, plan.is_small)


def loads_of(plan: Plan, snapshot: Snapshot[str], traffic: DataFrame) -> DataFrame:
    """Add up what the links of a snapshot carry; capacities are those of the plan."""
    found = mapped(traffic, partial(tasks.loads, Graph.of(snapshot)), tasks.LOADS, plan.is_small)
    totals = _totals(found, plan.is_small)
    rows = []
    for place, link in enumerate(snapshot.links):
        load = totals.get(place, (0, 0, 0, 0))
        # Up is towards the site that sorts later.
        to_2, to_1 = (load[:2], load[2:]) if link.site1 < link.site2 else (load[2:], load[:2])
        messages, size_bytes = (sum(both) for both in zip(to_2, to_1, strict=True))
        capacity = plan.capacities.get((link.site1, link.site2))
        share = None if capacity is None else size_bytes / capacity
        ends = (link.site1, link.site2, link.cost)
        rows.append((*ends, messages, size_bytes, *to_2, *to_1, capacity, share))
    return of_rows(traffic.sparkSession, rows, _LOADS)


def _totals(found: DataFrame, few: bool) -> dict[int, tuple[int, ...]]:
    """Add up by link: there are not many, as a graph is small."""
    names = tasks.LOADS.names[1:]
    if few:
        grouped = table_of(found).group_by("link", use_threads=False)
        summed = grouped.aggregate([(name, "sum") for name in names])
    else:
        summed = found.groupBy("link").agg(*(F.sum(name).alias(f"{name}_sum") for name in names))
        summed = summed.toArrow()
    columns = summed.select([f"{name}_sum" for name in names]).columns
    sums = zip(*(column.to_pylist() for column in columns), strict=True)
    return dict(zip(summed.column("link").to_pylist(), sums, strict=True))


def what_if_of(
    spark: SparkSession,
    plan: Plan,
    changes: Iterable[Change],
    traffic: DataFrame | None,
    loads: DataFrame | None = None,
) -> WhatIf:
    """Compare the routes of a plan before and after some changes.

    `loads` is what the links carry before them, for who has it already.
    """
    after = changed(plan.snapshot, changes)
    graphs = Graph.of(plan.snapshot), Graph.of(after)
    pairs = _by_site(spark, plan, partial(tasks.changes, *graphs), tasks.CHANGES)
    if traffic is None:
        return WhatIf(pairs, None)
    loads = loads_of(plan, plan.snapshot, traffic) if loads is None else loads
    return WhatIf(
        _with_traffic(pairs, traffic, plan.is_small),
        _load_changes(loads, loads_of(plan, after, traffic)),
    )


def _with_traffic(pairs: DataFrame, traffic: DataFrame, few: bool) -> DataFrame:
    ends = ["from_site", "to_site"]
    if not few:
        return pairs.join(traffic, ends, "left").fillna(0, ["messages", "bytes"])
    table = table_of(pairs).join(table_of(traffic), ends, join_type="left outer")
    for name in ("messages", "bytes"):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, table.column(index).fill_null(0))
    return of_table(pairs.sparkSession, table, from_arrow_schema(table.schema))


def _load_changes(before: DataFrame, after: DataFrame) -> DataFrame:
    told = ("cost", "messages", "bytes", "share")
    new_loads = {(row["site_1"], row["site_2"]): row for row in table_of(after).to_pylist()}
    gone = {"cost": None, "messages": 0, "bytes": 0, "share": None}
    rows = []
    for old in table_of(before).to_pylist():
        ends = (old["site_1"], old["site_2"])
        new = new_loads.get(ends, gone)
        overloads = (new["share"] or 0) > 1 and old["share"] <= 1
        both = (load[name] for load in (old, new) for name in told)
        rows.append((*ends, old["capacity_bytes"], *both, overloads))
    return of_rows(before.sparkSession, rows, _LOAD_CHANGES)


def _by_site(
    spark: SparkSession, plan: Plan, task: Callable[[Any], Iterator[Any]], schema: pa.Schema
) -> DataFrame:
    """Assign each task its share of the numbers of the sites."""
    count = len(plan.snapshot.sites)
    if plan.is_small:
        numbers = of_table(spark, pa.table({"id": pa.array(range(count), pa.int64())}), _NUMBERS)
    else:
        numbers = spark.range(0, count, 1, plan.task_count)
    return mapped(numbers, task, schema, plan.is_small)
