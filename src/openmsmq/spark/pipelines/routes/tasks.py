"""What each Spark task does for its share of the sites: Arrow batches in, Arrow batches out.

Nothing here needs Spark. Every task has the whole graph, which is small, and makes rows by the
column: millions of them pass without becoming objects of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from openmsmq.routing.flows import carried, moved
from openmsmq.routing.graph import Graph
from openmsmq.routing.router import Solver, make_solver
from openmsmq.routing.routes import NOTHING, Reach, RouteState, Tree

Batches: TypeAlias = Iterable[pa.RecordBatch]
Column: TypeAlias = NDArray[np.int64]

TABLES: Final = pa.schema(
    {
        "from_site": pa.string(),
        "to_site": pa.string(),
        "state": pa.string(),
        "cost": pa.int64(),
        "hop_count": pa.int32(),
        "next_sites": pa.list_(pa.string()),
    }
)
ROUTED: Final = pa.schema(
    {
        "from_site": pa.string(),
        "to_site": pa.string(),
        "messages": pa.int64(),
        "bytes": pa.int64(),
        "state": pa.string(),
        "cost": pa.int64(),
        "hop_count": pa.int32(),
    }
)
LOADS: Final = pa.schema(
    {
        "link": pa.int64(),
        "up_messages": pa.int64(),
        "up_bytes": pa.int64(),
        "down_messages": pa.int64(),
        "down_bytes": pa.int64(),
    }
)
"""`link` is the place among the links of the snapshot; up is towards the site that sorts later."""
CHANGES: Final = pa.schema(
    {
        "from_site": pa.string(),
        "to_site": pa.string(),
        "change": pa.string(),
        "old_state": pa.string(),
        "new_state": pa.string(),
        "old_cost": pa.int64(),
        "new_cost": pa.int64(),
        "old_hop_count": pa.int32(),
        "new_hop_count": pa.int32(),
        "old_next_site": pa.string(),
        "new_next_site": pa.string(),
    }
)

LOST: Final = "lost"
GAINED: Final = "gained"
MOVES: Final = "moves"
COSTS: Final = "costs"
"""What a change does to a pair of sites. `costs`: the same path at another cost."""

_STATES: Final = pa.array([state.label for state in RouteState])
_NO_CHANGE: Final = -1
_CHANGES: Final = pa.array([LOST, GAINED, MOVES, COSTS])


def tables(graph: Graph[str], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Make the routing table of each site whose number comes in: a row for each other site."""
    solver = make_solver(graph)
    names = pa.array(graph.sites, pa.string())
    for source in _numbers(batches):
        table = solver.table([source])
        others = np.delete(np.arange(len(names)), source)
        # The site itself has no next sites, so its row can go without moving the others.
        starts = pa.array(np.delete(np.asarray(table.starts), source), pa.int32())
        next_sites = names.take(pa.array(np.asarray(table.next_sites)))
        yield pa.record_batch(
            [
                pa.repeat(names[source], len(others)),
                names.take(pa.array(others)),
                *_reach_columns(table.reach, others),
                pa.ListArray.from_arrays(starts, next_sites),
            ],
            schema=TABLES,
        )


