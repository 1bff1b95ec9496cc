"""The tables of the report, as HTML. What came from a message goes through `text_of`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from openmsmq.spark.pipelines.delivery.outcomes import DELIVERED, UNDELIVERED
from openmsmq.spark.pipelines.report.data import Example, Group, LinkLoad, ReportData
from openmsmq.spark.pipelines.report.figures import reason_text
from openmsmq.spark.pipelines.report.text import (
    count_text,
    duration_text,
    plain,
    share_text,
    size_text,
    time_text,
)

REASONS_MAX_COUNT: Final = 2
"""Reasons that are named beside a queue."""

_ARROW: Final = " → "


def text_of(text: str, characters_max: int = 120) -> str:
    """Make any text safe inside the page: shortened, printable, escaped."""
    return html.escape(plain(text, characters_max), quote=True)


_GROUP_COLUMNS: Final = (
    ">Messages",
    "Outcome",
    ">Failed or lost",
    ">Reached p50",
    ">p95",
    ">p99",
    ">Received p95",
    ">Size",
)


def queue_table(data: ReportData) -> str:
    """Show the busiest queues."""
    rows = [
        [f'<td class="name">{text_of(group.name)}</td>', *_group(group), _reasons(group)]
        for group in data.queues
    ]
    head = ("Queue", *_GROUP_COLUMNS, "Dead letters")
    return section("Queues", head, rows, _limit_note(len(rows), data.queue_count, "busiest queues"))


def hour_table(data: ReportData) -> str:
    """Show the latest hours."""
    rows = [[f"<td>{text_of(group.name)}</td>", *_group(group)] for group in data.hours]
    head = ("Hour (UTC)", *_GROUP_COLUMNS)
    return section("Hours", head, rows, _limit_note(len(rows), data.hour_count, "latest hours"))


def _group(group: Group) -> list[str]:
    open_count = group.message_count - group.delivered_count - group.undelivered_count
    parts = zip(
        ("good", "open", "bad"),
        (group.delivered_count, open_count, group.undelivered_count),
        strict=True,
    )
    bar = "".join(
        f'<i class="{colour}" style="width:{100 * count / group.message_count:.2f}%"></i>'
        for colour, count in parts
    )
    lost = count_text(group.undelivered_count)
    if group.undelivered_count:
        lost += f" ({share_text(group.undelivered_count, group.message_count)})"
    return [
        _number(count_text(group.message_count)),
        f'<td><span class="bar">{bar}</span></td>',
        _number(lost),
        *_times(group.reach_s),
        _times(group.receive_s)[1],
        _number(size_text(group.size_bytes)),
    ]


def _reasons(group: Group) -> str:
    most_first = sorted(group.reasons.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count_text(count)} {reason_text(name)}" for name, count in most_first]
    text = ", ".join(shown[:REASONS_MAX_COUNT]) + (", …" if shown[REASONS_MAX_COUNT:] else "")
    return f'<td class="why">{text_of(text)}</td>'


def link_table(data: ReportData) -> str:
    """Show the busiest links."""
    head = ("From", "To", ">Messages", ">Arrived", ">Failed or lost", ">p50", ">p95", ">p99")
    rows = [_link(link) for link in data.links]
    return section("Links", head, rows, _limit_note(len(rows), data.link_count, "busiest links"))


def _link(link: LinkLoad) -> list[str]:
    return [
        f'<td class="name">{text_of(link.source)}</td>',
        f'<td class="name">{text_of(link.target)}</td>',
        _number(count_text(link.message_count)),
        _number(count_text(link.arrived_count)),
        _number(count_text(link.undelivered_count)),
        *_times(link.latency_s),
    ]


def example_table(title: str, examples: Sequence[Example]) -> str:
    """Show messages, one by one."""
    head = (
        "Sent (UTC)",
        "Outcome",
        "Label",
        "Queue",
        ">Reached after",
        ">Received after",
        "Path",
        "Message",
    )
    rows = [
        [
            f"<td>{time_text(each.sent)}</td>",
            f"<td>{_tag(each)}</td>",
            f'<td class="name">{text_of(each.label, 80)}</td>',
            f'<td class="name">{text_of(each.queue)}</td>',
            *(
                _number("" if value is None else duration_text(value))
                for value in (each.reach_s, each.receive_s)
            ),
            f"<td>{_ARROW.join(text_of(name, 40) for name in each.path)}</td>",
            f'<td class="code">{text_of(each.message_id)}</td>',
        ]
        for each in examples
    ]
    return section(title, head, rows, "")


def _tag(example: Example) -> str:
    colour = "open"
    if example.outcome in [one.value for one in DELIVERED]:
        colour = "good"
    elif example.outcome in [one.value for one in UNDELIVERED]:
        colour = "bad"
    text = example.outcome.replace("_", " ")
    failed = colour == "bad" and example.reason
    more = f" {reason_text(example.reason)}" if failed else ""
    return f'<span class="tag {colour}">{text_of(text)}</span>{text_of(more)}'


def section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], note: str) -> str:
    """Show a table of cells under a heading; without rows there is neither."""
    lines = [f"<tr>{''.join(cells)}</tr>" for cells in rows]
    if not lines:
        return ""
    names = "".join(
        f'<th class="number">{name[1:]}</th>' if name.startswith(">") else f"<th>{name}</th>"
        for name in head
    )
    body = "\n".join(lines)
    shown = f'\n<p class="note">{note}</p>' if note else ""
    return (
        f'<h2>{title}</h2>\n<div class="table"><table>\n<thead><tr>{names}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>{shown}"
    )


def _times(seconds: Sequence[float]) -> list[str]:
    if not seconds:
        return [_number("")] * 3
    return [_number(duration_text(value)) for value in seconds]


def _number(text: str) -> str:
    return f'<td class="number">{html.escape(text)}</td>'


def _limit_note(shown: int, count: int, what: str) -> str:
    return "" if shown >= count else f"The {count_text(shown)} {what} of {count_text(count)}."
