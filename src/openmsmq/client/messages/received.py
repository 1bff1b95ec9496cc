"""Messages as they were received: views that decode their packets only when they are looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from openmsmq.api.messages import Entry
from openmsmq.client.formatters.base import Formatter, FormatterError
from openmsmq.client.formatters.nservicebus import read_headers
from openmsmq.model.identity import Guid, LookupId, MessageId, TransactionId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import (
    AuthenticationLevel,
    MessageClass,
    TransactionFacts,
    message_class_name,
)
from openmsmq.model.names import FormatName, parse_format_name
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.extensions import dead_letter_path
from openmsmq.wire.headers import message_properties, queue_names
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import (
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    QueueName,
    SameAsAdmin,
)
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.outline import BodyFinder
from openmsmq.wire.packets import UserMessage

_BODIES: Final = BodyFinder()
_SIGNATURE_KIND_SHIFT: Final = 8


class ReceivedMessage:
    """A message in its place in a queue. Nothing of it changes. [MQDMPR 3.1.1.12]

    The packet is decoded when the first property is read; the body, when `body` is.
    """

    __slots__ = ("_entry", "_formatter", "_packet")

    def __init__(self, entry: Entry, formatter: Formatter) -> None:
        self._entry = entry
        self._formatter = formatter
        self._packet: UserMessage | None = None

    @property
    def packet(self) -> UserMessage:
        """The whole packet, decoded."""
        packet = self._packet
        if packet is None:
            decoded = packets.decode(self._entry.packet)
            if not isinstance(decoded, UserMessage):
                raise DecodeError("BaseHeader", 2, "not the packet of a message")
            packet = self._packet = decoded
        return packet

    @property
    def packet_bytes(self) -> bytes:
        """The packet as it came."""
        return self._entry.packet

    # Its place in the queue.

    @property
    def lookup_id(self) -> LookupId:
        """Where it stands in its queue: the order of reading, not a count."""
        return LookupId(self._entry.lookup_id)

    @property
    def arrived_time(self) -> datetime:
        """When it came into its queue, in UTC."""
        return datetime.fromtimestamp(self._entry.arrived_time_s, UTC)

    @property
    def abort_count(self) -> int:
        """How often a transaction that received it was aborted: a sign of poison."""
        return self._entry.abort_count

    @property
    def move_count(self) -> int:
        """How often it was moved between a queue and its subqueues."""
        return self._entry.move_count

    @property
    def moved_time(self) -> datetime | None:
        """When it was last moved between a queue and its subqueues, in UTC; None if never."""
        moved_time_s = self._entry.moved_time_s
        return datetime.fromtimestamp(moved_time_s, UTC) if moved_time_s else None

    # Who sent it.

    @property
    def id(self) -> MessageId:
        """Its identifier, unique in the enterprise."""
        header = self._user
        return MessageId(header.source, header.message_number)

    @property
    def source_manager(self) -> Guid:
        """The queue manager that took it from its application."""
        return self._user.source

    @property
    def sent_time(self) -> datetime:
        """When it was sent, in UTC."""
        return datetime.fromtimestamp(self._user.sent_time_s, UTC)

    @property
    def sender_id(self) -> bytes:
        """The security identifier of its sender, or nothing."""
        security = self.packet.security
        return b"" if security is None else security.sender_id

    @property
    def sender_certificate(self) -> bytes:
        """The certificate of its sender, or nothing."""
        security = self.packet.security
        return b"" if security is None else security.sender_certificate

    @property
    def authentication(self) -> AuthenticationLevel:
        """What its signature has proved to the queue manager that keeps its queue."""
        security = self.packet.security
        level = 0 if security is None else security.flags >> _SIGNATURE_KIND_SHIFT & 0x0F
        known = level in AuthenticationLevel.__members__.values()
        return AuthenticationLevel(level) if known else AuthenticationLevel.NONE

    @property
    def is_authenticated(self) -> bool:
        """Whether it is proved that its sender sent it, as it is."""
        return self.authentication is not AuthenticationLevel.NONE

    @property
    def privacy(self) -> int:
        """How its body was encrypted on its way, a `PrivacyLevel`; here it is plain, mostly."""
        return self._properties.privacy_level

    # What the application said.

    @property
    def label(self) -> str:
        """Its label."""
        return self._properties.label_text

    @property
    def body(self) -> object:
        """The body as the queue's formatter reads it; may raise `FormatterError`."""
        body_type, body = self._plain_body()
        if body is None:
            raise FormatterError("the body is encrypted: body_bytes has its ciphertext")
        return self._formatter.read(body_type, body)

    @property
    def body_bytes(self) -> bytes:
        """The bytes of the body."""
        body = self._plain_body()[1]
        return self._properties.body if body is None else body

    def _plain_body(self) -> tuple[int, bytes | None]:
        """Return the type of the body, and its bytes unless they are ciphertext.

        Most readers want nothing but the body, which is found without decoding the packet.
        """
        packet = self._entry.packet
        if self._packet is None:
            found = _BODIES.find(packet)
            if found is not None:
                return found
        properties = self._properties
        body = None if self.is_encrypted else properties.body[: properties.body_size]
        return properties.body_type, body

    @property
    def body_type(self) -> int:
        """What the sender says the body is: a `BodyType`, or another number."""
        return self._properties.body_type

    @property
    def is_encrypted(self) -> bool:
        """Whether the body is ciphertext."""
        security = self.packet.security
        return security is not None and security.body_encrypted

    @property
    def extension(self) -> bytes:
        """What the sender put beside the body."""
        return self._properties.extension

    @property
    def headers(self) -> dict[str, str]:
        """The headers of NServiceBus in the extension; may raise `FormatterError`."""
        return read_headers(self._properties.extension)

    @property
    def application_tag(self) -> int:
        """A number that the sender chose."""
        return self._properties.application_tag

    @property
    def correlation_id(self) -> bytes:
        """The identifier of the message that it answers, in 20 bytes; zeros for none."""
        return self._properties.correlation_id

    @property
    def message_class(self) -> int:
        """What it is: a `MessageClass`, or an application's own number."""
        return self._properties.message_class

    @property
    def is_acknowledgment(self) -> bool:
        """Whether a queue manager reports with it what became of another message."""
        return self.message_class not in (MessageClass.NORMAL, MessageClass.REPORT)

    @property
    def acknowledge(self) -> int:
        """Which acknowledgments its sender asked for: an `AckRequest`."""
        return self._properties.acknowledge & (
            message_properties.POSITIVE_ARRIVAL
            | message_properties.POSITIVE_RECEIVE
            | message_properties.NEGATIVE_ARRIVAL
            | message_properties.NEGATIVE_RECEIVE
        )

    # How it was sent.

    @property
    def priority(self) -> int:
        """0 (least urgent) to 7."""
        return self.packet.base.priority

    @property
    def recoverable(self) -> bool:
        """Whether it survives a restart."""
        return self._user.recoverable

    @property
    def destination(self) -> FormatName | None:
        """The queue to which it was sent."""
        return _format_name(self._user.destination, self._user)

    @property
    def response_queue(self) -> FormatName | None:
        """Where answers are to be sent."""
        return _format_name(self._user.response_queue, self._user)

    @property
    def admin_queue(self) -> FormatName | None:
        """Where acknowledgments are sent."""
        return _format_name(self._user.admin_queue, self._user)

    @property
    def time_to_reach_queue_s(self) -> int | None:
        """How long it might travel; None for ever."""
        within_s = self.packet.base.time_to_reach_queue_s
        return None if within_s == INFINITE_S else within_s

    @property
    def time_to_be_received_s(self) -> int | None:
        """How long it may wait to be received, the way included; None for ever."""
        within_s = self._user.time_to_be_received_s
        return None if within_s == INFINITE_S else within_s

    @property
    def journal_on_failure(self) -> bool:
        """Whether a copy goes to a dead-letter queue when it cannot be delivered."""
        return self._user.journal_on_failure

    @property
    def dead_letter_queue(self) -> str:
        """The path name of the dead-letter queue it names; empty for the system's."""
        return dead_letter_path(self.packet.tail)

    @property
    def journal_on_success(self) -> bool:
        """Whether its sender keeps a copy of it."""
        return self._user.journal_on_success

    @property
    def hop_count(self) -> int:
        """How many queue managers have passed it on."""
        return self._user.hop_count

    @property
    def traced(self) -> bool:
        """Whether each hop reports it."""
        return self.packet.base.traced

    @property
    def connector_type(self) -> Guid | None:
        """The foreign system for which some of its properties are."""
        return self._user.connector_type

    @property
    def transaction(self) -> TransactionFacts | None:
        """Which transaction it was sent in and its place there; None for a message of its own."""
        header = self.packet.transaction
        if header is None:
            return None
        return TransactionFacts(
            id=TransactionId(self._user.source, header.transaction_number),
            first=header.first_in_transaction,
            last=header.last_in_transaction,
            sequence=header.point,
            final_ack_requested=header.final_ack_wanted,
        )

    def __repr__(self) -> str:
        try:
            what = f"{self.id}, label {self.label!r}, {message_class_name(self.message_class)}"
        except DecodeError as error:
            what = f"unreadable: {error}"
        return f"<ReceivedMessage {what}>"

    @property
    def _user(self) -> UserHeader:
        return self.packet.user

    @property
    def _properties(self) -> MessageProperties:
        return self.packet.properties


def _format_name(name: QueueName, header: UserHeader) -> FormatName | None:
    match name:
        case None:
            return None
        case SameAsAdmin():
            return _format_name(header.admin_queue, header)
        case PrivateOnSource(number):
            name = PrivateName(header.source, number)
        case PrivateOnDestination(number):
            name = PrivateName(header.destination_manager, number)
        case PrivateOnAdminHost(number):
            admin = header.admin_queue
            if not isinstance(admin, PrivateName):
                return None
            name = PrivateName(admin.manager, number)
        case _:
            pass
    return parse_format_name(queue_names.describe(name))
