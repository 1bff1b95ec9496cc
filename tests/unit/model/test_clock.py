from __future__ import annotations

import pytest

from openmsmq.model.clock import Instant


def test_elapsed_time_is_measured_on_the_monotonic_clock_even_if_the_wall_clock_is_set_back():
    before = Instant(ticks_ms=1_000, unix_s=1_700_000_000)
    after = Instant(ticks_ms=3_500, unix_s=1_600_000_000)
    assert after.ticks_since(before) == 2_500


def test_an_instant_cannot_be_changed():
    with pytest.raises(AttributeError):
        Instant(0, 0).ticks_ms = 1  # type: ignore[misc]
