"""What a sender sets is what the received message, JSON and Spark's columns all say."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.cli.views.message import message_object
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.client.messages.properties import PROPERTIES
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.identity import MessageId
from openmsmq.spark.decode.record_batches import decode
from openmsmq.spark.decode.rows import entries_in
from openmsmq.spark.schema import ALL_NAMES
from tests.spark.packing import pack
from tests.unit.client.messages.test_outgoing import builder, outgoing_messages

WHERE = {"queue_manager": "alpha", "queue": r"alpha\private$\orders"}


def expected(message: OutgoingMessage, transactional: bool) -> dict[str, Any]:
    """What columns show of an outgoing message, written down property by property."""
    is_text = isinstance(message.body, str)
    correlation = bytes(message.correlation_id)  # type: ignore[arg-type]
    lifetimes = (message.time_to_reach_queue_s, message.time_to_be_received_s)
    reach_s, receive_s = (None if each is None else math.ceil(each) for each in lifetimes)
    named = {
        name: None if value is None else str(value)
        for name in ("response_queue", "admin_queue", "dead_letter_queue", "connector_type")
        for value in [getattr(message, name)]
    }
    return named | {
        "body": str(message.body).encode("utf-16-le") if is_text else message.body,
        "body_type": 8 if is_text else 0x1011,
        "label": message.label,
        "priority": 0 if transactional else message.priority,
        "recoverable": message.recoverable or transactional,
        "transactional": transactional,
        "correlation_id": str(MessageId.from_bytes(correlation)) if any(correlation) else None,
        "acknowledge": message.acknowledge,
        "time_to_reach_queue_s": reach_s,
        "time_to_be_received_s": receive_s,
        "journal_on_failure": message.journal_on_failure or message.dead_letter_queue is not None,
        "journal_on_success": message.journal_on_success,
        "application_tag": message.application_tag,
        "extension": message.extension,
        "message_class": message.message_class,
        "traced": message.trace_queue is not None,
    }


def as_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return b64encode(value).decode() if isinstance(value, bytes) else value


@given(st.lists(outgoing_messages(), min_size=1, max_size=3), st.booleans())
def test_attributes_json_and_columns_agree_with_what_was_sent(
    messages: list[OutgoingMessage], transactional: bool
) -> None:
    raw = pack([builder().build(each, DEFAULT_FORMATTER, transactional) for each in messages])
    rows = decode(raw, **WHERE, columns=ALL_NAMES).batch.to_pylist()
    for message, entry, row in zip(messages, entries_in(raw), rows, strict=True):
        received = ReceivedMessage(entry, DEFAULT_FORMATTER)
        shown = message_object(received)
        for name, value in expected(message, transactional).items():
            assert row[name] == value, name
        for key in shown.keys() & row.keys():
            assert shown[key] == as_json(row[key]), key
        for key, property_ in PROPERTIES.items():
            if property_.plain is None and key in row and not property_.on_request:
                assert getattr(received, property_.name) == row[key], key
