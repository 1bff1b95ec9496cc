"""The map of links: queue managers in a ring, an arrow for each link.

The width of an arrow is how many messages took the link, its colour how long 95 % of them took.
Everything is placed here, so that nothing lies on a name: the template only draws.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Final, TypeAlias

import msgspec

from openmsmq.spark.pipelines.report.data import LinkLoad
from openmsmq.spark.pipelines.report.text import count_text, plain

NODES_MAX_COUNT: Final = 12
ARROWS_MAX_COUNT: Final = 40
NAME_MAX_CHARACTERS: Final = 15
SPEEDS: Final = ((2, "up to 2 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (math.inf, "more"))
"""Up to which 95th percentile, in seconds, a link has which colour."""

WIDTH: Final = 380.0
"""That of a phone, so that its text can be read there."""

_ROUNDS_MAX_COUNT: Final = 50
_NAME_PX: Final = 8.6
"""Room for a letter of a name: the widest that fonts need on the average."""
_WIDE: Final = frozenset("MW@%mw")
_COUNT_PX: Final = 7.0
_PILL_PX: Final = 26.0
_MARGIN_PX: Final = 4.0
_RING_MAX_COUNT: Final = 6
"""Queue managers that stand in a ring; more stand in two columns."""
_ROW_PX: Final = 54.0
_BEND_PX: Final = 38.0

Point: TypeAlias = tuple[float, float]


class Box(msgspec.Struct, frozen=True):
    """A text and the room for it, around its middle."""

    x: float
    y: float
    width: float
    height: float
    text: str

    def meets(self, other: Box) -> bool:
        """Whether they lie on each other."""
        return (
            abs(self.x - other.x) * 2 < self.width + other.width + _MARGIN_PX
            and abs(self.y - other.y) * 2 < self.height + other.height + _MARGIN_PX
        )

    def contains(self, point: Point, margin: float) -> bool:
        """Whether a point is in it, or near."""
        return (
            abs(point[0] - self.x) <= self.width / 2 + margin
            and abs(point[1] - self.y) <= self.height / 2 + margin
        )


class Arrow(msgspec.Struct, frozen=True):
    """A link, drawn."""

    path: str
    head: str
    width: float
    colour: str
    lossy: bool
    link: LinkLoad
    count: Box | None
    """How many messages, if there is room for it."""


class LinkMap(msgspec.Struct, frozen=True):
    """The whole map."""

    width: float
    height: float
    nodes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    legend: tuple[tuple[str, str], ...]
    """Colours that are used, and what they mean."""


def shown_links(links: Sequence[LinkLoad]) -> list[LinkLoad]:
    """Choose what is drawn: the busiest links between the busiest queue managers."""
    traffic: dict[str, int] = defaultdict(int)
    for link in links:
        traffic[link.source] += link.message_count
        traffic[link.target] += link.message_count
    busiest = sorted(traffic, key=lambda name: (-traffic[name], name))[:NODES_MAX_COUNT]
    kept = [
        link
        for link in links
        if link.source in busiest and link.target in busiest and link.source != link.target
    ]
    kept.sort(key=lambda link: (-link.message_count, link.source, link.target))
    return kept[:ARROWS_MAX_COUNT]


def arrange(links: Sequence[LinkLoad]) -> list[str]:
    """Order the queue managers around the ring, so that those with much traffic are near.

    Pairs change places as long as that makes the way of the messages shorter.
    """
    names = sorted({name for link in links for name in (link.source, link.target)})
    place = {name: index for index, name in enumerate(names)}

    def length() -> float:
        return sum(
            link.message_count
            * math.sin(math.pi * abs(place[link.source] - place[link.target]) / len(names))
            for link in links
        )

    best = length()
    for _ in range(_ROUNDS_MAX_COUNT):
        improved = False
        for one, other in combinations(names, 2):
            place[one], place[other] = place[other], place[one]
            found = length()
            if found < best - 1e-9:
                best, improved = found, True
            else:
                place[one], place[other] = place[other], place[one]
        if not improved:
            break
    return sorted(names, key=place.__getitem__)


def draw_links(links: Sequence[LinkLoad]) -> LinkMap:
    """Place queue managers, arrows and counts."""
    shown = shown_links(links)
    nodes = _nodes(arrange(shown))
    boxes = [node for _, node in nodes]
    by_name = dict(nodes)
    most = max(link.message_count for link in shown)
    both_ways = {(link.target, link.source) for link in shown}
    arrows: list[Arrow] = []
    placed = list(boxes)
    for link in shown:
        bend = 0.22 if (link.source, link.target) in both_ways else 0.1
        curve = _Curve(by_name[link.source], by_name[link.target], bend)
        count = curve.room_for(count_text(link.message_count), placed)
        placed += [] if count is None else [count]
        width = 1.2 + 4.8 * math.sqrt(link.message_count / most)
        arrows.append(
            Arrow(
                curve.path(),
                curve.head(width),
                round(width, 1),
                speed_of(link),
                link.undelivered_count > 0,
                link,
                count,
            )
        )
    return LinkMap(WIDTH, _height(len(boxes)), tuple(boxes), tuple(arrows), _legend(shown))


def speed_of(link: LinkLoad) -> str:
    """Choose the colour of a link by its 95th percentile."""
    if not link.latency.seconds:
        return "muted"
    seconds = link.latency.seconds[1]
    number = next(i for i, (limit, _) in enumerate(SPEEDS, 1) if seconds <= limit)
    return f"speed-{number}"


def _height(count: int) -> float:
    if count > _RING_MAX_COUNT:
        return _ROW_PX * math.ceil(count / 2) + 16
    return 2 * _radius(count) + 60


def _radius(count: int) -> float:
    return 0.0 if count < 3 else max(70.0, 26.0 * count)


def _nodes(names: Sequence[str]) -> list[tuple[str, Box]]:
    place = _in_ring if len(names) <= _RING_MAX_COUNT else _in_columns
    found = []
    for number, name in enumerate(names):
        text = _fitting(name)
        width = _NAME_PX * _units(text) + 18
        x, y = place(number, len(names), width)
        found.append((name, Box(round(x, 1), round(y, 1), round(width, 1), _PILL_PX, text)))
    return found


def _in_ring(number: int, count: int, width: float) -> Point:
    # Names are wide: so two stand side by side, and of more no two have the same height nearby.
    turn = math.pi / 2 if count > 2 and count % 2 == 0 else 0.0
    angle = 2 * math.pi * number / count + turn
    # The widest name still ends inside of the map.
    x = WIDTH / 2 - math.cos(angle) * (WIDTH - width - 4) / 2
    return x, _height(count) / 2 + math.sin(angle) * _radius(count)


def _in_columns(number: int, count: int, width: float) -> Point:
    """Down on the right and up on the left, bent a little as a ring is."""
    rows = math.ceil(count / 2)
    is_right = number < rows
    row = number if is_right else count - 1 - number
    bend = _BEND_PX * (1 - math.sin(math.pi * (row + 0.5) / rows))
    # Half of the map has room for the widest name and the bend.
    x = width / 2 + 2 + min(bend, WIDTH / 2 - width - _MARGIN_PX)
    return WIDTH - x if is_right else x, 8 + _ROW_PX * (row + 0.5)


def _fitting(name: str) -> str:
    """Cut a name to what has room."""
    text = plain(name, NAME_MAX_CHARACTERS)
    while _units(text) > NAME_MAX_CHARACTERS:
        text = plain(text, len(text) - 1)
    return text


def _units(text: str) -> int:
    """How many letters' room a text needs: some letters are as wide as two."""
    return sum(
        2 if letter in _WIDE or unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


class _Curve:
    """A curve from one box to another, bent to its left."""

    def __init__(self, source: Box, target: Box, bend: float) -> None:
        (x1, y1), (x2, y2) = (source.x, source.y), (target.x, target.y)
        self._from, self._to = (x1, y1), (x2, y2)
        self._over = ((x1 + x2) / 2 + bend * (y2 - y1), (y1 + y2) / 2 - bend * (x2 - x1))
        outside = [
            step / 100
            for step in range(101)
            if not source.contains(self._at(step / 100), 3)
            and not target.contains(self._at(step / 100), 5)
        ]
        self._start, self._end = (outside[0], outside[-1]) if outside else (0.3, 0.7)

    def _at(self, t: float) -> Point:
        (x1, y1), (x, y), (x2, y2) = self._from, self._over, self._to
        one, two, three = (1 - t) ** 2, 2 * t * (1 - t), t**2
        return one * x1 + two * x + three * x2, one * y1 + two * y + three * y2

    def path(self) -> str:
        """Return the curve between the boxes, as SVG says it; it ends where its head begins."""
        end = self._start + (self._end - self._start) * 0.97
        steps = [self._start + (end - self._start) * number / 12 for number in range(13)]
        points = [self._at(step) for step in steps]
        return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)

    def head(self, width: float) -> str:
        """Return the three corners of the head."""
        x, y = self._at(self._end)
        before = self._at(self._start + (self._end - self._start) * 0.9)
        angle = math.atan2(y - before[1], x - before[0])
        size = 6 + width
        corners = [(x, y)] + [
            (x - size * math.cos(angle + turn), y - size * math.sin(angle + turn))
            for turn in (0.45, -0.45)
        ]
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)

    def room_for(self, text: str, placed: Sequence[Box]) -> Box | None:
        """Find a place on the curve for a text, where nothing is yet."""
        for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78):
            x, y = self._at(self._start + (self._end - self._start) * share)
            box = Box(round(x, 1), round(y, 1), _COUNT_PX * len(text) + 6, 16.0, text)
            if not any(box.meets(other) for other in placed):
                return box
        return None


def _legend(shown: Sequence[LinkLoad]) -> tuple[tuple[str, str], ...]:
    used = {speed_of(link) for link in shown}
    names = {f"speed-{i}": name for i, (_, name) in enumerate(SPEEDS, 1)} | {"muted": "not known"}
    return tuple((colour, name) for colour, name in names.items() if colour in used)
