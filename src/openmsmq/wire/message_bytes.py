"""User messages as they are kept and sent: one fact read, or one changed, without decoding them.

Every message is looked at several times on its way, and mostly for a few bytes. Where those stand
is known here and in the headers, and nowhere else. `at` says where a message begins, for bytes that
have something before it: the entries of the store do. What is asked here was checked before, by
`outline`.
"""

from __future__ import annotations

import struct
from typing import Final

from openmsmq.model.identity import SequenceId
from openmsmq.model.limits import HOP_MAX_COUNT, INFINITE_S
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.fields.cursor import need
from openmsmq.wire.headers import base, message_properties, queue_names, transaction, user
from openmsmq.wire.outline import Outline, outline

_U16: Final = struct.Struct("<H")
_U32: Final = struct.Struct("<I")

# BaseHeader.
_BASE_FLAGS: Final = 2
_PACKET_SIZE: Final = 8
_REACH_WITHIN: Final = 12
# UserHeader.
_SOURCE: Final = 16
_DESTINATION_MANAGER: Final = 32
_RECEIVE_WITHIN: Final = 48
_SENT_TIME: Final = 52
_NUMBER: Final = 56
_FLAGS: Final = 60
_NAMES: Final = 64
# TransactionHeader.
_PREVIOUS: Final = 16
# MessagePropertiesHeader.
_LABEL_UNITS: Final = 1
_CLASS: Final = 2
_CORRELATION: Final = 4
_CORRELATION_END: Final = 24
_PRIVACY_LEVEL: Final = 40

STAMP_START: Final = _SENT_TIME
STAMP_END: Final = _FLAGS
"""Between these are the time and the number, which no two messages of a source share."""
NUMBER_START: Final = _NUMBER
"""The number alone: from here to `STAMP_END`."""
MESSAGE_MIN_BYTES: Final = _NAMES
"""No user message is shorter than its two first headers."""

_STAMP: Final = struct.Struct("<II")
_RECOVERABLE: Final = user.RECOVERABLE
_DELIVERY: Final = user.DELIVERY
# Flags of the second and the third byte of their word.
_ON_FAILURE: Final = user.JOURNAL_ON_FAILURE >> 8
_ON_SUCCESS: Final = user.JOURNAL_ON_SUCCESS >> 8
_ADMIN_QUEUE: Final = user.ADMIN_QUEUE >> 8
_TRANSACTION: Final = user.TRANSACTION >> 16
_TRACED: Final = base.TRACE | base.DEBUG
_DIRECT: Final = queue_names.CODES[queue_names.DirectName]
_UNKNOWN_ADDRESS: Final = struct.pack("<HHI8x", 4, 1, 0)
"""An address of IPv4 that nobody has: its length, its type, no scope, and zeros."""


def _u32(data: bytes, offset: int) -> int:
    # Compiled, this is several times as fast as `int.from_bytes` of a slice.
    return data[offset] | data[offset + 1] << 8 | data[offset + 2] << 16 | data[offset + 3] << 24


# What the BaseHeader says.


def base_flags(packet: bytes) -> int:
    """The flags word of the BaseHeader; its masks are in `headers.base`."""
    return packet[_BASE_FLAGS] | packet[_BASE_FLAGS + 1] << 8


def priority(packet: bytes) -> int:
    """0 (least urgent) to 7."""
    return packet[_BASE_FLAGS] & base.PRIORITY


def is_traced(packet: bytes) -> bool:
    """Whether it may want reports: a look at two bits, cheap enough for every message."""
    return base_flags(packet) & _TRACED == _TRACED


def time_to_reach_queue_s(packet: bytes) -> int:
    """How long it may travel."""
    return _u32(packet, _REACH_WITHIN)


# What the UserHeader says.


def source(packet: bytes, at: int = 0) -> bytes:
    """The queue manager that sent it, by its own word."""
    return packet[at + _SOURCE : at + _SOURCE + 16]


def destination_manager(packet: bytes, at: int = 0) -> bytes:
    """The queue manager to which it goes; nil when the destination is a direct name."""
    return packet[at + _DESTINATION_MANAGER : at + _DESTINATION_MANAGER + 16]


