"""Stored packets made fit to be sent again, and why a message has become a dead letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import SequenceId
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.names import DirectFormatName, parse_format_name
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import DELIVERY, RECOVERABLE
from openmsmq.wire.resending import unsigned

if TYPE_CHECKING:
    from openmsmq.client.messages.received import ReceivedMessage

# The queue manager numbers the messages of a transaction.
_NOT_NUMBERED: Final = TransactionHeader(SequenceId(0, 0), 0)


class PacketRewriter:
    """Makes a stored packet fit to be sent again: to a queue, or to where it was sent before."""

    def __init__(self, *, transactional: bool, format_name: str | None = None) -> None:
        self._destination: DirectName | None = None
        if format_name is not None:
            name = parse_format_name(format_name)
            assert isinstance(name, DirectFormatName), "a queue manager shows direct names"
            self._destination = DirectName(name.wire_text)
        self._transactional = transactional

    def rewrite(self, packet: bytes) -> bytes:
        """Address a packet to its queue, in a transaction if it needs one; the rest stays.

        Its identifier and time are given anew when it is sent.
        """
        try:
            message = packets.decode(packet)
        except DecodeError as error:
            raise InvalidParameter(f"not a message: {error}") from None
        if not isinstance(message, packets.UserMessage):
            raise InvalidParameter(f"a {type(message).__name__} is not a message")
        properties = message.properties
        if is_negative(properties.message_class) and message.user.journal_on_failure:
            # A dead letter tells its reason by its class; sent again, it is itself again.
            properties = msgspec.structs.replace(properties, message_class=MessageClass.NORMAL)
        user = message.user
        if self._transactional:
            # In a transaction every message survives a restart.
            flags = user.flags & ~DELIVERY | RECOVERABLE
            user = msgspec.structs.replace(user, flags=flags)
        if self._destination is not None:
            user = msgspec.structs.replace(user, destination=self._destination)
        return packets.encode(
            msgspec.structs.replace(
                unsigned(message),
                user=user,
                properties=properties,
                transaction=_NOT_NUMBERED if self._transactional else None,
            )
        )


def dead_letter_reason(message: ReceivedMessage) -> str | None:
    """Return why a message is in a dead-letter queue, as far as it shows."""
    if is_negative(message.message_class):
        return message.message_class_name
    within_s = message.time_to_be_received_s
    waited_s = (message.arrived_time - message.sent_time).total_seconds()
    if within_s is not None and waited_s >= within_s:
        return MessageClass.NACK_RECEIVE_TIMEOUT.name
    return None
