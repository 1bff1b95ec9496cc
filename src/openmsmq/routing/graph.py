"""The graph that paths are searched in: numbered sites, and one number for what a path is worth.

MQBR asks for the least cost and leaves open which of several least-cost paths is taken. Ours is
the one with the fewest sites that have no gate, of these the one with the fewest hops, of these
the one whose sites come first. Cost, sites without a gate and hops are packed into one number, in
this order from above, so that a plain search for the shortest path compares all three.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Generic, Self, TypeAlias

import msgspec

from openmsmq.model.limits import LINK_COST_MAX_UNITS, LINK_COST_MIN_UNITS
from openmsmq.routing.snapshot import Key, Snapshot

SiteNumber: TypeAlias = int


class Scale(msgspec.Struct, frozen=True):
    """How cost, sites without a gate and hops share one number."""

    hop_bits: int
    closed_bits: int

    def value(self, cost: int, closed: int) -> int:
        """Pack what one hop adds: its cost, and whether the site it leads to has no gate."""
        return ((cost << self.closed_bits | closed) << self.hop_bits) + 1

    @property
    def cost_shift(self) -> int:
        """How far a number is shifted to the right to give the cost."""
        return self.hop_bits + self.closed_bits

    @property
    def hop_mask(self) -> int:
        """The bits with the hops."""
        return (1 << self.hop_bits) - 1

    @property
    def closed_mask(self) -> int:
        """The bits with the sites that have no gate, above those of the hops."""
        return ((1 << self.closed_bits) - 1) << self.hop_bits


class Graph(msgspec.Struct, Generic[Key], frozen=True):
    """Sites in the order of their keys, and the usable links between them. [MQBR 3.1.3.1]

    Left out are links to unknown sites, from a site to itself, and with an impossible cost. Of
    several links between two sites the cheapest stays, of equal ones the first.
    """

    sites: tuple[Key, ...]
    first: Sequence[SiteNumber]
    """For each link, the site with the lower number."""
    second: Sequence[SiteNumber]
    costs: Sequence[int]
    origins: Sequence[int]
    """For each link, its place among the links of the snapshot."""
    closed: bytes
    """For each site, 1 if nothing can pass it, enter it or leave it: it has no gate."""

    @classmethod
    def of(cls, snapshot: Snapshot[Key]) -> Self:
        """Number the sites of a snapshot and choose its links."""
        keys = sorted({site.key for site in snapshot.sites})
        numbers = {key: number for number, key in enumerate(keys)}
        chosen: dict[tuple[int, int], tuple[int, int]] = {}
        for place, link in enumerate(snapshot.links):
            ends = numbers.get(link.site1), numbers.get(link.site2)
            if (
                ends[0] is None
                or ends[1] is None
                or ends[0] == ends[1]
                or not LINK_COST_MIN_UNITS <= link.cost <= LINK_COST_MAX_UNITS
            ):
                continue
            pair = (min(ends[0], ends[1]), max(ends[0], ends[1]))
            chosen[pair] = min(chosen.get(pair, (link.cost, place)), (link.cost, place))
        links = sorted(chosen.items())
        gates = snapshot.gates() if snapshot.with_gates else None
        return cls(
            tuple(keys),
            array("q", [pair[0] for pair, _ in links]),
            array("q", [pair[1] for pair, _ in links]),
            array("q", [cost for _, (cost, _) in links]),
            array("q", [place for _, (_, place) in links]),
            bytes(gates is not None and not gates[key] for key in keys),
        )

    @property
    def scale(self) -> Scale:
        """The scale in which no path of this graph overflows its part."""
        return Scale(len(self.sites).bit_length(), sum(self.closed).bit_length())

    @property
    def path_value_max(self) -> int:
        """More than any path is worth, with one hop to spare."""
        scale = self.scale
        dearest = sum(sorted(self.costs)[-len(self.sites) :])
        return scale.value(dearest, sum(self.closed)) + len(self.sites)
