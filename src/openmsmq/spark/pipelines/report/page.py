"""The report as a page: one file that needs nothing else and does nothing by itself.

Everything that came from a message goes through `text_of`, which makes it harmless. The page says
by a policy of its own that it runs no scripts and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from openmsmq.spark.pipelines.report.data import ReportData, Throughput, Totals
from openmsmq.spark.pipelines.report.figures import (
    failure_figure,
    latency_figure,
    link_figure,
    throughput_figure,
)
from openmsmq.spark.pipelines.report.map import shown_links
from openmsmq.spark.pipelines.report.style import STYLE
from openmsmq.spark.pipelines.report.tables import (
    example_table,
    hour_table,
    link_table,
    queue_table,
    section,
    text_of,
)
from openmsmq.spark.pipelines.report.text import (
    count_text,
    duration_text,
    share_text,
    size_text,
    time_text,
)

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_MEANINGS: Final = {
    "received": "Somebody took it from its queue.",
    "waiting": "It is in its queue.",
    "reached": "It reached its queue; nothing says whether somebody took it.",
    "dead letter": "It failed, and its copy is in a dead-letter queue.",
    "failed": "It failed, as a negative acknowledgment says; no copy of it was found.",
    "lost": "The acknowledgment that it asked for is overdue, and no failure was told.",
    "in transit": "It was sent, and has time left to reach its queue.",
    "unknown": "Its time is over, and it asked for nothing that would tell more.",
}


def page(data: ReportData, title: str) -> str:
    """Write the whole page."""
    if data.totals.message_count:
        content = [
            _headline(data),
            _figures(data),
            queue_table(data),
            link_table(data),
            hour_table(data),
            example_table("Slowest messages", data.slowest),
            example_table("Messages that failed or are lost", data.undelivered),
            _reading(),
        ]
    else:
        content = [
            '<p class="lead">There are no messages in the input, so there is nothing to show. '
            "Read more queues, or another time.</p>"
        ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text_of(title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{text_of(title)}</h1>",
            *content,
            "<footer>Made by openmsmq pipeline report.</footer>",
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


# The beginning.


def _headline(data: ReportData) -> str:
    totals = data.totals
    outcomes, count = totals.outcomes, totals.message_count
    delivered = totals.delivered_count
    open_count = count - delivered - totals.undelivered_count
    cards = [
        ("", "messages", count_text(count), size_text(totals.size_bytes)),
        ("good", "reached their queue", count_text(delivered), share_text(delivered, count)),
        *(
            (colour, name, count_text(outcomes[key]), share_text(outcomes[key], count))
            for colour, name, key in (
                ("bad", "dead letters", "dead_letter"),
                ("bad", "failed", "failed"),
                ("bad", "lost", "lost"),
            )
            if outcomes[key] or key != "failed"
        ),
        ("open", "on their way or unknown", count_text(open_count), share_text(open_count, count)),
    ]
    times = [
        ("accent", f"p{percent} {what}", duration_text(value), "")
        for what, seconds in (
            ("to reach the queue", totals.reach_s),
            ("to be received", totals.receive_s),
        )
        for percent, value in zip((50, 95, 99), seconds, strict=False)
    ]
    return (
        f'<p class="when">{_when(totals)}</p>\n<p class="lead">{_sentence(totals)}</p>\n'
        f"{_cards(cards)}\n{_cards(times)}"
    )


def _cards(cards: Sequence[tuple[str, str, str, str]]) -> str:
    shown = "".join(
        f'<div class="{colour}"><dt>{name}</dt><dd>{value}<small>{more}</small></dd></div>'
        for colour, name, value, more in cards
    )
    return f'<dl class="cards">{shown}</dl>' if shown else ""


def _when(totals: Totals) -> str:
    if totals.first_sent is None or totals.last_sent is None:
        return "When the messages were sent is not known."
    return f"Sent from {time_text(totals.first_sent)} to {time_text(totals.last_sent)} UTC"


def _sentence(totals: Totals) -> str:
    count = totals.message_count
    text = (
        f"{share_text(totals.delivered_count, count)} of {count_text(count)} messages reached "
        f"their queue; {_failed_text(totals.undelivered_count)}."
    )
    if totals.reach_s:
        half, most = map(_within_text, totals.reach_s[:2])
        text += f" Half of those whose way is known took {half}, 95 % {most}."
    if totals.in_doubt_count:
        text += (
            f" Of {count_text(totals.in_doubt_count)} there is a failure as well as an arrival: "
            "senders could not know."
        )
    return text


def _within_text(seconds: float) -> str:
    # Times are whole seconds, so zero is anything below one.
    return "less than a second" if seconds == 0 else f"{duration_text(seconds)} or less"


def _failed_text(count: int) -> str:
    if not count:
        return "none failed"
    return f"{count_text(count)} failed or {'is' if count == 1 else 'are'} lost"


# Plots.


def _figures(data: ReportData) -> str:
    figures = []
    if data.throughput.steps:
        figures.append(
            _figure("Throughput", throughput_figure(data.throughput), _outside(data.throughput))
        )
    if data.latencies.reach or data.latencies.receive:
        way = "reach the queue" if data.latencies.reach else "be received"
        note = (
            f"Dashed: percentiles of the time to {way}. Times in messages are whole seconds, and "
            "the clocks of two computers may differ."
        )
        figures.append(_figure("Latency", latency_figure(data.latencies, data.totals), note))
    if data.failures:
        note = "Reasons are the message classes of dead letters and negative acknowledgments."
        figures.append(_figure("Failures by reason", failure_figure(data.failures), note))
    if data.links:
        figures.append(_figure("Links", link_figure(data.links), _link_note(data)))
    return f'<h2>At a glance</h2>\n<div class="figures">{"".join(figures)}</div>'


def _figure(title: str, svg: str, note: str) -> str:
    return f"<figure><h3>{title}</h3>{svg}<figcaption>{note}</figcaption></figure>"


def _outside(throughput: Throughput) -> str:
    note = "By the time of sending, in UTC."
    if throughput.outside_count:
        note += (
            f" {count_text(throughput.outside_count)} messages with times far from the others are "
            "left out: a sender's clock may be wrong."
        )
    return note


def _link_note(data: ReportData) -> str:
    shown = len(shown_links(data.links))
    note = "Wider arrows took more messages. Where hops do not report, an arrow spans several."
    if shown < data.link_count:
        note += (
            f" The {count_text(shown)} busiest of {count_text(data.link_count)} links are drawn."
        )
    return note


# The end.


def _reading() -> str:
    rows = [
        [f"<td>{name}</td>", f'<td class="name">{text}</td>'] for name, text in _MEANINGS.items()
    ]
    table = section("", ("Outcome", "Meaning"), rows, "").replace("<h2></h2>\n", "")
    return (
        "<details><summary>How to read this</summary>"
        "<p>Outcomes are told from the rows of the queues that were read: copies in queues and "
        "journals, dead letters, acknowledgments and trace reports. What no row tells is not "
        "known.</p>"
        f"{table}"
        '<p class="note">Percentiles are exact. p95 is the time that 95 % of the messages did not '
        "exceed. Times of sending and of arrival are from the clocks of two computers, and have a "
        "resolution of one second.</p></details>"
    )
