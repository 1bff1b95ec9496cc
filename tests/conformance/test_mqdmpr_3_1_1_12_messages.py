"""What each attribute of a message makes the queue manager do, or leave alone. [MQDMPR 3.1.1.12]"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.model.identity import Guid
from openmsmq.model.message import HashAlgorithm
from openmsmq.model.queue import AccessMode
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
    SameAsAdmin,
)
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.conformance.marks import shows
from tests.strategies.messages import Draft
from tests.transfer.conftest import alpha, network
from tests.transfer.neighbour import Neighbour
from tests.transfer.network import ALPHA, PEER, Computer, Network
from tests.unit.manager.office import LEDGER, ORDERS, Office, message

__all__ = ["alpha", "network"]

MESSAGE: Final = "MQDMPR-3.1.1.12"
ADMIN: Final = r"private$\admin"
TO_PEER: Final = rf"DIRECT=TCP:{PEER}\{ORDERS}"
JOURNAL, DEAD_LETTERS = "system$;journal", "system$;deadletter"
SOMEBODY: Final = Guid(b"some other host!")

octets = st.binary(max_size=60)
u32 = st.integers(0, 0xFFFF_FFFF)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)


@pytest.fixture
def office() -> Office:
    office = Office()
    office.ok(api.CreateQueue(ADMIN))
    return office


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def sent_to(peer: Neighbour, sender: Computer, draft: dict[str, Any]) -> UserMessage:
    """Send a message to a neighbour; gives it as it came there."""
    sender.send(TO_PEER, b"what it is about", **draft)
    sender.network.run(30_000)
    return peer.messages[-1]


# Body, label and the rest of what applications say to each other.


@shows(MESSAGE, 28, 29, 30, 31, 43, 51, 52)
@settings(max_examples=30)
@given(
    st.fixed_dictionaries(
        {
            "body": octets,
            "body_type": u32,
            "application_tag": u32,
            "correlation_id": st.binary(min_size=20, max_size=20),
            "label": texts,
            "extension": octets,
            "connector_type": st.none() | st.binary(min_size=16, max_size=16).map(Guid),
        }
    ),
    st.booleans(),
)
def test_what_applications_say_to_each_other_is_neither_read_nor_changed(
    said: dict[str, Any], away: bool
) -> None:
    """Whatever it is, it arrives; here or at another queue manager, and after a restart."""
    network = Network()
    alpha = network.manager("ALPHA", ALPHA)
    alpha.create(ORDERS)
    peer = Neighbour(network, PEER)
    built = PacketBuilder(rf"TCP:{PEER}\{ORDERS}" if away else rf"OS:ALPHA\{ORDERS}", "ALPHA")
    packet = built.build(OutgoingMessage(recoverable=True, **said), DEFAULT_FORMATTER, False)
    name = TO_PEER if away else rf"DIRECT=OS:.\{ORDERS}"
    opened = alpha.ok(api.OpenQueue(name, AccessMode.SEND))
    alpha.ok(api.Send(opened.handle, [packet]))
    if away:
        network.run(30_000)
        [found] = peer.messages
    else:
        alpha.crash()
        [found] = alpha.messages(ORDERS)
    properties = found.properties
    assert properties.body == said["body"]
    assert properties.body_type == said["body_type"]
    assert properties.application_tag == said["application_tag"]
    assert properties.correlation_id == said["correlation_id"]
    assert properties.label_text == said["label"]
    assert properties.extension == said["extension"]
    assert found.user.connector_type == said["connector_type"]
    assert properties.message_class == 0
    assert found.security is None


@shows(MESSAGE, 54, 55)
@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize(
    ("kind", "name"), [(1, "Microsoft Base Cryptographic Provider, v1.0"), (77, "ours"), (0, "")]
)
def test_what_a_connector_says_of_a_provider_is_passed_on(
    alpha: Computer, peer: Neighbour, away: bool, kind: int, name: str
) -> None:
    alpha.create(ORDERS)
    provider = struct.pack("<I", kind) + f"{name}\0".encode("utf-16-le")
    plain = decode(Draft(body=b"from elsewhere").packet())
    assert isinstance(plain, UserMessage)
    host = f"TCP:{PEER}" if away else "OS:ALPHA"
    packet = UserMessage(
        UserHeader(
            plain.user.source,
            flags=plain.user.flags,
            destination=DirectName(rf"{host}\{ORDERS}"),
            connector_type=SOMEBODY,
        ),
        plain.properties,
        plain.base,
        security=SecurityHeader(provider_info=provider),
    )
    opened = alpha.ok(api.OpenQueue(rf"DIRECT={host}\{ORDERS}", AccessMode.SEND))
    alpha.ok(api.Send(opened.handle, [encode(packet)]))
    alpha.network.run(30_000)
    [found] = peer.messages if away else alpha.messages(ORDERS)
    assert found.properties.body == b"from elsewhere"
    assert found.security is not None
    assert found.security.provider_info == provider


# Whether a message survives.


@shows(MESSAGE, 16)
@pytest.mark.parametrize("recoverable", [False, True])
def test_a_message_is_express_or_recoverable(recoverable: bool) -> None:
    """Bits 5 and 6 of the flags: 0 is express, 1 recoverable. [MQMQ 2.2.19.2]"""
    packet = Draft(recoverable=recoverable).packet()
    flags = struct.unpack_from("<I", packet, 60)[0]
    assert flags >> 5 & 3 == int(recoverable)
    found = decode(packet)
    assert isinstance(found, UserMessage)
    assert found.user.recoverable is recoverable


@shows(MESSAGE, 17, 61)
@pytest.mark.parametrize("name", [ORDERS, LEDGER])
def test_all_of_a_recoverable_message_survives(office: Office, name: str) -> None:
    office.ok(api.CreateQueue(r"private$\mine", transactional=name == LEDGER))
    office.send(
        bytes(range(256)),
        name=name,
        priority=6,
        time_to_be_received_s=9_000,
        time_to_reach_queue_s=8_000,
        acknowledge=0xE,
        admin_queue=rf"OS:ALPHA\{ADMIN}",
        journal_on_failure=True,
        journal_on_success=True,
        correlation_id=bytes(range(20)),
        dead_letter_queue=r"private$\mine",
    )
    [before] = office.ok(api.Receive(office.open(name), peek=True)).entries
    for committed in (True, False):
        office.pass_time(60)
        office.restart(committed=committed)
        [after] = office.ok(api.Receive(office.open(name), peek=True)).entries
        assert after == before, "packet, place, time of arrival and counts"
    office.pass_time(9_000)
    assert office.bodies(name) == []
    assert office.bodies(r"private$\mine") == [bytes(range(256))]
    assert office.classes(ADMIN) == [0xC002]


# Copies of what was delivered, and of what was not.


@shows(MESSAGE, 18, 20)
@pytest.mark.parametrize("asked", [True, False])
def test_a_delivered_message_is_copied_to_the_journal_if_that_was_asked_for(
    alpha: Computer, peer: Neighbour, asked: bool
) -> None:
    peer.acknowledges = False
    sent_to(peer, alpha, {"journal_on_success": asked, "journal_on_failure": True})
    assert alpha.bodies(JOURNAL) == [], "nobody has said yet that it is there"
    peer.write(peer.ack(received=1, base=1, bits=1))
    alpha.network.run(1_000)
    assert alpha.bodies(JOURNAL) == ([b"what it is about"] if asked else [])
    assert alpha.bodies(DEAD_LETTERS) == []


@shows(MESSAGE, 21, 23)
@pytest.mark.parametrize("asked", [True, False])
def test_an_undelivered_message_is_copied_to_the_dead_letters_if_that_was_asked_for(
    network: Network, alpha: Computer, asked: bool
) -> None:
    alpha.send(
        TO_PEER,
        b"too late",
        journal_on_failure=asked,
        journal_on_success=True,
        time_to_reach_queue_s=60,
    )
    network.run(50_000)
    assert alpha.bodies(DEAD_LETTERS) == [], "it may still arrive"
    network.run(20_000)
    assert alpha.bodies(DEAD_LETTERS) == ([b"too late"] if asked else [])
    assert alpha.bodies(JOURNAL) == []
    assert alpha.outgoing(TO_PEER)[0].message_count == 0


@shows(MESSAGE, 19)
def test_a_copy_for_which_the_journal_has_no_room_is_discarded(
    network: Network, peer: Neighbour
) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    alpha.config = msgspec.structs.replace(alpha.config, journal_quota_kb=4)
    alpha.start()
    sent = [bytes([number]) * 1500 for number in range(4)]
    for body in sent:
        alpha.send(TO_PEER, body, journal_on_success=True)
        network.run(60_000)
    assert alpha.bodies(JOURNAL) == sent[:2]
    assert peer.bodies == sent, "the messages themselves were delivered"
    assert alpha.outgoing(TO_PEER)[0].message_count == 0, "none is kept for want of room"


# Acknowledgments for the application that sent it.

ENDS: Final = ("arrives", "is received", "cannot be delivered", "is not received")
ARRIVED, RECEIVED, UNDELIVERED, UNRECEIVED = 0x0002, 0x4000, 0x8002, 0xC001


def told(wish: int, *classes: int, ids: tuple[int, ...]) -> Any:
    return pytest.param(wish, set(classes), marks=shows(MESSAGE, *ids), id=f"{wish:#x}")


@pytest.mark.parametrize(
    ("wish", "classes"),
    [
        told(0x0, ids=(34,)),
        told(0x1, ARRIVED, ids=(32, 35)),
        told(0x2, RECEIVED, ids=(32, 36)),
        told(0x4, UNDELIVERED, ids=(32, 37)),
        told(0x8, UNRECEIVED, ids=(32, 38)),
        told(0x5, ARRIVED, UNDELIVERED, ids=(32, 39)),
        told(0xC, UNDELIVERED, UNRECEIVED, ids=(32, 40)),
        told(0xE, RECEIVED, UNDELIVERED, UNRECEIVED, ids=(32, 41)),
    ],
)
@pytest.mark.parametrize("end", ENDS)
def test_the_sender_hears_of_what_it_has_asked_for_and_of_nothing_else(
    wish: int, classes: set[int], end: str
) -> None:
    office = Office()
    office.ok(api.CreateQueue(ADMIN))
    wishes: dict[str, Any] = {"acknowledge": wish, "admin_queue": rf"OS:ALPHA\{ADMIN}"}
    if end == "cannot be delivered":
        handle = office.open(rf"DIRECT=OS:BETA\{ORDERS}", AccessMode.SEND)
        packet = Draft(time_to_reach_queue_s=30, **wishes).packet(rf"OS:BETA\{ORDERS}")
        office.ok(api.Send(handle, [packet]))
        office.pass_time(60)
        happened = [UNDELIVERED]
    else:
        office.send(b"one", **wishes)
        happened = [ARRIVED]
        if end == "is received":
            office.ok(api.Receive(office.open()))
            happened.append(RECEIVED)
        elif end == "is not received":
            office.ok(api.Purge(office.open()))
            happened.append(UNRECEIVED)
    assert office.classes(ADMIN) == [each for each in happened if each in classes]


# Enumerations of the packet. [MQMQ 2.2.19.2]


def flags_of(**names: Any) -> int:
    header = UserHeader(SOMEBODY, **names)
    packet = encode(UserMessage(header, decode_plain().properties))
    found: int = struct.unpack_from("<I", packet, 60)[0]
    read = decode(packet)
    assert isinstance(read, UserMessage)
    for field, name in names.items():
        assert getattr(read.user, field) == name
    return found


def decode_plain() -> UserMessage:
    plain = decode(Draft().packet())
    assert isinstance(plain, UserMessage)
    return plain


DIRECT = DirectName(r"OS:ALPHA\q")


@shows(MESSAGE, 47)
@pytest.mark.parametrize(
    ("name", "kind"),
    [(PrivateOnDestination(7), 3), (PublicName(SOMEBODY), 5), (DIRECT, 7)],
)
def test_a_destination_is_private_public_or_direct(name: QueueName, kind: int) -> None:
    assert flags_of(destination=name) >> 10 & 7 == kind


@shows(MESSAGE, 48)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (None, 0),
        (PrivateOnSource(7), 2),
        (PrivateOnDestination(7), 3),
        (PublicName(SOMEBODY), 5),
        (PrivateName(SOMEBODY, 7), 6),
        (DIRECT, 7),
    ],
)
def test_an_administration_queue_is_one_of_six_kinds(name: QueueName, kind: int) -> None:
    assert flags_of(destination=DIRECT, admin_queue=name) >> 13 & 7 == kind
    assert decode_plain().user.admin_queue is None, "which is the default"


@shows(MESSAGE, 49)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (None, 0),
        (SameAsAdmin(), 1),
        (PrivateOnSource(7), 2),
        (PrivateOnDestination(7), 3),
        (PrivateOnAdminHost(7), 4),
        (PublicName(SOMEBODY), 5),
        (PrivateName(SOMEBODY, 7), 6),
        (DIRECT, 7),
    ],
)
def test_a_response_queue_is_one_of_eight_kinds(name: QueueName, kind: int) -> None:
    admin = PublicName(SOMEBODY)
    flags = flags_of(destination=DIRECT, admin_queue=admin, response_queue=name)
    assert flags >> 16 & 7 == kind
    assert decode_plain().user.response_queue is None, "which is the default"


@shows(MESSAGE, 45)
def test_a_hash_is_one_of_those_that_there_are_and_sha1_by_default() -> None:
    assert {each.name.replace("_", ""): each.value for each in HashAlgorithm} == {
        "MD2": 0x8001,
        "MD4": 0x8002,
        "MD5": 0x8003,
        "SHA1": 0x8004,
        "SHA256": 0x800C,
        "SHA512": 0x800E,
    }
    built = PacketBuilder(rf"OS:ALPHA\{ORDERS}", "ALPHA").build(
        OutgoingMessage(), DEFAULT_FORMATTER, False
    )
    found = decode(built)
    assert isinstance(found, UserMessage)
    assert found.properties.hash_algorithm == 0x8004


# Without wishes nothing is done to it.


@shows(MESSAGE, 5, 10)
def test_a_message_that_wants_no_protection_leaves_as_it_is(
    alpha: Computer, peer: Neighbour
) -> None:
    found = sent_to(peer, alpha, {})
    assert found.properties.body == b"what it is about"
    assert found.properties.privacy_level == 0
    assert found.security is None
    assert found.multi_queue is None
    assert any(b"what it is about" in sent for sent in alpha.sent)


@shows(MESSAGE, 1)
def test_a_reader_gets_every_attribute_of_a_message(office: Office) -> None:
    """Where each attribute stands that has no test of its own below."""
    office.pass_time(5)
    [number] = office.send(b"first", correlation_id=bytes(range(20)), acknowledge=5)
    [entry] = office.ok(api.Receive(office.open(), peek=True)).entries
    assert entry.lookup_id == office.lookup_ids()[0]
    assert entry.arrived_time_s == office.driver.now.unix_s
    found = message(entry)
    identifier = office.driver.manager.identifier
    assert (found.user.source, found.user.message_number) == (identifier, number)
    assert found.user.sent_time_s == office.driver.now.unix_s
    assert found.base.priority == 3
    assert found.properties.correlation_id == bytes(range(20))
    assert found.properties.acknowledge == 5
    assert found.user.destination is not None
    office.send(b"second", name=LEDGER)
    [entry] = office.ok(api.Receive(office.open(LEDGER), peek=True)).entries
    place = message(entry).transaction
    assert place is not None
    assert place.first_in_transaction
    assert place.last_in_transaction
