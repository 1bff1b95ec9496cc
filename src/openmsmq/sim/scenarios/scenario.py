"""What a seed decides before its run begins: how many nodes, what they do, what goes wrong.

Every class of faults and of operations may be off in a run: bugs that need two things and not a
third are found sooner when the third is missing altogether.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

from openmsmq.protocol.config import TransferConfig
from openmsmq.sim.scenarios.enterprise import (
    ENTERPRISE_MANAGERS_MAX_COUNT,
    EnterpriseScenario,
    draw_enterprise,
)
from openmsmq.sim.scenarios.hostile import HostileScenario, draw_hostile
from openmsmq.sim.scenarios.remote import RemoteScenario, draw_remote

NAMES: Final = ("ALPHA", "BRAVO", "CHARLIE", "DELTA", "ECHO", "FOXTROT", "GOLF", "HOTEL")
MANAGERS_MAX_COUNT: Final = len(NAMES)

PLAIN: Final = "private$\\plain"
TRANSACTIONAL: Final = "private$\\transactional"
SECOND: Final = "private$\\second"
"""A transactional queue too: some transactions go to both, or to this one."""
ADMIN: Final = "private$\\admin"
SMALL: Final = "private$\\small"
"""A queue with a quota that is soon reached."""
SMALL_QUOTA_KB: Final = 2
CLOSED: Final = "private$\\closed"
"""A queue that takes signed messages only; there is one beside an adversary."""
CLOSED_TRANSACTIONAL: Final = "private$\\shut"

DESTINATIONS: Final = ("address", "name", "identifier")
"""What seeds choose from. Over HTTP messages go only where that is asked for."""
HTTP: Final = "http"

FAULTS: Final = (
    "crash",
    "cut",
    "half open",
    "partition",
    "refuse",
    "names",
    "disk slow",
    "disk full",
    "disk fails",
    "clock",
    "application",
)
OPERATIONS: Final = (
    "express",
    "recoverable",
    "own transaction",
    "transaction",
    "prepared",
    "receive",
    "purge",
    "small",
)
ENTERPRISE_OPERATIONS: Final = (
    "recoverable",
    "own transaction",
    "transaction",
    "prepared",
    "receive",
)
"""What applications do in an enterprise: nothing after which a message may be missing."""
ENTERPRISE_DESTINATIONS: Final = ("identifier", "public")

_HOSTILE_RETRY_MS: Final = 1_000

STREAMS: Final = ("stream", "batches")
"""What applications of their own do, beside the workers."""

_FILLING: Final = ("express", "recoverable", "own transaction", "transaction")
"""What brings messages that others can read."""

TRANSACTIONS: Final = frozenset(("transaction", "prepared", "batches"))
"""What sends to several queues at once, where there are several."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asks for; None leaves it to the seed."""

    managers: int | None = None
    operations: int | None = None
    """How many things each application does."""
    faults: bool = True
    transfer: bool = True
    only: tuple[str, ...] = ()
    """If given, the only classes of faults."""
    doing: tuple[str, ...] = ()
    """If given, the only things that applications do."""
    names: tuple[str, ...] = ()
    """If given, the only ways to write a destination."""
    enterprise: bool = False
    """Whether the nodes have sites, links and a directory, and must route."""
    administered: bool = True
    """Whether the directory of an enterprise is changed while messages are under way."""
    hostile: str = ""
    """The mode in which an adversary takes part; without one there is none."""
    attacks: tuple[str, ...] = ()
    """If given, the only things that the adversary tries."""
    remote_readers: bool = False
    """Whether queues are read from other computers as well."""
    readings: tuple[str, ...] = ()
    """If given, the only things that remote readers do."""


class NodeHabits(msgspec.Struct, frozen=True):
    """How one computer behaves when nothing is wrong."""

    turn_ms: int
    """How long inputs are collected before a turn."""
    flush_max_ms: int
    """How long a batch takes to the disk at most; 0 writes at once, as the process does."""
    wall_error_s: int


class NetworkHabits(msgspec.Struct, frozen=True):
    """How the network behaves when nothing is wrong."""

    delay_min_ms: int
    delay_max_ms: int
    pieces_chance: float
    datagram_loss: float


