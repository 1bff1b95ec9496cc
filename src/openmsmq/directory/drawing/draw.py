"""A picture of an enterprise: sites, the links between them with costs, gates, and roles, as SVG.

The same directory gives the same picture. It needs no script and nothing from elsewhere, and goes
with the light or dark colours of whoever looks at it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

import msgspec

from openmsmq.directory.drawing.curves import Line, route
from openmsmq.directory.drawing.layout import Box, arrange
from openmsmq.directory.drawing.text_size import cut, mono_width, safe, text_width
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.naming import name_of, reference_name, sorted_by_name
from openmsmq.model.directory import ObjectKind
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.model.topology import QueueManagerInfo, RoutingLink

ROWS_MAX_COUNT: Final = 8
"""Queue managers shown in one site; how many more there are is written below them."""

_MARGIN: Final = 32
_TITLE: Final = 62
_LEGEND: Final = 40
_LEGEND_MIN: Final = 520
_HEAD: Final = 30
_ROW: Final = 20
_PAD: Final = 12
_CARD_MIN: Final = 128
_NAME_MAX: Final = 190
_MARK: Final = 18

_STYLE: Final = """
  text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2933; }
  .paper { fill: #ffffff; }
  .title { font-size: 19px; font-weight: 600; }
  .note { font-size: 12px; fill: #5b6773; }
  .site { font-size: 14px; font-weight: 600; }
  .name { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
          font-size: 12px; }
  .card { fill: #f5f7f9; stroke: #b9c3cd; stroke-width: 1.2; }
  .foreign { stroke-dasharray: 5 4; }
  .rule { stroke: #d8dfe5; stroke-width: 1; }
  .link { fill: none; stroke: #7b8997; stroke-width: 1.8; }
  .closed { stroke-dasharray: 6 5; }
  .cost { fill: #ffffff; stroke: #7b8997; stroke-width: 1.2; }
  .number { font-size: 12px; font-weight: 600; text-anchor: middle; }
  .gate { fill: #c2410c; }
  .router { fill: none; stroke: #c2410c; stroke-width: 1.6; }
  .server { fill: #047857; }
  .plain { fill: #7b8997; }
  .hollow { fill: none; stroke: #7b8997; stroke-width: 1.4; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6eaee; }
    .paper { fill: #14181d; }
    .note { fill: #9aa6b2; }
    .card { fill: #20262d; stroke: #4a5561; }
    .rule { stroke: #343d46; }
    .link { stroke: #7b8997; }
    .cost { fill: #14181d; stroke: #7b8997; }
    .gate { fill: #fb923c; }
    .router { stroke: #fb923c; }
    .server { fill: #34d399; }
    .plain { fill: #8b98a5; }
    .hollow { stroke: #8b98a5; }
  }
"""


class Role(Enum):
    """What a mark before or behind a queue manager says; the values are those of the legend."""

    GATE = "gate"
    ROUTER = "routing server"
    PLAIN = "queue manager"
    FOREIGN = "foreign queue manager"
    DIRECTORY = "directory server"


_MARKS: Final = {
    Role.GATE: '<path class="gate" d="M{x} {t}L{r} {y}L{x} {b}L{l} {y}Z"/>',
    Role.ROUTER: '<path class="router" d="M{x} {t}L{r} {y}L{x} {b}L{l} {y}Z"/>',
    Role.PLAIN: '<circle class="plain" cx="{x}" cy="{y}" r="3.5"/>',
    Role.FOREIGN: '<circle class="hollow" cx="{x}" cy="{y}" r="3.5"/>',
    Role.DIRECTORY: '<path class="server" d="M{l} {t}q5 -3 10 0v10q-5 3 -10 0Z"/>',
}


class _Row(msgspec.Struct, frozen=True):
    name: str
    tip: str
    role: Role
    is_directory: bool


class _Card(msgspec.Struct, frozen=True):
    name: str
    note: str
    rows: tuple[_Row, ...]
    more_count: int
    box: Box
    is_dashed: bool


def draw(image: DirectoryImage) -> str:
    """Draw an enterprise as a document in SVG."""
    return _Drawing(image).document()


class _Drawing:
    def __init__(self, image: DirectoryImage) -> None:
        self._image = image
        self._gates = {gate for link in image.links.values() for gate in link.site_gates}
        sites = sorted_by_name(image.sites.values(), image)
        self._numbers = {site.identifier: number for number, site in enumerate(sites)}
        members: dict[Guid | None, list[QueueManagerInfo]] = {}
        for manager in image.managers.values():
            known: list[Guid | None] = [site for site in manager.sites if site in self._numbers]
            for site in known or [None]:
                members.setdefault(site, []).append(manager)
        self._cards = [
            self._card(name_of(value, image), members.get(value.identifier, []), value.identifier)
            for value in sites
        ]
        if None in members:
            self._cards.append(self._card("without a site", members[None], None))
        self._links = [
            link
            for link in sorted(image.links.values(), key=lambda link: name_of(link, image))
            if link.site1 in self._numbers and link.site2 in self._numbers
        ]

    # What is in it.

    def _card(self, name: str, managers: list[QueueManagerInfo], site: Guid | None) -> _Card:
        rows = sorted(map(self._row, managers), key=_rank)
        shown = tuple(rows[:ROWS_MAX_COUNT])
        more_count = len(rows) - len(shown)
        is_foreign = site is not None and self._image.sites[site].foreign
        note = "foreign" if is_foreign else ""
        title = text_width(name, 14) + (text_width(note, 12) + 10 if note else 0)
        widths = [_MARK + mono_width(row.name) + _MARK * row.is_directory for row in shown]
        width = max(
            [_CARD_MIN, min(title, _NAME_MAX + 40) + 2 * _PAD, *(w + 2 * _PAD for w in widths)]
        )
        lines = len(shown) + bool(more_count)
        height = _HEAD + (lines * _ROW + _PAD if lines else 4)
        is_dashed = is_foreign or site is None
        return _Card(
            name, note, shown, more_count, Box(float(math.ceil(width)), float(height)), is_dashed
        )

    def _row(self, manager: QueueManagerInfo) -> _Row:
        if manager.identifier in self._gates:
            role = Role.GATE
        elif manager.routing_server:
            role = Role.ROUTER
        else:
            role = Role.FOREIGN if manager.foreign else Role.PLAIN
        return _Row(
            cut(manager.computer_name, _NAME_MAX, mono=True),
            self._tip(manager, role),
            role,
            manager.directory_server is not None,
        )

    def _tip(self, manager: QueueManagerInfo, role: Role) -> str:
        """Say all of a queue manager; shown when somebody points at it."""
        parts = [f"{manager.computer_name}: {role.value}"]
        if manager.directory_server is not None:
            parts.append(manager.directory_server.name.lower().replace("_", " "))
        if len(manager.sites) > 1:
            parts.append(f"in the sites {self._names(ObjectKind.SITE, manager.sites)}")
        for what, servers in (
            ("in-routing servers", manager.in_routing_servers),
            ("out-routing servers", manager.out_routing_servers),
        ):
            if servers:
                parts.append(f"{what} {self._names(ObjectKind.MANAGER, servers)}")
        return "; ".join(parts)

    def _names(self, kind: ObjectKind, identifiers: Sequence[Guid]) -> str:
        return ", ".join(reference_name(self._image, kind, one) for one in identifiers)

    def _is_open(self, link: RoutingLink) -> bool:
        """Whether a link has a gate on each side; without, nothing passes."""
        gates = [
            set(self._image.managers[gate].sites)
            for gate in link.site_gates
            if gate in self._image.managers
        ]
        return all(any(site in sites for sites in gates) for site in (link.site1, link.site2))

    # How it looks.

    def document(self) -> str:
        boxes = [card.box for card in self._cards]
        pairs = [(self._numbers[link.site1], self._numbers[link.site2]) for link in self._links]
        labels = [Box(text_width(f"{link.cost:,}", 12) + 16, 20.0) for link in self._links]
        arrange(boxes, pairs)
        lines = route(boxes, pairs, labels)
        body = [*self._drawn_links(lines), *self._drawn_cards(), *self._drawn_costs(lines)]
        left, top, right, bottom = _frame(boxes, lines)
        title = cut(self._title(), 900)
        inner = max(right - left, text_width(title, 19), text_width(self._summary(), 12))
        legend, legend_width, legend_height = _drawn_legend(self._legend(), inner)
        width = round(max(inner, legend_width) + 2 * _MARGIN)
        height = round(bottom - top + 2 * _MARGIN + _TITLE + legend_height)
        # Narrow drawings stand in the middle below a wider title or legend.
        shift_x = round((width - (right - left)) / 2 - left)
        shift_y = round(_MARGIN + _TITLE - top)
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
                f'height="{height}" viewBox="0 0 {width} {height}">',
                f"<title>{safe(self._title())}</title>",
                f"<style>{_STYLE}</style>",
                f'<rect class="paper" width="{width}" height="{height}"/>',
                f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 16}">{safe(title)}</text>',
                f'<text class="note" x="{_MARGIN}" y="{_MARGIN + 38}">{self._summary()}</text>',
                f'<g transform="translate({shift_x} {shift_y})">',
                *body,
                "</g>",
                f'<g transform="translate({_MARGIN} {height - _MARGIN - legend_height + 36})">',
                *legend,
                "</g>",
                "</svg>\n",
            ]
        )

    def _title(self) -> str:
        enterprise = self._image.enterprise
        return enterprise.name if enterprise is not None and enterprise.name else "Enterprise"

    def _summary(self) -> str:
        counts = [
            (len(self._image.sites), "site"),
            (len(self._image.managers), "queue manager"),
            (len(self._links), "routing link"),
        ]
        return ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for count, what in counts)

    def _drawn_links(self, lines: list[Line]) -> Iterator[str]:
        for link, line in zip(self._links, lines, strict=True):
            kind = "link" if self._is_open(link) else "link closed"
            points = [*line.start, *line.control, *line.end]
            x1, y1, x2, y2, x3, y3 = map(round, points)
            yield f'<path class="{kind}" d="M{x1} {y1}Q{x2} {y2} {x3} {y3}"/>'

    def _drawn_costs(self, lines: list[Line]) -> Iterator[str]:
        for link, line in zip(self._links, lines, strict=True):
            box = line.label
            x, y = round(box.x), round(box.y)
            gates = self._names(ObjectKind.MANAGER, link.site_gates) or "none"
            tip = f"{name_of(link, self._image)}, cost {link.cost}; gates: {gates}"
            if link.description:
                tip += f"; {link.description}"
            yield (
                f'<g><title>{safe(tip)}</title><rect class="cost" x="{x - round(box.width / 2)}" '
                f'y="{y - 10}" width="{2 * round(box.width / 2)}" height="20" rx="10"/>'
                f'<text class="number" x="{x}" y="{y + 4}">{link.cost:,}</text></g>'
            )

    def _drawn_cards(self) -> Iterator[str]:
        for card in self._cards:
            box = card.box
            left, top = round(box.x - box.width / 2), round(box.y - box.height / 2)
            width, height = round(box.width), round(box.height)
            dashed = " foreign" if card.is_dashed else ""
            room = width - 2 * _PAD - (text_width(card.note, 12) + 10 if card.note else 0)
            yield f"<g><title>{safe(card.name)}</title>"
            yield (
                f'<rect class="card{dashed}" x="{left}" y="{top}" width="{width}" '
                f'height="{height}" rx="9"/>'
            )
            yield (
                f'<text class="site" x="{left + _PAD}" y="{top + 21}">'
                f"{safe(cut(card.name, room))}</text>"
            )
            if card.note:
                yield (
                    f'<text class="note" text-anchor="end" x="{left + width - _PAD}" '
                    f'y="{top + 21}">{card.note}</text>'
                )
            yield from _drawn_rows(card, left, top, width)
            yield "</g>"

    def _legend(self) -> Iterator[tuple[Role | str, str]]:
        rows = [row for card in self._cards for row in card.rows]
        for role in Role:
            if any(
                role is row.role or (role is Role.DIRECTORY and row.is_directory) for row in rows
            ):
                yield role, role.value
        if self._links:
            yield "cost", "link and its cost"
        if not all(map(self._is_open, self._links)):
            yield "closed", "link without a gate on each side: nothing passes"


def _drawn_rows(card: _Card, left: int, top: int, width: int) -> Iterator[str]:
    if card.rows:
        y = top + _HEAD
        yield f'<path class="rule" d="M{left + 1} {y}H{left + width - 1}"/>'
    for number, row in enumerate(card.rows):
        y = top + _HEAD + number * _ROW + 15
        yield f"<g><title>{safe(row.tip)}</title>"
        yield _mark(row.role, left + _PAD + 5, y)
        yield f'<text class="name" x="{left + _PAD + _MARK}" y="{y + 4}">{safe(row.name)}</text>'
        if row.is_directory:
            yield _mark(Role.DIRECTORY, left + width - _PAD - 5, y)
        yield "</g>"
    if card.more_count:
        y = top + _HEAD + len(card.rows) * _ROW + 19
        x = left + _PAD + _MARK
        yield f'<text class="note" x="{x}" y="{y}">and {card.more_count:,} more</text>'


def _drawn_legend(
    entries: Iterable[tuple[Role | str, str]], room: float
) -> tuple[list[str], float, int]:
    """Draw the legend in as many lines as it needs; gives its width and height too."""
    drawn: list[str] = []
    room = max(room, _LEGEND_MIN)
    x = y = width = 0
    for sign, text in entries:
        step = round(text_width(text, 12)) + 38
        if x and x + step > room:
            x, y = 0, y + 22
        if isinstance(sign, Role):
            drawn.append(_mark(sign, x + 6, y - 4))
        else:
            kind = "link closed" if sign == "closed" else "link"
            drawn.append(f'<path class="{kind}" d="M{x - 4} {y - 4}h18"/>')
        drawn.append(f'<text class="note" x="{x + 20}" y="{y}">{text}</text>')
        x += step
        width = max(width, x)
    return drawn, width, y + _LEGEND


def _frame(boxes: Sequence[Box], lines: Sequence[Line]) -> tuple[float, float, float, float]:
    """Return the edges of all boxes and curves."""
    if not boxes:
        return 0.0, 0.0, 0.0, 0.0
    xs = [x for box in boxes for x in (box.x - box.width / 2, box.x + box.width / 2)]
    ys = [y for box in boxes for y in (box.y - box.height / 2, box.y + box.height / 2)]
    for line in lines:
        # The middle of a curve, which is the farthest that it comes to the side.
        xs.append((line.start[0] + 2 * line.control[0] + line.end[0]) / 4)
        ys.append((line.start[1] + 2 * line.control[1] + line.end[1]) / 4)
        for side in (-1, 1):
            xs.append(line.label.x + side * line.label.width / 2)
            ys.append(line.label.y + side * line.label.height / 2)
    return min(xs), min(ys), max(xs), max(ys)


def _rank(row: _Row) -> tuple[int, bool, str]:
    """Order the queue managers of a site: those that others depend on come first."""
    return list(Role).index(row.role), not row.is_directory, fold(row.name)


def _mark(role: Role, x: int, y: int) -> str:
    return _MARKS[role].format(x=x, y=y, l=x - 5, r=x + 5, t=y - 5, b=y + 5)
