"""The figures of the report: what is where, for the template to draw.

Places along a line are percentages, so that a figure is as wide as its page, and heights are
pixels, so that its text has the same size on a phone as on a wall.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from openmsmq.spark.pipelines.delivery.rollups import PERCENTILES
from openmsmq.spark.pipelines.report.data import (
    EDGES_S,
    EVENTS_MAX_COUNT,
    Axis,
    Course,
    Event,
    Latencies,
    Times,
)
from openmsmq.spark.pipelines.report.text import (
    count_text,
    duration_text,
    plain,
    range_text,
    step_text,
)

TICKS_MAX_COUNT: Final = 4
"""Times below the axis: so many fit on a phone."""
MARK_DISTANCE: Final = 7.0
"""Percent of the width that two marks in one row are apart at least."""

_SENT_PX: Final = 96
_ARRIVED_PX: Final = 64
_LANE_PX: Final = 16
_TITLE_PX: Final = 22
_ROW_PX: Final = 24
_BAR: Final = 0.86
"""The share of a step that its bar fills."""


class Rect(msgspec.Struct, frozen=True):
    """A bar: x and width in percent, y and height in pixels."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    opacity: float = 1.0


class Label(msgspec.Struct, frozen=True):
    """A text in a figure."""

    x: float
    y: float
    text: str
    anchor: str = "start"


class Mark(msgspec.Struct, frozen=True):
    """An event or a gap: a numbered mark above the bars, and a sentence below the figure."""

    number: int
    x: float
    width: float
    y: float
    colour: str
    when: str
    what: str


class CourseFigure(msgspec.Struct, frozen=True):
    """Messages over time."""

    height: int
    plot_top: int
    plot_bottom: int
    rects: tuple[Rect, ...]
    labels: tuple[Label, ...]
    ticks: tuple[Label, ...]
    marks: tuple[Mark, ...]
    steps: tuple[Label, ...]
    """What each step says when somebody points at it; `x` is where it begins."""
    step_width: float
    step: str


def course_figure(course: Course, events: Sequence[Event]) -> CourseFigure:
    """Lay out messages over time: sent, arrived, and what came over each link, with events."""
    width = 100 / course.axis.step_count
    marks, rows = _marks(course, events)
    plot_top = rows * _ROW_PX
    rects: list[Rect] = []
    labels: list[Label] = []
    step = step_text(course.axis.step_s)
    y = plot_top + _TITLE_PX
    most = max(map(sum, zip(course.delivered, course.open, course.undelivered, strict=True)))
    labels.append(Label(0, y - 7, f"sent, up to {count_text(most)} each {step}"))
    stacks = (("good", course.delivered), ("open", course.open), ("bad", course.undelivered))
    rects += _stacked(stacks, width, y, _SENT_PX, most)
    y += _SENT_PX + _TITLE_PX
    most = max(course.arrived)
    known = f"arrived, up to {count_text(most)} each {step}" if most else "arrived: no time known"
    labels.append(Label(0, y - 7, known))
    rects += _stacked((("accent", course.arrived),), width, y, _ARRIVED_PX, most)
    y += _ARRIVED_PX
    for lane in course.lanes:
        y += _TITLE_PX
        name = f"{plain(lane.source, 18)} → {plain(lane.target, 18)}"
        labels.append(Label(0, y - 6, name))
        rects += _strip(lane.counts, width, y)
        y += _LANE_PX
    return CourseFigure(
        y + _TITLE_PX,
        plot_top,
        y,
        tuple(rects),
        tuple(labels),
        _ticks(course.axis, y + 16),
        marks,
        tuple(_step_texts(course, width)),
        width,
        step,
    )


def _stacked(
    parts: Iterable[tuple[str, Sequence[int]]], width: float, top: int, height: int, most: int
) -> list[Rect]:
    below: dict[int, int] = {}
    rects = []
    for colour, counts in parts:
        for number, count in enumerate(counts):
            if count:
                start = below.get(number, 0)
                below[number] = start + count
                # A single message among thousands is to be seen, too.
                tall = max(height * count / most, 1.5)
                y = top + height - height * start / most - tall
                rects.append(_bar(number, width, max(y, top), tall, colour))
    return rects


def _strip(counts: Sequence[int], width: float, top: int) -> list[Rect]:
    most = max(counts)
    return [
        _bar(number, width, top, _LANE_PX, "accent", 0.3 + 0.7 * count / most)
        for number, count in enumerate(counts)
        if count
    ]


def _bar(
    number: int, width: float, y: float, height: float, colour: str, opacity: float = 1.0
) -> Rect:
    # Few wide bars have gaps between them, many narrow ones do not.
    wide = width * (_BAR if width > 1.2 else 1.0)
    return Rect(
        round(number * width, 3),
        round(y, 1),
        round(wide, 3),
        round(height, 1),
        colour,
        round(opacity, 2),
    )


def _step_texts(course: Course, width: float) -> Iterable[Label]:
    columns = zip(course.delivered, course.open, course.undelivered, course.arrived, strict=True)
    for number, (good, between, bad, arrived) in enumerate(columns):
        if good or between or bad or arrived:
            when = _time_text(_at(course.axis, number), course.axis)
            text = f"{when}: {count_text(good + between + bad)} sent"
            text += f", of which {count_text(bad)} failed or are lost" if bad else ""
            text += f", {count_text(between)} open" if between else ""
            yield Label(round(number * width, 3), 0, f"{text}; {count_text(arrived)} arrived")


