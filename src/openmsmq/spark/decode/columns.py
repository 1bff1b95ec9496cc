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
from openmsmq.spark.decode.alike import alike, constant, each
from openmsmq.spark.decode.headers import header_column
from openmsmq.spark.decode.layouts import GUID, Layout, Part
from openmsmq.spark.decode.packed import Flags, Numbers, Packed
from openmsmq.spark.decode.queue_texts import NAMES, QueueTexts
from openmsmq.spark.decode.texts import (
    choose,
    guid_texts,
    identifiers,
    narrow_texts,
    spread,
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
        self.count = len(rows)
        self.lookup_ids = packed.lookup_ids
        if self.count != packed.count:
            self.lookup_ids = packed.lookup_ids[rows]
        self.layout = layout
        self.start = layout.start
        self.properties = layout.properties
        self.queues = queues
        self.queue_manager, self.queue = place

    def column(self, name: str) -> pa.Array:
        """Make one column."""
        return _COLUMNS[name](self)

    def bytes_of(self, part: Part) -> pa.Array:
        """Take a part of each message."""
        return self.packed.gather(*self.layout.places(part), pa.binary())

    @cached_property
    def bodies(self) -> pa.Array:
        """What is asked for as it is, and as text."""
        return self.bytes_of(self.layout.body)

    @cached_property
    def extensions(self) -> pa.Array:
        """What is asked for as it is, and as headers."""
        if _is_empty(self.layout.extension):
            return constant("extension", b"", self.count)
        return self.bytes_of(self.layout.extension)

    @cached_property
    def transactional(self) -> Flags:
        """Whether they have a TransactionHeader."""
        return self.layout.has(user.TRANSACTION)

    @cached_property
    def encrypted(self) -> Flags:
        """Whether their bodies are ciphertext."""
        encrypted: Flags = self.layout.security_flags & security.BODY_ENCRYPTED != 0
        return encrypted


def _is_empty(part: Part) -> bool:
    """Whether a part has no bytes in any message."""
    return bool((part[0] == part[1]).all())


def _number(messages: Messages, name: str, values: NDArray[Any]) -> pa.Array:
    """Make a column of numbers that none lacks."""
    if values.ndim == 0:
        return constant(name, int(values), messages.count)
    return _numbers(name, values)


def _numbers(name: str, values: NDArray[Any], there: Flags | None = None) -> pa.Array:
    """Make a column of numbers or times."""
    kind = arrow_type(name)
    width = np.int32 if kind.bit_width == 32 else np.int64
    validity = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    content = pa.py_buffer(np.ascontiguousarray(values, width))
    return pa.Array.from_buffers(kind, len(values), [validity, content])


def _authenticated(messages: Messages) -> pa.Array:
    kinds = messages.layout.security_flags >> 8 & 0x0F
    return _yes_no(messages, "authenticated", np.isin(kinds, _PROVED) if kinds.any() else kinds)


def _yes_no(messages: Messages, name: str, values: NDArray[Any]) -> pa.Array:
    """Make a column of what is so or not."""
    if values.ndim == 0:
        return constant(name, bool(values), messages.count)
    bits = pa.py_buffer(np.packbits(values.astype(bool), bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def _time(messages: Messages, name: str, seconds: NDArray[Any]) -> pa.Array:
    # The next answer has other times, so a column of one time is not worth keeping.
    return _numbers(name, each(seconds.astype(np.int64) * _MICROSECONDS, messages.count))


def _moved_time(messages: Messages) -> pa.Array:
    seconds = messages.start["moved_time_s"]
    if not seconds.any():
        return constant("moved_time", None, messages.count)
    seconds = each(seconds, messages.count)
    return _numbers("moved_time", seconds.astype(np.int64) * _MICROSECONDS, seconds != 0)


def _lifetime(messages: Messages, name: str) -> pa.Array:
    seconds = messages.start[name]
    if seconds.ndim == 0:
        one = int(seconds)
        return constant(name, None if one == INFINITE_S else one, messages.count)
    return _numbers(name, seconds, seconds != INFINITE_S)


def _optional_bytes(messages: Messages, name: str, part: Part) -> pa.Array:
    """Make a column of bytes that are null when there are none."""
    if _is_empty(part):
        return constant(name, None, messages.count)
    starts, ends = messages.layout.places(part)
    there = ends > starts
    return messages.packed.gather(starts, ends, pa.binary(), None if there.all() else there)


def _label(messages: Messages) -> pa.Array:
    if _is_empty(messages.layout.label):
        return constant("label", "", messages.count)
    return wide_texts(messages.bytes_of(messages.layout.label))


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
        return constant("text", None, messages.count)
    if len(found) == 1:
        return found[0]
    return pc.coalesce(*found)


def _some(values: pa.Array, rows: Flags) -> pa.Array:
    return values if rows.all() else values.take(pa.array(np.flatnonzero(rows)))


def _message_id(messages: Messages) -> pa.Array:
    return identifiers(messages.start["source"], messages.start.rows("message_number"))


def _source_qm(messages: Messages) -> pa.Array:
    source = messages.start["source"]
    if source.ndim > 1:
        return guid_texts(source)
    return constant("source_qm", guid_texts(source[np.newaxis])[0].as_py(), messages.count)


def _correlation_id(messages: Messages) -> pa.Array:
    fields = messages.properties
    if not (fields["correlation_source"].any() or fields["correlation_number"].any()):
        return constant("correlation_id", None, messages.count)
    sources, numbers = fields.rows("correlation_source"), fields.rows("correlation_number")
    there = sources.any(axis=1) | (numbers != 0)
    return spread(identifiers(alike(sources[there]), numbers[there]), there)


def _message_class_name(messages: Messages) -> pa.Array:
    classes = messages.properties["message_class"]
    if classes.ndim == 0:
        name = message_class_name(int(classes))
        return constant("message_class_name", name, messages.count)
    different, inverse = np.unique(classes, return_inverse=True)
    return choose([message_class_name(number) for number in different.tolist()], inverse)


def _transaction_id(messages: Messages) -> pa.Array:
    if not messages.transactional.any():
        return constant("transaction_id", None, messages.count)
    there = each(messages.transactional, messages.count)
    flags = each(messages.layout.transaction_flags, messages.count)[there]
    numbers = (flags & transaction.TRANSACTION_NUMBER) >> transaction.TRANSACTION_NUMBER_SHIFT
    sources = messages.start.rows("source")[there]
    return spread(identifiers(alike(sources), numbers), there)


def _queue_name(messages: Messages, name: str) -> pa.Array:
    number = NAMES.index(name)
    texts = [None if found is None else found[number] for found in messages.queues.different]
    if len(texts) == 1:
        return constant(name, texts[0], messages.count)
    return choose(texts, messages.queues.numbers)


def _dead_letter_queue(messages: Messages) -> pa.Array:
    if _is_empty(messages.layout.tail):
        return constant("dead_letter_queue", None, messages.count)
    tails = messages.bytes_of(messages.layout.tail).dictionary_encode()
    paths = [dead_letter_path(tail) or None for tail in tails.dictionary.to_pylist()]
    return choose(paths, tails.indices.to_numpy())


def _connector_type(messages: Messages) -> pa.Array:
    has_one = messages.layout.has(user.CONNECTOR)
    if not has_one.any():
        return constant("connector_type", None, messages.count)
    there = each(has_one, messages.count)
    places = (messages.layout.packets + messages.layout.connector_types)[there]
    return spread(guid_texts(messages.packed.records(GUID, places)["octets"]), there)


_COLUMNS: Final[dict[str, Callable[[Messages], pa.Array]]] = {
    "queue_manager": lambda m: constant("queue_manager", m.queue_manager, m.count),
    "queue": lambda m: constant("queue", m.queue, m.count),
    "arrival_number": lambda m: _numbers("arrival_number", m.lookup_ids & _ARRIVAL_MASK),
    "lookup_id": lambda m: _numbers("lookup_id", m.lookup_ids),
    "arrived_time": lambda m: _time(m, "arrived_time", m.start["arrived_time_s"]),
    "abort_count": lambda m: _number(m, "abort_count", m.start["abort_count"]),
    "move_count": lambda m: _number(m, "move_count", m.start["move_count"]),
    "moved_time": _moved_time,
    "message_id": _message_id,
    "source_qm": _source_qm,
    "sent_time": lambda m: _time(m, "sent_time", m.start["sent_time_s"]),
    "sender_id": lambda m: _optional_bytes(m, "sender_id", m.layout.sender_id),
    "sender_certificate": lambda m: _optional_bytes(
        m, "sender_certificate", m.layout.sender_certificate
    ),
    "authenticated": _authenticated,
    "label": _label,
    "body": lambda m: m.bodies,
    "body_type": lambda m: _number(m, "body_type", m.properties["body_type"]),
    "text": _text,
    "extension": lambda m: m.extensions,
    "headers": lambda m: header_column(m.extensions),
    "application_tag": lambda m: _number(m, "application_tag", m.properties["application_tag"]),
    "correlation_id": _correlation_id,
    "message_class": lambda m: _number(m, "message_class", m.properties["message_class"]),
    "message_class_name": _message_class_name,
    "priority": lambda m: _number(m, "priority", m.start["base_flags"] & base.PRIORITY),
    "recoverable": lambda m: _yes_no(
        m, "recoverable", m.start["flags"] & user.DELIVERY == user.RECOVERABLE
    ),
    "transactional": lambda m: _yes_no(m, "transactional", m.transactional),
    "first_in_transaction": lambda m: _yes_no(
        m, "first_in_transaction", m.layout.transaction_flags & transaction.FIRST
    ),
    "last_in_transaction": lambda m: _yes_no(
        m, "last_in_transaction", m.layout.transaction_flags & transaction.LAST
    ),
    "transaction_id": _transaction_id,
    "destination": lambda m: _queue_name(m, "destination"),
    "response_queue": lambda m: _queue_name(m, "response_queue"),
    "admin_queue": lambda m: _queue_name(m, "admin_queue"),
    "dead_letter_queue": _dead_letter_queue,
    "acknowledge": lambda m: _number(
        m, "acknowledge", m.properties["acknowledge"] & message_properties.ACKNOWLEDGMENTS
    ),
    "journal_on_failure": lambda m: _yes_no(
        m, "journal_on_failure", m.layout.has(user.JOURNAL_ON_FAILURE)
    ),
    "journal_on_success": lambda m: _yes_no(
        m, "journal_on_success", m.layout.has(user.JOURNAL_ON_SUCCESS)
    ),
    "time_to_reach_queue_s": lambda m: _lifetime(m, "time_to_reach_queue_s"),
    "time_to_be_received_s": lambda m: _lifetime(m, "time_to_be_received_s"),
    "encrypted": lambda m: _yes_no(m, "encrypted", m.encrypted),
    # A traced message has a header that only the scalar codec reads.
    "traced": lambda m: _yes_no(m, "traced", m.start["base_flags"] & base.TRACE),
    "hop_count": lambda m: _number(m, "hop_count", m.start["flags"] & user.HOP_COUNT),
    "connector_type": _connector_type,
    "error": lambda m: constant("error", None, m.count),
}
