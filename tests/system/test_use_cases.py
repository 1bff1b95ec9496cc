"""What applications do with the system, one use case after the other. [MQOD 2.5]"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.model.errors import (
    LabelTooLong,
    MsmqError,
    OperationCancelled,
    QueueNotFound,
    ReceiveTimeout,
    TransactionUsage,
)
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.wire.packets import UserMessage
from tests.runtime.computers import Computer, environment, neighbours, running, wait_for
from tests.runtime.scripted_engine import free_port
from tests.system.test_example_3_modify_a_public_queue import notified, properties
from tests.transfer.letters import (
    SEQUENCE,
    direct,
    final_ack,
    final_acks,
    let_pass,
    letter,
    letters_in,
    order_ack,
)
from tests.transfer.network import ALPHA, KNOWN_PEER, PEER, Network

ORDERS, LEDGER = r"private$\orders", r"private$\ledger"


@pytest.fixture
def alpha(tmp_path: Path) -> Iterator[Computer]:
    """A queue manager; the one at 127.0.0.3 is away."""
    alpha, _ = neighbours(tmp_path, "ALPHA", "AWAY")
    with running(alpha):
        yield alpha


@pytest.fixture
def manager(alpha: Computer) -> Iterator[mq.QueueManager]:
    with alpha.connect() as connected:
        yield connected


CREATED = """
sites: {Default-Site: {queue_managers: {SERVER: {queues: {orders: {label: Orders}}}}}}
"""
MODIFIED = CREATED.replace("label: Orders", "label: Orders of the north, quota_kb: 512")


@pytest.mark.spec("MQOD-2.5.1-01")
def test_queues_are_created_and_modified_and_the_host_of_a_public_one_is_told(
    tmp_path: Path,
) -> None:
    pings = free_port("127.0.0.2", "127.0.0.3", "127.0.0.4")
    office, client, server = neighbours(tmp_path, "OFFICE", "CLIENT", "SERVER", ping_port=pings)
    capture = tmp_path / "server.pcapng"
    office.options = ("--directory-server",)
    client.options = ("--directory", office.qm)
    server.options = ("--directory", office.qm, "--capture", str(capture))
    with running(office), running(client, server):
        # A private queue, by its own queue manager.
        (private,) = server.objects("queue", "create", ORDERS, "--label", "One")
        assert private["label"] == "One"
        (private,) = server.objects("queue", "change", ORDERS, "--label", "Two", "--quota-kb", "64")
        assert server.objects("queue", "show", ORDERS)[0]["label"] == private["label"] == "Two"
        # A public queue of another computer: the directory has it first, and tells its host.
        wait_for(lambda: "SERVER" in str(client.objects("directory", "list", "manager")))
        for plan, found in (
            (CREATED, ("Orders", None, False)),
            (MODIFIED, ("Orders of the north", 512, False)),
        ):
            file = tmp_path / "plan.yaml"
            file.write_text(plan, encoding="utf-8")
            client.command("directory", "apply", str(file), "--yes")
            (there,) = client.objects("directory", "find-queues")
            assert there["path_name"] == r"SERVER\orders"
            wait_for(lambda: server.objects("directory", "find-queues"))
            wait_for(lambda found=found: properties(server, r".\orders") == found)
        assert server.end() == 0
    sources = [str(message.user.source) for message in notified(capture, server.session_port)]
    assert sources.count(client.identifier) == 2


@pytest.mark.spec("MQOD-2.5.2-01")
def test_asking_about_queues_changes_nothing(alpha: Computer, manager: mq.QueueManager) -> None:
    manager.create_queue(ORDERS, label="Orders").send_many(["one", "two"])
    manager.queue(alpha.queue(ORDERS).replace("127.0.0.2", "127.0.0.3")).send("elsewhere")

    def asked() -> tuple[object, ...]:
        (queue,) = alpha.objects("queue", "show", ORDERS)
        (status,) = alpha.objects("status")
        (listed,) = alpha.objects("queue", "list")
        (outgoing,) = alpha.objects("outgoing", "list")
        names = manager.names(ORDERS)
        seen = alpha.objects("peek", ORDERS, "--all")
        assert (queue["label"], queue["message_count"]) == ("Orders", 2)
        assert (listed["path_name"], outgoing["message_count"]) == (ORDERS, 1)
        counts = [status[name] for name in ("queue_count", "message_count", "message_bytes")]
        return queue, counts, listed["message_count"], names, [each["message_id"] for each in seen]

    assert asked() == asked()


@pytest.mark.spec("MQOD-2.5.3-01")
def test_a_message_goes_into_its_queue_or_into_an_outgoing_one(
    alpha: Computer, manager: mq.QueueManager
) -> None:
    away = r"DIRECT=TCP:127.0.0.3\private$\orders"
    manager.create_queue(ORDERS)
    manager.create_queue(LEDGER, transactional=True)
    manager.queue(ORDERS).send("here")
    manager.queue(away).send("there")
    assert manager.queue(ORDERS).peek(0).body == "here"
    (outgoing,) = manager.outgoing()
    assert outgoing.message_count == 1
    wrong = {
        QueueNotFound: lambda: manager.queue(r"private$\nothing").send("x"),
        LabelTooLong: lambda: manager.queue(ORDERS).send("x", label="x" * 250),
        TransactionUsage: lambda: manager.queue(LEDGER).send("x"),
    }
    for error, sends in wrong.items():
        with pytest.raises(error):
            sends()
    with pytest.raises(MsmqError):
        manager.queue(away).send(bytes(5 << 20))
    assert manager.queue(ORDERS).count() == 1
    assert manager.queue(LEDGER).count() == 0
    assert alpha.objects("outgoing", "list")[0]["message_count"] == 1


@pytest.mark.spec("MQOD-2.5.5-01")
def test_a_message_is_transferred_until_somebody_says_what_became_of_it() -> None:
    network = Network()
    alpha = network.manager("ALPHA", ALPHA, peers=KNOWN_PEER)
    alpha.create(ORDERS)
    peer = network.peer()
    queue = rf"DIRECT=TCP:{PEER}\{LEDGER}"

    def come() -> list[UserMessage]:
        """Let the source connect, and give what it brings."""
        network.run(6_000)
        peer.accept_session()
        network.run(1_000)
        return letters_in(
            [packet for packet in peer.take() if isinstance(packet, UserMessage)], peer.identifier
        )

    # Sent again and again, over one connection after the other, until it is acknowledged.
    for body in (b"one", b"two"):
        alpha.send(queue, body, transactional=True, journal_on_failure=True)
    for _ in range(3):
        first, second = come()
        assert [each.properties.body for each in (first, second)] == [b"one", b"two"]
        peer.close()
    first, second = come()
    peer.write(order_ack(first, alpha.identifier))
    peer.close()
    # The second one is refused for good: it is not sent any more, and its sender has it back.
    (again,) = come()
    assert again.properties.body == b"two"
    refused = MessageClass.NACK_BAD_DESTINATION_QUEUE
    peer.write(order_ack(again, alpha.identifier), final_ack(again, alpha.identifier, refused))
    peer.close()
    network.run(120_000)
    assert {each.message_count for each in alpha.outgoing(queue)} == {0}
    (dead,) = alpha.messages("system$;deadxact")
    assert (dead.properties.body, dead.properties.message_class) == (b"two", refused)

    # What comes twice is discarded, what is no good is refused and its sender told.
    peer.take()
    peer.open_session(ALPHA)
    to = direct(ALPHA, ORDERS)
    wishes = {"acknowledge": 0x0F, "admin_queue": direct(PEER, r"private$\admin")}
    for number in (5, 5, 6):
        peer.write(letter(peer.identifier, number, to, b"%d" % number, **wishes))
    peer.write(
        letter(peer.identifier, 7, to, b"7", place=(SEQUENCE, 1, 0), journal_on_failure=True)
    )
    packets = let_pass(peer, 30_000)
    assert alpha.bodies(ORDERS) == [b"5", b"6"]
    told = [each.properties.message_class for each in letters_in(packets, peer.identifier)]
    assert told == [MessageClass.ACK_REACH_QUEUE] * 2
    ((reason, number),) = final_acks(packets, peer.identifier)
    assert number == 7
    assert is_negative(reason)


@pytest.mark.spec("MQOD-2.5.6-01")
def test_a_receive_waits_for_a_message_a_time_or_a_cancel(manager: mq.QueueManager) -> None:
    orders = manager.create_queue(ORDERS)
    with pytest.raises(QueueNotFound):
        manager.queue(r"private$\nothing").receive(0)
    # A time-out.
    with pytest.raises(ReceiveTimeout):
        orders.receive(0.2)
    found: list[object] = []

    def wait() -> None:
        try:
            found.append(orders.receive(None).body)
        except MsmqError as error:
            found.append(type(error))

    def waits() -> Iterator[None]:
        """Have somebody wait in another thread, for what is done meanwhile."""
        thread = threading.Thread(target=wait)
        thread.start()
        wait_for(lambda: orders.properties().waiting_count == 1)
        assert found == []
        yield
        thread.join(30)
        assert not thread.is_alive()

    # A message, which is removed.
    for _ in waits():
        manager.queue(ORDERS).send("one")
    assert found.pop() == "one"
    assert orders.count() == 0
    # A cancel: the queue is closed under the one who waits.
    for _ in waits():
        orders.close()
    assert found.pop() is OperationCancelled
    orders.send("two")
    assert orders.receive(0).body == "two"


SENDS = """
import sys, openmsmq
with openmsmq.connect(sys.argv[1]) as manager:
    queue = manager.queue(sys.argv[2])
    for number in range(3):
        with manager.transaction() as transaction:
            queue.send(f"order {number}", transaction=transaction)
