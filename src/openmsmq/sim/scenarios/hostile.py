"""What a seed decides about the adversary: where it sits, what it tries, and what is promised.

A mode is what the honest side has set up, and so what the threat model promises:

- `known`: rules say who is at which address, or the directory does in an enterprise;
- `plain`: nobody has set anything up. Whoever was met first at an address stays that one, so the
  adversary claims nobody of whom its victim has not heard yet: plain MSMQ cannot protect that. In
  some runs it does so all the same. Then it is believed, and its words come in under the names of
  others; but nothing is lost, and when it is silent for as long as the rules say, all flows go on;
- `tls`: honest sessions are proven by certificates, and the adversary may even use the addresses
  of others;
- `strict`: as `known`, and whom no rule names is not let in at all.
"""

from __future__ import annotations

import random
from enum import Enum
from typing import Final

import msgspec

MODES: Final = ("known", "plain", "tls", "strict")
ALL_MODES: Final = "all"
"""The modes in turn, seed by seed."""


class Cue(Enum):
    """What others say that makes the adversary answer at once."""

    NOTHING = "nothing"
    SEQUENCES = "messages that have a place in a sequence"
    MESSAGES = "all messages"


ATTACKS: Final = {
    "order acks": Cue.SEQUENCES,
    "final acks": Cue.SEQUENCES,
    "jumps": Cue.SEQUENCES,
    "younger sequences": Cue.SEQUENCES,
    "replays": Cue.MESSAGES,
    "numbers": Cue.MESSAGES,
    "claims": Cue.MESSAGES,
    "relays": Cue.NOTHING,
    "reports": Cue.NOTHING,
    "dead letters": Cue.NOTHING,
    "floods": Cue.NOTHING,
    "invented senders": Cue.NOTHING,
    "many names": Cue.NOTHING,
    "handshakes": Cue.NOTHING,
    "garbage": Cue.NOTHING,
    "session acks": Cue.SEQUENCES,
    "housemates": Cue.MESSAGES,
    "forged reports": Cue.SEQUENCES,
}
"""What the adversary can try, and what each of them answers to."""

_COMING_FIRST: Final = (
    "order acks",
    "final acks",
    "claims",
    "session acks",
)
"""What it does under the name of one who has not been met. Whatever else it did would be the honest
message of somebody else, for all that anybody can know; and a sequence that it begins is the one of
that name, behind which the owner's own counts as older or as having come already."""


class HostileScenario(msgspec.Struct, frozen=True):
    """An adversary, before a run begins."""

    mode: str
    hideouts: int
    """How many addresses it has."""
    attacks: tuple[str, ...]
    """What it tries; what is listed twice is tried twice as often."""
    moves: int
    """How many times it acts by itself while other things go wrong."""
    reactions: int
    """How many times it answers at once to what it overhears."""
    later_moves: int
    """How many times it acts when nothing else goes wrong any more."""
    quota_kb: int
    """The room that each honest queue manager has for messages."""
    comes_first: bool = False
    """Whether it uses the names of others where nobody has met them."""

    @property
    def is_pinned(self) -> bool:
        """Whether honest nodes know each other from the beginning."""
        return self.mode != "plain"


def draw_hostile(seed: int, mode: str, only: tuple[str, ...]) -> HostileScenario:
    """Let a seed decide; its other decisions stay as they are without an adversary."""
    rng = random.Random(f"adversary of {seed}")
    attacks = only or tuple(name for name in ATTACKS if rng.random() < 0.4)
    chosen = MODES[seed % len(MODES)] if mode == ALL_MODES else mode
    comes_first = chosen == "plain" and not only and rng.random() < 0.2
    if comes_first:
        attacks = tuple(name for name in _COMING_FIRST if rng.random() < 0.6) or _COMING_FIRST
    return HostileScenario(
        chosen,
        rng.randrange(1, 4),
        attacks or ("order acks", "jumps"),
        rng.randrange(3, 13),
        rng.randrange(0, 13),
        rng.choice((0, 3, 8)),
        rng.choice((128, 512)),
        comes_first,
    )
