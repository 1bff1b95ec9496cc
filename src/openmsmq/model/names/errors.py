"""What can be wrong with the text of a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self, TypeVar

from openmsmq.model import errors

T = TypeVar("T")

_SHOWN_CHARACTERS_MAX: Final = 80


class IllegalName(errors.MsmqError, ValueError):
    """A text that names no queue, and the character where that shows.

    `position` counts from 0 and equals `len(text)` when something is missing at the end, so a
    caret under it points to the place. `problem` says what is wrong and what would be right.
    """

    def __init__(self, text: str, position: int, problem: str) -> None:
        super().__init__(f"{problem} (at character {position + 1} of {_shown(text)})")
        self.text = text
        self.position = position
        self.problem = problem

    def __str__(self) -> str:
        return self.detail

    def within(self, text: str, start: int) -> Self:
        """Say the same of the longer text in which this one stands at `start`."""
        return type(self)(text, start + self.position, self.problem)


class IllegalPathName(IllegalName, errors.IllegalPathName):
    """Not a path name."""


class IllegalFormatName(IllegalName, errors.IllegalFormatName):
    """Not a format name."""


class UnsupportedName(IllegalName, errors.UnsupportedFormatName):
    """A format name that is legal, but of a kind that this implementation does not serve."""


def read_part(text: str, start: int, stop: int, read: Callable[[str], T]) -> T:
    """Read `text[start:stop]`, and report what is wrong there by its position in `text`."""
    try:
        return read(text[start:stop])
    except IllegalName as flaw:
        raise flaw.within(text, start) from None


def _shown(text: str) -> str:
    if len(text) <= _SHOWN_CHARACTERS_MAX:
        return quoted(text)
    return quoted(text[:_SHOWN_CHARACTERS_MAX]) + "..."


def quoted(text: str) -> str:
    """Show a text as it was written: `repr` would double each backslash, and names have many."""
    return repr(text).replace("\\\\", "\\")
