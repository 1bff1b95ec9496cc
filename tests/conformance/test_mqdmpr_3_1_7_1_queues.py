"""Events that are about queues. [MQDMPR 3.1.7.1.3-3.1.7.1.7, 3.1.7.1.26, 3.1.7.1.33, 3.1.7.3.8]"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.names import PrivateFormatName, parse_format_name
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.model.topology import DistributionList
from openmsmq.security.access.access import QUEUE_DEFAULT, queue_descriptor
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, decode, encode
from openmsmq.security.access.sids import EVERYONE
from openmsmq.wire.headers.queue_names import DirectName
from tests.strategies.messages import Draft
from tests.transfer.conftest import network, office, shop
from tests.transfer.directories import ORIGINAL, change, image
from tests.transfer.network import ALPHA, Computer, Network
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, error_name, message

__all__ = ["network", "office", "shop"]

UNSUPPORTED = "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"
NOT_FOUND = "MQ_ERROR_QUEUE_NOT_FOUND"
SHARING = "MQ_ERROR_SHARING_VIOLATION"
ONE = "01020304-0506-0708-090a-0b0c0d0e0f10"
ADMIN = r"private$\admin"
WISHES: Final[dict[str, Any]] = {
    "admin_queue": rf"OS:ALPHA\{ADMIN}",
    "acknowledge": 0xE,
    "journal_on_failure": True,
}


@pytest.fixture
def desk() -> Office:
    """One queue manager without a directory."""
    desk = Office()
    desk.ok(api.CreateQueue(ADMIN))
    return desk


def created(desk: Office, name: str, **properties: object) -> api.QueueStatus:
    [status] = desk.ok(api.CreateQueue(name, **properties)).queues  # type: ignore[arg-type]
    assert isinstance(status, api.QueueStatus)
    return status


# Set Queue Defaults, Create Queue.


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.33-01", "MQDMPR-3.1.7.1.33-02", "MQDMPR-3.1.7.1.3-02", "MQDMPR-3.1.1.2-05"
)
def test_a_queue_of_which_nothing_is_said_has_the_defaults(desk: Office) -> None:
    status = created(desk, r"private$\new")
    assert (status.label, status.service_type) == ("", bytes(16))
    assert (status.journaling, status.transactional) == (False, False)
    assert (status.quota_kb, status.journal_quota_kb) == (0xFFFF_FFFF, 0xFFFF_FFFF)
    assert (status.authentication_required, status.privacy) == (False, 1)
    assert (status.multicast_address, status.base_priority) == ("", 0)
    security = desk.ok(api.GetSecurity(r"private$\new")).descriptor
    assert security == QUEUE_DEFAULT
    assert decode(security) == queue_descriptor()
    for entry in decode(security).entries or ():
        assert entry.rights & ~0x000F_003F == 0, "only rights that a queue has [MQMQ 2.2.24]"


@pytest.mark.spec("MQDMPR-3.1.7.1.3-01", "MQDMPR-3.1.7.1.3-04")
def test_a_created_queue_has_what_was_said_of_it_and_is_new_in_the_rest(desk: Office) -> None:
    rights = encode(Descriptor(b"", b"", (AccessEntry(EVERYONE, 0x24),)))
    said = {
        "label": "What we sell",
        "service_type": b"a kind of queue!",
        "journaling": True,
        "quota_kb": 77,
        "journal_quota_kb": 88,
        "authentication_required": True,
        "privacy": 2,
    }
    status = created(desk, r"private$\new", **said, security=rights)
    assert {name: getattr(status, name) for name in said} == said
    assert decode(desk.ok(api.GetSecurity(r"private$\new")).descriptor).entries == (
        AccessEntry(EVERYONE, 0x24),
    )
    assert (status.created_time_s, status.modified_time_s) == (START_S, START_S)
    assert (status.message_count, status.message_bytes, status.open_count) == (0, 0, 0)
    assert not status.is_public
    assert desk.bodies(r"private$\new;journal") == []
    numbers = set()
    for name in (ORDERS, LEDGER, ADMIN, r"private$\new"):
        found = parse_format_name(desk.ok(api.GetNames(name)).private_name)
        assert isinstance(found, PrivateFormatName)
        numbers.add(found.number)
    assert len(numbers) == 4, "each private queue has a number of its own"


@pytest.mark.spec("MQDMPR-3.1.7.1.3-04")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r"private$\a\b", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (r"private$\a;journal", "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME"),
        (ORDERS, "MQ_ERROR_QUEUE_EXISTS"),
    ],
)
def test_a_queue_without_a_valid_name_is_not_created(desk: Office, path: str, error: str) -> None:
    before = desk.ok(api.ListQueues(everything=True))
    assert desk.error(api.CreateQueue(path)) == error
    assert desk.ok(api.ListQueues(everything=True)) == before


@pytest.mark.spec("MQDMPR-3.1.7.1.3-04", "MQDMPR-3.1.7.1.18-01", "MQDMPR-3.1.1.2-01")
def test_a_public_queue_is_created_in_the_directory_and_then_here(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders", label="What we sell", base_priority=3))
    [published] = image(office).queues.values()
    assert (published.path_name, published.label) == (r"SHOP\orders", "What we sell")
    assert published.manager == shop.identifier
    [status] = shop.ok(api.GetQueue(r".\orders")).queues
    assert (status.identifier, status.is_public) == (bytes(published.identifier), True)
    network.directory = None
    refused = shop.soon(api.CreateQueue(r".\more"))
    assert error_name(refused) == "MQ_ERROR_NO_DS"
    assert error_name(shop.soon(api.GetQueue(r".\more"))) == NOT_FOUND, "nor is it here"


@pytest.mark.spec("MQDMPR-3.1.1.2-03")
def test_the_long_path_name_of_a_public_queue_has_the_full_name_of_its_computer(
    network: Network,
) -> None:
    config = msgspec.structs.replace(ORIGINAL, qualified_name="office.example.org")
    office = network.manager("OFFICE", ALPHA, config)
    office.ok_soon(api.CreateQueue(r".\orders"))
    [published] = image(office).queues.values()
    assert published.path_name == r"OFFICE\orders"
    assert published.qualified_path_name == r"office.example.org\orders"


@pytest.mark.spec("MQDMPR-3.1.7.1.3-03", "MQDMPR-3.1.7.1.4-02")
def test_what_the_directory_says_of_queues_is_done_without_writing_it_again(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\first"))
    network.run(1000)
    [first] = image(office).queues.values()
    second = msgspec.structs.replace(
        first, identifier=Guid(b"a second queue!!"), path_name=r"SHOP\second"
    )
    copy = office.manager.directory.copy
    change(office, second)
    number = copy.position.number
    network.run(5000)
    assert shop.ok(api.GetQueue(r".\second")).queues
    assert copy.position.number == number
    change(office, Removal(ObjectKind.QUEUE, second.identifier))
    network.run(5000)
    assert error_name(shop.soon(api.GetQueue(r".\second"))) == NOT_FOUND
    assert copy.position.number == number + 1


# Create Default Queue Security Descriptor.


@pytest.mark.spec("MQDMPR-3.1.7.1.3.1-04", "MQDMPR-3.1.7.1.3.1-05", "MQDMPR-3.1.7.1.3.1-06")
def test_a_descriptor_that_was_given_is_that_of_the_queue(desk: Office) -> None:
    given = Descriptor(EVERYONE, b"", (AccessEntry(EVERYONE, 0x26),))
    created(desk, r"private$\new", security=encode(given))
    found = decode(desk.ok(api.GetSecurity(r"private$\new")).descriptor)
    assert (found.owner, found.entries) == (given.owner, given.entries)


@pytest.mark.spec("MQDMPR-3.1.7.1.3.1-07")
def test_the_list_of_audits_of_a_given_descriptor_is_kept(desk: Office) -> None:
    everyone = bytes(EVERYONE)
    audit = struct.pack("<BBHI", 2, 0x40, 8 + len(everyone), 0x24) + everyone
    audits = struct.pack("<BBHHH", 2, 0, 8 + len(audit), 1, 0) + audit
    given = encode(Descriptor(EVERYONE, b"", (AccessEntry(EVERYONE, 0x26),), audits))
    created(desk, r"private$\new", security=given)
    for _ in range(2):
        found = desk.ok(api.GetSecurity(r"private$\new")).descriptor
        assert struct.unpack_from("<H", found, 2)[0] & 0x10, "there is such a list"
        at = struct.unpack_from("<I", found, 12)[0]
        assert found[at : at + len(audits)] == audits
        assert decode(found).entries == (AccessEntry(EVERYONE, 0x26),)
        desk.restart()


# Delete Queue.


@pytest.mark.spec("MQDMPR-3.1.7.1.4-01", "MQDMPR-3.1.7.1.4-03")
def test_a_deleted_queue_ends_its_messages_and_leaves_its_handles_without_a_queue(
    desk: Office,
) -> None:
    desk.send(b"one", b"two", **WISHES)
    handle, sender = desk.open(), desk.open(ORDERS, AccessMode.SEND)
    desk.ok(api.DeleteQueue(ORDERS))
    assert desk.classes(ADMIN) == [0xC000, 0xC000]
    assert desk.bodies("system$;deadletter") == [b"one", b"two"]
    assert desk.error(api.GetQueue(ORDERS)) == NOT_FOUND
    for request in (
        api.Receive(handle),
        api.Purge(handle),
        api.Send(sender, [Draft().packet()]),
    ):
        assert desk.error(request) == "MQ_ERROR_QUEUE_DELETED"
    assert desk.error(api.DeleteQueue(ORDERS)) == NOT_FOUND


@pytest.mark.spec("MQDMPR-3.1.7.1.4-03", "MQDMPR-3.1.7.1.19-01", "MQDMPR-3.1.7.1.19-02")
def test_a_public_queue_goes_from_the_directory_or_stays_with_an_error(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(1000)
    network.directory = None
    assert error_name(shop.soon(api.DeleteQueue(r".\orders"))) == "MQ_ERROR_NO_DS"
    network.directory = office
    network.run(120_000)
    shop.ok_soon(api.DeleteQueue(r".\orders"))
    assert not image(office).queues
    assert error_name(shop.soon(api.GetQueue(r".\orders"))) == NOT_FOUND


# Open Queue.


@pytest.mark.spec("MQDMPR-3.1.7.1.5-01", "MQDMPR-3.1.7.1.5-02")
@pytest.mark.parametrize(
    ("name", "access", "share", "error"),
    [
        (rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\{LEDGER}", AccessMode.SEND, 0, None),
        (rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\{LEDGER}", AccessMode.PEEK, 0, UNSUPPORTED),
        (
            rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\{LEDGER}",
            AccessMode.SEND,
            1,
            "MQ_ERROR_UNSUPPORTED_ACCESS_MODE",
        ),
        ("DIRECT=HTTP://BETA/msmq/private$/orders", AccessMode.RECEIVE, 0, UNSUPPORTED),
        (f"MACHINE={ONE};DEADLETTER", AccessMode.SEND, 0, UNSUPPORTED),
        ("MULTICAST=234.1.1.1:8001", AccessMode.SEND, 0, None),
        ("MULTICAST=234.1.1.1:8001", AccessMode.RECEIVE, 0, UNSUPPORTED),
        (r"DIRECT=OS:ALPHA\private$\nowhere", AccessMode.RECEIVE, 0, NOT_FOUND),
        (r"DIRECT=OS:ALPHA\private$\nowhere", AccessMode.SEND, 0, NOT_FOUND),
        (r"DIRECT=OS:BETA\private$\orders", AccessMode.SEND, 0, None),
    ],
)
def test_a_name_is_opened_for_what_its_kind_allows(
    desk: Office, name: str, access: AccessMode, share: int, error: str | None
) -> None:
    reply = desk.ask(api.OpenQueue(name, access, share))
    found = error_name(reply) if isinstance(reply, api.Failed) else None
    assert found == error


@pytest.mark.spec("MQDMPR-3.1.7.1.5-02", "MQDMPR-3.1.1.16-01")
def test_a_queue_elsewhere_has_an_outgoing_queue_from_its_first_opening_on(desk: Office) -> None:
    name = r"DIRECT=OS:BETA\private$\orders"
    assert desk.ok(api.ListOutgoing()).queues == []
    opened = desk.ok(api.OpenQueue(name, AccessMode.SEND))
    [queue] = desk.ok(api.ListOutgoing()).queues
    assert queue.format_name.upper() == name.upper()
    assert (queue.state, queue.message_count, queue.next_hops) == ("INACTIVE", 0, [])
    connections = desk.ok(api.ListConnections()).connections
    [shown] = [one for each in connections for one in each.queues]
    assert (shown.handle, shown.access, shown.share) == (opened.handle, AccessMode.SEND, 0)
    assert shown.name.upper() == name.upper()


@pytest.mark.spec("MQDMPR-3.1.7.1.5-02", "MQDMPR-3.1.1.16-04")
@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ((AccessMode.RECEIVE, ShareMode.DENY_RECEIVE), (AccessMode.RECEIVE, 1), True),
        ((AccessMode.RECEIVE, ShareMode.DENY_RECEIVE), (AccessMode.RECEIVE, 0), True),
        ((AccessMode.PEEK, ShareMode.DENY_RECEIVE), (AccessMode.RECEIVE, 0), True),
        ((AccessMode.RECEIVE, ShareMode.DENY_NONE), (AccessMode.RECEIVE, 1), True),
        ((AccessMode.RECEIVE, ShareMode.DENY_NONE), (AccessMode.RECEIVE, 0), False),
        ((AccessMode.RECEIVE, ShareMode.DENY_RECEIVE), (AccessMode.SEND, 0), False),
    ],
)
def test_readers_share_a_queue_unless_one_denies_it(
    desk: Office, first: tuple[AccessMode, ShareMode], second: tuple[AccessMode, int], refused: bool
) -> None:
    desk.open(ORDERS, *first)
    reply = desk.ask(api.OpenQueue(ORDERS, *second))
    assert isinstance(reply, api.Failed) is refused
    if refused:
        assert error_name(reply) == SHARING


@pytest.mark.spec(
    "MQDMPR-3.1.1.16-05", "MQDMPR-3.1.1.16-06", "MQDMPR-3.1.1.16-08", "MQDMPR-3.1.1.16-07"
)
def test_a_handle_of_several_queues_is_for_sending_and_has_no_queue_of_its_own(
    desk: Office,
) -> None:
    desk.ok(api.CreateQueue(r"private$\more"))
    several = rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\private$\more"
    for access in (AccessMode.RECEIVE, AccessMode.PEEK, AccessMode.MOVE):
        assert desk.error(api.OpenQueue(several, access)) == UNSUPPORTED
    handle = desk.ok(api.OpenQueue(several, AccessMode.SEND)).handle
    counts = [desk.ok(api.GetQueue(name)).queues[0].open_count for name in (ORDERS, LEDGER)]
    assert counts == [1, 0]
    for request in (api.Receive(handle), api.Purge(handle), api.CreateCursor(handle)):
        assert desk.error(request) == "MQ_ERROR_ACCESS_DENIED"
    one = desk.open(ORDERS, AccessMode.SEND)
    desk.ok(api.Send(one, [Draft(body=b"to one").packet()]))
    assert (desk.bodies(), desk.bodies(r"private$\more")) == ([b"to one"], [])


# Close Queue.


@pytest.mark.spec("MQDMPR-3.1.7.1.6-01", "MQDMPR-3.1.7.1.6-02")
def test_closing_a_queue_cancels_its_reads_closes_its_cursors_and_ends_its_share(
    desk: Office,
) -> None:
    handle, other = desk.open(share=ShareMode.DENY_RECEIVE), desk.open(LEDGER)
    cursor = desk.ok(api.CreateCursor(handle)).cursor
    waiting = desk.driver.request(desk.app, api.Receive(handle, timeout_ms=None))
    elsewhere = desk.driver.request(desk.app, api.Receive(other, timeout_ms=None))
    desk.driver.pump()
    desk.driver.request(desk.app, api.CloseQueue(handle))
    desk.driver.pump()
    answers = desk.driver.take_answers()
    assert error_name(answers[desk.app, waiting]) == "MQ_ERROR_OPERATION_CANCELLED"
    assert (desk.app, elsewhere) not in answers
    assert desk.error(api.CloseCursor(cursor)) == "MQ_ERROR_INVALID_HANDLE"
    assert desk.error(api.CloseQueue(handle)) == "MQ_ERROR_INVALID_HANDLE"
    assert desk.ok(api.GetQueue(ORDERS)).queues[0].open_count == 0
    desk.open(share=ShareMode.DENY_RECEIVE)


@pytest.mark.spec("MQDMPR-3.1.7.1.6-02")
def test_closing_a_handle_of_several_queues_closes_it_for_each(desk: Office) -> None:
    several = rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\{LEDGER}"
    handle = desk.ok(api.OpenQueue(several, AccessMode.SEND)).handle

    def open_counts() -> list[int]:
        return [desk.ok(api.GetQueue(name)).queues[0].open_count for name in (ORDERS, LEDGER)]

    assert open_counts() == [1, 1]
    desk.ok(api.CloseQueue(handle))
    assert open_counts() == [0, 0]


# Purge Queue.


@pytest.mark.spec("MQDMPR-3.1.7.1.7-01", "MQDMPR-3.1.7.1.7-02", "MQDMPR-3.1.1.11-02")
def test_a_purge_ends_what_is_available_and_what_is_locked_when_it_is_given_back(
    desk: Office,
) -> None:
    desk.send(b"available", b"locked", b"held", name=LEDGER, **WISHES)
    desk.send(b"elsewhere", **WISHES)
    handle, work = desk.open(LEDGER), desk.begin()
    _, locked, held = desk.lookup_ids(LEDGER)
    desk.ok(api.Seek(handle, "current", locked, lock=True))
    desk.ok(api.Seek(handle, "current", held, transaction=work))
    assert desk.ok(api.Purge(handle)) == api.Removed(1)
    assert desk.classes(ADMIN) == [0xC001]
    desk.ok(api.EndReceive(handle, locked, False))
    desk.ok(api.Abort(work))
    assert desk.classes(ADMIN) == [0xC001] * 3
    assert desk.bodies(LEDGER) == []
    assert desk.ok(api.GetQueue(LEDGER)).queues[0].message_count == 0
    assert desk.bodies() == [b"elsewhere"]


# Get Queue Path.


@pytest.mark.spec("MQDMPR-3.1.7.1.26-01", "MQDMPR-3.1.7.1.26-02")
def test_a_format_name_leads_to_a_path_name_and_its_computer(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    shop.create(r"private$\own")
    network.run(60_000)
    [published] = image(office).queues.values()
    private = shop.ok(api.GetNames(r"private$\own")).private_name
    for asker, name, path in (
        (office, r"DIRECT=TCP:192.0.2.1\private$\a", r"192.0.2.1\private$\a"),
        (office, r"DIRECT=OS:other.example.org\b", r"other.example.org\b"),
        (office, f"PUBLIC={published.identifier}", r"SHOP\orders"),
        (shop, f"PUBLIC={published.identifier}", r"SHOP\orders"),
        (shop, private, r"SHOP\private$\own"),
    ):
        assert asker.ok_soon(api.GetNames(name)).path_name == path
    for name in (f"PUBLIC={ONE}", "PUBLIC=nonsense"):
        reply = office.soon(api.GetNames(name))
        assert isinstance(reply, api.Failed) or not reply.path_name  # type: ignore[union-attr]


# Expand Format Name.


@pytest.mark.spec("MQDMPR-3.1.7.3.8-01", "MQDMPR-3.1.7.3.8-02", "MQDMPR-3.1.7.3.8-03")
def test_lists_become_their_queues_each_of_them_once(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    office.create(r"private$\here")
    network.run(60_000)
    [published] = image(office).queues
    inner = DistributionList(
        identifier=Guid(b"the inner list!!"), name="in", members=(f"PUBLIC={published}",)
    )
    outer = DistributionList(
        identifier=Guid(b"the outer list!!"),
        name="out",
        members=(
            f"PUBLIC={published}",
            f"DL={inner.identifier}",
            r"DIRECT=OS:OFFICE\private$\here",
            r"DIRECT=OS:office\PRIVATE$\HERE",
        ),
    )
    change(office, inner, outer)
    office.send(f"DL={outer.identifier}", b"by list")
    office.send(
        r"DIRECT=OS:OFFICE\private$\here,DIRECT=os:office\private$\Here," f"DL={inner.identifier}",
        b"by names",
    )
    office.send(r"DIRECT=OS:OFFICE\private$\here", b"by name")
    network.run(5000)
    assert office.bodies(r"private$\here") == [b"by list", b"by names", b"by name"]
    assert shop.bodies(r".\orders") == [b"by list", b"by names"]
    unknown = office.soon(api.OpenQueue(f"DL={ONE}", AccessMode.SEND))
    assert error_name(unknown) == NOT_FOUND


@pytest.mark.spec("MQDMPR-3.1.1.12-24", "MQDMPR-3.1.1.12-25")
def test_each_copy_has_one_queue_as_its_destination_beside_the_list_of_all(desk: Office) -> None:
    desk.ok(api.CreateQueue(r"private$\more"))
    names = [rf"OS:ALPHA\{ORDERS}", r"OS:ALPHA\private$\more"]
    several = ",".join(f"DIRECT={name}" for name in names)
    handle = desk.ok(api.OpenQueue(several, AccessMode.SEND)).handle
    desk.ok(api.Send(handle, [Draft(body=b"to both").packet()]))
    for path, name in ((ORDERS, names[0]), (r"private$\more", names[1])):
        [entry] = desk.ok(api.Receive(desk.open(path))).entries
        found = message(entry)
        assert isinstance(found.user.destination, DirectName)
        assert found.user.destination.text.upper() == name.upper()
        assert found.multi_queue is not None
        listed = found.multi_queue.destinations.elements
        assert all(isinstance(each, DirectName) for each in listed)
        assert len(listed) == 2
    list_in_list = f"DIRECT={names[0]},DIRECT={names[1]},"
    assert desk.error(api.OpenQueue(list_in_list, AccessMode.SEND)) == "MQ_ERROR_ILLEGAL_FORMATNAME"
