"""What happens to a replicated queue manager, as a seed decides, and the promises that hold.

Clients send numbered operations, one after another, each again until it is acknowledged. Promises:

* what was acknowledged is in both databases at that moment, once, and in the order of its client,
* a store has what the databases have, and never more than they cannot lose,
* who is answered sees all that was acknowledged before it asked,
* what somebody still needs is not trimmed, and with a back-up a lost disk comes back,
* when nothing goes wrong any more, everything is acknowledged soon.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import msgspec

from openmsmq.protocol.replication.log import LeaseTimes
from openmsmq.sim.clock import Timeline
from openmsmq.sim.replication.member import Member, decode_record
from openmsmq.sim.replication.model_log import ModelLog
from openmsmq.sim.violation import Violation

STEPS_MAX_COUNT: Final = 400_000
"""More steps than any run needs."""

TROUBLE_MS: Final = 60_000
"""How long things go wrong."""

CALM_MS: Final = 60_000
"""How long everything takes at most afterwards."""

LONG_RECORDS: Final = LeaseTimes(long_record_bytes=4, long_ms_per_mib=600 << 20)
"""Every tenth seed has records with longer leases: by 0.6 s for each of their bytes."""

RESEND_MS: Final = 700
"""A client that hears nothing tries again, maybe elsewhere."""


class Client:
    """Sends numbered operations, and looks now and then whether they are there."""

    def __init__(self, world: ReplicationWorld, name: str, count: int) -> None:
        self.name = name
        self.count = count
        self.acknowledged = 0
        self._world = world
        self._attempt = 0
        self._friend: Member | None = None
        """Who has acknowledged last."""

    def send(self) -> None:
        """Send the next operation, to somebody."""
        if self.acknowledged == self.count:
            return
        self._attempt += 1
        world, attempt = self._world, self._attempt
        member, self._friend = self._friend or world.rng.choice(world.members), None
        operation = f"{self.name}:{self.acknowledged + 1}"
        number = self.acknowledged + 1

        def told(is_done: bool) -> None:
            world.timeline.after(world.delay_ms(), self._told, number, is_done, member)

        if member.is_up:
            member.later(world.delay_ms(), member.take, operation, told)
            self._look(member)
        world.timeline.after(RESEND_MS, self._again, attempt)

    def _told(self, number: int, is_done: bool, member: Member) -> None:
        if is_done and number == self.acknowledged + 1:
            self.acknowledged = number
            self._friend = member
            pause_ms = self._world.rng.choice((1, 5, 50, 800))
            self._world.timeline.after(pause_ms, self.send)

    def _again(self, attempt: int) -> None:
        if attempt == self._attempt:
            self.send()

    def _look(self, member: Member) -> None:
        known = self.acknowledged

        def told(count: int) -> None:
            if count < known:
                raise Violation(
                    f"{member.name} tells {self.name} of {count} operations, and {known} were "
                    "acknowledged before it asked"
                )

        member.later(self._world.delay_ms(), member.look, f"{self.name}:", told)


class Summary(msgspec.Struct, frozen=True):
    """What happened in a run."""

    seed: int
    sentence: str = ""
    """The promise that was broken; empty when none was."""
    steps: int = 0
    operations: int = 0
    takeovers: int = 0
    faults: int = 0
    trimmed: int = 0


class ReplicationWorld:
    """Two or three computers, a log, clients, and what goes wrong."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.timeline = Timeline()
        times = LONG_RECORDS if seed % 10 == 9 else LeaseTimes()
        self.log = ModelLog(self.timeline, random.Random(self.rng.getrandbits(64)), times.lease_ms)
        count = self.rng.choice((2, 2, 3))
        self.members = [Member(self, f"computer{i}", times) for i in range(count)]
        self.clients = [
            Client(self, f"c{i}", self.rng.randrange(5, 60))
            for i in range(self.rng.randrange(1, 4))
        ]
        self.newest_back_up: list[bytes] = []
        self.takeovers = 0
        self.faults = 0
        self._loss = self.rng.choice((0.0, 0.0, 0.01, 0.1))
        self._delay_max_ms = self.rng.choice((2, 5, 50))
        self._calm = False

    def run(self) -> Summary:
        """Run to the end; raise `Violation` when a promise is broken."""
        for member in self.members:
            self.timeline.after(self.rng.randrange(1, 1000), self._start, member)
        for client in self.clients:
            self.timeline.after(self.rng.randrange(1, 3000), client.send)
        self._next_fault()
        self._run_until(TROUBLE_MS, lambda: False)
        self._calm_down()
        self._run_until(TROUBLE_MS + CALM_MS, self._is_done)
        self._check_end()
        operations = sum(client.acknowledged for client in self.clients)
        trimmed = self.log.durable.first - 1
        steps = self.timeline.step_count
        return Summary(self.seed, "", steps, operations, self.takeovers, self.faults, trimmed)

    def _run_until(self, at_ms: int, is_done: Callable[[], bool]) -> None:
        while not is_done() and (self.timeline.next_ms or at_ms) < at_ms:
            self.timeline.step()
            if self.timeline.step_count > STEPS_MAX_COUNT:
                raise Violation("it goes on and on")

    def _is_done(self) -> bool:
        return all(client.acknowledged == client.count for client in self.clients)

    @staticmethod
    def _start(member: Member) -> None:
        if not member.is_up:
            member.start()

    # The network.

    def loses(self) -> bool:
        """Whether a packet is lost."""
        return not self._calm and self.rng.random() < self._loss

    def delay_ms(self) -> int:
        """How long a packet is on its way; now and then much longer."""
        if not self._calm and self.rng.random() < 0.01:
            return self.rng.randrange(1, 6000)
        return self.rng.randrange(1, self._delay_max_ms + 1)

    # What goes wrong.

    def _next_fault(self) -> None:
        self.timeline.after(self.rng.randrange(300, 8000), self._fault)

    def _fault(self) -> None:
        if self._calm:
            return
        self.faults += 1
        member = self.rng.choice(self.members)
        primaries = [each for each in self.members if each.tenure is not None]
        if primaries and self.rng.random() < 0.6:
            member = self.rng.choice(primaries)
        self.rng.choice(
            (
                self._kill,
                self._kill,
                self._stop,
                self._cut,
                self._lose_disk,
                self._back_up,
                self._back_up,
                self._hand_over,
                self._database_restarts,
                self._database_fails_over,
                self._database_slow,
                self._database_away,
            )
        )(member)
        self._next_fault()

    def _kill(self, member: Member) -> None:
        if member.is_up:
            member.kill()
            self.timeline.after(self.rng.randrange(100, 9000), self._start, member)

    def _stop(self, member: Member) -> None:
        member.stop_until(self.timeline.now_ms + self.rng.randrange(100, 12_000))

    def _cut(self, member: Member) -> None:
        member.is_cut = True
        self.timeline.after(self.rng.randrange(100, 12_000), self._heal, member)

    @staticmethod
    def _heal(member: Member) -> None:
        member.is_cut = False

    def _lose_disk(self, member: Member) -> None:
        if len(self.newest_back_up) + 1 < self.log.durable.first:
            raise Violation("the log begins behind the newest back-up")
        if member.is_up:
            member.kill()
            member.lose_disk(self.newest_back_up)
            self.timeline.after(self.rng.randrange(100, 9000), self._start, member)

    def _back_up(self, member: Member) -> None:
        member.make_back_up()

    def _hand_over(self, member: Member) -> None:
        self.log.hand_over()
        if self.rng.random() < 0.5:
            self.timeline.after(self.rng.randrange(1, 1000), self._cut, member)

    def _database_restarts(self, _: Member) -> None:
        self.log.restart()

    def _database_fails_over(self, _: Member) -> None:
        self.log.fail_over()

    def _database_slow(self, _: Member) -> None:
        self.log.slow_ms = self.rng.choice((20, 500, 2500))
        self.timeline.after(self.rng.randrange(100, 9000), self._database_quick)

    def _database_quick(self) -> None:
        self.log.slow_ms = 0

    def _database_away(self, _: Member) -> None:
        self.log.is_away = True
        self.timeline.after(self.rng.randrange(100, 9000), self._database_back)

    def _database_back(self) -> None:
        self.log.is_away = False

    def _calm_down(self) -> None:
        self._calm = True
        self._database_quick()
        self._database_back()
        for member in self.members:
            self._heal(member)

    # Promises.

    def promoted(self, _: str) -> None:
        """Count a take-over."""
        self.takeovers += 1

    def damaged(self, member: Member, why: str) -> None:
        """Hear that a computer gave up: only one that the log has not known may, for one reason."""
        is_known = member.name in self.log.followers and not member.has_lost_disk
        if is_known or "newer back-up" not in why:
            raise Violation(f"{member.name} gives up: {why}")
        member.lose_disk(self.newest_back_up)
        self.timeline.after(self.rng.randrange(100, 3000), self._start, member)

    def check_acknowledged(self, operation: str, name: str) -> None:
        """Look whether what is acknowledged cannot be lost."""
        durable = range(1, self.log.durable.last + 1)
        if sum(self._count(number, operation) for number in reversed(durable)) != 1:
            raise Violation(f"{name} acknowledges {operation}, which the databases can lose")

    def _count(self, number: int, operation: str) -> int:
        record = self.log.records[number]
        return decode_record(record).count(operation) if operation.encode() in record else 0

    def check_stored(self, name: str, number: int, record: bytes, count: int) -> None:
        """Look whether a store gets what the databases have."""
        if number != count + 1:
            raise Violation(f"{name} stores record {number} behind {count}")
        if number > self.log.durable.last or self.log.records[number] != record:
            raise Violation(f"{name} stores a record {number} that the databases can lose")

    def _check_end(self) -> None:
        for client in self.clients:
            if client.acknowledged != client.count:
                raise Violation(
                    f"{client.name} has {client.acknowledged} of {client.count} acknowledged long "
                    "after the last fault"
                )
        seen: dict[str, int] = {}
        for number in range(1, self.log.durable.last + 1):
            for operation in decode_record(self.log.records[number]):
                name, _, place = operation.partition(":")
                if int(place) != seen.get(name, 0) + 1:
                    raise Violation(f"{operation} comes behind {name}:{seen.get(name, 0)}")
                seen[name] = int(place)


def run_replication_seed(seed: int) -> Summary:
    """Run a seed."""
    world = ReplicationWorld(seed)
    try:
        return world.run()
    except Violation as violation:
        return Summary(seed, violation.sentence)
