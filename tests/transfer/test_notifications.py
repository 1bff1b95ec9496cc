"""Change notifications: sent to owners, and heeded without being believed. [MQCN 3, MQOD 3.3]"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.manager.directory.service import HINT_PAUSE_MS
from openmsmq.manager.incoming.notifications import (
    NOTIFICATION_REACH_S,
    NOTIFICATIONS_WAITING_MAX_COUNT,
)
from openmsmq.manager.outputs import AskDirectory
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.names import PrivateFormatName
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import DistributionList, QueueManagerInfo
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.notifications import (
    NOTIFY_QUEUE_NUMBER,
    Command,
    DirectoryNotification,
    Event,
    ManagerNotification,
    Property,
    Update,
)
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import HashAlgorithm
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.security import SecurityHeader, SenderKind
from openmsmq.wire.packets import UserMessage
from tests.strategies.wire_parts import directory_notifications, manager_notifications
from tests.transfer.directories import ORIGINAL, PATIENT_COPY, change, image, joined
from tests.transfer.neighbour import Neighbour, packets_in
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network
from tests.unit.wire.codec_checks import damaged

QUEUE_ID = Guid(b"a published one!")
SOON_MS = 3_000


@pytest.fixture
def shop(network: Network, office: Computer) -> Computer:
    """Who has a copy and a public queue."""
    del office
    computer = joined(network, "SHOP", BETA, PATIENT_COPY)
    computer.ok_soon(api.CreateQueue(r".\orders", label="old"))
    network.run(SOON_MS)
    return computer


@pytest.fixture
def owner(network: Network, office: Computer) -> Neighbour:
    """A queue manager of the enterprise that a test plays, with a public queue."""
    neighbour = Neighbour(network, PEER)
    change(office, owner_info(office), owner_queue(neighbour))
    network.run(SOON_MS)
    neighbour.arrived.clear()
    return neighbour


def owner_info(office: Computer, **properties: Any) -> QueueManagerInfo:
    identifier = Guid(PEER.encode().ljust(16, b"-"))
    (site,) = image(office).sites
    return QueueManagerInfo(
        identifier=identifier,
        computer_name="OWNER",
        addresses=(PEER,),
        sites=(site,),
        **properties,
    )


def owner_queue(owner: Neighbour, number: int = 0, **properties: Any) -> QueueProperties:
    return QueueProperties(
        identifier=Guid(bytes([number]) + QUEUE_ID[1:]) if number else QUEUE_ID,
        path_name=rf"OWNER\q{number}",
        kind=QueueKind.PUBLIC,
        manager=owner.identifier,
        **properties,
    )


def said(message: UserMessage) -> ManagerNotification:
    found = notifications.decode(message.properties.body)
    assert isinstance(found, ManagerNotification)
    return found


def notifications_of(computer: Computer) -> list[UserMessage]:
    """All change notifications that a queue manager has sent."""
    return [
        packet
        for packet in packets_in(computer.sent)
        if isinstance(packet, UserMessage)
        and packet.user.destination == PrivateOnDestination(NOTIFY_QUEUE_NUMBER)
    ]


def tell(stranger: Neighbour, computer: Computer, *bodies: bytes, **properties: Any) -> None:
    """Send bodies to the notification queue of a queue manager."""
    if not stranger.is_open:
        stranger.open(computer.address)
    to = PrivateOnDestination(NOTIFY_QUEUE_NUMBER)
    for body in bodies:
        message = stranger.message(
            to, body, manager=computer.identifier, recoverable=False, time_to_reach_queue_s=300
        )
        stranger.say(msgspec.structs.replace(message, **properties))


def label_at(computer: Computer) -> str:
    (queue,) = computer.ok(api.GetQueue(r".\orders")).queues
    label: str = queue.label
    return label


def unheard(network: Network, *changes: Change) -> None:
    """Change the directory so that no queue manager is told."""
    assert network.directory is not None
    network.directory.manager.directory.copy.write(changes)
    network.directory.pump()


# Sending.


def heard_of(
    network: Network, office: Computer, owner: Neighbour, event: Event
) -> tuple[UserMessage, Guid]:
    """Change something of an owner; give what he is told, and what was changed."""
    created = owner_queue(owner, 7)
    changes: dict[Event, tuple[Change, Guid]] = {
        Event.QUEUE_CREATED: (created, created.identifier),
        Event.QUEUE_CHANGED: (owner_queue(owner, label="new"), QUEUE_ID),
        Event.QUEUE_DELETED: (Removal(ObjectKind.QUEUE, QUEUE_ID), QUEUE_ID),
        Event.MANAGER_CHANGED: (owner_info(office, quota_kb=77), owner.identifier),
    }
    made, object_id = changes[event]
    change(office, made)
    network.run(SOON_MS)
    (message,) = owner.messages
    return message, object_id


@pytest.mark.spec(
    "MQCN-2.2.5-03",
    "MQCN-3.3.5.1-01",
    "MQCN-3.3.5.1-02",
    "MQCN-3.3.5.1-03",
    "MQCN-3.3.5.1-05",
    "MQCN-3.3.5.1-06",
    "MQCN-3.3.5.1-07",
    "MQCN-3.3.5.1-09",
)
@pytest.mark.parametrize("event", Event, ids=lambda event: event.name)
def test_each_event_is_told_with_its_object_and_where_it_can_be_read(
    network: Network, office: Computer, owner: Neighbour, event: Event
) -> None:
    message, object_id = heard_of(network, office, owner, event)
    assert message.properties.body == (
        b"\2\1"
        + (
            f"<Notification><Event>{event:d}</Event><ObjectGuid>{str(object_id).upper()}"
            "</ObjectGuid><DomainController>OFFICE</DomainController></Notification>"
        ).encode("utf-16-le")
        + b"\0"
    )


@pytest.mark.spec(
    "MQCN-3.3.4.1-01", "MQCN-3.3.4.1-02", "MQCN-3.3.5.1-10", "MQCN-3.3.5.3-01", "MQCN-3.3.5.3-08"
)
@pytest.mark.parametrize("event", Event, ids=lambda event: event.name)
def test_each_event_reaches_the_owner_of_the_object(
    network: Network, office: Computer, owner: Neighbour, event: Event
) -> None:
    message, _ = heard_of(network, office, owner, event)
    assert message.user.source == office.identifier
    assert message.user.destination_manager == owner.identifier
    assert message.user.destination == PrivateOnDestination(NOTIFY_QUEUE_NUMBER)


@pytest.mark.spec("MQCN-3.3.5.3-04", "MQCN-3.3.5.3-06")
def test_a_notification_is_an_express_message_of_five_minutes_with_one_byte_too_many(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    change(office, owner_queue(owner, label="new"))
    network.run(SOON_MS)
    (message,) = owner.messages
    plain = ManagerNotification(Event.QUEUE_CHANGED, QUEUE_ID, "OFFICE", tail=b"").encode()
    properties = message.properties
    assert properties.body[: len(plain)] == plain
    assert len(properties.body) == properties.body_size == len(plain) + 1
    assert message.base.time_to_reach_queue_s == NOTIFICATION_REACH_S == 300
    assert message.user.time_to_be_received_s == INFINITE_S
    assert message.user.flags & user.DELIVERY == 0
    assert not message.user.flags & (user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS)
    assert message.transaction is None
    assert (properties.message_class, properties.acknowledge, properties.label) == (0, 0, b"")
    assert message.user.admin_queue is message.user.response_queue is None
    assert message.base.priority == 3
    # Which algorithm it would be, although nothing is signed yet.
    assert properties.hash_algorithm == HashAlgorithm.SHA1


@pytest.mark.spec("MQCN-3.3.5.1-08")
def test_several_changes_at_once_are_told_one_by_one(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    change(office, owner_queue(owner, 1), owner_queue(owner, 2), owner_queue(owner, label="new"))
    network.run(SOON_MS)
    assert sorted((said(each).event, said(each).object_id[0]) for each in owner.messages) == [
        (Event.QUEUE_CREATED, 1),
        (Event.QUEUE_CREATED, 2),
        (Event.QUEUE_CHANGED, QUEUE_ID[0]),
    ]


def test_nobody_is_told_of_own_objects_new_computers_and_what_has_no_owner(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    office.ok_soon(api.CreateQueue(r".\own"))
    office.ok_soon(api.ChangeQueue(r".\own", label="new"))
    own = image(office).managers[office.identifier]
    (site,) = image(office).sites.values()
    change(
        office,
        msgspec.structs.replace(own, quota_kb=99),
        msgspec.structs.replace(site, name="Other"),
        DistributionList(identifier=Guid(b"a list of none!!"), name="none"),
        QueueManagerInfo(
            identifier=Guid(b"a new computer!!"), computer_name="NEW", sites=own.sites
        ),
    )
    office.ok_soon(api.DeleteQueue(r".\own"))
    network.run(SOON_MS)
    assert owner.messages == []
    assert len(notifications_of(office)) == 1  # Of the queue in the fixture.
    assert [queue for queue in office.outgoing() if queue.message_count] == []


def test_where_the_directory_is_no_queue_manager_its_own_server_is_named(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    del office
    directory = msgspec.structs.replace(PATIENT_COPY, server="dc1.example")
    clerk = network.manager("CLERK", GAMMA, directory)
    network.run(SOON_MS)
    change(clerk, owner_queue(owner, label="new"))
    network.run(SOON_MS)
    assert [said(each).directory_server for each in notifications_of(clerk)] == ["dc1.example"]


@pytest.mark.spec("MQCN-3.3.5.1-04")
def test_a_copy_names_the_server_where_the_directory_was_changed(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    clerk = joined(network, "CLERK", GAMMA, PATIENT_COPY)
    owner.arrived.clear()
    change(clerk, owner_queue(owner, label="new"))
    network.run(SOON_MS)
    assert [said(each).directory_server for each in notifications_of(clerk)] == ["OFFICE"]
    by_clerk = [each for each in owner.messages if each.user.source == clerk.identifier]
    assert [said(each).event for each in by_clerk] == [Event.QUEUE_CHANGED]
    del office


def test_a_server_whose_name_is_not_ascii_is_named_by_its_identifier(network: Network) -> None:
    office = network.directory = network.manager("BÜRO 1", ALPHA, ORIGINAL)
    neighbour = Neighbour(network, PEER)
    change(office, owner_info(office))
    change(office, owner_queue(neighbour))
    network.run(SOON_MS)
    (message,) = neighbour.messages
    assert said(message).directory_server == str(office.identifier)


@pytest.mark.spec("MQCN-3.3.3-01")
def test_an_owner_out_of_reach_costs_few_waiting_messages_and_only_for_minutes(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    network.down.add(PEER)
    network.cut(PEER)
    for number in range(2 * NOTIFICATIONS_WAITING_MAX_COUNT):
        change(office, owner_queue(owner, label=f"{number}"))
    network.run(SOON_MS)
    (queue,) = office.outgoing()
    assert queue.format_name == str(PrivateFormatName(owner.identifier, NOTIFY_QUEUE_NUMBER))
    assert queue.message_count == NOTIFICATIONS_WAITING_MAX_COUNT
    network.run(NOTIFICATION_REACH_S * 1000)
    assert [queue.message_count for queue in office.outgoing()] in ([], [0])
    network.down.clear()
    network.run(NOTIFICATION_REACH_S * 1000)
    assert owner.messages == []
    change(office, owner_queue(owner, label="after all"))
    network.run(SOON_MS)
    assert [said(each).event for each in owner.messages] == [Event.QUEUE_CHANGED]


# Heeding.


@pytest.mark.spec(
    "MQCN-2.2.5-01",
    "MQCN-3.2.5-02",
    "MQCN-3.2.5-04",
    "MQCN-3.2.5.2-01",
    "MQCN-3.2.5.2-04",
    "MQCN-3.2.5.2-05",
)
def test_each_notification_has_the_directory_read_once(network: Network, shop: Computer) -> None:
    stranger = Neighbour(network, PEER)
    assert network.directory is not None
    (old,) = image(network.directory).queues.values()
    second = msgspec.structs.replace(
        old, identifier=Guid(b"a second queue!!"), path_name=r"SHOP\second"
    )
    manager = image(network.directory).managers[shop.identifier]
    for event, made in (
        (Event.QUEUE_CREATED, second),
        (Event.QUEUE_CHANGED, msgspec.structs.replace(old, label="new", quota_kb=5)),
        (Event.MANAGER_CHANGED, msgspec.structs.replace(manager, quota_kb=77)),
        (Event.QUEUE_DELETED, Removal(ObjectKind.QUEUE, second.identifier)),
    ):
        unheard(network, made)
        before = network.directory_questions
        # Where it says to ask does not matter (C-148).
        tell(stranger, shop, ManagerNotification(event, made.identifier, "elsewhere").encode())
        network.run(SOON_MS)
        assert network.directory_questions - before == 1
        assert image(shop) == image(network.directory)
        there = not isinstance(shop.ask(api.GetQueue(r".\second")), api.Failed)
        assert there == (event is not Event.QUEUE_DELETED)
    (queue,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert (queue.label, queue.quota_kb) == ("new", 5)
    assert stranger.is_open


@pytest.mark.spec("MQCN-3.2.3-01", "MQCN-3.2.3-03", "MQCN-3.2.5-01", "MQCN-3.2.5-05")
def test_one_notification_after_the_other_is_heeded_from_the_start_on(
    network: Network, shop: Computer
) -> None:
    stranger = Neighbour(network, PEER)
    assert network.directory is not None
    (queue,) = image(network.directory).queues.values()
    for quota_kb in (1, 2, 3, 4):
        if quota_kb == 3:
            shop.crash()
        queue = msgspec.structs.replace(queue, quota_kb=quota_kb)
        unheard(network, queue)
        notification = ManagerNotification(Event.QUEUE_CHANGED, queue.identifier, "elsewhere")
        tell(stranger, shop, notification.encode())
        network.run(SOON_MS)
        assert image(shop).queues[queue.identifier].quota_kb == quota_kb


def test_a_forged_notification_deletes_and_changes_nothing(
    network: Network, shop: Computer
) -> None:
    stranger = Neighbour(network, PEER)
    (known,) = image(shop).queues
    shop.send(r".\orders", b"kept")
    before = image(shop)
    for event in Event:
        forged = ManagerNotification(event, known, "OFFICE").encode()
        tell(stranger, shop, forged)
        network.run(SOON_MS)
    assert image(shop) == before
    assert label_at(shop) == "old"
    assert shop.bodies(r".\orders") == [b"kept"]


@pytest.mark.spec("MQCN-3.3.5.3-05")
@pytest.mark.parametrize("tail", [b"", b"\0", b"\xff", b"\0\0x"])
def test_what_stands_behind_a_notification_means_nothing(
    network: Network, shop: Computer, tail: bytes
) -> None:
    (old,) = image(shop).queues.values()
    unheard(network, msgspec.structs.replace(old, label="new"))
    body = ManagerNotification(Event.QUEUE_CHANGED, old.identifier, "OFFICE", tail).encode()
    tell(Neighbour(network, PEER), shop, body)
    network.run(SOON_MS)
    assert label_at(shop) == "new"


@pytest.mark.spec("MQCN-3.2.5.1-04", "MQCN-3.2.5.1-05")
@pytest.mark.parametrize(
    "security",
    [
        None,
        SecurityHeader(b"\1\1\0\0\0\0\0\5\x12\0\0\0", flags=SenderKind.SID),
        SecurityHeader(Guid(b"queue manager id"), flags=SenderKind.QUEUE_MANAGER),
        SecurityHeader(
            Guid(b"queue manager id"), signature=bytes(64), flags=SenderKind.QUEUE_MANAGER
        ),
    ],
    ids=["no sender", "a user", "a queue manager, unsigned", "a queue manager, badly signed"],
)
def test_a_notification_of_a_directory_service_that_proves_nothing_is_dropped(
    network: Network, shop: Computer, security: SecurityHeader | None
) -> None:
    stranger = Neighbour(network, PEER)
    (known,) = image(shop).queues
    server = Guid(b"a directory here")
    updates = (
        Update(Command.CHANGE, known, server, (Property(105, 5), Property(104, 1))),
        Update(Command.DELETE, known, server, (Property(1403, 1), Property(1404, 1))),
        Update(Command.CREATE, r"SHOP\new", server, (Property(103, r"SHOP\new"),)),
    )
    before, questions = image(shop), network.directory_questions
    tell(stranger, shop, DirectoryNotification(updates).encode(), security=security)
    network.run(SOON_MS)
    assert network.directory_questions == questions
    assert image(shop) == before
    (queue,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert (queue.label, queue.journaling) == ("old", False)
    assert isinstance(shop.ask(api.GetQueue(r".\new")), api.Failed)
    assert stranger.is_open


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.binary(max_size=80)
        | damaged(manager_notifications().map(ManagerNotification.encode))
        | damaged(directory_notifications().map(DirectoryNotification.encode)),
        min_size=1,
        max_size=8,
    )
)
def test_any_bodies_cost_at_most_a_question(bodies: list[bytes]) -> None:
    network = Network()
    network.directory = network.manager("OFFICE", ALPHA, ORIGINAL)
    shop = joined(network, "SHOP", BETA, PATIENT_COPY)
    stranger = Neighbour(network, PEER)
    before, questions = image(shop), network.directory_questions
    tell(stranger, shop, *bodies)
    network.run(500)
    assert network.directory_questions - questions <= 1
    assert image(shop) == before
    assert stranger.received_count == 0
    assert stranger.is_open


def test_a_flood_does_not_keep_the_truth_away(network: Network, shop: Computer) -> None:
    stranger = Neighbour(network, PEER)
    (old,) = image(shop).queues.values()
    flood = [ManagerNotification(Event.QUEUE_CHANGED, old.identifier, "OFFICE").encode()] * 200
    before = network.directory_questions
    tell(stranger, shop, *flood)
    network.run(SOON_MS)
    assert 1 <= network.directory_questions - before <= 1 + SOON_MS // HINT_PAUSE_MS
    assert network.directory is not None
    change(network.directory, msgspec.structs.replace(old, label="new"))
    network.run(HINT_PAUSE_MS)
    assert label_at(shop) == "new"


def test_strangers_do_not_hurry_a_slow_directory(
    network: Network, shop: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Neighbour(network, PEER)
    assert network.directory is not None
    asked: list[AskDirectory] = []
    monkeypatch.setattr(network, "ask_directory", lambda _, output: asked.append(output))
    forged = ManagerNotification(Event.QUEUE_CHANGED, QUEUE_ID, "OFFICE").encode()

    def answer() -> None:
        assert network.directory is not None
        told = network.directory.manager.directory.copy.since(asked[-1].position)
        shop.manager.directory_told(told, network.now)
        shop.pump()

    tell(stranger, shop, forged)
    network.run(HINT_PAUSE_MS)
    assert len(asked) == 1
    # What is said now may not be in the answer, so there is a second question, after a pause.
    tell(stranger, shop, *[forged] * 9)
    answer()
    assert len(asked) == 1
    network.run(HINT_PAUSE_MS)
    assert len(asked) == 2
    answer()
    network.run(5 * HINT_PAUSE_MS)
    assert len(asked) == 2


def test_a_queue_manager_without_a_directory_takes_notifications_and_asks_nobody(
    network: Network, alpha: Computer
) -> None:
    stranger = Neighbour(network, PEER)
    tell(stranger, alpha, ManagerNotification(Event.QUEUE_DELETED, QUEUE_ID, "OFFICE").encode())
    network.run(SOON_MS)
    assert network.directory_questions == 0
    assert stranger.is_open


# Both.


def test_a_public_queue_is_modified_from_another_computer(
    network: Network, office: Computer, shop: Computer
) -> None:
    """Example 3 of MQOD: the client changes the directory and tells the server, which reads it."""
    client = joined(network, "CLIENT", GAMMA, PATIENT_COPY)
    (queue,) = image(client).queues.values()
    questions = network.directory_questions
    change(client, msgspec.structs.replace(queue, label="new", journaling=True))
    assert image(office).queues[queue.identifier].label == "new"
    network.run(SOON_MS)
    (notification,) = notifications_of(client)
    assert notification.user.destination_manager == shop.identifier
    assert said(notification) == ManagerNotification(
        Event.QUEUE_CHANGED, queue.identifier, "OFFICE"
    )
    # The client looks at what it has changed; the server reads what has changed.
    assert network.directory_questions - questions <= 3
    (found,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert (found.label, found.journaling) == ("new", True)
    client.send(r"SHOP\orders", b"the queue is ready")
    network.run(SOON_MS)
    assert shop.bodies(r".\orders") == [b"the queue is ready"]
