"""A promise that was broken, in one sentence."""

from __future__ import annotations

import re
from typing import Final

_NAMED: Final = re.compile(r"\bm(\d+)\b")
"""How a sentence names a simulated message."""


class Violation(Exception):
    """Something happened in a run that must never happen."""

    def __init__(self, sentence: str, *, messages: tuple[int, ...] = (), detail: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.messages = messages or tuple(map(int, _NAMED.findall(sentence)))
        """The simulated messages it is about: the trace is shown around them."""
        self.detail = detail
