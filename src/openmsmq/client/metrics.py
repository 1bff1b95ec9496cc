"""What a queue manager tells, as metrics in the text format of Prometheus.

One pure function makes the text from replies. Each metric is a row of `FAMILIES`, from which the
page of metrics is written too. Labels have values from closed sets, but for the names of queues: of
those there are at most so many, and the others are added up under `OTHER`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from openmsmq.api import messages as api
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import ConnectionStatus, OutgoingQueueState, QueueRole, SessionWait

QUEUES_MAX_COUNT: Final = 500
"""Queues, and outgoing queues, that metrics name; the first by name."""

QUEUE_KINDS: Final = (QueueRole.APPLICATION, QueueRole.SUBQUEUE, QueueRole.SYSTEM)
"""Of which queues there are metrics; those of journals stand beside their queues."""

OTHER: Final = "_other"
"""Stands for all queues that are not named."""

Labels: TypeAlias = Mapping[str, str]
_NONE: Final[Labels] = MappingProxyType({})


class Family(msgspec.Struct, frozen=True):
    """A metric: its name, its type as Prometheus has it, and what it says."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


_G: Final = "gauge"
_C: Final = "counter"
_QUEUE: Final = ("queue",)
FAMILIES: Final = (
    Family("openmsmq_up", _G, "Whether the queue manager answers."),
    Family("openmsmq_ready", _G, "Whether its store takes messages."),
    Family("openmsmq_online", _G, "Whether it takes part in the transfer."),
    Family("openmsmq_info", _G, "Always 1; who it is.", ("manager", "software")),
    Family("openmsmq_start_time_seconds", _G, "When it was started, in seconds since 1970."),
    Family("openmsmq_queues", _G, "Queues of applications."),
    Family("openmsmq_messages", _G, "Messages of all queues, outgoing ones included."),
    Family("openmsmq_message_bytes", _G, "Bytes of these messages."),
    Family("openmsmq_quota_bytes", _G, "Room for all messages; without a quota there is none."),
    Family("openmsmq_express_memory_bytes", _G, "Memory that express messages take."),
    Family("openmsmq_express_memory_limit_bytes", _G, "Memory that they may take."),
    Family("openmsmq_connections", _G, "Connections of applications."),
    Family("openmsmq_transactions", _G, "Transactions under way, prepared ones included."),
    Family("openmsmq_transactions_in_doubt", _G, "Prepared ones that wait for a coordinator."),
    Family("openmsmq_store_bytes", _G, "What the store takes of its disk."),
    Family("openmsmq_disk_free_bytes", _G, "What is free on that disk."),
    Family("openmsmq_disk_bytes", _G, "The size of that disk."),
    Family(
        "openmsmq_alarms_raised",
        _G,
        "For how many queues an alarm of the configuration is raised; 1 for one of all.",
        ("alarm",),
    ),
    Family("openmsmq_store_problem", _G, "Whether the store took nothing the last time."),
    Family("openmsmq_directory_problem", _G, "Whether the directory could not be asked."),
    Family("openmsmq_commit_seconds", "summary", "Commits of the store, and how long they took."),
    Family("openmsmq_commit_last_seconds", _G, "How long the last one took."),
    Family("openmsmq_commit_worst_seconds", _G, "How long the longest took since the start."),
    Family("openmsmq_loop_lag_seconds", _G, "How late the event loop was the last time."),
    Family("openmsmq_loop_lag_worst_seconds", _G, "How late it was at worst since the start."),
    Family(
        "openmsmq_notices_total",
        _C,
        "What was refused or dropped since the start.",
        ("event", "reason"),
    ),
    Family("openmsmq_connect_failures_total", _C, "Attempts to reach others that failed."),
    Family("openmsmq_resends_total", _C, "Messages sent again without an acknowledgment."),
    Family("openmsmq_http_answers_total", _C, "Requests of HTTP that were answered.", ("status",)),
    Family(
        "openmsmq_multicast_packets_total",
        _C,
        "Packets of multicast: sent, repaired for others, asked for, lost, duplicate, refused.",
        ("event",),
    ),
    Family("openmsmq_multicast_sources", _G, "Sources of multicast that are followed."),
    Family("openmsmq_multicast_backlog_bytes", _G, "What waits for the rate of multicast."),
    Family("openmsmq_replication_epoch", _G, "The epoch of a primary: counts take-overs."),
    Family("openmsmq_replication_log_records", _G, "Records that the database keeps."),
    Family("openmsmq_replication_lag_seconds", _G, "Lag of the best standby; or without one."),
    Family("openmsmq_replication_problem", _G, "Whether that could not be looked at."),
    Family("openmsmq_standby_lag_seconds", _G, "How far a standby is behind.", ("standby",)),
    Family("openmsmq_standby_lag_records", _G, "How many records it lacks.", ("standby",)),
    Family("openmsmq_standby_silent_seconds", _G, "When it said so last.", ("standby",)),
    Family("openmsmq_standby_differing_files", _G, "Files unlike the primary's.", ("standby",)),
    Family("openmsmq_queue_messages", _G, "Messages of a queue.", _QUEUE),
    Family("openmsmq_queue_bytes", _G, "Bytes of them.", _QUEUE),
    Family("openmsmq_queue_oldest_age_seconds", _G, "Age of the oldest; 0 without any.", _QUEUE),
    Family("openmsmq_queue_in_messages_total", _C, "Messages that came in.", _QUEUE),
    Family("openmsmq_queue_in_bytes_total", _C, "Bytes of them.", _QUEUE),
    Family("openmsmq_queue_out_messages_total", _C, "Messages that were received.", _QUEUE),
    Family("openmsmq_queue_out_bytes_total", _C, "Bytes of them.", _QUEUE),
    Family("openmsmq_queue_expired_messages_total", _C, "Messages whose time was up.", _QUEUE),
    Family("openmsmq_queue_purged_messages_total", _C, "Messages that were purged.", _QUEUE),
    Family("openmsmq_queue_journal_messages", _G, "Messages in its journal.", _QUEUE),
    Family("openmsmq_queue_open_handles", _G, "How often it is open.", _QUEUE),
    Family("openmsmq_queue_waiting_reads", _G, "Reads that wait for a message.", _QUEUE),
    Family("openmsmq_outgoing_messages", _G, "Messages for a queue elsewhere.", _QUEUE),
    Family("openmsmq_outgoing_bytes", _G, "Bytes of them.", _QUEUE),
    Family("openmsmq_outgoing_unread_messages", _G, "Arrived; their end is not heard of.", _QUEUE),
    Family("openmsmq_outgoing_retries", _G, "How often it is being sent again.", _QUEUE),
    Family("openmsmq_outgoing_queues", _G, "Outgoing queues, by their state.", ("state",)),
    Family(
        "openmsmq_outgoing_failing_queues",
        _G,
        "Those with messages whose last attempt failed, and how.",
        ("reason",),
    ),
    Family(
        "openmsmq_sessions",
        _G,
        "Sessions with other queue managers.",
        ("direction", "tls", "waits_for"),
    ),
    Family("openmsmq_session_window_packets", _G, "Packets that may be in flight in all sessions."),
    Family("openmsmq_session_in_flight_packets", _G, "Packets that others have not acknowledged."),
    Family("openmsmq_session_unsettled_packets", _G, "Packets that we have not acknowledged yet."),
)
"""All metrics, in the order of the text."""

