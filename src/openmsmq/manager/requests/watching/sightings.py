"""Where a message is: all queues are looked through for its identifier, a step at a time.

There is no index of identifiers, and a queue may have a million messages. So a step looks at some
thousands of them and says where to go on; who asks decides how long that is worth it.
"""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.by_arrival import LOOKUP_START, Arrivals, Stored
from openmsmq.model.clock import Instant
from openmsmq.model.errors import AccessDenied, IllegalPropertySize
from openmsmq.model.limits import IDENTIFIER_BYTES
from openmsmq.model.queue import AccessMode
from openmsmq.storage.records import ARRIVAL_MASK, FACTS_BYTES, place_of
from openmsmq.wire import message_bytes, packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.queue_names import describe

SEARCH_STEP_MAX_COUNT: Final = 4_000
"""Messages that one step of a search looks at."""

SEARCH_STEP_MAX_BYTES: Final = 16 << 20
"""Bytes after which a step looks at no more messages."""

SIGHTINGS_MAX_COUNT: Final = 100
"""Places that one step tells of; identifiers are unique, unless somebody forges them."""


class MessageSearch:
    """Looks for messages by their identifiers."""

    def __init__(self, table: QueueTable, access: AccessControl, replies: Replies) -> None:
        self._table = table
        self._access = access
        self._replies = replies

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.FindMessage, self.find_message)

    def find_message(
        self, state: Connection, call: int, request: api.FindMessage, _: Instant
    ) -> None:
        """Look through the next queues, up to the limits of a step."""
        wanted = request.message_id
        if len(wanted) != IDENTIFIER_BYTES:
            raise IllegalPropertySize(
                f"an identifier of {len(wanted)} bytes, not {IDENTIFIER_BYTES}"
            )
        queues = sorted(
            (queue for queue in self._table if queue.id >= request.queue and queue.count),
            key=lambda queue: queue.id,
        )
        found: list[api.Sighting] = []
        looked_count = looked_bytes = hidden_count = 0
        for queue in queues:
            is_first = queue.id == request.queue
            if not self._may_look(state, queue):
                # Told once, with the step that passes it by.
                hidden_count += 1
                continue
            arrivals = Arrivals(queue, request.start if is_first else 0, ARRIVAL_MASK + 1)
            while True:
                count = SEARCH_STEP_MAX_COUNT - looked_count
                size = SEARCH_STEP_MAX_BYTES - looked_bytes
                if count <= 0 or size <= 0 or len(found) >= SIGHTINGS_MAX_COUNT:
                    reply = api.Sightings(
                        found, looked_count, hidden_count, queue.id, arrivals.start
                    )
                    self._replies.answer(state.id, call, reply)
                    return
                rows, taken_bytes = arrivals.take(count, size)
                if not rows:
                    break
                looked_count += len(rows)
                looked_bytes += taken_bytes
                found += _sightings(queue, rows, wanted)
        self._replies.answer(state.id, call, api.Sightings(found, looked_count, hidden_count))

    def _may_look(self, state: Connection, queue: LocalQueue) -> bool:
        try:
            self._access.require_open(state.caller, queue, AccessMode.PEEK)
        except AccessDenied:
            return False
        return True


def _sightings(queue: LocalQueue, rows: list[Stored], wanted: bytes) -> list[api.Sighting]:
    # What tells of a message has its identifier as a whole; its own is in two parts.
    near = [
        row
        for row in rows
        if message_bytes.message_id(row[1], FACTS_BYTES) == wanted or wanted in row[1]
    ]
    return [found for row in near if (found := _sighting(queue, row, wanted)) is not None]


def _sighting(queue: LocalQueue, row: Stored, wanted: bytes) -> api.Sighting | None:
    key, value = row
    packet = value[FACTS_BYTES:]
    is_itself = message_bytes.message_id(packet) == wanted
    destination, message_class, is_about = "", 0, False
    try:
        message = packets.decode(packet)
        if isinstance(message, packets.UserMessage):
            destination = describe(message.user.destination)
            message_class = message.properties.message_class
            is_about = not is_itself and message.properties.correlation_id == wanted
    except DecodeError:
        # Whoever sent it like this made a mistake; where it is can still be told.
        pass
    if not (is_itself or is_about):
        return None
    lookup_id = int.from_bytes(key[LOOKUP_START:], "big")
    return api.Sighting(
        queue.name,
        queue.role.value,
        lookup_id,
        place_of(value)[0],
        message_bytes.sent_time_s(packet),
        message_class,
        message_bytes.hop_count(packet),
        destination,
        queue.is_held(lookup_id),
        message_bytes.time_to_be_received_s(packet),
        is_about,
        message_bytes.source(packet),
    )
