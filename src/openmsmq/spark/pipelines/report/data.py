"""The numbers of the report: small values, of which each list has a limit.

A report of a billion messages is as short as one of a thousand. What a list leaves out is counted,
so that sums still add up.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from openmsmq.spark.pipelines.delivery.outcomes import OPEN, UNDELIVERED

QUEUES_MAX_COUNT: Final = 50
HOURS_MAX_COUNT: Final = 48
LINKS_MAX_COUNT: Final = 60
LEDGER_MAX_COUNT: Final = 300
"""Rows of the ledger: the fullest."""
SLOWEST_MAX_COUNT: Final = 25
EXAMPLES_MAX_COUNT: Final = 10
"""Messages that are shown of each outcome and reason."""
LANES_MAX_COUNT: Final = 10
"""Links whose traffic is drawn over time."""
STEPS_MAX_COUNT: Final = 150
"""Bars over time."""
HOPS_MAX_COUNT: Final = 12
"""Queue managers of a path that are shown."""
EVENTS_MAX_COUNT: Final = 20
"""Events that are drawn: those of the caller, and the longest gaps."""
TEXT_MAX_CHARACTERS: Final = 200
"""Characters of a label or name that are shown."""

STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200),
    *(3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400, 30 * 86_400),
    *(365 * 86_400, 2 * 365 * 86_400),
)
"""Widths of a bar over time, in seconds."""

EDGES_S: Final = (
    *(0, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600),
    *(3 * 3600, 12 * 3600, 86_400, 7 * 86_400),
)
"""Where the bars of the latency distribution begin; before the first one clocks disagree."""

_FAR: Final = 4
"""Times that are so many times farther apart than most are those of wrong clocks."""


class Times(msgspec.Struct, frozen=True):
    """How long messages took: p50, p95 and p99, and how many messages they rest on."""

    count: int = 0
    seconds: tuple[float, ...] = ()
    """Empty if no message's time is known."""


class Counts(msgspec.Struct, frozen=True):
    """How many messages, and what became of them: see `delivery.rollups` for the words."""

    message_count: int = 0
    delivered_count: int = 0
    outcomes: dict[str, int] = {}
    arrived_count: int = 0
    failed_after_arrival_count: int = 0
    untraced_count: int = 0
    size_bytes: int = 0
    reach: Times = Times()
    receive: Times = Times()

    @property
    def undelivered_count(self) -> int:
        """Messages that nobody will receive any more."""
        return sum(self.outcomes.get(one.value, 0) for one in UNDELIVERED)

    @property
    def open_count(self) -> int:
        """Messages of which neither is known."""
        return sum(self.outcomes.get(one.value, 0) for one in OPEN)


class Group(msgspec.Struct, frozen=True):
    """A row of the tables of queues and hours."""

    name: str
    counts: Counts


class LinkLoad(msgspec.Struct, frozen=True):
    """What went over one link."""

    source: str
    target: str
    message_count: int
    arrived_count: int
    undelivered_count: int
    open_count: int
    latency: Times = Times()


class Event(msgspec.Struct, frozen=True):
    """Something that happened at a time, such as the start of a queue manager."""

    time: datetime
    what: str


class Gap(msgspec.Struct, frozen=True):
    """A time in which nothing came over links to a queue manager, although messages waited."""

    start: datetime
    end: datetime
    sources: tuple[str, ...]
    target: str
    waited_count: int
    """Messages that had left before its end and came after it."""


class Axis(msgspec.Struct, frozen=True):
    """The time that is drawn: so many steps of the same width."""

    start: datetime
    step_s: int
    step_count: int

    @property
    def end(self) -> datetime:
        """When the last step ends."""
        return self.start + timedelta(seconds=self.step_s * self.step_count)


class Lane(msgspec.Struct, frozen=True):
    """What came over one link, step by step."""

    source: str
    target: str
    counts: tuple[int, ...]


class Course(msgspec.Struct, frozen=True):
    """Messages over time; each tuple has a number for each step of the axis."""

    axis: Axis
    delivered: tuple[int, ...]
    open: tuple[int, ...]
    undelivered: tuple[int, ...]
    """These three by the time of sending."""
    arrived: tuple[int, ...]
    """By the time at which a message reached its queue, or was received if only that is known."""
    lanes: tuple[Lane, ...] = ()
    gaps: tuple[Gap, ...] = ()
    outside_count: int = 0
    """Messages whose time of sending is so far from the others that it is not drawn."""
    untimed_count: int = 0
    """Messages whose time of sending is not known."""


class Latencies(msgspec.Struct, frozen=True):
    """How many messages took how long: one count for each bar, the first for times below zero."""

    reach: tuple[int, ...] = ()
    receive: tuple[int, ...] = ()


class Fate(msgspec.Struct, frozen=True):
    """How many messages ended in the same way."""

    outcome: str
    reason: str
    """Why it failed; empty for outcomes that have no reason."""
    message_count: int


class LedgerRow(msgspec.Struct, frozen=True):
    """Messages of the same hour, queue, path and fate."""

    hour: datetime | None
    queue: str
    path: tuple[str, ...]
    outcome: str
    reason: str
    asked: bool
    """Whether they asked to be told when they arrive or are received."""
    message_count: int


class Hop(msgspec.Struct, frozen=True):
    """A queue manager that had a message, and since when."""

    queue_manager: str
    time: datetime | None


class Example(msgspec.Struct, frozen=True):
    """One message that is worth a look."""

    message_id: str
    label: str
    outcome: str
    reason: str
    queue: str
    destination: str
    sent: datetime | None
    path: tuple[Hop, ...]
    asked: bool
    in_doubt: bool
    reach_s: float | None
    receive_s: float | None


class Before(msgspec.Struct, frozen=True):
    """The same numbers of another time, to compare with."""

    name: str
    totals: Counts
    queues: dict[str, Counts] = {}
    links: dict[tuple[str, str], LinkLoad] = {}
    has_all: bool = True
    """Whether these are all queues and links of that time, and not only the busiest."""


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the report shows."""

    totals: Counts = Counts()
    in_doubt_count: int = 0
    first_sent: datetime | None = None
    last_sent: datetime | None = None
    course: Course | None = None
    events: tuple[Event, ...] = ()
    latencies: Latencies = Latencies()
    fates: tuple[Fate, ...] = ()
    links: tuple[LinkLoad, ...] = ()
    queues: tuple[Group, ...] = ()
    hours: tuple[Group, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    slowest: tuple[Example, ...] = ()
    examples: tuple[Example, ...] = ()
    before: Before | None = None
    queue_count: int = 0
    link_count: int = 0
    hour_count: int = 0


def time_range(first_s: int, last_s: int, low_s: int, high_s: int) -> tuple[int, int]:
    """Choose the time to draw: all of it, unless a few messages with wrong clocks stretch it."""
    if last_s - first_s > _FAR * (high_s - low_s + 3600):
        return low_s, high_s
    return first_s, last_s


def step_for(span_s: int) -> int:
    """Choose the width of the bars, so that there are not too many."""
    fitting = (step for step in STEPS_S if span_s / step < STEPS_MAX_COUNT - 1)
    # Times are 32 bits on the wire: the widest step always fits.
    return next(fitting, STEPS_S[-1])
