"""Commands of other users of this computer, for tests that run as root."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[2] / "src"
USER = 70_001
GROUP = 70_001
WITHIN_S = 60


def run_as(
    user: int, group: int, *arguments: str, groups: tuple[int, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run `openmsmq` as somebody else."""
    belonging = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    line = ["setpriv", f"--reuid={user}", f"--regid={group}", belonging, "--"]
    line += [sys.executable, "-B", "-m", "openmsmq.cli.app", *arguments]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OPENMSMQ_")}
    return subprocess.run(
        line,
        check=False,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        cwd="/",
        env=clean | {"PYTHONPATH": str(SOURCE), "HOME": "/"},
    )


@functools.cache
def missing() -> str:
    """Why nobody else can run commands here; nothing when others can."""
    if os.geteuid() != 0:
        return "only root may run commands as other users"
    if shutil.which("setpriv") is None:
        return "the program setpriv (package util-linux) runs commands as others, and is not here"
    tried = run_as(USER, GROUP, "--version")
    if tried.returncode != 0:
        return f"other users cannot run this Python: {tried.stderr.strip()[-200:]}"
    return ""


class User:
    """Somebody who runs commands."""

    def __init__(self, qm: str, user: int = USER, group: int = GROUP, *groups: int) -> None:
        if reason := missing():
            pytest.skip(reason)
        self._qm = qm
        self._ids = user, group
        self._groups = groups

    def ok(self, *arguments: str) -> dict[str, Any]:
        """Run a command that works; gives what it says."""
        ran = run_as(*self._ids, "--qm", self._qm, *arguments, "--json", groups=self._groups)
        assert ran.returncode == 0, ran.stderr
        found = json.loads(ran.stdout.splitlines()[0])
        assert isinstance(found, dict)
        return found

    def refused(self, *arguments: str) -> str:
        """Run a command that is refused; gives the sentence."""
        ran = run_as(*self._ids, "--qm", self._qm, *arguments, groups=self._groups)
        assert ran.returncode != 0, ran.stdout
        assert "Traceback" not in ran.stderr
        return ran.stderr.strip()
