"""Messages to send, and how they become packets. [MQMQ 2.2.20]

What stands before and behind the message properties is the same for most messages of a queue, so
a `PacketBuilder` encodes it once for each set of delivery options and keeps it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypedDict

import msgspec

from openmsmq.client.formatters.base import Formatter
from openmsmq.client.formatters.nservicebus import write_headers
from openmsmq.client.options import values_of
from openmsmq.model import names
from openmsmq.model.errors import (
    IllegalFormatName,
    IllegalPathName,
    IllegalPropertySize,
    IllegalPropertyValue,
    LabelTooLong,
    MissingConnectorType,
    MsmqError,
    PropertiesConflict,
    UnsupportedFormatName,
)
from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.limits import (
    IDENTIFIER_BYTES,
    INFINITE_S,
    LABEL_MAX_CHARACTERS,
    PACKET_MAX_BYTES,
    PRIORITY_DEFAULT_LEVEL,
    PRIORITY_MAX_LEVEL,
    REACH_QUEUE_DEFAULT_S,
)
from openmsmq.model.message import (
    NO_CORRELATION,
    AckRequest,
    AuthenticationRequest,
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageClass,
)
from openmsmq.model.names import (
    DirectFormatName,
    DistributionListFormatName,
    FormatName,
    MulticastFormatName,
    MultipleFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    parse_format_name,
    read_name,
)
from openmsmq.wire import message_bytes, packets
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.extensions import dead_letter_extension
from openmsmq.wire.fields.cursor import ZEROS
from openmsmq.wire.headers import base, message_properties, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnDestination,
    PublicName,
    QueueName,
)
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.outline import outline

if TYPE_CHECKING:
    from openmsmq.client.messages.certificates import Certificate

_SIZE: Final = struct.Struct("<I")
_UNCHANGING: Final = frozenset({bool, bytes, float, int, str, type(None)})
"""Types of options that nobody can change between two messages."""
_FRAMES_MAX_COUNT: Final = 256
_FLAGS: Final = {"acknowledge": AckRequest, "message_class": MessageClass}
"""Properties that are values of ours."""
_UNSIGNED: Final = frozenset({AuthenticationRequest.NONE, AuthenticationRequest.ALWAYS})
"""What may be said about the signature of a message that has none."""
_BITS: Final = {"acknowledge": 8, "message_class": 16, "body_type": 32, "application_tag": 32}

# The sequence and its numbers are filled in by the queue manager.
_NO_SEQUENCE: Final = TransactionHeader(SequenceId(0, 0), 0)


class NamedQueue(Protocol):
    """Something that knows the format name of its queue: an open queue."""

    @property
    def format_name(self) -> str:
        """The format name of the queue."""


QueueLike: TypeAlias = str | FormatName | NamedQueue
Lifetime: TypeAlias = float | None
"""Seconds; None is for ever."""


class SendOptions(TypedDict, total=False):
    """What `send` takes beside the body; the fields of `OutgoingMessage` say what each means."""

    label: str
    priority: int
    recoverable: bool
    correlation_id: bytes | MessageId
    response_queue: QueueLike | None
    admin_queue: QueueLike | None
    acknowledge: int
    time_to_reach_queue_s: Lifetime
    time_to_be_received_s: Lifetime
    journal_on_failure: bool
    dead_letter_queue: QueueLike | None
    journal_on_success: bool
    application_tag: int
    extension: bytes
    headers: Mapping[str, str] | None
    message_class: int
    body_type: int | None
    trace_queue: Guid | None
    connector_type: Guid | None
    certificate: Certificate | None
    signature: AuthenticationRequest
    encrypt: bool


class OutgoingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as an application makes it. [MQDMPR 3.1.1.12]

    `openmsmq.client.messages.properties` says what a sender says with each property.
    """

    body: object = b""
    """What the queue's formatter can write: by default text, bytes, numbers, dates."""
    label: str = ""
    priority: int = PRIORITY_DEFAULT_LEVEL
    recoverable: bool = False
    correlation_id: bytes | MessageId = NO_CORRELATION
    response_queue: QueueLike | None = None
    admin_queue: QueueLike | None = None
    acknowledge: int = 0
    time_to_reach_queue_s: Lifetime = REACH_QUEUE_DEFAULT_S
    time_to_be_received_s: Lifetime = None
    journal_on_failure: bool = False
    dead_letter_queue: QueueLike | None = None
    """With one, a copy is kept; the system's is taken if it is not there or takes no such
    messages."""
    journal_on_success: bool = False
    application_tag: int = 0
    extension: bytes = b""
    headers: Mapping[str, str] | None = None
    message_class: int = 0
    body_type: int | None = None
    """None for the type that the formatter gives."""
    trace_queue: Guid | None = None
    """The public queue to which every hop reports."""
    connector_type: Guid | None = None
    certificate: Certificate | None = None
    """With what it is signed; None for no signature."""
    signature: AuthenticationRequest = AuthenticationRequest.ALWAYS
    """Which kind of signature, if there is a certificate; of its own accord the best one."""
    encrypt: bool = False
    """Whether only the queue manager of its destination can read the body."""

    @property
    def is_protected(self) -> bool:
        """Whether it is to be signed or encrypted."""
        return self.encrypt or self.certificate is not None


