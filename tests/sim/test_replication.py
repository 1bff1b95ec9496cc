"""The simulator of a replicated queue manager: its seeds are clean, and it notices defects."""

from __future__ import annotations

import pytest

from openmsmq.sim.replication.world import run_replication_seed
from tests.sim.mutants import Mutant, applied
from tests.sim.replication_mutants import MUTANTS

SEEDS_COUNT = 60


def test_no_seed_breaks_a_promise() -> None:
    summaries = [run_replication_seed(seed) for seed in range(SEEDS_COUNT)]
    broken = [f"seed {each.seed}: {each.sentence}" for each in summaries if each.sentence]
    assert not broken
    assert sum(each.takeovers for each in summaries) > 2 * len(summaries)
    assert sum(each.trimmed for each in summaries) > len(summaries)
    assert sum(each.faults for each in summaries) > 5 * len(summaries)


def test_the_same_seed_gives_the_same_run() -> None:
    assert run_replication_seed(7) == run_replication_seed(7)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_is_noticed(mutant: Mutant) -> None:
    with applied(mutant):
        first = [] if mutant.likely is None else [mutant.likely]
        seeds = [*first, *range(mutant.seeds)]
        assert any(run_replication_seed(seed).sentence for seed in seeds)
