"""Names that a copy of the directory does not have yet, and names of computers that it has."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_CALLS_MAX_COUNT, DIRECTORY_LOOKUP_WAIT_S
from openmsmq.manager.directory.service import HINT_PAUSE_MS
from openmsmq.manager.outputs import AskDirectory
from openmsmq.model.errors import QueueNotFound
from openmsmq.model.identity import Guid
from openmsmq.model.names import DistributionListFormatName, PublicFormatName
from openmsmq.model.queue import AccessMode
from openmsmq.model.topology import DistributionList
from tests.transfer.conftest import ORDERS
from tests.transfer.directories import PATIENT_COPY, change, image, joined
from tests.transfer.network import BETA, GAMMA, Computer, Network

NEW = PublicFormatName(Guid(b"never published!"))


@pytest.fixture
def clerk(network: Network, shop: Computer) -> Computer:
    """One who learns nothing of the directory by himself."""
    del shop
    computer = joined(network, "CLERK", GAMMA, PATIENT_COPY)
    network.run(HINT_PAUSE_MS)
    return computer


def to_send(name: str) -> api.OpenQueue:
    return api.OpenQueue(name, AccessMode.SEND)


def refusal(computer: Computer, call: int) -> api.Failed:
    reply = computer.answers[call]
    assert isinstance(reply, api.Failed)
    assert reply.code == QueueNotFound.code
    return reply


@pytest.mark.parametrize("form", ["path", "identifier", "several", "list"])
def test_a_public_queue_is_found_as_soon_as_it_is_published(
    network: Network, office: Computer, shop: Computer, clerk: Computer, form: str
) -> None:
    shop.ok_soon(api.CreateQueue(r".\new"))
    (published,) = image(office).queues.values()
    everybody = DistributionList(
        identifier=Guid(b"the list of all!"),
        name="all",
        members=(str(PublicFormatName(published.identifier)),),
    )
    change(office, everybody)
    assert not image(clerk).queues
    name = {
        "path": r"SHOP\new",
        "identifier": str(PublicFormatName(published.identifier)),
        "several": rf"{PublicFormatName(published.identifier)},DIRECT=TCP:{BETA}\private$\x",
        "list": str(DistributionListFormatName(everybody.identifier)),
    }[form]
    opened = clerk.ok_soon(to_send(name))
    assert opened.handle
    assert network.now.ticks_ms % HINT_PAUSE_MS == 0, "no time has passed"


def test_its_other_names_are_found_too(network: Network, shop: Computer, clerk: Computer) -> None:
    shop.ok_soon(api.CreateQueue(r".\new"))
    names = clerk.ok_soon(api.GetNames(r"SHOP\new"))
    assert names.format_name == shop.ok(api.GetNames(r".\new")).format_name
    assert network.directory_questions


def test_what_is_not_there_is_not_found_when_the_directory_has_said_so(
    network: Network, clerk: Computer
) -> None:
    before = network.directory_questions
    reply = clerk.soon(to_send(r"SHOP\nothing"))
    assert isinstance(reply, api.Failed)
    assert reply.code == QueueNotFound.code
    assert reply.detail == r"SHOP\nothing: the directory has no such public queue"
    assert network.directory_questions == before + 1


def test_who_asks_for_missing_names_in_a_loop_does_not_flood_the_directory(
    network: Network, clerk: Computer
) -> None:
    before = network.directory_questions
    rounds = 100
    for number in range(rounds):
        clerk.ask(to_send(rf"SHOP\nothing{number}"))
        clerk.ask(api.GetNames(str(NEW)))
        network.run(HINT_PAUSE_MS // 10)
    network.run(HINT_PAUSE_MS)
    assert network.directory_questions - before <= rounds // 10 + 2
    failed = [reply for reply in clerk.answers.values() if isinstance(reply, api.Failed)]
    assert len(failed) == 2 * rounds


def test_who_cannot_ask_the_directory_says_so(network: Network, clerk: Computer) -> None:
    network.directory = None
    reply = clerk.soon(to_send(r"SHOP\nothing"))
    assert isinstance(reply, api.Failed)
    assert reply.code == QueueNotFound.code
    assert "the directory could not be asked: nobody answers" in reply.detail


def test_a_directory_that_keeps_silent_is_not_waited_for_without_end(
    network: Network, clerk: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep_silent(self: Network, computer: Computer, output: AskDirectory) -> None:
        del self, computer, output

    monkeypatch.setattr(Network, "ask_directory", keep_silent)
    clerk.ask(to_send(r"SHOP\nothing"))
    call = max(clerk.answers, default=0) + 1
    network.run(DIRECTORY_LOOKUP_WAIT_S * 1000 - 1)
    assert call not in clerk.answers
    network.run(1)
    assert f"has not answered within {DIRECTORY_LOOKUP_WAIT_S} s" in refusal(clerk, call).detail


def test_no_more_calls_wait_for_the_directory_than_it_allows(
    network: Network, clerk: Computer
) -> None:
    before = len(clerk.answers)
    for _ in range(DIRECTORY_CALLS_MAX_COUNT):
        assert clerk.ask(to_send(r"SHOP\nothing")) is None
    reply = clerk.ask(to_send(r"SHOP\nothing"))
    assert isinstance(reply, api.Failed)
    network.run()
    assert len(clerk.answers) - before == DIRECTORY_CALLS_MAX_COUNT + 1


def test_who_has_gone_meanwhile_opens_nothing(
    network: Network, shop: Computer, clerk: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\new"))
    clerk.manager.connected(2)
    clerk.manager.request(2, 77, to_send(r"SHOP\new"), network.now)
    clerk.manager.connection_lost(2, network.now)
    clerk.manager.connected(2)
    clerk.pump()
    network.run()
    assert 77 not in clerk.answers


def test_who_has_the_original_need_not_ask(network: Network, office: Computer) -> None:
    reply = office.ask(to_send(r"SHOP\nothing"))
    assert isinstance(reply, api.Failed)
    assert reply.code == QueueNotFound.code
    assert network.directory_questions == 0


# Computers by name.


def test_a_path_name_uses_the_addresses_that_the_directory_has(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.create(ORDERS)
    assert "shop" not in network.hosts
    office.send(rf"SHOP\{ORDERS}", b"1")
    network.run(1_000)
    assert shop.bodies(ORDERS) == [b"1"]


def test_an_address_that_the_directory_learns_is_used_for_what_waits(
    network: Network, office: Computer
) -> None:
    office.send(rf"SHOP\{ORDERS}", b"1")
    network.run(1_000)
    shop = network.manager("SHOP", BETA, PATIENT_COPY)
    shop.create(ORDERS)
    network.run(1_000)
    assert shop.bodies(ORDERS) == [b"1"]


def test_what_the_configuration_says_of_a_name_comes_before_the_directory(
    network: Network, shop: Computer
) -> None:
    shop.create(ORDERS)
    other = network.manager("OTHER", "127.0.0.7")
    other.create(ORDERS)
    clerk = network.manager("CLERK", GAMMA, PATIENT_COPY, hosts={"shop": ("127.0.0.7",)})
    network.run(1_000)
    clerk.send(rf"SHOP\{ORDERS}", b"1")
    network.run(1_000)
    assert (shop.bodies(ORDERS), other.bodies(ORDERS)) == ([], [b"1"])


def test_the_name_service_helps_where_the_address_of_the_directory_is_an_old_one(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.create(ORDERS)
    moved = "127.0.0.8"
    del network.computers[BETA]
    shop.address = moved
    network.computers[moved] = shop
    network.hosts["shop"] = (moved,)
    office.send(rf"SHOP\{ORDERS}", b"1")
    network.run(1_000)
    assert shop.bodies(ORDERS) == [b"1"]
