"""Messages in another's name while the directory changes: an honest one is never lost by it.

The test plays a queue manager that passes a message of the office on. Whether it may is what the
directory says, and the shop may not have heard of that yet.
"""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.directory.rows import row_of
from openmsmq.manager.directory.service import HINT_PAUSE_MS
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.limits import (
    DOUBTED_STRANGER_S,
    DOUBTED_STRANGERS_MAX_COUNT,
    FORMER_WAY_S,
    HOST_ASKED_MS,
)
from openmsmq.model.topology import QueueManagerInfo
from tests.transfer.conftest import LEDGER, ORDERS
from tests.transfer.directories import PATIENT_COPY, image, joined
from tests.transfer.letters import SEQUENCE, by_number, direct, letter
from tests.transfer.neighbour import Neighbour
from tests.transfer.network import BETA, GAMMA, PEER, Computer, Network, neighbour_identifier
from tests.transfer.test_strangers import STRANGER, told


@pytest.fixture
def shop(network: Network, office: Computer) -> Computer:
    """Who learns nothing of the directory unless it looks."""
    del office
    shop = joined(network, "SHOP", BETA, PATIENT_COPY)
    shop.create(ORDERS)
    return shop


class Played:
    """A queue manager of the directory that the test plays."""

    def __init__(self, network: Network, office: Computer, shop: Computer) -> None:
        self.network, self.office, self.shop = network, office, shop
        self.at = Neighbour(network, PEER)

    def info(self, *, routing: bool) -> QueueManagerInfo:
        return msgspec.structs.replace(
            image(self.office).managers[self.office.identifier],
            identifier=neighbour_identifier(PEER),
            computer_name="PLAYED",
            qualified_computer_name="",
            addresses=(PEER,),
            routing_server=routing,
            directory_server=None,
        )

    def joins(self, *, routing: bool, told: bool = True) -> None:
        """Be in the directory so; the shop has heard of it or not."""
        self.office.ok(api.ChangeDirectory([row_of(self.info(routing=routing))]))
        if told:
            self.shop.ok_soon(api.RefreshDirectory())
            assert self.shop.manager.directory.copy.image.managers[self.at.identifier]

    def leaves(self) -> None:
        """Be taken out of the directory; the shop hears of it."""
        gone = Removal(ObjectKind.MANAGER, self.at.identifier)
        self.office.ok(api.ChangeDirectory([row_of(gone)]))
        self.shop.ok_soon(api.RefreshDirectory())

    def brings(self, number: int = 1, *, recoverable: bool = True) -> bool:
        """Bring a message of the office; say whether the session goes on."""
        to, manager = by_number(self.shop, ORDERS)
        self.at.open(self.shop.address)
        self.at.say(
            letter(
                self.office.identifier,
                number,
                to,
                b"order",
                manager=manager,
                recoverable=recoverable,
            )
        )
        return self.at.is_open


@pytest.fixture
def played(network: Network, office: Computer, shop: Computer) -> Played:
    return Played(network, office, shop)


@pytest.mark.parametrize("was_known", [True, False])
def test_who_has_just_become_a_way_keeps_what_it_brings_until_it_is_known_as_one(
    network: Network, shop: Computer, played: Played, was_known: bool
) -> None:
    if was_known:
        played.joins(routing=False)
    played.joins(routing=True, told=False)
    assert not played.brings()
    assert shop.bodies(ORDERS) == []
    assert told(shop, NoticeKind.MESSAGE_LEFT)[0]["reason"] == "foreign-source"
    # The shop has asked the directory because of it.
    network.run(2 * HINT_PAUSE_MS)
    assert played.brings()
    assert shop.bodies(ORDERS) == [b"order"]
    assert told(shop, NoticeKind.MESSAGE_DROPPED) == []


def test_it_is_kept_while_the_directory_cannot_be_asked(
    network: Network, office: Computer, shop: Computer, played: Played
) -> None:
    played.joins(routing=True, told=False)
    network.directory = None
    for _ in range(5):
        assert not played.brings()
        network.run(10_000)
    network.directory = office
    network.run(DIRECTORY_POLL_S * 1000)
    assert played.brings()
    assert shop.bodies(ORDERS) == [b"order"]


def test_one_of_the_enterprise_that_is_no_way_keeps_it_and_says_so(
    network: Network, shop: Computer, played: Played
) -> None:
    played.joins(routing=False)
    for _ in range(3):
        assert not played.brings()
        network.run(2 * HINT_PAUSE_MS)
    assert shop.bodies(ORDERS) == []
    assert told(shop, NoticeKind.MESSAGE_DROPPED) == []
    # What may be lost in a crash anyway is dropped, and costs no session.
    assert played.brings(recoverable=False)
    assert shop.bodies(ORDERS) == []
    assert told(shop, NoticeKind.MESSAGE_DROPPED)[0]["reason"] == "foreign-source"


