"""Messages as rows, one by one, with the scalar codec: what `decode` must be equal to.

It also reads the few messages that `decode` does not read itself: those with rare headers, and
those that cannot be decoded at all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator
from typing import Any, Final, TypeAlias

from openmsmq.api.messages import PLACE_FORMAT, Entry, Packets
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.identity import MessageId
from openmsmq.model.message import NO_CORRELATION, message_class_name
from openmsmq.model.names import FormatName, IllegalName
from openmsmq.spark.decode.headers import headers_of
from openmsmq.spark.decode.packed import PLACE_BYTES, Packed
from openmsmq.spark.schema import ALL_NAMES
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.queue_names import QueueName, SameAsAdmin
from openmsmq.wire.text.bodies import body_text

_PLACE: Final = struct.Struct(PLACE_FORMAT)

Row: TypeAlias = dict[str, Any]
"""A value for each column: text, bytes, a number, a time, pairs of texts, or None."""


def entries_in(raw: Packets) -> Iterator[Entry]:
    """Yield the messages of an answer one by one."""
    packed = Packed(raw)
    for row in range(packed.count):
        yield entry_at(packed, row)


def entry_at(packed: Packed, row: int) -> Entry:
    """Return one message of an answer."""
    start, end = int(packed.starts[row]), int(packed.ends[row])
    arrived_time_s, moved_time_s, abort_count, move_count = _PLACE.unpack_from(packed.data, start)
    return Entry(
        int(packed.lookup_ids[row]),
        arrived_time_s,
        abort_count,
        move_count,
        bytes(packed.data[start + PLACE_BYTES : end]),
        moved_time_s,
    )


def row_of(
    entry: Entry, *, queue_manager: str, queue: str, columns: Container[str] = ALL_NAMES
) -> Row:
    """Return a message as a value for each column; one that cannot be decoded says so in `error`.

    The headers are read only if they are among the `columns`: they are the only ones that cost.
    """
    message = ReceivedMessage(entry, DEFAULT_FORMATTER)
    row = dict.fromkeys(ALL_NAMES)
    row |= _place(message, entry, queue_manager, queue)
    try:
        row |= _content(message)
        if "headers" in columns:
            row["headers"] = headers_of(message.extension)
    except DecodeError as error:
        row |= {"body": entry.packet, "error": str(error)}
    return row


def _place(message: ReceivedMessage, entry: Entry, queue_manager: str, queue: str) -> Row:
    return {
        "queue_manager": queue_manager,
        "queue": queue,
        "arrival_number": entry.arrival_number,
        "lookup_id": entry.lookup_id,
        "arrived_time": message.arrived_time,
        "abort_count": message.abort_count,
        "move_count": message.move_count,
        "moved_time": message.moved_time,
    }


def _content(message: ReceivedMessage) -> Row:
    packet = message.packet
    transaction = message.transaction
    destination, response_queue, admin_queue = queue_texts(message)
    correlation_id = message.correlation_id
    connector_type = message.connector_type
    return {
        "message_id": str(message.id),
        "source_qm": str(message.source_manager),
        "sent_time": message.sent_time,
        "sender_id": message.sender_id or None,
        "sender_certificate": message.sender_certificate or None,
        "authenticated": message.is_authenticated,
        "label": message.label,
        "body": message.body_bytes,
        "body_type": message.body_type,
        "text": body_text(packet),
        "extension": message.extension,
        "application_tag": message.application_tag,
        "correlation_id": (
            None if correlation_id == NO_CORRELATION else str(MessageId.from_bytes(correlation_id))
        ),
        "message_class": message.message_class,
        "message_class_name": message_class_name(message.message_class),
        "priority": message.priority,
        "recoverable": message.recoverable,
        "transactional": transaction is not None,
        "first_in_transaction": transaction is not None and transaction.first,
        "last_in_transaction": transaction is not None and transaction.last,
        "transaction_id": None if transaction is None else str(transaction.id),
        "destination": destination,
        "response_queue": response_queue,
        "admin_queue": admin_queue,
        "dead_letter_queue": message.dead_letter_queue or None,
        "acknowledge": message.acknowledge,
        "journal_on_failure": message.journal_on_failure,
        "journal_on_success": message.journal_on_success,
        "time_to_reach_queue_s": message.time_to_reach_queue_s,
        "time_to_be_received_s": message.time_to_be_received_s,
        "encrypted": message.is_encrypted,
        "traced": message.traced,
        "hop_count": message.hop_count,
        "connector_type": None if connector_type is None else str(connector_type),
    }


def queue_texts(message: ReceivedMessage) -> tuple[str | None, str | None, str | None]:
    """Return the names of the destination, the response queue and the administration queue."""
    header = message.packet.user
    admin_queue = _text(lambda: message.admin_queue, header.admin_queue)
    if isinstance(header.response_queue, SameAsAdmin):
        response_queue = admin_queue
    else:
        response_queue = _text(lambda: message.response_queue, header.response_queue)
    return _text(lambda: message.destination, header.destination), response_queue, admin_queue


def _text(read: Callable[[], FormatName | None], name: QueueName) -> str | None:
    try:
        found = read()
    except IllegalName:
        # Its sender wrote a name that is none. It is not ours to repair, but to show.
        return queue_names.describe(name)
    return None if found is None else str(found)
