"""A picture of an enterprise: sites, the links between them with costs, gates, and roles, as SVG.

The same directory gives the same picture. It needs no script and nothing from elsewhere, and goes
with the light or dark colours of whoever looks at it; inside a page, with those of the page.
Graphviz places what is in it, and Jinja2 writes it and escapes every text (decision 0035).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from openmsmq.directory.drawing.layout import Box, arrange
from openmsmq.directory.drawing.text_size import cut, mono_width, printable, text_width
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
_LABEL: Final = 20


class Role(Enum):
    """What a mark before or behind a queue manager says; the values are those of the legend."""

    GATE = "gate"
    ROUTER = "routing server"
    PLAIN = "queue manager"
    FOREIGN = "foreign queue manager"
    DIRECTORY = "directory server"


class State(msgspec.Struct, frozen=True):
    """How a queue manager is, for who looks at the picture now."""

    kind: str
    """`good`, `bad`, `open` or nothing: its colour."""
    note: str
    """A word or two beside its name."""
    tip: str


class _Row(msgspec.Struct, frozen=True):
    name: str
    tip: str
    role: Role
    is_directory: bool
    state: State | None


class _Card(msgspec.Struct, frozen=True):
    name: str
    title: str
    note: str
    rows: tuple[_Row, ...]
    more_count: int
    box: Box
    is_dashed: bool


class _Sign(msgspec.Struct, frozen=True):
    """A sign of the legend: a line, or the mark of a role."""

    line: str
    text: str
    x: int
    y: int


class _Legend(msgspec.Struct, frozen=True):
    signs: tuple[_Sign, ...]
    width: int
    height: int


def draw(image: DirectoryImage) -> str:
    """Draw an enterprise as a document in SVG."""
    return _Drawing(image, {}).document()


def draw_inside(image: DirectoryImage, states: Mapping[Guid, State]) -> str:
    """Draw an enterprise as a part of a page, which has the colours, with how each one is."""
    return _Drawing(image, states).document(is_inside=True)


class _Drawing:
    def __init__(self, image: DirectoryImage, states: Mapping[Guid, State]) -> None:
        self._image = image
        self._states = states
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
        beside = text_width(note, 12) + 10 if note else 0
        title = min(text_width(name, 14) + beside, _NAME_MAX + 40)
        names = [
            _MARK + mono_width(row.name) + _note_width(row) + _MARK * row.is_directory
            for row in shown
        ]
        width = math.ceil(max(_CARD_MIN, *(part + 2 * _PAD for part in (title, *names))))
        lines = len(shown) + bool(more_count)
        box = Box(width, _HEAD + (lines * _ROW + _PAD if lines else 4))
        title_shown = cut(name, width - 2 * _PAD - beside)
        is_dashed = is_foreign or site is None
        return _Card(name, title_shown, note, shown, more_count, box, is_dashed)

    def _row(self, manager: QueueManagerInfo) -> _Row:
        if manager.identifier in self._gates:
            role = Role.GATE
        elif manager.routing_server:
            role = Role.ROUTER
        else:
            role = Role.FOREIGN if manager.foreign else Role.PLAIN
        state = self._states.get(manager.identifier)
        tip = self._tip(manager, role)
        return _Row(
            cut(manager.computer_name, _NAME_MAX, mono=True),
            tip if state is None else f"{tip}; {state.tip}",
            role,
            manager.directory_server is not None,
            state,
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

    def _link_tip(self, link: RoutingLink) -> str:
        gates = self._names(ObjectKind.MANAGER, link.site_gates) or "none"
        tip = f"{name_of(link, self._image)}, cost {link.cost}; gates: {gates}"
        return f"{tip}; {link.description}" if link.description else tip

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

    def document(self, *, is_inside: bool = False) -> str:
        pairs = [(self._numbers[link.site1], self._numbers[link.site2]) for link in self._links]
        labels = [
            Box(2 * round(text_width(f"{link.cost:,}", 12) / 2) + 16, _LABEL)
            for link in self._links
        ]
        layout = arrange([card.box for card in self._cards], pairs, labels)
        title = cut(self._title(), 900)
        inner = max(layout.width, text_width(title, 19), text_width(self._summary(), 12))
        legend = self._legend(inner)
        width = round(max(inner, legend.width) + 2 * _MARGIN)
        height = round(layout.height + 2 * _MARGIN + _TITLE + legend.height)
        environment = Environment(
            loader=PackageLoader("openmsmq.directory.drawing"),
            autoescape=True,
            finalize=printable,
            undefined=StrictUndefined,
            keep_trailing_newline=True,
        )
        return environment.get_template("enterprise.svg").render(
            name=self._title(),
            is_inside=is_inside,
            title=title,
            summary=self._summary(),
            width=width,
            height=height,
            # Narrow drawings stand in the middle below a wider title or legend.
            left=round((width - layout.width) / 2),
            top=_MARGIN + _TITLE,
            cards=self._cards,
            links=[
                {
                    "line": line,
                    "label": label,
                    "is_open": self._is_open(link),
                    "tip": self._link_tip(link),
                    "cost": f"{link.cost:,}",
                }
                for link, label, line in zip(self._links, labels, layout.lines, strict=True)
            ],
            legend=legend,
            margin=_MARGIN,
            pad=_PAD,
            head=_HEAD,
            row_height=_ROW,
            mark_width=_MARK,
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

    def _legend(self, room: float) -> _Legend:
        """Lay the legend out in as many lines as it needs."""
        signs: list[_Sign] = []
        room = max(room, _LEGEND_MIN)
        x = y = width = 0
        for line, text in self._signs():
            step = round(text_width(text, 12)) + 38
            if x and x + step > room:
                x, y = 0, y + 22
            signs.append(_Sign(line, text, x, y))
            x += step
            width = max(width, x)
        return _Legend(tuple(signs), width, y + _LEGEND)

    def _signs(self) -> Iterator[tuple[str, str]]:
        rows = [row for card in self._cards for row in card.rows]
        roles = {row.role for row in rows}
        if any(row.is_directory for row in rows):
            roles.add(Role.DIRECTORY)
        yield from (("", role.value) for role in Role if role in roles)
        if self._links:
            yield "link", "link and its cost"
        if not all(map(self._is_open, self._links)):
            yield "link closed", "link without a gate on each side: nothing passes"


def _note_width(row: _Row) -> float:
    return 0 if row.state is None else text_width(row.state.note, 12) + _PAD


def _rank(row: _Row) -> tuple[int, bool, str]:
    """Order the queue managers of a site: those that others depend on come first."""
    return list(Role).index(row.role), not row.is_directory, fold(row.name)
