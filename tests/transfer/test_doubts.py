"""Messages in another's name while the directory changes: an honest one is never lost by it.

The test plays a queue manager that passes a message of the office on. Whether it may is what the
directory says, and the shop may not have heard of that yet.
"""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.manager.directory.service import HINT_PAUSE_MS
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.limits import DIRECTORY_POLL_S, DOUBTED_MESSAGES_MAX_COUNT, FORMER_WAY_S
from openmsmq.model.topology import QueueManagerInfo
from tests.transfer.conftest import ORDERS
from tests.transfer.directories import PATIENT_COPY, image, joined
from tests.transfer.letters import by_number, letter
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
    # Another one has its own question.
    stranger.say(letter(office.identifier, 2, to, b"forged", manager=manager))
    assert not stranger.is_open


def test_of_very_many_doubted_messages_the_oldest_is_asked_for_again(
    network: Network, office: Computer, shop: Computer
) -> None:
    to, manager = by_number(shop, ORDERS)
    stranger = Neighbour(network, STRANGER)

    def keeps(number: int) -> bool:
        stranger.open(shop.address)
        stranger.say(letter(office.identifier, number, to, b"forged", manager=manager))
        return not stranger.is_open

    last = DOUBTED_MESSAGES_MAX_COUNT + 1
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
