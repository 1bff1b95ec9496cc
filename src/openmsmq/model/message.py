"""A message, with everything that travels or is stored with it. [MQDMPR 3.1.1.12]

`docs/reference/message.md` maps each property of the specification to a field here. Numbers that
other systems may fill with values unknown to us (message class, body type, algorithms) are kept
as plain integers, so that they are delivered as they came; the enumerations give them names.
Acknowledgment requests are an integer too: it is tested for every message, and flag arithmetic
of `enum` is fifty times slower.
"""

from __future__ import annotations

from enum import Enum, IntEnum, IntFlag
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from openmsmq.model.errors import IllegalPropertySize, IllegalPropertyValue, LabelTooLong
from openmsmq.model.identity import (
    NIL_GUID,
    Guid,
    LookupId,
    MessageId,
    SequencePoint,
    TransactionId,
)
from openmsmq.model.limits import (
    IDENTIFIER_BYTES,
    INFINITE_S,
    LABEL_MAX_CHARACTERS,
    PRIORITY_DEFAULT_LEVEL,
    PRIORITY_MAX_LEVEL,
    REACH_QUEUE_DEFAULT_S,
    RECEIVE_DEFAULT_S,
)

if TYPE_CHECKING:
    from openmsmq.model.names import FormatName

NO_MESSAGE_ID: Final = MessageId(NIL_GUID, 0)
"""The identifier of a message that has not been sent: numbers begin with 1."""

NO_CORRELATION: Final = bytes(IDENTIFIER_BYTES)

# A label of so many code points fits even if each one takes two UTF-16 units.
_LABEL_SURELY_FITS: Final = LABEL_MAX_CHARACTERS // 2


class DeliveryMode(Enum):
    """What a message survives. [MQDMPR 3.1.1.12]

    The wire knows express and recoverable; a transaction header on a recoverable message makes it
    transactional: exactly once, in order.
    """

    EXPRESS = "express"
    RECOVERABLE = "recoverable"
    TRANSACTIONAL = "transactional"


class MessageClass(IntEnum):
    """What a message is: an application's, a report, or an acknowledgment. [MQMQ 2.2.18.1.6]"""

    NORMAL = 0x0000
    REPORT = 0x0001
    ACK_REACH_QUEUE = 0x0002
    ORDER_ACK = 0x00FF
    ACK_RECEIVE = 0x4000
    NACK_BAD_DESTINATION_QUEUE = 0x8000
    NACK_PURGED = 0x8001
    NACK_REACH_QUEUE_TIMEOUT = 0x8002
    NACK_QUEUE_EXCEEDS_QUOTA = 0x8003
    NACK_ACCESS_DENIED = 0x8004
    NACK_HOP_COUNT_EXCEEDED = 0x8005
    NACK_BAD_SIGNATURE = 0x8006
    NACK_BAD_ENCRYPTION = 0x8007
    NACK_COULD_NOT_ENCRYPT = 0x8008
    NACK_NOT_TRANSACTIONAL_QUEUE = 0x8009
    NACK_NOT_TRANSACTIONAL_MESSAGE = 0x800A
    NACK_UNSUPPORTED_CRYPTO_PROVIDER = 0x800B
    NACK_SOURCE_COMPUTER_GUID_CHANGED = 0x800C
    NACK_QUEUE_DELETED = 0xC000
    NACK_QUEUE_PURGED = 0xC001
    NACK_RECEIVE_TIMEOUT = 0xC002
    NACK_RECEIVE_TIMEOUT_AT_SENDER = 0xC003
    NACK_RECEIVE_REJECTED = 0xC004


_NEGATIVE: Final = 0x8000
_RECEIVE_STAGE: Final = 0x4000
_CLASS_NAMES: Final[dict[int, str]] = {member.value: member.name for member in MessageClass}


def message_class_name(message_class: int) -> str:
    """Name a message class; an application's own class is shown as its number."""
    return _CLASS_NAMES.get(message_class) or f"0x{message_class:04X}"


def is_negative(message_class: int) -> bool:
    """Whether an acknowledgment of this class reports a failure. [MQMP 2.2.3.2]"""
    return bool(message_class & _NEGATIVE)


def is_about_receiving(message_class: int) -> bool:
    """Whether an acknowledgment tells of the receiving, and not of the arrival. [MQMP 2.2.3.2]"""
    return bool(message_class & _RECEIVE_STAGE)


class Journaling(IntFlag):
    """Copies that the sender keeps of its messages. [MQAC 2.2.2.12]"""

    NONE = 0
    ON_FAILURE = 1
    ON_SUCCESS = 2


