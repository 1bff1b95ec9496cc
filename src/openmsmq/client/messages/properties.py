"""The properties of messages: one row for each, and all that is known of it. [MQDMPR 3.1.1.12]

Attributes of received messages, keys of JSON, Spark's columns, what rows and options of commands
can set, and their pages are made from these rows, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from openmsmq.client.messages.names import format_name, name_text
from openmsmq.client.messages.property import Kind, Property
from openmsmq.model.identity import LookupId, MessageId, TransactionId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import NO_CORRELATION, AuthenticationLevel, message_class_name
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.extensions import dead_letter_path
from openmsmq.wire.headers import message_properties
from openmsmq.wire.headers.security import sid_text
from openmsmq.wire.outline import BodyFinder
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.text.bodies import body_text

if TYPE_CHECKING:
    from openmsmq.api.messages import Entry

_BODIES: Final = BodyFinder()
_SIGNATURE_KIND_SHIFT: Final = 8

FOUND: Final = "Where it was found"


PROPERTIES: Final[dict[str, Property[Any]]] = {}
"""All rows by their keys, in the order of Spark's columns."""

_GROUPS: Final = {
    "arrival_number": FOUND,
    "message_id": "Who sent it, and when",
    "label": "What the application said",
    "priority": "How it was sent",
}
"""The headings of the pages, and where each begins."""


def _table(view: type[MessageView]) -> type[MessageView]:
    """Gather the rows of a class, and make them its properties."""
    group = ""
    for name, row in list(vars(view).items()):
        if isinstance(row, Property):
            row.group = group = _GROUPS.get(name, group)
            PROPERTIES[row.key] = row
            setattr(view, name, property(row.read, doc=row.meaning))
    return view


