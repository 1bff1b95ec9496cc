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


class PostTaken(Effect):
    """What a post has brought was decided about: its sender hears of it when that is durable."""

    __slots__ = ("number", "outputs")

    def __init__(self, outputs: list[Output], number: int) -> None:
        self.outputs = outputs
        self.number = number

    def follow(self) -> None:
        """Let its sender forget it."""
        self.outputs.append(PostAnswer(self.number, ACCEPTED))

    def revert(self, _: MsmqError, /) -> None:
        """Let its sender keep it, and come again."""
        self.outputs.append(PostAnswer(self.number, UNAVAILABLE))

    def describe(self) -> dict[str, Plain]:
        """Return which post it is."""
        return {"post": self.number}
