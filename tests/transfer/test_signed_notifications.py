"""Signed change notifications: what queue managers sign, and what those of a directory service
bring about. [MQCN 3.2.5.1, 3.3.5.2, 3.3.5.3]"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.config import DirectoryConfig, SecurityConfig
from openmsmq.manager.directory.old_notifications import is_about_ours, notification_of
from openmsmq.manager.incoming.notifications import SIGNED_NOTIFICATIONS_MAX_COUNT
from openmsmq.model.directory import Change, DirectoryRole, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest, HashAlgorithm
from openmsmq.model.queue import QueueKind, QueuePrivacy, QueueProperties, QueueScope
from openmsmq.model.topology import (
    DirectoryServerKind,
    EnterpriseInfo,
    PublicKey,
    QueueManagerInfo,
    Site,
    UserInfo,
)
from openmsmq.security.own_key import OwnSigningKey
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.signatures.signatures import Signer, check_signature, is_signed, sign
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.notifications import (
    NOTIFY_QUEUE_NUMBER,
    Command,
    DirectoryNotification,
    ManagerNotification,
    Property,
    Update,
)
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.headers.security import SenderKind
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.strategies.keys import SID, certificate, private_key
from tests.transfer.directories import ORIGINAL, PATIENT_COPY, change, image
from tests.transfer.neighbour import Neighbour
from tests.transfer.network import ALPHA, BETA, PEER, START_S, Computer, Network
from tests.transfer.test_notifications import (
    QUEUE_ID,
    SOON_MS,
    owner_info,
    owner_queue,
    tell,
    unheard,
)

SERVER_KEY, OTHER_KEY = 1, 2
"""Which key somebody has."""
ENTERPRISE_SCOPE, QUEUE_TYPE, MACHINE_TYPE = 1, 1, 2
CHANGED: Final = Property(105, 5)
OF_SITE: Final = Property(222, ())


def own(seed: int = SERVER_KEY) -> OwnSigningKey:
    return OwnSigningKey(private_key(1024, seed), certificate(1024, seed), START_S)


def published(seed: int) -> tuple[PublicKey, ...]:
    return (PublicKey("", 0, certificate(1024, seed)),)


@pytest.fixture
def office(network: Network) -> Computer:
    """Who has the original of a directory, and a key to sign with."""
    network.directory = network.manager("OFFICE", ALPHA, ORIGINAL, keys=[own()])
    return network.directory


@pytest.fixture
def owner(network: Network, office: Computer) -> Neighbour:
    """A queue manager of the enterprise that a test plays, with a public queue."""
    neighbour = Neighbour(network, PEER)
    change(office, owner_info(office), owner_queue(neighbour))
    network.run(SOON_MS)
    neighbour.arrived.clear()
    return neighbour


@pytest.fixture
def shop(network: Network, office: Computer) -> Computer:
    """Who has a copy that learns nothing unless it is told to look, and a public queue."""
    return shop_of(network, office)


def shop_of(network: Network, office: Computer, **options: Any) -> Computer:
    del office
    computer = network.manager("SHOP", BETA, PATIENT_COPY, **options)
    network.run(SOON_MS)
    computer.ok_soon(api.CreateQueue(r".\orders", label="old"))
    network.run(SOON_MS)
    return computer


@pytest.fixture
def server(network: Network, office: Computer, shop: Computer) -> Neighbour:
    """A second server of the directory, which a test plays."""
    return server_of(network, office, shop)


def server_of(network: Network, office: Computer, shop: Computer) -> Neighbour:
    neighbour = Neighbour(network, PEER)
    change(
        office,
        owner_info(
            office,
            directory_server=DirectoryServerKind.BACKUP_SITE_CONTROLLER,
            signing_keys=published(SERVER_KEY),
        ),
    )
    shop.ok_soon(api.RefreshDirectory())
    network.run(SOON_MS)
    return neighbour


def tell_old_managers(office: Computer) -> None:
    """Let the server of the directory speak version 1, too."""
    enterprise = image(office).enterprise
    assert enterprise is not None
    change(office, msgspec.structs.replace(enterprise, notify_old_managers=True))


def updates_in(neighbour: Neighbour) -> list[Update]:
    return [update for _, told in old_ones(neighbour) for update in told.updates]


def old_ones(neighbour: Neighbour) -> list[tuple[UserMessage, DirectoryNotification]]:
    """All notifications of version 1 that somebody got."""
    found = [(each, notifications.decode(each.properties.body)) for each in neighbour.messages]
    return [(each, told) for each, told in found if isinstance(told, DirectoryNotification)]


def values_of(update: Update) -> dict[int, object]:
    return {entry.id: entry.value for entry in update.properties}


def signed(
    server: Neighbour,
    shop: Computer,
    *updates: Update,
    key: int = SERVER_KEY,
    sender: SenderKind = SenderKind.QUEUE_MANAGER,
    sender_id: bytes | None = None,
    to: Guid | None = None,
) -> UserMessage:
    """Make a notification of version 1, as the server of the directory signs it."""
    message = server.message(
        PrivateOnDestination(NOTIFY_QUEUE_NUMBER),
        DirectoryNotification(updates).encode(),
        manager=to or shop.identifier,
        recoverable=False,
        time_to_reach_queue_s=300,
    )
    named = server.identifier if sender_id is None else sender_id
    signer = Signer(
        private_key(1024, key), certificate(1024, key), sender, named, HashAlgorithm.SHA1
    )
    request = AuthenticationRequest.SIGNATURE_20
    found = decode(sign(encode(message), signer, request, server.identifier))
    assert isinstance(found, UserMessage)
    return found


def bring(network: Network, server: Neighbour, shop: Computer, message: UserMessage) -> int:
    """Bring a message to a queue manager; give how often it asks the directory then."""
    before = network.directory_questions
    if not server.is_open:
        server.open(shop.address)
    server.say(message)
    network.run(SOON_MS)
    return network.directory_questions - before


def known_queue(shop: Computer) -> QueueProperties:
    (found,) = image(shop).queues.values()
    return found


# What is sent.


@pytest.mark.spec("MQCN-3.3.5.3-02", "MQCN-3.3.5.3-03")
def test_a_queue_manager_signs_its_notifications_with_the_key_that_the_directory_has(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    change(office, owner_queue(owner, label="new"))
    network.run(SOON_MS)
    (message,) = owner.messages
    assert isinstance(notifications.decode(message.properties.body), ManagerNotification)
    checked = check_signature(message, SecurityPolicy())
    assert checked.kind is AuthenticationLevel.SIGNATURE_20
    assert checked.hash_algorithm is HashAlgorithm.SHA1
    (key,) = image(office).managers[office.identifier].signing_keys
    assert checked.certificate == key.blob == certificate(1024, SERVER_KEY)
    # Express, of no special class, and for five minutes.
    assert message.user.flags & user.DELIVERY == 0
    assert message.base.time_to_reach_queue_s == 300
    assert message.properties.message_class == 0


def test_a_queue_manager_without_a_key_tells_owners_all_the_same(network: Network) -> None:
    office = network.directory = network.manager("OFFICE", ALPHA, ORIGINAL)
    neighbour = Neighbour(network, PEER)
    change(office, owner_info(office))
    tell_old_managers(office)
    change(office, owner_queue(neighbour))
    network.run(SOON_MS)
    (message,) = neighbour.messages
    assert not is_signed(message)


@pytest.mark.spec("MQCN-3.3.5.3-07", "MQCN-3.3.5.2-01", "MQCN-3.3.5.2-22", "MQCN-3.3.5.2-25")
def test_a_server_of_the_directory_says_who_it_is_in_version_1_and_signs_it(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    tell_old_managers(office)
    change(office, owner_queue(owner, label="new"))
    network.run(SOON_MS)
    ((message, _),) = old_ones(owner)
    assert len(owner.messages) == 2
    assert message.properties.body[0] == 1
    assert check_signature(message, SecurityPolicy()).kind is AuthenticationLevel.SIGNATURE_20
    assert message.security is not None
    assert message.security.sender_kind is SenderKind.QUEUE_MANAGER
    assert message.security.sender_id == office.identifier
    assert message.user.destination == PrivateOnDestination(NOTIFY_QUEUE_NUMBER)
    assert message.user.destination_manager == owner.identifier


def test_only_an_enterprise_with_old_managers_and_its_server_speak_version_1(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    change(office, owner_queue(owner, label="not yet"))
    tell_old_managers(office)
    clerk = network.manager("CLERK", BETA, DirectoryConfig(role=DirectoryRole.COPY), keys=[own(2)])
    network.run(SOON_MS)
    owner.arrived.clear()
    change(clerk, owner_queue(owner, label="now"))
    network.run(SOON_MS)
    assert {each.user.source for each in owner.messages} == {office.identifier, clerk.identifier}
    assert {message.user.source for message, _ in old_ones(owner)} == {office.identifier}
    assert len(old_ones(owner)) == 1


@pytest.mark.spec(
    "MQCN-2.2.6-04",
    "MQCN-3.3.5.2-03",
    "MQCN-3.3.5.2-05",
    "MQCN-3.3.5.2-07",
    "MQCN-3.3.5.2-08",
    "MQCN-3.3.5.2-09",
    "MQCN-3.3.5.2-10",
    "MQCN-3.3.5.2-11",
)
def test_a_new_queue_is_told_by_its_path_and_with_all_its_properties(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    tell_old_managers(office)
    made = owner_queue(
        owner,
        7,
        label="Orders",
        service_type=Guid(b"a kind of queue!"),
        base_priority=-3,
        journaling=True,
        quota_kb=77,
        journal_quota_kb=88,
        authentication_required=True,
        privacy=QueuePrivacy.BODY,
        transactional=True,
        created_time_s=1_700_000_000,
        modified_time_s=1_700_000_001,
        scope=QueueScope.ENTERPRISE,
        directory_path="LDAP://CN=orders",
    )
    change(office, made)
    network.run(SOON_MS)
    ((message, _),) = old_ones(owner)
    (update,) = updates_in(owner)
    assert (update.command, update.target) == (Command.CREATE, made.path_name)
    assert update.directory_server == office.identifier
    assert values_of(update) == {
        101: made.identifier,
        102: Guid(b"a kind of queue!"),
        103: r"OWNER\q7",
        104: 1,
        105: 77,
        106: -3,
        107: 88,
        108: "Orders",
        109: 1_700_000_000,
        110: 1_700_000_001,
        111: 1,
        112: 2,
        113: 1,
        114: 1,
        1101: made.security_descriptor,
    }
    path = r"OWNER\q7".encode("utf-16-le") + b"\0\0"
    # Version and count, command and UseGuid, path, server, 24 reserved bytes, number of properties.
    beginning = b"\1\1" + b"\0\0" + path + office.identifier + bytes(24) + b"\x0f"
    assert message.properties.body.startswith(beginning)


@pytest.mark.spec(
    "MQCN-3.3.5.2-02",
    "MQCN-3.3.5.2-04",
    "MQCN-3.3.5.2-06",
    "MQCN-3.3.5.2-13",
    "MQCN-3.3.5.2-14",
    "MQCN-3.3.5.2-17",
    "MQCN-3.3.5.2-19",
    "MQCN-3.3.5.2-20",
)
def test_changed_and_deleted_queues_are_told_by_their_identifiers(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    tell_old_managers(office)
    created = owner_queue(owner, 7)
    change(office, created)
    change(office, msgspec.structs.replace(created, quota_kb=5, journaling=True, label="new"))
    change(office, Removal(ObjectKind.QUEUE, created.identifier))
    network.run(SOON_MS)
    first, second, third = updates_in(owner)
    assert [each.command for each in (first, second, third)] == [0, 1, 2]
    assert second.target == third.target == created.identifier
    # Its owner, and what is different of what version 1 knows; a label it does not.
    assert values_of(second) == {115: owner.identifier, 104: 1, 105: 5}
    assert [entry.id for entry in third.properties] == [1403, 1404]
    assert [entry.value for entry in third.properties] == [ENTERPRISE_SCOPE, QUEUE_TYPE]
    body = old_ones(owner)[1][0].properties.body
    assert body.startswith(b"\1\1" + b"\1\1" + created.identifier + office.identifier)


@pytest.mark.spec(
    "MQCN-3.3.5.2-15",
    "MQCN-3.3.5.2-16",
    "MQCN-3.3.5.2-18",
    "MQCN-3.3.5.2-21",
    "MQCN-3.3.5.2-23",
    "MQCN-3.3.5.2-24",
)
def test_a_changed_queue_manager_is_told_with_what_changed(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    tell_old_managers(office)
    change(office, owner_info(office, quota_kb=77, journal_quota_kb=88, version="9"))
    network.run(SOON_MS)
    ((message, told),) = old_ones(owner)
    assert told == DirectoryNotification(
        (
            Update(
                Command.CHANGE,
                owner.identifier,
                office.identifier,
                (
                    Property(202, owner.identifier),
                    Property(219, 0),
                    Property(214, 77),
                    Property(215, 88),
                ),
            ),
        )
    )
    # Numbers of four bytes, little-endian, behind a GUID and a number of one byte.
    values = owner.identifier + b"\0" + b"\x4d\0\0\0" + b"\x58\0\0\0"
    assert message.properties.body.endswith(values + b"\0")


def test_so_many_notifications_are_signed_for_one_change_and_no_more(
    network: Network, office: Computer, owner: Neighbour
) -> None:
    tell_old_managers(office)
    change(office, *[owner_queue(owner, number) for number in range(1, 80)])
    network.run(SOON_MS)
    signed_count = sum(map(is_signed, owner.messages))
    assert signed_count == SIGNED_NOTIFICATIONS_MAX_COUNT
    assert len(old_ones(owner)) == SIGNED_NOTIFICATIONS_MAX_COUNT // 2
    # None of version 1 goes unsigned.
    assert all(is_signed(message) for message, _ in old_ones(owner))


def test_what_cannot_be_said_in_version_1_is_left_out(office: Computer) -> None:
    server = office.identifier
    before = image(office)
    said: list[Change] = [
        QueueProperties(
            identifier=QUEUE_ID, path_name="OWNER\\\0", kind=QueueKind.PUBLIC, manager=server
        ),
        QueueManagerInfo(identifier=QUEUE_ID, computer_name="NEW"),
        Site(identifier=QUEUE_ID, name="other"),
        EnterpriseInfo(identifier=QUEUE_ID),
        Removal(ObjectKind.MANAGER, server),
    ]
    assert [notification_of(each, before, server) for each in said] == [None] * len(said)
    # Times behind 2038 have no place in four bytes with a sign.
    late = QueueProperties(
        identifier=QUEUE_ID,
        path_name=r"OWNER\q",
        kind=QueueKind.PUBLIC,
        manager=server,
        created_time_s=1 << 40,
    )
    told = notification_of(late, before, server)
    assert told is not None
    assert values_of(told.updates[0])[109] == 0x7FFF_FFFF


# What is heeded.


def created_one(shop: Computer) -> QueueProperties:
    return msgspec.structs.replace(
        known_queue(shop), identifier=Guid(b"a second queue!!"), path_name=r"SHOP\second"
    )


def update_of(made: Change, server: Guid, *more: Property) -> Update:
    match made:
        case QueueProperties(path_name=r"SHOP\second"):
            known = (Property(103, made.path_name), Property(101, made.identifier), *more)
            return Update(Command.CREATE, made.path_name, server, known)
        case QueueProperties():
            known = (Property(115, made.manager), Property(105, made.quota_kb), *more)
            return Update(Command.CHANGE, made.identifier, server, known)
        case QueueManagerInfo():
            known = (Property(202, made.identifier), Property(214, made.quota_kb), *more)
            return Update(Command.CHANGE, made.identifier, server, known)
        case _:
            gone = (Property(1403, ENTERPRISE_SCOPE), Property(1404, QUEUE_TYPE), *more)
            return Update(Command.DELETE, made.identifier, server, gone)


@pytest.mark.spec(
    "MQCN-3.2.5.1-01",
    "MQCN-3.2.5.1-02",
    "MQCN-3.2.5.1-03",
    "MQCN-3.2.5.1-06",
    "MQCN-3.2.5.1-07",
    "MQCN-3.2.5.1-11",
)
def test_each_change_that_a_server_of_the_directory_signs_is_there_afterwards(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    queue = known_queue(shop)
    second = created_one(shop)
    manager = image(office).managers[shop.identifier]
    changes: tuple[Change, ...] = (
        second,
        msgspec.structs.replace(queue, quota_kb=5),
        msgspec.structs.replace(manager, quota_kb=77),
        Removal(ObjectKind.QUEUE, second.identifier),
    )
    for made in changes:
        unheard(network, made)
        assert image(shop) != image(office)
        message = signed(server, shop, update_of(made, server.identifier))
        assert bring(network, server, shop, message) == 1
        assert image(shop) == image(office)
        there = not isinstance(shop.ask(api.GetQueue(r".\second")), api.Failed)
        assert there == (second.identifier in image(office).queues)
    (found,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert found.quota_kb == 5
    assert server.is_open


@pytest.mark.spec("MQCN-3.2.5.1-14", "MQCN-3.2.5.1-16", "MQCN-3.3.5.2-12")
def test_other_properties_of_an_update_change_nothing(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    queue = known_queue(shop)
    manager = image(office).managers[shop.identifier]
    of_queues = (Property(108, "forged"), Property(113, 1), Property(126, "LDAP://elsewhere"))
    of_managers = (Property(203, "FORGED"), Property(216, "forged"), Property(219, 1))
    for made, more in (
        (msgspec.structs.replace(queue, quota_kb=5), of_queues),
        (msgspec.structs.replace(manager, quota_kb=77), of_managers),
    ):
        unheard(network, made)
        message = signed(server, shop, update_of(made, server.identifier, *more))
        assert bring(network, server, shop, message) == 1
        assert image(shop) == image(office)
    assert known_queue(shop) == msgspec.structs.replace(queue, quota_kb=5)
    (found,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert (found.label, found.transactional, found.quota_kb) == ("old", False, 5)


def test_values_that_the_directory_does_not_have_are_not_taken_over(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    queue = known_queue(shop)
    shop.send(r".\orders", b"kept")
    before = image(shop)
    for made in (
        msgspec.structs.replace(queue, quota_kb=1),
        created_one(shop),
        Removal(ObjectKind.QUEUE, queue.identifier),
    ):
        bring(network, server, shop, signed(server, shop, update_of(made, server.identifier)))
        assert image(shop) == before
    assert shop.bodies(r".\orders") == [b"kept"]
    assert isinstance(shop.ask(api.GetQueue(r".\second")), api.Failed)
    del office


@pytest.mark.spec("MQCN-3.2.5.1-08", "MQCN-3.2.5.1-09", "MQCN-3.2.5.1-10", "MQCN-3.2.5.1-17")
@pytest.mark.parametrize(
    ("command", "properties", "counts"),
    [
        (Command.CHANGE, (Property(105, 5),), True),
        (Command.CHANGE, (Property(1101, b""),), True),
        (Command.CHANGE, (Property(202, QUEUE_ID),), True),
        (Command.CHANGE, (Property(1201, b""),), True),
        (Command.CHANGE, (Property(1404, 1),), False),
        (Command.CHANGE, (Property(1401, b""), Property(105, 5)), False),
        (Command.CHANGE, (), False),
        (Command.DELETE, (Property(1403, 1), Property(1404, QUEUE_TYPE)), True),
        (Command.DELETE, (Property(1403, 1), Property(1404, MACHINE_TYPE)), False),
        (Command.DELETE, (Property(1404, QUEUE_TYPE),), False),
        (Command.DELETE, (), False),
    ],
)
def test_the_first_property_says_what_an_update_is_about(
    network: Network,
    office: Computer,
    shop: Computer,
    server: Neighbour,
    command: Command,
    properties: tuple[Property, ...],
    *,
    counts: bool,
) -> None:
    del office
    update = Update(command, known_queue(shop).identifier, server.identifier, properties)
    assert is_about_ours(update) is counts
    assert bring(network, server, shop, signed(server, shop, update)) == counts
    # One that is about nothing of ours takes the others with it.
    good = Update(Command.CHANGE, QUEUE_ID, server.identifier, (CHANGED,))
    assert bring(network, server, shop, signed(server, shop, good, update)) == counts


def test_no_updates_are_no_reason_to_ask(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    del office
    assert bring(network, server, shop, signed(server, shop)) == 0


# Attacks.


def forged_body(message: UserMessage) -> UserMessage:
    """Another value behind the signature."""
    body = bytearray(message.properties.body)
    body[-2] ^= 1
    properties = msgspec.structs.replace(message.properties, body=bytes(body))
    return msgspec.structs.replace(message, properties=properties)


def unsigned(message: UserMessage) -> UserMessage:
    """Only the claim is left."""
    assert message.security is not None
    header = msgspec.structs.replace(message.security, signature=b"")
    return msgspec.structs.replace(message, security=header)


def with_certificate(message: UserMessage, seed: int) -> UserMessage:
    """Another certificate beside the signature."""
    assert message.security is not None
    header = msgspec.structs.replace(message.security, sender_certificate=certificate(1024, seed))
    return msgspec.structs.replace(message, security=header)


Forged = Callable[[Neighbour, Computer, Update], UserMessage]

ATTACKS: Final[dict[str, Forged]] = {
    "nobody has signed it": lambda server, shop, update: unsigned(signed(server, shop, update)),
    "a value was changed": lambda server, shop, update: forged_body(signed(server, shop, update)),
    "signed with another key, which it brings": lambda server, shop, update: signed(
        server, shop, update, key=OTHER_KEY
    ),
    "signed with another key, beside the certificate of the server": lambda server, shop, update: (
        with_certificate(signed(server, shop, update, key=OTHER_KEY), SERVER_KEY)
    ),
    "signed with the key, beside another certificate": lambda server, shop, update: (
        with_certificate(signed(server, shop, update), OTHER_KEY)
    ),
    "of a queue manager that nobody knows": lambda server, shop, update: signed(
        server, shop, update, key=OTHER_KEY, sender_id=b"somebody unknown"
    ),
    "of the server, by a key of another": lambda server, shop, update: signed(
        server, shop, update, sender_id=bytes(shop.identifier)
    ),
    "of a user who has the same key": lambda server, shop, update: signed(
        server, shop, update, sender=SenderKind.SID, sender_id=SID
    ),
    "of nobody": lambda server, shop, update: signed(
        server, shop, update, sender=SenderKind.NONE, sender_id=b""
    ),
    "an identifier that is none": lambda server, shop, update: signed(
        server, shop, update, sender_id=b"short"
    ),
}


@pytest.mark.parametrize("believes", [False, True], ids=["strict", "believes strangers"])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_no_server_of_the_directory_has_signed_is_dropped(
    network: Network, office: Computer, attack: Forged, *, believes: bool
) -> None:
    # Whom else a policy believes does not matter here.
    policy = SecurityPolicy(
        accept_unregistered_certificates=believes, trust_unsigned_senders=believes
    )
    shop = shop_of(network, office, security=SecurityConfig(policy=policy))
    server = server_of(network, office, shop)
    change(
        office,
        UserInfo(
            identifier=Guid(b"somebody's entry"),
            security_identifier=SID,
            certificates=(certificate(1024, SERVER_KEY),),
        ),
    )
    shop.ok_soon(api.RefreshDirectory())
    network.run(SOON_MS)
    made = msgspec.structs.replace(known_queue(shop), quota_kb=5)
    unheard(network, made)
    update = update_of(made, server.identifier)
    assert bring(network, server, shop, attack(server, shop, update)) == 0
    assert known_queue(shop).quota_kb != 5
    # The same, as the server signs it, is heeded.
    assert bring(network, server, shop, signed(server, shop, update)) == 1
    assert known_queue(shop).quota_kb == 5
    assert server.is_open


def test_a_queue_manager_that_serves_no_directory_speaks_for_none(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    change(office, owner_info(office, signing_keys=published(SERVER_KEY)))
    shop.ok_soon(api.RefreshDirectory())
    network.run(SOON_MS)
    message = signed(server, shop, update_of(known_queue(shop), server.identifier))
    assert bring(network, server, shop, message) == 0


def test_a_certificate_that_the_directory_has_no_more_proves_nothing(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    message = signed(server, shop, update_of(known_queue(shop), server.identifier))
    change(
        office,
        owner_info(
            office,
            directory_server=DirectoryServerKind.BACKUP_SITE_CONTROLLER,
            signing_keys=published(OTHER_KEY),
        ),
    )
    shop.ok_soon(api.RefreshDirectory())
    network.run(SOON_MS)
    assert bring(network, server, shop, message) == 0


def test_one_that_was_for_another_costs_a_question_and_changes_nothing(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    """MSMQ signs the number of a private queue, and not whose it is."""
    before = image(shop)
    update = update_of(msgspec.structs.replace(known_queue(shop), quota_kb=1), server.identifier)
    caught = signed(server, shop, update, to=office.identifier)
    header = msgspec.structs.replace(caught.user, destination_manager=shop.identifier)
    assert bring(network, server, shop, msgspec.structs.replace(caught, user=header)) == 1
    assert image(shop) == before


def test_one_that_is_brought_again_costs_a_question_and_changes_nothing(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    made = msgspec.structs.replace(known_queue(shop), quota_kb=5)
    unheard(network, made)
    message = signed(server, shop, update_of(made, server.identifier))
    assert bring(network, server, shop, message) == 1
    unheard(network, msgspec.structs.replace(made, quota_kb=6))
    assert bring(network, server, shop, message) == 1
    assert known_queue(shop).quota_kb == 6
    del office


def test_a_stolen_store_has_no_key_to_sign_with(network: Network, office: Computer) -> None:
    del network
    secret = private_key(1024, SERVER_KEY).to_pem()
    stored = b"".join(key + value for key, value in office.store.scan(b"", b"\xff" * 8, 10_000))
    assert certificate(1024, SERVER_KEY) in stored
    assert secret not in stored


def test_beside_signed_ones_those_of_queue_managers_need_no_signature(
    network: Network, office: Computer, shop: Computer, server: Neighbour
) -> None:
    del office
    made = msgspec.structs.replace(known_queue(shop), quota_kb=5)
    unheard(network, made)
    event = notifications.Event.QUEUE_CHANGED
    tell(server, shop, ManagerNotification(event, made.identifier, "OFFICE").encode())
    network.run(SOON_MS)
    assert known_queue(shop).quota_kb == 5
