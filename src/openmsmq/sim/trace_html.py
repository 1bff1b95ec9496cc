"""A trace as one page that draws it: a lane for each node, an arrow for each packet.

Time runs down, and only as far as something happens: a quiet hour takes no more room than a quiet
second, and the gap is marked with its length. The page needs nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from openmsmq.sim.trace import Event, Trace

_LANE_WIDTH: Final = 420
_LEFT: Final = 110
_TOP: Final = 70
_ROW: Final = 18
_GAP_MS: Final = 400
"""A pause longer than this is marked."""
_EVENTS_MAX_COUNT: Final = 6_000
_TEXT_MAX: Final = 62

_HIDDEN: Final = frozenset({"name"})
_STYLE: Final = """
body { font: 13px/1.45 system-ui, sans-serif; margin: 24px; color: #1c2430; background: #fff; }
h1 { font-size: 17px; margin: 0 0 4px; } p { margin: 2px 0 10px; max-width: 90ch; }
.bad { color: #b3261e; font-weight: 600; } .hint { color: #5b6675; }
code { background: #f1f3f6; padding: 1px 4px; border-radius: 3px; }
svg text { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #1c2430; stroke: #fff;
  stroke-width: 3px; paint-order: stroke; }
svg .time { fill: #8a94a3; } svg .gap { fill: #8a94a3; font-style: italic; }
svg .lane { stroke: #d5dbe3; stroke-width: 2; } svg .down { stroke: #f3c9c5; stroke-width: 10; }
svg .head { font: 600 14px system-ui, sans-serif; text-anchor: middle; }
svg .arrow { stroke: #2f6fb3; stroke-width: 1.2; fill: none; marker-end: url(#tip); }
svg .internal { stroke: #9aa5b4; } svg .ack { stroke: #2e8b57; }
svg .lost { stroke: #b3261e; stroke-dasharray: 4 3; marker-end: url(#cross); }
svg .fault, svg .crash { fill: #b3261e; } svg .start { fill: #2e8b57; }
svg .persist { fill: #6a4c93; } svg .full { fill: #b3261e; } svg .phase { fill: #8a94a3; }
svg .call { fill: #445065; } svg .answer { fill: #7a8799; }
svg g.about text { font-weight: 700; } svg g.about { background: #fff4c2; }
svg .mark { fill: #fff4c2; }
"""
_MARKERS: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="#2f6fb3"/></marker>'
    '<marker id="cross" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="9" markerHeight="9">'
    '<path d="M1 1L7 7M7 1L1 7" stroke="#b3261e" stroke-width="1.6"/></marker></defs>'
)
_SYMBOLS: Final = {
    "persist": "\u26c1",
    "crash": "\u2716",
    "start": "\u25b6",
    "fault": "\u26a1",
    "full": "\u26d4",
    "cut": "\u2702",
    "close": "\u2702",
    "connect": "\u21c4",
    "call": "\u2192",
    "answer": "\u2190",
    "datagram": "\u2022",
}


def draw_trace(trace: Trace, title: str, sentence: str, messages: tuple[int, ...]) -> str:
    """Return the page; events about `messages` are marked."""
    shown = [event for event in trace.events if event.kind not in _HIDDEN]
    left_out = max(0, len(shown) - _EVENTS_MAX_COUNT)
    drawing = _Drawing(trace.names, shown[left_out:], set(messages))
    verdict = (
        f'<p class="bad">{escape(sentence)}</p>' if sentence else "<p>Every promise was kept.</p>"
    )
    hint = (
        "Time runs down; a row is a thing that happened. Arrows are packets, from the moment they "
        "leave to the moment they arrive; red ones never do. "
        "\u26c1 is a batch on its way to the disk, \u2716 a loss of power, \u26a1 a fault. "
        "Yellow rows are about the messages of the sentence above."
    )
    if left_out:
        hint += f" The first {left_out} events are left out."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1><code>{escape(title)}</code></h1>{verdict}"
        f'<p class="hint">{escape(hint)}</p>{drawing.svg()}</body></html>\n'
    )


class _Drawing:
    def __init__(self, names: list[str], events: list[Event], about: set[int]) -> None:
        self._names = names
        self._events = events
        self._about = about
        self._rows: list[int] = []
        """The height of each event."""
        self._gaps: list[tuple[int, int]] = []
        self._heights: list[tuple[int, int]] = []
        self._lay_out()

    def _lay_out(self) -> None:
        y = _TOP
        last_ms = self._events[0].time_ms if self._events else 0
        for event in self._events:
            pause_ms = event.time_ms - last_ms
            if pause_ms > _GAP_MS:
                self._gaps.append((y + _ROW // 2, pause_ms))
                y += _ROW
            y += _ROW
            self._rows.append(y)
            self._heights.append((event.time_ms, y))
            last_ms = event.time_ms
        self._bottom = y + 2 * _ROW

    def svg(self) -> str:
        width = _LEFT + _LANE_WIDTH * max(1, len(self._names)) + _LANE_WIDTH // 2
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{self._bottom}" '
            f'viewBox="0 0 {width} {self._bottom}">',
            _MARKERS,
            *self._lanes(),
            *(self._gap(y, pause_ms, width) for y, pause_ms in self._gaps),
        ]
        last_ms = -1
        for event, y in zip(self._events, self._rows, strict=True):
            parts.append(self._event(event, y, show_time=event.time_ms != last_ms, width=width))
            last_ms = event.time_ms
        parts.append("</svg>")
        return "".join(parts)

    def _lanes(self) -> Iterator[str]:
        for index, name in enumerate(self._names):
            x = self._x(index)
            yield f'<text class="head" x="{x}" y="28">{escape(name)}</text>'
            yield f'<line class="lane" x1="{x}" y1="40" x2="{x}" y2="{self._bottom}"/>'
            for top, bottom in self._dark_times(index):
                yield f'<line class="down" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>'

    def _dark_times(self, node: int) -> Iterator[tuple[int, int]]:
        """The stretches in which a node has no power."""
        since: int | None = None
        for event, y in zip(self._events, self._rows, strict=True):
            if event.node != node:
                continue
            if event.kind == "crash":
                since = y
            elif event.kind == "start" and since is not None:
                yield since, y
                since = None
        if since is not None:
            yield since, self._bottom

    def _gap(self, y: int, pause_ms: int, width: int) -> str:
        return (
            f'<line x1="{_LEFT - 60}" y1="{y + 4}" x2="{width - 30}" y2="{y + 4}" '
            'stroke="#eef1f5"/>'
            f'<text class="gap" x="8" y="{y + 8}">+ {pause_ms / 1000:.1f} s</text>'
        )

    def _event(self, event: Event, y: int, *, show_time: bool, width: int) -> str:
        about = bool(self._about.intersection(event.messages))
        parts = ['<g class="about">' if about else "<g>", f"<title>{_whole(event)}</title>"]
        if about:
            parts.append(
                f'<rect class="mark" x="{_LEFT - 20}" y="{y - 12}" width="{width - _LEFT}" '
                f'height="{_ROW - 2}"/>'
            )
        if show_time:
            parts.append(f'<text class="time" x="8" y="{y}">{event.time_ms / 1000:.3f}</text>')
        if event.kind == "packet":
            parts.append(self._arrow(event, y))
        else:
            x = self._x(event.node) + 10 if event.node >= 0 else _LEFT - 12
            symbol = _SYMBOLS.get(event.kind, "\u00b7")
            text = _short(f"{symbol} {event.text}")
            parts.append(f'<text class="{event.kind}" x="{x}" y="{y}">{text}</text>')
        parts.append("</g>")
        return "".join(parts)

    def _arrow(self, event: Event, y: int) -> str:
        here, there = self._x(event.node), self._x(event.target)
        lost = event.arrival_ms < 0
        end_x = (here + there) // 2 if lost else there
        end_y = y + _ROW // 2 if lost else max(y + 3, self._height_at(event.arrival_ms))
        name, _, text = event.text.partition(" ")
        if text.startswith("to "):
            # Where it goes is where the arrow points.
            text = text.partition(", ")[2]
        kind = "lost" if lost else _packet_kind(name)
        about = "".join(f" m{number}" for number in event.messages)
        label = _short(f"{name}{about} {text}")
        anchor = "start" if there >= here else "end"
        label_x = here + 10 if there >= here else here - 10
        return (
            f'<path class="arrow {kind}" d="M{here} {y - 4}L{end_x} {end_y - 4}"/>'
            f'<text x="{label_x}" y="{y - 6}" text-anchor="{anchor}">{label}</text>'
        )

    def _height_at(self, time_ms: int) -> int:
        """Where in the drawing a moment is: at the last thing that happened by then."""
        low, high = 0, len(self._heights)
        while low < high:
            middle = (low + high) // 2
            if self._heights[middle][0] < time_ms:
                low = middle + 1
            else:
                high = middle
        return self._heights[low][1] if low < len(self._heights) else self._bottom - _ROW

    def _x(self, node: int) -> int:
        return _LEFT + _LANE_WIDTH // 2 + node * _LANE_WIDTH


def _packet_kind(name: str) -> str:
    if name in ("EstablishConnection", "ConnectionParameters"):
        return "internal"
    return "ack" if name.endswith("Ack") else ""


def _whole(event: Event) -> str:
    about = " ".join(f"m{number}" for number in event.messages)
    return escape(f"{event.time_ms / 1000:.3f} {event.kind}: {event.text} {about}")


def _short(text: str) -> str:
    return escape(text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}\u2026")
