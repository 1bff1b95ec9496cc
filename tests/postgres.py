"""A server of PostgreSQL for tests: on a socket in a directory of its own, and nowhere else."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from bench.peers.databases import program

RESTARTS_MAX_COUNT = 100


class Postgres:
    """The server; it refuses to be run by root, so root lends it to somebody else."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="openmsmq-postgres-"))
        self._user: str | None = None
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self._user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self._folder, self._user)
        self._data = self._folder / "data"
        settings = ("-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C", "--no-sync")
        self._run("initdb", *settings)
        self.start()

    @property
    def database(self) -> str:
        """The connection string of its database."""
        return f"host={self._folder} user=tester dbname=postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; at once means as if it had crashed."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def kill(self) -> None:
        """End its first process at once; the others end when they notice."""
        os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def start_again(self) -> None:
        """Start it after `kill`, as soon as what was left of it is gone."""
        for _ in range(RESTARTS_MAX_COUNT - 1):
            with contextlib.suppress(subprocess.CalledProcessError):
                return self.start()
            time.sleep(0.1)
        self.start()

    def remove(self) -> None:
        """Stop it for good."""
        self.stop()
        shutil.rmtree(self._folder)

    def _run(self, name: str, *arguments: str) -> None:
        found = program(name)
        assert found is not None
        subprocess.run(
            [found, "-D", str(self._data), *arguments],
            check=True,
            user=self._user,
            cwd=self._folder,
            # Inherited by the server, which would keep the pipes of the test open.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
