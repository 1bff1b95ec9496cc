"""Running seeds: one, or many at once on all cores."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final, TypeVar

import msgspec

from openmsmq.sim.replication.world import Summary, run_replication_seed
from openmsmq.sim.scenarios.scenario import Options, draw
from openmsmq.sim.trace import Trace
from openmsmq.sim.violation import Violation
from openmsmq.sim.world import World

_SEEDS_PER_JOB: Final = 20
_Found = TypeVar("_Found")


class Result(msgspec.Struct, frozen=True):
    """What a seed gave."""

    seed: int
    sentence: str = ""
    """The promise that was broken; empty when none was."""
    detail: str = ""
    messages: tuple[int, ...] = ()
    steps: int = 0
    message_count: int = 0
    arrived_count: int = 0
    remote_count: int = 0
    """How many messages came from another node."""
    packet_count: int = 0
    crash_count: int = 0
    fault_count: int = 0
    virtual_ms: int = 0
    stranded_count: int = 0
    hop_count_max: int = 0
    change_count: int = 0
    """How often the directory of an enterprise was changed."""
    taken_count: int = 0
    """How many messages remote readers know to have taken."""
    again_count: int = 0
    """How many came again after a remote reader that does not know whether it has taken them."""

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not self.sentence


def make_world(seed: int, options: Options, *, trace: bool = False) -> World:
    """Build the world of a seed."""
    rng = random.Random(seed)
    return World(draw(seed, options, rng), rng, trace=trace)


def run_seed(seed: int, options: Options) -> Result:
    """Run a seed to its end."""
    return _run(make_world(seed, options), seed)


def run_traced(seed: int, options: Options) -> tuple[Result, Trace]:
    """Run a seed and keep everything that happened."""
    world = make_world(seed, options, trace=True)
    return _run(world, seed), world.trace


def run_seeds(first: int, count: int, options: Options, jobs: int) -> Iterator[Result]:
    """Run many seeds, in order; `jobs` processes share the work."""
    return _run_all(partial(run_seed, options=options), first, count, jobs)


def run_replication_seeds(first: int, count: int, jobs: int) -> Iterator[Summary]:
    """Run many seeds of a queue manager on several computers, in order."""
    return _run_all(run_replication_seed, first, count, jobs)


def _run_all(run: Callable[[int], _Found], first: int, count: int, jobs: int) -> Iterator[_Found]:
    seeds = range(first, first + count)
    if jobs <= 1:
        for seed in seeds:
            yield run(seed)
        return
    parts = [seeds[i : i + _SEEDS_PER_JOB] for i in range(0, count, _SEEDS_PER_JOB)]
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for results in pool.map(partial(_run_part, run), parts):
                yield from results
        finally:
            pool.shutdown(cancel_futures=True)


def _run_part(run: Callable[[int], _Found], seeds: range) -> list[_Found]:
    return [run(seed) for seed in seeds]


def _run(world: World, seed: int) -> Result:
    sentence = detail = ""
    messages: tuple[int, ...] = ()
    try:
        world.run()
    except Violation as violation:
        sentence, detail, messages = violation.sentence, violation.detail, violation.messages
    books = world.books
    return Result(
        seed,
        sentence,
        detail,
        messages,
        world.timeline.step_count,
        len(books.messages),
        sum(message.arrivals for message in books.messages.values()),
        sum(message.arrivals for message in books.messages.values() if message.remote),
        books.wire.packet_count,
        sum(map(len, books.disks.crash_times_ms.values())),
        world.faults.count,
        world.timeline.now_ms,
        world.stranded_count,
        books.wire.hop_count_max,
        0 if world.enterprise is None else len(world.enterprise.states) - 1,
        0 if books.remote is None else books.remote.taken_count,
        0 if books.remote is None else books.remote.again_count,
    )