"""
RECEIVES = """
import sys, openmsmq
with openmsmq.connect(sys.argv[1]) as manager:
    queue = manager.queue(sys.argv[2])
    for _ in range(3):
        with manager.transaction() as transaction:
            print(queue.receive(60, transaction=transaction).body)
"""


def run(program: str, computer: Computer, queue: str) -> str:
    """Run an application from its beginning to its end."""
    line = [sys.executable, "-c", program, computer.qm, queue]
    ran = subprocess.run(
        line, check=True, capture_output=True, text=True, env=environment(), timeout=90
    )
    return ran.stdout


@pytest.mark.spec("MQOD-2.5.8-01")
def test_applications_that_never_run_together_exchange_messages(tmp_path: Path) -> None:
    alpha, beta = neighbours(tmp_path, "ALPHA", "BETA")
    with running(beta), beta.connect() as manager:
        manager.create_queue(LEDGER, transactional=True)
        beta.end()
    with running(alpha):
        # Nobody is there: neither the receiver nor its queue manager.
        run(SENDS, alpha, beta.queue(LEDGER))
        with running(beta):
            with beta.connect() as manager:
                wait_for(lambda: manager.queue(LEDGER).count() == 3)
            alpha.end()
            # Nobody is there any more: neither the sender nor its queue manager.
            assert run(RECEIVES, beta, LEDGER).split("\n") == [
                *(f"order {number}" for number in range(3)),
                "",
            ]
            with beta.connect() as manager:
                assert manager.queue(LEDGER).count() == 0
