"""What HTTP and whoever builds on it see of each other: posts that come, and posts that leave."""

from __future__ import annotations

from typing import Protocol

from openmsmq.protocol.posts import OutgoingPost, PostAnswer, PostFailure, ReceivedPost


class PostTaker(Protocol):
    """Who gets the posts that the door has let in. Nothing here may wait."""

    def post_arrived(self, post: ReceivedPost) -> None:
        """Take a post; `PostDesk.answer` answers it, then or later."""

    def post_given_up(self, number: int) -> None:
        """Nobody waits for an answer any more: its peer is gone, or its time is up.

        The post counts all the same, and an answer that comes yet goes nowhere.
        """


class PostDesk(Protocol):
    """The door, for those who answer."""

    def answer(self, answer: PostAnswer) -> None:
        """Answer a post, if somebody still waits."""


class PostSender(Protocol):
    """What makes posts leave."""

    def post(self, post: OutgoingPost) -> None:
        """Send a post; the outcome comes later, and once.

        Posts to one URL leave in the order in which they were handed over, over one connection, and
        are answered in that order. If that connection is lost, all that were sent by it and not
        answered are lost with it; nothing is sent again here.
        """

    def give_up(self, call: int) -> None:
        """Nobody wants to hear the outcome of a post any more; it does not come then."""


class PostListener(Protocol):
    """Who hears what became of posts that left. Nothing here may wait."""

    def post_answered(self, call: int, status: int, body: bytes) -> None:
        """The other side has answered."""

    def post_failed(self, call: int, failure: PostFailure, reason: str) -> None:
        """There is no answer; `reason` is a sentence for an operator."""
