"""What a turn does with posts: they are answered when the disk has what they have brought."""

from __future__ import annotations

from typing import Final

from openmsmq.manager.outputs import Output
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.model.errors import MsmqError
from openmsmq.protocol.posts import PostAnswer

ACCEPTED: Final = 200
MALFORMED: Final = 400
UNAVAILABLE: Final = 500


class PostsTaken(Effect):
    """What posts have brought was decided about: who sent them hears when that is durable."""

    __slots__ = ("numbers", "outputs")

    def __init__(self, outputs: list[Output], numbers: list[int]) -> None:
        self.outputs = outputs
        self.numbers = numbers

    def follow(self) -> None:
        """Let their senders forget them."""
        self.outputs.extend([PostAnswer(number, ACCEPTED) for number in self.numbers])

    def revert(self, _: MsmqError, /) -> None:
        """Let their senders keep them, and come again."""
        self.outputs.extend([PostAnswer(number, UNAVAILABLE) for number in self.numbers])

    def describe(self) -> dict[str, Plain]:
        """Return which posts they are."""
        return {"posts": ", ".join(map(str, self.numbers))}