_STATES: Final = tuple(sorted({state.management_text.lower() for state in OutgoingQueueState}))
_FAILURES: Final = {
    int(status): status.name.lower() for status in ConnectionStatus if status.is_failure
}


class _Samples:
    """Collects the values of metrics."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {family.name: [] for family in FAMILIES}

    def add(self, name: str, value: float, labels: Labels = _NONE, part: str = "") -> None:
        """Note a value; one below 0 is not known."""
        if value >= 0:
            self._lines[name].append(f"{name}{part}{_label_text(labels)} {_number(value)}\n")

    def text(self) -> str:
        """Return all that were noted, each kind together behind its words."""
        return "".join(
            f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
            + "".join(self._lines[family.name])
            for family in FAMILIES
            if self._lines[family.name]
        )


def metrics_text(
    status: api.Status,
    page: api.QueuePage,
    outgoing: Sequence[api.OutgoingStatus],
    sessions: Sequence[api.SessionStatus],
) -> str:
    """Return what a queue manager has told, as metrics.

    `page` begins with the first queue by name and has totals; what it does not show is added up.
    """
    samples = _Samples()
    _add_status(samples, status)
    _add_queues(samples, page, status.now_s)
    _add_outgoing(samples, outgoing)
    _add_sessions(samples, sessions)
    return samples.text()


def _add_status(samples: _Samples, status: api.Status) -> None:
    vitals = status.vitals
    names = {"manager": status.manager_name, "software": status.software}
    samples.add("openmsmq_info", 1, names)
    for name, value in (
        ("up", 1),
        ("ready", not status.store_problem),
        ("online", status.online),
        ("start_time_seconds", status.started_time_s),
        ("queues", status.queue_count),
        ("messages", status.message_count),
        ("message_bytes", status.message_bytes),
        ("quota_bytes", _limit_bytes(status.quota_kb)),
        ("express_memory_bytes", status.express_memory_bytes),
        ("express_memory_limit_bytes", _limit_bytes(status.express_memory_kb)),
        ("connections", status.connection_count),
        ("transactions", status.transaction_count),
        ("transactions_in_doubt", status.in_doubt_count),
        ("store_bytes", vitals.store_bytes),
        ("disk_free_bytes", vitals.free_disk_bytes),
        ("disk_bytes", vitals.disk_bytes),
        ("store_problem", bool(status.store_problem)),
        ("directory_problem", bool(status.directory_problem)),
        ("commit_last_seconds", vitals.commit_last_us / 1e6),
        ("commit_worst_seconds", vitals.commit_worst_us / 1e6),
        ("loop_lag_seconds", vitals.lag_us / 1e6),
        ("loop_lag_worst_seconds", vitals.lag_worst_us / 1e6),
        ("connect_failures_total", status.unreached_count),
        ("resends_total", status.resend_count),
    ):
        samples.add(f"openmsmq_{name}", value)
    samples.add("openmsmq_commit_seconds", vitals.commit_total_us / 1e6, part="_sum")
    samples.add("openmsmq_commit_seconds", vitals.commit_count, part="_count")
    for answer, count in vitals.http_answers.items():
        samples.add("openmsmq_http_answers_total", count, {"status": answer})
    for event, count in vitals.multicast_packets.items():
        samples.add("openmsmq_multicast_packets_total", count, {"event": event})
    samples.add("openmsmq_multicast_sources", vitals.multicast_sources)
    samples.add("openmsmq_multicast_backlog_bytes", vitals.multicast_backlog_bytes)
    if vitals.replication is not None:
        _add_replication(samples, vitals.replication)
    for alarm in status.alarms:
        samples.add("openmsmq_alarms_raised", alarm.raised_count, {"alarm": alarm.name})
    for notice in status.notices:
        labels = {"event": notice.event, "reason": notice.reason}
        samples.add("openmsmq_notices_total", notice.count, labels)


def _add_replication(samples: _Samples, found: api.Replication) -> None:
    samples.add("openmsmq_replication_problem", bool(found.problem))
    if found.problem:
        return
    samples.add("openmsmq_replication_epoch", found.epoch)
    samples.add("openmsmq_replication_log_records", found.log_records)
    samples.add("openmsmq_replication_lag_seconds", found.lag_s)
    for standby in found.standbys:
        labels = {"standby": standby.name}
        for name, value in (
            ("lag_seconds", standby.lag_s),
            ("lag_records", found.record - standby.record),
            ("silent_seconds", standby.silent_s),
            ("differing_files", len(standby.differing)),
        ):
            samples.add(f"openmsmq_standby_{name}", value, labels)


def _add_queues(samples: _Samples, page: api.QueuePage, now_s: int) -> None:
    shown = page.queues[:QUEUES_MAX_COUNT]
    for queue in shown:
        age_s = max(0, now_s - queue.oldest_time_s) if queue.oldest_time_s else 0
        labels = {"queue": queue.path_name}
        for name, value in (
            *_counted(queue),
            ("oldest_age_seconds", age_s),
            ("journal_messages", queue.journal_message_count),
            ("open_handles", queue.open_count),
            ("waiting_reads", queue.waiting_count),
        ):
            samples.add(f"openmsmq_queue_{name}", value, labels)
    if page.total_count > len(shown):
        named = [dict(_counted(queue)) for queue in shown]
        for name, value in _counted(page.totals):
            left = value - sum(found[name] for found in named)
            samples.add(f"openmsmq_queue_{name}", max(0, left), {"queue": OTHER})


def _counted(found: api.QueueStatus | api.QueueTotals) -> tuple[tuple[str, int], ...]:
    """Return what can be added up of several queues."""
    return (
        ("messages", found.message_count),
        ("bytes", found.message_bytes),
        ("in_messages_total", found.in_count),
        ("in_bytes_total", found.in_bytes),
        ("out_messages_total", found.out_count),
        ("out_bytes_total", found.out_bytes),
        ("expired_messages_total", found.expired_count),
        ("purged_messages_total", found.purged_count),
    )


def _add_outgoing(samples: _Samples, outgoing: Sequence[api.OutgoingStatus]) -> None:
    by_name = sorted(outgoing, key=lambda queue: queue.format_name)
    shown, others = by_name[:QUEUES_MAX_COUNT], by_name[QUEUES_MAX_COUNT:]
    for queue in shown:
        _add_waiting(samples, queue.format_name, [queue])
    if others:
        _add_waiting(samples, OTHER, others)
    states = Counter(queue.state.lower() for queue in outgoing)
    for state in _STATES:
        samples.add("openmsmq_outgoing_queues", states[state], {"state": state})
    failures = Counter(
        _FAILURES.get(queue.history[-1].status, "")
        for queue in outgoing
        if queue.message_count and queue.history
    )
    for reason in _FAILURES.values():
        samples.add("openmsmq_outgoing_failing_queues", failures[reason], {"reason": reason})


def _add_waiting(samples: _Samples, name: str, queues: Iterable[api.OutgoingStatus]) -> None:
    labels = {"queue": name}
    samples.add("openmsmq_outgoing_messages", sum(q.message_count for q in queues), labels)
    samples.add("openmsmq_outgoing_bytes", sum(q.message_bytes for q in queues), labels)
    samples.add("openmsmq_outgoing_unread_messages", sum(q.unread_count for q in queues), labels)
    samples.add("openmsmq_outgoing_retries", sum(q.resend_count for q in queues), labels)


def _add_sessions(samples: _Samples, sessions: Sequence[api.SessionStatus]) -> None:
    found = Counter(
        (
            "dialled" if session.is_dialled else "accepted",
            "yes" if session.proven else "no",
            session.waits_for,
        )
        for session in sessions
    )
    for direction in ("accepted", "dialled"):
        for tls in ("no", "yes"):
            for wait in SessionWait:
                labels = {"direction": direction, "tls": tls, "waits_for": wait.value}
                count = found[direction, tls, wait.value]
                samples.add("openmsmq_sessions", count, labels)
    in_flight = sum(session.in_flight_count for session in sessions)
    unsettled = sum(session.unsettled_count for session in sessions)
    samples.add("openmsmq_session_window_packets", sum(one.window for one in sessions))
    samples.add("openmsmq_session_in_flight_packets", in_flight)
    samples.add("openmsmq_session_unsettled_packets", unsettled)


def _limit_bytes(limit_kb: int) -> int:
    return -1 if limit_kb == UNLIMITED_KB else limit_kb * 1024


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"


def _label_text(labels: Labels) -> str:
    if not labels:
        return ""
    parts = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + parts + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
