"""A queue manager on two computers, a third that sends to it and gets from it, and a database.

Each computer is a network namespace. The pair has one address, which a program takes over at each
promotion; so peers and applications know of no second one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bench.peers.databases import Databases
from tests.runtime.computers import Computer, environment
from tests.runtime.disks import Disk, mounted_disk
from tests.runtime.namespaces import Host, Laboratory, required_laboratory

SHARED = "10.98.0.5"
THIRD = "10.98.0.7"
DATABASE = "10.98.0.9"
OWN = {"alpha": "10.98.0.1", "beta": "10.98.0.2"}
LEASE_MS = 2000
LOCAL = ("--allow-remote-without-token", "--api-socket", "api.sock")
"""Applications come by the Unix socket, from whatever namespace."""
_PORT = 1801
_DISK_MB = 512


class Member:
    """One of the two: its host, its disk, and its process, which a supervisor starts again."""

    def __init__(self, pair: Pair, name: str, host: Host, disk: Disk) -> None:
        self.name = name
        self.host = host
        self.disk = disk
        self._pair = pair
        self.computer = computer(disk.image.parent, "PAIR", SHARED, host)
        self.computer.data = disk.path / "PAIR"
        self.computer.configure(
            f'[replication]\ndatabase = "{pair.databases.address}"\nmember = "{name}"\n'
            f'lease_ms = {LEASE_MS}\non_promotion = "{pair.hook(name)}"\n'
        )
        self.promotions = 0
        self.is_ready = threading.Event()
        self.is_following = threading.Event()
        self._watcher: threading.Thread | None = None

    def start(self, *options: str) -> None:
        """Start it; it is primary or standby, as it comes."""
        self.is_ready.clear()
        self.is_following.clear()
        self.computer.options = (*LOCAL, *options)
        self.computer.launch()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        process = self.computer.process
        assert process is not None
        assert process.stdout is not None
        with process.stdout as output:
            self._hear(output)

    def _hear(self, output: IO[str]) -> None:
        for line in output:
            if line.startswith("standby "):
                self.is_following.set()
            elif line.startswith("ready "):
                self.promotions += 1
                self._pair.promoted(self)
                self.is_ready.set()

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self.computer.is_running

    @property
    def socket(self) -> str:
        """Where applications find it when it is the primary."""
        return str(self.computer.data / "api.sock")

    def send(self, number: int) -> None:
        """Send a signal to the queue manager itself."""
        process = self.computer.process
        assert process is not None
        os.kill(process.pid, number)

    def wait(self) -> int:
        """Wait until it has ended by itself; give its exit status."""
        process = self.computer.process
        assert process is not None
        code = process.wait(60)
        if self._watcher is not None:
            self._watcher.join(60)
        return code

    def wait_until_it_follows(self) -> None:
        """Wait until it is a standby."""
        assert self.is_following.wait(60), self.computer.log[-3000:]

    def lose_power(self) -> None:
        """End at once, with a disk that has no more than was flushed; it can be started again."""
        self.disk.cut_power()
        self.end(signal.SIGKILL)
        self.disk.unmount()
        self.disk.mount()

    def end(self, number: int = signal.SIGKILL) -> int:
        """End the process."""
        process = self.computer.process
        assert process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
            os.kill(process.pid, number)
        return self.wait()


def computer(folder: Path, name: str, address: str, host: Host) -> Computer:
    """Make a computer in a namespace."""
    # A port that is free is looked for on loopback: the address is not ours here.
    made = Computer(folder, name, "127.0.0.1", _PORT, ping_port=3527)
    made.address = address
    made.options = LOCAL
    made.prefix = ("ip", "netns", "exec", host.name)
    made.api_port = 1802
    return made


class Pair:
    """All of them."""

    def __init__(
        self, folder: Path, lab: Laboratory, databases: Databases, disks: dict[str, Disk]
    ) -> None:
        self.folder = folder
        self.lab = lab
        self.databases = databases
        self._back_ups = itertools.count(1)
        self.hosts = {name: lab.host(name, lan=address) for name, address in OWN.items()}
        self.third_host = lab.host("third", lan=THIRD)
        self.members = {
            name: Member(self, name, host, disks[name]) for name, host in self.hosts.items()
        }
        self.third = computer(folder, "THIRD", THIRD, self.third_host)
        self.primary: Member | None = None
        self.promoted_s = 0.0

    def hook(self, name: str) -> Path:
        """Write the program that takes the address over."""
        path = self.folder / f"take-over-{name}"
        other = next(host for each, host in self.hosts.items() if each != name)
        own = self.hosts[name]
        lines = [
            "#!/bin/sh",
            f"ip -n {other.name} addr del {SHARED}/24 dev lan 2>/dev/null",
            f"ip -n {own.name} addr add {SHARED}/24 dev lan 2>/dev/null",
            # What a gratuitous ARP does in a network.
            *(f"ip -n {host} neigh flush {SHARED} 2>/dev/null" for host in self._others(own)),
            "exit 0",
        ]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def _others(self, own: Host) -> list[str]:
        return [f"{self.lab.prefix}third", *(h.name for h in self.hosts.values() if h is not own)]

    def promoted(self, member: Member) -> None:
        """Hear of a take-over."""
        self.primary, self.promoted_s = member, time.perf_counter()

    @property
    def sockets(self) -> list[str]:
        """Where applications find whichever is the primary."""
        return [member.socket for member in self.members.values()]

    def other(self, member: Member) -> Member:
        """Return the other one of the pair."""
        return next(each for each in self.members.values() if each is not member)

    def command(self, *arguments: str, host: Host) -> str:
        """Run a command on a host."""
        line = [sys.executable, "-m", "openmsmq.cli.app", *arguments]
        done = host.command(*line, env=environment())
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin(self) -> None:
        """Start the third, the first primary, and a standby from a back-up of it."""
        self.third.launch()
        self.third.ready()
        alpha, beta = self.members["alpha"], self.members["beta"]
        alpha.start()
        assert alpha.is_ready.wait(60), alpha.computer.log
        self.restore(beta)
        beta.start("--standby")
        beta.wait_until_it_follows()

    def restore(self, member: Member) -> None:
        """Give a computer whose disk is empty a back-up of the other one, which serves."""
        other = self.other(member)
        place = self.folder / f"back-up-{next(self._back_ups)}"
        self.command("--qm", other.socket, "backup", str(place), host=other.host)
        shutil.rmtree(member.computer.data, ignore_errors=True)
        restored = str(member.computer.data)
        self.command("restore", str(place), "--data", restored, host=member.host)
        shutil.rmtree(place)

    def end(self) -> None:
        """Stop everything."""
        for member in self.members.values():
            if member.computer.process is not None:
                member.end()
        if self.third.is_running:
            self.third.end(signal.SIGKILL)


@contextlib.contextmanager
def running_pair(folder: Path) -> Iterator[Pair]:
    """Have a pair for the time of a block."""
    with contextlib.ExitStack() as mounted, required_laboratory("lan") as lab:
        disks = {}
        for name in OWN:
            place = folder / name
            place.mkdir()
            disks[name] = mounted.enter_context(mounted_disk(place, _DISK_MB))
        host = lab.host("database", lan=DATABASE)
        databases = Databases(DATABASE, ("ip", "netns", "exec", host.name))
        try:
            pair = Pair(folder, lab, databases, disks)
            try:
                pair.begin()
                yield pair
            finally:
                pair.end()
        finally:
            databases.remove()
