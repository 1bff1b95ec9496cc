"""Nine queue managers in three sites, as processes: the branch office of MQOD 3.5.

They all live in one network namespace, where rules keep apart whom no link joins.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from openmsmq.client.blocking import QueueManager
from openmsmq.directory.plans.changes import changes_for
from openmsmq.directory.plans.plan import read_plan
from openmsmq.model.directory import ObjectKind
from openmsmq.model.identity import Guid
from openmsmq.model.limits import MSMQ_PORT
from tests.runtime.computers import Computer, explanations, running, wait_for
from tests.runtime.namespaces import ip, missing

PLAN = Path(__file__).parents[2] / "examples" / "enterprise.yaml"
FIRST = "HQ-GATE1"
SITES = {"BRANCH": 1, "REGION": 2, "HQ": 3}
GATES = {"BRANCH": (1, 2), "REGION": (1, 2), "HQ": (1, 2)}
HASTY = (
    "TryConnectInterval = 200\nSeqResend13Time = 1\nSeqResend46Time = 1\nSeqResend79Time = 1\n"
    "SeqResend10Time = 2\nSeqMaxAckDelay = 1\n"
)
WITHIN_S = 90.0
_NUMBERS = itertools.count(1)


class Wall:
    """A namespace in which sessions between sites are open only where a link is."""

    def __init__(self) -> None:
        self.name = f"omqe{os.getpid()}x{next(_NUMBERS)}"
        self._priorities: dict[tuple[str, str], list[int]] = {}
        self._next = 10
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")
        # Loopback addresses are looked up first of all; rules must come before that.
        ip("-n", self.name, "rule", "add", "pref", "30000", "lookup", "local")
        ip("-n", self.name, "rule", "del", "pref", "0")
        for one, other in itertools.permutations(SITES, 2):
            self._close(f"127.10.{SITES[one]}.3/32", f"127.10.{SITES[other]}.0/24")
            self._close(f"127.10.{SITES[one]}.0/24", f"127.10.{SITES[other]}.3/32")
        for one, other in itertools.permutations(("BRANCH", "HQ")):
            # Only the second gates have the dial-up line.
            self._close(f"127.10.{SITES[one]}.1/32", f"127.10.{SITES[other]}.0/24")
            self._close(f"127.10.{SITES[one]}.0/24", f"127.10.{SITES[other]}.1/32")

    def _close(self, source: str, target: str) -> int:
        self._next += 1
        for port in ("sport", "dport"):
            ip(
                *("-n", self.name, "rule", "add", "pref", str(self._next), "from", source),
                *("to", target, "ipproto", "tcp", port, str(MSMQ_PORT), "unreachable"),
            )
        return self._next

    def cut(self, one: str, other: str) -> None:
        """Let a link fail; who is connected over it hears nothing any more."""
        self._priorities[one, other] = [
            self._close(f"127.10.{SITES[here]}.0/24", f"127.10.{SITES[there]}.0/24")
            for here, there in itertools.permutations((one, other))
        ]

    def mend(self, one: str, other: str) -> None:
        for priority in self._priorities.pop((one, other)):
            for _ in range(2):
                ip("-n", self.name, "rule", "del", "pref", str(priority))

    def end(self) -> None:
        ip("netns", "del", self.name)


class Member(Computer):
    """A queue manager behind the wall; applications reach it by its socket."""

    def __init__(self, folder: Path, wall: Wall, name: str, address: str) -> None:
        options = ["--api-socket", "api.sock", "--api-port", "1802", "--directory-poll-s", "2"]
        if name in (FIRST, "BRANCH-GATE1", "REGION-GATE1"):
            options.append("--directory-server")
        if name != FIRST:
            for server in ("127.10.3.1", "127.10.1.1", "127.10.2.1"):
                options += ["--directory", server] if server != address else []
        super().__init__(folder, name, address, MSMQ_PORT, parameters=HASTY, options=tuple(options))
        self.prefix = ("ip", "netns", "exec", wall.name)

    def configure(self, tables: str) -> None:
        """Leave the ports as they are: nobody else is behind the wall."""
        self._file.write_text(f"[parameters]\n{self._parameters}\n{tables}", encoding="utf-8")

    @property
    def qm(self) -> str:
        return str(self.data / "api.sock")


class Enterprise:
    """All of them."""

    def __init__(self, folder: Path, wall: Wall) -> None:
        self.wall = wall
        self.members: dict[str, Member] = {}
        for site, number in SITES.items():
            for last, name in enumerate((f"{site}-GATE1", f"{site}-GATE2", f"{site}1"), 1):
                address = f"127.10.{number}.{last}"
                self.members[name] = Member(folder, wall, name, address)

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Start the directory, describe the enterprise, start the others."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(running(self[FIRST]))
            guids = itertools.count(1)
            with self[FIRST].connect() as manager:
                plan = read_plan(PLAN.read_text(encoding="utf-8"), PLAN.name)
                image = manager.read_directory()
                changes = changes_for(
                    plan, image, lambda: Guid(next(guids).to_bytes(16, "big")), prune=False
                )
                manager.write_directory(changes)
            stack.enter_context(running(*(self[name] for name in self.members if name != FIRST)))
            for member in self.members.values():
                with member.connect() as manager:
                    manager.refresh_directory()
            yield

    def explain(self) -> list[str]:
        found: list[str] = []
        for member in self.members.values():
            if member.is_running:
                with member.connect() as manager:
                    found += explanations(manager)
        return found


@pytest.fixture
def enterprise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enterprise]:
    if reason := missing():
        pytest.skip(reason)
    # The path of a Unix socket is short.
    folder = tmp_path_factory.mktemp("e")
    wall = Wall()
    try:
        made = Enterprise(folder, wall)
        with made.running():
            yield made
    except subprocess.CalledProcessError as error:
        raise AssertionError(error.stderr) from None
    finally:
        wall.end()


def send(manager: QueueManager, first: int, last: int) -> None:
    queue = manager.queue(r"HQ1\sales")
    for number in range(first, last + 1):
        with manager.transaction() as work:
            queue.send(f"sale {number}", transaction=work)


def sales(first: int, last: int) -> list[str]:
    return [f"sale {number}" for number in range(first, last + 1)]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_sales_of_a_branch_reach_headquarters_whatever_fails(enterprise: Enterprise) -> None:
    with enterprise["BRANCH1"].connect() as branch, enterprise["HQ1"].connect() as hq:
        queue = hq.queue(r".\sales")

        def arrived(count: int) -> None:
            wait_for(lambda: queue.count() >= count, WITHIN_S, enterprise.explain)

        # The directory has the queue, so its owner has it too.
        assert [found.path_name for found in branch.find_queues(label="sales of all branches")] == [
            r"HQ1\sales"
        ]
        send(branch, 1, 50)
        arrived(50)
        hops = {message.hop_count for message in queue.peek_many(50)}
        assert hops == {3}, "over a gate of the branch, one of the region, one of headquarters"

        enterprise.wall.cut("BRANCH", "REGION")
        send(branch, 51, 80)
        arrived(80)
        enterprise.wall.mend("BRANCH", "REGION")

        for gate in ("BRANCH-GATE1", "BRANCH-GATE2", "REGION-GATE1", "REGION-GATE2", "HQ-GATE2"):
            first = queue.count() + 1
            send(branch, first, first + 9)
            enterprise[gate].kill()
            send(branch, first + 10, first + 19)
            enterprise[gate].start()
            arrived(first + 19)

        # The original of the directory is away: names and routes are known all the same.
        first = queue.count() + 1
        enterprise[FIRST].kill()
        send(branch, first, first + 9)
        arrived(first + 9)
        enterprise[FIRST].start()
        wait_for(lambda: not branch.outgoing_queue(r"HQ1\sales").message_count, WITHIN_S)
        total = queue.count()
        assert [message.body for message in queue.peek_many(1000)] == sales(1, total)
        assert total == first + 9


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_changes_in_the_directory_reaches_its_owner(enterprise: Enterprise) -> None:
    with enterprise["BRANCH1"].connect() as branch, enterprise["HQ1"].connect() as hq:
        (published,) = branch.find_queues(label="sales of all branches")
        changed = msgspec.structs.replace(published, label="Sales and returns")
        branch.write_directory([changed])
        queue = hq.queue(r".\sales")
        wait_for(lambda: queue.properties().label == "Sales and returns")
        text = enterprise["REGION1"].command("route", "show", "BRANCH1", "HQ1")
        assert "REGION-GATE" in text
        assert enterprise["REGION1"].objects("directory", "list", ObjectKind.SITE.value)
