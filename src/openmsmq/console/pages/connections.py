"""Who is connected: other queue managers by sessions, and applications by connections."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from openmsmq.api.messages import ConnectedApplication
from openmsmq.console import limits
from openmsmq.console.names import number_in
from openmsmq.console.pages.confirming import Confirmation
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.console.words import count, time
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode


async def show_sessions(visit: Visit) -> Response:
    """Show the sessions with other queue managers."""
    found = await visit.manager.sessions()
    return visit.page(
        "sessions.html",
        rows=found[: limits.CONNECTIONS_SHOWN_COUNT],
        total_count=len(found),
        now_s=await visit.session.manager_time_s(),
        guid=lambda one: str(Guid(one.manager)),
    )


async def show_connections(visit: Visit) -> Response:
    """Show the connections of applications."""
    found = await visit.manager.connections()
    return visit.page(
        "connections.html",
        rows=found[: limits.CONNECTIONS_SHOWN_COUNT],
        total_count=len(found),
        now_s=await visit.session.manager_time_s(),
        access=lambda one: AccessMode(one.access).name.lower().replace("_", " "),
    )


async def _connection(visit: Visit) -> ConnectedApplication:
    number = number_in(visit.request.path_params["connection"])
    for one in await visit.manager.connections():
        if one.number == number:
            return one
    raise BadForm("This connection is not there any more.", 404)


async def show_close(visit: Visit) -> Response:
    """Ask before a connection is ended."""
    one = await _connection(visit)
    return visit.page(
        "confirm.html",
        asked=Confirmation(
            title="End this connection?",
            sentence="What it has not committed is undone. A program may connect again at once.",
            facts=(
                ("Who", one.caller),
                ("From", one.peer),
                ("Since", f"{time(one.since_s)} UTC"),
                ("Open queues", count(one.queue_count)),
                ("Transactions", count(one.transaction_count)),
            ),
            button="End the connection",
            back="/connections",
        ),
    )


async def close(visit: Visit) -> Response:
    """End a connection."""
    one = await _connection(visit)
    if one.is_own:
        raise BadForm("This is the connection of your own session: sign out instead.", 409)
    await visit.manager.close_connection(one.number)
    return visit.go("/connections", f"Ended the connection of {one.caller}.")


PAGES: Final = (
    Page("/sessions", show_sessions),
    Page("/connections", show_connections),
    Page("/connections/{connection}/close", show_close, close),
)
