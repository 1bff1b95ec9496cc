"""With a directory and without, and what a queue manager does for others. [MQOD 2.1.3.3, 2.1.4]"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import openmsmq
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


def printed(computer: Computer, *words: str) -> str:
    """Run a command beside a queue manager; give what it says."""
    line = [*computer.prefix, *PROGRAM, "--qm", str(computer.data / "api.sock"), *words]
    found = subprocess.run(line, check=True, capture_output=True, text=True, env=environment())
    return found.stdout


def roles(computer: Computer) -> list[str]:
    """What status says that a queue manager does for others."""
    with openmsmq.connect(str(computer.data / "api.sock")) as manager:
        return manager.status().roles


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
            computer.api_port = 1880
            computer.data.mkdir(mode=0o700)
            computers[name] = computer
        computers["PLAIN"].options = ("--no-transfer",)
        managed = computers["MANAGED"]
        accounts = managed.data / ACCOUNTS_FILE
        add_account(accounts, "reader", "correct horse", administrator=False, now_s=1)
        managed.configure("[rpc]\nenabled = true\n")
        office = computers["OFFICE"]
        office.options = ("--directory-server",)
        for name in ("ROUTER", "GATE"):
            computers[name].options = ("--directory", office.qm, "--routing-server")
        # Whoever joins a directory changes it, so it has to show who it is.
        token = tmp_path / "token"
        token.write_text("s3cret", encoding="utf-8")
        for computer in computers.values():
            computer.options += ("--api-socket", "api.sock", "--token-file", str(token))
            computer.options += ("--directory-token-file", str(token))
        for alone in (["OFFICE"], [name for name in names if name != "OFFICE"]):
            for name in alone:
                computers[name].launch()
                started.callback(computers[name].end)
            for name in alone:
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
        printed(office, "directory", "apply", str(plan), "--yes")
        gates = [*supports, "routing server", "site gate"]
        wait_for(lambda: roles(computers["GATE"]) == gates)
        # The command says the same, to people and to programs.
        assert json.loads(printed(computers["GATE"], "status", "--json"))["roles"] == gates
        assert f" {', '.join(gates)}\n" in printed(computers["GATE"], "status")
        assert roles(computers["ROUTER"]) == [*supports, "routing server"]
