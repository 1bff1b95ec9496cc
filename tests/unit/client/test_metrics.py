"""Metrics say what the replies say, in a text that a reader of the format understands."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.client.metrics import (
    FAMILIES,
    OTHER,
    QUEUES_MAX_COUNT,
    metrics_text,
)
from openmsmq.model.queue import ConnectionStatus, OutgoingQueueState, SessionWait

TYPES = {"gauge", "counter", "summary"}


class Sample(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


def parsed(text: str) -> tuple[dict[str, str], list[Sample]]:
    """Read the text format of Prometheus: types by name, and all samples. Letter by letter."""
    kinds: dict[str, str] = {}
    samples: list[Sample] = []
    assert text.endswith("\n")
    # Only a line feed ends a line; other letters that Python takes for ends of lines do not.
    for line in text[:-1].split("\n"):
        if line.startswith("# TYPE "):
            name, kind = line.removeprefix("# TYPE ").split(" ")
            assert name not in kinds, "a metric stands in two places"
            assert kind in TYPES
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            samples.append(_sample(line))
    return kinds, samples


def _sample(line: str) -> Sample:
    found = re.match(r"[a-zA-Z_:][a-zA-Z0-9_:]*", line)
    assert found, line
    name, at = found.group(), found.end()
    labels: list[tuple[str, str]] = []
    if line[at] == "{":
        at += 1
        while line[at] != "}":
            label = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="').match(line, at)
            assert label, line
            at, value = label.end(), ""
            while line[at] != '"':
                if line[at] == "\\":
                    at += 1
                    value += {"\\": "\\", "n": "\n", '"': '"'}[line[at]]
                else:
                    value += line[at]
                at += 1
            labels.append((label.group(1), value))
            at += 1
            if line[at] == ",":
                at += 1
        at += 1
    assert line[at] == " "
    return Sample(name, tuple(labels), float(line[at + 1 :]))


def status(**facts: Any) -> api.Status:
    given_ = {
        "manager_name": "ALPHA",
        "manager": bytes(16),
        "software": "OpenMSMQ 1.2.3",
        "queue_count": 2,
        "message_count": 7,
        "message_bytes": 700,
        "connection_count": 3,
        "transaction_count": 4,
        "started_time_s": 1_000,
        "now_s": 1_500,
    }
    return api.Status(**{**given_, **facts})


def queue(name: str, **facts: Any) -> api.QueueStatus:
    numbers = {
        field.name: 0 for field in msgspec.structs.fields(api.QueueStatus) if field.type is int
    }
    texts = {"path_name": name, "format_name": name, "label": "", "identifier": bytes(16)}
    flags = {"transactional": False, "journaling": False, "authentication_required": False}
    return api.QueueStatus(**{**numbers, **texts, **flags, **facts})


def leading_away(name: str, **facts: Any) -> api.OutgoingStatus:
    empty: dict[Any, Any] = {int: 0, str: "", bool: False}
    given_ = {
        field.name: empty.get(field.type, [])
        for field in msgspec.structs.fields(api.OutgoingStatus)
    }
    return api.OutgoingStatus(**{**given_, "format_name": name, "state": "WAITING", **facts})


def session(**facts: Any) -> api.SessionStatus:
    empty: dict[Any, Any] = {int: 0, str: "", bool: False, bytes: bytes(16)}
    given_ = {
        field.name: empty.get(field.type, []) for field in msgspec.structs.fields(api.SessionStatus)
    }
    return api.SessionStatus(**{**given_, "waits_for": "nothing", **facts})


def values(text: str, name: str, key: str | None = None) -> dict[str, float] | float:
    """Return the value of a metric, or its values by the value of one label."""
    found = [sample for sample in parsed(text)[1] if sample.name == name]
    if key is None:
        (only,) = found
        assert only.labels == ()
        return only.value
    return {dict(sample.labels)[key]: sample.value for sample in found}


def text_of(
    found: api.Status | None = None,
    page: api.QueuePage | None = None,
    outgoing: list[api.OutgoingStatus] | None = None,
    sessions: list[api.SessionStatus] | None = None,
) -> str:
    return metrics_text(
        found or status(), page or api.QueuePage([], 0), outgoing or [], sessions or []
    )


def test_every_metric_follows_the_conventions_of_prometheus() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"openmsmq_[a-z_]+", family.name)
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert not family.name.endswith(("_ms", "_kb", "_count", "_sum"))
        assert "\n" not in family.help
        assert "\\" not in family.help
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def everything() -> str:
    return text_of(
        status(
            quota_kb=8,
            express_memory_kb=4,
            notices=[api.NoticeCount("message-dropped", "no room", 5)],
            vitals=api.Vitals(
                *(1, 2, 3, 4_000_000, 500_000, 600_000, 7, 8, 9),
                {"201": 3},
                api.Replication("alpha", 4, 90, 60, [api.StandbyStatus("b", 80, 2, 1, ["k"])], 2),
                {"sent": 3},
            ),
            alarms=[
                api.AlarmStatus("disk", "disk_percent", 90, 0, []),
                api.AlarmStatus("deep", "messages", 100, 3, []),
            ],
        ),
        api.QueuePage([queue("q")], 2, api.QueueTotals(9)),
        [leading_away("DIRECT=OS:beta\\private$\\q")],
        [session()],
    )


def test_standbys_are_told_of_only_where_there_is_a_log_that_could_be_looked_at() -> None:
    def lines(replication: api.Replication | None) -> list[str]:
        vitals = api.Vitals(replication=replication)
        page = api.QueuePage([], 0, api.QueueTotals())
        text = text_of(status(vitals=vitals), page, [], [])
        return [
            each for each in text.split("\n") if re.match("openmsmq_(replication|standby)", each)
        ]

    assert lines(None) == []
    assert lines(api.Replication("alpha", problem="gone")) == ["openmsmq_replication_problem 1"]
    beta = api.StandbyStatus("beta", 80, 2, 1, ["keys/a.pem"])
    assert lines(api.Replication("alpha", 4, 90, 60, [beta], 2)) == [
        "openmsmq_replication_epoch 4",
        "openmsmq_replication_log_records 60",
        "openmsmq_replication_lag_seconds 2",
        "openmsmq_replication_problem 0",
        'openmsmq_standby_lag_seconds{standby="beta"} 2',
        'openmsmq_standby_lag_records{standby="beta"} 10',
        'openmsmq_standby_silent_seconds{standby="beta"} 1',
        'openmsmq_standby_differing_files{standby="beta"} 1',
    ]


def test_every_metric_of_the_table_is_in_the_text_with_its_labels() -> None:
    kinds, samples = parsed(everything())
    assert kinds == {family.name: family.kind for family in FAMILIES}
    labels = {family.name: set(family.labels) for family in FAMILIES}
    for sample in samples:
        name = re.sub("_(sum|count)$", "", sample.name)
        assert {label for label, _ in sample.labels} == labels[name]
    seen = [(sample.name, sample.labels) for sample in samples]
    assert len(set(seen)) == len(seen), "a series stands there twice"


def test_the_queue_manager_itself() -> None:
    text = everything()
    assert values(text, "openmsmq_up") == values(text, "openmsmq_ready") == 1
    assert values(text, "openmsmq_quota_bytes") == 8_192
    assert values(text, "openmsmq_express_memory_limit_bytes") == 4_096
    assert values(text, "openmsmq_disk_free_bytes") == 1
    assert values(text, "openmsmq_disk_bytes") == 9
    assert values(text, "openmsmq_alarms_raised", "alarm") == {"disk": 0, "deep": 3}
    assert values(text, "openmsmq_store_bytes") == 2
    assert values(text, "openmsmq_commit_seconds_sum") == 4
    assert values(text, "openmsmq_commit_seconds_count") == 3
    assert values(text, "openmsmq_commit_last_seconds") == 0.5
    assert values(text, "openmsmq_commit_worst_seconds") == 0.6
    assert values(text, "openmsmq_loop_lag_seconds") == 7e-6
    assert values(text, "openmsmq_loop_lag_worst_seconds") == 8e-6
    assert values(text, "openmsmq_notices_total", "reason") == {"no room": 5}
    assert values(text, "openmsmq_info", "software") == {"OpenMSMQ 1.2.3": 1}
    assert values(text, "openmsmq_start_time_seconds") == 1_000


def test_what_nobody_knows_is_left_out() -> None:
    kinds, _ = parsed(text_of())
    for name in ("quota_bytes", "disk_free_bytes", "commit_last_seconds", "loop_lag_seconds"):
        assert f"openmsmq_{name}" not in kinds


def test_a_store_that_takes_nothing_is_not_ready() -> None:
    text = text_of(status(store_problem="full", directory_problem="away"))
    assert values(text, "openmsmq_ready") == 0
    assert values(text, "openmsmq_store_problem") == 1
    assert values(text, "openmsmq_directory_problem") == 1


def test_queues_tell_what_they_hold_and_for_how_long() -> None:
    found = queue("q", message_count=2, message_bytes=30, oldest_time_s=1_400, in_count=5)
    text = text_of(page=api.QueuePage([found, queue("empty")], 2))
    assert values(text, "openmsmq_queue_messages", "queue") == {"q": 2, "empty": 0}
    assert values(text, "openmsmq_queue_bytes", "queue") == {"q": 30, "empty": 0}
    assert values(text, "openmsmq_queue_oldest_age_seconds", "queue") == {"q": 100, "empty": 0}
    assert values(text, "openmsmq_queue_in_messages_total", "queue") == {"q": 5, "empty": 0}


def test_a_clock_that_was_set_back_makes_no_negative_age() -> None:
    text = text_of(page=api.QueuePage([queue("q", oldest_time_s=9_999)], 1))
    assert values(text, "openmsmq_queue_oldest_age_seconds", "queue") == {"q": 0}


@pytest.mark.parametrize("unseen", [0, 7])
@pytest.mark.parametrize("shown", [0, 1, QUEUES_MAX_COUNT, QUEUES_MAX_COUNT + 3])
def test_there_are_never_more_series_than_so_many_and_nothing_is_lost(
    shown: int, unseen: int
) -> None:
    queues = [queue(f"q{number:05}", message_count=1, in_count=3) for number in range(shown)]
    count = shown + unseen
    page = api.QueuePage(queues, count, api.QueueTotals(count, in_count=3 * count))
    text = text_of(page=page, outgoing=[leading_away(each.path_name) for each in queues])
    for name, each in (("messages", 1), ("in_messages_total", 3)):
        found = values(text, f"openmsmq_queue_{name}", "queue") if count else {}
        assert isinstance(found, dict)
        assert len(found) <= QUEUES_MAX_COUNT + 1
        assert sum(found.values()) == each * count
        assert (OTHER in found) == (count > min(shown, QUEUES_MAX_COUNT))
    outgoing = values(text, "openmsmq_outgoing_messages", "queue") if shown else {}
    assert isinstance(outgoing, dict)
    assert len(outgoing) <= QUEUES_MAX_COUNT + 1


@given(st.lists(st.text(), unique=True, max_size=5), st.text(), st.text())
def test_any_name_survives_being_written_as_a_label(
    names: list[str], manager: str, reason: str
) -> None:
    found = status(manager_name=manager, notices=[api.NoticeCount("event", reason, 1)])
    page = api.QueuePage([queue(name) for name in names], len(names))
    text = text_of(found, page, [leading_away(name) for name in names])
    for name in ("openmsmq_queue_messages", "openmsmq_outgoing_bytes"):
        assert list(values(text, name, "queue")) == (  # type: ignore[arg-type]
            names if name.startswith("openmsmq_q") else sorted(names)
        )
    assert values(text, "openmsmq_info", "manager") == {manager: 1}
    assert values(text, "openmsmq_notices_total", "reason") == {reason: 1}


@given(st.integers(0, 1 << 62))
def test_large_numbers_are_written_in_full(count: int) -> None:
    text = text_of(status(message_bytes=count))
    assert f"openmsmq_message_bytes {count}\n" in text


def test_outgoing_queues_are_counted_by_what_hinders_them() -> None:
    failed = [api.ConnectionAttempt(ConnectionStatus.DNS_FAILURE, 1, [])]
    text = text_of(
        outgoing=[
            leading_away("a", state="WAITING", message_count=2, resend_count=3, history=failed),
            leading_away("b", state="CONNECTED", unread_count=4),
            leading_away("c", state="WAITING", history=failed),
        ]
    )
    states = values(text, "openmsmq_outgoing_queues", "state")
    assert isinstance(states, dict)
    assert set(states) == {state.management_text.lower() for state in OutgoingQueueState}
    assert (states["waiting"], states["connected"], states["inactive"]) == (2, 1, 0)
    reasons = values(text, "openmsmq_outgoing_failing_queues", "reason")
    assert isinstance(reasons, dict)
    # Nothing waits in the third: that it cannot be reached hinders nobody.
    assert {reason for reason, count in reasons.items() if count} == {"dns_failure"}
    assert reasons["dns_failure"] == 1
    assert values(text, "openmsmq_outgoing_retries", "queue") == {"a": 3, "b": 0, "c": 0}
    assert values(text, "openmsmq_outgoing_unread_messages", "queue") == {"a": 0, "b": 4, "c": 0}


def test_sessions_are_counted_by_direction_and_what_they_wait_for() -> None:
    text = text_of(
        sessions=[
            session(is_dialled=True, waits_for="window", in_flight_count=64, window=64),
            session(is_dialled=True, proven="beta", window=10),
            session(unsettled_count=5, waits_for="disk", in_flight_count=1),
        ]
    )
    found = {
        (
            dict(sample.labels)["direction"],
            dict(sample.labels)["tls"],
            dict(sample.labels)["waits_for"],
        )
        for sample in parsed(text)[1]
        if sample.name == "openmsmq_sessions" and sample.value == 1
    }
    assert found == {
        ("dialled", "no", "window"),
        ("dialled", "yes", "nothing"),
        ("accepted", "no", "disk"),
    }
    assert values(text, "openmsmq_session_in_flight_packets") == 65
    assert values(text, "openmsmq_session_window_packets") == 74
    assert values(text, "openmsmq_session_unsettled_packets") == 5


@pytest.mark.parametrize("wait", SessionWait)
def test_every_wait_has_a_series_even_when_no_session_is_there(wait: SessionWait) -> None:
    assert wait.value in values(text_of(), "openmsmq_sessions", "waits_for")  # type: ignore[operator]


def test_packets_of_multicast_are_counted_by_what_became_of_them() -> None:
    counts = {"sent": 9, "repaired": 2, "asked": 4, "lost": 1, "duplicate": 3, "refused": 5}
    vitals = api.Vitals(
        multicast_packets=counts, multicast_sources=6, multicast_backlog_bytes=70_000
    )
    text = text_of(status(vitals=vitals))
    assert values(text, "openmsmq_multicast_packets_total", "event") == counts
    assert values(text, "openmsmq_multicast_sources") == 6
    assert values(text, "openmsmq_multicast_backlog_bytes") == 70_000
