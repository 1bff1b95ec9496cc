"""A standby believes no log that has gone back."""

from __future__ import annotations

from openmsmq.protocol.replication.follower import Follower
from openmsmq.protocol.replication.log import Answer, Apply, Ended, LeaseTimes, LogState

TIMES = LeaseTimes()


def follower(number: int = 3) -> Follower:
    made = Follower("log", "member", "us", number, TIMES, 0)
    made.wake(0)
    assert len(made.take_outputs()) == 1
    return made


def answer(last: int, confirmed: int, *records: int, log: str = "log") -> Answer:
    state = LogState(log, 3, "them", 1, last, confirmed, lease_ended=True)
    return Answer(state, True, [(number, b"%d" % number) for number in records])


def ended(made: Follower) -> str:
    """Return why it has ended for good."""
    (output,) = made.take_outputs()
    assert isinstance(output, Ended)
    assert output.is_damage
    return output.why


def test_what_is_not_confirmed_is_not_stored() -> None:
    made = follower()
    made.answered(answer(6, 5, 4, 5, 6), 1)
    assert made.take_outputs() == [Apply([(4, b"4"), (5, b"5")])]


def test_a_log_that_ends_before_what_it_has_confirmed_has_lost_it() -> None:
    made = follower()
    # It is far behind when the database is put back to what it was yesterday.
    made.answered(answer(9, 8, 4, 5), 1)
    made.take_outputs()
    made.wake(1000)
    made.take_outputs()
    made.answered(answer(7, 6, 6, 7), 1001)
    assert "record 8 was confirmed, and the log in the database ends with 7" in ended(made)


def test_a_last_record_that_a_failing_database_may_lose_is_no_loss() -> None:
    made = follower()
    made.answered(answer(9, 8, 4, 5), 1)
    made.take_outputs()
    made.wake(1000)
    made.take_outputs()
    made.answered(answer(8, 7, 6, 7), 1001)
    assert made.take_outputs() == [Apply([(6, b"6"), (7, b"7")])]


def test_numbers_that_jump_and_another_log_end_it() -> None:
    made = follower()
    made.answered(answer(9, 8, 4, 6), 1)
    assert "has a gap" in ended(made)
    made = follower()
    made.answered(answer(9, 8, 4, log="another"), 1)
    assert "the store belongs to log" in ended(made)
