"""The simulator of a replicated queue manager: its seeds are clean, and it notices defects."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from openmsmq.cli.app import app
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


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["sim", "replication", *arguments])
    assert result.exit_code == 0
    return result.output


def test_the_command_counts_alike_with_one_process_and_with_two() -> None:
    one, two = (run("--seeds", "45", "--jobs", jobs, "--json") for jobs in ("1", "2"))
    assert json.loads(one) == json.loads(two)
    assert json.loads(one)["seeds"] == 45
    assert run("--seeds", "2", "--jobs", "1").startswith("2 seeds, ")


def test_the_command_says_which_seed_broke_which_promise() -> None:
    defect = next(each for each in MUTANTS if each.name.startswith("late epoch"))
    with applied(defect):
        result = CliRunner().invoke(app, ["sim", "replication", "--seeds", "40", "--jobs", "1"])
    assert result.exit_code == 1
    assert "openmsmq sim replication --first-seed" in result.output
    assert "1 seed failed." in result.output


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_defect_is_noticed(mutant: Mutant) -> None:
    with applied(mutant):
        first = [] if mutant.likely is None else [mutant.likely]
        seeds = [*first, *range(mutant.seeds)]
        assert any(run_replication_seed(seed).sentence for seed in seeds)