class LabelledBody(msgspec.Struct, frozen=True, gc=False):
    """A body with a label, and nothing else of its own: for those who send very many."""

    body: object
    label: str


class PacketBuilder:
    """Makes the packets for one destination."""

    def __init__(
        self,
        direct_name: str,
        manager_name: str,
        format_name: str = "",
        owner: Guid = NIL_GUID,
    ) -> None:
        self._destination: QueueName = DirectName(direct_name) if direct_name else None
        self.destination_manager = NIL_GUID
        """Who has the queue, if its name tells."""
        if format_name and not direct_name:
            self.destination_manager, self._destination = _numbered(format_name, owner)
        self._manager_name = manager_name
        self._frames: dict[object, tuple[bytes, bytes, bytes]] = {}
        # One value that is replaced as a whole: several threads may send at the same time.
        self._last: tuple[object, Callable[[object], bytes]] | None = None

    def build(self, message: OutgoingMessage, formatter: Formatter, transactional: bool) -> bytes:
        """Return the packet of a message; the source, time and number in it are still zero."""
        body_type, body = formatter.write(message.body)
        head, tail = self._around(message, body_type, body, transactional)
        return head + body + tail

    def build_with(
        self, body: object, options: SendOptions, formatter: Formatter, transactional: bool
    ) -> bytes:
        """Return the packet of a body with options; the next one with the same costs much less."""
        kind = transactional, options, formatter
        last = self._last
        if last is None or last[0] != kind:
            last = kind, self.series(OutgoingMessage(**options), formatter, transactional)
            if all(type(value) in _UNCHANGING for value in options.values()):
                self._last = last
        return last[1](body)

    def series(
        self, like: OutgoingMessage, formatter: Formatter, transactional: bool
    ) -> Callable[[object], bytes]:
        """Return what makes the packets of messages that differ in nothing but their bodies.

        What stands around bodies of the same type and length is the same, and made once.
        """
        known: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        labelled: dict[tuple[int, int, int], tuple[bytes, bytes, bytes]] = {}

        def build(content: object) -> bytes:
            if type(content) is LabelledBody:
                return self._labelled(content, like, formatter, transactional, labelled)
            body_type, body = formatter.write(content)
            key = body_type, len(body)
            around = known.get(key)
            if around is None:
                if len(known) >= _FRAMES_MAX_COUNT:
                    known.clear()
                around = known[key] = self._around(like, body_type, body, transactional)
            return around[0] + body + around[1]

        return build

    def _labelled(
        self,
        content: LabelledBody,
        like: OutgoingMessage,
        formatter: Formatter,
        transactional: bool,
        known: dict[tuple[int, int, int], tuple[bytes, bytes, bytes]],
    ) -> bytes:
        """Return the packet of a body with a label.

        All but these two is the same where they have the same lengths, and is made once.
        """
        body_type, body = formatter.write(content.body)
        try:
            label = message_properties.label_bytes(content.label)
        except (EncodeError, TypeError) as error:
            raise _illegal(msgspec.structs.replace(like, label=content.label), error) from None
        key = body_type, len(body), len(label)
        around = known.get(key)
        if around is None:
            if len(known) >= _FRAMES_MAX_COUNT:
                known.clear()
            whole = msgspec.structs.replace(like, label=content.label)
            around = known[key] = self._around_label(
                whole, body_type, body, len(label), transactional
            )
        return b"".join((around[0], label, around[1], body, around[2]))

    def around_text(
        self, message: OutgoingMessage, formatter: Formatter, transactional: bool
    ) -> tuple[bytes, bytes, bytes]:
        """Return what stands before the text of a label, between it and the body, and behind that.

        That is the same for all texts and bodies of the same lengths.
        """
        body_type, body = formatter.write(message.body)
        text_bytes = 2 * len(message.label)
        # Behind the text of a label stands a NUL, if there is one.
        label_bytes = text_bytes + 2 if text_bytes else 0
        before, between, behind = self._around_label(
            message, body_type, body, label_bytes, transactional
        )
        return before, bytes(label_bytes - text_bytes) + between, behind

    def _around_label(
        self,
        message: OutgoingMessage,
        body_type: int,
        body: bytes,
        label_bytes: int,
        transactional: bool,
    ) -> tuple[bytes, bytes, bytes]:
        head, tail = self._around(message, body_type, body, transactional)
        behind = len(head) - _extension_size(message)
        return head[: behind - label_bytes], head[behind:], tail

    def _around(
        self, message: OutgoingMessage, body_type: int, body: bytes, transactional: bool
    ) -> tuple[bytes, bytes]:
        """Return what stands before and after a body in its packet."""
        if message.body_type is not None:
            body_type = message.body_type
        key = (
            transactional,
            message.priority,
            message.recoverable,
            message.response_queue,
            message.admin_queue,
            message.time_to_reach_queue_s,
            message.time_to_be_received_s,
            message.journal_on_failure,
            message.dead_letter_queue,
            message.journal_on_success,
            message.trace_queue,
            message.connector_type,
        )
        frame = self._frames.get(key)
        if frame is None:
            frame = self._keep_frame(key, message, transactional)
        start, middle, end = frame
        properties, label, extension = _properties(message, body_type, body)
        size = len(properties) + len(label) + len(extension) + len(body)
        padding = ZEROS[-size & 3]
        size += len(start) + _SIZE.size + len(middle) + len(padding) + len(end)
        if size > PACKET_MAX_BYTES:
            raise IllegalPropertySize(
                f"the message takes {size} bytes, {PACKET_MAX_BYTES} are allowed with its names "
                "and label: send a shorter body"
            )
        head = b"".join((start, _SIZE.pack(size), middle, properties, label, extension))
        return head, padding + end

    def _keep_frame(
        self, key: object, message: OutgoingMessage, transactional: bool
    ) -> tuple[bytes, bytes, bytes]:
        empty = packets.encode(self._frame_packet(message, transactional))
        ending = b"" if message.trace_queue is None else DebugHeader(message.trace_queue).write()
        if message.dead_letter_queue is not None:
            ending += dead_letter_extension(self._path(message.dead_letter_queue))
        frame = *message_bytes.around_size(empty, outline(empty)), ending
        if len(self._frames) >= _FRAMES_MAX_COUNT:
            self._frames.clear()
        self._frames[key] = frame
        return frame

    def _frame_packet(self, message: OutgoingMessage, transactional: bool) -> packets.UserMessage:
        if not (isinstance(message.priority, int) and 0 <= message.priority <= PRIORITY_MAX_LEVEL):
            raise IllegalPropertyValue(f"priority {message.priority!r}, where 0 to 7 is needed")
        recoverable = message.recoverable or transactional
        dead_letter = message.journal_on_failure or message.dead_letter_queue is not None
        flags = (
            (user.RECOVERABLE if recoverable else 0)
            | (user.JOURNAL_ON_FAILURE if dead_letter else 0)
            | (user.JOURNAL_ON_SUCCESS if message.journal_on_success else 0)
        )
        trace = message.trace_queue
        priority = 0 if transactional else message.priority
        return packets.UserMessage(
            UserHeader(
                NIL_GUID,
                self.destination_manager,
                time_to_be_received_s=_seconds(
                    message.time_to_be_received_s, "time_to_be_received_s"
                ),
                flags=flags,
                destination=self._destination,
                admin_queue=self._name(message.admin_queue, "admin_queue"),
                response_queue=self._name(message.response_queue, "response_queue"),
                connector_type=message.connector_type,
            ),
            MessageProperties(),
            BaseHeader(
                priority | (0 if trace is None else base.TRACE),
                _seconds(message.time_to_reach_queue_s, "time_to_reach_queue_s"),
            ),
            transaction=_NO_SEQUENCE if transactional else None,
            debug=None if trace is None else DebugHeader(trace),
        )

    def _name(self, queue: QueueLike | None, where: str) -> QueueName:
        if queue is None:
            return None
        match name := self._format_name(queue):
            case DirectFormatName():
                return DirectName(name.wire_text)
            case PublicFormatName(queue=identifier, journal=False):
                return PublicName(identifier)
            case PrivateFormatName(queue_manager=manager, number=number, journal=False):
                return PrivateName(manager, number)
            case _:
                raise IllegalPropertyValue(
                    f"{where} {name}: give one queue, by DIRECT=, PUBLIC= or PRIVATE= or by path"
                )

    def _path(self, queue: QueueLike) -> str:
        name = self._format_name(queue)
        if not isinstance(name, DirectFormatName) or not name.openable_for_receive:
            raise IllegalPropertyValue(f"dead_letter_queue {name}: give a path name")
        return str(PathName(name.host, name.queue))

    def _format_name(self, queue: QueueLike) -> FormatName:
        name: Any = queue if isinstance(queue, str) else getattr(queue, "format_name", queue)
        if isinstance(name, str):
            return format_name_of(name, self._manager_name)
        found: FormatName = name
        return found