def time_to_be_received_s(packet: bytes) -> int:
    """How long it may take until it is received."""
    return _u32(packet, _RECEIVE_WITHIN)


def sent_time_s(packet: bytes) -> int:
    """When it was sent, by the clock of its source."""
    return _u32(packet, _SENT_TIME)


def message_number(packet: bytes, at: int = 0) -> int:
    """The number that the source gave it."""
    return _u32(packet, at + _NUMBER)


def message_id_under(name: bytes, packet: bytes) -> bytes:
    """Its identifier, with another name for its source."""
    return name + packet[_NUMBER:_FLAGS]


def message_id(packet: bytes, at: int = 0) -> bytes:
    """Its identifier: the source and the number."""
    return source(packet, at) + packet[at + _NUMBER : at + _FLAGS]


def hop_count(packet: bytes, at: int = 0) -> int:
    """How many queue managers have passed it on."""
    return packet[at + _FLAGS] & user.HOP_COUNT


def user_flags(packet: bytes) -> int:
    """The flags word of the UserHeader; its masks are in `headers.user`."""
    return _u32(packet, _FLAGS)


def is_recoverable(packet: bytes, at: int = 0) -> bool:
    """Whether it must survive a restart."""
    return packet[at + _FLAGS] & _DELIVERY == _RECOVERABLE


def came_over_http(packet: bytes) -> bool:
    """Whether it came over HTTP."""
    return _u32(packet, _FLAGS) & user.OVER_HTTP != 0


def is_transactional(packet: bytes, at: int = 0) -> bool:
    """Whether it has a place in a sequence."""
    return packet[at + _FLAGS + 2] & _TRANSACTION != 0


def journals_failure(packet: bytes, at: int = 0) -> bool:
    """Whether it is kept in a dead-letter queue when it cannot be delivered."""
    return packet[at + _FLAGS + 1] & _ON_FAILURE != 0


def journals_success(packet: bytes, at: int = 0) -> bool:
    """Whether its source keeps a copy once it was delivered."""
    return packet[at + _FLAGS + 1] & _ON_SUCCESS != 0


def has_admin_queue(packet: bytes) -> bool:
    """Whether it names a queue for acknowledgments."""
    return packet[_FLAGS + 1] & _ADMIN_QUEUE != 0


# What the TransactionHeader says. Whoever knows where it starts gives that as `offset`.


def transaction_offset(packet: bytes) -> int:
    """Where the TransactionHeader starts, or what follows the UserHeader without one.

    The usual case, a message that names no queue but its destination, does without reading names.
    """
    flags = packet[_FLAGS] | packet[_FLAGS + 1] << 8 | packet[_FLAGS + 2] << 16
    if flags & user.OTHER_NAMES:
        return int(user.skip(packet, base.SIZE)[1])
    form = flags >> user.DESTINATION_SHIFT & 7
    end = _NAMES + queue_names.size_of(form, packet, _NAMES, "UserHeader")
    return end + (-end & 3)


def sequence_place(packet: bytes, offset: int = 0) -> tuple[SequenceId, int, int]:
    """The sequence of a transactional message, its number in it, and the number before it."""
    start = offset or transaction_offset(packet)
    _, ordinal, timestamp, number, previous = transaction.LAYOUT.unpack_from(packet, start)
    return SequenceId(ordinal, timestamp), number, previous


def wants_final_ack(packet: bytes, offset: int = 0) -> bool:
    """Whether the source of a transactional message wants to know how it ended."""
    return packet[offset or transaction_offset(packet)] & transaction.FINAL_ACK != 0


# What the MessagePropertiesHeader says.


def acknowledge(packet: bytes, found: Outline) -> int:
    """Which acknowledgments it wants."""
    return packet[found.properties_offset]


def message_class(packet: bytes, found: Outline | None = None) -> int:
    """What it is: a message of an application, or which report."""
    start = _CLASS + (outline(packet) if found is None else found).properties_offset
    return packet[start] | packet[start + 1] << 8


def correlation_id(packet: bytes) -> bytes:
    """The message that it answers or tells of."""
    start = outline(packet).properties_offset
    return packet[start + _CORRELATION : start + _CORRELATION_END]


