"""What-if: changes to a snapshot that an operator thinks about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

import msgspec

from openmsmq.routing.snapshot import LinkEntry, Snapshot


class SetCost(msgspec.Struct, frozen=True):
    """A link costs something else."""

    site1: str
    site2: str
    cost: int


class LinkDown(msgspec.Struct, frozen=True):
    """A link is no longer in the directory."""

    site1: str
    site2: str


class GateDown(msgspec.Struct, frozen=True):
    """A gate is no longer a gate of any link."""

    gate: str


Change: TypeAlias = SetCost | LinkDown | GateDown


def changed(snapshot: Snapshot[str], changes: Iterable[Change]) -> Snapshot[str]:
    """Apply changes one after the other; what they name and is not there is passed over.

    Sites stay, so the same site has the same number in the graphs of both snapshots.
    """
    for change in changes:
        match change:
            case SetCost():
                links = tuple(
                    msgspec.structs.replace(link, cost=change.cost)
                    if joins(link, change.site1, change.site2)
                    else link
                    for link in snapshot.links
                )
                snapshot = msgspec.structs.replace(snapshot, links=links)
            case LinkDown():
                links = tuple(
                    link for link in snapshot.links if not joins(link, change.site1, change.site2)
                )
                snapshot = msgspec.structs.replace(snapshot, links=links)
            case GateDown():
                snapshot = _without_gate(snapshot, change.gate)
            case _:
                assert_never(change)
    return snapshot


def joins(link: LinkEntry[str], site1: str, site2: str) -> bool:
    """Return whether a link is between these two sites, whichever is its first."""
    return {link.site1, link.site2} == {site1, site2}


def _without_gate(snapshot: Snapshot[str], down: str) -> Snapshot[str]:
    return msgspec.structs.replace(
        snapshot,
        sites=tuple(
            msgspec.structs.replace(site, gates=tuple(g for g in site.gates if g != down))
            for site in snapshot.sites
        ),
    )
