"""Routes: what the routing tables of an enterprise cost, one by one and all of them on Spark."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from bench.measure import Effort, Figure, ratio, time_in_turn
from openmsmq.routing.changes import LinkDown
from openmsmq.routing.graph import Graph
from openmsmq.routing.router import make_solver
from openmsmq.routing.snapshot import LinkEntry, SiteEntry, Snapshot

TABLE_SITES: Final = 2_000
TABLE_BAR: Final = 3.0
SIZES: Final = (500, 1_500, 5_000)
LINKS_PER_SITE: Final = 5
DESTINATIONS_PER_SITE: Final = 20
SEED: Final = 1

_NEAREST: Final = 10
_LONG_LINKS: Final = 0.1
_COST_SCALE: Final = 300
_SPARK: Final = {"spark.sql.shuffle.partitions": "8"}


class Enterprise(msgspec.Struct, frozen=True):
    """A made-up enterprise: sites on a map, links mostly to places near by, traffic at random."""

    snapshot: Snapshot[str]
    traffic: list[tuple[str, str, int, int]]


def make_enterprise(site_count: int, link_count: int, seed: int = SEED) -> Enterprise:
    """Make an enterprise that is connected; the same seed makes the same one."""
    random = np.random.default_rng(seed)
    places = random.random((site_count, 2))
    nearest = KDTree(places).query(places, min(_NEAREST + 1, site_count))[1]
    pairs = {(_nearest_before(places, site), site) for site in range(1, site_count)}
    while len(pairs) < link_count:
        site = int(random.integers(site_count))
        if random.random() < _LONG_LINKS:
            other = int(random.integers(site_count))
        else:
            other = int(random.choice(nearest[site]))
        if site != other:
            pairs.add((min(site, other), max(site, other)))
    names = [f"site-{site:05}" for site in range(site_count)]
    links = tuple(
        LinkEntry(names[one], names[other], _cost(places[one], places[other]))
        for one, other in sorted(pairs)
    )
    traffic = [
        (
            names[site],
            names[int(other)],
            int(random.integers(1, 1_000)),
            int(random.integers(2**30)),
        )
        for site in range(site_count)
        for other in random.integers(site_count, size=DESTINATIONS_PER_SITE)
    ]
    return Enterprise(Snapshot(tuple(map(SiteEntry[str], names)), links, with_gates=False), traffic)


def run(effort: Effort) -> Iterator[Figure]:
    """Routing tables: one of 2,000 sites against SciPy's Dijkstra, and all of 5,000 on Spark."""
    share = min(1.0, effort.rounds / Effort().rounds)
    yield from _one_table(TABLE_SITES, effort)
    from openmsmq.spark.session import make_session

    spark = make_session("bench routes", f"local[{os.cpu_count()}]", _SPARK)
    try:
        # The first job starts the Python workers, which is not what is measured.
        _measure(spark, make_enterprise(50, 250), lambda _, __: None)
        for size in SIZES:
            count = max(50, round(size * share))
            yield from _all_tables(spark, count)
    finally:
        spark.stop()


def _one_table(count: int, effort: Effort) -> Iterator[Figure]:
    graph = Graph.of(make_enterprise(count, LINKS_PER_SITE * count).snapshot)
    ends = (np.asarray(graph.first), np.asarray(graph.second))
    matrix = coo_array((np.asarray(graph.costs, float), ends), (count, count)).tocsr()
    matrix = matrix + matrix.T
    timings = time_in_turn(
        {"table": "table([0])", "dijkstra": "dijkstra(matrix, indices=0)"},
        {"table": make_solver(graph).table, "dijkstra": dijkstra, "matrix": matrix},
        Effort(max(3, effort.rounds // 10), effort.slice_s),
    )
    yield ratio(
        f"table of {count:,} sites", "x SciPy", timings["table"], timings["dijkstra"], TABLE_BAR
    )
    yield Figure("  one table", timings["table"].best_ns / 1e6, "ms")


def _all_tables(spark: Any, count: int) -> Iterator[Figure]:
    enterprise = make_enterprise(count, LINKS_PER_SITE * count)
    taken: dict[str, float] = {}
    rows = _measure(spark, enterprise, taken.__setitem__)
    title = f"{count:,} sites, {len(enterprise.snapshot.links):,} links"
    yield Figure(f"{title}: all tables", taken["tables"], "s")
    yield Figure("  rows written", rows / taken["tables"], "rows/s")
    yield Figure("  load of links", taken["loads"], "s")
    yield Figure("  what if a link is down", taken["what if"], "s")


def _measure(spark: Any, enterprise: Enterprise, note: Callable[[str, float], None]) -> int:
    """Run the pipeline and note what each part took; gives how many rows the tables have."""
    from openmsmq.spark.pipelines import routes

    snapshot = enterprise.snapshot
    sites = spark.createDataFrame([(site.key,) for site in snapshot.sites], "site string")
    links = spark.createDataFrame(
        [(link.site1, link.site2, link.cost) for link in snapshot.links],
        "site_1 string, site_2 string, cost long",
    )
    traffic = spark.createDataFrame(
        enterprise.traffic, "from_site string, to_site string, messages long, bytes long"
    )
    change = LinkDown(snapshot.links[0].site1, snapshot.links[0].site2)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        routes.routing_tables(sites, links).write.parquet(f"{folder}/tables")
        note("tables", time.perf_counter() - start)
        start = time.perf_counter()
        routes.link_traffic(sites, links, traffic).write.parquet(f"{folder}/loads")
        note("loads", time.perf_counter() - start)
        start = time.perf_counter()
        found = routes.what_if(sites, links, [change], traffic)
        assert found.links is not None
        found.pairs.write.parquet(f"{folder}/pairs")
        found.links.write.parquet(f"{folder}/links")
        note("what if", time.perf_counter() - start)
        return int(spark.read.parquet(f"{folder}/tables").count())


def _nearest_before(places: Any, site: int) -> int:
    return int(np.argmin(((places[:site] - places[site]) ** 2).sum(axis=1)))


def _cost(one: Any, other: Any) -> int:
    return 1 + int(np.hypot(*(one - other)) * _COST_SCALE)
