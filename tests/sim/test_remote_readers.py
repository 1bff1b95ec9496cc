"""Readers on other computers, that die, give up and come too late: every promise is kept."""

from __future__ import annotations

import os

import pytest

from openmsmq.sim.runner import run_seed, run_traced
from openmsmq.sim.scenarios.remote import READINGS
from openmsmq.sim.scenarios.scenario import Options

SEEDS = int(os.environ.get("OPENMSMQ_REMOTE_SEEDS", "30"))
PART = 15
REMOTE = Options(remote_readers=True)


def failures(seeds, options):
    results = (run_seed(seed, options) for seed in seeds)
    return [f"seed {result.seed}: {result.sentence}" for result in results if not result.good]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, PART))
def test_no_promise_is_broken_beside_remote_readers(first):
    assert failures(range(first, first + PART), REMOTE) == []


@pytest.mark.parametrize("reading", READINGS)
def test_no_promise_is_broken_by_one_kind_of_reading(reading):
    options = Options(remote_readers=True, managers=1, readings=("take", reading))
    assert failures(range(2), options) == []


def test_the_same_seed_gives_the_same_readers():
    first, one = run_traced(3, REMOTE)
    second, other = run_traced(3, REMOTE)
    assert first == second
    assert one.digest == other.digest


def test_without_faults_readers_know_of_every_message_what_became_of_it():
    options = Options(remote_readers=True, managers=1, faults=False, readings=("take", "repeat"))
    results = [run_seed(seed, options) for seed in range(6)]
    assert [result.sentence for result in results if not result.good] == []
    assert sum(result.taken_count for result in results) > 20
    assert sum(result.again_count for result in results) == 0


def test_with_faults_some_do_not_know_and_others_get_the_message_as_well():
    options = Options(remote_readers=True, managers=1, operations=20, only=("crash", "cut"))
    assert any(run_seed(seed, options).again_count for seed in range(12))
