"""How the lines between the boxes of a drawing run, and where their labels stand.

A line is bent where it would run behind a box that it does not lead to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from openmsmq.directory.drawing.layout import GRAPH_MAX_BOXES, Box, Pair, Point

_BENDS: Final = (0, 45, -45, 90, -90, 150, -150, 220, -220, 320, -320)
_SAMPLES: Final = 40


class Line(msgspec.Struct, frozen=True):
    """A curve between two boxes: its ends, its control point, and where its label stands."""

    start: Point
    control: Point
    end: Point
    label: Box


def route(boxes: Sequence[Box], pairs: Sequence[Pair], labels: Sequence[Box]) -> list[Line]:
    """Find the curve of each pair, clear of other boxes if there is one, and a place for its label.

    The labels come with their sizes. With very many boxes all lines are straight.
    """
    bends = _BENDS if len(boxes) <= GRAPH_MAX_BOXES else (0,)
    curves = [_curve(boxes, pair, bends) for pair in pairs]
    tracks = [points_of(start, control, end) for start, control, end in curves]
    placed: list[Box] = []
    for number, (one, other) in enumerate(pairs):
        label = labels[number]
        visible = [
            point
            for point in tracks[number]
            if not boxes[one].holds(point, 6) and not boxes[other].holds(point, 6)
        ] or tracks[number]
        _place_label(label, visible, boxes, placed, tracks, number)
        placed.append(label)
    return [Line(*curve, label) for curve, label in zip(curves, placed, strict=True)]


def _curve(boxes: Sequence[Box], pair: Pair, bends: Sequence[int]) -> tuple[Point, Point, Point]:
    start, end = ((boxes[index].x, boxes[index].y) for index in pair)
    length = math.hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    normal = (-(end[1] - start[1]) / length, (end[0] - start[0]) / length)
    others = [box for index, box in enumerate(boxes) if index not in pair]
    best: tuple[int, Point] | None = None
    for bend in bends:
        # A curve comes half as far as its control point.
        control = (
            (start[0] + end[0]) / 2 + 2 * bend * normal[0],
            (start[1] + end[1]) / 2 + 2 * bend * normal[1],
        )
        if len(bends) == 1:
            return start, control, end
        points = points_of(start, control, end)
        hits = sum(any(box.holds(point, 10) for point in points) for box in others)
        if best is None or hits < best[0]:
            best = (hits, control)
        if not hits:
            break
    assert best is not None, "there is at least the straight line"
    return start, best[1], end


def points_of(start: Point, control: Point, end: Point) -> list[Point]:
    """Return points along a curve, both ends included."""
    found = []
    for step in range(_SAMPLES + 1):
        t = step / _SAMPLES
        a, b, c = (1 - t) * (1 - t), 2 * t * (1 - t), t * t
        found.append(
            (a * start[0] + b * control[0] + c * end[0], a * start[1] + b * control[1] + c * end[1])
        )
    return found


def _place_label(
    label: Box,
    visible: list[Point],
    boxes: Sequence[Box],
    placed: list[Box],
    tracks: list[list[Point]],
    own: int,
) -> None:
    best: tuple[int, Point] | None = None
    middle = (len(visible) - 1) / 2
    places = sorted(range(len(visible)), key=lambda place: (abs(place - middle), place))
    for place in places if len(boxes) <= GRAPH_MAX_BOXES else places[:1]:
        label.x, label.y = visible[place]
        flaws = 100 * sum(label.overlaps(box, 2) for box in boxes)
        flaws += 100 * sum(label.overlaps(other, 2) for other in placed)
        flaws += sum(
            any(label.holds(point, 3) for point in track)
            for number, track in enumerate(tracks)
            if number != own
        )
        if best is None or flaws < best[0]:
            best = (flaws, (label.x, label.y))
        if not flaws:
            break
    assert best is not None, "there is at least one place"
    label.x, label.y = best[1]
