"""What alarms look at, in a real queue manager."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from openmsmq.runtime.alarms.judging import RAISED_MAX_COUNT, Look, Reading
from openmsmq.runtime.alarms.measuring import Measuring
from openmsmq.runtime.config.alarm_table import AlarmRule, Measure
from openmsmq.runtime.vitals import VitalSigns
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office

ELSEWHERE = r"DIRECT=TCP:192.0.2.9\private$\q"


def look(office: Office, measure: Measure, queues: str = "", *, after_s: int = 0) -> Look | None:
    manager = office.driver.manager
    rule = AlarmRule("one", measure, 1, 1, queues=queues)
    now = Instant(after_s * 1000, START_S + after_s)
    return Measuring(manager, VitalSigns(manager)).look(rule, now)


def readings(*pairs: tuple[str, int]) -> Look:
    return Look([Reading(*pair) for pair in pairs])


def test_the_worst_queues_come_first() -> None:
    office = Office()
    office.send(b"xx", b"yy")
    office.send(b"z" * 5000, name=LEDGER)
    assert look(office, Measure.MESSAGES) == readings((ORDERS, 2), (LEDGER, 1))
    sizes = look(office, Measure.BYTES)
    assert sizes is not None
    assert [each.queue for each in sizes.readings] == [LEDGER, ORDERS]
    assert sizes.readings[0].value > 5000
    ages = look(office, Measure.OLDEST_S, after_s=70)
    assert ages == readings((LEDGER, 70), (ORDERS, 70))


def test_a_pattern_chooses_and_an_empty_queue_is_young() -> None:
    office = Office()
    assert look(office, Measure.OLDEST_S, "*order*", after_s=70) == readings((ORDERS, 0))
    assert look(office, Measure.MESSAGES, "*nothing*") == readings()


def test_only_the_worst_are_looked_at() -> None:
    office = Office()
    for number in range(RAISED_MAX_COUNT):
        office.ok(api.CreateQueue(rf"private$\many{number}"))
    found = look(office, Measure.MESSAGES)
    assert found is not None
    assert (len(found.readings), found.is_complete) == (RAISED_MAX_COUNT, False)


def test_dead_letters_are_counted_in_both_queues() -> None:
    office = Office()
    for name, count in ((ORDERS, 1), (LEDGER, 2)):
        office.send(*[b"x"] * count, name=name, journal_on_failure=True)
        office.ok(api.Purge(office.open(name)))
    found = look(office, Measure.DEAD_LETTERS)
    assert found == readings(("system$;deadxact", 2), ("system$;deadletter", 1))


def test_what_cannot_leave_is_stuck_and_its_reason_is_told() -> None:
    office = Office()
    handle = office.open(ELSEWHERE, AccessMode.SEND)
    office.ok(api.Send(handle, [Draft(body=b"x").packet(r"TCP:192.0.2.9\private$\q")]))
    found = look(office, Measure.STUCK_S, after_s=600)
    assert found is not None
    (reading,) = found.readings
    assert reading.value == 600
    manager = office.driver.manager
    rule = AlarmRule("one", Measure.STUCK_S, 1, 1)
    measuring = Measuring(manager, VitalSigns(manager))
    reason = measuring.reason(rule, reading.queue, Instant(1, START_S))
    assert "192.0.2.9" in reason


@pytest.mark.parametrize(("quota_kb", "percent"), [(100, 50), (0xFFFFFFFF, 0)])
def test_the_quota_of_a_queue_is_used_up_to_some_percent(quota_kb: int, percent: int) -> None:
    office = Office()
    office.ok(api.ChangeQueue(ORDERS, quota_kb=quota_kb))
    office.send(b"x" * (50 * 1024))
    found = look(office, Measure.QUOTA_PERCENT, "orders")
    assert found == readings((ORDERS, percent))


def test_the_fullest_by_quota_comes_first_and_not_the_largest() -> None:
    office = Office()
    office.ok(api.ChangeQueue(ORDERS, quota_kb=10))
    office.send(b"x" * 5 * 1024)
    office.send(b"x" * 50 * 1024, name=LEDGER)
    found = look(office, Measure.QUOTA_PERCENT, "*")
    assert found is not None
    assert [each.queue for each in found.readings] == [ORDERS, LEDGER]


def test_the_quota_of_the_queue_manager_counts_without_a_pattern() -> None:
    office = Office(quota_kb=200)
    office.send(b"x" * (100 * 1024))
    assert look(office, Measure.QUOTA_PERCENT) == readings(("", 50))


def test_a_disk_that_nobody_has_measured_is_unknown(tmp_path: Path) -> None:
    office = Office()
    assert look(office, Measure.DISK_PERCENT) is None
    assert look(office, Measure.DISK_FREE_BYTES) is None
    signs = VitalSigns(office.driver.manager)

    async def watch() -> None:
        signs.watch(tmp_path)
        signs.close()

    asyncio.run(watch())
    bounds = {Measure.DISK_PERCENT: (0, 100), Measure.DISK_FREE_BYTES: (1, 1 << 60)}
    for measure, (low, high) in bounds.items():
        rule = AlarmRule("disk", measure, 1, 1)
        found = Measuring(office.driver.manager, signs).look(rule, Instant(0, START_S))
        assert found is not None
        assert low <= found.readings[0].value <= high
