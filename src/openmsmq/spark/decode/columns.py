"""The columns of messages that were laid out: one function for each, run only if it is wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import AuthenticationLevel, BodyType, message_class_name
from openmsmq.spark.decode.headers import header_column
from openmsmq.spark.decode.layouts import GUID, Layout, Part
from openmsmq.spark.decode.packed import Flags, Numbers, Packed
from openmsmq.spark.decode.queue_texts import NAMES, QueueTexts
from openmsmq.spark.decode.texts import (
    choose,
    guid_texts,
    identifiers,
    narrow_texts,
    repeated_guid_texts,
    spread,
    texts_of,
    wide_texts,
)
from openmsmq.spark.schema import arrow_type
from openmsmq.wire.extensions import dead_letter_path
from openmsmq.wire.headers import base, message_properties, security, transaction, user

_ARRIVAL_MASK: Final = (1 << 56) - 1
_MICROSECONDS: Final = 1_000_000
_PROVED: Final = tuple(level for level in AuthenticationLevel if level)
"""Kinds of signatures that prove something."""
_WIDE: Final = (BodyType.TEXT, BodyType.WIDE_TEXT)
_NARROW: Final = (BodyType.UNSPECIFIED, BodyType.NARROW_TEXT, BodyType.BYTES)


class Messages:
    """Messages that were laid out, and what several of their columns are made from."""

    def __init__(
        self,
        packed: Packed,
        rows: Numbers,
        layout: Layout,
        queues: QueueTexts,
        place: tuple[str, str],
    ) -> None:
        self.packed = packed
        self.lookup_ids = packed.lookup_ids[rows]
        self.count = len(rows)
        self.layout = layout
        self.start = layout.start
        self.properties = layout.properties
        self.queues = queues
        self.queue_manager, self.queue = place

    def column(self, name: str) -> pa.Array:
        """Make one column."""
        return _COLUMNS[name](self)

    @cached_property
    def bodies(self) -> pa.Array:
        """What is asked for as it is, and as text."""
        return self.packed.gather(*self.layout.body, pa.binary())

    @cached_property
    def extensions(self) -> pa.Array:
        """What is asked for as it is, and as headers."""
        return self.packed.gather(*self.layout.extension, pa.binary())

    @cached_property
    def transactional(self) -> Flags:
        """Whether they have a TransactionHeader."""
        return self.layout.has(user.TRANSACTION)

    @cached_property
    def encrypted(self) -> Flags:
        """Whether their bodies are ciphertext."""
        encrypted: Flags = self.layout.security_flags & security.BODY_ENCRYPTED != 0
        return encrypted


def _numbers(name: str, values: NDArray[Any], there: Flags | None = None) -> pa.Array:
    """Make a column of numbers or times."""
    kind = arrow_type(name)
    width = np.int32 if kind.bit_width == 32 else np.int64
    validity = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    content = pa.py_buffer(np.ascontiguousarray(values, width))
    return pa.Array.from_buffers(kind, len(values), [validity, content])


def _authenticated(messages: Messages) -> pa.Array:
    kinds = messages.layout.security_flags >> 8 & 0x0F
    return _yes_no(np.isin(kinds, _PROVED) if kinds.any() else kinds)


def _yes_no(values: NDArray[Any]) -> pa.Array:
    """Make a column of what is so or not."""
    bits = pa.py_buffer(np.packbits(values.astype(bool), bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def _time(name: str, seconds: NDArray[Any], there: Flags | None = None) -> pa.Array:
    return _numbers(name, seconds.astype(np.int64) * _MICROSECONDS, there)


def _moved_time(messages: Messages) -> pa.Array:
    seconds = messages.start["moved_time_s"]
    return _time("moved_time", seconds, seconds != 0)


def _lifetime(messages: Messages, name: str) -> pa.Array:
    seconds = messages.start[name]
    return _numbers(name, seconds, seconds != INFINITE_S)


def _optional_bytes(messages: Messages, part: Part) -> pa.Array:
    """Make a column of bytes that are null when there are none."""
    starts, ends = part
    there = ends > starts
    if not there.any():
        return pa.nulls(messages.count, pa.binary())
    return messages.packed.gather(starts, ends, pa.binary(), there)


def _label(messages: Messages) -> pa.Array:
    return wide_texts(messages.packed.gather(*messages.layout.label, pa.binary()))


def _text(messages: Messages) -> pa.Array:
    body_type = messages.properties["body_type"]
    readable = ~messages.encrypted
    wide = np.isin(body_type, _WIDE) & readable
    narrow = np.isin(body_type, _NARROW) & readable
    found = [
        spread(convert(_some(messages.bodies, rows)), rows)
        for rows, convert in ((wide, wide_texts), (narrow, narrow_texts))
        if rows.any()
    ]
    if not found:
        return pa.nulls(messages.count, pa.string())
    if len(found) == 1:
        return found[0]
    return pc.coalesce(*found)


def _some(values: pa.Array, rows: Flags) -> pa.Array:
    return values if rows.all() else values.take(pa.array(np.flatnonzero(rows)))


def _correlation_id(messages: Messages) -> pa.Array:
    sources = messages.properties["correlation_source"]
    numbers = messages.properties["correlation_number"]
    halves = np.ascontiguousarray(sources).view("<u8")
    there = (halves[:, 0] != 0) | (halves[:, 1] != 0) | (numbers != 0)
    if not there.any():
        return pa.nulls(messages.count, pa.string())
    return spread(identifiers(sources[there], numbers[there]), there)


def _transaction_id(messages: Messages) -> pa.Array:
    there = messages.transactional
    if not there.any():
        return pa.nulls(messages.count, pa.string())
    flags = messages.layout.transaction_flags[there]
    numbers = (flags & transaction.TRANSACTION_NUMBER) >> transaction.TRANSACTION_NUMBER_SHIFT
    return spread(identifiers(messages.start["source"][there], numbers), there)


def _queue_name(messages: Messages, name: str) -> pa.Array:
    number = NAMES.index(name)
    texts = [None if found is None else found[number] for found in messages.queues.different]
    return choose(texts, messages.queues.numbers)


def _dead_letter_queue(messages: Messages) -> pa.Array:
    starts, ends = messages.layout.tail
    if (starts == ends).all():
        return pa.nulls(messages.count, pa.string())
    tails = messages.packed.gather(starts, ends, pa.binary()).dictionary_encode()
    paths = [dead_letter_path(tail) or None for tail in tails.dictionary.to_pylist()]
    return choose(paths, tails.indices.to_numpy())


def _connector_type(messages: Messages) -> pa.Array:
    there = messages.layout.has(user.CONNECTOR)
    if not there.any():
        return pa.nulls(messages.count, pa.string())
    places = messages.layout.connector_types[there]
    return spread(guid_texts(messages.packed.records(GUID, places)["octets"]), there)


_COLUMNS: Final[dict[str, Callable[[Messages], pa.Array]]] = {
    "queue_manager": lambda m: pa.repeat(pa.scalar(m.queue_manager, pa.string()), m.count),
    "queue": lambda m: pa.repeat(pa.scalar(m.queue, pa.string()), m.count),
    "arrival_number": lambda m: _numbers("arrival_number", m.lookup_ids & _ARRIVAL_MASK),
    "lookup_id": lambda m: _numbers("lookup_id", m.lookup_ids),
    "arrived_time": lambda m: _time("arrived_time", m.start["arrived_time_s"]),
    "abort_count": lambda m: _numbers("abort_count", m.start["abort_count"]),
    "move_count": lambda m: _numbers("move_count", m.start["move_count"]),
    "moved_time": _moved_time,
    "message_id": lambda m: identifiers(m.start["source"], m.start["message_number"]),
    "source_qm": lambda m: repeated_guid_texts(m.start["source"]),
    "sent_time": lambda m: _time("sent_time", m.start["sent_time_s"]),
    "sender_id": lambda m: _optional_bytes(m, m.layout.sender_id),
    "sender_certificate": lambda m: _optional_bytes(m, m.layout.sender_certificate),
    "authenticated": _authenticated,
    "label": _label,
    "body": lambda m: m.bodies,
    "body_type": lambda m: _numbers("body_type", m.properties["body_type"]),
    "text": _text,
    "extension": lambda m: m.extensions,
    "headers": lambda m: header_column(m.extensions),
    "application_tag": lambda m: _numbers("application_tag", m.properties["application_tag"]),
    "correlation_id": _correlation_id,
    "message_class": lambda m: _numbers("message_class", m.properties["message_class"]),
    "message_class_name": lambda m: texts_of(m.properties["message_class"], message_class_name),
    "priority": lambda m: _numbers("priority", m.start["base_flags"] & base.PRIORITY),
    "recoverable": lambda m: _yes_no(m.start["flags"] & user.DELIVERY == user.RECOVERABLE),
    "transactional": lambda m: _yes_no(m.transactional),
    "first_in_transaction": lambda m: _yes_no(m.layout.transaction_flags & transaction.FIRST),
    "last_in_transaction": lambda m: _yes_no(m.layout.transaction_flags & transaction.LAST),
    "transaction_id": _transaction_id,
    "destination": lambda m: _queue_name(m, "destination"),
    "response_queue": lambda m: _queue_name(m, "response_queue"),
    "admin_queue": lambda m: _queue_name(m, "admin_queue"),
    "dead_letter_queue": _dead_letter_queue,
    "acknowledge": lambda m: _numbers(
        "acknowledge", m.properties["acknowledge"] & message_properties.ACKNOWLEDGMENTS
    ),
    "journal_on_failure": lambda m: _yes_no(m.layout.has(user.JOURNAL_ON_FAILURE)),
    "journal_on_success": lambda m: _yes_no(m.layout.has(user.JOURNAL_ON_SUCCESS)),
    "time_to_reach_queue_s": lambda m: _lifetime(m, "time_to_reach_queue_s"),
    "time_to_be_received_s": lambda m: _lifetime(m, "time_to_be_received_s"),
    "encrypted": lambda m: _yes_no(m.encrypted),
    # A traced message has a header that only the scalar codec reads.
    "traced": lambda m: _yes_no(m.start["base_flags"] & base.TRACE),
    "hop_count": lambda m: _numbers("hop_count", m.start["flags"] & user.HOP_COUNT),
    "connector_type": _connector_type,
    "error": lambda m: pa.nulls(m.count, pa.string()),
}
