"""All targets: where each is, what it starts from, how its inputs are repaired, and its share.

A target is imported when it is asked for: under the fuzzer, every module that is imported is slowed
down, and takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Final, NamedTuple, TypeAlias

Target: TypeAlias = Callable[[bytes], None]
Repair: TypeAlias = Callable[[bytes, Random], bytes]

_WIRE: Final = ("tests.fuzz.targets", "tests.fuzz.seeds", "tests.fuzz.mutation")
_MANAGER: Final = (
    "tests.fuzz.manager_targets",
    "tests.fuzz.manager_seeds",
    "tests.fuzz.tree_mutation",
)
_SECURITY: Final = (
    "tests.fuzz.security_targets",
    "tests.fuzz.security_seeds",
    "tests.fuzz.security_seeds",
)
_RPC: Final = ("tests.fuzz.rpc_targets", "tests.fuzz.rpc_seeds", "tests.fuzz.rpc_seeds")
_REMOTE: Final = (
    "tests.fuzz.remote_targets",
    "tests.fuzz.remote_seeds",
    "tests.fuzz.remote_targets",
)
_SEALED: Final = ("tests.fuzz.sealed_targets", "tests.fuzz.sealed_seeds", "tests.fuzz.sealed_seeds")
_SRMP: Final = ("tests.fuzz.srmp_targets", "tests.fuzz.srmp_seeds", "tests.fuzz.srmp_seeds")
_PGM: Final = ("tests.fuzz.pgm_targets", "tests.fuzz.pgm_seeds", "tests.fuzz.pgm_seeds")
_PLACES: Final = {
    "packets": _WIRE,
    "frames": _WIRE,
    "datagrams": _WIRE,
    "keys": _WIRE,
    "notifications": _WIRE,
    "acknowledgments": _WIRE,
    "names": _WIRE,
    "captures": _WIRE,
    "views": _WIRE,
    "calls": _MANAGER,
    "sessions": _MANAGER,
    "directory": _MANAGER,
    "discovery": _MANAGER,
    "signatures": _SECURITY,
    "encryption": _SECURITY,
    "certificates": _SECURITY,
    "descriptors": _SECURITY,
    "associations": _RPC,
    "fragments": _RPC,
    "mapper": _RPC,
    "stubs": _REMOTE,
    "remote-messages": _REMOTE,
    "remote-calls": _REMOTE,
    "authentication": _SECURITY,
    "sealed-streams": _SEALED,
    "client-streams": _SEALED,
    "envelopes": _SRMP,
    "posts": _SRMP,
    "http-captures": _SRMP,
    "multicast-packets": _PGM,
    "multicast-streams": _PGM,
    "multicast-captures": _PGM,
}
"""The modules with a target, with its seeds and with its repair."""

NAMES: Final = tuple(_PLACES)

SHARES: Final = {
    "packets": 4,
    "frames": 2,
    "captures": 3,
    "views": 3,
    "calls": 6,
    "sessions": 6,
    "signatures": 2,
    "encryption": 2,
    "associations": 3,
    "sealed-streams": 3,
}
"""Parts of the time: most for what has most code behind it; one for each target not named."""

COUNT_SHARES: Final = {
    "packets": 4,
    "frames": 4,
    "calls": 4,
    "sessions": 3,
    "acknowledgments": 1,
    "discovery": 1,
    "associations": 3,
    "fragments": 4,
    "mapper": 4,
    "stubs": 4,
    "remote-messages": 4,
    "remote-calls": 1,
    "authentication": 1,
    "sealed-streams": 1,
    "client-streams": 1,
}
"""Parts of a number of inputs; two for each target not named."""

SLOW: Final = frozenset({"calls", "sessions", "remote-calls"})
"""Targets that have a queue manager do something for each input."""


class Loaded(NamedTuple):
    """What a run of a target needs."""

    target: Target
    seeds: Callable[[], list[bytes]]
    repair: Repair | None


def load(name: str) -> Loaded:
    """Import a target."""
    targets, seeds, repairs = map(import_module, _PLACES[name])
    return Loaded(targets.TARGETS[name], seeds.SEEDS[name], repairs.REPAIRS.get(name))


def seeds(name: str) -> list[bytes]:
    """The inputs that a target starts from, always the same ones."""
    return list(dict.fromkeys(load(name).seeds()))