def _numbered(format_name: str, owner: Guid) -> tuple[Guid, QueueName]:
    """Return what packets to a queue say that is known by its number, not by the way to it."""
    name = parse_format_name(format_name)
    if isinstance(name, PrivateFormatName):
        return name.queue_manager, PrivateOnDestination(name.number)
    if isinstance(name, PublicFormatName):
        return owner, PublicName(name.queue)
    if isinstance(name, MulticastFormatName | MultipleFormatName | DistributionListFormatName):
        # The queue manager writes the envelope, or makes a copy for each queue and addresses it.
        return NIL_GUID, None
    raise UnsupportedFormatName(f"{name}: packets cannot be addressed to it")


def format_name_of(text: str, manager_name: str) -> FormatName:
    """Read a format name, or make one of a path name seen from a queue manager."""
    try:
        found = read_name(text)
    except names.IllegalPathName as error:
        raise IllegalPathName(str(error)) from None
    except names.IllegalName as error:
        raise IllegalFormatName(str(error)) from None
    if isinstance(found, PathName):
        found = DirectFormatName.from_path(found)
    if isinstance(found, DirectFormatName) and found.is_local:
        # What means this computer here would mean another one there.
        return DirectFormatName(found.protocol, manager_name, found.queue)
    return found


def _properties(
    message: OutgoingMessage, body_type: int, body: bytes
) -> tuple[bytes, bytes, bytes]:
    """Return the fixed part of the message properties, the label and the extension.

    It packs what `MessageProperties` would write, without making one: this runs for every message.
    """
    if message.certificate is None and message.signature not in _UNSIGNED:
        raise PropertiesConflict(
            f"signature {message.signature!r} says how to sign, and there is nothing to sign with: "
            "give a certificate too"
        )
    correlation_id = message.correlation_id
    if isinstance(correlation_id, MessageId):
        correlation_id = correlation_id.to_bytes()
    if len(correlation_id) != IDENTIFIER_BYTES:
        raise IllegalPropertySize(f"correlation_id has {len(correlation_id)} bytes, 20 are needed")
    extension = message.extension
    if message.headers is not None:
        if extension:
            raise PropertiesConflict("headers and extension: both stand in the same place")
        extension = write_headers(message.headers)
    try:
        label = message_properties.label_bytes(message.label)
        fixed = message_properties.LAYOUT.pack(
            message.acknowledge,
            len(label) >> 1,
            message.message_class,
            correlation_id,
            body_type,
            message.application_tag,
            len(body),
            len(body),
            0,
            HashAlgorithm.SHA1,
            EncryptionAlgorithm.RC4,
            len(extension),
        )
    except (EncodeError, struct.error, TypeError) as error:
        raise _illegal(message, error) from None
    if message.message_class and message.connector_type is None:
        raise MissingConnectorType(
            f"message_class {message.message_class:#06x} is for connectors: give connector_type"
        )
    return fixed, label, extension


