"""The configuration in force: each value, where it comes from, and what waits for a restart.

What is secret of a value the queue manager leaves out before it answers: it never comes here.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from openmsmq.console import limits
from openmsmq.console.visit import Page, Visit

_SOURCES: Final = {
    "default": "default",
    "file": "the file",
    "environment": "the environment",
    "flag": "the command line",
    "program": "the program that started it",
    "request": "somebody's request, until the next start",
}


async def show_configuration(visit: Visit) -> Response:
    """Show the values whose keys have a text in them; by wish those that are not as by default."""
    wanted = visit.asked("find", characters_max=limits.FILTER_MAX_CHARACTERS).strip()
    is_changed = visit.asked("changed") == "1"
    found = await visit.manager.configuration()
    chosen = [
        one
        for one in found.settings
        if wanted.lower() in one.key.lower() and not (is_changed and one.is_default)
    ]
    return visit.page(
        "configuration.html",
        file=found.file,
        rows=chosen[: limits.SETTINGS_SHOWN_COUNT],
        total_count=len(chosen),
        waiting_count=sum(bool(one.waiting) for one in found.settings),
        wanted=wanted,
        is_changed=is_changed,
        source=lambda one: _SOURCES.get(one.source, one.source),
    )


PAGES: Final = (Page("/configuration", show_configuration),)
