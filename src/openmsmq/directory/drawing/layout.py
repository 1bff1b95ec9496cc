"""Where boxes stand in a drawing. No randomness, no fonts.

Boxes that are joined come close to each other: distances in the drawing follow distances in the
graph (stress majorization). Then boxes are pushed apart until none overlaps another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

Point: TypeAlias = tuple[float, float]
Pair: TypeAlias = tuple[int, int]

GRAPH_MAX_BOXES: Final = 150
"""With more boxes that hang together, they stand in rows: nobody could follow the lines anyway."""

_GAP_X: Final = 96.0
_GAP_Y: Final = 72.0
_CLEAR: Final = 36.0
_STRESS_ROUNDS: Final = 80
_PUSH_ROUNDS: Final = 160
_ALIGN: Final = 24.0
_GROWTH: Final = 1.08


class Box(msgspec.Struct):
    """A box by its centre and its size."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    def holds(self, point: Point, margin: float = 0.0) -> bool:
        """Whether a point lies in the box or near it."""
        return (
            abs(point[0] - self.x) < self.width / 2 + margin
            and abs(point[1] - self.y) < self.height / 2 + margin
        )

    def overlaps(self, other: Box, margin: float = 0.0) -> bool:
        """Whether two boxes come nearer to each other than the margin."""
        return (
            abs(other.x - self.x) < (self.width + other.width) / 2 + margin
            and abs(other.y - self.y) < (self.height + other.height) / 2 + margin
        )


def arrange(boxes: Sequence[Box], pairs: Iterable[Pair]) -> None:
    """Give every box its place; those that hang together stand together."""
    neighbours: list[set[int]] = [set() for _ in boxes]
    for one, other in pairs:
        neighbours[one].add(other)
        neighbours[other].add(one)
    groups = _groups(neighbours)
    alone = [group[0] for group in groups if len(group) == 1]
    joined = [group for group in groups if len(group) > 1]
    for group in joined:
        if len(group) > GRAPH_MAX_BOXES:
            _in_rows([boxes[index] for index in group])
        else:
            _arrange_group(boxes, group, neighbours)
    if alone:
        _in_rows([boxes[index] for index in alone])
        joined.append(alone)
    _stack([[boxes[index] for index in group] for group in joined])


def _groups(neighbours: list[set[int]]) -> list[list[int]]:
    """Find what hangs together, the largest first; each in the order of a walk through it."""
    seen: set[int] = set()
    groups = []
    for first in range(len(neighbours)):
        if first in seen:
            continue
        seen.add(first)
        group = [first]
        for index in group:
            for other in sorted(neighbours[index] - seen):
                seen.add(other)
                group.append(other)
        groups.append(group)
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _in_rows(boxes: list[Box]) -> None:
    columns = max(1, math.ceil(math.sqrt(len(boxes))))
    width = max(box.width for box in boxes) + _GAP_X / 2
    top = 0.0
    for start in range(0, len(boxes), columns):
        row = boxes[start : start + columns]
        height = max(box.height for box in row)
        for column, box in enumerate(row):
            box.x = column * width + box.width / 2
            box.y = top + box.height / 2
        top += height + _GAP_Y / 2


def _stack(groups: list[list[Box]]) -> None:
    """Put groups below each other, their left edges in one line."""
    top = 0.0
    for group in groups:
        left = min(box.x - box.width / 2 for box in group)
        upper = min(box.y - box.height / 2 for box in group)
        for box in group:
            box.x -= left
            box.y += top - upper
        top = max(box.y + box.height / 2 for box in group) + _GAP_Y


def _arrange_group(boxes: Sequence[Box], group: list[int], neighbours: list[set[int]]) -> None:
    here = {index: place for place, index in enumerate(group)}
    inner = [sorted(here[other] for other in neighbours[index]) for index in group]
    points = _stress([_distances(start, inner) for start in range(len(group))])
    members = [boxes[index] for index in group]
    step_x = sum(box.width for box in members) / len(members) + _GAP_X
    step_y = sum(box.height for box in members) / len(members) + _GAP_Y
    for box, (x, y) in zip(members, points, strict=True):
        box.x, box.y = x * step_x, y * step_y
    pairs = [(one, other) for one in range(len(inner)) for other in inner[one] if one < other]
    _push_apart(members, pairs)
    _align(members)


def _align(boxes: list[Box]) -> None:
    """Let boxes that stand almost in one line stand in one, where the gaps allow it."""
    for axis in ("x", "y"):
        line: list[Box] = []
        for box in sorted(boxes, key=lambda box: float(getattr(box, axis))):
            if line and getattr(box, axis) - getattr(line[0], axis) >= _ALIGN:
                _put_in_line(line, axis, boxes)
                line = []
            line.append(box)
        _put_in_line(line, axis, boxes)


def _put_in_line(line: list[Box], axis: str, boxes: list[Box]) -> None:
    before: list[float] = [getattr(box, axis) for box in line]
    for box in line:
        setattr(box, axis, float(round((before[0] + before[-1]) / 2)))
    if any(one.overlaps(other, _CLEAR) for one in line for other in boxes if other is not one):
        for box, place in zip(line, before, strict=True):
            setattr(box, axis, place)


def _distances(start: int, neighbours: list[list[int]]) -> list[int]:
    found = [-1] * len(neighbours)
    found[start] = 0
    reached = [start]
    for index in reached:
        for other in neighbours[index]:
            if found[other] < 0:
                found[other] = found[index] + 1
                reached.append(other)
    return found


