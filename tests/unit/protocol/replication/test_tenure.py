"""A primary says nothing that it cannot know."""

from __future__ import annotations

from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    Ask,
    Durable,
    Ended,
    LeaseTimes,
    LogState,
    Promoted,
    Release,
    Renew,
)
from openmsmq.protocol.replication.tenure import Tenure

TIMES = LeaseTimes()


def state(last: int, *, epoch: int = 3, holder: str = "us") -> LogState:
    return LogState("log", epoch, holder, 1, last, last - 1, lease_ended=False)


def tenure() -> Tenure:
    """Return one that has written ten records and waits for nothing."""
    made = Tenure(Promoted("member", "us", 3, 2500), 10, TIMES, 0)
    made.wake(0)
    assert made.take_outputs() == [Ask(Renew(3, "us", 10))]
    made.answered(Answer(state(10)), 1)
    assert made.take_outputs() == []
    return made


def test_a_record_is_durable_when_the_log_has_it() -> None:
    primary = tenure()
    primary.append(b"record", 5)
    assert primary.take_outputs() == [Ask(Append(3, "us", 11, b"record"))]
    primary.answered(Answer(state(11)), 9)
    assert primary.take_outputs() == [Durable(11)]


def test_without_an_answer_the_same_record_is_appended_again() -> None:
    primary = tenure()
    primary.append(b"record", 5)
    primary.take_outputs()
    primary.failed(1000)
    primary.wake(1000 + TIMES.look_ms)
    assert primary.take_outputs() == [Ask(Append(3, "us", 11, b"record"))]


def test_a_record_that_is_there_already_is_durable_when_something_later_is() -> None:
    primary = tenure()
    primary.append(b"record", 5)
    primary.take_outputs()
    primary.failed(1000)
    primary.wake(1000 + TIMES.look_ms)
    primary.take_outputs()
    primary.answered(Answer(state(11), done=False), 1300)
    assert primary.take_outputs() == [Ask(Renew(3, "us", 10))]
    primary.answered(Answer(state(11)), 1400)
    assert primary.take_outputs() == [Durable(11)]


def test_nothing_is_answered_when_the_lease_may_have_ended_until_it_is_renewed() -> None:
    primary = tenure()
    until_ms = TIMES.lease_ms - TIMES.margin_ms
    assert primary.may_answer(until_ms - 1)
    assert not primary.may_answer(until_ms)
    primary.wake(until_ms)
    primary.take_outputs()
    primary.answered(Answer(state(10)), until_ms + 10)
    assert primary.may_answer(until_ms + 10)


def test_it_ends_when_another_epoch_has_begun() -> None:
    primary = tenure()
    primary.append(b"record", 5)
    primary.take_outputs()
    primary.answered(Answer(state(10, epoch=4, holder="them"), done=False), 9)
    [ended] = primary.take_outputs()
    assert isinstance(ended, Ended)
    assert not ended.is_damage
    assert not primary.may_answer(9)


def test_it_ends_when_the_database_has_lost_what_it_had_confirmed() -> None:
    primary = tenure()
    primary.append(b"record", 5)
    primary.take_outputs()
    primary.answered(Answer(state(9), done=False), 9)
    [ended] = primary.take_outputs()
    assert isinstance(ended, Ended)
    assert ended.is_damage


def test_nothing_is_answered_any_more_once_the_lease_is_given_back() -> None:
    primary = tenure()
    primary.leave(20)
    assert primary.take_outputs() == [Ask(Release(3, "us"))]
    assert not primary.may_answer(20)


def test_a_long_record_goes_with_a_lease_that_was_made_longer_before() -> None:
    record = bytes(40 << 20)
    longer_ms = 40 * TIMES.long_ms_per_mib
    assert longer_ms > TIMES.lease_ms
    primary = tenure()
    primary.append(record, 5)
    assert primary.take_outputs() == [Ask(Renew(3, "us", 10, longer_ms))]
    primary.answered(Answer(state(10)), 6)
    assert primary.take_outputs() == [Ask(Append(3, "us", 11, record, longer_ms))]
    # What was given up before may still make the lease as short as others (seed 10119).
    until_ms = 6 + TIMES.lease_ms - TIMES.margin_ms
    assert not primary.may_answer(until_ms)
    # Without an answer it is not known how much of it is left.
    primary.failed(longer_ms)
    primary.wake(longer_ms + TIMES.look_ms)
    assert primary.take_outputs() == [Ask(Renew(3, "us", 10, longer_ms))]
