"""What is told of an alarm: a sentence for people, and JSON for programs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from openmsmq.runtime.alarms.judging import Change, ChangeKind
from openmsmq.runtime.config.alarm_table import AlarmRule, Measure

_SENTENCES: Final = {
    Measure.OLDEST_S: "the oldest message of {queue} is {value} s old",
    Measure.MESSAGES: "there are {value} messages in {queue}",
    Measure.BYTES: "there are {value} bytes of messages in {queue}",
    Measure.DEAD_LETTERS: "there are {value} dead letters in {queue}",
    Measure.STUCK_S: "a message for {queue} could not leave for {value} s",
    Measure.QUOTA_PERCENT: "{value} % of the quota of {queue} are used",
    Measure.DISK_PERCENT: "{value} % of the disk of the store are used",
    Measure.DISK_FREE_BYTES: "{value} bytes are free on the disk of the store",
    Measure.STANDBY_LAG_S: "no standby has what was there {value} s ago, or there is none",
    Measure.LOG_RECORDS: "the log in the database has {value} records",
}
_MANAGER: Final = "the queue manager"


class AlarmNotice(msgspec.Struct, frozen=True):
    """What webhooks and queues get, as JSON with these keys."""

    alarm: str
    state: str
    """The value of a `ChangeKind`."""
    text: str
    """It in a sentence."""
    measure: str
    """The key of the threshold."""
    threshold: int
    value: int
    queue: str | None
    """The queue that it is about; null for the queue manager as a whole."""
    since: str
    """Since when it is so."""
    time: str
    manager: str
    manager_id: str


def sentence(rule: AlarmRule, queue: str, value: int, reason: str = "") -> str:
    """Say what is so."""
    said = _SENTENCES[rule.measure].format(queue=queue or _MANAGER, value=value)
    return f"{said}: {reason}" if reason else said


def notice_of(change: Change, text: str, *, manager: tuple[str, str], now_s: int) -> AlarmNotice:
    """Return what is told of a change; `manager` is the name and the identifier."""
    rule = change.rule
    return AlarmNotice(
        alarm=rule.name,
        state=change.kind.value,
        text=f"cleared: {text}" if change.kind is ChangeKind.CLEARED else text,
        measure=rule.measure.value,
        threshold=rule.threshold,
        value=change.value,
        queue=change.queue or None,
        since=_time_text(change.since_s),
        time=_time_text(now_s),
        manager=manager[0],
        manager_id=manager[1],
    )


def _time_text(unix_s: int) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
