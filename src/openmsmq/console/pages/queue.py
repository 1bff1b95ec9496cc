"""One queue: what it is, who may do what with it, and its messages page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import BytesIO
from typing import Final

import msgspec
from starlette.responses import Response, StreamingResponse

from openmsmq.aio import Queue
from openmsmq.api.messages import QueueStatus
from openmsmq.client.accounts import WHO_FORMS, account_text, find_sid
from openmsmq.client.messages.queue_file import Origin, QueueFileWriter
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.console import limits
from openmsmq.console.asking import manager_views
from openmsmq.console.asking.rights import MEANINGS, rights_in_words
from openmsmq.console.bodies.downloads import attachment
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.model.errors import MsmqError
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.queue import AccessMode, QueuePrivacy
from openmsmq.wire.errors import DecodeError

_PREVIEW_CHARACTERS: Final = 200


async def show_queue(visit: Visit) -> Response:
    """Show a queue and a page of its messages."""
    async with visit.queue as queue:
        status = await queue.properties()
        visit.history.note([status])
        stop = status.last_arrival_number + 1
        start = visit.asked_number("from")
        wanted = visit.asked("find", characters_max=limits.FILTER_MAX_CHARACTERS)
        if visit.asked("before"):
            start = await manager_views.start_before(queue, visit.asked_number("before"))
        elif visit.asked("newest"):
            start = await manager_views.start_before(queue, stop)
        # Who may not look into a queue may still see what it is.
        problem, found = "", None
        try:
            if wanted and not visit.is_live:
                found = await manager_views.search_messages(queue, status, start, wanted)
            else:
                found = await manager_views.list_messages(queue, status, start)
        except MsmqError as error:
            problem = str(error)
    return visit.page(
        "queue.html",
        status=status,
        found=found,
        wanted=wanted,
        problem=problem,
        now_s=await visit.session.manager_time_s(),
        kind=_kind(status),
        row_of=_row,
    )


class Row(msgspec.Struct, frozen=True):
    """A message in the list."""

    label: str
    size_bytes: int
    priority: str
    message_class: str
    is_bad: bool
    preview: str


def _row(message: ReceivedMessage) -> Row:
    try:
        special = message.message_class != MessageClass.NORMAL
        return Row(
            message.label,
            len(message.body_bytes),
            str(message.priority),
            message.message_class_name.lower().replace("_", " ") if special else "",
            is_negative(message.message_class),
            (message.text or "")[:_PREVIEW_CHARACTERS],
        )
    except DecodeError as error:
        return Row("(unreadable)", len(message.packet_bytes), "", "unreadable", True, str(error))


def _kind(status: QueueStatus) -> str:
    name = status.path_name.lower()
    if name.endswith(";journal"):
        return "journal"
    return "dead letters" if name in manager_views.DEAD_LETTER_QUEUES else ""


async def show_properties(visit: Visit) -> Response:
    """Show the properties and the rights of a queue."""
    queue = visit.queue
    status = await queue.properties()
    names = await visit.manager.names(visit.queue_name)
    rights, problem = None, ""
    try:
        rights = await queue.security()
    except MsmqError as error:
        problem = str(error)
    return visit.page(
        "properties.html",
        status=status,
        names=names,
        privacy=QueuePrivacy(status.privacy).name.lower(),
        rights=None if rights is None else rights_in_words(rights),
        owner="" if rights is None or not rights.owner else account_text(rights.owner),
        problem=problem,
    )


_WHO_MAX_CHARACTERS: Final = 200
ACTIONS: Final = {
    "grant": "Allow",
    "deny": "Deny, whatever others allow",
    "revoke": "Take back what was allowed or denied by name",
}
_DONE: Final = {
    "grant": "may now",
    "deny": "may no longer",
    "revoke": "has nothing by name any more to",
}


async def show_rights(visit: Visit) -> Response:
    """Show the rights on a queue, and a form that changes them."""
    queue = visit.queue
    status = await queue.properties()
    security = await queue.security()
    return visit.page(
        "rights.html",
        status=status,
        owner=account_text(security.owner) if security.owner else "",
        rights=rights_in_words(security),
        meanings=MEANINGS,
        actions=ACTIONS,
        who_forms=WHO_FORMS,
    )


async def change_rights(visit: Visit) -> Response:
    """Allow, deny, or take back."""
    who, action = visit.form.get("who", "").strip(), visit.form.get("action", "")
    chosen = [right for right in MEANINGS if visit.form.get(f"right-{right}") == "yes"]
    if action not in ACTIONS:
        raise BadForm("Choose whether to allow, to deny, or to take back.")
    if not who or len(who) > _WHO_MAX_CHARACTERS:
        raise BadForm(f"Say whose rights are meant: {WHO_FORMS}.")
    if not chosen and action != "revoke":
        raise BadForm("Choose at least one right.")
    try:
        user = find_sid(who)
    except ValueError as error:
        raise BadForm(f"{error}.") from None
    verb = getattr(visit.queue, action)
    await verb(user, *chosen)
    said = ", ".join(MEANINGS[right] for right in chosen) or "everything"
    return visit.go(
        f"{visit.queue_path()}/rights", f"{account_text(user)} {_DONE[action]}: {said}."
    )


async def export_queue(visit: Visit) -> Response:
    """Send a copy of all messages as the file that `openmsmq queue import` reads."""
    async with visit.queue as queue:
        status = await queue.properties()
        stop = status.last_arrival_number + 1
        # What is not allowed is said before the download begins.
        await queue.open(AccessMode.PEEK)
    origin = Origin(
        status.path_name,
        visit.manager.name,
        str(visit.manager.identifier),
        status.transactional,
    )
    parts = _exported(visit.queue, origin, stop)
    return StreamingResponse(parts, headers=attachment(f"{status.path_name}.queue"))


async def _exported(queue: Queue, origin: Origin, stop: int) -> AsyncIterator[bytes]:
    start = 0
    file = BytesIO()
    writer = QueueFileWriter(file, origin)
    async with queue:
        while entries := await queue.fetch_range(
            start, stop, limits.EXPORT_BATCH_COUNT, limits.MESSAGES_PAGE_BYTES
        ):
            for entry in entries:
                writer.write(entry.packet)
            start = entries[-1].arrival_number + 1
            yield file.getvalue()
            file.seek(0)
            file.truncate()
    writer.finish()
    yield file.getvalue()


PAGES: Final = (
    Page("/queues/{queue}", show_queue),
    Page("/queues/{queue}/properties", show_properties),
    Page("/queues/{queue}/rights", show_rights, change_rights),
    Page("/queues/{queue}/export", export_queue),
)
