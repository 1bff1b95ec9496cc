"""What routing knows: sites, the links between them, and the gates of each. [MQBR 3.1.1.1]

A snapshot is frozen and complete: everything else in this package is a function of one. Sites are
named by keys, which are identifiers in a queue manager and text in a plan.

Gates are what the directory does not publish for a site: they are the gates of its links that
belong to it. [MQDMPR 3.1.1.8]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site

Key = TypeVar("Key", str, Guid)


class SiteEntry(msgspec.Struct, Generic[Key], frozen=True):
    """A site, and the queue managers in it that may be gates."""

    key: Key
    gates: tuple[Key, ...] = ()


class LinkEntry(msgspec.Struct, Generic[Key], frozen=True):
    """A link between two sites; it costs the same in both directions."""

    site1: Key
    site2: Key
    cost: int
    gates: tuple[Key, ...] | None = None
    """The gates that serve it; None for all gates of both sites."""


class Snapshot(msgspec.Struct, Generic[Key], frozen=True):
    """Sites and links at one moment."""

    sites: tuple[SiteEntry[Key], ...]
    links: tuple[LinkEntry[Key], ...]
    with_gates: bool
    """Whether gates are known. Without them every site is passable."""

    def gates(self) -> dict[Key, tuple[Key, ...]]:
        """Return the gates of each site: those of its links that belong to it, in their order."""
        own = {site.key: site.gates for site in self.sites}
        found: dict[Key, dict[Key, None]] = {key: {} for key in own}
        for link in self.links:
            for key in (link.site1, link.site2):
                if key in own:
                    serving = own[key] if link.gates is None else link.gates
                    found[key] |= {gate: None for gate in serving if gate in own[key]}
        return {key: tuple(gates) for key, gates in found.items()}


def snapshot_of(
    sites: Iterable[Site], links: Iterable[RoutingLink], managers: Iterable[QueueManagerInfo]
) -> Snapshot[Guid]:
    """Make a snapshot of the directory's objects; only routing servers can be gates."""
    members: dict[Guid, list[Guid]] = {}
    for manager in managers:
        if manager.routing_server:
            for key in manager.sites:
                members.setdefault(key, []).append(manager.identifier)
    return Snapshot(
        tuple(
            SiteEntry(site.identifier, tuple(members.get(site.identifier, ()))) for site in sites
        ),
        tuple(LinkEntry(link.site1, link.site2, link.cost, link.site_gates) for link in links),
        with_gates=True,
    )