@_table
class MessageView:
    """A message in its place in a queue, and its properties.

    The packet is decoded when the first of them is read.
    """

    __slots__ = ("_packet", "entry")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        """Its place in the queue, and its packet."""
        self._packet: UserMessage | None = None

    @property
    def packet(self) -> UserMessage:
        """The whole packet, decoded."""
        packet = self._packet
        if packet is None:
            decoded = packets.decode(self.entry.packet)
            if not isinstance(decoded, UserMessage):
                raise DecodeError("BaseHeader", 2, "not the packet of a message")
            packet = self._packet = decoded
        return packet

    @property
    def packet_bytes(self) -> bytes:
        """The packet as it came."""
        return self.entry.packet

    def plain_body(self) -> tuple[int, bytes | None]:
        """Return the type of the body, and its bytes unless they are ciphertext.

        Most readers want nothing but the body, which is found without decoding the packet.
        """
        if self._packet is None:
            found = _BODIES.find(self.entry.packet)
            if found is not None:
                return found
        properties = self.packet.properties
        body = None if self.encrypted else properties.body[: properties.body_size]
        return properties.body_type, body

    arrival_number = Property(
        Kind.NUMBER,
        "When it became available, as a number: what offsets count.",
        lambda m: m.entry.arrival_number,
    )
    lookup_id = Property(
        Kind.NUMBER,
        "Its place in the queue, for `--lookup-id`.",
        lambda m: LookupId(m.entry.lookup_id),
        lambda m: m.entry.lookup_id,
        shows=("LookupIdentifier",),
    )
    arrived_time = Property(
        Kind.TIME,
        "When it came into the queue.",
        lambda m: _time(m.entry.arrived_time_s),
        shows=("ArrivalTime",),
    )
    abort_count = Property(
        Kind.SMALL,
        "How often a transaction that received it was aborted.",
        lambda m: m.entry.abort_count,
    )
    move_count = Property(
        Kind.SMALL,
        "How often it was moved between a queue and its subqueues.",
        lambda m: m.entry.move_count,
    )
    moved_time = Property(
        Kind.TIME,
        "When it was last moved.",
        lambda m: _time(m.entry.moved_time_s) if m.entry.moved_time_s else None,
        null="it was never moved",
    )

    message_id = Property(
        Kind.TEXT,
        "The identifier: which queue manager sent it, its number there.",
        lambda m: MessageId(m.packet.user.source, m.packet.user.message_number),
        lambda m: str(m.message_id),
        shows=("Identifier",),
    )
    id = message_id
    source_qm = Property(
        Kind.TEXT,
        "The identity of the queue manager that sent it.",
        lambda m: m.packet.user.source,
        lambda m: str(m.source_qm),
        shows=("SourceMachineIdentifier",),
    )
    sent_time = Property(
        Kind.TIME,
        "When it was sent.",
        lambda m: _time(m.packet.user.sent_time_s),
        shows=("SentTime",),
    )
    sender_id = Property(
        Kind.BYTES,
        "The security identifier of its sender.",
        lambda m: b"" if (found := m.packet.security) is None else found.sender_id,
        lambda m: m.sender_id or None,
        null="it does not say",
        shows=("SenderIdentifier",),
    )
    sender_sid = Property(
        Kind.TEXT,
        "Who its sender is, or says it is if nothing is proved.",
        lambda m: sid_text(m.sender_id) or None,
        null="it does not say",
        is_column=False,
    )
    sender_certificate = Property(
        Kind.BYTES,
        "The certificate of its sender.",
        lambda m: b"" if (found := m.packet.security) is None else found.sender_certificate,
        lambda m: m.sender_certificate or None,
        null="it has none",
        shows=("SenderCertificate",),
    )
    authenticated = Property(
        Kind.YES_NO,
        "Whether its signature has proved its sender to the queue manager of its queue.",
        lambda m: _authentication(m) is not AuthenticationLevel.NONE,
        shows=("AuthenticationLevel",),
    )
    authentication = Property(
        Kind.TEXT,
        "What its signature has proved: NONE, or the kind of signature.",
        lambda m: _authentication(m),
        lambda m: m.authentication.name,
        is_column=False,
    )

    label = Property(
        Kind.TEXT,
        "The label; empty if it has none.",
        lambda m: m.packet.properties.label_text,
        shows=("Label",),
        sent="The label.",
        flags=("--label",),
        metavar="TEXT",
    )
    body_bytes = Property(
        Kind.BYTES,
        "The body; ciphertext if it is encrypted.",
        lambda m: _body(m),
        key="body",
        shows=("Body",),
        sent="The body. A string is sent as text (VT_BSTR), bytes as an array of bytes, if "
        "`body_type` does not say otherwise.",
    )
    body_type = Property(
        Kind.NUMBER,
        "What the sender says the body is: a VARIANT type, 8 for text.",
        lambda m: m.packet.properties.body_type,
        shows=("BodyType",),
        sent="What the body is: a VARIANT type, 8 for text.",
    )
    text = Property(
        Kind.TEXT,
        "The body as text, when it is text.",
        lambda m: body_text(m.packet),
        null="it is not",
        shows=("Body",),
    )
    extension = Property(
        Kind.BYTES,
        "What the sender put beside the body; often empty.",
        lambda m: m.packet.properties.extension,
        shows=("Extension",),
        sent="What stands beside the body, such as the headers of NServiceBus.",
    )
    headers = Property(
        Kind.PAIRS,
        "The headers of NServiceBus in the extension, up to 1,000 in 1 MiB; only if the option "
        "`columns` names it, as in `*,headers`.",
        lambda m: _headers(m),
        null="the extension is something else",
        shows=("Extension",),
        on_request=True,
        sent="Headers of NServiceBus; they are the extension, so give one or the other.",
        is_set_by_rows=False,
    )
    application_tag = Property(
        Kind.NUMBER,
        "A number that the sender chose.",
        lambda m: m.packet.properties.application_tag,
        shows=("ApplicationTag",),
        sent="A number for the application's use, 32 bits.",
        flags=("--application-tag", "--app-tag"),
        metavar="N",
    )
    correlation_id = Property(
        Kind.TEXT,
        "The message that this one answers.",
        lambda m: m.packet.properties.correlation_id,
        lambda m: _identifier(m.correlation_id),
        null="it answers none",
        shows=("CorrelationIdentifier",),
        sent=r"The message that this one answers: `{guid}\number`, or its 20 bytes.",
        flags=("--correlation-id",),
        metavar="ID",
    )
    message_class = Property(
        Kind.SMALL,
        "0 for an application's message; else a report or answer.",
        lambda m: m.packet.properties.message_class,
        shows=("Class",),
        sent="What is not 0 is for connectors to other systems, and needs a `connector_type`.",
        is_set_by_rows=False,
    )
    message_class_name = Property(
        Kind.TEXT,
        "The name of the class.",
        lambda m: message_class_name(m.packet.properties.message_class),
        shows=("Class",),
    )

    priority = Property(
        Kind.SMALL,
        "0 to 7.",
        lambda m: m.packet.base.priority,
        shows=("Priority",),
        sent="0 (least urgent) to 7; transactional messages have 0 in the end.",
        flags=("--priority",),
        metavar="0-7",
    )
    recoverable = Property(
        Kind.YES_NO,
        "Whether it survives a restart.",
        lambda m: m.packet.user.recoverable,
        shows=("DeliveryGuarantee",),
        sent="Whether it survives a restart. In a transaction it always does.",
        is_set_by_rows=False,
        flags=("--recoverable",),
    )
    transactional = Property(
        Kind.YES_NO,
        "Whether it was sent in a transaction.",
        lambda m: m.packet.transaction is not None,
        shows=("DeliveryGuarantee",),
    )
    first_in_transaction = Property(
        Kind.YES_NO,
        "Whether it is the first of its transaction.",
        lambda m: (it := m.packet.transaction) is not None and it.first_in_transaction,
        shows=("FirstInTransaction",),
    )
    last_in_transaction = Property(
        Kind.YES_NO,
        "Whether it is the last one.",
        lambda m: (it := m.packet.transaction) is not None and it.last_in_transaction,
        shows=("LastInTransaction",),
    )
    transaction_id = Property(
        Kind.TEXT,
        "The transaction in which it was sent.",
        lambda m: _transaction_id(m),
        lambda m: _text(m.transaction_id),
        null="it is not transactional",
        shows=("TransactionIdentifier",),
    )
    destination = Property(
        Kind.TEXT,
        "The format name to which it was sent.",
        lambda m: format_name(m.packet.user.destination, m.packet.user),
        lambda m: name_text(m.packet.user.destination, m.packet.user),
        null="it does not say",
        shows=(
            "DestinationQueueFormatName",
            "DestinationQueueType",
            "DestinationQueueManagerIdentifier",
        ),
    )
    response_queue = Property(
        Kind.TEXT,
        "Where answers go.",
        lambda m: format_name(m.packet.user.response_queue, m.packet.user),
        lambda m: name_text(m.packet.user.response_queue, m.packet.user),
        null="it wants none",
        shows=("ResponseQueueFormatName", "ResponseQueueType"),
        sent="Where answers go: a path name or a format name.",
        flags=("--response-queue",),
        metavar="QUEUE",
    )
    admin_queue = Property(
        Kind.TEXT,
        "Where acknowledgments go.",
        lambda m: format_name(m.packet.user.admin_queue, m.packet.user),
        lambda m: name_text(m.packet.user.admin_queue, m.packet.user),
        null="it wants none",
        shows=("AdministrationQueueFormatName", "AdministrationQueueType"),
        sent="Where acknowledgments go.",
        flags=("--admin-queue",),
        metavar="QUEUE",
    )
    dead_letter_queue = Property(
        Kind.TEXT,
        "Where its copy goes on failure, if not to the system's.",
        lambda m: dead_letter_path(m.packet.tail),
        lambda m: m.dead_letter_queue or None,
        null="it names none",
        shows=("ApplicationDeadletterQueue",),
        sent="A queue here for its dead letter, in place of the system's; transactional if the "
        "message is.",
        flags=("--dead-letter-queue", "--deadletter-queue"),
        metavar="QUEUE",
    )
    acknowledge = Property(
        Kind.SMALL,
        "Which acknowledgments were asked for: bits of `AckRequest`.",
        lambda m: m.packet.properties.acknowledge & message_properties.ACKNOWLEDGMENTS,
        shows=("AcknowledgementsRequested",),
        sent="Which acknowledgments the admin queue gets: bits of `AckRequest`.",
        flags=("--acknowledge", "--ack"),
        metavar="WHICH",
    )
    journal_on_failure = Property(
        Kind.YES_NO,
        "Whether a copy goes to a dead-letter queue on failure.",
        lambda m: m.packet.user.journal_on_failure,
        shows=("NegativeJournalingRequested",),
        sent="Whether a copy becomes a dead letter when it cannot be delivered.",
        flags=("--journal-on-failure", "--deadletter"),
    )
    journal_on_success = Property(
        Kind.YES_NO,
        "Whether its sender keeps a copy of it.",
        lambda m: m.packet.user.journal_on_success,
        shows=("PositiveJournalingRequested",),
        sent="Whether the queue manager that sends keeps a copy in its journal.",
        flags=("--journal-on-success", "--journal"),
    )
    time_to_reach_queue_s = Property(
        Kind.NUMBER,
        "How long it might travel, in seconds.",
        lambda m: _lifetime(m.packet.base.time_to_reach_queue_s),
        null="there is no limit",
        shows=("TimeToReachQueue",),
        sent="Seconds that it may travel; four days by default.",
        flags=("--time-to-reach-queue",),
        metavar="SECONDS",
    )
    time_to_be_received_s = Property(
        Kind.NUMBER,
        "How long it may wait to be received, in seconds.",
        lambda m: _lifetime(m.packet.user.time_to_be_received_s),
        null="there is no limit",
        shows=("TimeToBeReceived",),
        sent="Seconds that it may wait to be received, the way included; for ever by default.",
        flags=("--time-to-be-received",),
        metavar="SECONDS",
    )
    privacy = Property(
        Kind.SMALL,
        "How the body was encrypted on its way: 0 not, 1 and 3 by old ciphers, 5 by AES.",
        lambda m: m.packet.properties.privacy_level,
        is_column=False,
    )
    encrypted = Property(
        Kind.YES_NO,
        "Whether the body is encrypted.",
        lambda m: (it := m.packet.security) is not None and it.body_encrypted,
        shows=("PrivacyLevel",),
    )
    traced = Property(
        Kind.YES_NO,
        "Whether each hop reports it.",
        lambda m: m.packet.base.traced,
        shows=("TracingRequested",),
    )
    hop_count = Property(
        Kind.SMALL,
        "How many queue managers passed it on.",
        lambda m: m.packet.user.hop_count,
    )
    connector_type = Property(
        Kind.TEXT,
        "The foreign system for which some of its properties are.",
        lambda m: m.packet.user.connector_type,
        lambda m: _text(m.connector_type),
        null="there is none",
        shows=("ConnectorTypeIdentifier",),
        sent="The foreign system for which some of its properties are.",
        is_set_by_rows=False,
    )


