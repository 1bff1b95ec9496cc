"""What fails, and what the system makes of it. [MQOD 2.7]

The directory has its own file, `tests/runtime/test_directory_servers.py` (2.7.4 and 2.7.6).
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.model.errors import InsufficientResources
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from openmsmq.storage.layout import BASE_NAME, JOURNAL_NAMES
from openmsmq.xa import Branch
from tests.runtime.computers import Computer, environment, neighbours, running, wait_for
from tests.runtime.disks import Disk, mounted_disk
from tests.runtime.namespaces import Host, Laboratory, required_laboratory
from tests.runtime.test_server_process import refused, serving
from tests.runtime.test_store_identity import blank, store_check
from tests.transfer.network import ALPHA, BETA, Network

PASSWORD = "correct horse"
ORDERS, LEDGER = r"private$\orders", r"private$\ledger"
MOMENTS = [(count, 0) for count in range(9)] + [(8, ms) for ms in (1, 100, 600, 2_000, 30_000)]
"""After how many events of the network, and how long behind those, a queue manager crashes.

The messages go over in seven; then come acknowledgments, in their time."""


def there(name: str) -> str:
    return rf"DIRECT=TCP:{BETA}\{name}"


# 2.7.1: restarts.


@pytest.mark.spec("MQOD-2.7.1-01")
@pytest.mark.parametrize("who", ["sender", "receiver", "both"])
def test_after_a_crash_at_any_moment_messages_are_as_their_kind_says(who: str) -> None:
    for moment in MOMENTS:
        network = Network()
        beta = network.manager("BETA", BETA).with_queues(ORDERS, LEDGER)
        alpha = network.manager("ALPHA", ALPHA).with_queues(ORDERS, LEDGER)
        for sender, target in ((alpha, there), (beta, str)):
            sender.send(target(ORDERS), b"express", recoverable=False)
            sender.send(target(ORDERS), b"recoverable")
            sender.send(target(LEDGER), b"transactional", transactional=True)
        count, ms = moment
        network.step(count)
        if ms:
            network.run(ms)
        crashed = {"sender": [alpha], "receiver": [beta], "both": [alpha, beta]}[who]
        for computer in crashed:
            computer.crash()
        network.run(600_000)
        # Of either kind one came from afar and one was local; they are there once, each.
        assert beta.bodies(LEDGER) == [b"transactional"] * 2, moment
        found = beta.bodies(ORDERS)
        assert found.count(b"recoverable") == 2, moment
        assert not any(queue.message_count for queue in alpha.outgoing()), moment
        # Express messages of the receiver are gone, but for one that was sent behind its crash.
        express = found.count(b"express")
        if who != "sender":
            assert express <= 1, moment
        if who == "both":
            # Nobody had it who could send it again.
            assert express == 0, moment


# 2.7.2: the network.


def away(host: Host, *words: str) -> subprocess.CompletedProcess[str]:
    return host.command(sys.executable, "-m", "openmsmq.cli.app", *words, env=environment())


class Linked:
    """A computer in a network of its own, whose cable can be pulled."""

    def __init__(self, lab: Laboratory, folder: Path, name: str, number: int, tables: str) -> None:
        self.address = f"10.97.7.{number}"
        self.host = lab.host(name.lower(), lan=self.address)
        self.computer = Computer(folder, name, "127.0.0.1", 1801, tables=tables)
        self.computer.prefix = ("ip", "netns", "exec", self.host.name)
        self.computer.options = ("--address", self.address, "--allow-remote-without-token")
        self.computer.options += ("--api-socket", "api.sock")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return away(self.host, "--qm", str(self.computer.data / "api.sock"), *words)

    def done(self, *words: str) -> str:
        found = self.command(*words)
        assert found.returncode == 0, found.stderr
        return found.stdout


@pytest.fixture
def cable(tmp_path: Path) -> Iterator[tuple[Laboratory, Linked, Linked]]:
    """NEAR, who reads queues of FAR and sends to them, and the network between the two."""
    with required_laboratory("lan") as lab:
        far = Linked(lab, tmp_path, "FAR", 2, "[rpc]\nenabled = true\n")
        near = Linked(
            lab,
            tmp_path,
            "NEAR",
            1,
            f'[rpc]\nremote_hosts = ["{far.address}"]\nremote_user = "reader"\n'
            'remote_password_file = "password"\nremote_callers = "everybody"\n',
        )
        for each in (near, far):
            each.computer.data.mkdir()
        add_account(
            far.computer.data / ACCOUNTS_FILE,
            "reader",
            PASSWORD,
            administrator=True,
            now_s=1,
        )
        secret = near.computer.data / "password"
        secret.write_text(f"{PASSWORD}\n")
        secret.chmod(0o600)
        with running(far.computer, near.computer):
            yield lab, near, far


@pytest.mark.spec("MQOD-2.7.2-01")
def test_while_the_network_is_away_messages_wait_and_calls_fail(
    cable: tuple[Laboratory, Linked, Linked],
) -> None:
    lab, near, far = cable
    queue = rf"DIRECT=TCP:{far.address}\{ORDERS}"
    far.done("queue", "create", ORDERS)
    near.done("send", queue, "--body", "one", "--recoverable")
    assert "one" in near.done("receive", queue, "--timeout", "30")
    lab.cut("far", "lan")
    # What does not wait for anybody is taken, and waits itself.
    near.done("send", queue, "--body", "two", "--recoverable")
    # What needs the other one at once fails, and says why.
    failed = near.command("receive", queue, "--timeout", "0")
    assert failed.returncode != 0
    assert far.address in failed.stderr
    lab.mend("far", "lan")
    # Nobody does anything: it goes on.
    assert "two" in far.done("receive", ORDERS, "--timeout", "90")
    near.done("send", queue, "--body", "three", "--recoverable")
    assert "three" in near.done("receive", queue, "--timeout", "60")


# 2.7.3: the coordinator of external transactions.

COORDINATOR = """
import sys, time, openmsmq
from openmsmq.xa import Branch, Xid
with openmsmq.connect(sys.argv[1]) as manager:
    for name in sys.argv[2:]:
        branch = Branch(manager)
        branch.tpc_begin(Xid(7, name, "queues"))
        order = manager.queue(r"private$\\ledger").receive(0, transaction=branch.transaction)
        manager.queue(r"private$\\done").send(order.body, transaction=branch.transaction)
        if name.startswith("prepared"):
            branch.tpc_prepare()
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.spec("MQOD-2.7.3-01")
def test_without_its_coordinator_a_queue_manager_starts_and_runs(tmp_path: Path) -> None:
    (shop,) = neighbours(tmp_path, "SHOP")
    # There is none, and never was one: it starts.
    with running(shop), shop.connect() as manager:
        ledger = manager.create_queue(LEDGER, transactional=True)
        done = manager.create_queue(r"private$\done", transactional=True)
        plain = manager.create_queue(ORDERS)
        ledger.send_many(["one", "two", "three"], transaction=mq.SINGLE_MESSAGE)
        # One comes, and dies in the middle of its transactions.
        command = [sys.executable, "-c", COORDINATOR, shop.qm, "pending", "prepared"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as coordinator:
            assert coordinator.stdout is not None
            assert coordinator.stdout.readline() == b"ready\n"
            assert [message.body for message in ledger.browse()] == ["three"]
            coordinator.kill()
        # What it had not prepared is undone; what it had prepared is its own to end.
        wait_for(lambda: [message.body for message in ledger.browse()] == ["one", "three"])
        assert list(done.browse()) == []
        # Everything else goes on, transactions of the queue manager's own too.
        plain.send("plain")
        assert plain.receive(0).body == "plain"
        with manager.transaction() as transaction:
            done.send(ledger.receive(0, transaction=transaction).body, transaction=transaction)
        # So it is behind a restart.
        shop.kill()
        shop.start()
        assert [message.body for message in ledger.browse()] == ["three"]
        assert [message.body for message in done.browse()] == ["one"]
        # The coordinator comes back, and ends what it has begun; the next one is as ever.
        again = Branch(manager)
        (xid,) = again.tpc_recover()
        assert xid.global_id == "prepared"
        again.tpc_commit(xid)
        assert [message.body for message in done.browse()] == ["one", "two"]
        again.tpc_begin(xid)
        order = ledger.receive(0, transaction=again.transaction)
        done.send(order.body, transaction=again.transaction)
        again.tpc_prepare()
        again.tpc_commit()
        assert [message.body for message in done.browse()] == ["one", "two", "three"]


# 2.7.5: the disk.


def fill(manager: mq.QueueManager, *queues: mq.Queue) -> None:
    """Send to all of them in one transaction, again and again, until something refuses it."""
    for _ in range(10_000):
        with manager.transaction() as transaction:
            for queue in queues:
                queue.send(b"y" * 100_000, recoverable=True, transaction=transaction)


@pytest.mark.spec("MQOD-2.7.5-01")
def test_on_a_full_disk_an_operation_fails_as_a_whole_and_the_rest_goes_on(
    disk: Disk, tmp_path: Path
) -> None:
    del tmp_path
    data = disk.path / "data"
    with serving(data) as server:
        with mq.connect(f"{server.host}:{server.port}") as manager:
            left = manager.create_queue(r"private$\left", transactional=True)
            right = manager.create_queue(r"private$\right", transactional=True)
            old = manager.create_queue(ORDERS)
            old.send_many([b"x" * 100_000] * 40, recoverable=True)
            with pytest.raises(InsufficientResources, match="disk"):
                fill(manager, left, right)
            done = left.count()
            assert done > 1
            # The transaction that found no room left nothing behind, in either queue.
            assert left.count() == right.count() == done
            # What needs no room works, and makes some.
            assert old.peek(0).body_bytes == b"x" * 100_000
            assert manager.status().store_problem
            while old.count():
                old.receive_many(10, 0)
            for queue in (left, right):
                queue.purge()
            old.send(b"there is room again", recoverable=True)
            assert manager.status().store_problem == ""
        assert server.end(signal.SIGKILL)[0] == -signal.SIGKILL
    with serving(data) as server, mq.connect(f"{server.host}:{server.port}") as manager:
        counts = {queue.path_name: queue.message_count for queue in manager.queues()}
        assert counts == {r"private$\left": 0, r"private$\right": 0, ORDERS: 1}
    assert store_check(data).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted_disk(tmp_path, 96) as mounted:
        yield mounted


def contents(folder: Path) -> dict[str, str]:
    """What is in every file of a folder, in short; who has it open does not count."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def journals(data: Path) -> list[bytes]:
    return [(data / "store" / name).read_bytes() for name in JOURNAL_NAMES]


def last_difference(old: bytes, new: bytes) -> int:
    """Where two files differ for the last time."""
    end = len(new)
    while old[end - 4096 : end] == new[end - 4096 : end]:
        end -= 4096
    return max(place for place in range(end - 4096, end) if old[place] != new[place])


@pytest.mark.spec("MQOD-2.7.5-02")
def test_a_store_is_repaired_if_it_can_be_and_left_alone_if_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    # The power went off in the middle of a write: half of a new queue is on the disk.
    with serving(data) as server:
        with mq.connect(f"{server.host}:{server.port}") as manager:
            manager.create_queue(ORDERS).send("kept", recoverable=True)
            before = journals(data)
            manager.create_queue(LEDGER, transactional=True)
            after = journals(data)
        server.end(signal.SIGKILL)
    for name, old, new in zip(JOURNAL_NAMES, before, after, strict=True):
        if old != new:
            # All of the new record but its last bytes.
            cut = last_difference(old, new) - 5
            (data / "store" / name).write_bytes(new[:cut] + old[cut:])
    # It is as if nobody had begun to make it, and can be made again.
    with serving(data) as server:
        with mq.connect(f"{server.host}:{server.port}") as manager:
            assert [queue.path_name for queue in manager.queues()] == [ORDERS]
            assert manager.queue(ORDERS).peek(0).body == "kept"
            ledger = manager.create_queue(LEDGER, transactional=True)
            ledger.send("x", transaction=mq.SINGLE_MESSAGE)
        server.end(signal.SIGTERM)
    assert store_check(data).returncode == 0
    # A page that was written long ago is wrong: nobody can repair that.
    damaged = 0
    for page in range(2, 8):
        content = blank(data / "store" / BASE_NAME, page)
        if store_check(data).returncode:
            found = contents(data)
            line = refused("--data", str(data), "--name", "ALPHA")
            assert f"is damaged: page {page} " in line
            assert "restore the directory from a backup" in line
            assert contents(data) == found
            damaged += 1
        (data / "store" / BASE_NAME).write_bytes(content)
    assert damaged >= 2
    with serving(data) as server, mq.connect(f"{server.host}:{server.port}") as manager:
        assert manager.queue(ORDERS).receive(0).body == "kept"