def wants_privacy(packet: bytes, found: Outline) -> bool:
    """Whether its application has asked for its body to be encrypted."""
    return packet[found.properties_offset + _PRIVACY_LEVEL] != 0


def body_size(packet: bytes) -> int:
    """The size of its body as a reader gets it; ciphertext is given whole."""
    found = outline(packet)
    size = found.body_end - found.body_start
    if found.flags & user.SECURITY:
        return size
    return min(size, message_properties.body_facts(packet, found.properties_offset)[1])


def body(packet: bytes, found: Outline) -> bytes:
    """The bytes that its body takes."""
    return packet[found.body_start : found.body_end]


def extension(packet: bytes, found: Outline) -> bytes:
    """What its application put beside the body."""
    start = found.properties_offset
    start += message_properties.FIXED_SIZE + 2 * packet[start + _LABEL_UNITS]
    return packet[start : found.body_start]


def fixed_headers(packet: bytes, found: Outline) -> bytes:
    """All before the label: two messages with the same are of one kind."""
    return packet[: found.properties_offset + message_properties.FIXED_SIZE]


def around_size(packet: bytes, found: Outline) -> tuple[bytes, bytes]:
    """All before the size of the packet, and between that and its properties."""
    return packet[:_PACKET_SIZE], packet[_PACKET_SIZE + 4 : found.properties_offset]


def parted_behind_source(packet: bytes) -> tuple[bytes, bytes]:
    """All up to the name of its source, and the rest."""
    return packet[:_DESTINATION_MANAGER], packet[_DESTINATION_MANAGER:]


# Messages with one thing changed.


def stamped(
    packet: bytes, sender: bytes, sent_time_s: int, number: int, before: bytes = b""
) -> bytes:
    """Write who sends it, when, and under which number; put it behind `before`."""
    return b"".join(
        (
            before,
            packet[:_SOURCE],
            sender,
            packet[_DESTINATION_MANAGER:_SENT_TIME],
            _STAMP.pack(sent_time_s, number),
            packet[_FLAGS:],
        )
    )


class Stamp:
    """Stamps many messages that have the same headers, as `stamped` and `marked` would each."""

    __slots__ = ("_before", "_behind", "_cut")

    def __init__(
        self,
        packet: bytes,
        sender: bytes,
        sent_time_s: int,
        found: Outline,
        mark: int | None = None,
    ) -> None:
        """`packet` is one of them; `mark` is that of their transaction, if they have a mark."""
        self._before = b"".join(
            (
                packet[:_SOURCE],
                sender,
                packet[_DESTINATION_MANAGER:_SENT_TIME],
                _U32.pack(sent_time_s),
            )
        )
        self._behind = b""
        self._cut = _FLAGS
        if mark is not None:
            start = found.transaction_offset
            flags = _u32(packet, start) & ~transaction.MARKS | mark
            self._behind = packet[_FLAGS:start] + _U32.pack(flags)
            self._cut = start + 4

    def put(self, packet: bytes, number: int) -> bytes:
        """Return a message with its number."""
        return b"".join((self._before, _U32.pack(number), self._behind, packet[self._cut :]))


def hop_counted(packet: bytes) -> bytes:
    """Raise its hop count by one, as who passes it on does; it is not signed. [MQQB 3.1.5.8.2]

    A message that came with too high a count is still read, so that its sender can be told what
    became of it.
    """
    need(packet, 0, MESSAGE_MIN_BYTES, "UserHeader")
    if hop_count(packet) >= HOP_MAX_COUNT:
        raise EncodeError(
            "UserHeader",
            f"hop count {hop_count(packet)}: after {HOP_MAX_COUNT} hops a message goes no further",
        )
    return b"".join((packet[:_FLAGS], bytes((packet[_FLAGS] + 1,)), packet[_FLAGS + 1 :]))


def marked(packet: bytes, mark: int, before: bytes = b"") -> bytes:
    """Write the marks of its transaction into a transactional message; put it behind `before`."""
    start = transaction_offset(packet)
    flags = _u32(packet, start) & ~transaction.MARKS | mark
    return b"".join((before, packet[:start], _U32.pack(flags), packet[start + 4 :]))


