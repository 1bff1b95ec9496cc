from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.runtime.limits import LIMITED_LINES_PER_S
from openmsmq.runtime.logs import Event, EventLog, LibraryLogHandler, LimitedLog

facts = st.dictionaries(
    st.sampled_from(["address", "reason", "count"]),
    st.none() | st.booleans() | st.integers() | st.text(),
)


@given(facts)
def test_an_event_is_one_line_of_json_with_its_facts(given_facts):
    lines = []
    EventLog("json", write=lines.append).warning(Event.STORE_FULL, **given_facts)
    (line,) = lines
    assert len(line.split("\n")) == 1
    written = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written.pop("time"))
    assert (written.pop("level"), written.pop("event")) == ("warning", "store-full")
    assert written == given_facts


@given(facts)
def test_an_event_is_one_printable_line_of_text(given_facts):
    lines = []
    EventLog("text", write=lines.append).info(Event.STORE_FULL, **given_facts)
    (line,) = lines
    assert line.isprintable()
    for key in given_facts:
        assert f" {key}=" in line


def test_text_is_quoted_only_where_it_has_to_be():
    lines = []
    EventLog(write=lines.append).info(Event.READY, name="ALPHA", reason="no room", port=1802)
    assert lines[0].endswith(' info ready name=ALPHA reason="no room" port=1802')


@pytest.mark.parametrize(
    ("level", "shown"),
    [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)],
)
def test_what_is_less_important_than_the_level_is_left_out(level, shown):
    lines = []
    log = EventLog(level=level, write=lines.append)
    for say in (log.debug, log.info, log.warning, log.error):
        say(Event.READY)
    assert len(lines) == shown


def test_what_libraries_log_becomes_an_event_with_the_error_behind_it():
    lines = []
    logger = logging.getLogger("test of library logs")
    logger.propagate = False
    logger.addHandler(LibraryLogHandler(EventLog("json", write=lines.append)))
    logger.info("not important")
    try:
        raise OSError("gone")
    except OSError:
        logger.exception("a callback failed")
    (line,) = lines
    written = json.loads(line)
    assert (written["level"], written["event"]) == ("error", "library")
    assert written["message"] == "a callback failed (OSError('gone'))"


def test_the_guide_for_operators_explains_every_event():
    guide = Path(__file__).parents[3] / "docs/guides/operate.md"
    text = guide.read_text(encoding="utf-8")
    assert [event.value for event in Event if f"`{event.value}`" not in text] == []


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