def _extension_size(message: OutgoingMessage) -> int:
    """Return how long the extension is, which stands between label and body."""
    return len(message.extension if message.headers is None else write_headers(message.headers))


def _illegal(message: OutgoingMessage, error: Exception) -> MsmqError:
    """Return which property is illegal. Kept apart from the packing, which is hot."""
    if not isinstance(message.label, str):
        return IllegalPropertyValue(f"label {message.label!r}: give a text")
    if len(message.label.encode("utf-16-le", "surrogatepass")) > 2 * LABEL_MAX_CHARACTERS:
        return LabelTooLong(f"label {message.label[:32]!r}… of {len(message.label)} characters")
    for name, bits in _BITS.items():
        value = getattr(message, name)
        if value is not None and not isinstance(value, int):
            kind = _FLAGS.get(name)
            return IllegalPropertyValue(
                f"{name} {value!r}: give {'a number' if kind is None else values_of(kind)}"
            )
        if value is not None and not 0 <= value < 1 << bits:
            return IllegalPropertyValue(f"{name} {value} does not fit {bits} bits")
    return IllegalPropertyValue(str(error))


def _seconds(lifetime: Lifetime, where: str) -> int:
    if lifetime is None:
        return INFINITE_S
    if not isinstance(lifetime, int | float):
        raise IllegalPropertyValue(f"{where} {lifetime!r}: give seconds, or None")
    if not 0 <= lifetime < INFINITE_S:
        raise IllegalPropertyValue(f"{where} {lifetime}: 0 to {INFINITE_S - 1} seconds, or None")
    # A message that may live for half a second must not be dead on arrival.
    return math.ceil(lifetime)
