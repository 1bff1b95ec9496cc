"""Numbers in a directory that can be none: they are refused or passed over, and stop nobody."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.model.directory import DirectoryChanges, Position
from openmsmq.model.identity import Guid
from openmsmq.model.limits import (
    DIRECTORY_PROBE_S,
    JOURNAL_QUOTA_DEFAULT_KB,
    UNLIMITED_KB,
)
from openmsmq.model.queue import AccessMode
from openmsmq.model.topology import QueueManagerInfo, Site
from tests.strategies.messages import Draft
from tests.transfer.network import Computer, Network

ORDERS = r"private$\orders"
NO_QUOTAS = (-1, UNLIMITED_KB + 1, (1 << 64) - 1)


def own_object(computer: Computer) -> QueueManagerInfo:
    found = computer.manager.directory.copy.image.managers.get(computer.identifier)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["quota_kb", "journal_quota_kb"])
@pytest.mark.parametrize("quota_kb", NO_QUOTAS)
def test_a_quota_that_is_none_is_refused_and_the_office_starts_again(
    office: Computer, name: str, quota_kb: int
) -> None:
    before = own_object(office)
    wanted = msgspec.structs.replace(before, **{name: quota_kb})
    assert isinstance(office.ask(api.ChangeDirectory([row_of(wanted)])), api.Failed)
    office.crash()
    assert own_object(office) == before


@pytest.mark.parametrize("quota_kb", NO_QUOTAS)
def test_a_quota_that_is_none_is_passed_over_where_others_write_the_directory(
    network: Network, shop: Computer, quota_kb: int
) -> None:
    copy = shop.manager.directory.copy
    position = Position(copy.position.incarnation, copy.position.number + 1)
    told = msgspec.structs.replace(own_object(shop), quota_kb=quota_kb, journal_quota_kb=quota_kb)
    shop.create(ORDERS)
    shop.manager.directory_told(DirectoryChanges(position, (told,)), network.now)
    shop.pump()
    for _ in range(2):
        assert own_object(shop) == told
        queues = shop.ok(api.ListQueues(everything=True)).queues
        assert {queue.quota_kb for queue in queues} == {JOURNAL_QUOTA_DEFAULT_KB}
        opened = shop.ok(api.OpenQueue(ORDERS, AccessMode.SEND))
        shop.ok(api.Send(opened.handle, [Draft().packet()]))
        shop.crash()


@pytest.mark.parametrize("number", [-1, 1 << 62, (1 << 64) - 1, 1 << 64])
@pytest.mark.parametrize("is_complete", [False, True])
def test_an_answer_with_a_number_that_no_change_has_is_not_taken(
    network: Network, shop: Computer, number: int, is_complete: bool
) -> None:
    copy = shop.manager.directory.copy
    before = copy.position, copy.image
    site = Site(identifier=Guid(b"s" * 16), name="Elsewhere")
    for incarnation in (copy.position.incarnation, Guid(b"another director")):
        told = DirectoryChanges(Position(incarnation, number), (site,), is_complete)
        shop.manager.directory_told(told, network.now)
        shop.pump()
        assert (copy.position, copy.image) == before
        assert str(number) in shop.ok(api.GetStatus()).directory_problem
    network.run(DIRECTORY_PROBE_S * 1000)
    assert shop.ok(api.GetStatus()).directory_problem == ""


def test_an_answer_of_a_directory_that_has_no_identity_is_not_taken(
    network: Network, shop: Computer
) -> None:
    copy = shop.manager.directory.copy
    before = copy.position
    told = DirectoryChanges(Position(Guid(b"short"), 7), (), is_complete=True)
    shop.manager.directory_told(told, network.now)
    shop.pump()
    assert copy.position == before
    assert "no GUID" in shop.ok(api.GetStatus()).directory_problem
    network.run(DIRECTORY_PROBE_S * 1000)
    assert shop.ok(api.GetStatus()).directory_problem == ""
