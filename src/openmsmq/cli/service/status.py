"""`openmsmq status`: how a queue manager is."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import typer

from openmsmq.api.messages import Status
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.queues.outgoing import online_text
from openmsmq.cli.views.output import print_facts, print_json, quota_value, size_text, time_text
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import Guid

_EVENTS: Final = {
    "message-dropped": "messages dropped",
    "report-dropped": "reports dropped",
    "identity-refused": "identities refused",
    "acknowledgment-refused": "acknowledgments refused",
    "sequence-refused": "sequences refused",
}


def status(context: typer.Context, json: JsonOption = False) -> None:
    """Show how the queue manager is."""
    with connected(context) as manager:
        found = manager.status()
        address = manager.settings.address
    uptime_s = max(0, found.now_s - found.started_time_s)
    if json:
        print_json(
            {
                "manager_name": found.manager_name,
                "manager_id": str(Guid(found.manager)),
                "address": address,
                "software": found.software,
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
            ("identifier", str(Guid(found.manager))),
            ("software", found.software),
            ("running for", str(timedelta(seconds=uptime_s))),
            ("queues", str(found.queue_count)),
            ("messages", f"{found.message_count} ({size_text(found.message_bytes)})"),
            ("quota", _quota_text(found.quota_kb)),
            ("express memory", _memory_text(found)),
            ("connections", str(found.connection_count)),
            ("transactions", str(found.transaction_count)),
            ("transfer", online_text(found.online)),
            ("outgoing queues", f"{found.outgoing_count} with messages"),
            ("directory", _directory_text(found)),
            ("store", _store_text(found)),
            *_notice_lines(found),
        ],
    )


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
