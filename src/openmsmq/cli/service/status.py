"""`openmsmq status`: how a queue manager is."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

import msgspec
import typer

from openmsmq.api.messages import AlarmStatus, Replication, Status, Vitals
from openmsmq.cli.options.connecting import EXIT_FAILED, connected, target_of
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.queues import remote
from openmsmq.cli.queues.outgoing import online_text
from openmsmq.cli.views.console import fail, say_error
from openmsmq.cli.views.output import (
    print_facts,
    print_json,
    print_result,
    quota_value,
    size_text,
    time_text,
)
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import Guid

_EVENTS: Final = {
    "message-dropped": "messages dropped",
    "message-left": "messages left to who brought them",
    "report-dropped": "reports dropped",
    "identity-refused": "identities refused",
    "acknowledgment-refused": "acknowledgments refused",
    "sequence-refused": "sequences refused",
}


def status(
    context: typer.Context,
    ready: Annotated[
        bool,
        typer.Option(
            "--ready",
            help="Only say whether it takes messages, as the probe of a container does; exit "
            "code 1 if its store takes none.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show how the queue manager is."""
    if target_of(context).remote:
        if ready:
            fail("--ready asks one of our own queue managers: leave out --remote.")
        remote.show_machine(context, json=json)
        return
    with connected(context) as manager:
        found = manager.status()
        address = manager.settings.address
    if ready:
        if found.store_problem:
            say_error(f"{found.manager_name} {_store_text(found)}")
            raise typer.Exit(EXIT_FAILED)
        print_result({"ready": True}, f"{found.manager_name} {_store_text(found)}", json=json)
        return
    uptime_s = max(0, found.now_s - found.started_time_s)
    if json:
        print_json(
            {
                "manager_name": found.manager_name,
                "manager_id": str(Guid(found.manager)),
                "address": address,
                "software": found.software,
                "roles": found.roles,
                "started_time": time_text(found.started_time_s),
                "uptime_s": uptime_s,
                "queue_count": found.queue_count,
                "message_count": found.message_count,
                "message_bytes": found.message_bytes,
                "quota_kb": quota_value(found.quota_kb),
                "express_memory_kb": quota_value(found.express_memory_kb),
                "express_memory_bytes": found.express_memory_bytes,
                "connection_count": found.connection_count,
                "transaction_count": found.transaction_count,
                "online": found.online,
                "outgoing_count": found.outgoing_count,
                "directory": found.directory,
                "directory_problem": found.directory_problem,
                "directory_number": found.directory_number,
                "store_problem": found.store_problem,
                "store_problem_since": (
                    time_text(found.store_problem_since_s) if found.store_problem else None
                ),
                "in_doubt_count": found.in_doubt_count,
                "session_count": found.session_count,
                "unreached_count": found.unreached_count,
                "resend_count": found.resend_count,
                "staged_bytes": found.staged_bytes,
                **_vitals_object(found.vitals),
                "replication": _replication_object(found.vitals.replication),
                "alarms": [_alarm_object(alarm) for alarm in found.alarms],
                "notices": [
                    {"event": told.event, "reason": told.reason, "count": told.count}
                    for told in found.notices
                ],
            }
        )
        return
    print_facts(
        f"{found.manager_name} at {address}",
        [
            *_alarm_lines(found),
            ("identifier", str(Guid(found.manager))),
            ("software", found.software),
            ("roles", ", ".join(found.roles)),
            ("running for", str(timedelta(seconds=uptime_s))),
            ("queues", str(found.queue_count)),
            ("messages", f"{found.message_count} ({size_text(found.message_bytes)})"),
            ("quota", _quota_text(found.quota_kb)),
            ("express memory", _memory_text(found)),
            ("connections", str(found.connection_count)),
            ("transactions", _transactions_text(found)),
            ("transfer", online_text(found.online)),
            ("sessions", _sessions_text(found)),
            ("outgoing queues", f"{found.outgoing_count} with messages"),
            ("directory", _directory_text(found)),
            ("store", _store_text(found)),
            *_replication_lines(found.vitals.replication),
            *_vital_lines(found.vitals),
            *_notice_lines(found),
        ],
    )


def _alarm_object(alarm: AlarmStatus) -> dict[str, object]:
    return {
        "name": alarm.name,
        "measure": alarm.measure,
        "threshold": alarm.threshold,
        "raised_count": alarm.raised_count,
        "raised": [
            {
                "queue": raised.queue or None,
                "value": raised.value,
                "since": time_text(raised.since_s),
                "text": raised.text,
            }
            for raised in alarm.raised
        ],
    }