class AckRequest(IntFlag):
    """Which acknowledgments the administration queue gets. [MQAC 2.2.2.11]

    A full receive request does not ask for the positive arrival: the receiving says it all.
    """

    NONE = 0x00
    POSITIVE_ARRIVAL = 0x01
    POSITIVE_RECEIVE = 0x02
    NEGATIVE_ARRIVAL = 0x04
    NEGATIVE_RECEIVE = 0x08
    NACK_REACH_QUEUE = NEGATIVE_ARRIVAL
    FULL_REACH_QUEUE = POSITIVE_ARRIVAL | NEGATIVE_ARRIVAL
    NACK_RECEIVE = NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE
    FULL_RECEIVE = POSITIVE_RECEIVE | NEGATIVE_ARRIVAL | NEGATIVE_RECEIVE


class TraceMode(IntEnum):
    """Whether each hop reports the message. [MQAC 2.2.2.13]"""

    NONE = 0
    REPORT_ROUTE = 1


class SenderIdKind(IntEnum):
    """What the sender identifier is. [MQDMPR 3.1.1.12, MQMQ 2.2.20.6]"""

    NONE = 0
    SECURITY_IDENTIFIER = 1
    QUEUE_MANAGER = 2


class PrivacyLevel(IntEnum):
    """How the body is encrypted: not, with 40 bits, with 128 bits, with AES. [MQMQ 2.2.19.3]"""

    NONE = 0
    BASE = 1
    ENHANCED = 3
    ADVANCED = 5


class AuthenticationRequest(IntEnum):
    """Which signature the sender asks for. [MQAC 2.2.2.16]"""

    NONE = 0
    ALWAYS = 1
    SIGNATURE_10 = 2
    SIGNATURE_20 = 4
    SIGNATURE_30 = 8
    EXACT = 0x100
    """Ours: in the place of one of MSMQ 3.0, over fields that cannot be cut otherwise. [ours]"""


class AuthenticationLevel(IntEnum):
    """Which signature a received message proved. [MQDMPR 3.1.1.12, MQAC 2.2.2.17]"""

    NONE = 0
    SIGNATURE_10 = 1
    SIGNATURE_20 = 3
    SIGNATURE_30 = 5
    XML_SIGNATURE = 9


class HashAlgorithm(IntEnum):
    """The hash of a signature. [MQMQ 2.2.19.3]"""

    MD2 = 0x8001
    MD4 = 0x8002
    MD5 = 0x8003
    SHA1 = 0x8004
    SHA256 = 0x800C
    SHA512 = 0x800E


class EncryptionAlgorithm(IntEnum):
    """The cipher of an encrypted body. Windows uses RC2, RC4 and AES. [MQDMPR 3.1.1.12]"""

    DSS = 0x2200
    RSA_SIGN = 0x2400
    DES = 0x6601
    RC2 = 0x6602
    AES128 = 0x660E
    AES192 = 0x660F
    AES256 = 0x6610
    RC4 = 0x6801
    SEAL = 0x6802
    RSA_KEY_EXCHANGE = 0xA400


class BodyType(IntEnum):
    """What applications say the body is: the VARIANT types. [MQMQ 2.2.12, MQAC 3.17.4.1.22]

    The queue manager never looks at it.
    """

    UNSPECIFIED = 0
    NULL = 1
    INT16 = 2
    INT32 = 3
    FLOAT32 = 4
    FLOAT64 = 5
    CURRENCY = 6
    DATE = 7
    TEXT = 8
    OBJECT_DISPATCH = 9
    BOOLEAN = 11
    OBJECT_UNKNOWN = 13
    INT8 = 16
    UINT8 = 17
    UINT16 = 18
    UINT32 = 19
    INT64 = 20
    UINT64 = 21
    NARROW_TEXT = 30
    WIDE_TEXT = 31
    BLOB = 65
    GUID = 72
    BYTES = 0x1011


class TransactionFacts(msgspec.Struct, frozen=True):
    """What only transactional messages have. [MQMQ 2.2.20.5]

    `sequence` is None until the queue manager numbers the message, when it is first sent.
    """

    id: TransactionId | None = None
    first: bool = False
    last: bool = False
    sequence: SequencePoint | None = None
    final_ack_requested: bool = False
    connector_manager: Guid = NIL_GUID
    status_queue: FormatName | None = None


