"""How much of the time strangers get while known peers want it too."""

from __future__ import annotations

import pytest

from openmsmq.runtime.admission.time_shares import TimeShares

MS = 1_000_000


class Day:
    """A clock, strangers who want all of the time, and others who want some of it."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.shares = TimeShares(0)
        self.strangers_ns = 0
        self.known_ns = 0
        self.turns_ns = 0

    def pass_ms(
        self, ms: int, *, known_percent: int, turns_percent: int = 0, work_ms: int = 5
    ) -> None:
        """Let strangers work when they need not wait; known peers have what they want."""
        end_ns = self.now_ns + ms * MS
        while self.now_ns < end_ns:
            before_ns = self.now_ns
            if self.shares.pause_ms(self.now_ns):
                self.now_ns += MS
            else:
                self.now_ns += work_ms * MS
                self.shares.stranger_took(before_ns, self.now_ns)
                self.strangers_ns += work_ms * MS
            passed_ns = self.now_ns - before_ns
            if known_percent:
                known_ns = passed_ns * known_percent // 100
                self.shares.known_took(self.now_ns, self.now_ns + known_ns)
                self.now_ns += known_ns
                self.known_ns += known_ns
            turn_ns = passed_ns * turns_percent // 100
            self.shares.others_took(self.now_ns, self.now_ns + turn_ns)
            self.now_ns += turn_ns
            self.turns_ns += turn_ns


def test_strangers_have_all_of_the_time_while_nobody_known_sends() -> None:
    day = Day()
    day.pass_ms(10_000, known_percent=0)
    assert day.strangers_ns == 10_000 * MS


@pytest.mark.parametrize("work_ms", [5, 200])
def test_beside_busy_known_peers_they_have_a_tenth(work_ms: int) -> None:
    day = Day()
    day.pass_ms(3_000, known_percent=40, work_ms=work_ms)
    day.strangers_ns = 0
    day.pass_ms(10_000, known_percent=40, work_ms=work_ms)
    assert 800 * MS <= day.strangers_ns <= 1_200 * MS


def test_a_known_peer_that_sends_little_leaves_them_nearly_all() -> None:
    day = Day()
    day.pass_ms(10_000, known_percent=1)
    assert day.strangers_ns > 9_000 * MS


def test_the_turns_of_a_known_peer_count_with_it() -> None:
    day = Day()
    day.pass_ms(10_000, known_percent=2, turns_percent=40)
    day.strangers_ns = 0
    day.pass_ms(10_000, known_percent=2, turns_percent=40)
    assert day.strangers_ns <= 1_200 * MS


def test_turns_for_applications_alone_take_nothing_from_strangers() -> None:
    day = Day()
    day.pass_ms(10_000, known_percent=0, turns_percent=40)
    assert day.strangers_ns + day.turns_ns >= 10_000 * MS


def test_a_known_peer_that_stops_for_a_moment_does_not_lose_its_share() -> None:
    day = Day()
    day.pass_ms(3_000, known_percent=80)
    day.strangers_ns = 0
    day.pass_ms(500, known_percent=0)
    assert day.strangers_ns < 200 * MS


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
    day.pass_ms(2_000, known_percent=0)
    before_ns = day.strangers_ns
    day.pass_ms(1_000, known_percent=0)
    assert day.strangers_ns - before_ns == 1_000 * MS
