"""What an operator should hear of: values that the driver logs, and counts that `status` shows.

The core does not log. What happens on the word of strangers can happen a million times in a second,
so a turn tells of a few and counts all.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

import msgspec

NOTICES_PER_TURN_MAX_COUNT: Final = 8
"""Notices of one kind that a turn hands out; the others are only counted. [ours]"""

Fact: TypeAlias = str | int


class NoticeKind(Enum):
    """What may have happened; the value is the name of the event in the log and in `status`."""

    IDENTITY_REFUSED = "identity-refused"
    ACKNOWLEDGMENT_REFUSED = "acknowledgment-refused"
    SEQUENCE_REFUSED = "sequence-refused"
    MESSAGE_DROPPED = "message-dropped"
    MESSAGE_LEFT = "message-left"
    REPORT_DROPPED = "report-dropped"


class Notice(msgspec.Struct, frozen=True):
    """Tell the operator; the driver may leave some out where there are many."""

    kind: NoticeKind
    facts: tuple[tuple[str, Fact], ...] = ()


class Notices:
    """Collects the notices of a turn, and counts all since the start by kind and reason."""

    def __init__(self) -> None:
        self.counts: dict[tuple[NoticeKind, str], int] = {}
        """How often each happened; reasons are words of ours, so there are few."""
        self.waiting: list[Notice] = []
        """What is to be told."""
        self._told: dict[NoticeKind, int] = {}

    def note(self, kind: NoticeKind, reason: str, count: int = 1, **facts: Fact) -> None:
        """Count something for a reason of ours, and tell of it unless the turn has told enough.

        What happened several times at once is told once.
        """
        self.counts[kind, reason] = self.counts.get((kind, reason), 0) + count
        told = self._told.get(kind, 0)
        if told < NOTICES_PER_TURN_MAX_COUNT:
            self._told[kind] = told + 1
            if count > 1:
                facts["count"] = count
            self.waiting.append(Notice(kind, (("reason", reason), *facts.items())))

    def tells(self, kind: NoticeKind) -> bool:
        """Whether one more of a kind would be told; facts that nobody hears need not be found."""
        return self._told.get(kind, 0) < NOTICES_PER_TURN_MAX_COUNT

    def take(self) -> list[Notice]:
        """Return what is to be told, once."""
        waiting, self.waiting = self.waiting, []
        self._told.clear()
        return waiting
