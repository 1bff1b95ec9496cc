"""Administration acknowledgments: what became of a message, for its sender. [MQQB 3.1.7.15]"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.message import MessageClass, is_about_receiving, is_negative
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    IllegalName,
    PrivateFormatName,
    PublicFormatName,
)
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import security, user
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    MessageProperties,
)
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
)
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.message_bytes import acknowledge
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode, encode
from openmsmq.wire.srmp.urls import url_of

if TYPE_CHECKING:
    from collections.abc import Callable


class Report(msgspec.Struct, frozen=True):
    """An acknowledgment and the queue it goes to."""

    queue: FormatName
    packet: bytes


def report_for(
    packet: bytes,
    reason: MessageClass,
    local: Guid,
    owner_of: Callable[[PublicFormatName], Guid],
    body_max: Callable[[FormatName], int | None],
) -> Report | None:
    """Make the acknowledgment that a message asked for in this case, if it did.

    `owner_of` gives the queue manager of a public queue, and `body_max` how long a body may be
    that is shown to a queue.
    """
    try:
        original = decode(packet)
    except DecodeError:
        return None
    if not isinstance(original, UserMessage):
        return None
    if not original.properties.acknowledge & _wanted_for(reason):
        return None
    queue = _admin_queue(original.user, local)
    if queue is None:
        return None
    longest = body_max(queue)
    shows_body = longest is None or len(original.properties.body) <= longest
    manager, destination = _destination(queue, owner_of)
    if url_of(original.user.admin_queue):
        # Others may take its cases for different ones.
        destination = original.user.admin_queue
    acknowledgment = _acknowledgment(
        original, reason, manager, destination, local, shows_body=shows_body
    )
    try:
        return Report(queue, encode(acknowledgment))
    except EncodeError:
        # Its names may take more bytes than those of the message, which was as long as it may be.
        without = msgspec.structs.replace(
            acknowledgment.properties, body=b"", body_type=0, body_size=0, allocated_size=0
        )
        return Report(queue, encode(msgspec.structs.replace(acknowledgment, properties=without)))


def is_wanted(packet: bytes, reason: MessageClass) -> bool:
    """Whether a message asks for an acknowledgment in this case; cheaper than to make one."""
    found = outline(packet)
    asks = acknowledge(packet, found) & _wanted_for(reason)
    return bool(found.flags & user.ADMIN_QUEUE and asks)


def admin_queue_of(packet: bytes, local: Guid) -> FormatName | None:
    """Return the queue to which acknowledgments of a message go; None if there is none."""
    try:
        message = decode(packet)
    except DecodeError:
        return None
    return _admin_queue(message.user, local) if isinstance(message, UserMessage) else None


def _wanted_for(reason: MessageClass) -> int:
    if is_negative(reason):
        return NEGATIVE_RECEIVE if is_about_receiving(reason) else NEGATIVE_ARRIVAL
    return POSITIVE_RECEIVE if is_about_receiving(reason) else POSITIVE_ARRIVAL


def _admin_queue(header: UserHeader, local: Guid) -> FormatName | None:
    match header.admin_queue:
        case DirectName(text):
            return _or_none(lambda: DirectFormatName.from_wire_text(text))
        case PublicName(queue):
            return PublicFormatName(queue)
        case PrivateName(manager, number):
            return PrivateFormatName(manager, number)
        case PrivateOnSource(number):
            return PrivateFormatName(header.source, number)
        case PrivateOnDestination(number):
            return PrivateFormatName(_destination_manager(header, local), number)
        case _:
            return None


def _acknowledgment(
    original: UserMessage,
    reason: MessageClass,
    manager: Guid,
    destination: QueueName,
    local: Guid,
    *,
    shows_body: bool,
) -> UserMessage:
    old = original.properties
    # A reader of a negative acknowledgment wants to know what failed; an encrypted body would
    # tell nothing to anybody but the one it was meant for.
    is_encrypted = (
        original.security is not None and original.security.flags & security.BODY_ENCRYPTED
    )
    body = old.body if shows_body and is_negative(reason) and not is_encrypted else b""
    return UserMessage(
        UserHeader(
            local,
            manager,
            flags=original.user.flags & user.DELIVERY,
            destination=destination,
            response_queue=_response_queue(original.user, local),
        ),
        MessageProperties(
            body=body,
            label=old.label,
            message_class=reason,
            correlation_id=MessageId(original.user.source, original.user.message_number).to_bytes(),
            body_type=old.body_type if body else 0,
            application_tag=old.application_tag,
            body_size=len(body),
            allocated_size=len(body),
        ),
    )


def _destination(
    queue: FormatName, owner_of: Callable[[PublicFormatName], Guid]
) -> tuple[Guid, QueueName]:
    match queue:
        case PrivateFormatName():
            return queue.queue_manager, PrivateOnDestination(queue.number)
        case PublicFormatName():
            # Queue managers on the way go by its owner, and may not know the queue themselves.
            return owner_of(queue), PublicName(queue.queue)
        case DirectFormatName():
            return NIL_GUID, DirectName(queue.wire_text)
        case _:
            return NIL_GUID, None


def _response_queue(header: UserHeader, local: Guid) -> QueueName:
    if isinstance(header.destination, PrivateOnDestination):
        return PrivateName(_destination_manager(header, local), header.destination.number)
    return header.destination


def _destination_manager(header: UserHeader, local: Guid) -> Guid:
    return local if header.destination_manager == NIL_GUID else header.destination_manager


def _or_none(read: Callable[[], FormatName]) -> FormatName | None:
    try:
        return read()
    except IllegalName:
        return None