def loads(graph: Graph[str], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Add up what each link carries of the traffic that comes in."""
    solver = make_solver(graph)
    first, origins = np.asarray(graph.first), np.asarray(graph.origins)
    totals = np.zeros((len(first), 2, 2), np.int64)
    for tree, sources, amounts in _by_destination(solver, batches):
        sent = np.zeros((len(graph.sites), 2), np.int64)
        np.add.at(sent, sources, amounts)
        flow = carried(tree, sent)
        sites = np.flatnonzero(flow.any(axis=1))
        # No two sites of a tree use the same link, so each is added to once.
        link = np.asarray(tree.link)[sites]
        totals[link, (first[link] != sites).astype(np.int64)] += flow[sites]
    used = np.flatnonzero(totals.any(axis=(1, 2)))
    yield pa.record_batch(
        [pa.array(origins[used]), *(pa.array(column) for column in totals[used].reshape(-1, 4).T)],
        schema=LOADS,
    )


def routed(graph: Graph[str], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Say of the traffic that comes in which way it goes, or why it does not."""
    solver = make_solver(graph)
    names = pa.array(graph.sites, pa.string())
    for tree, sources, amounts in _by_destination(solver, batches):
        yield pa.record_batch(
            [
                names.take(pa.array(sources)),
                pa.repeat(names[tree.destination], len(sources)),
                pa.array(amounts[:, 0]),
                pa.array(amounts[:, 1]),
                *_reach_columns(tree.reach, sources),
            ],
            schema=ROUTED,
        )


def changes(before: Graph[str], after: Graph[str], batches: Batches) -> Iterator[pa.RecordBatch]:
    """Return which paths to each site whose number comes in differ between two graphs."""
    solvers = make_solver(before), make_solver(after)
    names = pa.array(before.sites, pa.string())
    for destination in _numbers(batches):
        old, new = (solver.tree(destination) for solver in solvers)
        kinds = _kinds(old, new)
        sites = np.flatnonzero(kinds != _NO_CHANGE)
        if not len(sites):
            continue
        old_columns, new_columns = (_reach_columns(tree.reach, sites) for tree in (old, new))
        yield pa.record_batch(
            [
                names.take(pa.array(sites)),
                pa.repeat(names[destination], len(sites)),
                _CHANGES.take(pa.array(kinds[sites])),
                *(column for pair in zip(old_columns, new_columns, strict=True) for column in pair),
                *(names.take(_numbers_or_null(tree.next_site, sites)) for tree in (old, new)),
            ],
            schema=CHANGES,
        )


def _kinds(old: Tree, new: Tree) -> Column:
    """Number for each site what changes for its messages, as `_CHANGES` has it."""
    was_open, is_open = (np.asarray(tree.reach.state) == RouteState.OPEN for tree in (old, new))
    both = was_open & is_open
    kinds = np.full(len(both), _NO_CHANGE)
    kinds[both & (np.asarray(old.reach.cost) != np.asarray(new.reach.cost))] = 3
    kinds[both & moved(old, new)] = 2
    kinds[~was_open & is_open] = 1
    kinds[was_open & ~is_open] = 0
    return kinds


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def _by_destination(solver: Solver[str], batches: Batches) -> Iterator[tuple[Tree, Column, Column]]:
    """Yield the tree of each destination of the traffic, and who sends how much to it.

    What stays in its site is left out: it uses no link.
    """
    names = pa.array(solver.graph.sites, pa.string())
    columns: list[list[Column]] = [[], [], [], []]
    for batch in batches:
        for end in (0, 1):
            columns[end].append(pc.index_in(batch.column(end), names).to_numpy())
        for amount in (2, 3):
            columns[amount].append(batch.column(amount).to_numpy())
    if not columns[0]:
        return
    sources, destinations, messages, sizes = (np.concatenate(parts) for parts in columns)
    order = np.argsort(destinations, kind="stable")
    order = order[sources[order] != destinations[order]]
    if not len(order):
        return
    present, starts = np.unique(destinations[order], return_index=True)
    for destination, rows in zip(present, np.split(order, starts[1:]), strict=True):
        amounts = np.stack((messages[rows], sizes[rows]), axis=1)
        yield solver.tree(int(destination)), sources[rows], amounts


def _reach_columns(reach: Reach, sites: Column) -> list[pa.Array]:
    """Return state, cost and hops of some sites."""
    return [
        _STATES.take(pa.array(np.asarray(reach.state)[sites])),
        _numbers_or_null(reach.cost, sites),
        _numbers_or_null(reach.hops, sites).cast(pa.int32()),
    ]


def _numbers_or_null(column: Any, sites: Column) -> pa.Array:
    numbers = np.asarray(column, np.int64)[sites]
    return pa.array(numbers, mask=numbers == NOTHING)
