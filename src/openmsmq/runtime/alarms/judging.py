"""When an alarm is raised, told again and cleared. No clock and no I/O: values in, changes out."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.runtime.config.alarm_table import AlarmRule

RAISED_MAX_COUNT: Final = 20
"""Queues for which one alarm is raised at a time; the worst come first."""


class Reading(msgspec.Struct, frozen=True):
    """The value of a queue, or of the queue manager if `queue` is empty."""

    queue: str
    value: int


class Look(msgspec.Struct, frozen=True):
    """What was seen at one time: the worst values first, `RAISED_MAX_COUNT` of them at most."""

    readings: list[Reading]
    is_complete: bool = True
    """Whether there is no queue beside these; others are no worse than the last one."""


class ChangeKind(Enum):
    """What there is to tell of an alarm."""

    RAISED = "raised"
    REMINDED = "reminded"
    CLEARED = "cleared"


class Change(msgspec.Struct, frozen=True):
    """Something to tell of an alarm."""

    kind: ChangeKind
    rule: AlarmRule
    queue: str
    value: int
    since_s: int
    """Since when it is so, by the calendar; what comes before `for_s` counts."""


class Raised(msgspec.Struct):
    """An alarm that is raised for one queue."""

    value: int
    since_s: int
    told_ms: int


class Judge:
    """Follows one alarm."""

    def __init__(self, rule: AlarmRule) -> None:
        self.rule: Final = rule
        self.raised: Final[dict[str, Raised]] = {}
        self._pending: dict[str, Instant] = {}
        """Since when values are bad that have not been so for long enough."""

    def take(self, look: Look, now: Instant) -> list[Change]:
        """Take what was seen; give what there is to tell."""
        values = {reading.queue: reading.value for reading in look.readings}
        changes = [*self._clear(values, look), *self._remind(values, now)]
        pending, self._pending = self._pending, {}
        for queue, value in values.items():
            if queue in self.raised or not self.rule.is_bad(value):
                continue
            since = pending.get(queue, now)
            if now.ticks_ms - since.ticks_ms < self.rule.for_s * 1000:
                self._pending[queue] = since
            elif len(self.raised) < RAISED_MAX_COUNT:
                self.raised[queue] = Raised(value, since.unix_s, now.ticks_ms)
                changes.append(Change(ChangeKind.RAISED, self.rule, queue, value, since.unix_s))
        return changes

    def _clear(self, values: dict[str, int], look: Look) -> list[Change]:
        """Clear what is well again, or gone."""
        # A queue that is not among the worst is no worse than the last of them.
        worst_unseen = None if look.is_complete else look.readings[-1].value
        changes: list[Change] = []
        for queue, raised in list(self.raised.items()):
            value = values.get(queue)
            if value is None and worst_unseen is not None and not self.rule.is_good(worst_unseen):
                continue
            if value is None or self.rule.is_good(value):
                del self.raised[queue]
                shown = raised.value if value is None else value
                changes.append(Change(ChangeKind.CLEARED, self.rule, queue, shown, raised.since_s))
        return changes

    def _remind(self, values: dict[str, int], now: Instant) -> list[Change]:
        changes: list[Change] = []
        for queue, raised in self.raised.items():
            raised.value = values.get(queue, raised.value)
            pause_ms = self.rule.remind_s * 1000
            if pause_ms and now.ticks_ms - raised.told_ms >= pause_ms:
                raised.told_ms = now.ticks_ms
                changes.append(
                    Change(ChangeKind.REMINDED, self.rule, queue, raised.value, raised.since_s)
                )
        return changes
