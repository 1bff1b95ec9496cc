"""Another level of the log, for good or for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.operating.log_level import LogLevels


class Later:
    """A loop whose time somebody else tells."""

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Waiting:
        waiting = Waiting(self, delay_s, call)
        self.waiting.append(waiting)
        return waiting

    def pass_time(self) -> None:
        for waiting in list(self.waiting):
            waiting.call()


class Waiting(NamedTuple):
    later: Later
    delay_s: float
    call: Callable[[], None]

    def cancel(self) -> None:
        self.later.waiting.remove(self)


def levels() -> tuple[LogLevels, EventLog, list[str], Later]:
    lines: list[str] = []
    log, later = EventLog("text", "info", lines.append), Later()
    return LogLevels(log, "info", later.call_later), log, lines, later


def test_another_level_counts_at_once_and_for_good() -> None:
    changed, log, lines, later = levels()
    told = changed.set("debug", 0)
    assert (told.level, told.until_s, told.configured) == ("debug", 0, "info")
    log.debug(Event.CONNECTED)
    assert len(lines) == 2
    assert "level=debug before=info" in lines[0]
    assert not later.waiting


def test_after_its_time_the_configured_level_is_back() -> None:
    changed, log, _, later = levels()
    told = changed.set("error", 60)
    assert 59 <= told.until_s - read_clocks().unix_s <= 60
    assert [each.delay_s for each in later.waiting] == [60]
    later.pass_time()
    assert (log.level, later.waiting) == ("info", [])


def test_the_last_word_counts() -> None:
    changed, log, _, later = levels()
    changed.set("error", 60)
    changed.set("debug", 0)
    assert not later.waiting
    changed.set("error", 60)
    changed.configure("warning")
    assert (log.level, later.waiting) == ("warning", [])
    changed.set("debug", 60)
    changed.close()
    assert (log.level, later.waiting) == ("debug", [])
