"""A trace as one page that draws it: a lane for each node, an arrow for each packet.

Time runs down, and only as far as something happens: a quiet hour takes no more room than a quiet
second, and the gap is marked with its length. The page needs nothing but itself. What stands where
is said here; `templates/trace.html` is the page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

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
_OTHER: Final = "\u00b7"


def draw_trace(trace: Trace, title: str, sentence: str, messages: tuple[int, ...]) -> str:
    """Return the page; events about `messages` are marked."""
    shown = [event for event in trace.events if event.kind not in _HIDDEN]
    left_out_count = max(0, len(shown) - _EVENTS_MAX_COUNT)
    drawing = _Drawing(trace.names, shown[left_out_count:], set(messages))
    environment = Environment(
        loader=PackageLoader("openmsmq.sim"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("trace.html").render(
        title=title, sentence=sentence, left_out_count=left_out_count, **drawing.places()
    )


class _Drawing:
    def __init__(self, names: list[str], events: list[Event], about: set[int]) -> None:
        self._names = names
        self._events = events
        self._about = about
        self._heights: list[int] = []
        """The height of each event."""
        self._gaps: list[tuple[int, int]] = []
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
            self._heights.append(y)
            last_ms = event.time_ms
        self._bottom = y + 2 * _ROW

    def places(self) -> dict[str, Any]:
        return {
            "width": _LEFT + _LANE_WIDTH * max(1, len(self._names)) + _LANE_WIDTH // 2,
            "bottom": self._bottom,
            "lanes": [
                {"name": name, "x": _x(node), "dark": list(self._dark_times(node))}
                for node, name in enumerate(self._names)
            ],
            "gaps": self._gaps,
            "rows": self._rows(),
        }

    def _dark_times(self, node: int) -> Iterator[tuple[int, int]]:
        """The stretches in which a node has no power."""
        since: int | None = None
        for event, y in zip(self._events, self._heights, strict=True):
            if event.node != node:
                continue
            if event.kind == "crash":
                since = y
            elif event.kind == "start" and since is not None:
                yield since, y
                since = None
        if since is not None:
            yield since, self._bottom

    def _rows(self) -> Iterator[dict[str, Any]]:
        last_ms = -1
        for event, y in zip(self._events, self._heights, strict=True):
            time = f"{event.time_ms / 1000:.3f}"
            about = "".join(f" m{number}" for number in event.messages)
            yield {
                "is_about": not self._about.isdisjoint(event.messages),
                "tip": f"{time} {event.kind}: {event.text}{about}",
                "time": time if event.time_ms != last_ms else "",
                "y": y,
                **(self._packet(event, y, about) if event.kind == "packet" else _other(event, y)),
            }
            last_ms = event.time_ms

    def _packet(self, event: Event, y: int, about: str) -> dict[str, Any]:
        here, there = _x(event.node), _x(event.target)
        is_lost = event.arrival_ms < 0
        end_x = (here + there) // 2 if is_lost else there
        end_y = y + _ROW // 2 if is_lost else max(y + 3, self._height_at(event.arrival_ms))
        name, _, text = event.text.partition(" ")
        if text.startswith("to "):
            # Where it goes is where the arrow points.
            text = text.partition(", ")[2]
        is_right = there >= here
        return {
            "kind": "lost" if is_lost else _packet_kind(name),
            "arrow": f"M{here} {y - 4}L{end_x} {end_y - 4}",
            "x": here + 10 if is_right else here - 10,
            "text_y": y - 6,
            "anchor": "start" if is_right else "end",
            "text": _short(f"{name}{about} {text}"),
        }

    def _height_at(self, time_ms: int) -> int:
        """Where in the drawing a moment is: at the first thing that happened then or later."""
        found = bisect_left(self._events, time_ms, key=lambda event: event.time_ms)
        return self._heights[found] if found < len(self._heights) else self._bottom - _ROW


def _other(event: Event, y: int) -> dict[str, Any]:
    return {
        "kind": event.kind,
        "arrow": "",
        "x": _x(event.node) + 10 if event.node >= 0 else _LEFT - 12,
        "text_y": y,
        "anchor": "start",
        "text": _short(f"{_SYMBOLS.get(event.kind, _OTHER)} {event.text}"),
    }


def _x(node: int) -> int:
    return _LEFT + _LANE_WIDTH // 2 + node * _LANE_WIDTH


def _packet_kind(name: str) -> str:
    if name in ("EstablishConnection", "ConnectionParameters"):
        return "internal"
    return "ack" if name.endswith("Ack") else ""


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}\u2026"
