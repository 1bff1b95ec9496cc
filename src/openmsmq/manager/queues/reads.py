"""Reads: which message an application means, and reads that wait for one. [MQDMPR 3.2]"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api.messages import Find, Receive
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.model.errors import (
    BufferOverflow,
    IllegalCursorAction,
    MessageAlreadyReceived,
    MessageNotFound,
)
from openmsmq.model.queue import SeekAction
from openmsmq.storage.records import FACTS_BYTES, LOOKUP_MAX
from openmsmq.wire import message_bytes

if TYPE_CHECKING:
    from openmsmq.manager.queues.connections import OpenQueue

NOTHING: Final[AbstractSet[int]] = frozenset()
"""No message is shown that somebody holds."""


class Cursor:
    """A place in a queue, remembered as the lookup identifier last read. [MQDMPR 3.1.1.16]

    The identifier and not the entry: it still says where to go on when the entry is gone. Once its
    own reader has taken the message, the cursor stands before the one behind it. [MQDMPR 3.2.7.4]
    """

    __slots__ = ("current", "id", "owner", "read", "taken")

    def __init__(self, number: int, owner: OpenQueue) -> None:
        self.id = number
        self.owner = owner
        self.read = False
        self.taken = False
        self.current = 0

    def find(self, queue: LocalQueue, shown: AbstractSet[int], *, move_on: bool) -> Row | None:
        """Return the message at the cursor, after moving it on if asked; None if none is there."""
        if not self.read:
            if move_on:
                raise IllegalCursorAction("the cursor has not read its first message yet")
            rows = _front(queue, 1, 1, shown)
            if rows:
                self.go_to(rows[0][0])
            return rows[0] if rows else None
        if move_on or self.taken:
            row = _next(queue, self.current, shown)
            if row is not None:
                self.go_to(row[0])
            return row
        value = queue.entry(self.current)
        if value is None or (queue.is_held(self.current) and self.current not in shown):
            raise MessageAlreadyReceived(f"lookup id {self.current} in {queue.name}")
        return self.current, value

    def go_to(self, lookup_id: int, *, taken: bool = False) -> None:
        """Stand at the message that was read, or behind it if it was taken."""
        self.read, self.current, self.taken = True, lookup_id, taken


class WaitingRead(msgspec.Struct, frozen=True, eq=False):
    """A read for which there was no message yet. [MQDMPR 3.1.1.14]"""

    connection: int
    call: int
    request: Receive | Find
    opened: OpenQueue
    cursor: Cursor | None
    deadline_ms: int | None

    @property
    def takes_the_front(self) -> bool:
        """Whether any message would do: then a queue without one need not be searched again."""
        return isinstance(self.request, Receive) and self.cursor is None


def rows_for(
    request: Receive | Find, queue: LocalQueue, cursor: Cursor | None, shown: AbstractSet[int]
) -> list[Row]:
    """Return the messages a read means that are there now; none if it has to wait.

    `shown` are messages that somebody holds and that the read may see all the same.
    """
    if isinstance(request, Find):
        row = _search(request, queue, shown)
    elif cursor is not None:
        row = cursor.find(queue, shown, move_on=request.next)
    else:
        return _front(queue, request.count, request.bytes_max, shown)
    return [] if row is None else [row]


def _front(queue: LocalQueue, count: int, bytes_max: int, shown: AbstractSet[int]) -> list[Row]:
    if not shown:
        return queue.front(count, bytes_max)
    found: list[Row] = []
    size = 0
    held = queue.entries.held
    for row in queue.rows(-1):
        if row[0] not in held or row[0] in shown:
            found.append(row)
            size += len(row[1])
            if len(found) == count or size >= bytes_max:
                break
    return found


def _next(
    queue: LocalQueue, lookup_id: int, shown: AbstractSet[int], *, backwards: bool = False
) -> Row | None:
    held = queue.entries.held
    for row in queue.rows(lookup_id, backwards=backwards):
        if row[0] not in held or row[0] in shown:
            return row
    return None


def seek(
    queue: LocalQueue, action: SeekAction, lookup_id: int, shown: AbstractSet[int] = NOTHING
) -> Row:
    """Return the message at, behind or before a lookup identifier. [MQDMPR 3.1.7.3.3]

    The one at the identifier is given also when somebody holds it.
    """
    row: Row | None
    if action is SeekAction.FIRST:
        row = _next(queue, -1, shown)
    elif action is SeekAction.LAST:
        row = _next(queue, LOOKUP_MAX, shown, backwards=True)
    elif action is SeekAction.NEXT:
        row = _next(queue, lookup_id, shown)
    elif action is SeekAction.PREVIOUS:
        row = _next(queue, lookup_id, shown, backwards=True)
    else:
        value = queue.entry(lookup_id)
        on_its_way_out = queue.entries.is_leaving(lookup_id)
        row = None if value is None or on_its_way_out else (lookup_id, value)
    if row is None:
        raise MessageNotFound(f"{action.value} of lookup id {lookup_id} in {queue.name}")
    return row


def _search(request: Find, queue: LocalQueue, shown: AbstractSet[int]) -> Row | None:
    held = queue.entries.held
    for row in queue.rows(-1 if shown else queue.floor - 1):
        visible = row[0] not in held or row[0] in shown
        if visible and _matches(request, row[1]):
            return row
    return None


def _matches(request: Find, value: bytes) -> bool:
    if request.message_id is not None:
        return message_bytes.message_id(value, FACTS_BYTES) == request.message_id
    return message_bytes.correlation_id(value[FACTS_BYTES:]) == request.correlation_id


def fitting(rows: list[Row], body_max_bytes: int) -> list[Row]:
    """Return the rows before the first whose body is too large; refuse when that is the first."""
    for index, (lookup_id, value) in enumerate(rows):
        size = message_bytes.body_size(value[FACTS_BYTES:])
        if size > body_max_bytes:
            if not index:
                raise BufferOverflow(
                    f"lookup id {lookup_id} has a body of {size} bytes, where the reader takes "
                    f"{body_max_bytes}"
                )
            return rows[:index]
    return rows


def within(rows: list[Row], start: int, count: int, bytes_max: int) -> list[Row]:
    """Return the rows from a place on that one read may take: at least one."""
    taken = rows[start : start + count]
    size = 0
    for place, (_, value) in enumerate(taken, 1):
        size += len(value)
        if size >= bytes_max:
            return taken[:place]
    return taken