def numbered(
    packet: bytes,
    mark: int,
    sequence: SequenceId,
    number: int,
    offset: int,
    *,
    over_http: bool = False,
) -> bytes:
    """Write marks, and its place in a sequence; messages in one have no priority (C-77g).

    Whoever keeps a copy of it, or its dead letter, has to know how it ended. Over HTTP only who
    keeps dead letters hears of it; copies are kept when messages have arrived.
    """
    flags = _u32(packet, offset) & ~transaction.MARKS | mark
    if packet[_FLAGS + 1] & (_ON_FAILURE if over_http else _ON_FAILURE | _ON_SUCCESS):
        flags |= transaction.FINAL_ACK
    return b"".join(
        (
            packet[:_BASE_FLAGS],
            bytes((packet[_BASE_FLAGS] & ~base.PRIORITY,)),
            packet[_BASE_FLAGS + 1 : offset],
            transaction.LAYOUT.pack(flags, sequence.ordinal, sequence.timestamp, number, 0),
            packet[offset + transaction.FIXED_SIZE :],
        )
    )


def following(packet: bytes, previous: int, offset: int) -> bytes:
    """Write the number of the message before it in its sequence."""
    start = offset + _PREVIOUS
    return b"".join((packet[:start], _U32.pack(previous), packet[start + 4 :]))


def with_class(packet: bytes, value: int) -> bytes:
    """Make it a message of another class."""
    start = outline(packet).properties_offset + _CLASS
    return b"".join((packet[:start], _U16.pack(value), packet[start + 2 :]))


def with_privacy_level(packet: bytes, level: int) -> bytes:
    """Return which encryption was wanted."""
    start = outline(packet).properties_offset + _PRIVACY_LEVEL
    return b"".join((packet[:start], _U32.pack(level), packet[start + 4 :]))


def claiming(packet: bytes, found: Outline, claims: int, mask: int) -> bytes:
    """Let its SecurityHeader say so much of what is proved: those bits of its flags word."""
    start = found.security_offset
    flags = packet[start] | packet[start + 1] << 8
    if flags & mask == claims:
        return packet
    return b"".join((packet[:start], _U16.pack(flags & ~mask | claims), packet[start + 2 :]))


def laden(packet: bytes, header: bytes) -> bytes:
    """Put a SessionHeader behind it. [MQMQ 2.2.20.4]"""
    flags = bytes((packet[_BASE_FLAGS] | base.SESSION,))
    return b"".join((packet[:_BASE_FLAGS], flags, packet[_BASE_FLAGS + 1 :], header))


def unladen(packet: bytes) -> bytes:
    """Take away the marks of a SessionHeader that was cut from it."""
    return b"".join(
        (
            packet[:_BASE_FLAGS],
            bytes((packet[_BASE_FLAGS] & ~base.SESSION,)),
            packet[_BASE_FLAGS + 1 : _PACKET_SIZE],
            _U32.pack(len(packet)),
            packet[_PACKET_SIZE + 4 :],
        )
    )


def for_remote_reader(packet: bytes) -> bytes:
    """Write what readers on other computers expect: when it expires, and where it came from.

    The time to reach its queue becomes a moment, and stays infinite if it is (R-8). In a message
    with a direct destination, the address of the host that it came from stands where the queue
    manager of the destination would. The store does not keep that one: it is 0.0.0.0 (R-9).
    [MQRR 2.2.5.1]
    """
    lifetime_s = time_to_reach_queue_s(packet)
    if lifetime_s != INFINITE_S:
        # One less than infinite: a moment that no clock of 32 bits reaches is no reason to stay.
        lifetime_s = min(sent_time_s(packet) + lifetime_s, INFINITE_S - 1)
    is_direct = user_flags(packet) >> user.DESTINATION_SHIFT & 7 == _DIRECT
    return b"".join(
        (
            packet[:_REACH_WITHIN],
            _U32.pack(lifetime_s),
            packet[_SOURCE:_DESTINATION_MANAGER],
            _UNKNOWN_ADDRESS if is_direct else destination_manager(packet),
            packet[_RECEIVE_WITHIN:],
        )
    )
