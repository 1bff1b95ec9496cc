"""A made-up day of an enterprise, as numbers of the report: for looking at the page."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from openmsmq.spark.pipelines.delivery.outcomes import Outcome
from openmsmq.spark.pipelines.report.data import (
    EDGES_S,
    Axis,
    Before,
    Counts,
    Course,
    Event,
    Example,
    Fate,
    Gap,
    Group,
    Hop,
    Lane,
    Latencies,
    LedgerRow,
    LinkLoad,
    ReportData,
    Times,
)

START = datetime(2026, 3, 2, tzinfo=UTC)
MANAGERS = ("HEADQUARTERS", "HUB-EAST", "BRANCH-NORTH", "BRANCH-SOUTH", "WAREHOUSE-07", "SHOP")
LINKS = (
    *(("BRANCH-NORTH", "HUB-EAST"), ("BRANCH-SOUTH", "HUB-EAST"), ("HUB-EAST", "HEADQUARTERS")),
    *(("WAREHOUSE-07", "HUB-EAST"), ("HEADQUARTERS", "WAREHOUSE-07"), ("SHOP", "HEADQUARTERS")),
    *(("HUB-EAST", "BRANCH-NORTH"), ("HUB-EAST", "BRANCH-SOUTH")),
)
QUEUES = (
    r"HEADQUARTERS\private$\orders",
    r"HEADQUARTERS\private$\orders.from.the.branches.of.the.southern.region.with.a.long.name",
    r"WAREHOUSE-07\private$\picking",
    r"BRANCH-NORTH\private$\confirmations",
    r"SHOP\replies",
)
REASONS = ("NACK_BAD_DESTINATION_QUEUE", "NACK_RECEIVE_TIMEOUT", "NACK_REACH_QUEUE_TIMEOUT")


def a_day(name: str = "") -> ReportData:
    """Return a day; `name` is put into every text that would come from a message."""
    chance = random.Random(14)
    totals = counts(48_210, dead=96, failed=12, lost=7, unknown=31, in_transit=154)
    return ReportData(
        totals=totals,
        in_doubt_count=3,
        first_sent=START,
        last_sent=START + timedelta(hours=23, minutes=59, seconds=41),
        course=_course(chance, name),
        events=(
            Event(START + timedelta(hours=13, minutes=2), f"HUB-EAST was killed {name}".strip()),
            Event(START + timedelta(hours=14, minutes=15), "HUB-EAST started"),
            Event(START + timedelta(hours=14, minutes=21), "BRANCH-SOUTH started"),
        ),
        latencies=Latencies(*(_falling(one.count) for one in (totals.reach, totals.receive))),
        fates=(
            Fate("dead_letter", REASONS[0], 60),
            Fate("dead_letter", REASONS[1], 36),
            Fate("failed", REASONS[2], 12),
            *(Fate(one, "", 1) for one in ("received", "waiting", "lost", "unknown")),
        ),
        links=tuple(
            LinkLoad(f"{a}{name}", b, 9_000 - 900 * n, 8_950 - 900 * n, 20, 30, times(n))
            for n, (a, b) in enumerate(LINKS)
        ),
        queues=tuple(
            Group(f"{queue}{name}", counts(20_000 // (n + 1), dead=n, unknown=n))
            for n, queue in enumerate(QUEUES)
        ),
        hours=tuple(
            Group(f"2026-03-02 {hour:02}:00", counts(1_500 + 40 * hour, lost=hour % 3))
            for hour in range(24)
        ),
        ledger=tuple(_ledger(name)),
        slowest=tuple(_example(chance, n, "received", "", name) for n in range(6)),
        examples=(
            *(_example(chance, n, "dead_letter", REASONS[0], name) for n in range(4)),
            *(_example(chance, n, "dead_letter", REASONS[1], name) for n in range(3)),
            *(_example(chance, n, "failed", REASONS[2], name) for n in range(2)),
            *(_example(chance, n, "lost", "", name) for n in range(3)),
            *(_example(chance, n, "unknown", "", name) for n in range(3)),
        ),
        before=Before(
            "2026-03-01",
            counts(45_000, dead=20),
            {QUEUES[0]: counts(21_000, dead=4)},
            {LINKS[0]: LinkLoad(*LINKS[0], 8_000, 7_990, 10, 0)},
        ),
        queue_count=61,
        link_count=len(LINKS),
        hour_count=24,
    )


def counts(message_count: int, **parts: int) -> Counts:
    outcomes = dict.fromkeys((one.value for one in Outcome), 0)
    outcomes["dead_letter"] = parts.get("dead", 0)
    outcomes |= {name: count for name, count in parts.items() if name != "dead"}
    left = message_count - sum(outcomes.values())
    outcomes["waiting"], outcomes["received"] = left // 50, left - left // 50
    return Counts(
        message_count,
        left,
        outcomes,
        left + parts.get("dead", 0) // 2,
        parts.get("dead", 0) // 2,
        outcomes["unknown"],
        message_count * 731,
        Times(left // 3, (0.0, 2.0, 4_420.0)),
        Times(7, (1.0, 65.0, 90_061.0))
        if message_count < 1_600
        else Times(outcomes["received"], (1.0, 9.0, 99.0)),
    )


def times(number: int) -> Times:
    return Times(8_000, (0.0, 4.0**number, 5.0**number)) if number else Times()


def _course(chance: random.Random, name: str) -> Course:
    axis = Axis(START, 600, 144)
    busy = [round(300 + 250 * chance.random()) if 36 < n < 120 else 60 for n in range(144)]
    down = range(79, 86)
    arrived = [0 if n in down else count + (900 if n == 86 else 0) for n, count in enumerate(busy)]
    lanes = tuple(
        Lane(f"{a}{name}", b, tuple(0 if n in down else count // 4 for n, count in enumerate(busy)))
        for a, b in LINKS[:5]
    )
    gap = Gap(
        START + timedelta(seconds=600 * down[0]),
        START + timedelta(seconds=600 * down[-1] + 600),
        ("BRANCH-NORTH", f"BRANCH-SOUTH{name}"),
        "HUB-EAST",
        1_403,
    )
    bad = tuple(12 if n in down else 0 for n in range(144))
    return Course(
        axis, tuple(busy), (0,) * 140 + (9, 30, 60, 55), bad, tuple(arrived), lanes, (gap,), 4, 2
    )


def _falling(total: int) -> tuple[int, ...]:
    """Return bars that have all messages of a time: some took hours, and of the rest each has half.

    No clocks disagree: the first bar is empty.
    """
    late = total // 50
    bars = [0]
    total -= late
    for edge_s in EDGES_S:
        bars.append(total - total // 2 + (late if edge_s == 3600 else 0))
        total //= 2
    return tuple(bars)


def _ledger(name: str) -> list[LedgerRow]:
    path = ("BRANCH-NORTH", "HUB-EAST", f"HEADQUARTERS{name}")
    rows = [
        LedgerRow(
            START + timedelta(hours=n % 24), f"{QUEUES[n % 2]}{name}", path, *fate, True, 500 - n
        )
        for n, fate in enumerate([("received", ""), ("dead_letter", REASONS[0])] * 12)
    ]
    return [*rows, LedgerRow(None, QUEUES[2], path[:1], "unknown", "", False, 31)]


def _example(chance: random.Random, number: int, outcome: str, reason: str, name: str) -> Example:
    sent = START + timedelta(hours=13, seconds=chance.randrange(9_000))
    path = (
        Hop("BRANCH-NORTH", sent),
        Hop("HUB-EAST", sent + timedelta(seconds=4_400)),
        *([Hop("HEADQUARTERS", sent + timedelta(seconds=4_500))] if outcome == "received" else []),
    )
    return Example(
        f"{{a1f0c0de-0000-4000-8000-00000000000a}}\\{number + 70_000}",
        f"order NORTH-{number}{name}",
        outcome,
        reason,
        f"{QUEUES[1]}{name}",
        f"DIRECT=OS:headquarters\\private$\\orders{name}",
        sent,
        path,
        outcome != "unknown",
        False,
        4_500.0 if outcome == "received" else None,
        4_600.0 if outcome == "received" else None,
    )
