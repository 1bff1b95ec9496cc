"""The way into routing: a graph, and the solver that this installation has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from openmsmq.routing.graph import Graph, SiteNumber
from openmsmq.routing.plain import PlainSolver
from openmsmq.routing.routes import RoutingTable, Tree
from openmsmq.routing.snapshot import Key


class Solver(Protocol[Key]):
    """Finds least-cost paths in the graph that it was made for."""

    graph: Graph[Key]

    def table(self, own: Sequence[SiteNumber]) -> RoutingTable[Key]:
        """Build the routing table of a queue manager that belongs to these sites."""

    def tree(self, destination: SiteNumber) -> Tree:
        """Find the paths from everywhere to one site."""


def make_solver(graph: Graph[Key]) -> Solver[Key]:
    """Take the compiled solver where it is installed and its numbers suffice, else the plain one.

    They suffice unless paths are very long, very dear, and lead through many sites without gates.
    """
    try:
        from openmsmq.routing.arrays import EXACT_MAX, ArraySolver
    except ImportError:
        return PlainSolver(graph)
    return ArraySolver(graph) if graph.path_value_max < EXACT_MAX else PlainSolver(graph)
