"""Change notifications: the directory's objects of a queue manager have changed. [MQCN 2.2]

They are the bodies of messages to the private queue `NOTIFY_QUEUE_NUMBER`. A directory service
sends the changed values (version 1), a queue manager only says which object to read again
(version 2). Senders append one byte that means nothing, so a few bytes behind the end are kept.

Nothing here is trusted: version 2 looks like XML but is matched as plain text, so there are no
entities to expand, and the server it names is only ever shown.
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Iterator
from typing import Final, Self, TypeAlias

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16, variants
from openmsmq.wire.fields.cursor import Field, group, hex_field, keep_padding, need
from openmsmq.wire.fields.variants import PropertyValue, VariantType

NOTIFY_QUEUE_NUMBER: Final = 3
DIRECTORY_VERSION: Final = 1
MANAGER_VERSION: Final = 2
UPDATES_MAX_COUNT: Final = 255
PROPERTIES_MAX_COUNT: Final = 255
RESERVED_BYTES: Final = 24
TAIL_MAX_BYTES: Final = 3
"""A terminator and the byte that means nothing."""
SENT_TAIL: Final = b"\0"

_U32: Final = struct.Struct("<I")
_WHERE: Final = "ChangeNotification"

_NOTIFICATION: Final = re.compile(
    r"<Notification><Event>([1-4])</Event>"
    r"<ObjectGuid>([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})</ObjectGuid ?>"
    r"<DomainController>([!-;=?-~]{1,256})</DomainController></Notification>"
)
_NOTIFICATION_END: Final = "</Notification>".encode("utf-16-le")


class Command(enum.IntEnum):
    """What happened to an object, as a directory service says it."""

    CREATE = 0
    CHANGE = 1
    DELETE = 2


class Event(enum.IntEnum):
    """What happened to an object, as a queue manager says it."""

    QUEUE_CREATED = 1
    QUEUE_CHANGED = 2
    QUEUE_DELETED = 3
    MANAGER_CHANGED = 4


class Property(msgspec.Struct, frozen=True, gc=False):
    """One property of an object and its value."""

    id: int
    value: PropertyValue


class Update(msgspec.Struct, frozen=True, gc=False):
    """The change of one object. [MQCN 2.2.6]"""

    command: Command
    target: Guid | str
    """The identifier of the object, or its path name."""
    directory_server: Guid = NIL_GUID
    """The server where the change was made (GuidMasterId)."""
    properties: tuple[Property, ...] = ()
    reserved: bytes = b""
    """The 24 reserved bytes, unless they are zeros."""

    def encode(self) -> bytes:
        """Return the bytes; nothing is padded."""
        if len(self.reserved) not in (0, RESERVED_BYTES):
            raise EncodeError(_WHERE, f"{len(self.reserved)} reserved bytes, not {RESERVED_BYTES}")
        if len(self.properties) > PROPERTIES_MAX_COUNT:
            raise EncodeError(
                _WHERE, f"{len(self.properties)} properties; at most {PROPERTIES_MAX_COUNT}"
            )
        by_identifier, target = _target_parts(self.target)
        values = [_value_bytes(entry) for entry in self.properties]
        return b"".join(
            (
                bytes((self.command, by_identifier)),
                target,
                self.directory_server,
                self.reserved or bytes(RESERVED_BYTES),
                bytes((len(self.properties),)),
                *[_U32.pack(entry.id) for entry in self.properties],
                *values,
            )
        )

    def fields(self) -> Iterator[Field]:
        """Show the update, field by field."""
        by_identifier, target = _target_parts(self.target)
        yield Field("Command", 1, int(self.command), self.command.name)
        yield Field("UseGuid", 1, by_identifier)
        name = "GuidIdentifier" if by_identifier else "PathName"
        yield Field(name, len(target), str(self.target))
        yield Field("GuidMasterId", 16, str(self.directory_server))
        yield Field("Reserved", RESERVED_BYTES, (self.reserved or bytes(RESERVED_BYTES)).hex())
        yield Field("NumberOfProperties", 1, len(self.properties))
        for entry in self.properties:
            yield Field("PropertyId", 4, entry.id, variants.PROPERTIES[entry.id][0])
        for entry in self.properties:
            yield Field("PropertyValue", len(_value_bytes(entry)), _shown(entry.value))


class DirectoryNotification(msgspec.Struct, frozen=True, gc=False):
    """What a directory service sends (version 1). [MQCN 2.2.4]"""

    updates: tuple[Update, ...]
    tail: bytes = SENT_TAIL

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Read the body of a message."""
        count = _check_header(body, DIRECTORY_VERSION)
        updates = []
        offset = 2
        for _ in range(count):
            update, offset = _read_update(body, offset)
            updates.append(update)
        return cls(tuple(updates), _tail(body, offset))

    def encode(self) -> bytes:
        """Return the body of a message."""
        if len(self.updates) > UPDATES_MAX_COUNT:
            raise EncodeError(_WHERE, f"{len(self.updates)} updates; at most {UPDATES_MAX_COUNT}")
        _check_tail(self.tail)
        header = bytes((DIRECTORY_VERSION, len(self.updates)))
        return b"".join((header, *[update.encode() for update in self.updates], self.tail))

    def fields(self) -> Iterator[Field]:
        """Show the notification, one field per update."""
        yield Field("Version", 1, DIRECTORY_VERSION)
        yield Field("NumberOfUpdateNotifications", 1, len(self.updates))
        for update in self.updates:
            yield group("NotificationUpdate", update.fields())
        yield from hex_field("unused", self.tail)


