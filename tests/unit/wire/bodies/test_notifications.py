"""Change notifications of directory services and of queue managers."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.notifications import (
    Command,
    DirectoryNotification,
    Event,
    ManagerNotification,
    Property,
    Update,
)
from openmsmq.wire.errors import DecodeError, EncodeError
from tests.strategies.wire_parts import directory_notifications, manager_notifications
from tests.unit.wire.codec_checks import (
    assert_decodes_to_same_or_refused,
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_refused_cheaply,
    damaged,
)

OBJECT = Guid.parse("0123abcd-2222-3333-4444-555555555555")
SERVER = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
UPDATE = Update(
    Command.CHANGE, OBJECT, SERVER, (Property(108, "label"), Property(105, 1000), Property(104, 1))
)
UPDATE_BYTES = b"".join(
    (
        b"\1\1",
        OBJECT,
        SERVER,
        bytes(24),
        b"\3",
        struct.pack("<III", 108, 105, 104),
        "label\0".encode("utf-16-le"),
        struct.pack("<IB", 1000, 1),
    )
)
TEXT = (
    "<Notification><Event>2</Event><ObjectGuid>0123ABCD-2222-3333-4444-555555555555</ObjectGuid>"
    "<DomainController>dc.example</DomainController></Notification>"
)


def body_of(text: str, tail: bytes = b"\0") -> bytes:
    return b"\2\1" + text.encode("utf-16-le") + tail


@given(directory_notifications() | manager_notifications())
def test_a_notification_survives_the_wire(
    notification: DirectoryNotification | ManagerNotification,
) -> None:
    raw = notification.encode()
    assert notifications.decode(raw) == notification
    assert_fields_cover(notification.fields(), len(raw))


@given(
    damaged(directory_notifications().map(DirectoryNotification.encode))
    | damaged(manager_notifications().map(ManagerNotification.encode))
)
def test_any_bytes_are_a_notification_or_refused(data: bytes) -> None:
    assert_decodes_to_same_or_refused(notifications.decode, data)


@given(directory_notifications() | manager_notifications())
def test_a_truncated_notification_is_refused(
    notification: DirectoryNotification | ManagerNotification,
) -> None:
    raw = notification.encode()
    assert_no_prefix_decodes(notifications.decode, raw[: len(raw) - len(notification.tail)])


@pytest.mark.spec(
    "MQCN-2.2.4-01", "MQCN-2.2.4-02", "MQCN-2.2.6-09", "MQCN-2.2.6-10", "MQCN-3.2.5-03"
)
def test_an_update_has_its_identifiers_first_and_then_its_values() -> None:
    notification = DirectoryNotification((UPDATE, UPDATE))
    raw = b"\1\2" + 2 * UPDATE_BYTES + b"\0"
    assert notification.encode() == raw
    assert notifications.decode(raw) == notification


@pytest.mark.spec(
    "MQCN-2.2.6-02", "MQCN-2.2.6-03", "MQCN-2.2.6-05", "MQCN-2.2.6-06", "MQCN-2.2.6-07"
)
def test_an_object_is_named_by_identifier_or_by_path() -> None:
    rest = bytes(16 + 24 + 1)
    by_identifier = Update(Command.DELETE, OBJECT)
    by_path = Update(Command.CREATE, r"host\q")
    assert by_identifier.encode() == b"\2\1" + OBJECT + rest
    assert by_path.encode() == b"\0\0" + "host\\q\0".encode("utf-16-le") + rest


@pytest.mark.spec("MQCN-2.2.6-08")
@given(st.binary(min_size=24, max_size=24))
def test_reserved_bytes_are_ignored(reserved: bytes) -> None:
    raw = bytearray(DirectoryNotification((UPDATE,)).encode())
    raw[36:60] = reserved
    found = DirectoryNotification.decode(bytes(raw)).updates[0]
    assert (found.target, found.directory_server, found.properties) == (
        UPDATE.target,
        UPDATE.directory_server,
        UPDATE.properties,
    )


@pytest.mark.spec("MQCN-2.2.6-01")
@pytest.mark.parametrize("command", [3, 255])
def test_an_unknown_command_is_refused(command: int) -> None:
    with pytest.raises(DecodeError, match="command"):
        notifications.decode(b"\1\1" + bytes([command]) + UPDATE_BYTES[1:])


def test_an_update_that_names_its_object_in_no_known_way_is_refused() -> None:
    with pytest.raises(DecodeError, match="UseGuid"):
        notifications.decode(b"\1\1\1\2" + UPDATE_BYTES[2:])


@pytest.mark.spec("MQCN-2.2.2-01")
def test_an_unknown_property_is_refused_where_it_stands_and_not_written() -> None:
    raw = bytearray(b"\1\1" + UPDATE_BYTES)
    struct.pack_into("<I", raw, 65, 9999)
    with pytest.raises(DecodeError, match="property 9999") as caught:
        notifications.decode(bytes(raw))
    assert caught.value.offset == 65
    with pytest.raises(EncodeError, match="property 9999"):
        Update(Command.CHANGE, OBJECT, properties=(Property(9999, 1),)).encode()


def test_a_value_of_the_wrong_type_is_not_written() -> None:
    with pytest.raises(EncodeError, match="property 108"):
        Update(Command.CHANGE, OBJECT, properties=(Property(108, 1),)).encode()


@pytest.mark.parametrize("count", [0, 2, 255])
def test_a_count_of_updates_that_lies_is_refused_cheaply(count: int) -> None:
    assert_refused_cheaply(notifications.decode, bytes([1, count]) + UPDATE_BYTES)


@pytest.mark.parametrize("count", [0, 1, 2, 4, 255])
def test_a_count_of_properties_that_lies_is_refused_cheaply(count: int) -> None:
    raw = bytearray(b"\1\1" + UPDATE_BYTES)
    raw[60] = count
    assert_refused_cheaply(notifications.decode, bytes(raw))


def test_more_than_a_byte_can_count_is_not_written() -> None:
    with pytest.raises(EncodeError, match="256 updates"):
        DirectoryNotification((Update(Command.CHANGE, OBJECT),) * 256).encode()
    with pytest.raises(EncodeError, match="256 properties"):
        Update(Command.CHANGE, OBJECT, properties=(Property(104, 1),) * 256).encode()


def test_reserved_bytes_are_24_or_none() -> None:
    with pytest.raises(EncodeError, match="reserved"):
        Update(Command.CHANGE, OBJECT, reserved=b"short").encode()


@pytest.mark.spec("MQCN-2.2.4-01", "MQCN-2.2.5-04")
def test_a_queue_manager_says_which_object_to_read_again() -> None:
    notification = ManagerNotification(Event.QUEUE_CHANGED, OBJECT, "dc.example")
    assert notification.encode() == body_of(TEXT)
    assert notifications.decode(body_of(TEXT)) == notification


def test_the_blank_of_the_grammar_is_accepted_and_kept() -> None:
    body = body_of(TEXT.replace("</ObjectGuid>", "</ObjectGuid >"))
    found = notifications.decode(body)
    assert isinstance(found, ManagerNotification)
    assert (found.event, found.object_id, found.directory_server) == (2, OBJECT, "dc.example")
    assert found.encode() == body


def test_lower_case_digits_are_accepted_and_kept() -> None:
    body = body_of(TEXT.replace("ABCD", "abcd"))
    found = notifications.decode(body)
    assert isinstance(found, ManagerNotification)
    assert found.object_id == OBJECT
    assert found.encode() == body


@pytest.mark.spec("MQCN-2.2.5-02")
@pytest.mark.parametrize("event", ["0", "5", "", "11", "x"])
def test_an_unknown_event_is_refused(event: str) -> None:
    with pytest.raises(DecodeError, match="no notification"):
        notifications.decode(body_of(TEXT.replace(">2<", f">{event}<")))


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("555</", "55</"),
        TEXT.replace("dc.example", ""),
        TEXT.replace("dc.example", "d" * 257),
        TEXT.replace("dc.example", "d c"),
        TEXT.replace("dc.example", "d\u00e9"),
        TEXT.replace("dc.example", "a</DomainController><DomainController>b"),
        TEXT.replace("<Event>2</Event>", ""),
        TEXT.replace("<Notification>", "<!DOCTYPE x [<!ENTITY e 'x'>]><Notification>"),
        TEXT.replace("dc.example", "&#9;<"),
        " " + TEXT,
        TEXT[:-1],
        TEXT.lower(),
    ],
)
def test_text_that_is_not_exactly_a_notification_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        notifications.decode(body_of(text))


def test_entities_are_not_expanded() -> None:
    found = notifications.decode(body_of(TEXT.replace("dc.example", "&amp;&lol;")))
    assert isinstance(found, ManagerNotification)
    assert found.directory_server == "&amp;&lol;"


def test_half_a_surrogate_pair_is_refused() -> None:
    raw = bytearray(body_of(TEXT))
    raw[2:4] = b"\0\xd8"
    with pytest.raises(DecodeError, match="not UTF-16"):
        notifications.decode(bytes(raw))


@pytest.mark.spec("MQCN-2.2.4-03")
@pytest.mark.parametrize("count", [0, 2, 255])
def test_a_queue_manager_sends_one_notification_at_a_time(count: int) -> None:
    body = bytearray(body_of(TEXT))
    assert body[1] == 1
    body[1] = count
    with pytest.raises(DecodeError, match="not 1"):
        notifications.decode(bytes(body))


@pytest.mark.parametrize("version", [0, 3, 255])
def test_an_unknown_version_is_refused(version: int) -> None:
    with pytest.raises(DecodeError, match="version"):
        notifications.decode(bytes([version]) + body_of(TEXT)[1:])


@pytest.mark.parametrize(
    ("server", "spelling"), [("", ""), ("a<b", ""), ("dc.example", TEXT), ("other", TEXT)]
)
def test_a_notification_that_would_read_otherwise_is_not_written(
    server: str, spelling: str
) -> None:
    with pytest.raises(EncodeError, match="does not say"):
        ManagerNotification(Event.QUEUE_CHANGED, OBJECT, server, b"", spelling).encode()


def test_a_few_bytes_behind_the_end_are_kept_and_more_refused() -> None:
    updates = b"\1\1" + UPDATE_BYTES
    for body in (updates, body_of(TEXT, b"")):
        for tail in (b"", b"x", b"\0\0x"):
            found = notifications.decode(body + tail)
            assert found.tail == tail
            assert found.encode() == body + tail
        with pytest.raises(DecodeError, match="4 bytes behind"):
            notifications.decode(body + b"1234")
    with pytest.raises(EncodeError, match="4 bytes behind"):
        DirectoryNotification((), b"1234").encode()
    with pytest.raises(EncodeError, match="4 bytes behind"):
        ManagerNotification(Event.QUEUE_CHANGED, OBJECT, "dc", b"1234").encode()


def test_what_we_send_is_one_byte_longer_than_the_notification() -> None:
    assert DirectoryNotification(()).encode() == b"\1\0\0"
    assert ManagerNotification(Event.QUEUE_CHANGED, OBJECT, "dc.example").encode()[-1:] == b"\0"
