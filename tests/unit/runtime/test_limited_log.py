"""Events that strangers can cause do not fill the log."""

from __future__ import annotations

from openmsmq.runtime.limits import LIMITED_LINES_PER_S
from openmsmq.runtime.logs import Event, EventLog, LimitedLog


def test_a_flood_of_one_event_is_a_few_lines_and_a_count_and_hides_no_other() -> None:
    lines: list[str] = []
    log = LimitedLog(EventLog(write=lines.append))
    for _ in range(1000):
        log.warning(Event.MESSAGE_DROPPED, reason="no such queue")
    log.refused("127.0.0.9", "sessions", "too many")
    log.flush()
    assert len([line for line in lines if "message-dropped" in line]) <= 3 * LIMITED_LINES_PER_S
    told = sum("reason=" in line for line in lines if "message-dropped" in line)
    counts = [int(line.split("not_logged=")[1]) for line in lines if "not_logged=" in line]
    assert told + sum(counts) == 1000
    assert any("connection-refused" in line and "127.0.0.9" in line for line in lines)
