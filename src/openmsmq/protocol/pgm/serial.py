"""Numbers that go round: which of two is the later one. [RFC 3208 3.2]"""

from __future__ import annotations

from typing import Final

_SIZE: Final = 1 << 32
_HALF: Final = 1 << 31
MASK: Final = _SIZE - 1


def distance(number: int, start: int) -> int:
    """Return how far a number is behind another; negative if it is before it."""
    found = (number - start) & MASK
    return found - _SIZE if found >= _HALF else found


def after(number: int, count: int = 1) -> int:
    """Return the number so many places on."""
    return (number + count) & MASK
