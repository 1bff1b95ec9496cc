"""With a directory and without, and what a queue manager does for others. [MQOD 2.1.3.3, 2.1.4]"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from openmsmq.model.errors import NoDirectory
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from tests.runtime.computers import (
    PROGRAM,
    Computer,
    environment,
    neighbours,
    running,
    wait_for,
)
from tests.runtime.http_peer import make_token
from tests.runtime.namespaces import required_laboratory
from tests.runtime.scripted_engine import free_port

ORDERS = r"private$\orders"


@pytest.mark.spec("MQOD-2.1.3.3-01")
def test_in_workgroup_mode_private_queues_and_direct_names_do(tmp_path: Path) -> None:
    alpha, beta = neighbours(tmp_path, "ALPHA", "BETA")
    alpha.configure(f'[hosts]\nBETA = "{beta.address}"\n')
    with running(alpha, beta), alpha.connect() as here, beta.connect() as there:
        for manager in (here, there):
            assert manager.status().directory == "none"
        orders = there.create_queue(ORDERS)
        for name in (rf"DIRECT=OS:BETA\{ORDERS}", beta.queue(ORDERS), rf"BETA\{ORDERS}"):
            here.queue(name).send(name)
            assert orders.receive(30).body == name
        for needs_it in (
            lambda: here.create_queue(r".\orders"),
            lambda: here.queue(r"BETA\orders").send("x"),
            here.find_queues,
        ):
            with pytest.raises(NoDirectory):
                needs_it()


@pytest.mark.spec("MQOD-2.1.3.3-02")
def test_in_a_directory_are_public_queues_topology_and_keys(tmp_path: Path) -> None:
    office, shop = neighbours(
        tmp_path, "OFFICE", "SHOP", ping_port=free_port("127.0.0.2", "127.0.0.3")
    )
    office.options = ("--directory-server",)
    shop.options = ("--directory", office.qm, "--directory-poll-s", "1")
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "sites: {Branch: {}, Default-Site: {queue_managers: {OFFICE: {routing_server: true}}}}\n"
        "links: [{between: [Branch, Default-Site], cost: 7}]\n",
        encoding="utf-8",
    )
    with running(office), running(shop), office.connect() as here, shop.connect() as there:
        assert here.status().directory == "original"
        assert there.status().directory == "copy"
        # Public queues: made in one place, found by name or label in the other.
        there.create_queue(r".\orders", label="Orders of the shop")
        wait_for(here.find_queues)
        (found,) = office.objects("directory", "find-queues", "--label", "Orders of the shop")
        assert found["path_name"] == r"SHOP\orders"
        here.queue(f"PUBLIC={found['identifier']}").send("by its identifier")
        here.queue(r"SHOP\orders").send("by its name")
        got = {there.queue(r".\orders").receive(30).body for _ in range(2)}
        assert got == {"by its identifier", "by its name"}
        # Topology.
        office.command("directory", "apply", str(plan), "--yes")
        wait_for(lambda: there.read_directory().links)
        (link,) = there.read_directory().links.values()
        assert link.cost == 7
        assert len(there.read_directory().sites) == 2
        # Keys: with that of the shop, the office encrypts what only the shop reads.
        wait_for(lambda: office.objects("key", "show", shop.identifier))
        office.command("send", r"SHOP\orders", "--body", "secret", "--encrypt")
        secret = there.queue(r".\orders").receive(30)
        assert (secret.body, secret.privacy > 0) == ("secret", True)


def roles(computer: Computer) -> list[str]:
    """What `openmsmq status` says that a queue manager does for others."""
    line = [*computer.prefix, *PROGRAM, "--qm", str(computer.data / "api.sock"), "status"]

    def printed(*more: str) -> str:
        found = subprocess.run(
            [*line, *more], check=True, capture_output=True, text=True, env=environment()
        )
        return found.stdout

    listed: list[str] = json.loads(printed("--json"))["roles"]
    (shown,) = [text for text in printed().splitlines() if text.split()[:1] == ["roles"]]
    assert shown.split(maxsplit=1)[1] == ", ".join(listed)
    return listed


PLAN = """
sites:
  Default-Site: {queue_managers: {GATE: {}, ROUTER: {}}}
  Far: {}
links: [{between: [Default-Site, Far], cost: 1, gates: [GATE]}]
"""


@pytest.mark.spec("MQOD-2.1.4-01")
def test_each_role_is_switched_on_and_shown(tmp_path: Path) -> None:
    names = ("PLAIN", "MANAGED", "SUPPORT", "OFFICE", "ROUTER", "GATE")
    with required_laboratory("lan") as lab, ExitStack() as started:
        computers: dict[str, Computer] = {}
        for number, name in enumerate(names, 1):
            host = lab.host(name.lower(), lan=f"10.97.9.{number}")
            # Only those that others are to reach listen beyond their own computer.
            beyond = name in ("SUPPORT", "OFFICE", "ROUTER", "GATE")
            computer = Computer(tmp_path, name, "127.0.0.1", 1801, ping_port=3527)
            if beyond:
                computer.address = f"10.97.9.{number}"
            computer.prefix = ("ip", "netns", "exec", host.name)
            computers[name] = computer
            make_token(computer.data)
        computers["PLAIN"].options = ("--no-transfer",)
        managed = computers["MANAGED"]
        accounts = managed.data / ACCOUNTS_FILE
        add_account(accounts, "reader", "correct horse", administrator=False, now_s=1)
        managed.configure("[rpc]\nenabled = true\n")
        office = computers["OFFICE"]
        office.options = ("--directory-server", "--allow-remote-without-token")
        for name in ("ROUTER", "GATE"):
            computers[name].options = ("--directory", office.qm, "--routing-server")
        for computer in computers.values():
            # The later one counts: behind it, commands come in.
            computer.options += ("--api-socket", "api.sock", "--api-port", "1880")
            computer.api_port = 1880
        for name in names:
            computers[name].launch()
            started.callback(computers[name].end)
            computers[name].ready()
        assert roles(computers["PLAIN"]) == ["queue server"]
        exchanges = ["queue server", "message transfer"]
        assert roles(computers["MANAGED"]) == ["queue server", "management server", exchanges[1]]
        supports = ["queue server", "supporting server", "message transfer"]
        assert roles(computers["SUPPORT"]) == supports
        assert roles(office) == [*supports, "directory server"]
        wait_for(lambda: roles(computers["ROUTER"]) == [*supports, "routing server"])
        wait_for(lambda: "routing server" in roles(computers["GATE"]))
        assert "site gate" not in roles(computers["GATE"])
        plan = tmp_path / "plan.yaml"
        plan.write_text(PLAN, encoding="utf-8")
        applied = [*office.prefix, *PROGRAM, "--qm", str(office.data / "api.sock")]
        subprocess.run(
            [*applied, "directory", "apply", str(plan), "--yes"],
            check=True,
            env=environment(),
            capture_output=True,
        )
        wait_for(lambda: roles(computers["GATE"]) == [*supports, "routing server", "site gate"])
        assert roles(computers["ROUTER"]) == [*supports, "routing server"]
