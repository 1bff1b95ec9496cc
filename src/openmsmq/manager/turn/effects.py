"""Effects: what a turn does, as values that can be printed and compared.

An operation is carried out in two halves. The first checks, changes what memory assumes, and says
what is to be stored; the second comes a turn later, when the disk has it. An effect has both, and
the way back, in one class. The ledger puts them in order:

* `apply` and `store` when the effect is added, so effects see what was added before them (one that
  has neither is added with `add_waiting`, and costs less);
* `follow` when the turn is durable, in the order in which they were added;
* `revert` if the disk refuses, the other way round: what was added first is taken back last.

Whatever others can see, an answer above all, belongs into `follow`, and nowhere else.
"""

from __future__ import annotations

from typing import TypeAlias

from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError

Plain: TypeAlias = str | int | bool | None
"""What an effect tells of itself: names, numbers and sizes, never what a message contains."""


class Effect:
    """Something that a turn does. What a class does not say does nothing.

    An effect is not changed once it is added, except one that grows: it takes in more until its
    turn ends, and is stored then.
    """

    __slots__ = ()

    def apply(self) -> None:
        """Change what memory assumes from now on."""

    def store(self, writes: Writes) -> None:
        """Put what is to become durable into the turn."""

    def follow(self) -> None:
        """Do what waited for the disk: the turn is durable."""

    def revert(self, error: MsmqError, /) -> None:
        """Take back what was assumed: the disk refused the turn."""

    def describe(self) -> dict[str, Plain]:
        """Return the facts to print: no secrets and nothing of a message but its size."""
        return {}

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={value!r}" for name, value in self.describe().items())
        return f"{type(self).__name__}({facts})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in attributes(type(self))
        )

    def __hash__(self) -> int:
        # What is equal hashes alike; more is not to be had, for an effect may have lists.
        return hash(type(self))


def attributes(kind: type) -> list[str]:
    """Return the names of all attributes. A compiled class has no slots, and lists them itself."""
    return [
        name
        for each in kind.__mro__
        for name in each.__dict__.get("__mypyc_attrs__") or each.__dict__.get("__slots__", ())
    ]
