"""The world of a history: two queue managers that can be killed and put back, and what was sent.

A queue manager is a real process with its store on disk. It is forked from a process that has
imported everything, so that it starts in a fraction of a second. A back-up is made as
docs/guides/operate.md says: of a stopped queue manager, or as a snapshot of one moment.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

import openmsmq as mq
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.settings import API_PORT
from openmsmq.model.errors import QueueNotFound
from tests.spark.exactly_once.harness import STARTS_WITHIN_S

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["openmsmq.cli.app", "openmsmq.runtime.service", "pydantic.root_model", "lmdb"]
)

EVERYTHING = 1 << 50
"""Above all arrival numbers of a history."""


def _serve(arguments: list[str], ready: Connection) -> None:
    """Be a queue manager."""
    from openmsmq.cli.app import main

    sys.argv = ["openmsmq", *arguments]
    with open(os.dup(ready.fileno()), "w") as sys.stdout:
        main()


class Store:
    """A queue manager, its data, and copies of them."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self.address = _free_address()
        self.backups = 0
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def spellings(self) -> list[str]:
        """Return texts that all mean this queue manager."""
        a, b, c, d = self.address.split(".")
        return [self.address, f"{self.address}:{API_PORT}", f"{a}.{b}.{int(c) * 256 + int(d)}"]

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        mine, its = _CONTEXT.Pipe(duplex=False)
        arguments = ["serve", "--name", self.name, "--address", self.address]
        arguments += ["--data", str(self.data), "--log-level", "error"]
        self.process = _CONTEXT.Process(target=_serve, args=(arguments, its), daemon=True)
        self.process.start()
        its.close()
        with mine:
            assert mine.poll(STARTS_WITHIN_S), "the queue manager did not start"
            said = os.read(mine.fileno(), 4096)
        assert said.startswith(b"ready"), f"the queue manager did not start: {said!r}"

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.join()

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def back_up(self, *, stopped: bool) -> Path:
        """Copy the data of one moment."""
        self.backups += 1
        copy = self.folder / f"backup-{self.backups}"
        assert self.process.pid is not None
        if stopped:
            self.process.terminate()
            self.process.join()
            shutil.copytree(self.data, copy, ignore=_no_sockets)
            self.start()
        else:
            os.kill(self.process.pid, signal.SIGSTOP)
            shutil.copytree(self.data, copy, ignore=_no_sockets)
            os.kill(self.process.pid, signal.SIGCONT)
        return copy

    def put_back(self, copy: Path) -> None:
        """Put a copy in the place of what there is."""
        self.kill()
        shutil.rmtree(self.data)
        shutil.copytree(copy, self.data)
        self.start()

    def forget_backups(self) -> None:
        """Make room."""
        for path in self.folder.glob("backup-*"):
            shutil.rmtree(path)

    def connect(self) -> mq.QueueManager:
        return mq.connect(self.address)

    def numbers(self, queue: str) -> list[int]:
        """Return the numbers of the messages in a queue, reserved or not."""
        with self.connect() as manager:
            place = manager.queue(queue)
            try:
                found = place.fetch_range(0, EVERYTHING, 100_000, 1 << 26)
            except QueueNotFound:
                return []
            return [ReceivedMessage(each, place.formatter).application_tag for each in found]

    def next_arrival(self, queue: str) -> int:
        with self.connect() as manager:
            return manager.queue(queue).properties().last_arrival_number + 1


def _free_address() -> str:
    """Return a loopback address that no other process takes: it has the number of this one."""
    pid = os.getpid()
    for last in range(1, 250):
        address = f"127.{100 + pid // 65536 % 100}.{pid // 256 % 256}.{(2 * pid + last) % 250 + 1}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, API_PORT))
            return address
    raise AssertionError("queue managers listen on all addresses of these tests")


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_socket()]


class Sent(msgspec.Struct):
    """A message that a queue manager has acknowledged."""

    number: int
    store: Store
    queue: str
    time: int
    """In steps of the history."""
    may_be_lost: str = ""
    """Why it need not arrive; empty if it must."""
    may_come_twice: str = ""
    was_brought_back: bool = False


class Violation(AssertionError):
    """What a history must not show."""


class Ledger:
    """What was sent, and what may have become of it."""

    def __init__(self) -> None:
        self.sent: dict[int, Sent] = {}

    def send(self, store: Store, queue: str, count: int, time: int) -> None:
        """Send numbered messages, and note them when they are acknowledged."""
        first = len(self.sent) + 1
        with store.connect() as manager, manager.transaction() as transaction:
            place = manager.queue(queue)
            for number in range(first, first + count):
                place.send(f"{number}", application_tag=number, transaction=transaction)
        for number in range(first, first + count):
            self.sent[number] = Sent(number, store, queue, time)

    def excuse(self, text: str, stores: list[Store], *, lost: bool, twice: bool) -> None:
        """Somebody was told that what these stores have had so far may be lost or come twice."""
        for each in self.sent.values():
            if each.store in stores:
                each.may_be_lost = each.may_be_lost or (text if lost else "")
                each.may_come_twice = each.may_come_twice or (text if twice else "")

    def put_back(self, before: set[int], after: set[int], *, output: bool) -> None:
        """Note what a back-up has taken away from a queue, and what it has brought back."""
        for number in before - after:
            self.sent[number].may_be_lost = "it came after the back-up"
        for number in () if output else after - before:
            self.sent[number].was_brought_back = True

    def problems(self, found: list[int], waiting: set[int], read: list[Store]) -> list[str]:
        """Compare with all outputs together, and with what is left in the queues."""
        lost, twice, left = [], [], []
        for number, each in self.sent.items():
            copies = found.count(number)
            if copies > 1 and not each.may_come_twice:
                twice.append(number)
            if copies or each.may_be_lost:
                continue
            if number not in waiting:
                lost.append(number)
            elif each.store in read:
                left.append(number)
        problems = [
            f"{len(numbers)} of {len(self.sent)} {what}: {numbers[:8]}"
            for numbers, what in (
                (lost, "are lost in silence"),
                (twice, "came twice in silence"),
                (left, "are left in queues that are read"),
            )
            if numbers
        ]
        strange = set(found) - self.sent.keys()
        return problems + ([f"from nowhere: {sorted(strange)[:8]}"] if strange else [])
