"""Business to business across heterogeneous systems, step by step. [MQOD 3.9]

A customer asks a manufacturer how far his order is. The manufacturer has a message system that is
not MSMQ. On the computer between them, the messaging gateway, a connector translates: a program of
its own that takes messages from a connector queue to the other system, and brings its answers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.computers import Computer, environment, neighbours, running, wait_for
from tests.runtime.scripted_engine import free_port

HERE = Path(__file__).parent
CONNECTOR = "5a3c7c1e-8b0d-4f7a-9c41-6f2d8e0b9a77"
CONNECTOR_QUEUE = f"CONNECTOR={CONNECTOR};XACTONLY"
STATUS = r"MANUFACTURER\status"
RESPONSES = r"private$\responses"
PLAN = """
sites:
  Default-Site:
    queue_managers:
      GATEWAY: {routing_server: true}
      MANUFACTURER:
        foreign: true
        in_routing_servers: [GATEWAY]
        queues: {status: {transactional: true, label: Status report requests}}
"""


@contextmanager
def program(name: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of this folder."""
    line = [sys.executable, str(HERE / name), *arguments]
    with (
        log.open("wb") as output,
        subprocess.Popen(line, stdout=output, stderr=output, env=environment()) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def count(computer: Computer, name: str) -> int:
    """How many messages are in a queue; none in one that is not there yet."""
    found = {each["path_name"]: each["message_count"] for each in computer.objects("queue", "list")}
    return int(found.get(name, 0))


def identifiers(computer: Computer) -> list[str]:
    """What the directory has under the name of the foreign queue, as a computer knows it."""
    found = computer.objects("directory", "find-queues")
    return [each["identifier"] for each in found if each["path_name"] == STATUS]


def outgoing(computer: Computer) -> list[str]:
    """Where messages wait to go, or to be received; queues that are empty do not count."""
    return [
        each["format_name"]
        for each in computer.objects("outgoing", "list")
        if each["message_count"] or each["unread_count"]
    ]


@pytest.mark.spec("MQOD-3.9-01")
def test_a_status_report_comes_from_a_system_that_is_not_msmq(tmp_path: Path) -> None:
    pings = free_port("127.0.0.2", "127.0.0.3", "127.0.0.4")
    office, customer, gateway = neighbours(
        tmp_path, "OFFICE", "CUSTOMER", "GATEWAY", ping_port=pings
    )
    office.options = ("--directory-server",)
    for member in (customer, gateway):
        member.options = ("--directory", office.qm, "--directory-poll-s", "1")
    gateway.options += ("--routing-server",)
    gateway.configure(
        f'[connectors]\nMANUFACTURER = "{CONNECTOR}"\n[hosts]\nCUSTOMER = "{customer.address}"'
    )
    far, at = "127.0.0.5", str(free_port("127.0.0.5"))
    said = tmp_path / "manufacturer.log"
    with running(office), running(customer, gateway):
        # Initially: the directory has an object for the foreign queue, and the way to it ends at
        # the gateway; the customer's server has a response queue.
        plan = tmp_path / "plan.yaml"
        plan.write_text(PLAN, encoding="utf-8")
        wait_for(lambda: "GATEWAY" in str(office.objects("directory", "list", "manager")))
        office.command("directory", "apply", str(plan), "--yes")
        customer.command("queue", "create", RESPONSES, "--transactional")
        wait_for(lambda: identifiers(customer) and identifiers(gateway))

        with program("manufacturer.py", far, at, log=said), customer.connect() as software:
            wait_for(lambda: said.read_text() == "ready\n")

            # 1: the supply-chain management software sends a request in a transaction.
            software.set_online(False)
            with software.transaction() as transaction:
                request = software.queue(STATUS).send(
                    "order 4711",
                    transaction=transaction,
                    response_queue=rf"DIRECT=OS:CUSTOMER\{RESPONSES}",
                )

            # 2-3: its queue manager has found the queue in the directory, and the way to it.
            (foreign,) = identifiers(customer)
            assert outgoing(customer) == [f"PUBLIC={foreign}"]
            (route,) = customer.objects("route", "show", "CUSTOMER", "MANUFACTURER")
            way = [step["manager"] for step in route["steps"]]
            assert way == ["CUSTOMER", "GATEWAY", "MANUFACTURER"]

            # 4-5: the message goes to the gateway, and waits there in the connector queue.
            software.set_online(True)
            wait_for(lambda: count(gateway, CONNECTOR_QUEUE) == 1, otherwise=lambda: customer.log)
            wait_for(lambda: outgoing(customer) == [])
            assert said.read_text() == "ready\n"

            # 6: the connector application takes it to the manufacturer's system.
            errors = tmp_path / "connector.log"
            with program("connector.py", gateway.qm, CONNECTOR, far, at, log=errors):
                wait_for(lambda: "STATUS order 4711" in said.read_text(), 30, errors.read_text)

                # 7-10: it brings the response to the gateway's queue manager, which transfers it
                # to the response queue on the customer's server.
                # 11: the software receives it, and has its status report.
                with software.transaction() as transaction:
                    report = software.queue(RESPONSES).receive(30, transaction=transaction)
                assert report.body == "order 4711: on the assembly line"
                assert report.correlation_id == request.to_bytes()
                assert str(report.source_qm) == gateway.identifier

                # In the end everything is as in the beginning, and was said once.
                assert count(customer, RESPONSES) == 0
                wait_for(lambda: count(gateway, CONNECTOR_QUEUE) == 0)
                for member in (customer, gateway):
                    wait_for(
                        lambda member=member: outgoing(member) == [],
                        20,
                        lambda member=member: member.objects("outgoing", "list"),
                    )
            assert said.read_text() == "ready\nSTATUS order 4711\n"
