"""Time goes on in order, and a disk forgets what was not durable."""

from __future__ import annotations

import pytest

from openmsmq.sim.clock import EPOCH_S, Clock, Timeline
from openmsmq.sim.disk import Disk
from openmsmq.storage.port import Batch


def test_things_happen_in_the_order_of_time_and_then_of_asking():
    timeline, seen = Timeline(), []
    for name, delay_ms in (("c", 5), ("a", 1), ("d", 5), ("b", 1)):
        timeline.after(delay_ms, seen.append, name)
    while timeline.next_ms is not None:
        timeline.step()
    assert seen == ["a", "b", "c", "d"]
    assert (timeline.now_ms, timeline.step_count, len(timeline)) == (5, 4, 0)


def test_a_wall_clock_may_jump_while_the_ticks_go_on():
    timeline = Timeline()
    clock = Clock(timeline, wall_error_s=7)
    clock.restart(uptime_ms=1_000)
    before = clock.now()
    clock.step_wall(-100)
    timeline.now_ms += 2_000
    after = clock.now()
    assert after.ticks_ms - before.ticks_ms == 2_000
    assert before.unix_s == EPOCH_S + 7
    assert after.unix_s == EPOCH_S + 7 - 98
    assert clock.latest_s == before.unix_s
    assert clock.behind_s == 98
    timeline.now_ms += 100_000
    assert clock.behind_s == 0


def test_a_timer_never_fires_at_once():
    timeline = Timeline()
    clock = Clock(timeline)
    clock.restart(uptime_ms=50)
    assert clock.delay_ms(clock.now().ticks_ms - 10) == 1
    assert clock.delay_ms(clock.now().ticks_ms + 10) == 10


@pytest.mark.parametrize("reached", [False, True])
def test_a_batch_that_is_being_written_is_kept_whole_or_not_at_all(reached):
    disk = Disk()
    disk.writing = Batch([(b"a", b"1")], [(b"v", b"memory")])
    disk.write()
    assert disk.store.get(b"v") == b"memory"
    disk.writing = Batch([(b"b", b"2"), (b"c", b"3")])
    late = disk.lose_power(reached=reached)
    assert (late is not None) == reached
    assert [disk.store.get(key) for key in (b"a", b"v")] == [b"1", None]
    assert [disk.store.get(key) for key in (b"b", b"c")] == (
        [b"2", b"3"] if reached else [None] * 2
    )


def test_a_refused_batch_leaves_nothing():
    disk = Disk()
    disk.writing = Batch([(b"a", b"1")])
    disk.refuse()
    assert disk.store.get(b"a") is None
    assert disk.lose_power(reached=True) is None
