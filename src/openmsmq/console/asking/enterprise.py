"""How the enterprise is now: who answers, who is connected, what is stuck on its way to whom."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from openmsmq.aio import QueueManager
from openmsmq.api.messages import OutgoingStatus
from openmsmq.client.operating.others import ask_others, others_of
from openmsmq.client.settings import Settings
from openmsmq.console import words
from openmsmq.console.asking.manager_views import is_stuck
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.naming import name_of, reference_name, sorted_by_name
from openmsmq.model.directory import ObjectKind
from openmsmq.model.errors import NoDirectory
from openmsmq.model.identity import Guid
from openmsmq.model.names import (
    DirectFormatName,
    IllegalName,
    PrivateFormatName,
    PublicFormatName,
    parse_format_name,
)
from openmsmq.model.topology import QueueManagerInfo, RoutingLink

_OPEN: Final = "open"


class Member(msgspec.Struct, frozen=True):
    """A queue manager of the enterprise, and how it is."""

    identifier: Guid
    name: str
    sites: str
    role: str
    kind: str
    """`good`, `bad`, `open` or nothing."""
    state: str
    """A word or two."""
    sentence: str
    stuck_count: int
    """Messages that wait here to go there, and do not."""
    is_own: bool


class Link(msgspec.Struct, frozen=True):
    """A link between two sites."""

    name: str
    cost: int
    gates: str
    description: str


class Enterprise(msgspec.Struct, frozen=True):
    """The directory, and how its queue managers are."""

    image: DirectoryImage
    members: list[Member]
    links: list[Link]


class _Answer(msgspec.Struct, frozen=True):
    message_count: int
    stuck_count: int
    store_problem: str


async def enterprise(manager: QueueManager, others: Settings | None) -> Enterprise:
    """Ask for the directory and what is known of its queue managers."""
    try:
        image = await manager.read_directory()
    except NoDirectory:
        image = DirectoryImage()
    outgoing = await manager.outgoing()
    connected = {Guid(one.manager) for one in await manager.sessions() if one.state == _OPEN}
    stuck = _stuck_counts(image, outgoing)
    answers: dict[Guid, _Answer | str] = {manager.identifier: await _ask(manager)}
    if others is not None:
        infos = others_of(image, manager.identifier)
        for other, answer in await ask_others(others, infos, _ask):
            answers[other.info.identifier] = other.problem if answer is None else answer
    members = [
        _member(info, image, manager.identifier, answers, connected, stuck)
        for info in sorted_by_name(image.managers.values(), image)
        if isinstance(info, QueueManagerInfo)
    ]
    links = [
        _link(link, image)
        for link in sorted_by_name(image.links.values(), image)
        if isinstance(link, RoutingLink)
    ]
    return Enterprise(image, members, links)


async def _ask(manager: QueueManager) -> _Answer:
    status = await manager.status()
    stuck = sum(one.message_count for one in await manager.outgoing() if is_stuck(one))
    return _Answer(status.message_count, stuck, status.store_problem)


def _stuck_counts(image: DirectoryImage, outgoing: list[OutgoingStatus]) -> Counter[Guid]:
    """Count the messages that cannot leave, by the queue manager to which they go."""
    found: Counter[Guid] = Counter()
    for one in outgoing:
        owner = _owner(image, one.format_name) if is_stuck(one) else None
        if owner is not None:
            found[owner] += one.message_count
    return found


def _owner(image: DirectoryImage, name: str) -> Guid | None:
    try:
        parsed = parse_format_name(name)
    except IllegalName:
        return None
    match parsed:
        case PublicFormatName(queue=queue):
            found = image.queues.get(queue)
            return None if found is None else found.manager
        case PrivateFormatName(queue_manager=owner):
            return owner
        case DirectFormatName(host=host):
            named = image.manager_named(host)
            if named is not None:
                return named.identifier
            at = [one.identifier for one in image.managers.values() if host in one.addresses]
            return at[0] if len(at) == 1 else None
        case _:
            return None


def _member(
    info: QueueManagerInfo,
    image: DirectoryImage,
    own: Guid,
    answers: dict[Guid, _Answer | str],
    connected: set[Guid],
    stuck: Counter[Guid],
) -> Member:
    identifier = info.identifier
    kind, state, sentence = _state(answers.get(identifier), identifier in connected)
    waiting = stuck[identifier]
    if waiting:
        kind = "bad"
        state = f"{words.count(waiting)} stuck"
        said = f"{words.some(waiting, 'message')} cannot leave for it from here."
        sentence = f"{said} {sentence}"
    return Member(
        identifier,
        info.computer_name,
        ", ".join(reference_name(image, ObjectKind.SITE, site) for site in info.sites) or "none",
        _role(info, image),
        kind,
        state,
        sentence,
        waiting,
        identifier == own,
    )


def _state(answer: _Answer | str | None, is_connected: bool) -> tuple[str, str, str]:
    """Return the colour, the word and the sentence for how a queue manager is."""
    match answer:
        case _Answer():
            if answer.store_problem:
                return "bad", "store full", f"Its store takes nothing: {answer.store_problem}"
            said = f"It answers, and has {words.some(answer.message_count, 'message')}."
            if answer.stuck_count:
                stuck = words.some(answer.stuck_count, "message")
                return "open", "up", f"{said} {stuck} cannot leave there."
            return "good", "up", said
        case str() if not is_connected:
            return "bad", "no answer", f"It could not be asked: {answer}"
        case _ if is_connected:
            return "good", "connected", "There is a session with it."
        case _:
            return "", "", "Nothing is known of it: there is no session with it now."


def _role(info: QueueManagerInfo, image: DirectoryImage) -> str:
    gates = {gate for link in image.links.values() for gate in link.site_gates}
    found = []
    if info.identifier in gates:
        found.append("gate")
    elif info.routing_server:
        found.append("routing server")
    if info.directory_server is not None:
        found.append("directory server")
    if info.foreign:
        found.append("foreign")
    return ", ".join(found) or "queue manager"


def _link(link: RoutingLink, image: DirectoryImage) -> Link:
    gates = [reference_name(image, ObjectKind.MANAGER, gate) for gate in link.site_gates]
    return Link(name_of(link, image), link.cost, ", ".join(gates) or "none", link.description)