def _stress(distances: list[list[int]]) -> list[Point]:
    """Find points whose distances are like those given."""
    points = _first_points(distances)
    everybody = range(len(points))
    for _ in range(_STRESS_ROUNDS):
        for index in everybody:
            x, y = points[index]
            sum_x = sum_y = weights = 0.0
            for other in everybody:
                if other == index:
                    continue
                wanted = distances[index][other]
                weight = 1.0 / (wanted * wanted)
                away_x, away_y = x - points[other][0], y - points[other][1]
                length = math.hypot(away_x, away_y) or 1e-6
                sum_x += weight * (points[other][0] + wanted * away_x / length)
                sum_y += weight * (points[other][1] + wanted * away_y / length)
                weights += weight
            points[index] = (sum_x / weights, sum_y / weights)
    return _turned(points)


def _first_points(distances: list[list[int]]) -> list[Point]:
    """Begin with classical scaling: the two directions in which the graph is widest."""
    count = len(distances)
    squares = [[float(value * value) for value in row] for row in distances]
    means = [sum(row) / count for row in squares]
    mean = sum(means) / count
    centred = [
        [-(squares[i][j] - means[i] - means[j] + mean) / 2 for j in range(count)]
        for i in range(count)
    ]
    angles = [2 * math.pi * (index + 0.25) / count for index in range(count)]
    first = _direction(centred, [math.cos(angle) for angle in angles], None)
    second = _direction(centred, [math.sin(angle) for angle in angles], first)
    # The bow lifts points that would lie on each other.
    return [
        (x + 0.02 * math.cos(angle), y + 0.02 * math.sin(angle))
        for x, y, angle in zip(first, second, angles, strict=True)
    ]


def _direction(
    matrix: list[list[float]], start: list[float], without: list[float] | None
) -> list[float]:
    vector = start
    for _ in range(60):
        vector = [
            sum(value * part for value, part in zip(row, vector, strict=True)) for row in matrix
        ]
        if without is not None:
            share = sum(map(_product, vector, without)) / (
                sum(map(_product, without, without)) or 1
            )
            vector = [part - share * other for part, other in zip(vector, without, strict=True)]
        length = math.sqrt(sum(part * part for part in vector))
        if length < 1e-9:
            return [0.0] * len(vector)
        vector = [part / length for part in vector]
    scale = math.sqrt(len(vector))
    return [part * scale / 2 for part in vector]


def _product(one: float, other: float) -> float:
    return one * other


def _turned(points: list[Point]) -> list[Point]:
    """Turn points so that they are widest from left to right, the first of them on the left."""
    count = len(points)
    middle_x = sum(x for x, _ in points) / count
    middle_y = sum(y for _, y in points) / count
    moved = [(x - middle_x, y - middle_y) for x, y in points]
    across = 2 * sum(x * y for x, y in moved)
    along = sum(x * x - y * y for x, y in moved)
    round_shape = math.hypot(across, along) < 0.05 * sum(x * x + y * y for x, y in moved)
    angle = 0.0 if round_shape else -math.atan2(across, along) / 2
    sine, cosine = math.sin(angle), math.cos(angle)
    turned = [(x * cosine - y * sine, x * sine + y * cosine) for x, y in moved]
    side = -1.0 if turned[0][0] > 1e-9 else 1.0
    return [(x * side, y * side) for x, y in turned]


def _push_apart(boxes: list[Box], pairs: list[Pair]) -> None:
    for turn in range(_PUSH_ROUNDS):
        moved = _push_overlaps(boxes)
        # Lines first find their way when the boxes are roughly in place.
        if turn > _PUSH_ROUNDS // 4:
            moved = _push_off_lines(boxes, pairs) or moved
        if not moved and turn > _PUSH_ROUNDS // 4:
            return
    for _ in range(_PUSH_ROUNDS):
        if not any(_too_close(boxes)):
            return
        for box in boxes:
            box.x *= _GROWTH
            box.y *= _GROWTH
        _push_overlaps(boxes)


def _too_close(boxes: list[Box]) -> Iterator[bool]:
    for place, one in enumerate(boxes):
        yield from (one.overlaps(other, _CLEAR) for other in boxes[place + 1 :])


def _push_overlaps(boxes: list[Box]) -> bool:
    moved = False
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            need_x = (one.width + other.width) / 2 + _GAP_X * 0.6 - abs(other.x - one.x)
            need_y = (one.height + other.height) / 2 + _GAP_Y * 0.6 - abs(other.y - one.y)
            if need_x <= 0.5 or need_y <= 0.5:
                continue
            moved = True
            if need_x < need_y:
                push = math.copysign(need_x / 2, other.x - one.x)
                one.x -= push
                other.x += push
            else:
                push = math.copysign(need_y / 2, other.y - one.y)
                one.y -= push
                other.y += push
    return moved


def _push_off_lines(boxes: list[Box], pairs: list[Pair]) -> bool:
    moved = False
    for one, other in pairs:
        start, end = boxes[one], boxes[other]
        length = math.hypot(end.x - start.x, end.y - start.y) or 1.0
        normal = (-(end.y - start.y) / length, (end.x - start.x) / length)
        for place, box in enumerate(boxes):
            if place in (one, other):
                continue
            along = (box.x - start.x) * normal[1] - (box.y - start.y) * normal[0]
            off = (box.x - start.x) * normal[0] + (box.y - start.y) * normal[1]
            reach = abs(normal[0]) * box.width / 2 + abs(normal[1]) * box.height / 2 + 16
            if 0 < along < length and abs(off) < reach:
                push = math.copysign(min(12.0, reach - abs(off)), off)
                box.x += normal[0] * push
                box.y += normal[1] * push
                moved = True
    return moved
