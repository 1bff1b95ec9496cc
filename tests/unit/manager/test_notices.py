"""What an operator hears of, however often it happens."""

from __future__ import annotations

from openmsmq.manager.notices import NOTICES_PER_TURN_MAX_COUNT, NoticeKind, Notices
from openmsmq.runtime.logs import Event


def test_a_turn_tells_of_a_few_and_counts_all() -> None:
    notices = Notices()
    for number in range(NOTICES_PER_TURN_MAX_COUNT + 5):
        notices.note(NoticeKind.MESSAGE_DROPPED, "no such queue", number=number)
    notices.note(NoticeKind.REPORT_DROPPED, "no room")
    told = notices.take()
    dropped = [notice for notice in told if notice.kind is NoticeKind.MESSAGE_DROPPED]
    assert [dict(notice.facts)["number"] for notice in dropped] == list(range(8))
    assert len(told) == 9
    assert notices.counts == {
        (NoticeKind.MESSAGE_DROPPED, "no such queue"): 13,
        (NoticeKind.REPORT_DROPPED, "no room"): 1,
    }


def test_each_turn_tells_again() -> None:
    notices = Notices()
    for _ in range(2):
        notices.note(NoticeKind.MESSAGE_DROPPED, "no such queue")
        assert len(notices.take()) == 1
    assert notices.take() == []


def test_every_kind_is_an_event_of_the_log() -> None:
    events = {event.value for event in Event}
    assert {kind.value for kind in NoticeKind} <= events
