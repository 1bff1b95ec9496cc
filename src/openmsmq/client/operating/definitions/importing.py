"""What has to be done so that the queues of a queue manager are as a file says, and doing it.

A queue is created with its rights, in one request. Of a queue that is there, what closes it changes
first, then its rights, and last what opens it: at no moment it is more open than before or after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from openmsmq.api.messages import QueueStatus
from openmsmq.client.blocking import QueueManager
from openmsmq.client.operating.definitions.file import (
    FORMAT,
    Definitions,
    QueueDefinition,
    queue_name,
    rights_of,
)
from openmsmq.model.errors import AccessDenied, QueueNotFound
from openmsmq.model.identity import Guid
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.queue import QueuePrivacy
from openmsmq.security.access.access import QUEUE, plain
from openmsmq.security.access.descriptors import Descriptor

_CHANGEABLE: Final = (
    "label",
    "journaling",
    "quota_kb",
    "journal_quota_kb",
    "authenticate",
    "privacy",
    "service_type",
    "base_priority",
    "multicast_address",
)
"""Properties that can change while a queue lives, in the order in which they are told."""

_STRICTNESS: Final = {QueuePrivacy.NONE: 0, QueuePrivacy.OPTIONAL: 0, QueuePrivacy.BODY: 1}


def export_definitions(manager: QueueManager, *, with_rights: bool = True) -> Definitions:
    """Ask for the queues of a queue manager; who may not see the rights of one is refused."""
    return Definitions(
        FORMAT,
        manager.name,
        [
            _defined(found, _security(manager, found.path_name) if with_rights else None)
            for found in manager.queues()
        ],
    )


def _security(manager: QueueManager, path: str) -> Descriptor:
    try:
        return manager.queue(path).security().descriptor
    except AccessDenied as error:
        error.add_note(
            f"So the definition of {path} would say nothing of its rights; --without-rights "
            "exports all queues like that."
        )
        raise


def _defined(found: QueueStatus, descriptor: Descriptor | None) -> QueueDefinition:
    return QueueDefinition(
        path=found.path_name,
        transactional=found.transactional,
        label=found.label,
        journaling=found.journaling,
        quota_kb=_quota(found.quota_kb),
        journal_quota_kb=_quota(found.journal_quota_kb),
        authenticate=found.authentication_required,
        privacy=QueuePrivacy(found.privacy).name.lower(),
        service_type=str(Guid(found.service_type)),
        base_priority=found.base_priority,
        multicast_address=found.multicast_address,
        rights=None if descriptor is None else rights_of(descriptor),
    )


def _quota(quota_kb: int) -> int | None:
    return None if quota_kb == UNLIMITED_KB else quota_kb


class Step(msgspec.Struct, frozen=True):
    """What is to be done with one queue."""

    action: str
    """`create`, `change` or `delete`."""
    path: str
    changes: dict[str, tuple[object, object]] = {}
    """What each property is, and what it is to be; `rights` are among them."""
    message_count: int = 0
    """Messages that are deleted with it."""
    wanted: QueueDefinition | None = None


class Comparison(msgspec.Struct, frozen=True):
    """What is to be done, and what cannot be."""

    steps: list[Step]
    conflicts: list[str]
    """Why the file cannot be imported at all: a sentence for each queue."""
    same_count: int
    """Queues that are as the file says."""


def compare(manager: QueueManager, wanted: Definitions, *, prune: bool = False) -> Comparison:
    """Compare a file with the queues that are there; nothing is changed."""
    steps: list[Step] = []
    conflicts: list[str] = []
    same_count = 0
    for queue in sorted(wanted.queues, key=lambda each: each.name.key):
        found = _find(manager, queue.path)
        if found is None:
            steps.append(Step("create", queue.name.path_text, _new(queue), wanted=queue))
        elif found.transactional != queue.transactional:
            conflicts.append(
                f"{queue.path} is {'' if found.transactional else 'not '}transactional here, and "
                "the file says otherwise: a queue stays what it is; delete it first, or change "
                "the file"
            )
        elif changes := _changes(manager, found, queue):
            steps.append(Step("change", queue.name.path_text, changes, wanted=queue))
        else:
            same_count += 1
    if prune:
        steps += _pruned(manager, wanted)
    return Comparison(steps, conflicts, same_count)


def _find(manager: QueueManager, path: str) -> QueueStatus | None:
    try:
        return manager.queue(path).properties()
    except QueueNotFound:
        return None


def _new(queue: QueueDefinition) -> dict[str, tuple[object, object]]:
    """Return what of a new queue is not as of itself."""
    plain_one = QueueDefinition(path=queue.path)
    return {
        name: (None, new)
        for name in ("transactional", *_CHANGEABLE, "rights")
        if (new := getattr(queue, name)) != getattr(plain_one, name)
    }


def _changes(
    manager: QueueManager, found: QueueStatus, queue: QueueDefinition
) -> dict[str, tuple[object, object]]:
    rights = queue.descriptor
    before = _defined(found, None if rights is None else _security(manager, found.path_name))
    changes: dict[str, tuple[object, object]] = {
        name: (old, new)
        for name in _CHANGEABLE
        if (old := getattr(before, name)) != (new := _same_words(queue, name))
    }
    if rights is not None and before.rights is not None:
        new_rights = rights_of(plain(rights, QUEUE))
        if new_rights.owner is None:
            new_rights = msgspec.structs.replace(new_rights, owner=before.rights.owner)
        if new_rights != before.rights:
            changes["rights"] = (before.rights, new_rights)
    return changes


def _same_words(queue: QueueDefinition, name: str) -> object:
    """Return a property as an export would write it."""
    return str(queue.service) if name == "service_type" else getattr(queue, name)


def _pruned(manager: QueueManager, wanted: Definitions) -> Iterator[Step]:
    kept = {queue.name.key for queue in wanted.queues}
    for found in manager.queues():
        if queue_name(found.path_name).key not in kept:
            yield Step("delete", found.path_name, message_count=found.message_count)


# Doing it.


def carry_out(manager: QueueManager, step: Step) -> None:
    """Do what a step says."""
    match step.action:
        case "create":
            assert step.wanted is not None, "what is created has a definition"
            _create(manager, step.wanted)
        case "change":
            assert step.wanted is not None, "what is changed has a definition"
            _change(manager, step, step.wanted)
        case _:
            manager.delete_queue(step.path)


def _create(manager: QueueManager, queue: QueueDefinition) -> None:
    descriptor = queue.descriptor
    options: dict[str, Any] = {} if descriptor is None else {"security": descriptor}
    manager.create_queue(
        queue.path,
        transactional=queue.transactional,
        **{name: _value(queue, name) for name in _CHANGEABLE},
        **options,
    )


def _change(manager: QueueManager, step: Step, queue: QueueDefinition) -> None:
    target = manager.queue(queue.path)
    names = [name for name in _CHANGEABLE if name in step.changes]
    opening = {name for name in names if _opens(step, name)}
    first = {name: _value(queue, name) for name in names if name not in opening}
    if first:
        target.change(**first)
    if "rights" in step.changes:
        descriptor = queue.descriptor
        assert descriptor is not None, "rights that change are defined"
        target.set_security(descriptor)
    if opening:
        target.change(**{name: _value(queue, name) for name in names if name in opening})


def _opens(step: Step, name: str) -> bool:
    """Whether a change lets in messages that were refused before."""
    old, new = step.changes[name]
    if name == "authenticate":
        return bool(old) and not new
    if name == "privacy":
        levels = [_STRICTNESS[QueuePrivacy[str(each).upper()]] for each in (old, new)]
        return levels[1] < levels[0]
    return False


def _value(queue: QueueDefinition, name: str) -> Any:
    """Return a property as the verbs take it."""
    match name:
        case "privacy":
            return queue.privacy_level
        case "service_type":
            return queue.service
        case "quota_kb" | "journal_quota_kb":
            quota = getattr(queue, name)
            return UNLIMITED_KB if quota is None else quota
        case _:
            return getattr(queue, name)
