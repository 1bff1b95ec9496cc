"""Lives of a queue manager, and whether a place that was told in one of them is still good.

A life begins with each start. It is known by a random word, and by the first arrival number that it
could give. A store that was put back to an older state does not know the lives since, or has given
their numbers in another one.
"""

from __future__ import annotations

from collections.abc import Sequence


def is_good_place(lives: Sequence[tuple[str, int]], life: str, place: int) -> bool:
    """Whether a store with these lives, the oldest first, is the one in which a place was told."""
    if not life or not lives or place <= lives[0][1]:
        # What was before the first life that is remembered, nobody can tell apart.
        return True
    for at, (word, _) in enumerate(lives):
        if word == life:
            return at + 1 == len(lives) or place <= lives[at + 1][1]
    return False