class ManagerNotification(msgspec.Struct, frozen=True, gc=False):
    """What a queue manager sends (version 2). [MQCN 2.2.5]"""

    event: Event
    object_id: Guid
    directory_server: str
    """Where the change can be read; chosen by the sender, so never a reason to connect (C-148)."""
    tail: bytes = SENT_TAIL
    spelling: str = ""
    """The text as it came, when that is not how we write it."""

    @property
    def text(self) -> str:
        """The notification as it travels."""
        return self.spelling or (
            f"<Notification><Event>{self.event:d}</Event>"
            f"<ObjectGuid>{str(self.object_id).upper()}</ObjectGuid>"
            f"<DomainController>{self.directory_server}</DomainController></Notification>"
        )

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Read the body of a message."""
        count = _check_header(body, MANAGER_VERSION)
        if count != 1:
            raise DecodeError(_WHERE, 1, f"{count} notifications, not 1")
        end = body.find(_NOTIFICATION_END, 2)
        if end < 0:
            raise DecodeError(_WHERE, 2, "no end of the notification")
        end += len(_NOTIFICATION_END)
        try:
            text = body[2:end].decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise DecodeError(_WHERE, 2 + error.start, "a text that is not UTF-16") from None
        found = cls._parse(text, _tail(body, end))
        if found is None:
            raise DecodeError(_WHERE, 2, f"{text[:400]!r} is no notification")
        return found

    @classmethod
    def _parse(cls, text: str, tail: bytes) -> Self | None:
        match = _NOTIFICATION.fullmatch(text)
        if match is None:
            return None
        event, object_id, server = Event(int(match[1])), Guid.parse(match[2]), match[3]
        plain = cls(event, object_id, server, tail)
        return plain if plain.text == text else cls(event, object_id, server, tail, text)

    def encode(self) -> bytes:
        """Return the body of a message."""
        if self._parse(self.text, self.tail) != self:
            raise EncodeError(
                _WHERE,
                f"{self.text!r} does not say what the fields say; "
                "a server name has 1 to 256 ASCII letters and no < or >",
            )
        _check_tail(self.tail)
        header = bytes((MANAGER_VERSION, 1))
        return b"".join((header, self.text.encode("utf-16-le"), self.tail))

    def fields(self) -> Iterator[Field]:
        """Show the notification, field by field."""
        yield Field("Version", 1, MANAGER_VERSION)
        yield Field("NumberOfUpdateNotifications", 1, 1)
        yield Field("NotificationBody", 2 * len(self.text), self.text, self.event.name)
        yield from hex_field("unused", self.tail)


ChangeNotification: TypeAlias = DirectoryNotification | ManagerNotification


def decode(body: bytes) -> ChangeNotification:
    """Read the body of a message to the notification queue."""
    if body[:1] == bytes((MANAGER_VERSION,)):
        return ManagerNotification.decode(body)
    return DirectoryNotification.decode(body)


def _check_header(body: bytes, version: int) -> int:
    """Check the version; give the number of notifications."""
    need(body, 0, 2, _WHERE)
    if body[0] != version:
        raise DecodeError(_WHERE, 0, f"version {body[0]}, not {version}")
    return body[1]


def _target_parts(target: Guid | str) -> tuple[int, bytes]:
    return (1, target) if isinstance(target, Guid) else (0, utf16.write(target, _WHERE))


def _property_type(property_id: int) -> VariantType | None:
    known = variants.PROPERTIES.get(property_id)
    return None if known is None else known[1]


def _value_bytes(entry: Property) -> bytes:
    kind = _property_type(entry.id)
    if kind is None:
        raise EncodeError(_WHERE, f"property {entry.id} is unknown")
    return variants.write(kind, entry.value, f"{_WHERE} property {entry.id}")


def _read_update(body: bytes, offset: int) -> tuple[Update, int]:
    need(body, offset, 2, _WHERE)
    command, by_identifier = body[offset], body[offset + 1]
    if command > Command.DELETE:
        raise DecodeError(_WHERE, offset, f"command {command}, not 0, 1 or 2")
    if by_identifier > 1:
        raise DecodeError(_WHERE, offset + 1, f"UseGuid {by_identifier}, not 0 or 1")
    target, offset = _read_target(body, offset + 2, by_identifier)
    need(body, offset, 16 + RESERVED_BYTES + 1, _WHERE)
    server = Guid(body[offset : offset + 16])
    reserved = body[offset + 16 : offset + 16 + RESERVED_BYTES]
    offset += 16 + RESERVED_BYTES
    properties, end = _read_properties(body, offset + 1, body[offset])
    update = Update(Command(command), target, server, properties, keep_padding(reserved))
    return update, end


def _read_target(body: bytes, offset: int, by_identifier: int) -> tuple[Guid | str, int]:
    if not by_identifier:
        return utf16.read(body, offset, len(body), _WHERE)
    need(body, offset, 16, _WHERE)
    return Guid(body[offset : offset + 16]), offset + 16


def _read_properties(body: bytes, offset: int, count: int) -> tuple[tuple[Property, ...], int]:
    need(body, offset, 4 * count, _WHERE)
    identifiers = struct.unpack_from(f"<{count}I", body, offset)
    at = offset + 4 * count
    properties = []
    for index, identifier in enumerate(identifiers):
        kind = _property_type(identifier)
        # Without its type, a value and all that follows it cannot be found.
        if kind is None:
            raise DecodeError(_WHERE, offset + 4 * index, f"property {identifier} is unknown")
        value, at = variants.read(kind, body, at, _WHERE)
        properties.append(Property(identifier, value))
    return tuple(properties), at


def _tail(body: bytes, offset: int) -> bytes:
    if len(body) - offset > TAIL_MAX_BYTES:
        raise DecodeError(_WHERE, offset, f"{len(body) - offset} bytes behind the end")
    return body[offset:]


def _check_tail(tail: bytes) -> None:
    if len(tail) > TAIL_MAX_BYTES:
        raise EncodeError(_WHERE, f"{len(tail)} bytes behind the end; at most {TAIL_MAX_BYTES}")


def _shown(value: PropertyValue) -> str | int:
    match value:
        case int() | str():
            return value
        case Guid():
            return str(value)
        case bytes():
            return value.hex()
        case _:
            return ", ".join(map(str, value))
