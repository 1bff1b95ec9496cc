"""How much room texts take in a drawing, and making them fit and harmless.

Nobody knows the fonts of the reader, so widths are estimated, rather too wide.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_LETTER: Final = 7.3


def text_width(text: str, size: int) -> float:
    """Estimate the width of a text in bold letters of a size."""
    return sum(map(_share, text)) * size


def mono_width(text: str) -> float:
    """Estimate the width of a text in letters of one width, 12 units high."""
    return sum(2 if _is_wide(letter) else 1 for letter in text) * _LETTER


def _share(letter: str) -> float:
    if _is_wide(letter):
        return 1.1
    if letter in "iljtfrI.,:;'|!-()[] ":
        return 0.44
    return 1.0 if letter in "mwMW@%" else 0.78 if letter.isupper() else 0.68


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def cut(text: str, room: float, *, mono: bool = False) -> str:
    """Shorten a text that does not fit."""

    def width(part: str) -> float:
        return mono_width(part) if mono else text_width(part, 14)

    if width(text) <= room:
        return text
    kept = text
    while kept and width(kept) + 12 > room:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def printable(value: object) -> object:
    """Return a text without what XML cannot have: a question mark in a diamond stands for it."""
    # What the template has made itself is a subclass of it.
    if type(value) is not str:
        return value
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in value)
