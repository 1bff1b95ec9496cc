"""A public queue is changed from another computer, step by step with the commands. [MQOD 3.3]

An administrator at CLIENT changes a queue of SERVER. The directory, which is at OFFICE, has the new
properties first; SERVER hears of it from both, and its queue becomes what the directory says.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.capture.frames import read_frames
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.signatures.signatures import check_signature
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.notifications import (
    NOTIFY_QUEUE_NUMBER,
    Command,
    DirectoryNotification,
    Event,
    ManagerNotification,
)
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.packets import UserMessage, decode
from tests.runtime.computers import Computer, neighbours, running, wait_for
from tests.runtime.scripted_engine import free_port
from tests.strategies.captures import said_in

ENTERPRISE = """
enterprise:
  name: Example
  notify_old_managers: true
"""
CHANGE = """
sites:
  Default-Site:
    queue_managers:
      SERVER:
        queues:
          orders:
            label: Orders of the north
            quota_kb: 512
            journaling: true
"""


def properties(computer: Computer, name: str) -> tuple[object, ...]:
    (found,) = computer.objects("queue", "show", name)
    return found["label"], found["quota_kb"], found["journaling"]


def notified(capture: Path, port: int) -> list[UserMessage]:
    """Return the change notifications that went over the network."""
    with capture.open("rb") as file:
        items = said_in(read_frames(file.read), port)
    packets = [decode(item.data) for item in items]
    return [
        packet
        for packet in packets
        if isinstance(packet, UserMessage)
        and packet.user.destination == PrivateOnDestination(NOTIFY_QUEUE_NUMBER)
    ]


def apply(computer: Computer, folder: Path, plan: str) -> None:
    file = folder / "plan.yaml"
    file.write_text(plan, encoding="utf-8")
    computer.command("directory", "apply", str(file), "--yes")


@pytest.mark.spec("MQOD-3.3-01")
def test_a_public_queue_becomes_what_the_directory_says(tmp_path: Path) -> None:
    pings = free_port("127.0.0.2", "127.0.0.3", "127.0.0.4")
    office, client, server = neighbours(tmp_path, "OFFICE", "CLIENT", "SERVER", ping_port=pings)
    capture = tmp_path / "server.pcapng"
    office.options = ("--directory-server",)
    client.options = ("--directory", office.qm)
    server.options = ("--directory", office.qm, "--capture", str(capture))
    with running(office), running(client, server):
        # Initially: the queue is there, the directory has it, and the client knows its identifier.
        apply(office, tmp_path, ENTERPRISE)
        server.command("queue", "create", r".\orders", "--label", "Orders")
        wait_for(lambda: client.objects("directory", "find-queues"))
        (published,) = client.objects("directory", "find-queues")
        identifier = str(published["identifier"])
        wait_for(lambda: server.identifier in str(office.objects("directory", "list", "manager")))

        # 1-3: the administrator changes it, and the directory has the new properties.
        apply(client, tmp_path, CHANGE)
        (there,) = office.objects("directory", "get", "queue", identifier)
        assert (there["label"], there["quota_kb"]) == ("Orders of the north", 512)

        # 4-7: the server is told, reads the directory, and its queue is so.
        changed = ("Orders of the north", 512, True)
        wait_for(lambda: properties(server, r".\orders") == changed)

        # In the end the directory and the queue are the same, and the queue is ready.
        (there,) = server.objects("directory", "get", "queue", identifier)
        assert (there["label"], there["quota_kb"], there["journaling"]) == changed
        server.command("send", r".\orders", "--body", "one")
        (received,) = server.objects("receive", r".\orders")
        assert received["text"] == "one"
        with office.connect() as manager:
            managers = manager.read_directory().managers
            keys = {name: each.signing_keys for name, each in managers.items()}
        assert server.end() == 0

    told: dict[str, list[object]] = {office.identifier: [], client.identifier: []}
    for message in notified(capture, server.session_port):
        # Whoever sends one signs it, with the key that the directory has.
        certificate = check_signature(message, SecurityPolicy()).certificate
        assert [certificate] == [key.blob for key in keys[message.user.source]]
        told[str(message.user.source)].append(notifications.decode(message.properties.body))
    # 4: the client's queue manager says which object is to be read again.
    (by_client,) = told[client.identifier]
    assert isinstance(by_client, ManagerNotification)
    assert (by_client.event, str(by_client.object_id)) == (Event.QUEUE_CHANGED, identifier)
    # 6: the server of the directory says what has changed.
    values = [each for each in told[office.identifier] if isinstance(each, DirectoryNotification)]
    (update,) = values[-1].updates
    assert (update.command, str(update.target)) == (Command.CHANGE, identifier)
    assert {entry.id: entry.value for entry in update.properties}[105] == 512
