"""Who is connected: other queue managers by sessions, with the sequences of transactional messages
that they send, and applications by connections."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from openmsmq.api.messages import ConnectedApplication, OpenHandle
from openmsmq.console import limits
from openmsmq.console.names import number_in
from openmsmq.console.pages.confirming import Confirmation
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.console.words import count, time
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.security.access.sids import Sid

_SHARES: Final = {
    ShareMode.DENY_NONE: "with everybody",
    ShareMode.DENY_RECEIVE: "others may not receive",
}


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


async def show_session(visit: Visit) -> Response:
    """Show one session, and the sequences of transactional messages that go out through it."""
    number = number_in(visit.request.path_params["session"])
    for one in await visit.manager.sessions():
        if one.number == number:
            break
    else:
        raise BadForm("This session is not there any more.", 404)
    names = set(one.queues)
    leaving = [each for each in await visit.manager.outgoing() if each.format_name in names]
    leaving.sort(key=lambda each: (-each.unacknowledged_count, each.format_name))
    return visit.page(
        "session.html",
        one=one,
        guid=str(Guid(one.manager)),
        rows=leaving[: limits.OUTGOING_SHOWN_COUNT],
        now_s=await visit.session.manager_time_s(),
    )


async def show_sequences(visit: Visit) -> Response:
    """Show the sequences of transactional messages that come from other queue managers."""
    wanted = visit.asked("find", characters_max=limits.FILTER_MAX_CHARACTERS).strip()
    only_rejected = visit.asked("rejected") == "1"
    after = visit.asked("after", characters_max=limits.AFTER_MAX_CHARACTERS)
    try:
        place = bytes.fromhex(after)
    except ValueError:
        raise BadForm("There is no such page.", 404) from None
    page = await visit.manager.incoming_sequences(
        after=place,
        limit=limits.SEQUENCES_PAGE_COUNT,
        filter=wanted,
        only_rejected=only_rejected,
    )
    return visit.page(
        "sequences.html",
        rows=page.sequences,
        total_count=page.total_count,
        after=page.after.hex(),
        is_first=not after,
        wanted=wanted,
        only_rejected=only_rejected,
        guid=lambda one: str(Guid(one.manager)),
    )


def _access(one: OpenHandle) -> str:
    return AccessMode(one.access).name.lower().replace("_", " ")


async def show_connections(visit: Visit) -> Response:
    """Show the connections of applications."""
    found = await visit.manager.connections()
    return visit.page(
        "connections.html",
        rows=found[: limits.CONNECTIONS_SHOWN_COUNT],
        total_count=len(found),
        now_s=await visit.session.manager_time_s(),
        access=_access,
    )


async def show_connection(visit: Visit) -> Response:
    """Show one connection: what it has open, and where its reads wait."""
    one = await _connection(visit)
    return visit.page(
        "connection.html",
        one=one,
        rows=sorted(one.queues, key=lambda each: (-each.waiting_count, each.handle)),
        now_s=await visit.session.manager_time_s(),
        access=_access,
        share=lambda each: _SHARES[ShareMode(each.share)],
        user=str(Sid(one.user)),
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
    Page("/sessions/{session}", show_session),
    Page("/sequences", show_sequences),
    Page("/connections", show_connections),
    Page("/connections/{connection}", show_connection),
    Page("/connections/{connection}/close", show_close, close),
)