class Wishes(msgspec.Struct, frozen=True):
    """How often messages ask for more than to be delivered."""

    lifetimes: float
    journals: float
    dead_letters: float
    acknowledgments: float
    journaling: bool
    """Whether the queues keep copies of what was received."""


class Scenario(msgspec.Struct, frozen=True):
    """A run, before it begins."""

    seed: int
    nodes: tuple[NodeHabits, ...]
    network: NetworkHabits
    transfer: TransferConfig
    wishes: Wishes
    operations: frozenset[str]
    faults: tuple[str, ...]
    """Faults in the order they come; a class may come several times."""
    duration_ms: int
    """How long faults go on."""
    applications: int
    """How many work at each node."""
    operation_count: int
    remote_share: float
    """How much of what is sent leaves its node."""
    names: tuple[str, ...]
    """How senders write the destination: by address, by name, or by identifier and number."""
    routers: tuple[int, ...]
    """The nodes through which messages to identifiers go, in turn; none when they go straight."""
    enterprise: EnterpriseScenario | None = None
    hostile: HostileScenario | None = None
    two_queues: bool = False
    """Whether transactions have two queues to send to, and some of them can be set aside."""
    remote: RemoteScenario | None = None

    @property
    def quota_kb(self) -> int:
        """The room that each queue manager has for messages; 0 for what is usual.

        In an enterprise the directory would have to be told, and nobody administers that here.
        """
        if self.hostile is None or self.enterprise is not None:
            return 0
        return self.hostile.quota_kb

    def may_refuse(self, queue: str) -> bool:
        """Whether messages to a queue may be refused though nothing is wrong."""
        return queue == SMALL


def name_of(index: int) -> str:
    """Return the name of a node."""
    return NAMES[index] if index < len(NAMES) else f"NODE{index + 1}"


def draw(seed: int, options: Options, rng: random.Random) -> Scenario:
    """Let a seed decide."""
    if options.remote_readers and options.managers is None:
        # Nothing of remote reading needs several computers.
        count = random.Random(f"computers of {seed}").choices((1, 2, 3), (5, 4, 1))[0]
        options = msgspec.structs.replace(options, managers=count)
    drawn = _draw_enterprise if options.enterprise else _draw_free
    scenario = drawn(seed, options, rng)
    if options.remote_readers:
        return _with_remote_readers(scenario, options)
    if not options.hostile:
        return scenario
    # Links to where nobody is would take most of the time of a run.
    retry_ms = max(scenario.transfer.retry_connect_ms, _HOSTILE_RETRY_MS)
    hostile = draw_hostile(seed, options.hostile, options.attacks)
    if scenario.routers:
        # Where others bring all messages of a name, they vouch for whoever used it first.
        hostile = msgspec.structs.replace(hostile, comes_first=False)
    return msgspec.structs.replace(
        scenario,
        hostile=hostile,
        transfer=msgspec.structs.replace(scenario.transfer, retry_connect_ms=retry_ms),
    )


def _with_remote_readers(scenario: Scenario, options: Options) -> Scenario:
    """Let somebody send what they read; purges would hide what is lost."""
    operations = scenario.operations - {"purge"}
    if operations.isdisjoint(_FILLING):
        operations |= {"recoverable", "own transaction"}
    remote = draw_remote(scenario.seed)
    if options.readings:
        remote = msgspec.structs.replace(remote, readings=options.readings)
    return msgspec.structs.replace(scenario, operations=operations, remote=remote)


