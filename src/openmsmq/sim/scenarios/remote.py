"""What a seed decides about readers on other computers: how many there are, and what they do."""

from __future__ import annotations

import random
from typing import Final

import msgspec

READINGS: Final = (
    "take",
    "wait",
    "cancel",
    "orphan",
    "peek",
    "cursor",
    "lookup",
    "repeat",
    "forget",
    "purge",
    "stranger",
    "impostor",
    "spoil",
    "close",
    "leave",
    "die",
)
"""What remote readers do. Each of them may be missing from a run."""


class Proof(msgspec.Struct, frozen=True):
    """How remote readers prove who they are."""

    kind: str
    """`ntlm` or `spnego`."""
    level: str
    """How far their calls are protected: `connect`, `integrity` or `privacy`."""


class RemoteScenario(msgspec.Struct, frozen=True):
    """Remote readers, before a run begins."""

    readers: int
    """How many read at each node."""
    hands: int
    """How many things each of them does at a time."""
    operation_count: int
    """How many things each hand does."""
    readings: tuple[str, ...]
    lines_max: int
    """How many connections each of them has at a time; they share what is opened."""
    concurrent: bool
    """Whether they offer to have several calls under way."""
    fragment_max: int
    """The longest fragment that they take."""
    pieces_chance: float
    """How many of their calls come in several fragments, if nothing protects these."""
    proof: Proof | None = None
    """None if they need not prove anything."""

    @property
    def knows_all(self) -> bool:
        """Whether a reader knows of everything that its node keeps for it.

        Those with several connections may not have heard what was opened through one of them that
        is lost, and the others keep that alive.
        """
        return self.lines_max == 1 and "stranger" not in self.readings


def draw_remote(seed: int) -> RemoteScenario:
    """Let a seed decide; its other decisions stay as they are without remote readers."""
    rng = random.Random(f"remote readers of {seed}")
    readings = tuple(name for name in READINGS if rng.random() < 0.6)
    return RemoteScenario(
        rng.randrange(1, 4),
        rng.randrange(1, 4),
        rng.randrange(3, 11),
        tuple(dict.fromkeys(("take", *readings))),
        rng.choice((1, 1, 2)),
        rng.random() < 0.8,
        rng.choice((2_048, 5_840)),
        rng.choice((0.0, 0.3)),
        _draw_proof(rng),
    )


def _draw_proof(rng: random.Random) -> Proof | None:
    if rng.random() < 0.4:
        return None
    return Proof(rng.choice(("ntlm", "spnego")), rng.choice(("connect", "integrity", "privacy")))
