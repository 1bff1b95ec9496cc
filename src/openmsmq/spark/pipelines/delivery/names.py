"""Which queue manager and queue a name in a message means, as far as the messages show it.

Messages name queue managers by identity, by address or by computer name; people want one name. A
message that was found in a queue shows what its destination means, and one in a journal of sent
messages shows the identity of the queue manager that has the journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from openmsmq.model.identity import NIL_GUID
from openmsmq.model.names import SystemQueue
from openmsmq.spark.pipelines.delivery.evidence import ARRIVED, Evidence, Seen, evidence_of

NAMES_MAX_COUNT: Final = 200_000
"""Names that are learned, most used first: every task gets all of them."""

_ASCII: Final = re.ASCII | re.IGNORECASE
_DIRECT: Final = re.compile(r"DIRECT=[a-z]+:(?://)?([^\\/]+)[\\/](.*)", _ASCII | re.DOTALL)
_PRIVATE_OWNER: Final = re.compile(r"PRIVATE=\{?([0-9a-f-]{36})\}?\\", _ASCII)
_PRIVATE_QUEUE: Final = re.compile(r"private\$[\\/]", _ASCII)
_SEVERAL: Final = re.compile(r"^(MULTICAST|DL)=|,", _ASCII)


class Destination(NamedTuple):
    """What a format name says by itself."""

    owner: str | None = None
    """The address, computer or identity that it has."""
    identity: str | None = None
    """The identity of the queue manager that it names; None if it is named otherwise."""
    key: str | None = None
    """The key of the queue manager that it names."""
    queue: str | None = None
    """The path name of the queue in a direct format name, else the whole format name."""


@lru_cache(maxsize=10_000)
def destination_of(name: str | None) -> Destination:
    """Read the format name of a destination."""
    if name is None:
        return Destination()
    if direct := _DIRECT.match(name):
        host, queue = direct.groups()
        path = _PRIVATE_QUEUE.sub(r"private$\\", queue, count=1) if queue else name
        return Destination(host, None, f"host:{host.lower()}", path)
    if private := _PRIVATE_OWNER.match(name):
        identity = private[1].lower()
        key = None if identity == str(NIL_GUID) else identity_key(identity)
        return Destination(private[1], identity, key, name)
    return Destination(queue=name)


def identity_key(identity: str) -> str:
    """Return the key of a queue manager by its identity."""
    return f"id:{identity.lower()}"


class Place(NamedTuple):
    """Where something is: a queue manager by its name, and perhaps a queue of it."""

    queue_manager: str | None
    queue: str | None = None


def place_of(row: Seen) -> Place:
    """Return where a row was found; a subqueue is a part of its queue."""
    return Place(row.queue_manager, None if row.queue is None else row.queue.partition(";")[0])


def learned_from(row: Seen) -> Iterator[tuple[str, Place]]:
    """Yield what a row shows about names, by key.

    Keys are a whole destination, `host:` with an address or computer, `id:` with an identity. A key
    that would mean two things is of no use.
    """
    if row.queue_manager is None:
        return
    kind, manager = evidence_of(row), Place(row.queue_manager)
    if kind in ARRIVED and row.destination is not None and not _SEVERAL.search(row.destination):
        yield row.destination, place_of(row)
        if key := destination_of(row.destination).key:
            yield key, manager
    at_source = kind is Evidence.SENT or (row.queue or "").lower().endswith(
        SystemQueue.TRANSACTIONAL_DEAD_LETTER.path_text
    )
    if at_source and row.source_qm is not None:
        yield identity_key(row.source_qm), manager