def _draw_free(seed: int, options: Options, rng: random.Random) -> Scenario:
    """Let a seed decide about a few nodes without a directory."""
    count = options.managers or rng.choices((1, 2, 3, 4), (2, 5, 3, 1))[0]
    if options.hostile:
        # One alone has nothing on the wire that could be overheard.
        count = max(count, 2)
    duration_ms = rng.choice((5_000, 30_000, 120_000))
    faults: tuple[str, ...] = ()
    if options.faults:
        classes = options.only or tuple(name for name in FAULTS if rng.random() < 0.4)
        if classes:
            faults = tuple(rng.choices(classes, k=rng.randrange(1, 10)))
    operations = frozenset(name for name in OPERATIONS if rng.random() < 0.6)
    # Drawn apart, so that a run without them is the same as before there were any.
    streams = random.Random(f"streams of {seed}")
    beside = frozenset(name for name in STREAMS if streams.random() < 0.4)
    doing = _operations(options, operations, beside)
    two_queues = random.Random(f"queues of {seed}").random() < 0.5
    share = rng.choice((0.3, 0.7, 0.95)) if options.transfer and count > 1 else 0.0
    return Scenario(
        seed,
        tuple(_habits(rng) for _ in range(count)),
        NetworkHabits(
            rng.choice((0, 1, 10)),
            rng.choice((10, 40, 400)),
            rng.choice((0.0, 0.1, 0.5)),
            rng.choice((0.0, 0.2)),
        ),
        _transfer(rng),
        Wishes(
            rng.choice((0.0, 0.0, 0.2)),
            rng.choice((0.0, 0.3)),
            rng.choice((0.0, 0.3)),
            rng.choice((0.0, 0.3)),
            rng.random() < 0.3,
        ),
        doing,
        faults,
        duration_ms,
        rng.randrange(1, 4),
        options.operations or rng.randrange(4, 13),
        share,
        options.names
        or rng.choice((DESTINATIONS, DESTINATIONS[:1], DESTINATIONS[1:2], DESTINATIONS[2:])),
        _routers(count, rng),
        two_queues=two_queues and not TRANSACTIONS.isdisjoint(doing) and not options.hostile,
    )


def _draw_enterprise(seed: int, options: Options, rng: random.Random) -> Scenario:
    """Let a seed decide about an enterprise: most runs are small, some are as large as can be."""
    largest = ENTERPRISE_MANAGERS_MAX_COUNT
    count = options.managers or min(rng.randrange(4, 16), largest) * rng.choice((1, 1, 2, 4))
    count = min(count, largest)
    duration_ms = rng.choice((5_000, 30_000, 120_000))
    faults: tuple[str, ...] = ()
    classes = options.only or tuple(name for name in FAULTS if rng.random() < 0.3)
    if options.faults and classes:
        faults = tuple(rng.choices(classes, k=rng.randrange(1, 10)))
    operations = options.doing or [name for name in ENTERPRISE_OPERATIONS if rng.random() < 0.6]
    return Scenario(
        seed,
        tuple(_habits(rng) for _ in range(count)),
        NetworkHabits(rng.choice((0, 1, 10)), rng.choice((10, 40, 400)), 0.0, 0.0),
        msgspec.structs.replace(_transfer(rng), retry_connect_ms=rng.choice((1_000, 5_000))),
        Wishes(0.0, 0.0, 0.0, 0.0, journaling=False),
        frozenset(operations or ("own transaction", "recoverable")),
        faults,
        duration_ms,
        1,
        options.operations or rng.randrange(4, 13),
        0.95,
        options.names or ENTERPRISE_DESTINATIONS,
        (),
        _administered(draw_enterprise(rng, count, duration_ms, faults=options.faults), options),
    )


def _administered(scenario: EnterpriseScenario, options: Options) -> EnterpriseScenario:
    return scenario if options.administered else msgspec.structs.replace(scenario, chores=())


def _operations(options: Options, drawn: frozenset[str], beside: frozenset[str]) -> frozenset[str]:
    if options.doing:
        return frozenset(options.doing)
    return (drawn or frozenset(("recoverable", "transaction"))) | beside


def _routers(count: int, rng: random.Random) -> tuple[int, ...]:
    """Choose routers; with two of them, messages may overtake each other."""
    if count < 3 or rng.random() < 0.4:
        return ()
    return (1, 2) if count > 3 else (1,)


def _habits(rng: random.Random) -> NodeHabits:
    return NodeHabits(
        rng.choice((0, 0, 1, 5)), rng.choice((0, 0, 5, 50)), rng.choice((0, 0, -90, 3, 90))
    )


def _transfer(rng: random.Random) -> TransferConfig:
    first_s = rng.choice((1, 5, 30))
    return TransferConfig(
        window=rng.choice((1, 2, 5, 64)),
        retry_connect_ms=rng.choice((100, 1000, 5000)),
        session_idle_ms=rng.choice((2_000, 20_000, 300_000)),
        resend_first_s=first_s,
        resend_second_s=2 * first_s,
        resend_third_s=4 * first_s,
        resend_last_s=8 * first_s,
        ask_ping=rng.random() < 0.2,
    )
