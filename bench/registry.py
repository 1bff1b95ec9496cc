"""The benches there are, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from bench import codec
from bench.measure import Effort, Figure

Bench: TypeAlias = Callable[[Effort], Iterable[Figure]]

BENCHES: Final[dict[str, Bench]] = {
    "codec": codec.run,
}
