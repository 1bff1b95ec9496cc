"""What routing answers: the table of a site, and the paths that lead to a site. [MQBR 3.1.1.2]

Answers are columns with one place for each site. They are lists or NumPy arrays, as the solver
that found them has them; nobody who asks for a single route sees the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Generic, TypeAlias

import msgspec

from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.routing.graph import Graph, SiteNumber
from openmsmq.routing.snapshot import Key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers: TypeAlias = Sequence[int] | NDArray[np.int64]

NOTHING: Final = -1
"""Stands in a column where there is no cost, no hop, no site."""

PATH_MAX_HOPS: Final = HOP_MAX_COUNT + 1
"""The longest way: a message is passed on `HOP_MAX_COUNT` times, after the first hop."""


class RouteState(IntEnum):
    """Whether messages get through."""

    OPEN = 0
    """They do."""
    HERE = 1
    """They are there already."""
    BLOCKED = 2
    """The least-cost paths all touch a site without a gate; routing looks for no detour."""
    TOO_FAR = 3
    """The path has more hops than a message may make."""
    UNREACHABLE = 4
    """There is no path at all."""

    @property
    def label(self) -> str:
        """The word that people and tables use for it."""
        return self.name.lower()


class Reach(msgspec.Struct, frozen=True):
    """How far each site is; `NOTHING` for what cannot be reached."""

    cost: Numbers
    hops: Numbers
    state: Numbers


class Route(msgspec.Struct, Generic[Key], frozen=True):
    """The row of a routing table for one destination."""

    destination: Key
    state: RouteState
    cost: int | None
    hop_count: int | None
    """Of the first path; the others may be longer."""
    next_sites: tuple[Key, ...]
    """Where least-cost paths go on, the one to take first."""


class RoutingTable(msgspec.Struct, Generic[Key], frozen=True):
    """Where messages to each site go next, seen from one site. [MQBR 3.1.1.2]

    A queue manager that belongs to several sites has one table for all of them.
    """

    graph: Graph[Key]
    reach: Reach
    starts: Numbers
    """Where the next sites for each site begin in `next_sites`; one more than there are sites."""
    next_sites: Numbers

    def route(self, number: SiteNumber) -> Route[Key]:
        """Return the row for one site."""
        sites = self.graph.sites
        state = RouteState(int(self.reach.state[number]))
        found = state is not RouteState.UNREACHABLE
        return Route(
            sites[number],
            state,
            int(self.reach.cost[number]) if found else None,
            int(self.reach.hops[number]) if found else None,
            tuple(
                sites[int(next_site)]
                for next_site in self.next_sites[
                    int(self.starts[number]) : int(self.starts[number + 1])
                ]
            ),
        )

    def __iter__(self) -> Iterator[Route[Key]]:
        return map(self.route, range(len(self.graph.sites)))


class Tree(msgspec.Struct, frozen=True):
    """The paths that messages from everywhere take to one site.

    Each site passes them to the first next site of its own table, so the paths form a tree.
    """

    destination: SiteNumber
    reach: Reach
    next_site: Numbers
    link: Numbers
    """The link to the next site."""