class SoapParts(msgspec.Struct, frozen=True):
    """The SOAP form of a message that came over HTTP; for applications only. [MQDMPR 3.1.1.12]"""

    envelope: str = ""
    header: str = ""
    body: str = ""
    compound_message: bytes = b""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message. [MQDMPR 3.1.1.12]

    Fields that a sender leaves alone have the defaults of the specification. Values that no
    message can ever have are refused when the message is made.
    """

    # What the application says.
    body: bytes = b""
    body_type: int = BodyType.UNSPECIFIED
    label: str = ""
    extension: bytes = b""
    application_tag: int = 0
    correlation_id: bytes = NO_CORRELATION
    message_class: int = MessageClass.NORMAL
    priority: int = PRIORITY_DEFAULT_LEVEL

    # Where it goes and who hears of it.
    destination: FormatName | None = None
    destinations: tuple[FormatName, ...] = ()
    destination_manager: Guid = NIL_GUID
    response_queue: FormatName | None = None
    response_queues: tuple[FormatName, ...] = ()
    admin_queue: FormatName | None = None
    admin_queues: tuple[FormatName, ...] = ()
    acknowledge: int = int(AckRequest.NONE)
    dead_letter_queue: str = ""
    connector_type: Guid = NIL_GUID

    # How it is delivered.
    delivery: DeliveryMode = DeliveryMode.EXPRESS
    reach_queue_within_s: int = REACH_QUEUE_DEFAULT_S
    receive_within_s: int = RECEIVE_DEFAULT_S
    journal_on_failure: bool = False
    journal_on_success: bool = False
    trace: TraceMode = TraceMode.NONE
    trace_queue: Guid = NIL_GUID
    hop_count: int = 0
    transaction: TransactionFacts | None = None

    # Who sent it, and how that is proved and hidden.
    identifier: MessageId = NO_MESSAGE_ID
    sent_time_s: int = 0
    sender_id: bytes = b""
    sender_id_kind: SenderIdKind = SenderIdKind.SECURITY_IDENTIFIER
    sender_certificate: bytes = b""
    signing: AuthenticationRequest = AuthenticationRequest.NONE
    authenticated: AuthenticationLevel = AuthenticationLevel.NONE
    signature: bytes = b""
    destinations_signature: bytes = b""
    hash_algorithm: int = HashAlgorithm.SHA1
    provider_type: int = 0
    provider_name: str = ""
    privacy: PrivacyLevel = PrivacyLevel.NONE
    encryption_algorithm: int = EncryptionAlgorithm.RC4
    symmetric_key: bytes = b""
    soap: SoapParts | None = None

    # What has happened to it in the queue where it is now.
    lookup_id: LookupId = LookupId(0)
    arrived_time_s: int = 0
    peek_when_locked: bool = False
    abort_count: int = 0
    move_count: int = 0
    last_moved_time_s: int = 0

    def __post_init__(self) -> None:
        numbers = self.application_tag | self.body_type | self.message_class << 16
        lifetimes = self.reach_queue_within_s | self.receive_within_s
        if (
            (numbers | lifetimes) >> 32
            or not 0 <= self.priority <= PRIORITY_MAX_LEVEL
            or len(self.correlation_id) != IDENTIFIER_BYTES
            or (len(self.label) > _LABEL_SURELY_FITS and not _label_fits(self.label))
        ):
            _refuse(self)

    @property
    def source_manager(self) -> Guid:
        """The queue manager that took the message from its application."""
        return self.identifier.source

    @property
    def journaling(self) -> Journaling:
        """Both journal wishes as the flags that applications know."""
        return Journaling(self.journal_on_failure | self.journal_on_success << 1)

    @property
    def queue_priority(self) -> int:
        """The priority that orders the message in a queue: transactional ones keep their order."""
        return 0 if self.delivery is DeliveryMode.TRANSACTIONAL else self.priority

    @property
    def transit_deadline_s(self) -> int | None:
        """When the message stops travelling; None for never.

        A message that nobody may receive any more need not arrive either.
        """
        lifetime_s = min(self.reach_queue_within_s, self.receive_within_s)
        return None if lifetime_s == INFINITE_S else self.sent_time_s + lifetime_s

    @property
    def receive_deadline_s(self) -> int | None:
        """When the message leaves its queue unread; None for never."""
        within_s = self.receive_within_s
        return None if within_s == INFINITE_S else self.sent_time_s + within_s

    def asks_for(self, outcome: AckRequest) -> bool:
        """Whether the sender wants to hear of one of these outcomes."""
        return bool(int(self.acknowledge) & outcome._value_)


def _label_fits(label: str) -> bool:
    units = len(label.encode("utf-16-le", "surrogatepass")) // 2
    return units <= LABEL_MAX_CHARACTERS


def _refuse(message: Message) -> NoReturn:
    """Say which value is illegal. Kept apart from the check, which runs for every message."""
    if not _label_fits(message.label):
        raise LabelTooLong(f"label {message.label[:32]!r}… of {len(message.label)} characters")
    if len(message.correlation_id) != IDENTIFIER_BYTES:
        raise IllegalPropertySize(f"correlation_id has {len(message.correlation_id)} bytes")
    if not 0 <= message.priority <= PRIORITY_MAX_LEVEL:
        raise IllegalPropertyValue(f"priority {message.priority}, where 0 to 7 is needed")
    if message.message_class >> 16:
        raise IllegalPropertyValue(f"message_class {message.message_class:#x} exceeds 16 bits")
    names = ("application_tag", "body_type", "reach_queue_within_s", "receive_within_s")
    name = next(name for name in names if getattr(message, name) >> 32)
    raise IllegalPropertyValue(f"{name} {getattr(message, name)} exceeds 32 bits")
