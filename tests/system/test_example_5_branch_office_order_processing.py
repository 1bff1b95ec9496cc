"""Branch office order processing, step by step with the commands. [MQOD 3.5]

A branch sends its sales, encrypted, to the company's headquarters. They go over two regional
offices, which cannot read them, and over a dearer way when one of these is away.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.capture.frames import read_frames
from openmsmq.model.errors import NoDirectory
from openmsmq.wire.packets import UserMessage, decode
from tests.runtime.computers import Computer, neighbours, running, wait_for
from tests.runtime.scripted_engine import free_port
from tests.strategies.captures import said_in

SALES = r"HQ\sales"
PLAN = """
sites:
  Branch: {{queue_managers: {{BRANCH: {{routing_server: true, addresses: [{BRANCH}]}}}}}}
  Region1: {{queue_managers: {{REGION1: {{routing_server: true, addresses: [{REGION1}]}}}}}}
  Region2: {{queue_managers: {{REGION2: {{routing_server: true, addresses: [{REGION2}]}}}}}}
  Headquarters:
    queue_managers:
      HQ:
        routing_server: true
        addresses: [{HQ}]
        directory_server: primary_enterprise_controller
        queues: {{sales: {{label: Sales data}}}}
links:
  - {{between: [Branch, Region1], cost: 1, gates: [BRANCH, REGION1]}}
  - {{between: [Region1, Region2], cost: 1, gates: [REGION1, REGION2]}}
  - {{between: [Region2, Headquarters], cost: 1, gates: [REGION2, HQ]}}
  - {{between: [Region1, Headquarters], cost: 9, gates: [REGION1, HQ]}}
"""


def way(computer: Computer) -> list[str]:
    """Return the computers on the way to headquarters, as a computer computes it."""
    try:
        with computer.connect() as manager:
            known = manager.read_directory()
    except NoDirectory:
        # It has only just started.
        return []
    if known.manager_named("BRANCH") is None or not known.links:
        return []
    (route,) = computer.objects("route", "show", "BRANCH", "HQ")
    return [str(step["manager"]) for step in route["steps"]]


def waiting_at(computer: Computer) -> int:
    """How many sales wait at a computer; what tells the dead one of changes does not count."""
    return sum(
        each["message_count"]
        for each in computer.objects("outgoing", "list")
        if each["format_name"].startswith("PUBLIC=")
    )


def bodies_passing(capture: Path, port: int) -> list[bytes]:
    with capture.open("rb") as file:
        items = said_in(read_frames(file.read), port)
    packets = [decode(item.data) for item in items]
    return [each.properties.body for each in packets if isinstance(each, UserMessage)]


@pytest.mark.spec("MQOD-3.5-01", "MQOD-2.1.3.3-03")
def test_the_sales_of_a_branch_reach_headquarters_and_nobody_else_reads_them(
    tmp_path: Path,
) -> None:
    addresses = [f"127.0.0.{number}" for number in range(2, 6)]
    names = ("BRANCH", "REGION1", "REGION2", "HQ")
    found = neighbours(tmp_path, *names, ping_port=free_port(*addresses))
    branch, region1, region2, hq = found
    captures = {each.name: tmp_path / f"{each.name}.pcapng" for each in (region1, region2)}
    hq.options = ("--directory-server", "--routing-server")
    for computer in (branch, region1, region2):
        computer.options = ("--directory", hq.qm, "--directory-poll-s", "1", "--routing-server")
    for computer in (region1, region2):
        computer.options += ("--capture", str(captures[computer.name]))
    with running(hq):
        # Initially: the directory knows computers, sites, gates and links, and a queue is there.
        plan = tmp_path / "plan.yaml"
        plan.write_text(PLAN.format(**{each.name: each.address for each in found}))
        hq.command("directory", "apply", str(plan), "--yes")
        with running(branch, region1, region2):
            # 1-6: each server computes the cheapest way from the directory.
            cheapest = ["BRANCH", "REGION1", "REGION2", "HQ"]
            for computer in (branch, region1, region2):
                wait_for(lambda computer=computer: way(computer) == cheapest)

            # 7-9: the branch encrypts for the key of headquarters, which the directory has.
            branch.command("send", SALES, "--body", "sold: 17 chairs", "--encrypt", "--recoverable")

            # 10-13: it goes from gate to gate.
            (arrived,) = hq.objects("peek", SALES, "--timeout", "60")
            assert arrived["hop_count"] == 2

            # 14: headquarters alone decrypts it.
            (received,) = hq.objects("receive", SALES)
            assert received["text"] == "sold: 17 chairs"
            assert received["privacy"] == 5
            assert received["source_qm"] == branch.identifier

            # 11: when the transfer fails on this way, another one is taken.
            region2.kill()
            branch.command("send", SALES, "--body", "sold: 4 tables", "--encrypt", "--recoverable")
            (received,) = hq.objects("receive", SALES, "--timeout", "90")
            assert (received["text"], received["hop_count"]) == ("sold: 4 tables", 1)

            # In the end headquarters has all, and nothing is left on the way.
            for computer in (branch, region1):
                wait_for(
                    lambda computer=computer: waiting_at(computer) == 0,
                    20,
                    lambda: [each.objects("outgoing", "list") for each in (branch, region1)],
                )
            assert region1.end() == 0
    passed = bodies_passing(captures["REGION1"], region1.session_port)
    assert passed
    assert not any(b"sold" in body or "sold".encode("utf-16-le") in body for body in passed)
