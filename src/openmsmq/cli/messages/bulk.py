"""Work on many messages at once: moves with many calls under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.queue import QueueHandle
from openmsmq.client.steps import Ahead, Collect, Steps, failure
from openmsmq.model.errors import MessageLocked, MessageNotFound
from openmsmq.model.queue import AccessMode

if TYPE_CHECKING:
    from openmsmq.client.blocking import Queue

MOVES_AHEAD_MAX_COUNT: Final = 256
"""Moves under way at the same time; the queue manager makes them durable together."""


class Moved(msgspec.Struct):
    """What became of messages that were to be moved."""

    count: int = 0
    left_count: int = 0
    """Those that somebody else took or holds."""


def move_many(queue: Queue, lookup_ids: Iterable[int], target: QueueHandle) -> Moved:
    """Move messages to a subqueue or back."""
    moved = Moved()
    queue.connection.run(lambda: _moving(queue, lookup_ids, target, moved), queue)
    return moved


def _moving(
    queue: Queue, lookup_ids: Iterable[int], target: QueueHandle, moved: Moved
) -> Steps[None]:
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    there = target.handle(AccessMode.MOVE) or (yield from target.opening(AccessMode.MOVE))
    under_way: deque[int] = deque()
    refused: list[Exception] = []
    for lookup_id in lookup_ids:
        if len(under_way) == MOVES_AHEAD_MAX_COUNT:
            _settle((yield Collect(under_way.popleft())), moved, refused)
        if refused:
            break
        under_way.append((yield Ahead(api.Move(handle, lookup_id, there))))
    while under_way:
        _settle((yield Collect(under_way.popleft())), moved, refused)
    if refused:
        raise refused[0]


def _settle(reply: api.AnyReply, moved: Moved, refused: list[Exception]) -> None:
    if isinstance(reply, api.Done):
        moved.count += 1
        return
    error = failure(reply)
    if isinstance(error, MessageNotFound | MessageLocked):
        moved.left_count += 1
    else:
        refused.append(error)
