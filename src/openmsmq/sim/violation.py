"""A promise that was broken, in one sentence."""

from __future__ import annotations


class Violation(Exception):
    """Something happened in a run that must never happen."""

    def __init__(self, sentence: str, *, messages: tuple[int, ...] = (), detail: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.messages = messages
        """The simulated messages it is about: the trace is shown around them."""
        self.detail = detail
