"""The first page: what needs somebody, and the counts; and how the queue manager is."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from openmsmq.console.asking import manager_views
from openmsmq.console.visit import Page, Visit
from openmsmq.model.identity import Guid
from openmsmq.security.access.sids import Sid


async def show_overview(visit: Visit) -> Response:
    """Show what needs somebody first."""
    found = await manager_views.overview(visit.manager)
    visit.history.note(found.fullest)
    return visit.page("overview.html", found=found)


async def show_status(visit: Visit) -> Response:
    """Show how the queue manager is, and whom it takes the viewer for."""
    status = await visit.manager.status()
    caller = await visit.manager.caller()
    return visit.page(
        "status.html",
        status=status,
        identifier=str(Guid(status.manager)),
        address=visit.manager.settings.address,
        caller=caller,
        user=str(Sid(caller.user)),
    )


PAGES: Final = (Page("/", show_overview), Page("/status", show_status))
