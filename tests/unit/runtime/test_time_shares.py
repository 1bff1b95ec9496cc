"""How much of the time strangers get while known peers want it too."""

from __future__ import annotations

from openmsmq.runtime.time_shares import TimeShares

MS = 1_000_000


class Day:
    """A clock, and strangers who want all of the time."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.shares = TimeShares(0)
        self.worked_ns = 0

    def pass_ms(self, ms: int, *, known: bool, work_ms: int = 5) -> None:
        """Let strangers work whenever they are let, and others in between."""
        end_ns = self.now_ns + ms * MS
        while self.now_ns < end_ns:
            if known:
                self.shares.known_peer_came(self.now_ns)
            began_ns = self.now_ns
            self.now_ns += work_ms * MS
            self.worked_ns += work_ms * MS
            self.now_ns += self.shares.stranger_took(began_ns, self.now_ns) * MS


def test_strangers_have_all_of_the_time_while_nobody_known_sends() -> None:
    day = Day()
    day.pass_ms(10_000, known=False)
    assert day.worked_ns == 10_000 * MS


def test_beside_known_peers_they_have_a_quarter() -> None:
    day = Day()
    day.pass_ms(10_000, known=True)
    assert 2_400 * MS < day.worked_ns < 2_600 * MS


def test_long_work_is_made_up_for() -> None:
    day = Day()
    day.pass_ms(20_000, known=True, work_ms=200)
    assert day.worked_ns < 5_500 * MS


def test_what_they_took_alone_is_not_held_against_them() -> None:
    day = Day()
    day.pass_ms(5_000, known=False)
    day.shares.known_peer_came(day.now_ns)
    assert day.shares.stranger_took(day.now_ns, day.now_ns + 10 * MS) <= 60


def test_two_seconds_after_the_last_known_peer_they_have_all_again() -> None:
    day = Day()
    day.pass_ms(1_000, known=True)
    day.now_ns += 2_000 * MS
    before_ns = day.worked_ns
    day.pass_ms(1_000, known=False)
    assert day.worked_ns - before_ns == 1_000 * MS
