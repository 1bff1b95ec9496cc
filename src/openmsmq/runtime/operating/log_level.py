"""What is logged at least: as the configuration has it, or as somebody wants it for a while."""

from __future__ import annotations

from typing import cast

from openmsmq.api import messages as api
from openmsmq.runtime.clocks import CallLater, Timer, read_clocks
from openmsmq.runtime.logs import Event, EventLog, Level


class LogLevels:
    """Changes the level of a log, and changes it back."""

    def __init__(self, log: EventLog, configured: Level, call_later: CallLater) -> None:
        self._log = log
        self._configured = configured
        self._call_later = call_later
        self._timer: Timer | None = None
        self._until_s = 0

    @property
    def level(self) -> Level:
        """What is logged now."""
        return self._log.level

    def set(self, level: str, for_s: int) -> api.LogLevel:
        """Log another level from now on; for good if `for_s` is 0."""
        self.close()
        self._change(cast("Level", level), for_s)
        if for_s:
            self._until_s = read_clocks().unix_s + for_s
            self._timer = self._call_later(for_s, self._back)
        return api.LogLevel(self.level, self._until_s, self._configured)

    def configure(self, level: Level) -> None:
        """Take another configured level, which counts at once."""
        self.close()
        self._configured = level
        self._change(level)

    def close(self) -> None:
        """Leave the level as it is."""
        self._until_s = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _back(self) -> None:
        self.close()
        self._change(self._configured)

    def _change(self, level: Level, for_s: int = 0) -> None:
        before = self._log.level
        if level == before and not for_s:
            return
        # Told while the more talkative of the two counts, and as a warning, so that most see it.
        facts = {"level": level, "before": before} | ({"for_s": for_s} if for_s else {})
        self._log.warning(Event.LOG_LEVEL_CHANGED, **facts)
        self._log.level = level
