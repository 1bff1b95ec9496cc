"""Reads of the directory that wait for its next change, and copies that hear of one."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_READ_WAIT_MAX_S, DIRECTORY_READS_WAITING_MAX_COUNT
from openmsmq.directory.rows import row_of
from openmsmq.manager.directory.service import HINT_PAUSE_MS, MOVED_PAUSE_MS
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, NoDirectory
from openmsmq.model.identity import Guid
from openmsmq.model.topology import Site
from tests.transfer.directories import COPY, ORIGINAL, PATIENT_COPY, change, image, joined
from tests.transfer.network import BETA, Computer, Network

WAIT_MS = 10_000


def site(number: int) -> Site:
    return Site(identifier=Guid(number.to_bytes(16, "big")), name=f"Site {number}")


def waiting_read(computer: Computer, wait_ms: int = WAIT_MS) -> api.ReadDirectory:
    at = computer.manager.directory.copy.position
    return api.ReadDirectory(bytes(at.incarnation), at.number, wait_ms=wait_ms)


def ask_as(computer: Computer, connection: int, call: int) -> None:
    """Wait for the next change on a connection that is there."""
    computer.manager.request(connection, call, waiting_read(computer), computer.network.now)
    computer.pump()


def part_of(reply: api.AnyReply | None) -> api.DirectoryPart:
    assert isinstance(reply, api.DirectoryPart), reply
    return reply


def test_a_read_waits_for_the_next_change_and_then_says_that_there_is_one(
    network: Network, office: Computer
) -> None:
    office.manager.connected(2)
    ask_as(office, 2, 77)
    network.run(WAIT_MS - 1)
    assert 77 not in office.answers
    before = office.manager.directory.copy.position.number
    change(office, site(1))
    part = part_of(office.answers[77])
    assert (part.number, part.rows, part.has_more) == (before + 1, [], True)
    # Who waits for what has come already is answered at once.
    at = office.manager.directory.copy.position
    late = api.ReadDirectory(bytes(at.incarnation), before, wait_ms=WAIT_MS)
    assert len(part_of(office.ask(late)).rows) == 1


def test_it_is_told_of_nothing_that_the_disk_does_not_have(office: Computer) -> None:
    office.manager.connected(2)
    ask_as(office, 2, 77)
    office.fail_commits = 1
    reply = office.soon(api.ChangeDirectory([row_of(site(1))]))
    assert isinstance(reply, api.Failed)
    assert isinstance(office.answers[77], api.Failed)


def test_who_begins_to_wait_in_the_turn_of_a_change_keeps_it_from_nobody(
    network: Network, office: Computer
) -> None:
    office.manager.connected(2)
    office.manager.connected(3)
    ask_as(office, 2, 77)
    before = office.manager.directory.copy.position.number
    office.manager.request(2, 70, api.ChangeDirectory([row_of(site(1))]), network.now)
    # Another copy may have told it where the directory is now.
    ask_as(office, 3, 78)
    part = part_of(office.answers[77])
    assert (part.number, part.rows, part.has_more) == (before + 1, [], True)
    assert 78 not in office.answers


def test_a_change_in_the_turn_in_which_a_wait_ends_is_told(
    network: Network, office: Computer
) -> None:
    office.manager.connected(2)
    ask_as(office, 2, 77)
    late = Instant(network.now.ticks_ms + WAIT_MS, network.now.unix_s + WAIT_MS // 1000)
    office.manager.request(2, 70, api.ChangeDirectory([row_of(site(1))]), late)
    office.manager.wake(late)
    office.pump()
    assert part_of(office.answers[77]).has_more


def test_it_ends_when_nothing_has_changed_for_so_long(network: Network, office: Computer) -> None:
    office.manager.connected(2)
    ask_as(office, 2, 77)
    network.run(WAIT_MS)
    part = part_of(office.answers[77])
    assert (part.number, part.rows, part.has_more) == (
        office.manager.directory.copy.position.number,
        [],
        False,
    )


def test_it_does_not_wait_longer_than_a_server_lets_it(network: Network, office: Computer) -> None:
    office.ask(waiting_read(office, wait_ms=10**9))
    call = max(office.answers, default=0) + 1
    network.run(DIRECTORY_READ_WAIT_MAX_S * 1000 - 1)
    assert call not in office.answers
    network.run(1)
    assert not part_of(office.answers[call]).has_more


def test_a_connection_has_one_such_read_and_the_next_one_ends_it(office: Computer) -> None:
    office.manager.connected(2)
    for call in (71, 72, 73):
        ask_as(office, 2, call)
    assert [call in office.answers for call in (71, 72, 73)] == [True, True, False]
    assert not part_of(office.answers[71]).has_more
    change(office, site(1))
    assert part_of(office.answers[73]).has_more


def test_so_many_wait_at_one_server_and_no_more(network: Network, office: Computer) -> None:
    first = 1_000
    for number in range(DIRECTORY_READS_WAITING_MAX_COUNT):
        office.manager.connected(first + number)
        ask_as(office, first + number, first + number)
    office.manager.connected(2)
    ask_as(office, 2, 77)
    reply = office.answers[77]
    assert isinstance(reply, api.Failed)
    assert reply.code == InsufficientResources.code
    # Who is gone makes room.
    office.manager.connection_lost(first, network.now)
    ask_as(office, 2, 78)
    assert 78 not in office.answers
    change(office, site(1))
    told = [call for call in office.answers if call > first]
    assert len(told) == DIRECTORY_READS_WAITING_MAX_COUNT - 1
    assert first not in office.answers


def test_a_copy_lets_others_wait_too(network: Network, office: Computer, shop: Computer) -> None:
    shop.manager.connected(2)
    ask_as(shop, 2, 77)
    change(office, site(1))
    shop.ok_soon(api.RefreshDirectory())
    assert part_of(shop.answers[77]).has_more
    del network


def test_who_has_no_directory_lets_nobody_wait(alpha: Computer) -> None:
    reply = alpha.ask(api.ReadDirectory(wait_ms=WAIT_MS))
    assert isinstance(reply, api.Failed)
    assert reply.code == NoDirectory.code


def test_a_copy_that_has_read_nothing_yet_lets_nobody_wait(
    network: Network, office: Computer
) -> None:
    del office
    network.directory = None
    shop = network.manager("SHOP", BETA, COPY)
    reply = shop.ask(api.ReadDirectory(wait_ms=WAIT_MS))
    assert isinstance(reply, api.Failed)
    assert reply.code == NoDirectory.code


# What a copy does that hears of a change.


@pytest.fixture
def patient(network: Network, office: Computer) -> Computer:
    """A copy that learns nothing unless it is told."""
    del office
    return joined(network, "SHOP", BETA, PATIENT_COPY)


def moved(computer: Computer) -> None:
    computer.manager.directory_moved(computer.network.now)
    computer.pump()


def test_a_copy_that_hears_of_a_change_asks_at_once(
    network: Network, office: Computer, patient: Computer
) -> None:
    change(office, site(1))
    assert image(patient) != image(office)
    moved(patient)
    network.run()
    assert image(patient) == image(office)


def test_many_changes_make_few_questions(
    network: Network, office: Computer, patient: Computer
) -> None:
    before = network.directory_questions
    rounds = 50
    for number in range(rounds):
        change(office, site(number + 1))
        moved(patient)
        network.run(MOVED_PAUSE_MS // 10)
    network.run(MOVED_PAUSE_MS)
    assert network.directory_questions - before <= rounds // 10 + 2
    assert image(patient) == image(office)


def test_a_directory_that_cannot_be_asked_is_not_asked_in_a_hurry(
    network: Network, office: Computer, patient: Computer
) -> None:
    del office
    network.directory = None
    before = network.directory_questions
    for _ in range(100):
        moved(patient)
        network.run(HINT_PAUSE_MS // 10)
    assert network.directory_questions - before <= 12


def test_a_change_of_a_directory_that_has_become_another_is_heard_too(
    network: Network, office: Computer, patient: Computer
) -> None:
    del office
    network.directory = network.manager("NEW", "127.0.0.7", ORIGINAL)
    moved(patient)
    network.run()
    assert image(patient).manager_named("NEW") is not None
