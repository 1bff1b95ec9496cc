"""Spans of OpenTelemetry around what an application sends and reads (decision 0044).

`connect(..., telemetry=True)` has these steps in the places of the usual ones. A send is a span of
its own, and its messages carry its context in their headers; a read is a span that belongs to the
trace of its message. Which provider makes the spans, and where they go, the application decides.
A context that came with a message is a stranger's: it says to which trace a span belongs, no more.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import time_ns
from typing import Any, Final, Protocol, TypeVar, Unpack, cast

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from openmsmq.api import messages as api
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.messages.outgoing import LabelledBody, OutgoingMessage, SendOptions
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.queue import CursorHandle, QueueHandle
from openmsmq.client.steps import Step, Steps
from openmsmq.client.verbs import queue as queue_verbs
from openmsmq.client.verbs import read as read_verbs
from openmsmq.client.verbs.transactions import TransactionLike
from openmsmq.model.errors import MessageNotFound, MsmqError, ReceiveTimeout
from openmsmq.model.identity import MessageId
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire import message_bytes
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.outline import outline
from openmsmq.wire.trace_context import (
    TRACEPARENT,
    TRACESTATE,
    TRACESTATE_MAX_CHARACTERS,
    TraceContext,
    trace_context_in,
)

Result = TypeVar("Result")

BODY_WITH_CONTEXT_MAX_BYTES: Final = PACKET_MAX_BYTES - 64 * 1024
"""A message with a longer body goes without a context, which could make it too long to be sent."""

LINKS_MAX_COUNT: Final = 128
"""Senders to which one read of many messages is linked; so many an SDK keeps by default."""

_TRACER: Final = trace.get_tracer("openmsmq")
_PROPAGATOR: Final = TraceContextTextMapPropagator()
_UTF16_BYTES: Final = 2


def context_of(message: ReceivedMessage) -> Context:
    """Return the context of a message's sender, for spans about what is done with the message.

    It is empty if the message carries none: a span in it begins a trace of its own.
    """
    carried = _carried_by(message)
    return Context() if carried is None else _PROPAGATOR.extract(carried.headers)


def _carried_by(message: ReceivedMessage) -> TraceContext | None:
    packet = message.entry.packet
    try:
        return trace_context_in(message_bytes.extension(packet, outline(packet)))
    except DecodeError:
        return None


# Sending.


def _send(
    queue: QueueHandle,
    body: object = b"",
    *,
    transaction: TransactionLike = None,
    **options: Unpack[SendOptions],
) -> Steps[MessageId]:
    with _send_span(queue) as span:
        context = _context_to_carry(span)
        if context is not None:
            message = body if isinstance(body, OutgoingMessage) else OutgoingMessage(body=body)
            headers = _headers(msgspec.structs.replace(message, **options), context)
            if headers is not None:
                options["headers"] = headers
        steps = queue_verbs.send(queue, body, transaction=transaction, **options)
        sent = yield from _watched(steps, lambda step: _note_size(span, step))
        span.set_attribute("messaging.message.id", str(sent))
        return sent


def _send_many(
    queue: QueueHandle,
    bodies: Iterable[object],
    *,
    transaction: TransactionLike = None,
    **options: Unpack[SendOptions],
) -> Steps[list[MessageId]]:
    with _send_span(queue) as span:
        context = _context_to_carry(span)
        if context is not None:
            bodies = _each_with_context(bodies, options, context)
            options = _without_extension(options)
        sent = yield from queue_verbs.send_many(queue, bodies, transaction=transaction, **options)
        span.set_attribute("messaging.batch.message_count", len(sent))
        return sent


@contextlib.contextmanager
def _send_span(queue: QueueHandle) -> Iterator[Span]:
    span = _TRACER.start_span(
        f"send {queue.name}", kind=SpanKind.PRODUCER, attributes=_facts(queue, "send")
    )
    try:
        yield span
    except BaseException as error:
        _fail(span, error)
        raise
    finally:
        span.end()


def _context_to_carry(span: Span) -> TraceContext | None:
    """Return the context of a span as messages have it; None where nobody makes spans."""
    headers: dict[str, str] = {}
    _PROPAGATOR.inject(headers, trace.set_span_in_context(span))
    parent, state = headers.get(TRACEPARENT), headers.get(TRACESTATE, "")
    if parent is None:
        return None
    return TraceContext(parent, state if len(state) <= TRACESTATE_MAX_CHARACTERS else "")


def _headers(message: OutgoingMessage, context: TraceContext) -> Mapping[str, str] | None:
    """Return the headers of a message with a context.

    None if it is to stay as it is: it has an extension that is something else, a context that the
    application has written itself, or no room.
    """
    given = message.headers or {}
    if message.extension or TRACEPARENT in given or not _has_room(message.body):
        return None
    return {**given, **context.headers}


def _has_room(body: object) -> bool:
    if isinstance(body, str):
        return _UTF16_BYTES * len(body) <= BODY_WITH_CONTEXT_MAX_BYTES
    return not isinstance(body, bytes) or len(body) <= BODY_WITH_CONTEXT_MAX_BYTES


def _each_with_context(
    bodies: Iterable[object], options: SendOptions, context: TraceContext
) -> Iterator[object]:
    """Yield each as a whole message: each may have an extension or headers of its own."""
    for body in bodies:
        if isinstance(body, OutgoingMessage):
            message = body
        elif isinstance(body, LabelledBody):
            message = OutgoingMessage(body=body.body, label=body.label)
        else:
            message = OutgoingMessage(body=body)
        message = msgspec.structs.replace(message, **options)
        headers = _headers(message, context)
        yield message if headers is None else msgspec.structs.replace(message, headers=headers)


def _without_extension(options: SendOptions) -> SendOptions:
    """Return the options without what each message has got already."""
    rest = options.copy()
    rest.pop("extension", None)
    rest.pop("headers", None)
    return rest


def _watched(steps: Steps[Result], look: Callable[[Step], None]) -> Steps[Result]:
    """Take steps, and look at each."""
    try:
        step = next(steps)
        while True:
            look(step)
            try:
                outcome = yield step
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(outcome)
    except StopIteration as stop:
        result: Result = stop.value
        return result


def _note_size(span: Span, step: Step) -> None:
    if isinstance(step, api.Send):
        (packet,) = step.packets
        span.set_attribute("messaging.message.body.size", message_bytes.body_size(packet))


# Reading.


def _reading(
    operation: str, steps: Callable[..., Steps[Any]], *, is_many: bool = False
) -> Callable[..., Steps[Any]]:
    """Return the steps of a read with its span, which is made when it is known what was read.

    Who waits in vain makes none.
    """

    @functools.wraps(steps)
    def traced(reader: QueueHandle | CursorHandle, *args: Any, **options: Any) -> Steps[Any]:
        queue = reader.queue if isinstance(reader, CursorHandle) else reader
        began_ns = time_ns()
        try:
            found = yield from steps(reader, *args, **options)
        except (ReceiveTimeout, MessageNotFound):
            raise
        except (MsmqError, ConnectionLost) as error:
            span = _read_span(queue, operation, [], began_ns)
            _fail(span, error)
            span.end()
            raise
        span = _read_span(queue, operation, found if is_many else [found], began_ns)
        if is_many:
            span.set_attribute("messaging.batch.message_count", len(found))
        elif span.is_recording():
            _note_message(span, found.entry.packet)
        span.end()
        return found

    return traced


def _note_message(span: Span, packet: bytes) -> None:
    with contextlib.suppress(DecodeError):
        span.set_attribute("messaging.message.body.size", message_bytes.body_size(packet))
        identifier = MessageId.from_bytes(message_bytes.message_id(packet))
        span.set_attribute("messaging.message.id", str(identifier))


def _read_span(
    queue: QueueHandle, operation: str, messages: list[ReceivedMessage], began_ns: int
) -> Span:
    """Begin the span of a read: a child of what the application is doing, linked to the senders.

    Where it is doing nothing, the read of one message is a child of the span that sent it. To wait
    for a message that was not there yet is no part of its trace.
    """
    senders = [sender for sender in map(_sender, messages[:LINKS_MAX_COUNT]) if sender is not None]
    parent: Context | None = None
    links = [Link(sender) for sender in senders]
    if len(messages) == 1 and senders and not trace.get_current_span().get_span_context().is_valid:
        parent = trace.set_span_in_context(trace.NonRecordingSpan(senders[0]))
        links = []
    if messages:
        arrived_ns = min(message.entry.arrived_time_s for message in messages) * 1_000_000_000
        began_ns = min(max(began_ns, arrived_ns), time_ns())
    return _TRACER.start_span(
        f"{operation} {queue.name}",
        context=parent,
        kind=SpanKind.CONSUMER,
        attributes=_facts(queue, operation),
        links=links,
        start_time=began_ns,
    )


def _sender(message: ReceivedMessage) -> SpanContext | None:
    found = trace.get_current_span(context_of(message)).get_span_context()
    return found if found.is_valid else None


# What spans say.


class _Connected(Protocol):
    """A queue of either client."""

    connection: Any


def _facts(queue: QueueHandle, operation: str) -> dict[str, AttributeValue]:
    """Return the attributes of the semantic conventions for messaging."""
    facts: dict[str, AttributeValue] = {
        "messaging.system": "msmq",
        "messaging.destination.name": queue.name,
        "messaging.operation.name": operation,
        "messaging.operation.type": "send" if operation == "send" else "receive",
    }
    settings = cast("_Connected", queue).connection.settings
    if settings.unix_path is None:
        facts["server.address"], facts["server.port"] = settings.host_and_port
    else:
        facts["server.address"] = settings.unix_path
    return facts


def _fail(span: Span, error: BaseException) -> None:
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(Status(StatusCode.ERROR, str(error)))


QUEUE_STEPS: Final[Mapping[str, Callable[..., Steps[Any]]]] = {
    "send": functools.wraps(queue_verbs.send)(_send),
    "send_many": functools.wraps(queue_verbs.send_many)(_send_many),
    "receive": _reading("receive", read_verbs.receive),
    "receive_many": _reading("receive", read_verbs.receive_many, is_many=True),
    "peek": _reading("peek", read_verbs.peek),
    "peek_many": _reading("peek", read_verbs.peek_many, is_many=True),
    "receive_by_id": _reading("receive", read_verbs.receive_by_id),
    "peek_by_id": _reading("peek", read_verbs.peek_by_id),
    "receive_by_correlation_id": _reading("receive", read_verbs.receive_by_correlation_id),
    "peek_by_correlation_id": _reading("peek", read_verbs.peek_by_correlation_id),
    "receive_by_lookup_id": _reading("receive", read_verbs.receive_by_lookup_id),
    "peek_by_lookup_id": _reading("peek", read_verbs.peek_by_lookup_id),
    "begin_receive": _reading("receive", read_verbs.begin_receive),
    "begin_receive_by_lookup_id": _reading("receive", read_verbs.begin_receive_by_lookup_id),
}
"""The steps of a queue that make spans, by the names of the verbs."""

CURSOR_STEPS: Final[Mapping[str, Callable[..., Steps[Any]]]] = {
    "peek": _reading("peek", read_verbs.cursor_peek),
    "next": _reading("peek", read_verbs.cursor_next),
    "receive": _reading("receive", read_verbs.cursor_receive),
}
"""Those of a cursor."""
