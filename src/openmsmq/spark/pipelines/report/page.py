"""The report as a page: one file that needs nothing else.

Jinja2 writes it and escapes every text, whoever it came from. The page says by a policy of its own
that it fetches nothing and runs only its own small script, by its digest; without the script
everything is shown, and nothing is filtered.
"""

from __future__ import annotations

import functools
import hashlib
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from openmsmq.spark.pipelines.delivery.outcomes import DELIVERED, UNDELIVERED, Outcome
from openmsmq.spark.pipelines.report.advice import MEANINGS, advices, fate_of, reason_text
from openmsmq.spark.pipelines.report.data import Example, LedgerRow, LinkLoad, ReportData
from openmsmq.spark.pipelines.report.figures import course_figure, latency_bars
from openmsmq.spark.pipelines.report.map import draw_links, shown_links
from openmsmq.spark.pipelines.report.text import (
    change_text,
    count_text,
    duration_text,
    plain,
    share_text,
    size_text,
    time_text,
)

_TEMPLATES: Final = Path(__file__).with_name("templates")
_UNKNOWN_HOUR: Final = "not known"


def page(data: ReportData, title: str) -> str:
    """Write the whole page."""
    style, script = (_own_text(name) for name in ("style.css", "script.js"))
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    view = View(data) if data.totals.message_count else None
    return (
        _environment()
        .get_template("page.html")
        .render(
            # These two are ours, and not from any message.
            style=Markup(style),
            script=Markup(script),
            policy=policy,
            title=title,
            data=data,
            view=view,
        )
    )


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "count": count_text,
        "duration": duration_text,
        "plain": plain,
        "reason": reason_text,
        "size": size_text,
        "time": time_text,
        "words": lambda name: name.replace("_", " "),
    }
    made.globals |= {"change": change_text, "share": share_text, "meanings": MEANINGS}
    return made


def _own_text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


class Choice(msgspec.Struct, frozen=True):
    """A filter: what can be chosen."""

    key: str
    name: str
    texts: tuple[str, ...]


class View:
    """What the template shows, with a number for everything that can be filtered by."""

    def __init__(self, data: ReportData) -> None:
        self._numbers: dict[str, dict[str, int]] = {key: {} for key in "qlhf"}
        totals = data.totals
        self.advices = advices(data)
        self.course = None if data.course is None else course_figure(data.course, data.events)
        self.bars = latency_bars(data.latencies, totals.reach, totals.receive)
        self.drawn = shown_links(data.links)
        self.map = draw_links(data.links) if self.drawn else None
        self.link_numbers = {
            (link.source, link.target): number for number, link in enumerate(data.links)
        }
        self.unlisted_count = totals.message_count - sum(row.message_count for row in data.ledger)
        self.delivered = [(one.value, totals.outcomes[one.value]) for one in DELIVERED]
        self.undelivered = [(one.value, totals.outcomes[one.value]) for one in UNDELIVERED]
        self._number_all(data)
        self.fates_shown = [self.fate(one) for one in data.examples]
        """The fate of each example: they are in the order of these."""

    def _number_all(self, data: ReportData) -> None:
        """Number what can be chosen, in the order in which tables have it."""
        for queue in data.queues:
            self.attributes(queue=queue.name)
        for link in data.links:
            self.attributes(links=[(link.source, link.target)])
        for hour in data.hours:
            self.attributes(hour=hour.name)
        for one in self.advices:
            self.attributes(fate=one.fate)
        for row in data.ledger:
            self.row(row)
        for example in (*data.examples, *data.slowest):
            self.example(example)

    @property
    def choices(self) -> list[Choice]:
        """The filters; one that has a single choice is none."""
        names = {"q": "Queue", "l": "Link", "h": "Hour (UTC)", "f": "What became of it"}
        return [
            Choice(key, name, tuple(self._numbers[key]))
            for key, name in names.items()
            if len(self._numbers[key]) > 1
        ]

    def attributes(
        self,
        *,
        queue: str | None = None,
        links: Iterable[tuple[str, str]] = (),
        hour: str | None = None,
        fate: str | None = None,
        count: int | None = None,
    ) -> dict[str, str | int]:
        """Return the attributes by which the script filters a row: numbers, and never a text."""
        found: dict[str, str | int] = {}
        for key, text in (("q", queue), ("h", hour), ("f", fate)):
            if text is not None:
                found[f"data-{key}"] = self._number(key, text)
        numbers = [self._number("l", f"{a} → {b}") for a, b in links]
        if numbers:
            found["data-l"] = " ".join(map(str, numbers))
        if count is not None:
            found["data-n"] = count
        return found

    def _number(self, key: str, text: str) -> int:
        return self._numbers[key].setdefault(text, len(self._numbers[key]))

    def link(self, link: LinkLoad) -> dict[str, str | int]:
        """Return the attributes of a link."""
        return self.attributes(links=[(link.source, link.target)])

    def row(self, row: LedgerRow) -> dict[str, str | int]:
        """Return the attributes of a row of the ledger."""
        return self.attributes(
            queue=row.queue,
            links=pairwise(row.path),
            hour=_hour(row.hour),
            fate=fate_of(row.outcome, row.reason, asked=row.asked),
            count=row.message_count,
        )

    def example(self, one: Example) -> dict[str, str | int]:
        """Return the attributes of a message."""
        return self.attributes(
            queue=one.queue,
            links=pairwise(hop.queue_manager for hop in one.path),
            hour=_hour(one.sent),
            fate=self.fate(one),
        )

    def fate(self, one: Example) -> str:
        """Return what became of a message."""
        return fate_of(one.outcome, one.reason, in_doubt=one.in_doubt, asked=one.asked)

    def fate_number(self, fate: str) -> int:
        """Return the number of a fate."""
        return self._number("f", fate)

    def shown_of(self, fate: str) -> int:
        """How many messages of a fate are shown one by one."""
        return self.fates_shown.count(fate)

    def steps(self, one: Example) -> list[dict[str, Any]]:
        """Return the path of a message: each queue manager, since when, and the link to it."""
        steps: list[dict[str, Any]] = [
            {"hop": hop, "link": None, "took_s": None} for hop in one.path
        ]
        for before, step in pairwise(steps):
            source, target = before["hop"], step["hop"]
            ends = (source.queue_manager, target.queue_manager)
            step["link"] = self.link_numbers.get(ends)
            if source.time and target.time:
                step["took_s"] = (target.time - source.time).total_seconds()
        return steps

    @staticmethod
    def colour(outcome: str) -> str:
        """Choose the colour of an outcome."""
        if outcome in [one.value for one in DELIVERED]:
            return "good"
        return "bad" if outcome in [one.value for one in UNDELIVERED] else "open"

    @staticmethod
    def few(percent: int, count: int) -> bool:
        """Whether so few messages are hardly enough for a percentile: it is but the longest."""
        return count * (100 - percent) < 100

    @staticmethod
    def outcomes(shown: Sequence[tuple[str, int]]) -> str:
        """Return which outcomes make up a sum."""
        return ", ".join(
            f"{count_text(count)} {name.replace('_', ' ')}" for name, count in shown if count
        )

    @property
    def open_outcomes(self) -> tuple[str, ...]:
        """Outcomes of which neither is known."""
        return (Outcome.IN_TRANSIT.value, Outcome.UNKNOWN.value)


def _hour(time: datetime | None) -> str:
    return _UNKNOWN_HOUR if time is None else f"{time:%Y-%m-%d %H:00}"
