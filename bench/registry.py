"""The benches there are, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from bench import backlog, codec, queues
from bench.measure import Effort, Figure

Bench: TypeAlias = Callable[[Effort], Iterable[Figure]]

BENCHES: Final[dict[str, Bench]] = {
    "codec": codec.run,
    "queues": queues.run,
    "backlog": backlog.run,
}

ON_REQUEST: Final = frozenset({"backlog"})
"""Benches that take minutes: they run when they are named."""
