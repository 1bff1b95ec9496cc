"""Which messages are traced, and what spans say of them.

Only those whose sender records the trace: his word is in the extension of the message.
"""

from __future__ import annotations

import msgspec

from openmsmq.client.messages.names import name_text
from openmsmq.model.identity import MessageId
from openmsmq.wire import message_bytes, packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.outline import outline
from openmsmq.wire.trace_context import TraceContext, trace_context_in


class TracedMessage(msgspec.Struct, frozen=True):
    """What a span says of a message. Nothing of its body or label is kept."""

    context: TraceContext
    message_id: str
    body_bytes: int
    destination: str
    """The format name to which it was sent."""


def traced(packet: bytes) -> TracedMessage | None:
    """Return what is to be told of a message; None if its sender does not record a trace."""
    try:
        context = trace_context_in(message_bytes.extension(packet, outline(packet)))
        if context is None or not context.is_sampled:
            return None
        whole = packets.decode(packet)
        if not isinstance(whole, packets.UserMessage):
            return None
        return TracedMessage(
            context,
            str(MessageId.from_bytes(message_bytes.message_id(packet))),
            message_bytes.body_size(packet),
            name_text(whole.user.destination, whole.user) or "",
        )
    except DecodeError:
        return None
