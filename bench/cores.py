"""What the cores of this computer work, and for whom.

It knows nothing of OpenMSMQ, so that a tree of any age can be measured with it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def worked_s() -> float:
    """Return how long all cores together have worked, for whomever."""
    user, nice, system, _, _, *rest = Path("/proc/stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, *rest))) / os.sysconf("SC_CLK_TCK")


def used_by_s(roots: list[int]) -> float:
    """Return how long processes and what descends from them have worked."""
    total = 0
    for pid in set(_families(roots)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            # Its own time, and that of children which have ended.
            total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def on_cores(roots: list[int], cores: list[int]) -> Iterator[None]:
    """Keep processes and what they start on some cores."""
    before = os.sched_getaffinity(0)
    _pin(roots, cores)
    try:
        yield
    finally:
        _pin(roots, before)


def _pin(roots: list[int], cores: list[int] | set[int]) -> None:
    for pid in _families(roots):
        for task in Path(f"/proc/{pid}/task").glob("*"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(task.name), cores)


def _families(roots: list[int]) -> list[int]:
    """Return processes and all that descend from them."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(status.parent.name))
    found, waiting = [], list(roots)
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children.get(pid, [])
    return found
