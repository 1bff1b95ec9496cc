"""Queue managers with a directory: public queues, lists, copies, and life without the server."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.rows import changes_in
from openmsmq.manager.outputs import ChangeDirectory, Persist
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.errors import (
    IllegalFormatName,
    InsufficientResources,
    MsmqError,
    NoDirectory,
    QueueExists,
    QueueNotFound,
)
from openmsmq.model.identity import Guid
from openmsmq.model.limits import DIRECTORY_PROBE_S
from openmsmq.model.names import PublicFormatName
from openmsmq.model.topology import DistributionList, Site
from openmsmq.wire.bodies.notifications import NOTIFY_QUEUE_NUMBER, Event, ManagerNotification
from tests.transfer.directories import COPY, ORIGINAL, POLL_MS, change, image, joined
from tests.transfer.network import ALPHA, BETA, GAMMA, Computer, Network


def public_name(computer: Computer, path: str) -> str:
    name: str = computer.ok(api.GetNames(path)).format_name
    return name


def test_a_new_directory_knows_who_has_it(office: Computer) -> None:
    (manager,) = image(office).managers.values()
    assert manager.identifier == office.identifier
    assert manager.computer_name == "OFFICE"
    assert manager.addresses == (ALPHA,)
    assert len(image(office).sites) == 1
    assert image(office).enterprise is not None


def test_who_joins_registers_itself_and_all_learn_of_it(
    network: Network, office: Computer, shop: Computer
) -> None:
    del network
    assert image(office) == image(shop)
    assert image(office).managers[shop.identifier].computer_name == "SHOP"
    status = shop.ok(api.GetStatus())
    assert (status.directory, status.directory_problem) == ("copy", "")


def test_who_is_to_be_in_a_site_that_is_not_there_says_so_and_waits_for_it(
    network: Network, office: Computer
) -> None:
    config = msgspec.structs.replace(COPY, site="Berlin")
    shop = network.manager("SHOP", BETA, config)
    network.run(POLL_MS)
    problem = shop.ok(api.GetStatus()).directory_problem
    assert "no site 'Berlin' (it has Default-Site)" in problem
    assert shop.identifier not in image(office).managers
    assert failure(shop, api.CreateQueue(r".\orders")) == NoDirectory.code
    berlin = Site(identifier=Guid(b"the site Berlin!"), name="berlin")
    change(office, berlin)
    network.run(POLL_MS)
    assert image(office).managers[shop.identifier].sites == (berlin.identifier,)
    assert shop.ok(api.GetStatus()).directory_problem == ""


def test_an_original_whose_site_is_not_there_says_so_and_takes_it_when_it_comes(
    network: Network, office: Computer
) -> None:
    own = image(office).managers[office.identifier]
    office.manager.directory.copy.write((Removal(ObjectKind.MANAGER, own.identifier),))
    office.config = msgspec.structs.replace(
        office.config, directory=msgspec.structs.replace(ORIGINAL, site="Berlin")
    )
    office.pump()
    office.crash()
    assert "no site 'Berlin'" in office.ok(api.GetStatus()).directory_problem
    berlin = Site(identifier=Guid(b"the site Berlin!"), name="Berlin")
    change(office, berlin)
    assert office.ok(api.GetStatus()).directory_problem == ""
    assert image(office).managers[office.identifier].sites == (berlin.identifier,)
    office.ok_soon(api.CreateQueue(r".\orders"))
    network.run()


def test_who_was_registered_without_a_site_gets_the_one_it_is_to_be_in(
    network: Network, office: Computer, shop: Computer
) -> None:
    known = image(office).managers[shop.identifier]
    change(office, msgspec.structs.replace(known, sites=()))
    network.run(POLL_MS)
    assert image(office).managers[shop.identifier].sites == known.sites
    assert shop.ok(api.GetStatus()).directory_problem == ""


def test_a_known_queue_manager_needs_no_site_of_its_configuration(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.config = msgspec.structs.replace(
        shop.config, name="STORE", directory=msgspec.structs.replace(COPY, site="Berlin")
    )
    shop.crash()
    network.run(POLL_MS)
    assert shop.ok(api.GetStatus()).directory_problem == ""
    assert image(office).managers[shop.identifier].sites


def test_a_directory_that_does_not_keep_what_it_takes_is_not_asked_without_end(
    network: Network, office: Computer, shop: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may round a number, or not know a property."""
    taken: list[Change] = []

    def take(self: Network, computer: Computer, output: ChangeDirectory) -> None:
        del self
        taken.extend(output.changes)
        computer.manager.directory_changed(output.ticket, output.changes, network.now)
        computer.pump()

    monkeypatch.setattr(Network, "change_directory", take)
    shop.config = msgspec.structs.replace(shop.config, quota_kb=4)
    shop.crash()
    network.run(POLL_MS // 2)
    assert len(taken) == 1
    network.run(2 * POLL_MS)
    assert 2 <= len(taken) <= 4
    assert image(office).managers[shop.identifier].quota_kb != 4


def test_a_public_queue_takes_messages_by_either_name(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders", label="What we sell"))
    network.run(POLL_MS)
    name = public_name(office, r"SHOP\orders")
    assert name == public_name(shop, r"SHOP\orders")
    assert name.startswith("PUBLIC=")
    office.send(r"SHOP\orders", b"by path")
    office.send(name, b"by identifier")
    network.run(1_000)
    assert shop.bodies(r"SHOP\orders") == shop.bodies(name) == [b"by path", b"by identifier"]


def test_transactional_messages_reach_a_public_queue_in_order(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\ledger", transactional=True))
    network.run(POLL_MS)
    bodies = [b"%d" % number for number in range(30)]
    office.send(r"SHOP\ledger", *bodies, transactional=True)
    network.run(60_000)
    assert shop.bodies(r".\ledger") == bodies
    assert office.outgoing() == [] or not office.outgoing()[0].message_count


def test_who_has_just_begun_may_publish_at_once(network: Network, office: Computer) -> None:
    shop = network.manager("SHOP", BETA, COPY)
    shop.ok_soon(api.CreateQueue(r".\orders"))
    assert [queue.path_name for queue in image(office).queues.values()] == [r"SHOP\orders"]
    network.directory = None
    other = network.manager("OTHER", GAMMA, COPY)
    assert failure(other, api.CreateQueue(r".\orders")) == NoDirectory.code


def test_two_queues_cannot_have_one_path(network: Network, shop: Computer) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    assert failure(shop, api.CreateQueue(r"SHOP\Orders")) == QueueExists.code


def test_a_change_reaches_the_queue_whoever_makes_it(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    (published,) = image(office).queues.values()
    change(office, msgspec.structs.replace(published, label="Other", journaling=True, quota_kb=7))
    # The owner is told, and does not wait until it would have asked anyway.
    network.run(2_000)
    (queue,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert (queue.label, queue.journaling, queue.quota_kb) == ("Other", True, 7)


def test_an_owner_changes_and_deletes_its_queue_in_the_directory_too(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders", service_type=b"s" * 16))
    shop.ok_soon(api.ChangeQueue(r".\orders", label="New", base_priority=3))
    (published,) = image(office).queues.values()
    assert (published.label, published.base_priority) == ("New", 3)
    assert published.path_name == r"SHOP\orders"
    network.run(POLL_MS)
    found = office.ok(api.FindQueues(label="new", service_type=b"s" * 16))
    assert changes_in(found.rows) == (published,)
    assert office.ok(api.FindQueues(label="old")).rows == []
    shop.ok_soon(api.DeleteQueue(r".\orders"))
    network.run(POLL_MS)
    assert not image(office).queues
    assert not image(shop).queues
    assert failure(shop, api.GetQueue(r".\orders")) == QueueNotFound.code


def test_a_queue_that_is_removed_from_the_directory_goes(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    (published,) = image(office).queues
    change(office, Removal(ObjectKind.QUEUE, published))
    network.run(2_000)
    assert failure(shop, api.GetQueue(r".\orders")) == QueueNotFound.code


def test_a_queue_published_before_a_crash_is_there_after_it(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\first"))
    network.run(POLL_MS)
    (first,) = image(office).queues.values()
    lost = msgspec.structs.replace(
        first, identifier=Guid(b"a second queue!!"), path_name=r"SHOP\second"
    )
    network.down.add(BETA)
    change(office, lost)
    shop.crash()
    network.down.clear()
    network.run(POLL_MS)
    assert shop.ok(api.GetQueue(r".\second")).queues
    shop.crash()
    assert shop.ok(api.GetQueue(r".\second")).queues
    assert shop.ok(api.GetQueue(str(PublicFormatName(lost.identifier)))).queues


@pytest.mark.spec("MQDMPR-3.1.2.5-01")
def test_without_the_directory_what_is_known_works_and_the_rest_says_why(
    network: Network, office: Computer, shop: Computer
) -> None:
    office.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    network.directory = None
    network.run(POLL_MS)
    assert "nobody answers" in shop.ok(api.GetStatus()).directory_problem
    assert failure(shop, api.CreateQueue(r".\new")) == NoDirectory.code
    assert failure(shop, api.RefreshDirectory()) == NoDirectory.code
    shop.send(r"OFFICE\orders", b"all the same")
    shop.crash()
    shop.send(r"OFFICE\orders", b"and after a crash")
    network.run(5_000)
    assert sorted(office.bodies(r".\orders")) == [b"all the same", b"and after a crash"]
    network.directory = office
    network.run(DIRECTORY_PROBE_S * 1000)
    assert shop.ok(api.GetStatus()).directory_problem == ""
    shop.ok_soon(api.CreateQueue(r".\new"))


def test_somebody_elses_name_is_not_taken(network: Network, office: Computer) -> None:
    impostor = joined(network, "Office", GAMMA)
    status = impostor.ok(api.GetStatus())
    assert str(office.identifier) in status.directory_problem
    assert len(image(office).managers) == 1
    assert failure(impostor, api.CreateQueue(r".\orders")) == NoDirectory.code


def test_a_list_reaches_all_its_queues_once(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    office.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    names = [public_name(office, path) for path in (r"SHOP\orders", r"OFFICE\orders")]
    inner = DistributionList(identifier=Guid(b"the inner list!!"), name="in", members=(names[1],))
    outer_id = Guid(b"the outer list!!")
    outer = DistributionList(
        identifier=outer_id,
        name="out",
        members=(*names, f"DL={inner.identifier}", f"DL={outer_id}"),
    )
    # No rule lets a list contain itself, but Active Directory does.
    office.manager.directory.copy.write((inner, outer))
    office.pump()
    office.send(f"DL={outer_id}", b"to all")
    network.run(5_000)
    assert shop.bodies(r".\orders") == office.bodies(r".\orders") == [b"to all"]
    unknown = api.OpenQueue(f"DL={Guid(b'a list unknown!!')}", 2)
    assert failure(office, unknown) == QueueNotFound.code


def test_without_a_directory_public_names_and_lists_are_refused(alpha: Computer) -> None:
    assert failure(alpha, api.CreateQueue(r".\orders")) == NoDirectory.code
    assert failure(alpha, api.OpenQueue(r"OTHER\orders", 2)) == NoDirectory.code
    assert failure(alpha, api.OpenQueue(f"DL={Guid(b'a list unknown!!')}", 2)) == NoDirectory.code
    assert failure(alpha, api.ReadDirectory()) == NoDirectory.code
    assert failure(alpha, api.FindQueues()) == NoDirectory.code


def test_strangers_cannot_make_a_queue_manager_ask_all_the_time(
    network: Network, office: Computer, shop: Computer
) -> None:
    body = ManagerNotification(Event.QUEUE_DELETED, shop.identifier, "ANY").encode()
    name = f"PRIVATE={shop.identifier}\\{NOTIFY_QUEUE_NUMBER}"
    before = network.directory_questions
    office.send(name, *[body] * 500)
    network.run(10_000)
    assert 1 <= network.directory_questions - before <= 12
    office.send(name, b"not a notification", b"")
    network.run(1_000)


def test_a_copy_that_missed_many_removals_reads_everything_again(
    network: Network, office: Computer, shop: Computer
) -> None:
    office.manager.directory.copy.removed_max = 3
    network.directory = None
    lists = [
        DistributionList(identifier=Guid(bytes([number]) * 16), name=f"list {number}")
        for number in range(1, 9)
    ]
    change(office, *lists)
    network.directory = office
    network.run(DIRECTORY_PROBE_S * 1000)
    assert image(shop) == image(office)
    network.directory = None
    for each in lists[:6]:
        change(office, Removal(ObjectKind.LIST, each.identifier))
    network.directory = office
    network.run(DIRECTORY_PROBE_S * 1000)
    assert image(shop) == image(office)
    assert len(image(shop).lists) == 2


def test_a_refused_disk_leaves_copy_and_queues_as_they_were(office: Computer) -> None:
    before = image(office)
    office.fail_commits = 1
    reply = office.ask(api.CreateQueue(r".\orders"))
    assert isinstance(reply, api.Failed)
    assert image(office) == before
    assert failure(office, api.GetQueue(r".\orders")) == QueueNotFound.code
    office.ok_soon(api.CreateQueue(r".\orders"))


def test_nonsense_is_refused(office: Computer) -> None:
    row = api.ObjectRow("queue", b"short", b"x")
    for rows in ([row], [api.ObjectRow("planet", bytes(16), b"")]):
        assert isinstance(office.ask(api.ChangeDirectory(rows)), api.Failed)
    assert isinstance(office.ask(api.ReadDirectory(b"short")), api.Failed)


def failure(computer: Computer, request: api.AnyRequest) -> int:
    reply = computer.soon(request)
    assert isinstance(reply, api.Failed), reply
    assert MsmqError.from_code(reply.code).code != IllegalFormatName.code
    return reply.code


def test_queues_outlive_a_directory_that_was_made_anew(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    shop.send(r".\orders", b"kept", recoverable=True)
    network.run(POLL_MS)
    assert shop.ok(api.GetStatus()).directory_problem == ""
    office.store = type(office.store)()
    office.start()
    network.run(POLL_MS)
    assert image(shop) == image(office)
    assert image(office).managers.keys() == {office.identifier, shop.identifier}
    assert not image(office).queues
    for _ in range(2):
        assert shop.bodies(r".\orders") == [b"kept"]
        assert "orders, are not in the directory" in shop.ok(api.GetStatus()).directory_problem
        shop.crash()
        network.run(POLL_MS)
    # Its owner publishes it again.
    shop.ok_soon(api.ChangeQueue(r".\orders", label="again"))
    network.run(POLL_MS)
    office.send(r"SHOP\orders", b"new", recoverable=True)
    network.run(5_000)
    assert shop.bodies(r".\orders") == [b"kept", b"new"]
    assert shop.ok(api.GetStatus()).directory_problem == ""


def test_queues_outlive_a_directory_that_was_restored_from_a_backup(
    network: Network, office: Computer, shop: Computer
) -> None:
    backup = office.store.crash()
    shop.ok_soon(api.CreateQueue(r".\orders"))
    shop.send(r".\orders", b"kept", recoverable=True)
    network.run(POLL_MS)
    office.store = backup
    office.start()
    network.run(POLL_MS)
    assert image(shop) == image(office)
    assert not image(office).queues
    assert shop.bodies(r".\orders") == [b"kept"]


@pytest.mark.parametrize("new", [Guid(b"\x01" * 16), Guid(b"\xfe" * 16)])
def test_a_queue_that_is_removed_and_published_anew_is_there(
    network: Network, office: Computer, shop: Computer, new: Guid
) -> None:
    """Whichever of the two changes the owner hears of first."""
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    (old,) = image(office).queues.values()
    change(
        office,
        Removal(ObjectKind.QUEUE, old.identifier),
        msgspec.structs.replace(old, identifier=new, label="new"),
    )
    network.run(POLL_MS)
    (found,) = shop.ok(api.GetQueue(r".\orders")).queues
    assert (found.identifier, found.label) == (new, "new")


def test_a_queue_for_which_there_is_no_room_is_not_published(
    network: Network, office: Computer, shop: Computer
) -> None:
    del network
    shop.config = msgspec.structs.replace(shop.config, queues_max=4)
    shop.start()
    assert failure(shop, api.CreateQueue(r".\orders")) != NoDirectory.code
    assert not image(office).queues


def test_a_queue_published_by_others_comes_when_there_is_room(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    (first,) = image(office).queues.values()
    count = len(shop.ok(api.ListQueues(everything=True)).queues)
    shop.config = msgspec.structs.replace(shop.config, queues_max=count)
    shop.start()
    second = msgspec.structs.replace(first, identifier=Guid(b"2" * 16), path_name=r"SHOP\second")
    change(office, second)
    network.run(POLL_MS)
    assert "could not be created" in shop.ok(api.GetStatus()).directory_problem
    shop.ok_soon(api.DeleteQueue(r".\orders"))
    network.run(POLL_MS)
    assert shop.ok(api.GetQueue(r".\second")).queues
    assert shop.ok(api.GetStatus()).directory_problem == ""


def test_who_has_read_nothing_yet_tells_nothing(network: Network, office: Computer) -> None:
    """A new read copy must not make others forget what they know."""
    shop = joined(network, "SHOP", BETA)
    network.directory = None
    empty = network.manager("EMPTY", GAMMA, COPY)
    assert failure(empty, api.ReadDirectory()) == NoDirectory.code
    network.directory = empty
    before = image(shop)
    shop.soon(api.RefreshDirectory())
    assert image(shop) == before == image(office)


def test_an_office_whose_disk_is_full_at_first_makes_its_directory_later(
    network: Network,
) -> None:
    office = network.manager("OFFICE", ALPHA, ORIGINAL)
    office.store = type(office.store)()
    office.fail_commits = 1
    office.start()
    assert len(image(office)) == 0
    office.ok(api.CreateQueue(r".\orders"))
    assert office.identifier in image(office).managers
    office.crash()
    assert len(image(office).queues) == 1
    assert office.manager.directory.copy.position.incarnation != Guid(bytes(16))


def test_an_office_that_moves_says_so(office: Computer) -> None:
    office.config = msgspec.structs.replace(office.config, addresses=(GAMMA,))
    office.start()
    assert image(office).managers[office.identifier].addresses == (GAMMA,)
    before = office.manager.directory.copy.position
    office.crash()
    assert office.manager.directory.copy.position == before


def test_a_copy_becomes_the_original(network: Network, office: Computer, shop: Computer) -> None:
    """It may have missed the last changes, so others must not take its numbers for the old ones."""
    depot = joined(network, "DEPOT", GAMMA)
    network.run(POLL_MS)
    change(office, DistributionList(identifier=Guid(b"1" * 16), name="seen by the depot only"))
    depot.soon(api.RefreshDirectory())
    shop.config = msgspec.structs.replace(shop.config, directory=ORIGINAL)
    shop.start()
    network.directory = shop
    for number in range(5):
        change(shop, DistributionList(identifier=Guid(bytes([50 + number]) * 16), name=f"{number}"))
    office.config = msgspec.structs.replace(office.config, directory=COPY)
    office.start()
    network.run(DIRECTORY_PROBE_S * 1000)
    assert len(image(shop).lists) == 5
    assert image(office) == image(depot) == image(shop)


def test_an_answer_that_no_longer_fits_is_not_taken(network: Network, shop: Computer) -> None:
    """A question goes out before the disk has what it stands on, and the disk refuses that."""
    office = network.directory
    assert office is not None
    change(office, DistributionList(identifier=Guid(b"1" * 16), name="first"))
    asked = shop.manager
    asked.request(1, 900, api.RefreshDirectory(), network.now)
    asked.take_outputs()
    copy = office.manager.directory.copy
    first = copy.since(shop.manager.directory.copy.position)
    asked.request(1, 901, api.RefreshDirectory(), network.now)
    asked.directory_told(first, network.now)
    (persist,) = (out for out in asked.take_outputs() if isinstance(out, Persist))
    change(office, DistributionList(identifier=Guid(b"2" * 16), name="second"))
    second = copy.since(first.position)
    asked.persist_failed(persist.ticket, NoDirectory("no room"), network.now)
    asked.directory_told(second, network.now)
    shop.pump()
    network.run(POLL_MS)
    assert image(shop) == image(office)


def test_lists_of_lists_end(network: Network) -> None:
    office = network.manager("OFFICE", ALPHA, msgspec.structs.replace(ORIGINAL, list_members_max=4))
    lists = [
        DistributionList(
            identifier=Guid(bytes([number]) * 16),
            name=f"{number}",
            members=(f"DL={Guid(bytes([number + 1]) * 16)}",),
        )
        for number in range(1, 9)
    ]
    office.manager.directory.copy.write(lists)
    office.pump()
    assert failure(office, api.OpenQueue(f"DL={lists[0].identifier}", 2)) == (
        InsufficientResources.code
    )
