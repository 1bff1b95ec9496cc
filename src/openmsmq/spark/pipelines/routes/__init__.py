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
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

import openmsmq.spark.pipelines.routes.tasks as tasks
from openmsmq.routing.changes import Change, changed
from openmsmq.routing.graph import Graph
from openmsmq.routing.snapshot import Snapshot
from openmsmq.spark.pipelines.few import local, mapped, of_table
from openmsmq.spark.pipelines.routes.input import Plan, read_changes, read_plan, read_traffic

_NUMBERS: Final = StructType([StructField("id", LongType())])


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
    totals = (
        mapped(traffic, partial(tasks.loads, Graph.of(snapshot)), tasks.LOADS, plan.is_small)
        .groupBy("link")
        .agg(*(F.sum(name).alias(name) for name in tasks.LOADS.names[1:]))
    )
    entries = traffic.sparkSession.createDataFrame(
        [
            (
                place,
                link.site1,
                link.site2,
                link.cost,
                plan.capacities.get((link.site1, link.site2)),
                # Up is towards the site that sorts later.
                link.site1 < link.site2,
            )
            for place, link in enumerate(snapshot.links)
        ],
        "link long, site_1 string, site_2 string, cost long, capacity_bytes long, is_up boolean",
    )
    directions = {
        f"{what}_{direction}": F.when(is_up, F.col(f"up_{what}")).otherwise(F.col(f"down_{what}"))
        for direction, is_up in (("1_to_2", F.col("is_up")), ("2_to_1", ~F.col("is_up")))
        for what in ("messages", "bytes")
    }
    loads = (
        entries.join(totals, "link", "left")
        .fillna(0, tasks.LOADS.names[1:])
        .select(
            "site_1",
            "site_2",
            "cost",
            _sum("messages"),
            _sum("bytes"),
            *(column.alias(name) for name, column in directions.items()),
            "capacity_bytes",
            ((F.col("up_bytes") + F.col("down_bytes")) / F.col("capacity_bytes")).alias("share"),
        )
    )
    return _now_if_few(plan, loads)


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
    counted = pairs.join(traffic, ["from_site", "to_site"], "left")
    return WhatIf(
        _now_if_few(plan, counted.fillna(0, ["messages", "bytes"])),
        _now_if_few(plan, _load_changes(loads, loads_of(plan, after, traffic))),
    )


def _load_changes(before: DataFrame, after: DataFrame) -> DataFrame:
    ends = ["site_1", "site_2"]
    told = ("cost", "messages", "bytes", "share")
    old, new = (
        loads.select(
            *ends, "capacity_bytes", *(F.col(name).alias(f"{time}_{name}") for name in told)
        )
        for time, loads in (("old", before), ("new", after))
    )
    overloads = (F.col("new_share") > 1) & ~(F.col("old_share") > 1)
    return (
        old.join(new.drop("capacity_bytes"), ends, "left")
        .fillna(0, ["new_messages", "new_bytes"])
        .withColumn("overloads", F.coalesce(overloads, F.lit(False)))
    )


def _now_if_few(plan: Plan, rows: DataFrame) -> DataFrame:
    """Compute the rows of a small plan now: they are used several times."""
    return local(rows) if plan.is_small else rows


def _sum(what: str) -> Column:
    return (F.col(f"up_{what}") + F.col(f"down_{what}")).alias(what)


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