def _alarm_lines(found: Status) -> list[tuple[str, str]]:
    """Return what is raised, a line for each; one line for all if nothing is."""
    if not found.alarms:
        return []
    lines: list[tuple[str, str]] = []
    for alarm in found.alarms:
        lines += [
            (f"alarm {alarm.name}", f"{raised.text}, since {time_text(raised.since_s)}")
            for raised in alarm.raised
        ]
        if unseen := alarm.raised_count - len(alarm.raised):
            lines.append((f"alarm {alarm.name}", f"{unseen} of queues that you may not see"))
    return lines or [("alarms", f"none of {len(found.alarms)} is raised")]


def _notice_lines(found: Status) -> list[tuple[str, str]]:
    """Return what was dropped or refused since the start: a line for each kind, most first."""
    by_event: dict[str, list[tuple[int, str]]] = {}
    for told in found.notices:
        by_event.setdefault(told.event, []).append((told.count, told.reason))
    return [
        (
            _EVENTS.get(event, event),
            ", ".join(f"{count} ({reason})" for count, reason in sorted(counts, reverse=True)),
        )
        for event, counts in by_event.items()
    ]


def _replication_object(found: Replication | None) -> dict[str, object] | None:
    """Return who else has what is here, for programs; None for one on one computer."""
    if found is None:
        return None
    standbys = [msgspec.structs.asdict(each) for each in found.standbys]
    return {**msgspec.structs.asdict(found), "role": "primary", "standbys": standbys}


def _replication_lines(found: Replication | None) -> list[tuple[str, str]]:
    """Return who else has what is here: a line for the log, and one for each standby."""
    if found is None:
        return []
    if found.problem:
        return [("replication", f"primary {found.member}; {found.problem}")]
    lines = [
        (
            "replication",
            f"primary {found.member}, epoch {found.epoch}, record {found.record}; the log has "
            f"{found.log_records}",
        )
    ]
    for one in found.standbys:
        behind = f"{found.record - one.record} records and {one.lag_s} s behind"
        text = f"{behind}, as of {one.silent_s} s ago"
        if one.differing:
            text += f"; files differ: {', '.join(one.differing)}"
        lines.append((f"standby {one.name}", text))
    return lines if found.standbys else [*lines, ("standby", f"none for {found.lag_s} s")]


def _vitals_object(vitals: Vitals) -> dict[str, object]:
    """Return what the server has measured, for programs; None where it has not."""
    return {
        name: None if isinstance(value, int) and value < 0 else value
        for name, value in msgspec.structs.asdict(vitals).items()
        if name != "replication"
    }


def _vital_lines(vitals: Vitals) -> list[tuple[str, str]]:
    """Return what the server has measured, as far as it has."""
    lines = []
    if vitals.store_bytes >= 0:
        lines.append(("size of the store", size_text(vitals.store_bytes)))
    if vitals.free_disk_bytes >= 0:
        lines.append(("free on its disk", size_text(vitals.free_disk_bytes)))
    if vitals.commit_count:
        last, worst = _milliseconds(vitals.commit_last_us), _milliseconds(vitals.commit_worst_us)
        lines.append(("commits", f"{vitals.commit_count}; the last took {last}, the worst {worst}"))
    if vitals.lag_us >= 0:
        last, worst = _milliseconds(vitals.lag_us), _milliseconds(vitals.lag_worst_us)
        lines.append(("event loop", f"late by {last}, at worst by {worst}"))
    return lines


def _milliseconds(time_us: int) -> str:
    return f"{time_us / 1000:.1f} ms"


def _transactions_text(found: Status) -> str:
    in_doubt = f", {found.in_doubt_count} in doubt" if found.in_doubt_count else ""
    staged = f", {size_text(found.staged_bytes)} to send" if found.staged_bytes else ""
    return f"{found.transaction_count}{in_doubt}{staged}"


def _sessions_text(found: Status) -> str:
    troubles = [
        (found.unreached_count, "attempts failed"),
        (found.resend_count, "messages sent again"),
    ]
    return "; ".join(
        [str(found.session_count), *(f"{count} {words}" for count, words in troubles if count)]
    )


def _memory_text(found: Status) -> str:
    limit_kb = quota_value(found.express_memory_kb)
    used = size_text(found.express_memory_bytes)
    return used if limit_kb is None else f"{used} of {size_text(limit_kb * 1024)}"


def _quota_text(quota_kb: int) -> str:
    limit_kb = quota_value(quota_kb)
    return "none" if limit_kb is None else size_text(limit_kb * 1024)


def _directory_text(found: Status) -> str:
    if found.directory == DirectoryRole.NONE.value:
        return "none: it works in workgroup mode"
    if found.directory_problem:
        return (
            f"{found.directory}, up to change {found.directory_number}; {found.directory_problem}"
        )
    return f"{found.directory}, up to change {found.directory_number}"


def _store_text(found: Status) -> str:
    if not found.store_problem:
        return "takes messages"
    return f"takes nothing since {time_text(found.store_problem_since_s)}: {found.store_problem}"
