"""Alarms are raised once, told again after a time, and cleared when it is well again."""

from __future__ import annotations

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.runtime.alarms.judging import RAISED_MAX_COUNT, Judge, Look, Reading
from openmsmq.runtime.config.alarm_table import AlarmRule, Measure

RULE = AlarmRule("deep", Measure.MESSAGES, threshold=100, clear=90, for_s=30, remind_s=600)


def at(second: int) -> Instant:
    return Instant(second * 1000, 1_000_000 + second)


def seen(judge: Judge, second: int, *, is_complete: bool = True, **values: int) -> list[str]:
    """Return what there is to tell: kind and queue."""
    readings = [Reading(queue, value) for queue, value in values.items()]
    changes = judge.take(Look(readings, is_complete), at(second))
    return [f"{change.kind.value} {change.queue} {change.value}" for change in changes]


def test_an_alarm_is_raised_when_it_was_so_for_long_enough_and_only_once() -> None:
    judge = Judge(RULE)
    assert seen(judge, 0, orders=100) == []
    assert seen(judge, 29, orders=200) == []
    assert seen(judge, 30, orders=150) == ["raised orders 150"]
    assert seen(judge, 40, orders=300) == []
    assert judge.raised["orders"].since_s == 1_000_000
    assert judge.raised["orders"].value == 300


def test_a_short_moment_is_no_alarm() -> None:
    judge = Judge(RULE)
    assert seen(judge, 0, orders=100) == []
    assert seen(judge, 20, orders=99) == []
    assert seen(judge, 31, orders=100) == []
    assert seen(judge, 61, orders=100) == ["raised orders 100"]


def test_it_is_cleared_only_well_below_its_threshold_and_can_be_raised_again() -> None:
    judge = Judge(msgspec.structs.replace(RULE, for_s=0))
    assert seen(judge, 0, orders=100) == ["raised orders 100"]
    assert seen(judge, 1, orders=99) == []
    assert seen(judge, 2, orders=100) == []
    assert seen(judge, 3, orders=90) == []
    assert seen(judge, 4, orders=89) == ["cleared orders 89"]
    assert seen(judge, 5, orders=99) == []
    assert seen(judge, 6, orders=100) == ["raised orders 100"]


def test_it_is_told_again_after_its_time_as_long_as_it_lasts() -> None:
    judge = Judge(msgspec.structs.replace(RULE, for_s=0))
    seen(judge, 0, orders=100)
    assert seen(judge, 599, orders=101) == []
    assert seen(judge, 600, orders=102) == ["reminded orders 102"]
    assert seen(judge, 1199, orders=103) == []
    assert seen(judge, 1200, orders=104) == ["reminded orders 104"]
    never = Judge(msgspec.structs.replace(RULE, for_s=0, remind_s=0))
    seen(never, 0, orders=100)
    assert seen(never, 1_000_000, orders=100) == []


def test_each_queue_has_its_own_alarm() -> None:
    judge = Judge(msgspec.structs.replace(RULE, for_s=0))
    assert seen(judge, 0, orders=200, bills=50) == ["raised orders 200"]
    assert seen(judge, 1, orders=200, bills=100) == ["raised bills 100"]
    assert seen(judge, 2, bills=100, orders=3) == ["cleared orders 3"]


def test_a_queue_that_is_gone_has_no_alarm_any_more() -> None:
    judge = Judge(msgspec.structs.replace(RULE, for_s=0))
    seen(judge, 0, orders=200)
    assert seen(judge, 1) == ["cleared orders 200"]


def test_a_queue_that_is_not_among_the_worst_is_cleared_only_if_it_must_be_well() -> None:
    judge = Judge(msgspec.structs.replace(RULE, for_s=0))
    seen(judge, 0, orders=200)
    assert seen(judge, 1, is_complete=False, bills=500) == ["raised bills 500"]
    assert seen(judge, 2, is_complete=False, bills=90) == []
    assert seen(judge, 3, is_complete=False, bills=89) == ["cleared orders 200", "cleared bills 89"]


def test_no_more_are_raised_than_somebody_reads() -> None:
    judge = Judge(msgspec.structs.replace(RULE, for_s=0))
    many = {f"q{number}": 500 for number in range(RAISED_MAX_COUNT)}
    assert len(seen(judge, 0, is_complete=False, **many)) == RAISED_MAX_COUNT
    assert seen(judge, 1, is_complete=False, another=600, last=500) == []
    assert len(judge.raised) == RAISED_MAX_COUNT


def test_little_room_is_bad_and_much_is_good() -> None:
    judge = Judge(AlarmRule("disk", Measure.DISK_FREE_BYTES, threshold=1000, clear=1100))
    assert seen(judge, 0, disk=1001) == []
    assert seen(judge, 1, disk=1000) == ["raised disk 1000"]
    assert seen(judge, 2, disk=1100) == []
    assert seen(judge, 3, disk=1101) == ["cleared disk 1101"]
