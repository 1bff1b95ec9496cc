"""A standby refuses to follow a primary that is called as it is itself."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from openmsmq.protocol.replication.log import Answer, LeaseTimes, LogState
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.replication import standby
from openmsmq.runtime.replication.standby import TWIN_PATIENCE_MS, Standby
from openmsmq.runtime.start_errors import StartError

TIMES = LeaseTimes(look_ms=1)
STEP_MS = 10_000


class Stopped(Exception):
    """The test has seen enough."""


class Database:
    """Says who has the lease, look by look; then the test is over."""

    def __init__(self, holders: list[str], *, ended: bool = False) -> None:
        self.times = TIMES
        self._states = [LogState("log", 1, each, 1, 3, 3, lease_ended=ended) for each in holders]

    async def ask(self, _: object) -> Answer:
        if not self._states:
            raise Stopped
        return Answer(self._states.pop(0))

    async def tell_files(self, *_: object) -> None:
        """Take what it is told."""

    async def files_of_primary(self) -> None:
        """Know nothing."""


class Store:
    """A store that has all."""

    sequence = 3


def follow(monkeypatch: pytest.MonkeyPatch, folder: Path, holders: list[str]) -> None:
    clock = itertools.count(0, STEP_MS)
    monkeypatch.setattr(standby, "since_boot_ms", lambda: next(clock))
    database: Any = Database(holders)
    store: Any = Store()
    names = ("my name", "my name us")
    follower = Standby(database, store, EventLog("text", "error"), names, folder)
    asyncio.run(follower.follow("log"))


def test_a_primary_of_our_name_that_does_not_end_is_another_computer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(StartError, match="is called my name, as this computer is"):
        follow(monkeypatch, tmp_path, ["my name x"] * (TWIN_PATIENCE_MS // STEP_MS + 3))


@pytest.mark.parametrize(
    "holders",
    [
        # Ourselves before we were started again, whose lease ends soon; then another one.
        ["my name x", *["them y"] * 20],
        # Each time another start of ours.
        [f"my name {number}" for number in range(20)],
        ["my other name x"] * 20,
    ],
)
def test_what_was_ours_before_is_no_twin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, holders: list[str]
) -> None:
    with pytest.raises(Stopped):
        follow(monkeypatch, tmp_path, holders)
