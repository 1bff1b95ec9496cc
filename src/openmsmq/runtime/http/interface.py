"""Who hears what became of posts that left."""

from __future__ import annotations

from typing import Protocol

from openmsmq.protocol.posts import PostFailure


class PostListener(Protocol):
    """Who hears what became of posts that left. Nothing here may wait."""

    def post_answered(self, call: int, status: int, body: bytes) -> None:
        """The other side has answered."""

    def post_failed(self, call: int, failure: PostFailure, reason: str) -> None:
        """There is no answer; `reason` is a sentence for an operator."""
