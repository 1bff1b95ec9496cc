"""Pages from templates. Jinja2 escapes every text, whoever it came from."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from openmsmq import __version__
from openmsmq.console import words
from openmsmq.console.names import segment

_HERE: Final = Path(__file__).parent
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CHART_WIDTH: Final = 96
CHART_HEIGHT: Final = 24
_MARGIN: Final = 2


@functools.cache
def static_files() -> dict[str, tuple[str, bytes]]:
    """Return the files that pages load, by name: what each is, and its bytes."""
    return {
        path.name: (_TYPES[path.suffix], path.read_bytes())
        for path in (_HERE / "static").iterdir()
        if path.suffix in _TYPES
    }


@functools.cache
def static_digest() -> str:
    """Return what changes when one of these files does, so that no browser keeps an old one."""
    found = hashlib.sha256()
    for _, (_, data) in sorted(static_files().items()):
        found.update(data)
    return found.hexdigest()[:12]


def render(template: str, **values: Any) -> str:
    """Write a page."""
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "account": words.account,
        "count": words.count,
        "duration": words.duration,
        "lines": words.lines,
        "moment": words.moment,
        "plain": words.plain,
        "quota": words.quota,
        "rate": words.rate,
        "segment": segment,
        "size": words.size,
        "some": words.some,
        "time": words.time,
    }
    made.globals |= {
        "breakable": breakable,
        "chart": chart,
        "static_digest": static_digest(),
        "version": __version__,
    }
    return made


def drawing(svg: str) -> Markup:
    """Return a picture that a template of ours has written, with every text in it escaped."""
    return Markup(svg)


def breakable(name: str, characters_max: int = 200) -> Markup:
    r"""Return a name that may be broken behind its `\` and `;`, so that a phone can show it."""
    shown = Markup("")
    for letter in words.plain(name, characters_max):
        shown += Markup.escape(letter)
        if letter in "\\;:":
            shown += Markup("<wbr>")
    return shown


def chart(points: Sequence[float | None]) -> str:
    """Return where the line of a small chart goes; empty when there was nothing all the time."""
    known = [(place, value) for place, value in enumerate(points) if value is not None]
    highest = max((value for _, value in known), default=0)
    if len(known) < 2 or not highest:
        return ""
    high = CHART_HEIGHT - 2 * _MARGIN
    step = (CHART_WIDTH - 2 * _MARGIN) / max(1, len(points) - 1)
    return " ".join(
        f"{_MARGIN + place * step:.1f},{_MARGIN + high - value * high / highest:.1f}"
        for place, value in known
    )
