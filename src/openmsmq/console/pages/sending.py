"""Sending: a new message, a changed one, a copy to another queue, a move to a subqueue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from starlette.responses import Response

from openmsmq.aio import Queue
from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.operating.editing import like
from openmsmq.client.operating.resending import (
    Sending,
    Way,
    find_way,
    send_again,
    send_as_it_was,
    send_copy,
)
from openmsmq.client.verbs.transactions import SINGLE_MESSAGE, TransactionLike
from openmsmq.console import limits
from openmsmq.console.asking.manager_views import DEAD_LETTER_QUEUES
from openmsmq.console.pages.message import peeked
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.model.errors import RemoteMachineNotAvailable
from openmsmq.model.identity import MessageId
from openmsmq.model.limits import (
    LABEL_MAX_CHARACTERS,
    PRIORITY_DEFAULT_LEVEL,
    PRIORITY_MAX_LEVEL,
    SUBQUEUE_NAME_MAX_CHARACTERS,
)
from openmsmq.model.message import BodyType

FORMS: Final = {
    "text": "text, as COM and .NET write it (VT_BSTR)",
    "utf8": "UTF-8, as for JSON and XML (no type)",
    "hex": "bytes, written as hex digits",
}
"""How what is typed becomes a body."""

_TYPED_MAX_BYTES: Final = 4 * limits.TEXT_SHOWN_CHARACTERS
"""However a text is written, a letter has at most four bytes."""
_TOO_LONG: Final = "Its body is too long to be changed here: copy it, or use a program."


class Draft(msgspec.Struct, frozen=True):
    """A message as the form shows it."""

    to: str
    label: str = ""
    form: str = "text"
    body: str = ""
    priority: int = PRIORITY_DEFAULT_LEVEL
    recoverable: bool = True
    lifetime_s: str = ""
    """Seconds that it may wait to be received; empty for ever."""
    response_queue: str = ""
    journal_on_failure: bool = True


# A new message.


async def show_send(visit: Visit) -> Response:
    """Show an empty message to a queue."""
    status = await visit.queue.properties()
    return _form(visit, Draft(visit.queue_name), is_transactional=status.transactional)


async def send(visit: Visit) -> Response:
    """Send what was typed."""
    draft = _draft(visit.form, visit.queue_name)
    async with visit.queue as queue:
        transaction = SINGLE_MESSAGE if await _is_transactional(queue) else None
        sent = await queue.send(_outgoing(draft, OutgoingMessage()), transaction=transaction)
    return visit.go(visit.queue_path(), f"Sent as {sent}.")


async def _is_transactional(queue: Queue) -> bool:
    try:
        return (await queue.properties()).transactional
    except RemoteMachineNotAvailable:
        return False


# A message that is there, changed.


async def show_edit(visit: Visit) -> Response:
    """Show a message to be changed and sent again."""
    message = await peeked(visit)
    status = await visit.queue.properties()
    return _form(
        visit, _draft_of(message, visit), is_transactional=status.transactional, message=message
    )


async def edit(visit: Visit) -> Response:
    """Send a changed message; take out the one that it was, if that is wanted."""
    draft = _draft(visit.form, visit.form.get("to", "").strip())
    if not draft.to:
        raise BadForm("Name the queue to which it is to be sent.")
    takes_out = visit.form.get("take_out") == "yes"
    way = await find_way(visit.manager, visit.queue_name, draft.to)

    async def send_changed(
        target: Queue, before: ReceivedMessage, transaction: TransactionLike
    ) -> MessageId:
        return await target.send(_outgoing(draft, like(before)), transaction=transaction)

    if takes_out:
        await _take_out(visit, way, send_changed)
        return visit.go(visit.queue_path(), f"Sent to {draft.to}, and taken out here.")
    message = await peeked(visit)
    await send_copy(visit.manager, way, message, send_changed)
    return visit.go(visit.queue_path(), f"Sent to {draft.to}; the message here stays.")


async def _take_out(visit: Visit, way: Way, send_it: Sending) -> None:
    message_id = visit.form.get("message_id", "")
    if await send_again(visit.manager, way, visit.lookup_id, message_id, send_it) is None:
        raise BadForm("The message is not the one that you looked at: nothing was done.", 409)


def _draft_of(message: ReceivedMessage, visit: Visit) -> Draft:
    """Return a message as the form shows it, or raise `BadForm` if nobody could type it."""
    form, body = "text", message.text
    if message.encrypted:
        raise BadForm("Its body is encrypted: it can be copied and moved, and not changed.", 409)
    if len(message.body_bytes) > _TYPED_MAX_BYTES:
        raise BadForm(_TOO_LONG, 409)
    if body is None or "\r" in body or not _is_typed(body):
        # What a form would change is shown as bytes.
        form, body = "hex", message.body_bytes.hex(" ")
    elif message.body_type != BodyType.TEXT:
        form = "utf8"
    if len(body) > limits.TEXT_SHOWN_CHARACTERS:
        raise BadForm(_TOO_LONG, 409)
    is_letter = visit.queue_name.lower() in DEAD_LETTER_QUEUES
    lifetime_s = message.time_to_be_received_s
    return Draft(
        to=str(message.destination) if is_letter and message.destination else visit.queue_name,
        label=message.label,
        form=form,
        body=body,
        priority=message.priority,
        recoverable=message.recoverable,
        lifetime_s="" if lifetime_s is None else str(lifetime_s),
        response_queue=str(message.response_queue or ""),
        journal_on_failure=message.journal_on_failure,
    )


def _is_typed(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


# Forms.


def _form(
    visit: Visit, draft: Draft, *, is_transactional: bool, message: ReceivedMessage | None = None
) -> Response:
    return visit.page(
        "send.html",
        draft=draft,
        forms=FORMS,
        message=message,
        is_transactional=is_transactional,
        label_max=LABEL_MAX_CHARACTERS,
        priority_max=PRIORITY_MAX_LEVEL,
    )


def _draft(form: Mapping[str, str], to: str) -> Draft:
    """Read the form of a message."""
    priority = form.get("priority", "")
    if not (priority.isascii() and priority.isdecimal() and len(priority) == 1):
        raise BadForm(f"The priority is a number from 0 to {PRIORITY_MAX_LEVEL}.")
    lifetime = form.get("lifetime_s", "").strip()
    if lifetime and not (lifetime.isascii() and lifetime.isdecimal() and len(lifetime) < 10):
        raise BadForm("How long it may wait is a number of seconds, or nothing.")
    if form.get("form") not in FORMS:
        raise BadForm("Choose how the body is written.")
    return Draft(
        to=to,
        label=form.get("label", ""),
        form=form["form"],
        # A browser ends lines as HTTP does, whatever was typed.
        body=form.get("body", "").replace("\r\n", "\n"),
        priority=int(priority),
        recoverable=form.get("recoverable") == "yes",
        lifetime_s=lifetime,
        response_queue=form.get("response_queue", "").strip(),
        journal_on_failure=form.get("journal_on_failure") == "yes",
    )


def _outgoing(draft: Draft, before: OutgoingMessage) -> OutgoingMessage:
    body: object = draft.body
    # Bytes keep the type that they had; text says itself what it is.
    body_type = before.body_type
    if draft.form == "hex":
        try:
            body = bytes.fromhex(draft.body)
        except ValueError:
            raise BadForm("The body is not written in hex digits: 48 65 6c 6c 6f.") from None
    elif draft.form == "utf8":
        body = draft.body.encode()
    else:
        body_type = BodyType.TEXT
    if draft.form != "text" and body_type in (None, BodyType.TEXT):
        body_type = BodyType.UNSPECIFIED
    return msgspec.structs.replace(
        before,
        body=body,
        body_type=body_type,
        label=draft.label,
        priority=draft.priority,
        recoverable=draft.recoverable,
        time_to_be_received_s=int(draft.lifetime_s) if draft.lifetime_s else None,
        response_queue=draft.response_queue or None,
        journal_on_failure=draft.journal_on_failure,
    )


# Copies and moves.


async def show_copy(visit: Visit) -> Response:
    """Ask to which queue a copy is to go."""
    return visit.page("copy.html", message=await peeked(visit))


async def copy(visit: Visit) -> Response:
    """Send a copy of a message to another queue."""
    to = visit.form.get("to", "").strip()
    if not to:
        raise BadForm("Name the queue to which the copy is to be sent.")
    way = await find_way(visit.manager, visit.queue_name, to)
    await send_copy(visit.manager, way, await peeked(visit), send_as_it_was)
    return visit.go(visit.queue_path(), f"A copy was sent to {to}.")


async def show_move(visit: Visit) -> Response:
    """Ask to which subqueue a message is to be moved."""
    base, _, subqueue = visit.queue_name.partition(";")
    return visit.page(
        "move.html",
        message=await peeked(visit),
        base=base,
        subqueue=subqueue,
        characters_max=SUBQUEUE_NAME_MAX_CHARACTERS,
    )


async def move(visit: Visit) -> Response:
    """Move a message to a subqueue, or from there back to its queue."""
    base = visit.queue_name.partition(";")[0]
    subqueue = visit.form.get("subqueue", "").strip()
    if ";" in subqueue:
        raise BadForm("The name of a subqueue has no semicolon.")
    name = f"{base};{subqueue}" if subqueue else base
    if name.lower() == visit.queue_name.lower():
        raise BadForm("It is there already.")
    async with visit.queue as queue, visit.manager.queue(name) as target:
        await queue.move(visit.lookup_id, target)
    return visit.go(visit.queue_path(), f"Moved to {name}.")


PAGES: Final = (
    Page("/queues/{queue}/send", show_send, send),
    Page("/queues/{queue}/messages/{message}/edit", show_edit, edit),
    Page("/queues/{queue}/messages/{message}/copy", show_copy, copy),
    Page("/queues/{queue}/messages/{message}/move", show_move, move),
)
