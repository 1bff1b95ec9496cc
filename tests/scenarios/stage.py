"""A stage for scripted simulations: nodes, messages, and faults at moments that the test names."""

from __future__ import annotations

import random

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from openmsmq.protocol.config import TransferConfig
from openmsmq.sim.applications.applications import Ask, Drain, Founder
from openmsmq.sim.applications.worker import Worker
from openmsmq.sim.checks import endings
from openmsmq.sim.checks.facts import Fate, Kind
from openmsmq.sim.scenarios.scenario import (
    PLAIN,
    TRANSACTIONAL,
    NetworkHabits,
    NodeHabits,
    Scenario,
    Wishes,
)
from openmsmq.sim.world import World

FAR_MS = 3_600_000


def scenario(managers, *, routers=(), names=("address",), flush_ms=0, transfer=None):
    return Scenario(
        seed=0,
        nodes=tuple(NodeHabits(0, flush_ms, 0) for _ in range(managers)),
        network=NetworkHabits(5, 5, 0.0, 0.0),
        transfer=transfer or TransferConfig(retry_connect_ms=1000),
        wishes=Wishes(0.0, 0.0, 0.0, 0.0, False),
        operations=frozenset({"receive"}),
        faults=(),
        duration_ms=1000,
        applications=0,
        operation_count=1,
        remote_share=1.0,
        names=names,
        routers=routers,
    )


class Actor(Worker):
    """A worker that does what a test says."""

    def __init__(self, stage, node, steps):
        super().__init__(stage.world, node, 0, 1)
        self.name = f"{node.name}.actor"
        self._steps = steps
        self.sent = []

    def script(self):
        yield from self._steps(self)

    def _target(self):
        return self.aim

    def send(self, target, kind=Kind.RECOVERABLE, count=1, **wishes):
        """Send messages in one call."""
        queue = TRANSACTIONAL if kind is Kind.TRANSACTIONAL else PLAIN
        opened = yield from self.opened(self._name_of(target, queue), AccessMode.SEND)
        group = self.group = self.books.new_group(self.node)
        packets = [self._wished(group, kind, target, queue, opened, wishes) for _ in range(count)]
        self.sent += group.messages
        own = api.OWN_TRANSACTION if kind is Kind.TRANSACTIONAL else 0
        reply = yield Ask(api.Send(opened.handle, packets, own), lambda: self.books.commits(group))
        self._ended(group, reply)

    def prepare(self, target, count=1):
        """Send messages in a transaction, and prepare it."""
        reply = yield Ask(api.Begin())
        group = self.group = self.books.new_group(self.node)
        group.unit_of_work = reply.unit_of_work
        queue = TRANSACTIONAL
        opened = yield from self.opened(self._name_of(target, queue), AccessMode.SEND)
        packets = [
            self._wished(group, Kind.TRANSACTIONAL, target, queue, opened, {}) for _ in range(count)
        ]
        self.sent += group.messages
        yield Ask(api.Send(opened.handle, packets, reply.transaction))
        yield from self._prepare(group, reply.transaction)

    def resolve(self):
        """Commit what is prepared."""
        yield from self._end_prepared()

    def _wished(self, group, kind, target, queue, opened, wishes):
        self._wishes = wishes
        return self._packet(group, kind, target, queue, opened)

    def _wish(self, message):
        for name, value in self._wishes.items():
            setattr(message, name, value)


class Stage:
    """A world in which nothing goes wrong by chance."""

    def __init__(self, managers=2, **options):
        self.world = World(scenario(managers, **options), random.Random(0), trace=True)
        self.books = self.world.books
        self.network = self.world.network
        self.nodes = self.world.nodes
        for node in self.nodes:
            node.start()
        self._let(*(Founder(self.world, node) for node in self.nodes))

    def _let(self, *applications):
        self.world.applications += applications
        for application in applications:
            application.begin()
        self.until(lambda: all(application.done for application in applications))

    def act(self, node, steps):
        """Let an application do its steps to the end; gives the messages it sent."""
        actor = Actor(self, node, steps)
        self._let(actor)
        return actor.sent

    def begin(self, node, steps):
        """Let an application begin, and do not wait for it."""
        actor = Actor(self, node, steps)
        self.world.applications.append(actor)
        actor.begin()
        return actor

    def until(self, condition):
        """Let things happen, one by one, until a condition is true."""
        limit_ms = self.world.timeline.now_ms + FAR_MS
        while not condition():
            next_ms = self.world.timeline.next_ms
            assert next_ms is not None, "nothing happens any more"
            assert next_ms < limit_ms, "it never happens"
            self.world.timeline.step()

    def pass_time(self, delay_ms):
        """Let things happen for a while."""
        limit_ms = self.world.timeline.now_ms + delay_ms
        while (next_ms := self.world.timeline.next_ms) is not None and next_ms < limit_ms:
            self.world.timeline.step()
        self.world.timeline.now_ms = limit_ms

    def restart(self, node, *, reached=False, after_ms=10):
        """Take the power from a node and give it back."""
        node.crash(reached=reached)
        self.pass_time(after_ms)
        self.world.power_returns(node)

    def outgoing_count(self, node):
        return self.books.disks.watches[node.index].outgoing_count

    def settle(self):
        """Wait until nothing is on its way."""
        self.until(lambda: not any(self.outgoing_count(node) for node in self.nodes))

    def finish(self):
        """Receive everything, and check every promise."""
        self.settle()
        self._let(*(Drain(self.world, node) for node in self.nodes))
        watches = self.books.disks.watches.values()
        self.until(
            lambda: not any(watch.outgoing_count or watch.awaiting_count for watch in watches)
        )
        endings.check(self.world)


def acknowledged(messages):
    return all(message.group.fate is Fate.ACKNOWLEDGED for message in messages)
