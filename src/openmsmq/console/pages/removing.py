"""What cannot be undone: deleting a message, and purging a queue."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from openmsmq.console.pages.confirming import Confirmation
from openmsmq.console.pages.message import peeked
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.console.words import count, some


async def show_delete(visit: Visit) -> Response:
    """Ask before a message is deleted."""
    message = await peeked(visit)
    return visit.page(
        "confirm.html",
        asked=Confirmation(
            title="Delete this message?",
            sentence="It is taken out as if somebody had received it, and nobody else gets it.",
            facts=(
                ("Queue", visit.queue_name),
                ("Message", str(message.message_id)),
                ("Label", message.label),
            ),
            button="Delete the message",
            back=f"{visit.queue_path()}/messages/{visit.lookup_id}",
            fields=(("message_id", str(message.message_id)),),
        ),
    )


async def delete(visit: Visit) -> Response:
    """Take a message out of its queue."""
    async with visit.queue as queue:
        found = await queue.peek_by_lookup_id(visit.lookup_id)
        if str(found.message_id) != visit.form.get("message_id"):
            raise BadForm("The message is not the one that you looked at: nothing was done.", 409)
        await queue.receive_by_lookup_id(visit.lookup_id)
    return visit.go(visit.queue_path(), f"Deleted {found.message_id}.")


async def show_purge(visit: Visit) -> Response:
    """Ask before a queue is purged: who does it types its name."""
    status = await visit.queue.properties()
    return visit.page(
        "confirm.html",
        asked=Confirmation(
            title=f"Purge {visit.queue_name}?",
            sentence="All its messages are deleted, for good.",
            facts=(("Queue", status.path_name), ("Messages", count(status.message_count))),
            button="Purge the queue",
            back=visit.queue_path(),
            typed=visit.queue_name,
        ),
    )


async def purge(visit: Visit) -> Response:
    """Delete all messages of a queue."""
    if visit.form.get("typed", "").strip() != visit.queue_name:
        raise BadForm("The name that you typed is not that of the queue: nothing was deleted.")
    async with visit.queue as queue:
        deleted = await queue.purge()
    return visit.go(visit.queue_path(), f"Deleted {some(deleted, 'message')}.")


PAGES: Final = (
    Page("/queues/{queue}/messages/{message}/delete", show_delete, delete),
    Page("/queues/{queue}/purge", show_purge, purge),
)
