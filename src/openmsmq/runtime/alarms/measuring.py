"""Looks at what alarms are about: a page of the worst queues, the quota, the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import QueueOrder, QueueRole
from openmsmq.runtime.alarms.judging import RAISED_MAX_COUNT, Look, Reading
from openmsmq.runtime.config.alarm_table import AlarmRule, Measure
from openmsmq.runtime.vitals import VitalSigns
from openmsmq.security.access.callers import UNLIMITED

if TYPE_CHECKING:
    from openmsmq.manager.manager import QueueManager

_DEAD_LETTERS: Final = "system$;dead*"
_ORDERS: Final = {
    Measure.OLDEST_S: QueueOrder.AGE,
    Measure.MESSAGES: QueueOrder.MESSAGES,
    Measure.BYTES: QueueOrder.BYTES,
    Measure.DEAD_LETTERS: QueueOrder.MESSAGES,
    Measure.STUCK_S: QueueOrder.AGE,
    Measure.QUOTA_PERCENT: QueueOrder.QUOTA,
}
_ROLES: Final = {
    Measure.DEAD_LETTERS: QueueRole.SYSTEM,
    Measure.STUCK_S: QueueRole.OUTGOING,
}


class Measuring:
    """Asks the queue manager, between two turns, what an operator could ask it too."""

    def __init__(self, manager: QueueManager, vitals: VitalSigns) -> None:
        self._manager = manager
        self._vitals = vitals

    def look(self, rule: AlarmRule, now: Instant) -> Look | None:
        """Return what there is to see for an alarm; None if it cannot be known."""
        if rule.measure in (Measure.DISK_PERCENT, Measure.DISK_FREE_BYTES):
            return self._disk(rule.measure)
        if rule.measure in (Measure.STANDBY_LAG_S, Measure.LOG_RECORDS):
            return self._replication(rule.measure)
        if rule.measure is Measure.QUOTA_PERCENT and not rule.queues:
            used_bytes, quota_kb = self._manager.admin.quota_use
            return Look([Reading("", _percent(used_bytes, quota_kb))])
        return self._queues(rule, now)

    def reason(self, rule: AlarmRule, queue: str, now: Instant) -> str:
        """Return why a queue is as it is, if somebody knows."""
        if rule.measure is Measure.STUCK_S:
            return self._manager.operators.explanation(queue, now)
        return ""

    def _queues(self, rule: AlarmRule, now: Instant) -> Look:
        request = api.PageQueues(
            filter=_DEAD_LETTERS if rule.measure is Measure.DEAD_LETTERS else rule.queues,
            kinds=[_ROLES.get(rule.measure, QueueRole.APPLICATION).value],
            sort=_ORDERS[rule.measure].value,
            descending=True,
            limit=RAISED_MAX_COUNT,
        )
        page = self._manager.pages.page(UNLIMITED, request, now)
        readings = [
            Reading(queue.path_name, _value(rule.measure, queue, now)) for queue in page.queues
        ]
        return Look(readings, is_complete=page.total_count <= len(readings))

    def _replication(self, measure: Measure) -> Look | None:
        found = self._vitals.replication
        if found is None or found.problem:
            return None
        lag = measure is Measure.STANDBY_LAG_S
        return Look([Reading("", found.lag_s if lag else found.log_records)])

    def _disk(self, measure: Measure) -> Look | None:
        total_bytes, free_bytes = self._vitals.disk()
        if free_bytes < 0 or total_bytes <= 0:
            return None
        if measure is Measure.DISK_FREE_BYTES:
            return Look([Reading("", free_bytes)])
        return Look([Reading("", (total_bytes - free_bytes) * 100 // total_bytes)])


def _value(measure: Measure, queue: api.QueueStatus, now: Instant) -> int:
    match measure:
        case Measure.OLDEST_S | Measure.STUCK_S:
            return max(0, now.unix_s - queue.oldest_time_s) if queue.oldest_time_s else 0
        case Measure.BYTES:
            return queue.message_bytes
        case Measure.QUOTA_PERCENT:
            return _percent(queue.message_bytes, queue.quota_kb)
        case _:
            return queue.message_count


def _percent(used_bytes: int, quota_kb: int) -> int:
    if quota_kb == UNLIMITED_KB:
        return 0
    return used_bytes * 100 // (quota_kb * 1024) if quota_kb else 100 * (used_bytes > 0)
