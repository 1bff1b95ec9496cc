"""All pages of the console, by name: who looks at each of them goes by this list.

Every page that answers with HTML is in it, or `test_tour.py` fails. The pictures of the
documentation have these names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from tests.console.people import Place, queue_path

PICTURES: Final = Path(__file__).parents[2] / "docs/guides/console"
"""Where the pictures are that the documentation shows."""

KINDS: Final = ("light", "dark", "phone")

ELSEWHERE: Final = r"DIRECT=TCP:127.0.0.99\private$\invoices"
ORDERS: Final = r"private$\orders"
BYTES: Final = r"private$\objects"


class Stop(NamedTuple):
    """A page of the tour."""

    name: str
    route: str
    """The route that answers; of `PAGES`, or of the application itself."""


TOUR: Final = (
    Stop("sign-in", "/sign-in"),
    Stop("sign-in-link", "/sign-in/{link}"),
    Stop("overview", "/"),
    Stop("queues", "/queues"),
    Stop("queue", "/queues/{queue}"),
    Stop("properties", "/queues/{queue}/properties"),
    Stop("rights", "/queues/{queue}/rights"),
    Stop("message", "/queues/{queue}/messages/{message}"),
    Stop("message-bytes", "/queues/{queue}/messages/{message}"),
    Stop("send", "/queues/{queue}/send"),
    Stop("edit", "/queues/{queue}/messages/{message}/edit"),
    Stop("copy", "/queues/{queue}/messages/{message}/copy"),
    Stop("move", "/queues/{queue}/messages/{message}/move"),
    Stop("delete", "/queues/{queue}/messages/{message}/delete"),
    Stop("purge", "/queues/{queue}/purge"),
    Stop("dead-letters", "/dead-letters"),
    Stop("replay", "/dead-letters/replay"),
    Stop("outgoing", "/outgoing"),
    Stop("outgoing-queue", "/outgoing/{queue}"),
    Stop("pause", "/outgoing/{queue}/pause"),
    Stop("resume", "/outgoing/{queue}/resume"),
    Stop("resend", "/outgoing/{queue}/resend"),
    Stop("path", "/path"),
    Stop("map", "/map"),
    Stop("in-doubt", "/transactions"),
    Stop("commit", "/transactions/{unit}/commit"),
    Stop("abort", "/transactions/{unit}/abort"),
    Stop("connections", "/connections"),
    Stop("connection", "/connections/{connection}"),
    Stop("close", "/connections/{connection}/close"),
    Stop("sessions", "/sessions"),
    Stop("session", "/sessions/{session}"),
    Stop("sequences", "/sequences"),
    Stop("audit", "/audit"),
    Stop("configuration", "/configuration"),
    Stop("status", "/status"),
    Stop("error", ""),
)

DOWNLOADS: Final = {
    "/queues/{queue}/export",
    "/queues/{queue}/messages/{message}/body",
    "/queues/{queue}/messages/{message}/packet",
}
"""Routes that answer with a file: nobody looks at a page there."""


def addresses(place: Place) -> dict[str, str]:
    """Return where each page of the tour is, in a place where there is something to see on all."""
    with place.manager() as manager:
        order = f"{queue_path(ORDERS)}/messages/{manager.queue(ORDERS).peek(0).lookup_id}"
        letter = manager.queue("system$;deadxact").peek(0)
        unit = manager.in_doubt()[0].unit_of_work.hex()
        found = manager.connections()
        other = next(one for one in found if one.queues and not one.is_own)
        session = max(manager.sessions(), key=lambda one: one.sent_count).number
        picture = manager.queue(BYTES).peek(0).lookup_id
    letters = "/dead-letters/replay?queue=system$;deadxact&reason=NACK_QUEUE_PURGED"
    out = queue_path(ELSEWHERE).replace("/queues/", "/outgoing/")
    return {
        "sign-in": "/sign-in",
        "sign-in-link": f"/sign-in/{place.console.server.console.book.link}",
        "overview": "/",
        "queues": "/queues?sort=in&down=1",
        "queue": queue_path(ORDERS),
        "properties": f"{queue_path(ORDERS)}/properties",
        "rights": f"{queue_path(ORDERS)}/rights",
        "message": order,
        "message-bytes": f"{queue_path(BYTES)}/messages/{picture}",
        "send": f"{queue_path(ORDERS)}/send",
        **{name: f"{order}/{name}" for name in ("edit", "copy", "move", "delete")},
        "purge": f"{queue_path(ORDERS)}/purge",
        "dead-letters": "/dead-letters",
        "replay": f"{letters}&destination={letter.destination}",
        "outgoing": "/outgoing",
        "outgoing-queue": out,
        **{name: f"{out}/{name}" for name in ("pause", "resume", "resend")},
        "path": f"/path?id={letter.message_id}",
        "map": "/map",
        "in-doubt": "/transactions",
        "commit": f"/transactions/{unit}/commit",
        "abort": f"/transactions/{unit}/abort",
        "connections": "/connections",
        "connection": f"/connections/{other.number}",
        "close": f"/connections/{other.number}/close",
        "sessions": "/sessions",
        "session": f"/sessions/{session}",
        "sequences": "/sequences",
        "audit": "/audit",
        "configuration": "/configuration",
        "status": "/status",
        "error": "/queues/nothing-of-ours",
    }
