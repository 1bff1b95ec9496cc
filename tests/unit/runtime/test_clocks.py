from __future__ import annotations

import time

from openmsmq.runtime.clocks import read_clocks


def test_ticks_are_monotonic_and_the_wall_clock_is_in_seconds():
    before_s = time.time_ns() // 1_000_000_000
    first, second = read_clocks(), read_clocks()
    assert first.ticks_ms <= second.ticks_ms
    assert before_s <= first.unix_s <= second.unix_s <= time.time_ns() // 1_000_000_000
