"""The same seed gives the same run, to the last event."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from openmsmq.sim.runner import run_seed, run_traced
from openmsmq.sim.scenarios.scenario import Options


@pytest.mark.parametrize("seed", range(6))
def test_the_same_seed_gives_the_same_trace(seed):
    first, one = run_traced(seed, Options())
    second, other = run_traced(seed, Options())
    assert first == second
    assert one.digest == other.digest
    assert len(one.events) > 50


def test_different_seeds_give_different_runs():
    digests = {run_traced(seed, Options())[1].digest for seed in range(4)}
    assert len(digests) == 4


@pytest.mark.parametrize("seed", range(6))
def test_a_trace_changes_nothing_about_the_run(seed):
    assert run_seed(seed, Options()) == run_traced(seed, Options())[0]


def test_another_process_with_another_hash_seed_sees_the_same():
    program = (
        "from openmsmq.sim.scenarios.scenario import Options\n"
        "from openmsmq.sim.runner import run_traced\n"
        "print(run_traced(3, Options())[1].digest)\n"
    )
    here = run_traced(3, Options())[1].digest
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == here
