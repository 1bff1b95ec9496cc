"""How far a standby is behind, in seconds."""

from __future__ import annotations

from openmsmq.runtime.replication.lags import LOOKS_MAX_COUNT, Lags


def test_who_has_all_is_not_behind_and_others_since_what_they_lack_was_there() -> None:
    lags = Lags()
    for record, now_s in ((10, 100), (10, 105), (14, 110), (20, 115)):
        lags.note(record, now_s)
    assert [lags.lag_s(record, 117) for record in (20, 19, 14, 13, 10, 9)] == [0, 2, 2, 7, 7, 17]


def test_so_many_looks_are_remembered_and_no_more() -> None:
    lags = Lags()
    for count in range(LOOKS_MAX_COUNT + 10):
        lags.note(count + 1, count)
    assert lags.lag_s(0, LOOKS_MAX_COUNT + 10) == LOOKS_MAX_COUNT