def _at(axis: Axis, number: int) -> datetime:
    return axis.start + timedelta(seconds=axis.step_s * number)


def _place(axis: Axis, time: datetime) -> float:
    share = (time - axis.start) / (axis.end - axis.start)
    return round(100 * min(max(share, 0.0), 1.0), 3)


def _marks(course: Course, events: Sequence[Event]) -> tuple[tuple[Mark, ...], int]:
    """Number gaps and events by their time, in as many rows as they need beside each other."""
    axis = course.axis
    found: list[tuple[datetime, datetime, str, str]] = [
        (gap.start, gap.end, "bad", _gap_text(gap.sources, gap.target, gap.waited_count))
        for gap in course.gaps
    ]
    found += [(event.time, event.time, "ink", plain(event.what, 120)) for event in events]
    found = sorted(found, key=lambda one: (one[0], one[1], one[3]))[:EVENTS_MAX_COUNT]
    last_in_row: list[float] = []
    marks = []
    for number, (start, end, colour, what) in enumerate(found, 1):
        x, until = _place(axis, start), _place(axis, end)
        free = (i for i, last in enumerate(last_in_row) if x - last >= MARK_DISTANCE)
        row = next(free, len(last_in_row))
        last_in_row[row : row + 1] = [x]
        when = _time_text(start, axis)
        if end > start:
            took = duration_text((end - start).total_seconds())
            when = f"{when} to {_time_text(end, axis)} ({took})"
        y = row * _ROW_PX + _ROW_PX / 2
        marks.append(Mark(number, x, round(until - x, 3), y, colour, when, what))
    return tuple(marks), len(last_in_row)


def _gap_text(sources: Sequence[str], target: str, waited_count: int) -> str:
    names = ", ".join(plain(name, 40) for name in sources)
    waited = "message" if waited_count == 1 else "messages"
    return (
        f"Nothing came from {names} to {plain(target, 40)}, while {count_text(waited_count)} "
        f"{waited} waited."
    )


def _ticks(axis: Axis, y: float) -> tuple[Label, ...]:
    """Say times below the bars; the first and the last stay inside of the figure."""
    span_s = axis.step_s * axis.step_count
    fitting = (each for each in _TICKS_S if span_s / each < TICKS_MAX_COUNT)
    every_s = next(fitting, _TICKS_S[-1])
    first = -(-int(axis.start.timestamp()) // every_s) * every_s
    ticks = []
    for time_s in range(first, int(axis.end.timestamp()) + 1, every_s):
        time = datetime.fromtimestamp(time_s, UTC)
        x = _place(axis, time)
        anchor = "start" if x < 8 else "end" if x > 92 else "middle"
        ticks.append(Label(x, y, _tick_text(time, every_s), anchor))
    return tuple(ticks)


_TICKS_S: Final = (
    *(1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200),
    *(3 * 3600, 6 * 3600, 8 * 3600, 12 * 3600, 86_400, 2 * 86_400, 7 * 86_400, 14 * 86_400),
    *(30 * 86_400, 90 * 86_400, 365 * 86_400, 10 * 365 * 86_400, 50 * 365 * 86_400),
)


def _tick_text(time: datetime, every_s: int) -> str:
    if every_s < 60:
        return f"{time:%H:%M:%S}"
    if every_s >= 86_400:
        return f"{time:%Y-%m-%d}"
    is_midnight = time.hour == time.minute == 0
    return f"{time:%m-%d}" if is_midnight else f"{time:%H:%M}"


def _time_text(time: datetime, axis: Axis) -> str:
    day = "%Y-%m-%d " if (axis.end - axis.start) > timedelta(hours=20) else ""
    return time.strftime(f"{day}%H:%M:%S" if axis.step_s < 60 else f"{day}%H:%M")


class LatencyBar(msgspec.Struct, frozen=True):
    """How many messages took about so long."""

    name: str
    reach_count: int
    receive_count: int
    reach_share: float
    """Percent of the longest bar."""
    receive_share: float
    marks: tuple[str, ...]
    """Percentiles that lie in it."""


def latency_bars(latencies: Latencies, reach: Times, receive: Times) -> tuple[LatencyBar, ...]:
    """Lay out how many messages took how long; empty if nothing is known."""
    bars = len(EDGES_S) + 1
    reached, received = (each or (0,) * bars for each in (latencies.reach, latencies.receive))
    used = [number for number in range(bars) if reached[number] or received[number]]
    if not used:
        return ()
    most = max(*reached, *received)
    return tuple(
        LatencyBar(
            _bar_name(number),
            reached[number],
            received[number],
            round(100 * reached[number] / most, 2),
            round(100 * received[number] / most, 2),
            (*_in_bar(reach, "reached", number), *_in_bar(receive, "received", number)),
        )
        for number in range(used[0], used[-1] + 1)
    )


def _in_bar(times: Times, what: str, number: int) -> list[str]:
    return [
        f"p{percent} {what}"
        for percent, seconds in zip(PERCENTILES, times.seconds, strict=False)
        if sum(edge <= seconds for edge in EDGES_S) == number
    ]


def _bar_name(number: int) -> str:
    if number == 0:
        return "below 0"
    low = EDGES_S[number - 1]
    return range_text(low, EDGES_S[number] if number < len(EDGES_S) else None)
