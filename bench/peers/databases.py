"""Two servers of PostgreSQL on loopback, one the synchronous standby of the other."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg

from bench.peers.process import HOST, free_port

PROGRAMS: Final = sorted(
    Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
)
SETTINGS: Final = {
    "max_connections": "50",
    "shared_buffers": "32MB",
    "max_wal_senders": "5",
    "wal_sender_timeout": "0",
    "wal_retrieve_retry_interval": "200ms",
    "checkpoint_timeout": "30min",
    "max_wal_size": "4GB",
}

_FOLLOWS_S: Final = 90.0


def program(name: str) -> str | None:
    """Find one of PostgreSQL's programs; Debian keeps them beside the path."""
    return shutil.which(name, path=f"{PROGRAMS[-1]}" if PROGRAMS else None)


class Database:
    """One server, in a folder of its own; root lends it to somebody else."""

    def __init__(self, folder: Path, name: str, host: str, prefix: tuple[str, ...]) -> None:
        """`prefix` is what to put before commands, such as a place to run them in."""
        self.name = name
        self.data = folder / name
        self.host = host
        self.port = free_port()
        self._log = folder / f"{name}.log"
        self._folder = folder
        self._prefix = prefix

    @property
    def address(self) -> str:
        """How to connect to it alone."""
        return f"host={self.host} port={self.port} user=tester dbname=postgres"

    def run(self, name: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs."""
        found = program(name)
        assert found is not None, "PostgreSQL is missing: run scripts/ensure-postgres"
        done = subprocess.run(
            [*self._prefix, found, *arguments],
            check=False,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{name} {arguments} ended with {done.returncode}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            **SETTINGS,
            "listen_addresses": self.host,
            "port": str(self.port),
            "unix_socket_directories": self._folder,
        }
        options = " ".join(f"-c {key}={value}" for key, value in settings.items())
        log = str(self._log)
        self.run("pg_ctl", "-D", str(self.data), "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; at once means as if it had crashed."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def promote(self) -> None:
        """Let it take the place of the one it followed."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def pids(self) -> list[int]:
        """Return its processes."""
        first = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def freeze(self) -> list[int]:
        """Let it stand still; gives what `thaw` wants."""
        pids = self.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    @staticmethod
    def thaw(pids: list[int]) -> None:
        """Let it go on."""
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def set(self, **settings: str) -> None:
        """Change settings while it runs."""
        own = f"host={self._folder} port={self.port} user=tester dbname=postgres"
        with psycopg.connect(own, autocommit=True) as connection:
            for key, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {key} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")

    def synchronous_count(self) -> int:
        """Return how many servers follow it synchronously."""
        own = f"host={self._folder} port={self.port} user=tester dbname=postgres"
        asked = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        with psycopg.connect(own, autocommit=True) as connection:
            row = connection.execute(asked).fetchone()
        return 0 if row is None else int(row[0])


class Databases:
    """The two of them; `first` begins as the one that can be written to."""

    def __init__(
        self, host: str = HOST, prefix: tuple[str, ...] = (), parent: Path | None = None
    ) -> None:
        """`parent` is where their data is kept: a folder that everybody may look into."""
        self._folder = Path(tempfile.mkdtemp(prefix="openmsmq-databases-", dir=parent))
        self.host = host
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self._folder, user)
            prefix = (*prefix, "setpriv", "--reuid", user, "--regid", user, "--clear-groups")
        self.first = Database(self._folder, "first", host, prefix)
        self.second = Database(self._folder, "second", host, prefix)
        first = self.first
        settings = ("-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C", "--no-sync")
        first.run("initdb", "-D", str(first.data), *settings)
        with (first.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all,replication tester samenet trust\n")
        first.start()
        self.writer, self.follower = first, self.second
        self.copy()
        first.set(synchronous_standby_names="second")
        self.wait_until_it_follows()

    @property
    def address(self) -> str:
        """How to connect to the one that can be written to."""
        ports = f"{self.first.port},{self.second.port}"
        return f"host={self.host},{self.host} port={ports} user=tester dbname=postgres"

    def copy(self) -> None:
        """Make one that follows, out of nothing but the one that can be written to."""
        source, copy = self.writer, self.follower
        shutil.rmtree(copy.data, ignore_errors=True)
        place = f"host={source.host} port={source.port} user=tester application_name={copy.name}"
        options = ("-R", "-c", "fast", "--no-sync")
        source.run("pg_basebackup", "-D", str(copy.data), "-d", place, *options)
        copy.start()

    def wait_until_it_follows(self) -> None:
        """Wait until commits are on both."""
        _wait_for(lambda: self.writer.synchronous_count() == 1)

    def fail_over(self) -> None:
        """Lose the one that can be written to; the other one takes its place, and is alone."""
        lost, left = self.writer, self.follower
        lost.stop()
        # It waits for a second server from its first commit on.
        left.set(synchronous_standby_names=f'"{lost.name}"')
        left.promote()
        self.writer, self.follower = left, lost

    def remove(self) -> None:
        """Stop both for good."""
        for database in (self.first, self.second):
            if (database.data / "postmaster.pid").exists():
                database.stop()
        shutil.rmtree(self._folder)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline_s = time.perf_counter() + _FOLLOWS_S
    while not condition():
        assert time.perf_counter() < deadline_s, "the second server does not follow the first"
        time.sleep(0.02)
