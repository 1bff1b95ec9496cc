"""Work on a queue manager while it is backed up, and what a back-up of it must then have.

A worker does one thing after the other, and says before and after each. So the queues of a worker
are, at any moment, as they are after one of its steps. A back-up that shows one moment has all of
them after the same step: one that came after everything the worker had heard of when the back-up
was asked for, and before what it said when that was done.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import openmsmq as mq
from openmsmq.api.messages import BackupState
from openmsmq.api.program import BackupPhase
from tests.crash import worker
from tests.crash.harness import READY_WITHIN_S, contents, environment
from tests.crash.worker import queue_names

POLL_S = 0.05


class Steps:
    """What a worker has done, as far as it has said so."""

    def __init__(self) -> None:
        self.kept: list[int] = []
        self.pulled: list[int] = []
        self.transacted: list[int] = []
        self.places: list[tuple[int, int, int, int, int]] = [(0, 0, 0, 0, 0)]
        """After each step: how many were kept, pulled and transacted, and taken of the last two."""

    def line(self, words: list[object]) -> None:
        """Take a line of the worker."""
        kept, pulled, transacted, got, taken = self.places[-1]
        match words:
            case ["kept?" | "pulled?" | "commit?" as word, list(numbers)]:
                name = {"kept?": self.kept, "pulled?": self.pulled, "commit?": self.transacted}
                name[str(word)].extend(numbers)
                return
            case ["kept" | "pulled" | "commit", _]:
                kept, pulled, transacted = map(len, (self.kept, self.pulled, self.transacted))
            case ["pull", list(numbers)]:
                assert numbers == self.pulled[got : got + len(numbers)]
                got += len(numbers)
            case ["take", list(numbers)]:
                assert numbers == self.transacted[taken : taken + len(numbers)]
                taken += len(numbers)
            case _:
                return
        self.places.append((kept, pulled, transacted, got, taken))

    def after(self, place: int) -> tuple[list[int], list[int], list[int]]:
        """Return what the queues have after a step."""
        kept, pulled, transacted, got, taken = self.places[place]
        return self.kept[:kept], self.pulled[got:pulled], self.transacted[taken:transacted]


class Load:
    """A worker with queues of its own, from its start until `stop`."""

    def __init__(self, address: str, number: int) -> None:
        self._address = address
        self._number = number
        self.steps = Steps()
        self.names = queue_names(str(number))
        with mq.connect(address) as manager:
            for place, path in enumerate(self.names):
                manager.create_queue(path, transactional=place == 2)
        self._process = subprocess.Popen(
            [sys.executable, worker.__file__, address, str(number), "1", str(number)],
            stdout=subprocess.PIPE,
            env=environment(),
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.steps.line(json.loads(line))

    @property
    def count(self) -> int:
        """How many steps it has done."""
        return len(self.steps.places) - 1

    def stop(self) -> None:
        """End it; what it has said is heard."""
        self._process.kill()
        self._process.wait(READY_WITHIN_S)
        self._thread.join(READY_WITHIN_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def check(self, address: str, first: int, last: int) -> None:
        """See whether a queue manager has the queues as they were after one of these steps."""
        kept, pulled, transacted = (contents(address, name) for name in self.names)
        for place in range(first, last + 1):
            if len(kept) == self.steps.places[place][0] and self.steps.after(place) == (
                kept,
                pulled,
                transacted,
            ):
                return
        lost = sorted({*self.steps.after(first)[0]} - {*kept})
        twice = [len(found) - len({*found}) for found in (kept, pulled, transacted)]
        raise AssertionError(
            f"worker {self._number}: no step from {first} to {last} left the queues like this; "
            f"kept are lost: {lost[:5]}, are there twice: {twice}"
        )


def back_up(address: str, directory: Path) -> BackupState:
    """Back a queue manager up, and wait until that is done."""
    with mq.connect(address) as manager:
        state = manager.begin_backup(str(directory))
        while not BackupPhase(state.state).is_over:
            time.sleep(POLL_S)
            state = manager.backup()
    assert state.state == "done", state
    return state
