"""Where boxes stand in a drawing and how the lines between them run: Graphviz decides.

Boxes that are joined come close to each other, none lies on another, and lines run past the boxes
that they do not lead to. The label of a line is a box like the others, through which the line goes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
from pygraphviz import AGraph

Pair: TypeAlias = tuple[int, int]

CURVES_MAX_COUNT: Final = 40
"""With more boxes, lines are straight: to lead them past the others would take too long."""

_CLEAR: Final = "+16"
"""What stays free around a box."""
_LINE_CLEAR: Final = "+8"
"""What stays free between a line and a box, less than what is free around it."""
_LINE_LENGTH: Final = 1.5
"""How long a line from a box to its label would be without other boxes, in inches."""
_POINTS_PER_INCH: Final = 72


class Box(msgspec.Struct):
    """A box by its centre and its size."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    @property
    def left(self) -> int:
        """The left edge."""
        return round(self.x - self.width / 2)

    @property
    def top(self) -> int:
        """The upper edge."""
        return round(self.y - self.height / 2)


class Layout(msgspec.Struct, frozen=True):
    """How large a drawing is, and the lines in it."""

    width: float
    height: float
    lines: tuple[str, ...]
    """What runs from box to box, as the path of SVG."""


def arrange(boxes: Sequence[Box], pairs: Sequence[Pair], labels: Sequence[Box]) -> Layout:
    """Place every box and every label, and return the lines of the pairs."""
    if not boxes:
        return Layout(0.0, 0.0, ())
    graph = AGraph(
        mode="sgd",
        start="1",
        overlap="vpsc",
        pack="true",
        sep=_CLEAR,
        esep=_LINE_CLEAR,
        splines="true" if len(boxes) <= CURVES_MAX_COUNT else "line",
    )
    nodes = [*boxes, *labels]
    for number, box in enumerate(nodes):
        size = {"width": box.width / _POINTS_PER_INCH, "height": box.height / _POINTS_PER_INCH}
        graph.add_node(number, shape="box", fixedsize="true", label="", **size)
    for number, (one, other) in enumerate(pairs, len(boxes)):
        graph.add_edge(one, number, len=_LINE_LENGTH)
        graph.add_edge(number, other, len=_LINE_LENGTH)
    graph.layout("neato")
    left, bottom, right, top = _numbers(graph.graph_attr["bb"])
    for number, box in enumerate(nodes):
        x, y = _numbers(graph.get_node(number).attr["pos"])
        box.x, box.y = x - left, top - y

    def path(one: int, other: int) -> str:
        numbers = iter(_numbers(graph.get_edge(one, other).attr["pos"]))
        points = [f"{x - left:.0f} {top - y:.0f}" for x, y in zip(numbers, numbers, strict=True)]
        return f"M{points[0]}C{' '.join(points[1:])}"

    lines = tuple(
        path(one, number) + path(number, other)
        for number, (one, other) in enumerate(pairs, len(boxes))
    )
    return Layout(right - left, top - bottom, lines)


def _numbers(text: str) -> list[float]:
    return [float(number) for number in re.split("[ ,]", text)]
