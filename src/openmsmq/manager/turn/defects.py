"""Defect: what the code says can never be, and is."""

from __future__ import annotations


class Defect(Exception):
    """Something happened that no table has: the code is wrong, not its input.

    It is raised in production too. A queue manager that goes on from a state which cannot be would
    lose messages or give them twice; one that stops has all that is durable, and starts again.
    """