def test_who_was_a_way_brings_what_it_still_has(
    network: Network, shop: Computer, played: Played
) -> None:
    played.joins(routing=True)
    played.joins(routing=False)
    assert played.brings(1)
    played.leaves()
    # Who is taken out is not believed any more, and loses nothing.
    assert not played.brings(2)
    network.run(2 * HINT_PAUSE_MS)
    assert not played.brings(2)
    played.joins(routing=False)
    assert played.brings(2)
    assert shop.bodies(ORDERS) == [b"order", b"order"]
    network.run(FORMER_WAY_S * 1000)
    assert not played.brings(3)
    assert len(shop.bodies(ORDERS)) == 2


def test_a_stranger_in_the_name_of_another_is_dropped_when_the_directory_has_been_asked(
    network: Network, office: Computer, shop: Computer
) -> None:
    to, manager = by_number(shop, ORDERS)
    stranger = Neighbour(network, STRANGER)
    forged = letter(office.identifier, 1, to, b"forged", manager=manager)
    stranger.open(shop.address)
    stranger.say(forged)
    assert not stranger.is_open
    network.run(2 * HINT_PAUSE_MS)
    stranger.open(shop.address)
    stranger.say(forged)
    assert stranger.is_open
    assert shop.bodies(ORDERS) == []
    assert told(shop, NoticeKind.MESSAGE_DROPPED)[0]["peer"] == STRANGER
    # The answer holds for what he brings next, and not for ever: he may join.
    stranger.say(letter(office.identifier, 2, to, b"forged", manager=manager))
    assert stranger.is_open
    network.run(DOUBTED_STRANGER_S * 1000)
    stranger.open(shop.address)
    stranger.say(letter(office.identifier, 3, to, b"forged", manager=manager))
    assert not stranger.is_open


def test_of_very_many_doubted_strangers_the_one_heard_of_first_is_asked_for_again(
    network: Network, office: Computer, shop: Computer
) -> None:
    to, manager = by_number(shop, ORDERS)
    stranger = Neighbour(network, STRANGER)

    def keeps(number: int) -> bool:
        stranger.identifier = Guid(number.to_bytes(16, "big"))
        stranger.open(shop.address)
        stranger.say(letter(office.identifier, number, to, b"forged", manager=manager))
        return not stranger.is_open

    last = DOUBTED_STRANGERS_MAX_COUNT + 1
    assert all(keeps(number) for number in range(1, last + 1))
    network.run(2 * HINT_PAUSE_MS)
    assert [keeps(number) for number in (last, 2, 1)] == [False, False, True]


def test_strangers_make_the_directory_be_asked_once_in_a_second(
    network: Network, office: Computer, shop: Computer
) -> None:
    to, manager = by_number(shop, ORDERS)
    before = network.directory_questions
    for number in range(1, 51):
        stranger = Neighbour(network, f"127.0.3.{number}")
        stranger.open(shop.address)
        stranger.say(letter(office.identifier, number, to, b"forged", manager=manager))
        network.run(100)
    assert network.directory_questions - before <= 8


def test_who_has_the_original_drops_at_once_what_a_stranger_forges(
    network: Network, office: Computer, shop: Computer
) -> None:
    office.create(ORDERS)
    to, manager = by_number(office, ORDERS)
    stranger = Neighbour(network, STRANGER)
    stranger.open(office.address)
    stranger.say(letter(shop.identifier, 1, to, b"forged", manager=manager))
    assert stranger.is_open
    assert office.bodies(ORDERS) == []


def test_what_is_to_be_passed_on_is_kept_by_who_is_no_way_yet(
    network: Network, office: Computer
) -> None:
    """A router takes messages of others only of a way, and must not lose those of a new one."""
    patient = msgspec.structs.replace(PATIENT_COPY, routing_server=True)
    router = joined(network, "SHOP", BETA, patient)
    far = joined(network, "FAR", GAMMA)
    far.create(ORDERS)
    router.ok_soon(api.RefreshDirectory())
    played = Played(network, office, router)
    played.joins(routing=False)
    played.joins(routing=True, told=False)
    to, manager = by_number(far, ORDERS)
    message = letter(office.identifier, 1, to, b"order", manager=manager)
    played.at.open(router.address)
    played.at.say(message)
    assert not played.at.is_open
    network.run(2 * HINT_PAUSE_MS)
    played.at.open(router.address)
    played.at.say(message)
    network.run(10_000)
    assert far.bodies(ORDERS) == [b"order"]


@pytest.mark.parametrize("routing", [True, False])
def test_strangers_have_messages_passed_on_by_routing_servers_only(
    network: Network, office: Computer, routing: bool
) -> None:
    """Who is none would be refused with them, and its own messages would wait behind them."""
    config = msgspec.structs.replace(PATIENT_COPY, routing_server=routing)
    between = joined(network, "SHOP", BETA, config)
    office.create(ORDERS)
    to, manager = by_number(office, ORDERS)
    stranger = Neighbour(network, STRANGER)
    message = letter(stranger.identifier, 1, to, b"his own", manager=manager)
    for _ in range(2):
        stranger.open(between.address)
        stranger.say(message)
        network.run(10_000)
    assert bool(office.bodies(ORDERS)) is routing


# Honest ones who are made to bring what is not believed of them.


