"""The world of one run: nodes, network, applications, faults, and the order in which they act."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import msgspec

from openmsmq.manager.config import DirectoryConfig, HttpConfig, ManagerConfig
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import Guid
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.sim.applications.administrator import Administrator
from openmsmq.sim.applications.applications import Application, Drain, Founder, Party, Sweeper
from openmsmq.sim.applications.streams import Batches, Stream
from openmsmq.sim.applications.worker import Worker
from openmsmq.sim.checks import endings
from openmsmq.sim.checks.books import Books
from openmsmq.sim.checks.hostile_watch import HostileWatch
from openmsmq.sim.checks.remote_watch import PATIENCE_MS, RemoteWatch
from openmsmq.sim.clock import Timeline
from openmsmq.sim.enterprise.enterprise import Enterprise, Place
from openmsmq.sim.faults import Faults
from openmsmq.sim.hostile.adversary import Adversary
from openmsmq.sim.network import Network
from openmsmq.sim.node import Node
from openmsmq.sim.posts import PostNetwork
from openmsmq.sim.remote.door import RemoteDoor
from openmsmq.sim.remote.reader import RemoteReader
from openmsmq.sim.scenarios.scenario import PLAIN, TRANSACTIONAL, Scenario, name_of
from openmsmq.sim.trace import Trace
from openmsmq.sim.violation import Violation

STEPS_MAX_COUNT: Final = 400_000
"""More steps than any run needs."""

ENTERPRISE_STEPS_MAX_COUNT: Final = 4_000_000
"""More steps than any run of an enterprise needs, where many wait for links that are dead."""

CALM_MAX_MS: Final = 3_600_000
"""By then everything has arrived that can: no pause of a scenario is longer than a few minutes."""

_SILENCE_S: Final = 60
"""How long the adversary is believed, if it came first and says nothing any more."""

_LOOK_MS: Final = 500
_REST_MS: Final = 5_000
"""By then is done what a full disk had put off."""
_KEEPING_ALIVE_MS: Final = 120_000
"""By then a node knows that a reader is gone, which left without a word."""


class World:
    """Everything there is in a run."""

    def __init__(self, scenario: Scenario, rng: random.Random, *, trace: bool = False) -> None:
        self.scenario = scenario
        self.rng = rng
        self.timeline = Timeline()
        self.trace = Trace(self.timeline, wanted=trace)
        self.books = Books(self)
        self.network = Network(self, random.Random(rng.getrandbits(64)), scenario.network)
        self.posts = PostNetwork(self, random.Random(f"posts of {scenario.seed}"))
        self.faults = Faults(self, random.Random(rng.getrandbits(64)))
        self.calm = True
        """Whether nothing goes wrong just now."""
        self.calm_from_ms = 0
        self.stranded_count = 0
        """How many messages could not arrive, because no way was left."""
        self.excused: frozenset[int] = frozenset()
        """The messages that lay where no way leads on when all the others had arrived."""
        self.remote_share = scenario.remote_share
        self._steps_max = (
            STEPS_MAX_COUNT if scenario.enterprise is None else ENTERPRISE_STEPS_MAX_COUNT
        )
        self.applications: list[Party] = []
        self.nodes: list[Node] = []
        identifiers = [Guid(rng.randbytes(16)) for _ in scenario.nodes]
        self.enterprise: Enterprise | None = None
        if scenario.enterprise is not None:
            places = [
                Place(identifier, name_of(index), _address(index))
                for index, identifier in enumerate(identifiers)
            ]
            self.enterprise = Enterprise(scenario.enterprise, places, rng)
        self.adversary: Adversary | None = None
        if scenario.hostile is not None:
            self.adversary = Adversary(self, scenario.hostile, scenario.seed)
            self.books.hostile = HostileWatch(self.adversary)
        self._add_nodes(identifiers)
        if self.adversary is not None:
            self.adversary.settle_in()
        self.readers = self._remote_readers()

    def _remote_readers(self) -> list[RemoteReader]:
        """Open the doors of all nodes, and have them read from other computers."""
        remote = self.scenario.remote
        if remote is None:
            return []
        self.books.remote = RemoteWatch(self)
        rng = random.Random(f"doors of {self.scenario.seed}")
        found = []
        for node in self.nodes:
            node.door = RemoteDoor(node, random.Random(rng.getrandbits(64)))
            self.network.join(node.door)
            found += [RemoteReader(self, node, number, remote) for number in range(remote.readers)]
        return found

    @property
    def shows_certificates(self) -> bool:
        """Whether honest nodes prove to each other who they are."""
        return self.scenario.hostile is not None and self.scenario.hostile.mode == "tls"

    def _add_nodes(self, identifiers: list[Guid]) -> None:
        role = DirectoryRole.NONE if self.enterprise is None else DirectoryRole.COPY
        for index, habits in enumerate(self.scenario.nodes):
            address = _address(index)
            directory = DirectoryConfig(role=role)
            if self.scenario.enterprise is not None:
                poll_ms = self.scenario.enterprise.polls_ms[index]
                directory = DirectoryConfig(role=role, poll_ms=poll_ms, probe_ms=poll_ms)
            config = ManagerConfig(
                name=name_of(index),
                addresses=(address,),
                http=HttpConfig(enabled="http" in self.scenario.names),
                directory=directory,
                # Readers of few messages take them out as a range too.
                range_removal_min=1,
                # And small transactions are set aside.
                aside_min_bytes=1,
            )
            hops = {
                str(identifier): tuple(map(_address, self._next_hops(index, other)))
                for other, identifier in enumerate(identifiers)
                if other != index and self.enterprise is None and not self._knows_nobody
            }
            peers = self._peers(index, identifiers)
            config = msgspec.structs.replace(
                config,
                quota_kb=self.scenario.quota_kb,
                transfer=msgspec.structs.replace(
                    self.scenario.transfer, next_hops=hops, peers=peers
                ),
            )
            node = Node(self, index, config, identifiers[index], address, habits)
            self.nodes.append(node)
            self.network.join(node)
            self.trace.names.append(node.name)

    @property
    def _knows_nobody(self) -> bool:
        """Whether nothing at all is configured: messages by address and name need nothing."""
        hostile = self.scenario.hostile
        return (
            hostile is not None
            and hostile.mode == "plain"
            and "identifier" not in self.scenario.names
        )

    def _peers(self, index: int, identifiers: list[Guid]) -> PeerPolicy:
        """Return the rules that a node has about the others."""
        hostile = self.scenario.hostile
        if hostile is None or self.enterprise is not None:
            return PeerPolicy()
        if hostile.mode == "plain":
            return PeerPolicy(silence_s=_SILENCE_S) if hostile.comes_first else PeerPolicy()
        tls = hostile.mode == "tls"
        rules = tuple(
            PeerRule(
                name=name_of(other),
                identifiers=(identifier,),
                addresses=(_address(other),),
                certificates=(f"{other:064x}",) if tls else (),
                tls=tls,
                routes=other in self.scenario.routers,
            )
            for other, identifier in enumerate(identifiers)
            if other != index
        )
        return PeerPolicy(rules=rules, strict=hostile.mode == "strict")

    def _next_hops(self, index: int, other: int) -> tuple[int, ...]:
        routers = self.scenario.routers
        return routers if routers and index not in routers and other not in routers else (other,)

    # The run.

    def run(self) -> None:
        """Let it all happen; raises `Violation` when a promise is broken."""
        for node in self.nodes:
            node.start()
        limit_ms = self.timeline.now_ms + 60_000
        self._let([Founder(self, node) for node in self.nodes], limit_ms)
        if self.enterprise is not None:
            self.run_while(lambda: not all(node.knows_directory for node in self.nodes), limit_ms)
        self._first_phase()
        self._second_phase()
        endings.check(self)

    def _first_phase(self) -> None:
        self.calm = False
        self.calm_from_ms = self.timeline.now_ms + self.scenario.duration_ms
        self.trace.note(-1, "phase", "faults begin")
        self.faults.schedule()
        if self.adversary is not None:
            self.adversary.schedule()
        for node in self._working():
            for number in range(self.scenario.applications):
                worker = Worker(self, node, number, self.scenario.operation_count)
                self.applications.append(worker)
                worker.begin()
        others: list[Party] = [*self._streams(), *self._administrators(), *self.readers]
        for beside in others:
            self.applications.append(beside)
            beside.begin()
        self.run_while(lambda: self.timeline.now_ms < self.calm_from_ms, self.calm_from_ms)

    def _working(self) -> list[Node]:
        """Return the nodes with applications."""
        if self.scenario.enterprise is None:
            return self.nodes
        return [self.nodes[index] for index in self.scenario.enterprise.senders]

    @property
    def lasting(self) -> list[Node]:
        """The nodes that do not fail for ever: messages are sent to them."""
        gone = self.scenario.enterprise.gone if self.scenario.enterprise is not None else ()
        return [node for node in self.nodes if node.index not in gone]

    def _streams(self) -> list[Application]:
        count, found = self.scenario.operation_count, list[Application]()
        for node in self.nodes:
            if "stream" in self.scenario.operations:
                queue = (PLAIN, TRANSACTIONAL)[(node.index + self.scenario.seed) % 2]
                found.append(Stream(self, node, queue, 2 * count))
            if "batches" in self.scenario.operations:
                found.append(Batches(self, node, count))
        return found

    def _administrators(self) -> list[Application]:
        if self.enterprise is None or not self.enterprise.scenario.chores:
            return []
        node = self.rng.choice(self.lasting)
        return [Administrator(self, node, self.enterprise)]

    def _second_phase(self) -> None:
        self.calm = True
        self.trace.note(-1, "phase", "faults end")
        self.network.names_fail_until_ms = 0
        for node in self.nodes:
            node.disk.full_until_ms = node.disk.slow_until_ms = 0
            node.disk.fails_next = False
            node.power_left = None
        # Others may take a message for expired that its sender keeps until his own clock says so.
        behind_s = max(node.clock.behind_s for node in self.nodes)
        limit_ms = self.timeline.now_ms + CALM_MAX_MS + behind_s * 1000
        for application in self.applications:
            application.hurry()
        self.run_while(lambda: not self._all_done() or not self._all_know(), limit_ms)
        # The adversary fills queues that nobody may read any more.
        sweepers = [] if self.adversary is None else [Sweeper(self, node) for node in self.lasting]
        for sweeper in sweepers:
            sweeper.begin()
        self._settle(limit_ms, received=False)
        for sweeper in sweepers:
            sweeper.stop()
        self.run_while(lambda: not all(each.done for each in sweepers), limit_ms)
        if self.readers:
            # What they have, and say nothing of, is there for others after that.
            self._let_pass(PATIENCE_MS + _KEEPING_ALIVE_MS)
        self.excused = endings.excused_messages(self)
        self.trace.note(-1, "phase", "all that is left is received")
        self._let([Drain(self, node) for node in self.lasting], limit_ms)
        self._settle(limit_ms, received=True)
        if self.readers:
            # Before they speak of what they still have: nobody may have waited for that.
            endings.check_all_given(self)
        self._let_readers_go(limit_ms)
        self._let_pass(_KEEPING_ALIVE_MS if self.readers else _REST_MS)

    def _let_readers_go(self, limit_ms: int) -> None:
        """Have remote readers close what they have open, and leave."""
        for reader in self.readers:
            reader.finish()
        self.run_while(lambda: not self._all_done(), limit_ms)
        if self.readers:
            self._let_pass(_KEEPING_ALIVE_MS)
            endings.check_clerks(self)
        for reader in self.readers:
            reader.go()

    def _let_pass(self, delay_ms: int) -> None:
        """Give what was put off, and what only time ends, the time to be done."""
        rested_ms = self.timeline.now_ms + delay_ms
        while self.timeline.next_ms is not None and self.timeline.next_ms <= rested_ms:
            self.timeline.step()

    def _let(self, applications: list[Application], limit_ms: int) -> None:
        self.applications += applications
        for application in applications:
            application.begin()
        self.run_while(lambda: not self._all_done(), limit_ms)

    def _all_done(self) -> bool:
        return all(node.up for node in self.lasting) and all(
            application.done for application in self.applications
        )

    def directory_stored(self) -> None:
        """The disk of a node has a later state of the directory, or it is gone.

        Perhaps all that are left know the directory as it is now.
        """
        enterprise, watches = self.enterprise, self.books.disks.watches
        assert enterprise is not None, "there is no directory"
        if all(
            node.index in watches and watches[node.index].directory_number == enterprise.number
            for node in self.nodes
            if node.index not in enterprise.lost_nodes
        ):
            enterprise.settled_ms = self.timeline.now_ms

    def _all_know(self) -> bool:
        """Whether all that live know the directory as it is."""
        return self.enterprise is None or self.enterprise.settled_ms is not None

    def _settle(self, limit_ms: int, *, received: bool) -> None:
        """Wait until nothing is on its way, and with `received` until all senders know the end."""
        self.run_while(
            lambda: endings.is_under_way(self, received=received) or self.posts.arriving_count > 0,
            limit_ms,
        )

    def run_while(self, condition: Callable[[], bool], limit_ms: int) -> None:
        """Let things happen until a condition ends; it has to end in time."""
        timeline = self.timeline
        look_ms = 0
        while True:
            next_ms = timeline.next_ms
            if next_ms is None or next_ms >= look_ms:
                if not condition():
                    return
                if next_ms is None or next_ms > limit_ms:
                    self._out_of_time(limit_ms)
                    return
                look_ms = timeline.now_ms + _LOOK_MS
            timeline.step()
            if timeline.step_count > self._steps_max:
                raise Violation(f"the run goes on and on: {self._steps_max} steps")

    def _out_of_time(self, limit_ms: int) -> None:
        if not self.calm:
            self.timeline.now_ms = limit_ms
            return
        raise endings.why_not_done(self)

    # Power.

    def power_fails(self, node: Node) -> None:
        """A node loses power now."""
        self.faults.power_fails(node)
        if self.adversary is not None:
            self.adversary.node_is_down(node)

    def power_returns(self, node: Node) -> None:
        """A node starts again."""
        if not node.up and not self.faults.is_off(node):
            node.start()
            for application in self.applications:
                if application.node is node:
                    application.node_is_back()


def _address(index: int) -> str:
    return f"10.0.0.{index + 1}"
