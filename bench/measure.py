"""Measuring: statements timed in turn, so that a busy machine slows all of them alike.

Absolute times differ between machines and hours; a ratio of two times taken side by side hardly
does. The minimum of many short slices is the time with the least disturbance in it.
"""

from __future__ import annotations

import gc
import timeit
from collections.abc import Mapping
from typing import Any

import msgspec


class Effort(msgspec.Struct, frozen=True):
    """How long to measure."""

    rounds: int = 800
    slice_s: float = 0.0005
    """How long one statement runs before the next has its turn."""


class Timing(msgspec.Struct, frozen=True):
    """What one call of a statement took, round by round."""

    rounds_ns: list[float]

    @property
    def best_ns(self) -> float:
        """The least disturbed round."""
        return min(self.rounds_ns)


class Figure(msgspec.Struct, frozen=True):
    """One number of a bench, with the bar it must meet, if it has one."""

    name: str
    value: float | None
    """None when it could not be measured; then no bar is met."""
    unit: str
    low: float | None = None
    """The lower quartile of the rounds; far from `value` when the machine was busy."""
    high: float | None = None
    """The upper quartile of the rounds."""
    bar: float | None = None
    """What the number must not exceed."""
    at_least: bool = False
    """Turns the bar round: the number must reach it."""
    note: str = ""
    """Why it could not be measured, or under which conditions it was."""

    @property
    def passed(self) -> bool:
        """Whether the number meets its bar; without a bar it does."""
        if self.bar is None:
            return True
        if self.value is None:
            return False
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    @property
    def missed(self) -> bool:
        """Whether the number was measured and does not meet its bar."""
        return self.value is not None and not self.passed


def time_in_turn(
    statements: Mapping[str, str], names: Mapping[str, Any], effort: Effort
) -> dict[str, Timing]:
    """Time each statement, A B C A B C, with the given names as globals.

    Statements are texts because a wrapping function would add its own call to each, which makes a
    cheap statement look dearer and every ratio to it better than it is.
    """
    timers = {key: timeit.Timer(text, globals=dict(names)) for key, text in statements.items()}
    calls = {key: _calls_per_slice(timer, effort.slice_s) for key, timer in timers.items()}
    rounds: dict[str, list[float]] = {key: [] for key in timers}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(effort.rounds):
            for key, timer in timers.items():
                rounds[key].append(timer.timeit(calls[key]) / calls[key] * 1e9)
    finally:
        if collecting:
            gc.enable()
    return {key: Timing(taken) for key, taken in rounds.items()}


def ratio(name: str, unit: str, timing: Timing, to: Timing, bar: float | None = None) -> Figure:
    """Compare two statements timed in turn: the ratio of their minima, and its spread."""
    pairs = zip(timing.rounds_ns, to.rounds_ns, strict=True)
    each = sorted(mine / other for mine, other in pairs)
    quarter = len(each) // 4
    return Figure(name, timing.best_ns / to.best_ns, unit, each[quarter], each[-1 - quarter], bar)


def _calls_per_slice(timer: timeit.Timer, slice_s: float) -> int:
    """How many calls fill a slice; one disturbed trial must not make it few."""
    calls = 1
    while True:
        taken_s = min(timer.repeat(repeat=7, number=calls))
        if taken_s >= slice_s / 4:
            return max(1, round(calls * slice_s / taken_s))
        calls *= 4
