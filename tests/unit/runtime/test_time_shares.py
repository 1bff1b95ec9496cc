"""How much of the time strangers get while known peers want it too."""

from __future__ import annotations

import pytest

from openmsmq.runtime.time_shares import TimeShares

MS = 1_000_000


class Day:
    """A clock, strangers who want all of the time, and known peers who want some of it."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.shares = TimeShares(0)
        self.strangers_ns = 0
        self.known_ns = 0

    def pass_ms(self, ms: int, *, known_percent: int, work_ms: int = 5) -> None:
        """Let strangers work when they need not wait; known peers have what they want."""
        end_ns = self.now_ns + ms * MS
        owed_ns = 0
        while self.now_ns < end_ns:
            before_ns = self.now_ns
            if self.shares.pause_ms(self.now_ns):
                self.now_ns += MS
            else:
                self.now_ns += work_ms * MS
                self.shares.stranger_took(before_ns, self.now_ns)
                self.strangers_ns += work_ms * MS
            owed_ns += (self.now_ns - before_ns) * known_percent // 100
            self.shares.known_took(self.now_ns, self.now_ns + owed_ns)
            self.now_ns += owed_ns
            self.known_ns += owed_ns
            owed_ns = 0


def test_strangers_have_all_of_the_time_while_nobody_known_sends() -> None:
    day = Day()
    day.pass_ms(10_000, known_percent=0)
    assert day.strangers_ns == 10_000 * MS


@pytest.mark.parametrize("work_ms", [5, 200])
def test_beside_busy_known_peers_they_have_a_quarter(work_ms: int) -> None:
    day = Day()
    day.pass_ms(2_000, known_percent=40, work_ms=work_ms)
    day.strangers_ns = 0
    day.pass_ms(10_000, known_percent=40, work_ms=work_ms)
    assert 1_800 * MS < day.strangers_ns < 3_200 * MS


def test_a_known_peer_that_sends_little_leaves_them_nearly_all() -> None:
    day = Day()
    day.pass_ms(10_000, known_percent=1)
    assert day.strangers_ns > 9_000 * MS


def test_what_they_took_alone_is_not_held_against_them() -> None:
    day = Day()
    day.pass_ms(5_000, known_percent=0, work_ms=400)
    day.pass_ms(260, known_percent=50)
    assert day.shares.pause_ms(day.now_ns) < 250


def test_nobody_waits_for_more_than_a_second_before_it_is_looked_again() -> None:
    day = Day()
    day.pass_ms(2_000, known_percent=50)
    day.shares.stranger_took(day.now_ns, day.now_ns + 60_000 * MS)
    assert day.shares.pause_ms(day.now_ns + MS) == 1_000


def test_when_known_peers_have_done_strangers_have_all_again() -> None:
    day = Day()
    day.pass_ms(2_000, known_percent=50)
    day.now_ns += 600 * MS
    day.pass_ms(600, known_percent=0)
    before_ns = day.strangers_ns
    day.pass_ms(1_000, known_percent=0)
    assert day.strangers_ns - before_ns == 1_000 * MS
