"""Gates that know different directories: messages that go round between them are not lost."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.manager.directory.service import HINT_PAUSE_MS
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.limits import DIRECTORY_PROBE_S, HOP_MAX_COUNT
from openmsmq.routing.next_hops import EXTRA_MAX_HOPS
from openmsmq.wire.headers import user
from tests.transfer.network import Network
from tests.transfer.test_routing import TRIANGLE, Enterprise, bodies, guid

QUEUE = r"private$\letters"


@pytest.fixture
def triangle(network: Network, monkeypatch: pytest.MonkeyPatch) -> Enterprise:
    """The region reaches headquarters over the branch, as long as it knows no better."""
    for name, value in zip(("SITES", "LINKS", "ROUTING_SERVERS"), TRIANGLE, strict=True):
        monkeypatch.setattr(f"tests.transfer.test_routing.{name}", value)
    return Enterprise(network)


def with_different_directories(triangle: Enterprise, *, transactional: bool) -> str:
    """Let the branch know that its link is gone before the region does, and messages wait."""
    hq, clerk = triangle.computers["HQ"], triangle.computers["CLERK"]
    hq.create(QUEUE, transactional=transactional)
    name: str = hq.ok(api.GetNames(QUEUE)).private_name
    triangle.cut_link("branch", "hq")
    clerk.send(name, *bodies(1, 5), recoverable=True, transactional=transactional)
    triangle.network.run(5_000)
    original = triangle.network.directory
    assert original is not None
    original.ok(api.ChangeDirectory([row_of(Removal(ObjectKind.LINK, guid("branch-hq")))]))
    triangle.computers["BRANCH1"].ok_soon(api.RefreshDirectory())
    return name


def numbers(triangle: Enterprise) -> list[int]:
    """Return how far the copies of the two gates have come."""
    return [
        triangle.computers[gate].manager.directory.copy.position.number
        for gate in ("BRANCH1", "REGION1")
    ]


@pytest.mark.parametrize("transactional", [False, True])
def test_the_gate_that_is_behind_asks_the_directory_before_it_passes_them_on(
    triangle: Enterprise, transactional: bool
) -> None:
    with_different_directories(triangle, transactional=transactional)
    ahead, behind = numbers(triangle)
    assert behind < ahead
    triangle.network.run(3 * HINT_PAUSE_MS)
    assert numbers(triangle) == [ahead, ahead]
    found = triangle.computers["HQ"].messages(QUEUE)
    assert [message.properties.body for message in found] == bodies(1, 5)
    hops = {message.user.flags & user.HOP_COUNT for message in found}
    assert max(hops) <= 2 * (len(TRIANGLE[0]) + EXTRA_MAX_HOPS) < HOP_MAX_COUNT


def test_they_wait_while_the_directory_cannot_be_asked(triangle: Enterprise) -> None:
    network = triangle.network
    original = network.directory
    with_different_directories(triangle, transactional=False)
    network.directory = None
    before = network.directory_questions
    network.run(DIRECTORY_PROBE_S * 1000)
    assert triangle.computers["HQ"].bodies(QUEUE) == []
    # Nobody asks again and again, and nothing goes to and fro.
    assert network.directory_questions - before <= 3 * len(triangle.computers)
    sent = len(triangle.computers["REGION1"].sent)
    network.run(DIRECTORY_PROBE_S * 500)
    assert len(triangle.computers["REGION1"].sent) == sent
    network.directory = original
    network.run(2 * DIRECTORY_PROBE_S * 1000)
    assert triangle.computers["HQ"].bodies(QUEUE) == bodies(1, 5)


def test_messages_that_have_not_gone_round_do_not_make_anybody_ask(triangle: Enterprise) -> None:
    network, hq = triangle.network, triangle.computers["HQ"]
    hq.create(QUEUE)
    name = hq.ok(api.GetNames(QUEUE)).private_name
    network.run(5_000)
    before = network.directory_questions
    triangle.computers["CLERK"].send(name, *bodies(1, 20), recoverable=True)
    network.run(5_000)
    assert hq.bodies(QUEUE) == bodies(1, 20)
    assert network.directory_questions == before
