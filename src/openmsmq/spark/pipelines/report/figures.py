"""The plots of the report, as SVG that takes its colours and fonts from the page around it.

Matplotlib draws with stand-in colours; each becomes a variable of the page's style sheet, so that
a plot is light or dark as the page is. Text stays text.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC
from typing import Any, Final

import matplotlib
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from openmsmq.spark.pipelines.report.data import (
    EDGES_S,
    Failure,
    Latencies,
    LinkLoad,
    Throughput,
    Totals,
)
from openmsmq.spark.pipelines.report.map import draw_links
from openmsmq.spark.pipelines.report.text import (
    count_text,
    duration_text,
    plain,
    range_text,
    step_text,
)

REASONS_MAX_COUNT: Final = 12
"""Bars in the plot of reasons."""

REASON_MAX_CHARACTERS: Final = 30
"""Characters of a reason beside its bar: longer ones would leave no room for bars."""

WIDTH_IN: Final = 5.6
"""The width of every plot: about that of a phone, so that its text can be read there."""

_SMALL: Final = 9

# Stand-ins: no plot uses these colours for anything else.
_VARIABLES: Final = {
    "#010203": "ink",
    "#020304": "muted",
    "#030405": "line",
    "#040506": "surface",
    "#050607": "good",
    "#060708": "open",
    "#070809": "bad",
    "#08090a": "accent",
    "#090a0b": "accent-2",
    "#0a0b0c": "speed-1",
    "#0b0c0d": "speed-2",
    "#0c0d0e": "speed-3",
    "#0d0e0f": "speed-4",
    "#0e0f10": "speed-5",
}
COLOURS: Final = {name: colour for colour, name in _VARIABLES.items()}
"""The stand-in for each variable of the style sheet."""

# This part of matplotlib has no types.
_UNTYPED_DATES: Final[Any] = dates

_STYLE: Final[dict[str, Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": COLOURS["line"],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": COLOURS["muted"],
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 10,
    "grid.color": COLOURS["line"],
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": COLOURS["ink"],
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": COLOURS["ink"],
    # Names of queues have dollar signs.
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": COLOURS["muted"],
    "xtick.major.size": 0,
    "ytick.color": COLOURS["muted"],
    "ytick.major.size": 0,
}


def throughput_figure(throughput: Throughput) -> str:
    """Draw how many messages were sent when, by what became of them."""

    def draw(axes: Axes) -> None:
        steps = throughput.steps
        # The middle of a bar is the middle of its time.
        times = [step.start.timestamp() for step in steps]
        width_days = throughput.step_s / 86_400
        days = [time / 86_400 for time in times]
        below = [0] * len(steps)
        parts = {
            ("reached their queue", "good"): [step.delivered_count for step in steps],
            ("on their way or unknown", "open"): [step.open_count for step in steps],
            ("failed or lost", "bad"): [step.undelivered_count for step in steps],
        }
        for (name, colour), counts in parts.items():
            if any(counts):
                axes.bar(
                    days,
                    counts,
                    width_days * 0.88,
                    bottom=below,
                    align="edge",
                    color=COLOURS[colour],
                    label=name,
                    linewidth=0,
                )
                below = [low + count for low, count in zip(below, counts, strict=True)]
        axes.set_xlim(days[0] - width_days * 0.2, days[-1] + width_days * 1.2)
        locator = _UNTYPED_DATES.AutoDateLocator(tz=UTC, maxticks=7)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(_UNTYPED_DATES.ConciseDateFormatter(locator, tz=UTC))
        _count_axis(axes)
        axes.set_ylabel(f"messages per {step_text(throughput.step_s)}")
        _legend(axes)

    return _svg("throughput", 3.2, draw)


def latency_figure(latencies: Latencies, totals: Totals) -> str:
    """Draw how many messages took how long, with the percentiles."""
    series = {
        "sent to reached queue": (latencies.reach, "accent"),
        "sent to received": (latencies.receive, "accent-2"),
    }
    shown = {name: each for name, each in series.items() if each[0]}
    used = [i for counts, _ in shown.values() for i, count in enumerate(counts) if count]
    first, last = min(used), max(used)

    def draw(axes: Axes) -> None:
        width = 0.8 / len(shown)
        for number, (name, (counts, colour)) in enumerate(shown.items()):
            places = [i + (number - (len(shown) - 1) / 2) * width for i in range(first, last + 1)]
            axes.bar(
                places,
                counts[first : last + 1],
                width * 0.94,
                color=COLOURS[colour],
                label=name,
                linewidth=0,
            )
        axes.set_xticks(range(first, last + 1), [_bar_name(i) for i in range(first, last + 1)])
        if last - first > 6:
            axes.tick_params(axis="x", rotation=45)
            for label in axes.get_xticklabels():
                label.set_horizontalalignment("right")
                label.set_rotation_mode("anchor")
        axes.set_xlim(first - 0.6, last + 0.6)
        marks = totals.reach_s if latencies.reach else totals.receive_s
        _mark_percentiles(axes, marks)
        _count_axis(axes)
        axes.set_ylabel("messages")
        _legend(axes)

    return _svg("latency", 3.4, draw)


def _mark_percentiles(axes: Axes, seconds: Sequence[float]) -> None:
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * 1.3)
    # At different heights, because they may be close to each other.
    heights = (1.21, 1.12, 1.03)
    for percent, value, height in zip((50, 95, 99), seconds, heights, strict=False):
        place = _place(value)
        axes.plot(
            [place, place], [0, top * height], color=COLOURS["ink"], linewidth=0.8, dashes=(3, 3)
        )
        axes.annotate(
            f"p{percent} {duration_text(value)}",
            (place, top * height),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="center",
            fontsize=_SMALL,
        )


def _bar_name(number: int) -> str:
    if number == 0:
        return "below 0"
    low = EDGES_S[number - 1]
    return range_text(low, EDGES_S[number] if number < len(EDGES_S) else None)


def _place(seconds: float) -> float:
    """Give the place of a value on the axis of the bars: inside the bar that counts it."""
    number = sum(edge <= seconds for edge in EDGES_S)
    if number in (0, len(EDGES_S)):
        return float(number)
    low, high = EDGES_S[number - 1], EDGES_S[number]
    # A bar of one second has one value, which is in its middle.
    span = max(high - low - 1, 1)
    return number - 0.4 + 0.8 * min((seconds - low) / span, 1) if high - low > 1 else number


def failure_figure(failures: Sequence[Failure]) -> str:
    """Draw how many messages failed for which reason."""
    shown = list(failures[:REASONS_MAX_COUNT])
    rest = failures[REASONS_MAX_COUNT:]
    if rest:
        dead = sum(each.dead_letter_count for each in rest)
        shown.append(Failure("others", dead, sum(each.failed_count for each in rest)))
    shown.reverse()

    def draw(axes: Axes) -> None:
        names = [plain(reason_text(each.reason), REASON_MAX_CHARACTERS) for each in shown]
        dead = [each.dead_letter_count for each in shown]
        failed = [each.failed_count for each in shown]
        places = range(len(shown))
        if any(dead):
            axes.barh(places, dead, 0.62, color=COLOURS["bad"], label="dead letters")
        if any(failed):
            axes.barh(
                places, failed, 0.62, left=dead, color=COLOURS["open"], label="told, no copy found"
            )
        for place, each in zip(places, shown, strict=True):
            total = each.dead_letter_count + each.failed_count
            axes.annotate(
                count_text(total),
                (total, place),
                xytext=(4, 0),
                textcoords="offset points",
                verticalalignment="center",
                fontsize=_SMALL,
            )
        axes.set_yticks(places, names)
        # A single bar is not to fill the plot.
        axes.set_ylim(len(shown) - 0.5 - max(len(shown), 3), len(shown) - 0.5)
        axes.tick_params(axis="y", colors=COLOURS["ink"])
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(round(value))))
        axes.margins(x=0.12)
        axes.spines["bottom"].set_visible(False)
        _legend(axes)

    return _svg("failures", 1.1 + 0.3 * max(len(shown), 3), draw)


def reason_text(reason: str) -> str:
    """Say a reason as a word of its own: `reach queue timeout`."""
    return plain(reason.removeprefix("NACK_").replace("_", " ").lower())


def link_figure(links: Sequence[LinkLoad]) -> str:
    """Draw who sent to whom: queue managers in a circle, and what went between them."""
    return _svg("links", 4.6, lambda axes: draw_links(axes, links, COLOURS))


def _count_axis(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count_text(round(value))))


def _legend(axes: Axes) -> None:
    handles, _ = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=len(handles),
            fontsize=_SMALL,
            handlelength=0.9,
            handleheight=0.9,
            columnspacing=1.4,
            borderaxespad=0.2,
            borderpad=0.2,
        )


def _svg(name: str, height_in: float, draw: Callable[[Axes], None]) -> str:
    written = io.StringIO()
    # The names of settings are typed in some versions of matplotlib only.
    settings: Any = {**_STYLE, "svg.hashsalt": name}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Letters that its font lacks are drawn by the page's fonts.
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return embeddable(written.getvalue(), name)


def embeddable(svg: str, name: str) -> str:
    """Make an SVG file a part of a page: colours by variables, identifiers that only it has."""
    start = svg.index("<svg")
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[start:], flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r'xlink:href="#', f'xlink:href="#{name}-', body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    body = re.sub(r'<svg[^>]*viewBox="([^"]+)"[^>]*>', _opening, body, count=1)
    return body.strip()


def _opening(found: re.Match[str]) -> str:
    return (
        f'<svg viewBox="{found[1]}" role="img" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
