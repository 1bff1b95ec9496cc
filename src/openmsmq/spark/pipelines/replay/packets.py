"""Dead letters as messages again: as they were, or with some of their properties changed.

What was not changed leaves as the packet that it was, so that nothing of it is lost, not even what
has no column. Its identifier and time are given anew, because the queue manager sends it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.client.messages.properties import PROPERTIES
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.message import BodyType, MessageClass
from openmsmq.model.names import DirectFormatName, FormatName, PrivateFormatName
from openmsmq.spark.sink.options import PROPERTIES as SET_BY_ROWS
from openmsmq.wire import packets
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, QueueName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.resending import unsigned

# The queue manager numbers the messages of a transaction.
_NOT_NUMBERED: Final = TransactionHeader(SequenceId(0, 0), 0)
_NARROW: Final = frozenset({BodyType.UNSPECIFIED, BodyType.NARROW_TEXT, BodyType.BYTES})
_WIDE: Final = frozenset({BodyType.TEXT, BodyType.WIDE_TEXT})


def is_addressable(name: FormatName) -> bool:
    """Whether a packet can be addressed to a queue of this name."""
    match name:
        case DirectFormatName():
            return True
        case PrivateFormatName(journal=journal):
            return not journal
        case _:
            return False


def packet_again(
    message: ReceivedMessage, destination: FormatName, *, transactional: bool
) -> bytes:
    """Return the packet of a dead letter, addressed to a queue, with everything else as it was.

    It is recoverable: once it is sent, its dead letter is removed. It has been nowhere yet, so the
    hops of its first journey do not count.
    """
    packet = unsigned(message.packet)
    manager, name = _wire_name(destination)
    flags = packet.user.flags & ~(user.HOP_COUNT | user.DELIVERY) | user.RECOVERABLE
    try:
        return packets.encode(
            msgspec.structs.replace(
                packet,
                user=msgspec.structs.replace(
                    packet.user,
                    destination_manager=manager,
                    destination=name,
                    flags=flags,
                    padding=b"",
                ),
                # A dead letter tells its reason by its class; sent again, it is itself again.
                properties=msgspec.structs.replace(
                    packet.properties, message_class=MessageClass.NORMAL
                ),
                transaction=_NOT_NUMBERED if transactional else None,
            )
        )
    except EncodeError as error:
        raise InvalidParameter(f"it cannot be addressed to {destination}: {error}") from None


def _wire_name(name: FormatName) -> tuple[Guid, QueueName]:
    match name:
        case DirectFormatName():
            return NIL_GUID, DirectName(name.wire_text)
        case PrivateFormatName(queue_manager=manager, number=number):
            return manager, PrivateOnDestination(number)
        case _:
            raise InvalidParameter(f"{name}: packets cannot be addressed to it")


def message_again(message: ReceivedMessage, changes: Mapping[str, Any]) -> OutgoingMessage:
    """Return a dead letter as a message with some of its properties changed, by their columns."""
    security = message.packet.security
    if security is not None and (security.body_encrypted or security.signature):
        raise InvalidParameter("it is encrypted or signed: it can only be sent as it is")
    debug = message.packet.debug
    options = {name: getattr(message, PROPERTIES[name].name) for name in _KEPT}
    options |= {
        "recoverable": True,
        "dead_letter_queue": message.dead_letter_queue or None,
        "trace_queue": None if debug is None else debug.queue,
    }
    for name, value in changes.items():
        if name == "text":
            options |= _body_of(value, message.body_type)
        else:
            options[name] = _converted(name, value)
    if "body_type" in changes and changes["body_type"] is not None:
        options["body_type"] = changes["body_type"]
    return OutgoingMessage(**options)


def _body_of(text: str | None, body_type: int) -> dict[str, Any]:
    """Return a new text in the form that the old body had, or as text if it had none."""
    if body_type in _NARROW:
        return {"body": (text or "").encode(), "body_type": body_type}
    wide = body_type if body_type in _WIDE else BodyType.TEXT
    return {"body": (text or "").encode("utf-16-le"), "body_type": int(wide)}


def _converted(name: str, value: Any) -> Any:
    """Return the value of a column as an outgoing message has it; null is its default."""
    if name == "correlation_id":
        return bytes(20) if value is None else MessageId.parse(value)
    if value is None and name in _DEFAULTS:
        return _DEFAULTS[name]
    return bytes(value) if isinstance(value, bytearray) else value


_KEPT: Final = (*SET_BY_ROWS, "connector_type")
_DEFAULTS: Final[dict[str, Any]] = {
    name: getattr(OutgoingMessage(), name) for name in SET_BY_ROWS if not PROPERTIES[name].null
}
"""What stands for null in columns that have none."""
