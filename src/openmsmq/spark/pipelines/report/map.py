"""The map of links: queue managers in a circle, an arrow for each link.

The width of an arrow is how many messages took the link, its colour how long 95 % of them took.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from openmsmq.spark.pipelines.report.data import LinkLoad
from openmsmq.spark.pipelines.report.text import count_text, plain

NODES_MAX_COUNT: Final = 14
ARROWS_MAX_COUNT: Final = 40
COUNTS_MAX_COUNT: Final = 14
"""Arrows up to which each has its count beside it."""

NAME_MAX_CHARACTERS: Final = 18
SPEEDS: Final = ((2, "up to 2 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (math.inf, "more"))
"""Up to which 95th percentile, in seconds, a link has which colour."""

_ROUNDS_MAX_COUNT: Final = 50


def shown_links(links: Sequence[LinkLoad]) -> list[LinkLoad]:
    """Choose what is drawn: the busiest links between the busiest queue managers."""
    traffic: dict[str, int] = defaultdict(int)
    for link in links:
        traffic[link.source] += link.message_count
        traffic[link.target] += link.message_count
    busiest = sorted(traffic, key=lambda name: (-traffic[name], name))[:NODES_MAX_COUNT]
    kept = [link for link in links if link.source in busiest and link.target in busiest]
    kept.sort(key=lambda link: (-link.message_count, link.source, link.target))
    return kept[:ARROWS_MAX_COUNT]


def arrange(links: Sequence[LinkLoad]) -> list[str]:
    """Order the queue managers around the circle, so that those with much traffic are near.

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


def draw_links(axes: Axes, links: Sequence[LinkLoad], colours: Mapping[str, str]) -> None:
    """Draw the map."""
    shown = shown_links(links)
    names = arrange(shown)
    spots = _spots(names)
    most = max(link.message_count for link in shown)
    both_ways = {(link.target, link.source) for link in shown}
    for link in reversed(shown):
        bend = 0.2 if (link.source, link.target) in both_ways else 0.1
        colour = colours[speed_of(link)]
        lossy = link.undelivered_count > 0
        axes.add_patch(
            FancyArrowPatch(
                spots[link.source],
                spots[link.target],
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>,head_length=5,head_width=2.6",
                linewidth=0.9 + 4.6 * math.sqrt(link.message_count / most),
                linestyle=(0, (2.2, 1.1)) if lossy else "solid",
                color=colour,
                shrinkA=13,
                shrinkB=13,
                mutation_scale=1.0,
                capstyle="butt",
                joinstyle="miter",
            )
        )
        if len(shown) <= COUNTS_MAX_COUNT:
            _count(axes, link, spots[link.source], spots[link.target], bend, colours)
    for name, (x, y) in spots.items():
        axes.plot(
            [x],
            [y],
            "o",
            markersize=15,
            color=colours["surface"],
            markeredgecolor=colours["ink"],
            markeredgewidth=1.4,
        )
        axes.annotate(
            plain(name, NAME_MAX_CHARACTERS),
            (x, y),
            # Outwards from the circle, where no arrow is.
            xytext=(13 * x, (18 if abs(x) < 0.15 else 13) * y),
            textcoords="offset points",
            horizontalalignment="center" if abs(x) < 0.15 else "left" if x > 0 else "right",
            verticalalignment="center",
            fontweight="bold",
        )
    axes.set_xlim(-1.75, 1.75)
    axes.set_ylim(-1.25, 1.25)
    axes.set_aspect("equal")
    axes.axis("off")
    _legend(axes, shown, colours)


def speed_of(link: LinkLoad) -> str:
    """Choose the colour of a link by its 95th percentile."""
    if not link.latency_s:
        return "muted"
    number = next(i for i, (limit, _) in enumerate(SPEEDS, 1) if link.latency_s[1] <= limit)
    return f"speed-{number}"


def _spots(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    # The first one is at the left, so that two of them stand side by side.
    return {
        name: (-math.cos(2 * math.pi * i / len(names)), math.sin(2 * math.pi * i / len(names)))
        for i, name in enumerate(names)
    }


def _count(
    axes: Axes,
    link: LinkLoad,
    start: tuple[float, float],
    end: tuple[float, float],
    bend: float,
    colours: Mapping[str, str],
) -> None:
    """Write how many on the middle of an arrow."""
    (x1, y1), (x2, y2) = start, end
    # The middle of the curve: half way to its control point.
    along = 0.5 * bend
    x, y = (x1 + x2) / 2 + along * (y2 - y1), (y1 + y2) / 2 - along * (x2 - x1)
    text = count_text(link.message_count)
    if link.undelivered_count:
        text += f"\n{count_text(link.undelivered_count)} failed"
    axes.text(
        x,
        y,
        text,
        fontsize=8,
        color=colours["bad"] if link.undelivered_count else colours["ink"],
        horizontalalignment="center",
        verticalalignment="center",
        linespacing=1.1,
        bbox={"facecolor": colours["surface"], "edgecolor": "none", "pad": 0.8, "alpha": 0.8},
    )


def _legend(axes: Axes, shown: Sequence[LinkLoad], colours: Mapping[str, str]) -> None:
    used = {speed_of(link) for link in shown}
    handles = [
        Line2D([], [], color=colours[f"speed-{i}"], linewidth=3, label=name)
        for i, (_, name) in enumerate(SPEEDS, 1)
        if f"speed-{i}" in used
    ]
    if "muted" in used:
        handles.append(Line2D([], [], color=colours["muted"], linewidth=3, label="not known"))
    if any(link.undelivered_count for link in shown):
        handles.append(
            Line2D(
                [],
                [],
                color=colours["ink"],
                linewidth=2,
                linestyle=(0, (2.2, 1.1)),
                label="with failures",
            )
        )
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=len(handles),
        fontsize=9,
        handlelength=1.4,
        columnspacing=1.3,
        title="95 % took",
        title_fontsize=9,
    )
