"""Gaps: when nothing came over a link although messages were on their way.

Messages that came are counted by the step in which they left and the step in which they came. A
gap is two steps or more in which none came, while some had left before and came only after it.
That tells a queue manager that was down, or a line that was cut, from a time without work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from openmsmq.spark.pipelines.report.data import Axis, Gap

GAP_MIN_STEPS: Final = 2
"""Steps without an arrival that make a gap."""
WAITED_MIN_COUNT: Final = 3
"""Messages that must have waited: a single slow one shows nothing."""
GAPS_MAX_COUNT: Final = 8

Link: TypeAlias = tuple[str, str]
Crossings: TypeAlias = Mapping[tuple[int, int], int]
"""How many messages left in one step and came in another."""


class _Run(msgspec.Struct, frozen=True):
    first: int
    """The first step without an arrival."""
    after: int
    """The first step with one again."""
    sources: tuple[str, ...]
    target: str
    waited_count: int


def find_gaps(axis: Axis, crossings: Mapping[Link, Crossings]) -> tuple[Gap, ...]:
    """Find the longest gaps, in the order of time; those of several links to one are one."""
    runs = [run for link, counts in crossings.items() for run in _runs(link, counts)]
    merged = sorted(_merged(runs), key=lambda run: (run.first - run.after, run.first, run.target))
    longest = sorted(merged[:GAPS_MAX_COUNT], key=lambda run: (run.first, run.target))
    return tuple(
        Gap(
            axis.start + timedelta(seconds=axis.step_s * run.first),
            axis.start + timedelta(seconds=axis.step_s * run.after),
            run.sources,
            run.target,
            run.waited_count,
        )
        for run in longest
    )


def _runs(link: Link, counts: Crossings) -> Iterable[_Run]:
    came = sorted({step for _, step in counts})
    for before, after in pairwise(came):
        first = before + 1
        if after - first < GAP_MIN_STEPS:
            continue
        through = sum(n for (left, come), n in counts.items() if left <= first and come >= after)
        waited = sum(n for (left, come), n in counts.items() if left < after <= come)
        if through and waited >= WAITED_MIN_COUNT:
            yield _Run(first, after, (link[0],), link[1], waited)


def _merged(runs: Iterable[_Run]) -> list[_Run]:
    """Put gaps of links to the same queue manager together where they are at the same time."""
    found: list[_Run] = []
    for run in sorted(runs, key=lambda run: (run.target, run.first, run.after)):
        last = found[-1] if found else None
        if last is not None and last.target == run.target and run.first < last.after:
            found[-1] = _Run(
                last.first,
                max(last.after, run.after),
                tuple(sorted({*last.sources, *run.sources})),
                run.target,
                last.waited_count + run.waited_count,
            )
        else:
            found.append(run)
    return found
