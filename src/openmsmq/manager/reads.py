"""Reads: which message an application means, and reads that wait for one. [MQDMPR 3.2]"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api.messages import Find, Receive
from openmsmq.manager.queues import BEING_REMOVED, LocalQueue, Row
from openmsmq.model.errors import IllegalCursorAction, MessageAlreadyReceived, MessageNotFound
from openmsmq.model.queue import SeekAction
from openmsmq.storage.records import FACTS_BYTES, LOOKUP_MAX
from openmsmq.wire.outline import outline

if TYPE_CHECKING:
    from openmsmq.manager.connections import OpenQueue

_SOURCE: Final = slice(FACTS_BYTES + 16, FACTS_BYTES + 32)
_NUMBER: Final = slice(FACTS_BYTES + 56, FACTS_BYTES + 60)


class Cursor:
    """A place in a queue, remembered as the lookup identifier last read. [MQDMPR 3.1.1.16]

    The identifier and not the entry: it still says where to go on when the entry is gone.
    """

    __slots__ = ("current", "id", "owner", "read")

    def __init__(self, number: int, owner: OpenQueue) -> None:
        self.id = number
        self.owner = owner
        self.read = False
        self.current = 0

    def find(self, queue: LocalQueue, *, move_on: bool) -> Row | None:
        """Give the message at the cursor, after moving it on if asked; None if none is there."""
        if not self.read:
            if move_on:
                raise IllegalCursorAction("the cursor has not read its first message yet")
            rows = queue.front(1, 1)
            if rows:
                self.read, self.current = True, rows[0][0]
            return rows[0] if rows else None
        if move_on:
            row = queue.next_available(self.current)
            if row is not None:
                self.current = row[0]
            return row
        value = queue.entry(self.current)
        if value is None or self.current in queue.held:
            raise MessageAlreadyReceived(f"lookup id {self.current} in {queue.name}")
        return self.current, value


class WaitingRead(msgspec.Struct, eq=False):
    """A read for which there was no message yet. [MQDMPR 3.1.1.14]"""

    connection: int
    call: int
    request: Receive | Find
    opened: OpenQueue
    cursor: Cursor | None
    deadline_ms: int | None
    ended: bool = False

    @property
    def takes_the_front(self) -> bool:
        """Whether any message would do: then a queue without one need not be searched again."""
        return isinstance(self.request, Receive) and self.cursor is None


def rows_for(request: Receive | Find, queue: LocalQueue, cursor: Cursor | None) -> list[Row]:
    """Give the messages a read means that are there now; none if it has to wait."""
    if isinstance(request, Find):
        row = _search(request, queue)
    elif cursor is not None:
        row = cursor.find(queue, move_on=request.next)
    else:
        return queue.front(request.count, request.bytes_max)
    return [] if row is None else [row]


def seek(queue: LocalQueue, action: SeekAction, lookup_id: int) -> Row:
    """Give the message at, behind or before a lookup identifier. [MQDMPR 3.1.7.3.3]"""
    row: Row | None
    if action is SeekAction.FIRST:
        row = queue.next_available(-1)
    elif action is SeekAction.LAST:
        row = queue.next_available(LOOKUP_MAX, backwards=True)
    elif action is SeekAction.NEXT:
        row = queue.next_available(lookup_id)
    elif action is SeekAction.PREVIOUS:
        row = queue.next_available(lookup_id, backwards=True)
    else:
        value = queue.entry(lookup_id)
        on_its_way_out = queue.held.get(lookup_id) == BEING_REMOVED
        row = None if value is None or on_its_way_out else (lookup_id, value)
    if row is None:
        raise MessageNotFound(f"{action.value} of lookup id {lookup_id} in {queue.name}")
    return row


def _search(request: Find, queue: LocalQueue) -> Row | None:
    for row in queue.rows(queue.floor - 1):
        if row[0] not in queue.held and _matches(request, row[1]):
            return row
    return None


def _matches(request: Find, value: bytes) -> bool:
    if request.message_id is not None:
        return value[_SOURCE] + value[_NUMBER] == request.message_id
    offset = FACTS_BYTES + outline(value[FACTS_BYTES:]).properties_offset + 4
    return value[offset : offset + 20] == request.correlation_id


def within(rows: list[Row], start: int, count: int, bytes_max: int) -> list[Row]:
    """Give the rows from a place on that one read may take: at least one."""
    size = 0
    taken: list[Row] = []
    for row in rows[start : start + count]:
        taken.append(row)
        size += len(row[1])
        if size >= bytes_max:
            break
    return taken