@pytest.fixture
def far(network: Network, office: Computer) -> Computer:
    """To whom messages go."""
    del office
    return joined(network, "FAR", GAMMA).with_queues(ORDERS, LEDGER)


def claims_a_name(stranger: Neighbour, far: Computer) -> None:
    """Begin a flow, so that messages in this name from elsewhere are foreign ones."""
    stranger.open(far.address)
    to = direct(far.address, LEDGER)
    stranger.say(letter(stranger.identifier, 1_000, to, place=(SEQUENCE, 1, 0)))
    stranger.network.run(1_000)


def test_who_is_no_routing_server_passes_on_nothing_for_others_of_the_directory(
    network: Network, far: Computer, played: Played
) -> None:
    """A dishonest one of the directory must not stop what an honest one sends to a third."""
    between = played.shop
    played.joins(routing=False)
    far.ok_soon(api.RefreshDirectory())
    to, manager = by_number(far, ORDERS)
    played.at.open(between.address)
    played.at.say(letter(played.at.identifier, 1, to, b"his", manager=manager))
    assert not played.at.is_open
    between.send(rf"DIRECT=TCP:{GAMMA}\{ORDERS}", b"honest")
    network.run(10_000)
    assert far.bodies(ORDERS) == [b"honest"]
    assert told(far, NoticeKind.MESSAGE_LEFT) == []


def test_who_does_not_know_yet_that_it_is_a_routing_server_asks_before_it_passes_on(
    network: Network, office: Computer, far: Computer, played: Played
) -> None:
    between = played.shop
    played.joins(routing=False)
    own = image(office).managers[between.identifier]
    office.ok(api.ChangeDirectory([row_of(msgspec.structs.replace(own, routing_server=True))]))
    to, manager = by_number(far, ORDERS)
    message = letter(played.at.identifier, 1, to, b"order", manager=manager)
    played.at.open(between.address)
    played.at.say(message)
    assert not played.at.is_open
    network.run(2 * HINT_PAUSE_MS)
    played.at.open(between.address)
    played.at.say(message)
    far.ok_soon(api.RefreshDirectory())
    network.run(20_000)
    assert far.bodies(ORDERS) == [b"order"]


def test_a_way_of_the_configuration_is_none_for_strangers(
    network: Network, office: Computer, far: Computer
) -> None:
    del office
    hops = {str(far.identifier): (GAMMA,)}
    between = network.manager("SHOP", BETA, PATIENT_COPY, next_hops=hops)
    network.run(1_000)
    far.ok_soon(api.RefreshDirectory())
    stranger = Neighbour(network, STRANGER)
    claims_a_name(stranger, far)
    to, manager = by_number(far, ORDERS)
    stranger.open(between.address)
    stranger.say(letter(stranger.identifier, 1, to, b"his", manager=manager))
    between.send(rf"DIRECT=TCP:{GAMMA}\{ORDERS}", b"honest")
    network.run(10_000)
    assert far.bodies(ORDERS) == [b"honest"]
    assert told(far, NoticeKind.MESSAGE_LEFT) == []


def test_very_many_forged_messages_do_not_stop_the_bystander_who_is_made_to_bring_them(
    network: Network, far: Computer
) -> None:
    """He has no directory, so he passes on for everybody, and here he is a stranger."""
    bystander = network.manager("SHOP", BETA, next_hops={str(far.identifier): (GAMMA,)})
    stranger = Neighbour(network, STRANGER)
    claims_a_name(stranger, far)
    to, manager = by_number(far, ORDERS)
    stranger.open(bystander.address)
    stranger.say(
        *(
            letter(stranger.identifier, number, to, b"his", manager=manager)
            for number in range(1, 61)
        )
    )
    bystander.send(rf"DIRECT=TCP:{GAMMA}\{ORDERS}", b"honest")
    network.run(20_000)
    assert far.bodies(ORDERS) == [b"honest"]
    assert sum(queue.message_count for queue in bystander.outgoing()) == 0
    # Two links lead to the same computer, and each keeps its pause.
    assert len(told(far, NoticeKind.MESSAGE_LEFT)) <= 2


def test_who_is_known_by_name_only_keeps_what_it_brings_until_the_name_is_found(
    network: Network, office: Computer, far: Computer
) -> None:
    patient = msgspec.structs.replace(PATIENT_COPY, routing_server=True)
    router = joined(network, "SHOP", BETA, patient)
    played = Played(network, office, router)
    info = msgspec.structs.replace(
        played.info(routing=True), addresses=(), qualified_computer_name="played.example"
    )
    office.ok(api.ChangeDirectory([row_of(info)]))
    router.ok_soon(api.RefreshDirectory())
    to, manager = by_number(far, ORDERS)
    message = letter(office.identifier, 1, to, b"order", manager=manager)

    def brings() -> bool:
        played.at.open(router.address)
        played.at.say(message)
        network.run(HOST_ASKED_MS)
        return played.at.is_open

    assert [brings() for _ in range(3)] == [False] * 3
    network.hosts["played.example"] = (PEER,)
    brings()
    played.at.open(router.address)
    played.at.say(message)
    network.run(10_000)
    assert far.bodies(ORDERS) == [b"order"]
