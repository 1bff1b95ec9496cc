"""The script behind the page about large organisations measures a small one, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.computers import environment

HOME = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_small_organisation_is_measured_to_the_end() -> None:
    sizes = ("--sites", "8", "--managers", "40", "--copies", "5")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.large_organisation", *sizes],
        check=False,
        cwd=HOME,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *figures = done.stdout.splitlines()
    assert first == "8 sites, 24 links, 40 queue managers, 80 public queues"
    assert len(figures) == 18
    assert "5 copies at one server: all have a change after" in done.stdout
