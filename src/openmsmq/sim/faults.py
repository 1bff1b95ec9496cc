"""What goes wrong, and when."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from openmsmq.sim.checks.facts import FOREVER_MS

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.scenarios.enterprise import Outage
    from openmsmq.sim.world import World

_OUTPUTS_TO_CRASH_MAX: Final = 12
_CRASH_PATIENCE_MS: Final = 3_000
"""A node that does nothing has no outputs to crash between: it crashes after this."""


class Faults:
    """Lets the faults of a scenario happen while the first phase lasts."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self.count = 0
        self._begun_ms = 0
        self._off_until_ms: dict[int, int] = {}
        self._kinds: dict[str, Callable[[], None]] = {
            "crash": self._crash,
            "cut": self._cut,
            "half open": self._half_open,
            "partition": self._partition,
            "refuse": self._refuse,
            "names": self._names,
            "disk slow": self._disk_slow,
            "disk full": self._disk_full,
            "disk fails": self._disk_fails,
            "clock": self._clock,
            "application": self._application,
        }

    def schedule(self) -> None:
        """Spread the faults over the first phase."""
        scenario = self._world.scenario
        self._begun_ms = self._world.timeline.now_ms
        for name in scenario.faults:
            delay_ms = self._rng.randrange(scenario.duration_ms)
            self._world.timeline.after(delay_ms, self._happen, name)
        if scenario.enterprise is not None:
            for outage in scenario.enterprise.outages:
                self._world.timeline.after(outage.begins_ms, self._fail, outage)

    def _happen(self, name: str) -> None:
        if not self._world.calm:
            self.count += 1
            self._kinds[name]()

    def power_fails(self, node: Node) -> None:
        """Take the power from a node, and give it back after a while."""
        node.crash(reached=self._rng.random() < 0.5)
        delay_ms = self._rng.choice((1, 100, 5_000, 30_000))
        self._world.timeline.after(delay_ms, self._world.power_returns, node)

    # Links and gates.

    def _fail(self, outage: Outage) -> None:
        self.count += 1
        if outage.is_link:
            self._link_fails(outage)
        else:
            self._gate_fails(outage)

    def _link_fails(self, outage: Outage) -> None:
        world, enterprise = self._world, self._world.enterprise
        assert enterprise is not None
        link = enterprise.scenario.links[outage.number]
        world.trace.note(-1, "fault", f"the link of sites {link.site1} and {link.site2} is dead")
        enterprise.dead_links.add(outage.number)
        if outage.ends_ms is None:
            enterprise.lost_links.add(outage.number)
        world.network.links_died()
        if outage.ends_ms is not None:
            delay_ms = outage.ends_ms - outage.begins_ms
            world.timeline.after(delay_ms, self._link_returns, outage.number)

    def _link_returns(self, number: int) -> None:
        enterprise = self._world.enterprise
        assert enterprise is not None
        # Another outage of the same link may last on.
        enterprise.dead_links.discard(number)
        now_ms = self._world.timeline.now_ms - self._begun_ms
        if any(
            outage.is_link and outage.number == number and outage.lasts_at(now_ms)
            for outage in enterprise.scenario.outages
        ):
            enterprise.dead_links.add(number)

    def _gate_fails(self, outage: Outage) -> None:
        world, node = self._world, self._world.nodes[outage.number]
        until_ms = FOREVER_MS
        if outage.ends_ms is None:
            assert world.enterprise is not None
            world.enterprise.lost_nodes.add(node.index)
            # Perhaps it was the only one that did not know the directory yet.
            world.directory_stored()
        else:
            delay_ms = outage.ends_ms - outage.begins_ms
            until_ms = world.timeline.now_ms + delay_ms
            world.timeline.after(delay_ms, world.power_returns, node)
        self._off_until_ms[node.index] = max(self._off_until_ms.get(node.index, 0), until_ms)
        node.crash(reached=self._rng.random() < 0.5)

    def is_off(self, node: Node) -> bool:
        """Return whether a gate has to stay away."""
        return self._off_until_ms.get(node.index, 0) > self._world.timeline.now_ms

    # Kinds.

    def _crash(self) -> None:
        node = self._node()
        node.power_left = self._rng.randrange(_OUTPUTS_TO_CRASH_MAX)
        node.later(self._rng.randrange(1, _CRASH_PATIENCE_MS), self._crash_anyway, node)

    def _crash_anyway(self, node: Node) -> None:
        if node.power_left is not None:
            self.power_fails(node)

    def _cut(self) -> None:
        connections = self._world.network.open_connections
        if connections:
            self._world.network.cut(self._rng.choice(connections))

    def _half_open(self) -> None:
        connections = self._world.network.open_connections
        if connections:
            self._world.network.half_open(self._rng.choice(connections))

    def _partition(self) -> None:
        nodes = self._world.nodes
        if len(nodes) > 1:
            one, other = self._rng.sample(nodes, 2)
            until_ms = self._until_ms()
            text = f"nothing passes to {other.name} for {self._for_s(until_ms)}"
            self._world.trace.note(one.index, "fault", text)
            self._world.network.part(one, other, until_ms)

    def _refuse(self) -> None:
        node, until_ms = self._node(), self._until_ms()
        self._world.trace.note(
            node.index, "fault", f"refuses connections for {self._for_s(until_ms)}"
        )
        self._world.network.refuse(node, until_ms)

    def _names(self) -> None:
        until_ms = self._until_ms()
        self._world.trace.note(-1, "fault", f"no names for {self._for_s(until_ms)}")
        self._world.network.names_fail_until_ms = until_ms

    def _disk_slow(self) -> None:
        node = self._node()
        node.disk.slow_until_ms = self._until_ms()
        self._world.trace.note(node.index, "fault", "the disk is slow")

    def _disk_full(self) -> None:
        node = self._node()
        node.disk.full_until_ms = self._until_ms()
        text = f"the disk is full for {self._for_s(node.disk.full_until_ms)}"
        self._world.trace.note(node.index, "fault", text)

    def _disk_fails(self) -> None:
        node = self._node()
        if node.up:
            node.disk.fails_next = True

    def _clock(self) -> None:
        node = self._node()
        seconds = self._rng.choice((-3600, -60, -2, 2, 60, 200))
        self._world.trace.note(node.index, "fault", f"the wall clock jumps by {seconds} s")
        node.clock.step_wall(seconds)

    def _application(self) -> None:
        applications = [each for each in self._world.applications if each.connected]
        if applications:
            self._rng.choice(applications).leave()

    # Internals.

    def _node(self) -> Node:
        return self._rng.choice(self._world.nodes)

    def _until_ms(self) -> int:
        lasts_ms = self._rng.choice((100, 2_000, 20_000, 60_000))
        now_ms = self._world.timeline.now_ms
        return min(now_ms + lasts_ms, max(self._world.calm_from_ms, now_ms + 1))

    def _for_s(self, until_ms: int) -> str:
        return f"{(until_ms - self._world.timeline.now_ms) / 1000:g} s"
