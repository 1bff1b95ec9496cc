"""The bench of replication measures three ways of the same messages, and judges by its bars."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import replication
from bench.__main__ import main
from bench.measure import Effort, Figure
from bench.replication import EMBEDDED, REPLICATED, Measured

RATES = {EMBEDDED: 1000.0, REPLICATED: 200.0}
WAITS_S = {EMBEDDED: 0.001, REPLICATED: 0.003}
JUST = Measured(RATES, WAITS_S, bare_rate=285.0, bare_wait_s=0.0021, records_count=5)


@pytest.mark.slow
def test_all_figures_come_of_messages_and_of_their_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication, "TURNS", 1)
    found = {figure.name: figure for figure in replication.run(Effort(rounds=1))}
    bars = {name: figure.bar for name, figure in found.items() if figure.bar}
    assert bars == {
        "batched, by embedded": 0.2,
        "batched, by bare appends": 0.7,
        "one send, by embedded": 3.0,
        "one send a second, by bare appends": 0.7,
    }
    assert all(figure.value for figure in found.values())


def status_of(found: Measured, missing: str = "") -> int:
    def measured(_: Effort) -> Iterator[Figure]:
        yield from replication.figures(found, missing)

    return main(["measured"], {"measured": measured})


def test_a_log_that_is_just_fast_enough_meets_all_bars() -> None:
    assert status_of(JUST) == 0


@pytest.mark.parametrize(
    "slower",
    [
        Measured({**RATES, REPLICATED: 199.0}, WAITS_S, 270.0, 0.0021),
        Measured(RATES, {**WAITS_S, REPLICATED: 0.00301}, 285.0, 0.0022),
        Measured(RATES, WAITS_S, bare_rate=286.0, bare_wait_s=0.0021),
        Measured(RATES, WAITS_S, bare_rate=285.0, bare_wait_s=0.00209),
        Measured({**RATES, "earlier": 1053.0}, {**WAITS_S, "earlier": 0.001}, 285.0, 0.0021),
        Measured({**RATES, "earlier": 1000.0}, {**WAITS_S, "earlier": 0.00094}, 285.0, 0.0021),
    ],
)
def test_one_bar_that_is_missed_is_enough(slower: Measured) -> None:
    assert status_of(slower) == 1


def test_without_postgresql_nothing_is_claimed() -> None:
    assert status_of(Measured(), "PostgreSQL is missing") == 3
