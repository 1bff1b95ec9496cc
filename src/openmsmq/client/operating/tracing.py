"""The path of one message: where it is, was received, or died, as far as queue managers can tell.

There is no list of where messages went. What tells of one is itself, copies in journals and
dead-letter queues, acknowledgments in admin queues, reports, and answers. All of them are looked
for by the identifier, up to a limit; who could not be asked, and what was not looked through, is
told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from openmsmq.api.messages import Sighting
from openmsmq.client.aio import QueueManager
from openmsmq.client.operating.others import ask_others, others_of
from openmsmq.client.operating.reasons import reason_of
from openmsmq.client.settings import Settings
from openmsmq.directory.image import DirectoryImage
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.message import MessageClass, is_negative, message_class_name
from openmsmq.model.queue import QueueRole

LOOKED_MAX_COUNT: Final = 400_000
"""Messages of one queue manager that a search looks at, if nobody says otherwise."""

SIGHTINGS_MAX_COUNT: Final = 200
"""Places that a search tells of; more there are only if somebody forges identifiers."""

_DEAD: Final = ("system$;deadletter", "system$;deadxact")
_SYSTEM_JOURNAL: Final = "system$;journal"


class Place(msgspec.Struct, frozen=True):
    """One place on the path of a message: where, when, and what that means."""

    manager: str
    queue: str
    kind: str
    """`sent`, `waits`, `left`, `here`, `received`, `died`, `told` or `answered`."""
    words: str
    """What it means, in a sentence."""
    time_s: int
    lookup_id: int = 0
    reason: str = ""
    """Of a message that died, the name of the reason."""
    is_own: bool = False
    """Whether it is in the queue manager that was asked first."""


class Asked(msgspec.Struct, frozen=True):
    """A queue manager that was to be asked, and how far that came."""

    manager: str
    problem: str = ""
    """Why it could not be asked; empty if it could."""
    looked_count: int = 0
    hidden_count: int = 0
    """Queues with messages into which who asks may not look."""
    is_cut: bool = False
    """Whether not all was looked through."""


class Trace(msgspec.Struct, frozen=True):
    """What could be found out about a message."""

    message_id: str
    places: list[Place]
    """In the order of their times."""
    asked: list[Asked]
    conclusion: str
    """What became of it, in a sentence."""


class Found(msgspec.Struct, frozen=True):
    """What one queue manager has of a message."""

    sightings: list[Sighting]
    explanations: Mapping[str, str]
    """Of outgoing queues, why what is there has not left."""
    asked: Asked


async def search(
    manager: QueueManager, message_id: MessageId, looked_max_count: int = LOOKED_MAX_COUNT
) -> Found:
    """Look for a message in one queue manager, step by step, up to a limit."""
    sightings: list[Sighting] = []
    looked_count = hidden_count = queue = start = 0
    while True:
        step = await manager.find_message(message_id, queue, start)
        sightings += step.found
        looked_count += step.looked_count
        hidden_count += step.hidden_count
        queue, start = step.next_queue, step.next_start
        is_full = looked_count >= looked_max_count or len(sightings) >= SIGHTINGS_MAX_COUNT
        if not queue or is_full:
            break
    explanations: dict[str, str] = {}
    for name in {one.queue for one in sightings if one.kind == QueueRole.OUTGOING.value}:
        try:
            explanations[name] = (await manager.outgoing_queue(name)).explanation
        except MsmqError:
            # It has just become empty.
            continue
    asked = Asked(manager.name, "", looked_count, hidden_count, bool(queue))
    return Found(sightings[:SIGHTINGS_MAX_COUNT], explanations, asked)


async def trace(
    manager: QueueManager,
    message_id: MessageId,
    *,
    others: Settings | None = None,
    looked_max_count: int = LOOKED_MAX_COUNT,
) -> Trace:
    """Find out where a message has been.

    With `others`, which is how to connect, the other queue managers of the directory are asked too.
    """
    found = await search(manager, message_id, looked_max_count)
    image = DirectoryImage()
    asked = [found.asked]
    places = [_place(one, found, manager.name, is_own=True) for one in found.sightings]
    seen = list(found.sightings)
    try:
        image = await manager.read_directory()
    except MsmqError as error:
        if others is not None:
            asked.append(Asked("the others", f"the directory cannot be read: {error}"))
    if others is not None:
        infos = others_of(image, manager.identifier, (message_id.source,))

        async def ask(other: QueueManager) -> Found:
            return await search(other, message_id, looked_max_count)

        for other, answer in await ask_others(others, infos, ask):
            if answer is None:
                asked.append(Asked(other.info.computer_name, other.problem))
                continue
            asked.append(answer.asked)
            seen += answer.sightings
            name = answer.asked.manager
            places += [_place(one, answer, name, is_own=False) for one in answer.sightings]
    places.sort(key=lambda place: place.time_s)
    itself = next((one for one in seen if not one.is_about), None)
    if itself is not None:
        places.insert(0, _sent(itself, _manager_name(message_id.source, manager, image)))
    return Trace(str(message_id), places, asked, _conclusion(places, asked))


def _manager_name(identifier: Guid, manager: QueueManager, image: DirectoryImage) -> str:
    if identifier == manager.identifier:
        return manager.name
    known = image.managers.get(identifier)
    return str(identifier) if known is None else known.computer_name


# In words.


def _sent(one: Sighting, source: str) -> Place:
    return Place(source, "", "sent", f"Sent to {one.destination}.", one.sent_time_s)


def _place(one: Sighting, found: Found, manager: str, *, is_own: bool) -> Place:
    kind, words, reason = _meaning(one, found)
    time_s = one.sent_time_s if one.is_about else one.arrived_time_s
    return Place(manager, one.queue, kind, words, time_s, one.lookup_id, reason, is_own)


def _meaning(one: Sighting, found: Found) -> tuple[str, str, str]:
    """Return what a sighting is, what it means, and the reason of a death."""
    if one.is_about:
        return _told(one)
    name = one.queue.lower()
    if name in _DEAD:
        reason = _death(one)
        return "died", f"Died: {_small(reason_of(reason or None).title)}.", reason
    if name == _SYSTEM_JOURNAL:
        return "left", "It has left: a copy of what was sent is kept.", ""
    match one.kind:
        case QueueRole.JOURNAL.value:
            return "received", "Was received: a copy is kept in the journal.", ""
        case QueueRole.OUTGOING.value:
            why = found.explanations.get(one.queue, "")
            verb = "Is being transferred." if one.is_held else "Waits to leave."
            return "waits", f"{verb} {why}".strip(), ""
        case QueueRole.AWAITING.value:
            words = "Has arrived there; what becomes of it is still to be heard of."
            return "left", words, ""
        case _:
            held = "Somebody is about to receive it." if one.is_held else "Waits to be received."
            return "here", held, ""


def _told(one: Sighting) -> tuple[str, str, str]:
    name = message_class_name(one.message_class)
    if is_negative(one.message_class):
        return "told", f"Reported as dead: {_small(reason_of(name).title)}.", name
    match one.message_class:
        case MessageClass.NORMAL:
            return "answered", "An answer to it.", ""
        case MessageClass.ACK_REACH_QUEUE:
            return "told", "Reported to have reached its queue.", ""
        case MessageClass.ACK_RECEIVE:
            return "told", "Reported as received.", ""
        case MessageClass.REPORT:
            return "told", "A report about its way.", ""
        case _:
            return "told", f"Told of by {name}.", ""


def _death(one: Sighting) -> str:
    if is_negative(one.message_class):
        return message_class_name(one.message_class)
    if one.arrived_time_s - one.sent_time_s >= one.lives_s:
        return MessageClass.NACK_RECEIVE_TIMEOUT.name
    return ""


def _small(title: str) -> str:
    return title[:1].lower() + title[1:]


def _conclusion(places: list[Place], asked: list[Asked]) -> str:
    """Say what became of a message: what is surest of all that was found."""
    for kind, sentence in (
        ("here", "It is in {queue} of {manager}."),
        ("waits", "It is on its way, in an outgoing queue of {manager}."),
        ("died", "It died at {manager}."),
        ("received", "It was received from {queue} of {manager}."),
    ):
        found = [place for place in places if place.kind == kind]
        if found:
            last = found[-1]
            queue = last.queue.removesuffix(";journal")
            return sentence.format(queue=queue, manager=last.manager)
    told = [place for place in places if place.kind == "told"]
    if told:
        return f"It is nowhere that was looked; {_small(told[-1].words)}"
    is_whole = not any(one.problem or one.is_cut or one.hidden_count for one in asked)
    if len(places) > 1:
        return "It has left where it was seen; where it went nobody who was asked can tell."
    why = (
        "it was received without a journal, never was, or is with others"
        if is_whole
        else "not everything was looked through"
    )
    return f"Nothing was found of it: {why}."
