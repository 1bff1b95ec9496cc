"""What is told of an alarm."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.runtime.alarms.judging import Change, ChangeKind
from openmsmq.runtime.alarms.notices import notice_of, sentence
from openmsmq.runtime.config.alarm_table import AlarmRule, Measure


@pytest.mark.parametrize("measure", Measure)
def test_every_alarm_is_told_in_a_sentence_with_its_value_and_its_queue(measure: Measure) -> None:
    queue = r"private$\orders" if measure.names_queues else ""
    said = sentence(AlarmRule("one", measure, 1, 1), queue, 4711)
    assert "4711" in said
    assert queue in said


def test_programs_get_everything_as_json() -> None:
    rule = AlarmRule("wait", Measure.OLDEST_S, 300, 270)
    change = Change(ChangeKind.RAISED, rule, r"private$\orders", 412, 1_000_000_000)
    notice = notice_of(change, "it waits", manager=("ALPHA", "id"), now_s=1_000_000_060)
    assert msgspec.json.decode(msgspec.json.encode(notice)) == {
        "alarm": "wait",
        "state": "raised",
        "text": "it waits",
        "measure": "oldest_s",
        "threshold": 300,
        "value": 412,
        "queue": r"private$\orders",
        "since": "2001-09-09T01:46:40Z",
        "time": "2001-09-09T01:47:40Z",
        "manager": "ALPHA",
        "manager_id": "id",
    }
