"""The way of a message: which queue managers had it, and since when, as far as reports tell.

A trace report names its message by four digits of the source's identity and by the number of the
message [MQQB 3.1.5.8.9]. Two sources can share the digits: then the destination decides, and if
that does not either, the report is not used.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from openmsmq.spark.pipelines.delivery.evidence import Seen

_LABEL: Final = re.compile(
    r"([0-9a-f]{4}:[0-9a-f]{8}):([0-9a-f]{2}) (received|sent) by ", re.ASCII | re.IGNORECASE
)
_TARGET: Final = re.compile(r"<TARGET QUEUE>([^<\r\n]*)<")
_IDENTIFIER: Final = re.compile(r"\{([0-9a-fA-F-]{36})\}\\([0-9]{1,10})", re.ASCII)


class Identifier(NamedTuple):
    """What the identifier of a message says; nothing if it is none of a queue manager."""

    source: str | None
    """The identity of the queue manager that sent it."""
    short: str | None
    """How trace reports name it: four digits of its source, and its number."""


def identifier_of(message_id: str) -> Identifier:
    """Read the identifier of a message."""
    found = _IDENTIFIER.fullmatch(message_id)
    if not found:
        return Identifier(None, None)
    source = found[1].lower()
    return Identifier(source, f"{source[:4].upper()}:{int(found[2]):08X}")


class Report(NamedTuple):
    """A trace report: a queue manager had a message."""

    short: str
    hop: int
    """How many had passed the message on before."""
    departed: bool
    """Whether it passed it on, too."""
    reporter: str | None
    target: str | None


def report_of(row: Seen) -> Report | None:
    """Read a trace report; what is no report by its label is none."""
    label = _LABEL.match(row.label or "")
    if label is None:
        return None
    # Bodies are UTF-16 from anybody: bytes are taken one by one, which no body can make fail, and
    # only plain letters matter here.
    target = _TARGET.search((row.body or b"").decode("latin-1").replace("\0", ""))
    return Report(
        label[1].upper(),
        int(label[2], 16),
        label[3].lower() == "sent",
        None if row.source_qm is None else row.source_qm.lower(),
        target[1] or None if target else None,
    )


def departed_message(report: Report) -> str | None:
    """Return the message of a report that shows it leaving its source: only these say it whole."""
    digits, number = report.short.split(":")
    if report.departed and not report.hop and (report.reporter or "")[:4].upper() == digits:
        return f"{{{report.reporter}}}\\{int(number, 16)}"
    return None


class Hop(NamedTuple):
    """A queue manager that had a message, in the order of the way."""

    hop: int
    rank: int
    """At the same count, who passed it on (0) had it before who did not (1)."""
    time: int | None
    """When it first reported: the time in a label depends on a place and a language."""
    reporter: str | None
    name: str | None
    target: str | None


def merged(hops: Iterable[Hop]) -> list[Hop]:
    """Put the reports of each queue manager about a message together, in the order of the way."""
    reports: dict[tuple[str | None, str | None], list[Hop]] = defaultdict(list)
    for hop in hops:
        reports[hop.target, hop.reporter].append(hop)
    found = [
        each[0]._replace(
            hop=max(hop.hop for hop in each),
            rank=min(hop.rank for hop in each),
            time=min((hop.time for hop in each if hop.time is not None), default=None),
        )
        for each in reports.values()
    ]
    return sorted(found, key=lambda hop: [(value is not None, value) for value in hop])


def own_hops(hops: Sequence[Hop], destinations: Sequence[str | None]) -> list[Sequence[Hop]]:
    """Assign the hops of messages with the same short name: to each those that are surely its own.

    `destinations` are those of the messages.
    """
    if len(destinations) == 1:
        return [hops]
    names = [None if name is None else name.lower() for name in destinations]
    alike = Counter(names)
    return [
        [hop for hop in hops if name is not None and (hop.target or "").lower() == name]
        if alike[name] == 1
        else []
        for name in names
    ]
