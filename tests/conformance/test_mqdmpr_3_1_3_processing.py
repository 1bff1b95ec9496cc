"""The start of a queue manager, its directory, and what it sends. [MQDMPR 3.1.3-3.1.7]"""

from __future__ import annotations

from math import gcd
from pathlib import Path
from typing import Final

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey as CertifiedKey

from openmsmq.api import messages as api
from openmsmq.manager.config import SecurityConfig
from openmsmq.model.queue import AccessMode, SeekAction
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.runtime.operating_system.key_files import KeyFiles
from openmsmq.security.own_key import OwnKey, OwnSigningKey
from openmsmq.security.providers import PROVIDERS
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.notifications import Event, ManagerNotification
from openmsmq.wire.keys import RsaPublicKey
from tests.conformance.marks import shows
from tests.strategies.keys import ANYTHING_GOES
from tests.transfer.conftest import network, office, shop
from tests.transfer.directories import ORIGINAL, PATIENT_COPY, POLL_MS, change, image, joined
from tests.transfer.neighbour import Neighbour, numbered, to_orders
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, START_S, Computer, Network
from tests.unit.manager.office import LEDGER, ORDERS, Office, bodies, error_name

__all__ = ["network", "office", "shop"]

TO_PEER: Final = rf"DIRECT=TCP:{PEER}\{ORDERS}"
SYSTEM: Final = {"system$;deadletter", "system$;deadxact", "system$;journal"}


@pytest.fixture
def desk() -> Office:
    """One queue manager without a directory."""
    return Office()


@pytest.fixture
def alpha(network: Network) -> Computer:
    alpha = network.manager("ALPHA", ALPHA)
    alpha.create(ORDERS)
    return alpha


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


# Initialization.


def names(desk: Office) -> set[str]:
    return {queue.path_name for queue in desk.ok(api.ListQueues(everything=True)).queues}


@shows("MQDMPR-3.1.3", 1, 2)
def test_the_first_start_makes_a_queue_manager_and_each_other_one_finds_it(
    network: Network,
) -> None:
    """An empty store is what says that a queue manager is to be provisioned."""
    office = network.manager("OFFICE", ALPHA, ORIGINAL)
    found = {queue.path_name for queue in office.ok(api.ListQueues(everything=True)).queues}
    assert found == SYSTEM
    identity = office.identifier
    own = image(office).managers[identity]
    assert (own.computer_name, own.initialization_retry_s) == ("OFFICE", 120)
    assert own.sites == tuple(image(office).sites)
    assert image(office).enterprise is not None
    office.create(LEDGER, transactional=True)
    office.send(rf"DIRECT=OS:.\{LEDGER}", b"kept", transactional=True)
    work = office.ok(api.Begin()).transaction
    handle = office.ok(api.OpenQueue(LEDGER, AccessMode.RECEIVE)).handle
    office.ok(api.Receive(handle, transaction=work))
    before = image(office)
    office.crash()
    assert office.identifier == identity
    assert image(office) == before
    assert office.ok(api.GetStatus()).transaction_count == 0
    assert office.bodies(LEDGER) == [b"kept"], "what was no two-phase transaction is aborted"
    network.directory = None
    other = network.manager("OTHER", BETA, ORIGINAL)
    assert other.identifier != identity


