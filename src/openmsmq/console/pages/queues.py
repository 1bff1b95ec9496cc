"""The list of queues: by page, with a filter and an order."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from openmsmq.console import limits
from openmsmq.console.asking import manager_views
from openmsmq.console.visit import Page, Visit


async def show_queues(visit: Visit) -> Response:
    """Show a page of the queues."""
    wanted = visit.asked("find", characters_max=limits.FILTER_MAX_CHARACTERS)
    sort = visit.asked("sort", "name")
    sort = sort if sort in manager_views.SORTS else "name"
    descending = visit.asked("down") == "1"
    found = await manager_views.list_queues(
        visit.manager,
        wanted=wanted,
        sort=sort,
        descending=descending,
        offset=visit.asked_number("from"),
    )
    visit.history.note(found.rows)

    def way(**changes: object) -> str:
        """Return where the same list is with something changed."""
        values = {"find": wanted, "sort": sort, "down": "1" if descending else ""}
        values |= {key: str(value) for key, value in changes.items()}
        return f"/queues?{urlencode({key: value for key, value in values.items() if value})}"

    return visit.page(
        "queues.html",
        found=found,
        wanted=wanted,
        sort=sort,
        descending=descending,
        way=way,
        now_s=await visit.session.manager_time_s(),
        system_queues=manager_views.SYSTEM_QUEUES,
    )


PAGES: Final = (Page("/queues", show_queues),)
