"""Checks a copied store in a process of its own, so that nobody else has to wait for it.

To look at every page and record takes much of a processor; in a thread it would take the queue
manager's own. `python -m openmsmq.storage.backups.checking DIRECTORY` prints what it finds.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

import openmsmq
from openmsmq.storage.backups.manifest import BackupError
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import LOCK_NAME
from openmsmq.storage.maintenance import StoreReport, check_store
from openmsmq.storage.port import StoreError

POLITENESS: Final = 10
"""How much rather others shall have the processor."""

_POLL_S: Final = 0.1


class _Found(msgspec.Struct):
    report: StoreReport | None = None
    problem: str = ""


def check_copy(directory: Path, is_wanted: Callable[[], bool] = lambda: True) -> StoreReport:
    """Check a store that was copied; raise `BackupError` if it is not sound.

    When it is not wanted any more, the check ends with an error, too.
    """
    place = str(Path(openmsmq.__file__).parents[1])
    path = os.pathsep.join([place, *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, "-m", __spec__.name, str(directory)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        printed: bytes | None = None
        while printed is None:
            if not is_wanted():
                process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                printed, _ = process.communicate(timeout=_POLL_S)
    try:
        found = msgspec.json.decode(printed, type=_Found)
    except msgspec.DecodeError:
        raise BackupError(
            f"the copy could not be checked: the check ended with status {process.returncode}"
        ) from None
    report = found.report
    if report is None or not report.sound:
        problem = found.problem if report is None else report.problems[0]
        raise BackupError(
            f"the copy is not sound, so it was removed ({problem}): check the disk, and the store "
            "with `openmsmq store check` when the queue manager is stopped"
        )
    return report


def find(directory: Path) -> bytes:
    """Check a store, and say what was found so that another process understands it."""
    try:
        found = _Found(check_store(directory))
    except StoreError as error:
        found = _Found(problem=str(error))
    # Who checks takes the lock; it is no part of a copy.
    FileOps().remove(directory / LOCK_NAME)
    return msgspec.json.encode(found)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        os.nice(POLITENESS)
    sys.stdout.buffer.write(find(Path(sys.argv[1])))