@shows("MQDMPR-3.1.3", 9, 10, 11, 14)
def test_a_queue_manager_publishes_a_key_for_each_provider_that_it_allows(
    network: Network, tmp_path: Path
) -> None:
    """Base keys have 512 bits; the others as many as are configured, here as in Windows 1,024."""
    keys = KeyFiles(tmp_path, PROVIDERS, 1024, "OFFICE").load_or_make(START_S)
    office = network.manager(
        "OFFICE", ALPHA, ORIGINAL, keys=keys, security=SecurityConfig(policy=ANYTHING_GOES)
    )
    own = image(office).managers[office.identifier]
    published = {key.provider_name: RsaPublicKey.decode(key.blob) for key in own.encryption_keys}
    assert {name: key.bit_length for name, key in published.items()} == {
        "Microsoft Base Cryptographic Provider v1.0": 512,
        "Microsoft Enhanced Cryptographic Provider v1.0": 1024,
        "Microsoft Enhanced RSA and AES Cryptographic Provider": 1024,
    }
    private = {each.provider.name: each.key for each in keys if isinstance(each, OwnKey)}
    assert private.keys() == published.keys()
    for name, key in published.items():
        assert key.use == 0xA400, "for the exchange of keys"
        assert key.modulus == private[name].public.modulus
        assert key.modulus.bit_length() == key.bit_length
        # RFC 8017, 3.1: an odd exponent from 3 to n - 1, which has no factor in common with lambda.
        assert 3 <= key.exponent < key.modulus
        assert gcd(key.exponent, key.modulus) == 1
        assert key.exponent % 2 == key.modulus % 2 == 1
        wrapped = pow(0x1234, key.exponent, key.modulus).to_bytes(key.bit_length // 8, "big")
        assert wrapped != bytes(len(wrapped))
    [signing] = [each for each in keys if isinstance(each, OwnSigningKey)]
    [shown] = own.signing_keys
    certified = x509.load_der_x509_certificate(shown.blob).public_key()
    assert isinstance(certified, CertifiedKey)
    numbers = certified.public_numbers()
    assert numbers.n == signing.key.public.modulus
    assert numbers.n.bit_length() == 1024
    assert numbers.e % 2 == 1
    assert 3 <= numbers.e < numbers.n
    assert numbers.n not in {key.modulus for key in published.values()}


@shows("MQDMPR-3.1.3", 15)
def test_two_queues_are_the_queue_manager_s_alone(desk: Office) -> None:
    identity = desk.driver.manager.identifier
    for number in (3, 4):
        name = f"PRIVATE={identity}\\{number}"
        for access in (AccessMode.RECEIVE, AccessMode.PEEK, AccessMode.MOVE):
            assert isinstance(desk.ask(api.OpenQueue(name, access)), api.Failed)
    for path in (r"private$\order_queue$", r"private$\notify_queue$"):
        assert desk.error(api.CreateQueue(path)) == "MQ_ERROR_ACCESS_DENIED"
        for access in (AccessMode.SEND, AccessMode.RECEIVE, AccessMode.PEEK):
            assert isinstance(desk.ask(api.OpenQueue(path, access)), api.Failed)
    assert {name for name in names(desk) if ";journal" not in name or name in SYSTEM} == (
        SYSTEM | {ORDERS, LEDGER}
    )


# What comes from the directory in time.


@shows("MQDMPR-3.1.6.1", 1, 2)
@shows("MQDMPR-3.1.6.2", 1, 2)
def test_sites_and_their_gates_are_brought_up_to_date_without_being_told(
    network: Network, office: Computer
) -> None:
    shop = joined(network, "SHOP", BETA)
    [site] = image(shop).sites.values()
    gate = QueueManagerInfo(
        identifier=type(site.identifier)(b"a gate of a site"),
        computer_name="GATE",
        sites=(site.identifier,),
        routing_server=True,
    )
    copy = office.manager.directory.copy
    copy.write((msgspec.structs.replace(site, foreign=True), gate))
    office.pump()
    assert not image(shop).sites[site.identifier].foreign
    network.run(POLL_MS)
    assert image(shop).sites[site.identifier].foreign
    assert image(shop).managers[gate.identifier] == gate
    network.directory = None
    copy.write((site, msgspec.structs.replace(gate, addresses=("192.0.2.1",))))
    office.pump()
    network.run(3 * POLL_MS)
    assert image(shop).sites[site.identifier].foreign, "what could not be read stays as it was"
    assert image(shop).managers[gate.identifier] == gate
    network.directory = office
    network.run(60_000)
    assert not image(shop).sites[site.identifier].foreign
    assert image(shop).managers[gate.identifier].addresses == ("192.0.2.1",)


def told(owner: Neighbour) -> list[Event]:
    """Say of what a neighbour was notified, one after the other."""
    found = []
    for message in owner.messages:
        said = notifications.decode(message.properties.body)
        assert isinstance(said, ManagerNotification)
        found.append(said.event)
    return found


@shows("MQDMPR-3.1.7.1.18", 2)
@shows("MQDMPR-3.1.7.1.24", 1, 2)
def test_what_is_created_and_written_is_told_to_its_owner_or_fails_with_the_directory(
    network: Network, office: Computer, shop: Computer
) -> None:
    owner = Neighbour(network, PEER)
    [site] = image(office).sites
    info = QueueManagerInfo(
        identifier=owner.identifier, computer_name="OWNER", addresses=(PEER,), sites=(site,)
    )
    change(office, info)
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    [mine] = image(office).queues.values()
    queue = msgspec.structs.replace(
        mine,
        identifier=type(site)(b"a queue of owner"),
        path_name=r"OWNER\orders",
        manager=owner.identifier,
    )
    change(shop, queue)
    network.run(5_000)
    assert image(office).queues[queue.identifier] == queue
    assert told(owner) == [Event.QUEUE_CREATED]
    change(shop, msgspec.structs.replace(queue, label="new", quota_kb=5))
    network.run(5_000)
    assert image(office).queues[queue.identifier].label == "new"
    assert told(owner)[1:] == [Event.QUEUE_CHANGED]
    change(shop, msgspec.structs.replace(info, quota_kb=77))
    network.run(5_000)
    assert told(owner)[2:] == [Event.MANAGER_CHANGED]
    network.directory = None
    for request in (
        api.ChangeQueue(r".\orders", label="lost"),
        api.CreateQueue(r".\more"),
    ):
        assert error_name(shop.soon(request)) == "MQ_ERROR_NO_DS"
    assert [published.label for published in image(office).queues.values()] == ["", "new"]
    network.run(60_000)
    assert "nobody answers" in shop.ok(api.GetStatus()).directory_problem
    assert len([each for each in owner.messages if each.user.source == office.identifier]) == 3


@shows("MQDMPR-3.1.7.1.25", 1, 2)
def test_a_directory_that_is_back_is_noticed_within_a_minute_and_read(
    network: Network, office: Computer
) -> None:
    shop = joined(network, "SHOP", BETA, PATIENT_COPY)
    shop.ok_soon(api.CreateQueue(r".\orders", label="old"))
    network.run(1_000)
    network.directory = None
    assert error_name(shop.soon(api.RefreshDirectory())) == "MQ_ERROR_NO_DS"
    assert "nobody answers" in shop.ok(api.GetStatus()).directory_problem
    [queue] = image(office).queues.values()
    own = image(office).managers[shop.identifier]
    office.manager.directory.copy.write(
        (
            msgspec.structs.replace(queue, label="new"),
            msgspec.structs.replace(own, quota_kb=1234),
        )
    )
    office.pump()
    asked = network.directory_questions
    network.run(3 * 60_000)
    assert 2 <= network.directory_questions - asked <= 4, "once in a minute"
    network.directory = office
    network.run(60_000)
    status = shop.ok(api.GetStatus())
    assert (status.directory_problem, status.quota_kb) == ("", 1234)
    [found] = shop.ok(api.GetQueue(r".\orders")).queues
    assert found.label == "new"


@shows("MQDMPR-3.1.7.1", 1)
def test_each_event_of_related_protocols_is_processed(
    network: Network, office: Computer, shop: Computer
) -> None:
    """One call for each of them; what each does is shown by a test of its own."""
    shop.ok_soon(api.CreateQueue(r".\orders"))  # 3.1.7.1.3, 3.1.7.1.18, 3.1.7.1.33
    network.run(POLL_MS)
    handle = shop.ok(api.OpenQueue(r".\orders", AccessMode.RECEIVE)).handle  # 3.1.7.1.5
    cursor = shop.ok(api.CreateCursor(handle)).cursor  # 3.1.7.1.1
    shop.send(r"SHOP\orders", *numbered(4))  # 3.1.7.1.27, 3.1.7.1.9, 3.1.7.1.30, 3.1.7.1.32
    shop.ok(api.Receive(handle, peek=True, cursor=cursor))  # 3.1.7.1.15
    shop.ok(api.Receive(handle, peek=True, cursor=cursor, next=True))  # 3.1.7.1.14
    shop.ok(api.Receive(handle))  # 3.1.7.1.10
    [locked] = shop.ok(api.Receive(handle, lock=True)).entries  # 3.1.7.1.11
    shop.ok(api.EndReceive(handle, locked.lookup_id, True))  # 3.1.7.1.12
    [entry] = shop.ok(api.Seek(handle, "first", peek=True)).entries  # 3.1.7.1.13, 3.1.7.1.31
    target = shop.ok(api.OpenQueue(r".\orders;sub", AccessMode.MOVE)).handle
    shop.ok(api.Move(handle, entry.lookup_id, target))  # 3.1.7.1.16
    assert shop.ask(api.Receive(shop.ok(api.OpenQueue(r".\orders;sub", 1)).handle, 2)) is not None
    shop.ok(api.CloseCursor(cursor))  # 3.1.7.1.2
    work = shop.ok(api.Begin()).transaction  # 3.1.7.1.8
    shop.ok(api.Abort(work))
    assert shop.ok(api.Purge(handle)) == api.Removed(1)  # 3.1.7.1.7
    shop.ok(api.CloseQueue(handle))  # 3.1.7.1.6
    shop.ok_soon(api.ChangeQueue(r".\orders", label="new"))  # 3.1.7.1.24
    shop.ok_soon(api.RefreshDirectory())  # 3.1.7.1.20, 3.1.7.1.25
    assert shop.ok(api.FindQueues(label="new")).rows  # 3.1.7.1.21 to 3.1.7.1.23
    [published] = image(shop).queues
    assert shop.ok(api.GetNames(f"PUBLIC={published}")).path_name == r"SHOP\orders"  # 3.1.7.1.26
    shop.send(TO_PEER, b"away")  # 3.1.7.1.28
    shop.ok_soon(api.DeleteQueue(r".\orders"))  # 3.1.7.1.4, 3.1.7.1.19
    assert not image(office).queues


# What is sent, and in which order.


@shows("MQDMPR-3.1.7.1.28", 1, 2)
@shows("MQDMPR-3.1.7.3.9", 1)
def test_messages_are_sent_by_their_priority_and_then_as_they_came(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    """Nobody says which is next. What goes out has no base priority, as only public queues have."""
    alpha.send(TO_PEER, b"at once")
    network.run(1_000)
    assert peer.bodies == [b"at once"], "nobody has to ask for it"
    network.cut(PEER)
    network.down.add(PEER)
    for number, priority in enumerate((0, 3, 7, 5, 3, 7, 1, 0)):
        alpha.send(TO_PEER, b"%d.%d" % (priority, number), priority=priority)
        network.run(1_000)
    network.down.clear()
    network.run(120_000)
    expected = [b"7.2", b"7.5", b"5.3", b"3.1", b"3.4", b"1.6", b"0.0", b"0.7"]
    assert peer.bodies[1:] == expected


@shows("MQDMPR-3.1.7.1.29", 1, 2)
def test_a_message_that_leaves_its_queue_otherwise_is_not_sent_and_the_next_one_is(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    network.down.add(PEER)
    alpha.send(TO_PEER, *numbered(3))
    alpha.send(TO_PEER, b"short", time_to_reach_queue_s=30)
    handle = alpha.ok(api.OpenQueue(TO_PEER, AccessMode.RECEIVE_ADMIN)).handle
    assert bodies(alpha.ok(api.Receive(handle))) == numbered(3)[:1]
    network.run(60_000)
    network.down.clear()
    network.run(120_000)
    assert peer.bodies == numbered(3)[1:]


@shows("MQDMPR-3.1.7.1.34", 1, 2)
def test_of_a_queue_that_is_emptied_nothing_is_sent_any_more_and_of_others_all(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    network.down.add(PEER)
    alpha.send(TO_PEER, *numbered(3))
    alpha.send(TO_PEER + "2", b"of another queue")
    handle = alpha.ok(api.OpenQueue(TO_PEER, AccessMode.RECEIVE_ADMIN)).handle
    assert alpha.ok(api.Purge(handle)) == api.Removed(3)
    network.down.clear()
    network.run(120_000)
    assert peer.bodies == [b"of another queue"]


@shows("MQDMPR-3.1.7.2.5", 1, 2)
@shows("MQDMPR-3.1.7.2.6", 1, 2)
def test_nobody_is_let_in_for_a_while_when_there_is_no_room_and_then_again(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    peer.open(ALPHA)
    assert peer.is_open
    alpha.fail_commits = 1
    peer.say(peer.message(to_orders(ALPHA), b"no room"))
    network.run(1_000)
    assert not peer.is_open, "throttled"
    other = Neighbour(network, GAMMA)
    for caller in (peer, other):
        caller.open(ALPHA)
        assert not caller.is_open
    network.run(alpha.config.transfer.retry_ms)
    for caller in (peer, other):
        caller.open(ALPHA)
        assert caller.is_open
    peer.say(peer.message(to_orders(ALPHA), b"there is room"))
    network.run(1_000)
    assert alpha.bodies(ORDERS) == [b"there is room"]


# Seek Available Message Position.


@shows("MQDMPR-3.1.7.3.2", 1, 2, 3)
@pytest.mark.parametrize(
    ("action", "start", "peek", "found"),
    [
        ("first", None, False, b"2"),
        ("first", None, True, b"2"),
        ("last", None, False, b"6"),
        ("last", None, True, b"7"),
        ("next", 2, False, b"6"),
        ("next", 2, True, b"4"),
        ("next", 4, True, b"6"),
        ("previous", 6, False, b"2"),
        ("previous", 6, True, b"4"),
        ("previous", 4, True, b"2"),
        ("next", 6, False, None),
        ("next", 7, True, None),
        ("previous", 2, True, None),
    ],
)
def test_a_search_goes_forward_or_backward_to_the_next_message_that_is_available(
    desk: Office, action: str, start: int | None, peek: bool, found: bytes | None
) -> None:
    """1, 3, 5 and 7 are locked, 4 is too; of these 4 and 7 may be looked at. 0 is gone."""
    assert {each.name for each in SeekAction} >= {"NEXT", "PREVIOUS"}
    desk.send(*(b"%d" % number for number in range(8)), name=LEDGER)
    lookup_ids = desk.lookup_ids(LEDGER)
    handle, work = desk.open(LEDGER), desk.begin()
    desk.ok(api.Receive(handle))
    for number in (1, 3, 5):
        desk.ok(api.Seek(handle, "current", lookup_ids[number], lock=True))
    for number in (4, 7):
        request = api.Seek(handle, "current", lookup_ids[number], transaction=work, allow_peek=True)
        desk.ok(request)
    request = api.Seek(handle, action, 0 if start is None else lookup_ids[start], peek=peek)
    reply = desk.ask(request)
    if found is None:
        assert error_name(reply) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    else:
        assert bodies(reply) == [found]
