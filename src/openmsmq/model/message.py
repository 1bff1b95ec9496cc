"""The values that properties of messages have. [MQDMPR 3.1.1.12]

Numbers that other systems may fill with values unknown to us (message class, body type,
algorithms) are kept as plain integers, so that they are delivered as they came; the enumerations
give them names. Acknowledgment requests are an integer too: it is tested for every message, and
flag arithmetic of `enum` is fifty times slower. `docs/reference/message.md` says where each
property is.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

import msgspec

from openmsmq.model.identity import SequencePoint, TransactionId
from openmsmq.model.limits import IDENTIFIER_BYTES

NO_CORRELATION: Final = bytes(IDENTIFIER_BYTES)


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


ACK_REQUEST_WORDS: Final = {
    name.lower().replace("_", "-"): int(member) for name, member in AckRequest.__members__.items()
}
"""What people write for what they ask for."""


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
