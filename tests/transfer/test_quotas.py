"""How much a queue manager may hold: by its configuration, or by its object in the directory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.limits import JOURNAL_QUOTA_DEFAULT_KB, MANAGER_QUOTA_DEFAULT_KB
from openmsmq.model.queue import AccessMode
from openmsmq.model.topology import QueueManagerInfo
from tests.strategies.messages import Draft
from tests.transfer.directories import PATIENT_COPY, change, image, joined
from tests.transfer.network import ALPHA, BETA, Computer, Network, addressed

ORDERS = r".\private$\orders"
KILOBYTE = b"k" * 1024
SOON_MS = 3_000


@pytest.fixture
def shop(network: Network, office: Computer) -> Computer:
    """Who has a copy, and a queue."""
    del office
    computer = joined(network, "SHOP", BETA, PATIENT_COPY)
    computer.create(ORDERS)
    return computer


def own_object(at: Computer, computer: Computer) -> QueueManagerInfo:
    return image(at).managers[computer.identifier]


def give(office: Computer, network: Network, computer: Computer, **quotas: int) -> None:
    """Change the object of a queue manager, which hears of it by a notification."""
    change(office, msgspec.structs.replace(own_object(office, computer), **quotas))
    network.run(SOON_MS)


def offer(computer: Computer, count: int, **wishes: Any) -> api.AnyReply | None:
    """Try to send messages of a kilobyte and a little more."""
    opened = computer.ok(api.OpenQueue(ORDERS, AccessMode.SEND))
    packets = [addressed(Draft(body=KILOBYTE, **wishes).packet(), opened) for _ in range(count)]
    return computer.ask(api.Send(opened.handle, packets, 0))


def restarted(computer: Computer, **quotas: int) -> None:
    """Start a queue manager again, with another configuration."""
    computer.config = msgspec.structs.replace(computer.config, **quotas)
    computer.crash()


def test_a_queue_manager_takes_the_room_that_the_directory_gives_it(
    network: Network, office: Computer, shop: Computer
) -> None:
    give(office, network, shop, quota_kb=4)
    refused = offer(shop, 4)
    assert isinstance(refused, api.Failed)
    assert refused.code == InsufficientResources.code
    assert "4 KB" in refused.detail
    assert isinstance(offer(shop, 3), api.Sent)
    give(office, network, shop, quota_kb=100)
    assert isinstance(offer(shop, 4), api.Sent)


def test_it_remembers_that_room_without_the_directory(
    network: Network, office: Computer, shop: Computer
) -> None:
    give(office, network, shop, quota_kb=4)
    network.directory = None
    shop.crash()
    assert isinstance(offer(shop, 4), api.Failed)
    assert isinstance(offer(shop, 3), api.Sent)


def test_less_room_than_there_is_in_use_keeps_new_messages_out_and_loses_nothing(
    network: Network, office: Computer, shop: Computer
) -> None:
    assert isinstance(offer(shop, 6), api.Sent)
    give(office, network, shop, quota_kb=2)
    assert isinstance(offer(shop, 1), api.Failed)
    assert len(shop.bodies(ORDERS, take=True)) == 6
    assert isinstance(offer(shop, 1), api.Sent)


def test_messages_of_others_wait_at_their_source_until_there_is_room(
    network: Network, office: Computer, shop: Computer
) -> None:
    give(office, network, shop, quota_kb=2)
    office.send(rf"DIRECT=TCP:{BETA}\private$\orders", *[KILOBYTE] * 3)
    network.run(60_000)
    assert len(shop.bodies(ORDERS)) == 1
    give(office, network, shop, quota_kb=100)
    network.run(120_000)
    assert len(shop.bodies(ORDERS)) == 3
    assert office.bodies("system$;deadletter") == []


def test_copies_have_the_room_for_journals(
    network: Network, office: Computer, shop: Computer
) -> None:
    give(office, network, shop, journal_quota_kb=2)
    office.create(ORDERS)
    target = rf"DIRECT=TCP:{ALPHA}\private$\orders"
    shop.send(target, *[KILOBYTE] * 3, journal_on_success=True)
    network.run(SOON_MS)
    assert len(office.bodies(ORDERS)) == 3
    assert len(shop.bodies("system$;journal")) == 1


def test_what_is_configured_comes_first_and_is_published(
    network: Network, office: Computer, shop: Computer
) -> None:
    restarted(shop, quota_kb=4, journal_quota_kb=9)
    network.run(SOON_MS)
    told = own_object(office, shop)
    assert (told.quota_kb, told.journal_quota_kb) == (4, 9)
    give(office, network, shop, quota_kb=100)
    assert isinstance(offer(shop, 4), api.Failed)
    assert own_object(office, shop).quota_kb == 4


def test_the_original_of_the_directory_has_its_room_from_there_too(
    network: Network, office: Computer
) -> None:
    office.create(ORDERS)
    assert own_object(office, office).quota_kb == MANAGER_QUOTA_DEFAULT_KB
    assert own_object(office, office).journal_quota_kb == JOURNAL_QUOTA_DEFAULT_KB
    give(office, network, office, quota_kb=4)
    assert isinstance(offer(office, 4), api.Failed)
    restarted(office, quota_kb=50)
    assert isinstance(offer(office, 4), api.Sent)
    assert own_object(office, office).quota_kb == 50
    give(office, network, office, quota_kb=4)
    assert own_object(office, office).quota_kb == 50
