"""What paths carry, and which of them change: NumPy columns over the trees of a graph."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from openmsmq.routing.routes import NOTHING, RouteState, Tree

Column: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


def carried(tree: Tree, sent: Column) -> Column:
    """Return what each site passes to its next site: what it sends itself, and all behind it.

    `sent` has a row for each site and a column for each thing that is counted. What does not get
    through is not carried by anybody. Each site is looked at once, the farthest first.
    """
    state, hops = np.asarray(tree.reach.state), np.asarray(tree.reach.hops)
    next_site = np.asarray(tree.next_site)
    flow: Column = np.where((state == RouteState.OPEN)[:, np.newaxis], sent, 0)
    by_hops = np.argsort(hops, kind="stable")
    ends = np.searchsorted(hops[by_hops], np.arange(1, hops.max() + 2))
    for level in range(len(ends) - 1, 0, -1):
        sites = by_hops[ends[level - 1] : ends[level]]
        np.add.at(flow, next_site[sites], flow[sites])
    flow[tree.destination] = 0
    return flow


def moved(old: Tree, new: Tree) -> Mask:
    """Say for each site whether its path changes; False where it has none in the new tree.

    A path is the same when all sites on it keep their next site. Every round looks twice as far
    ahead, so a path of a thousand hops takes ten rounds.
    """
    new_next = np.asarray(new.next_site)
    differs: Mask = np.asarray(old.next_site) != new_next
    ahead = np.where(new_next == NOTHING, np.arange(len(new_next)), new_next)
    for _ in range(int(np.asarray(new.reach.hops).max()).bit_length()):
        differs = differs | differs[ahead]
        ahead = ahead[ahead]
    differs &= new_next != NOTHING
    return differs
