"""Messages for foreign computers wait in the queues of the connector that knows them."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.errors import (
    AccessDenied,
    MsmqError,
    PropertyNotAllowed,
    QueueNotFound,
    UnsupportedFormatName,
)
from openmsmq.model.identity import Guid
from openmsmq.model.names import PublicFormatName
from openmsmq.model.queue import AccessMode, QueueKind, QueueProperties
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.wire.headers.queue_names import DirectName, PublicName
from tests.transfer.directories import COPY, ORIGINAL, POLL_MS, change, image
from tests.transfer.network import ALPHA, BETA, Computer, Network

CONNECTOR = "2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11"
PLAIN = f"CONNECTOR={CONNECTOR}"
XACTONLY = f"CONNECTOR={CONNECTOR};XACTONLY"
FOREIGN = r"DIRECT=OS:MAINFRAME\private$\payroll"
ORDERS = r"private$\orders"


@pytest.fixture
def network() -> Network:
    network = Network()
    network.hosts["mainframe"] = (BETA,)
    return network


@pytest.fixture
def beta(network: Network) -> Computer:
    return network.manager("BETA", BETA, connectors={"mainframe": CONNECTOR})


def failure(computer: Computer, request: api.AnyRequest) -> type[MsmqError]:
    reply = computer.ask(request)
    assert isinstance(reply, api.Failed)
    return type(MsmqError.from_code(reply.code, reply.detail))


def test_what_is_sent_to_a_foreign_computer_waits_for_its_connector(beta: Computer) -> None:
    beta.send(FOREIGN, b"express", recoverable=False)
    beta.send(FOREIGN, b"recoverable")
    beta.send(FOREIGN, b"in a transaction", transactional=True)
    assert beta.bodies(PLAIN) == [b"express", b"recoverable"]
    assert beta.bodies(XACTONLY) == [b"in a transaction"]
    assert beta.outgoing() == []


def test_messages_keep_the_address_of_the_foreign_queue(beta: Computer) -> None:
    beta.send(r"mainframe\private$\payroll", b"1")
    (message,) = beta.messages(PLAIN)
    assert message.user.destination == DirectName(r"OS:mainframe\PRIVATE$\payroll")


def test_messages_of_other_queue_managers_come_to_the_connector_in_order(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    bodies = [b"%d" % number for number in range(50)]
    alpha.send(FOREIGN, *bodies)
    alpha.send(FOREIGN, *bodies, transactional=True)
    network.run(2_000)
    assert beta.bodies(PLAIN) == bodies
    assert beta.bodies(XACTONLY, take=True) == bodies
    network.run(60_000)
    assert [queue.message_count for queue in alpha.outgoing()] == [0]


def test_a_list_may_have_foreign_queues(beta: Computer) -> None:
    beta.create(ORDERS, transactional=True)
    beta.send(rf"{FOREIGN},DIRECT=OS:BETA\{ORDERS}", b"both", transactional=True)
    assert beta.bodies(ORDERS) == beta.bodies(XACTONLY) == [b"both"]


def test_connector_queues_survive_a_restart(beta: Computer) -> None:
    beta.send(FOREIGN, b"stays")
    beta.send(FOREIGN, b"stays too", transactional=True)
    beta.crash()
    beta.send(FOREIGN, b"comes later", transactional=True)
    assert beta.bodies(PLAIN) == [b"stays"]
    assert beta.bodies(XACTONLY) == [b"stays too", b"comes later"]


def test_what_the_disk_refuses_leaves_no_queue_behind(beta: Computer) -> None:
    beta.fail_commits = 1
    assert isinstance(beta.ask(api.OpenQueue(FOREIGN, AccessMode.SEND)), api.Failed)
    assert beta.ok(api.ListQueues()).queues == []
    beta.send(FOREIGN, b"now", transactional=True)
    assert beta.bodies(XACTONLY) == [b"now"]


def test_a_connector_may_wait_before_the_first_message(beta: Computer) -> None:
    opened = beta.ok(api.OpenQueue(XACTONLY, AccessMode.RECEIVE))
    assert (opened.format_name, opened.transactional) == (XACTONLY, True)
    assert beta.ok(api.GetNames(XACTONLY)).format_name == XACTONLY


def test_connector_queues_are_listed_and_kept_as_the_configuration_says(beta: Computer) -> None:
    beta.send(FOREIGN, b"1")
    listed = {queue.path_name: queue for queue in beta.ok(api.ListQueues()).queues}
    assert set(listed) == {PLAIN, XACTONLY}
    assert listed[PLAIN].format_name == PLAIN
    assert failure(beta, api.DeleteQueue(PLAIN)) is AccessDenied
    assert failure(beta, api.ChangeQueue(PLAIN, journaling=True)) is PropertyNotAllowed
    assert failure(beta, api.OpenQueue(PLAIN, AccessMode.SEND)) is UnsupportedFormatName


def test_only_connectors_of_the_configuration_have_queues(alpha: Computer) -> None:
    assert failure(alpha, api.OpenQueue(PLAIN, AccessMode.RECEIVE)) is QueueNotFound


def test_the_connector_and_not_the_queue_manager_tells_senders_what_became_of_their_messages(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    alpha.create(r"private$\admin")
    alpha.send(FOREIGN, b"1", acknowledge=0x0F, admin_queue=rf"TCP:{ALPHA}\private$\admin")
    network.run(2_000)
    assert beta.bodies(PLAIN, take=True) == [b"1"]
    network.run(2_000)
    assert alpha.classes(r"private$\admin") == []
    alpha.send(r"DIRECT=OS:ALPHA\private$\admin", b"the queue takes messages")
    assert alpha.classes(r"private$\admin") == [0]


@pytest.mark.parametrize("name", [r"mainframe\private$\x;journal", r"mainframe\system$;deadletter"])
def test_nobody_sends_to_a_journal_of_a_foreign_computer(beta: Computer, name: str) -> None:
    assert failure(beta, api.OpenQueue(name, AccessMode.SEND)) is UnsupportedFormatName


def test_a_queue_whose_name_looks_like_a_format_name_can_be_deleted(beta: Computer) -> None:
    beta.create(r"private$\a=b")
    beta.ok(api.DeleteQueue(r"DIRECT=OS:BETA\private$\a=b"))
    assert beta.ok(api.ListQueues()).queues == []


STATUS = QueueProperties(
    identifier=Guid(b"a foreign queue!"),
    path_name=r"MAINFRAME\status",
    manager=Guid(b"a foreign system"),
    kind=QueueKind.PUBLIC,
)
PUBLIC = str(PublicFormatName(STATUS.identifier))


@pytest.fixture
def gate(network: Network) -> Computer:
    """The computer with the connector; the directory leads what is for the foreign one there."""
    connectors = {"mainframe": CONNECTOR}
    gate = network.manager("GATE", BETA, ORIGINAL, connectors=connectors)
    network.directory = gate
    own = image(gate).managers[gate.identifier]
    foreign = QueueManagerInfo(
        identifier=STATUS.manager,
        computer_name="MAINFRAME",
        sites=own.sites,
        foreign=True,
        in_routing_servers=(gate.identifier,),
    )
    change(gate, msgspec.structs.replace(own, routing_server=True), foreign, STATUS)
    return gate


def test_a_foreign_queue_of_the_directory_leads_to_the_connector(
    network: Network, gate: Computer
) -> None:
    shop = network.manager("SHOP", ALPHA, COPY)
    network.run(POLL_MS)
    for sender in (shop, gate):
        sender.send(STATUS.path_name, b"plain")
        sender.send(PUBLIC, b"in a transaction", transactional=True)
    network.run(60_000)
    assert gate.bodies(PLAIN) == [b"plain"] * 2
    assert gate.bodies(XACTONLY) == [b"in a transaction"] * 2
    assert {str(message.user.destination) for message in gate.messages(PLAIN)} == {
        str(PublicName(STATUS.identifier))
    }
    # Taken over for good: nothing is left at the sender, and nothing comes twice.
    assert not any(queue.message_count for queue in shop.outgoing())
    # And nobody tells the foreign computer of changes of the directory.
    assert not [queue.format_name for queue in gate.outgoing() if queue.message_count]
    gate.crash()
    network.run(60_000)
    assert gate.bodies(XACTONLY) == [b"in a transaction"] * 2


def test_a_foreign_queue_without_a_connector_waits_at_its_gate(gate: Computer) -> None:
    other = msgspec.structs.replace(STATUS, identifier=Guid(b"another queue..."))
    nobody = QueueManagerInfo(
        identifier=Guid(b"not a connector!"),
        computer_name="NOBODY",
        sites=image(gate).managers[gate.identifier].sites,
        foreign=True,
    )
    there = msgspec.structs.replace(other, path_name=r"NOBODY\status", manager=nobody.identifier)
    change(gate, nobody, there)
    gate.send(there.path_name, b"for nobody")
    assert [queue.message_count for queue in gate.outgoing()] == [1]
    assert gate.ok(api.ListQueues()).queues == []