PLAIN: Final[dict[str, Callable[[MessageView], Any]]] = {
    key: row.plain or row.read for key, row in PROPERTIES.items() if not row.on_request
}
"""What reads each property that costs little, as JSON and Spark's rows have it."""


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _lifetime(seconds: int) -> int | None:
    return None if seconds == INFINITE_S else seconds


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _identifier(data: bytes) -> str | None:
    return None if data == NO_CORRELATION else str(MessageId.from_bytes(data))


def _body(message: MessageView) -> bytes:
    body = message.plain_body()[1]
    return message.packet.properties.body if body is None else body


def _headers(message: MessageView) -> dict[str, str]:
    """Read headers of NServiceBus; may raise `FormatterError`."""
    # Who never asks for headers does not pay for loading a parser.
    from openmsmq.client.formatters.nservicebus import read_headers

    return read_headers(message.extension)


def _authentication(message: MessageView) -> AuthenticationLevel:
    security = message.packet.security
    level = 0 if security is None else security.flags >> _SIGNATURE_KIND_SHIFT & 0x0F
    known = level in AuthenticationLevel.__members__.values()
    return AuthenticationLevel(level) if known else AuthenticationLevel.NONE


def _transaction_id(message: MessageView) -> TransactionId | None:
    header = message.packet.transaction
    if header is None:
        return None
    return TransactionId(message.packet.user.source, header.transaction_number)
