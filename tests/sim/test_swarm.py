"""Many seeds, and no promise broken. OPENMSMQ_SEEDS=2000 runs more of them."""

from __future__ import annotations

import os

import pytest

from openmsmq.sim.runner import run_seed
from openmsmq.sim.scenarios.scenario import FAULTS, Options

SEEDS = int(os.environ.get("OPENMSMQ_SEEDS", "100"))
PART = 25


def failures(seeds, options):
    results = (run_seed(seed, options) for seed in seeds)
    return [f"seed {result.seed}: {result.sentence}" for result in results if not result.good]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_no_promise_is_broken(first):
    assert failures(range(first, first + PART), Options()) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_no_promise_is_broken_by_one_kind_of_fault(fault):
    assert failures(range(4), Options(only=(fault,), managers=2)) == []


def test_without_faults_every_message_arrives():
    results = [run_seed(seed, Options(faults=False, managers=3)) for seed in range(8)]
    assert [result.sentence for result in results if not result.good] == []
    assert all(result.crash_count == 0 for result in results)
    assert sum(result.remote_count for result in results) > 50


def test_the_seeds_do_what_they_are_for():
    results = [run_seed(seed, Options()) for seed in range(40)]
    assert sum(result.crash_count for result in results) > 10
    assert sum(result.fault_count for result in results) > 50
    assert sum(result.arrived_count for result in results) > 500
