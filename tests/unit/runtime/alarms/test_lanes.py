"""Each place is told in order, tried a few times, and keeps no other waiting."""

from __future__ import annotations

import asyncio

from openmsmq.runtime.alarms.lanes import PAUSES_S, WAITING_MAX_COUNT, Lane, NotTold
from openmsmq.runtime.alarms.notices import AlarmNotice
from openmsmq.runtime.logs import EventLog


def notice(name: str) -> AlarmNotice:
    return AlarmNotice(name, "raised", "", "messages", 1, 1, None, "", "", "ALPHA", "")


class Place:
    """Refuses what it is told as often as it is said to."""

    def __init__(self, *refusals: NotTold) -> None:
        self.refusals = list(refusals)
        self.heard: list[str] = []
        self.tries = 0
        self.lines: list[str] = []

    async def take(self, told: AlarmNotice) -> None:
        self.tries += 1
        if self.refusals:
            raise self.refusals.pop(0)
        self.heard.append(told.alarm)

    def tell(self, *names: str, until: int) -> None:
        async def run() -> None:
            log = EventLog("text", "error", self.lines.append)
            lane = Lane("somewhere", self.take, log, (0, 0))
            for name in names:
                lane.put(notice(name))
            for _ in range(20 * until):
                await asyncio.sleep(0)
            assert len(self.heard) + len(self.lines) == until
            await lane.close()

        asyncio.run(run())


def test_a_place_hears_everything_in_order() -> None:
    place = Place()
    place.tell("a", "b", "c", until=3)
    assert place.heard == ["a", "b", "c"]


def test_what_may_come_right_is_tried_again() -> None:
    busy = NotTold("it is busy", may_try_again=True)
    place = Place(busy, busy)
    place.tell("a", until=1)
    assert (place.heard, place.tries, place.lines) == (["a"], 3, [])


def test_tries_are_few_and_what_was_not_told_is_logged_and_the_next_one_told() -> None:
    busy = NotTold("it is busy", may_try_again=True)
    place = Place(busy, busy, busy)
    place.tell("a", "b", until=2)
    assert (place.heard, place.tries) == (["b"], len(PAUSES_S) + 2)
    (line,) = place.lines
    assert "alarm-not-told alarm=a" in line
    assert "it is busy" in line


def test_what_will_not_come_right_is_not_tried_again() -> None:
    place = Place(NotTold("there is no such queue"))
    place.tell("a", until=1)
    assert (place.heard, place.tries) == ([], 1)


def test_only_so_many_wait() -> None:
    place = Place()
    names = [f"a{number}" for number in range(WAITING_MAX_COUNT + 2)]
    place.tell(*names, until=len(names))
    assert place.heard == names[:WAITING_MAX_COUNT]
    assert len(place.lines) == 2


def test_a_place_that_is_not_wanted_any_more_hears_what_was_meant_for_it() -> None:
    place = Place()

    async def run() -> None:
        lane = Lane("somewhere", place.take, EventLog("text", "error", place.lines.append), (0, 0))
        idle = Lane("elsewhere", place.take, EventLog("text", "error", place.lines.append), (0, 0))
        await asyncio.sleep(0)
        lane.put(notice("a"))
        lane.put(notice("b"))
        lane.retire()
        idle.retire()
        for _ in range(20):
            await asyncio.sleep(0)
        assert (lane.is_over, idle.is_over) == (True, True)

    asyncio.run(run())
    assert place.heard == ["a", "b"]
