"""Program, queue manager and database are killed at every step: both have it, or neither.

`make two-phase-crash` kills OPENMSMQ_TWO_PHASE_KILLS times; `make test` once for each step and
victim.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import openmsmq as mq
from bench.peers.databases import program
from openmsmq.xa import two_phase
from tests.crash.harness import Server, environment
from tests.postgres import Postgres
from tests.xa import worker
from tests.xa.rehearsal import RECOVERY, STEPS
from tests.xa.worker import ORDERS, RESULTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        program("initdb") is None,
        reason="there is no PostgreSQL: scripts/ensure-postgres installs it on Debian",
    ),
]

VICTIMS = ("program", "queue manager", "database")
POINTS = (*STEPS, *RECOVERY)
KILLS = int(os.environ.get("OPENMSMQ_TWO_PHASE_KILLS", str(len(VICTIMS) * len(POINTS))))
KNOWN_ERRORS = ("psycopg.", "openmsmq.")
"""Where the errors are from with which the program may end when somebody else was killed."""
PATIENCE_COUNT = 40
"""Steps that may pass before the one is reached at which somebody is to be killed."""
BETWEEN_S = 0.004
"""Half of the victims have so long to go on after they were told to, and die in the middle."""


class Scene:
    """The three who take part, and what is to come out."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._address = address
        self.postgres = Postgres()
        self.server = Server(folder / "data", address)
        self.program: subprocess.Popen[str] | None = None
        self.sent = 0
        with mq.connect(address) as manager:
            for path in (ORDERS, RESULTS):
                manager.create_queue(path, transactional=True)
        with psycopg.connect(self.postgres.database, autocommit=True) as connection:
            connection.execute("CREATE TABLE moved (number int)")

    def send(self, count: int) -> None:
        """Have something to move."""
        with mq.connect(self._address) as manager, manager.transaction() as transaction:
            for number in range(self.sent, self.sent + count):
                manager.queue(ORDERS).send("x", label=str(number), transaction=transaction)
        self.sent += count

    def steps(self) -> Iterator[str]:
        """Run the program as often as it ends too early; give each step before it is done."""
        while True:
            self.program = subprocess.Popen(
                [sys.executable, worker.__file__, self._address, self.postgres.database],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(),
            )
            assert self.program.stdout is not None
            while line := self.program.stdout.readline().strip():
                if line == "done":
                    _, errors = self.program.communicate()
                    assert self.program.returncode == 0, errors
                    return
                yield line
                self.go_on()
            _, errors = self.program.communicate()
            # It was killed, or who was killed took it along: it says so and is started again.
            # What PostgreSQL says may have several lines; the name of the error begins the first.
            last = [line for line in errors.splitlines() if line[:1].strip()][-1:]
            assert self.program.returncode < 0 or last[0].startswith(KNOWN_ERRORS), errors

    def go_on(self) -> None:
        """Let the program do its step, if it still lives."""
        assert self.program is not None
        assert self.program.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.program.stdin.write("\n")
            self.program.stdin.flush()

    def kill(self, victim: str, after_s: float) -> None:
        """Kill one of the three, and bring it back; it may have gone on for a moment."""
        if after_s:
            self.go_on()
            time.sleep(after_s)
        if victim == "program":
            assert self.program is not None
            self.program.kill()
        elif victim == "queue manager":
            self.server.kill()
            self.server = Server(self._folder / "data", self._address)
        else:
            self.postgres.kill()
            self.postgres.start_again()

    def check(self) -> None:
        """See whether all was moved, once, and nothing is in doubt."""
        with mq.connect(self._address) as manager:
            with psycopg.connect(self.postgres.database) as connection:
                two_phase(manager, connection, name="mover")
                rows = connection.execute("SELECT number FROM moved").fetchall()
                decisions = connection.execute("SELECT count(*) FROM openmsmq_decisions").fetchone()
            results = [int(message.label) for message in manager.queue(RESULTS).browse()]
            assert manager.in_doubt() == []
            assert list(manager.queue(ORDERS).browse()) == []
        assert sorted(row[0] for row in rows) == list(range(self.sent))
        assert Counter(results) == Counter(range(self.sent))
        assert decisions == (0,)

    def end(self) -> None:
        """Leave nothing behind."""
        if self.program is not None and self.program.poll() is None:
            self.program.kill()
            self.program.communicate()
        self.server.kill()
        self.postgres.remove()


@pytest.fixture
def scene(tmp_path: Path, worker_id: str) -> Iterator[Scene]:
    number = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    found = Scene(tmp_path, f"127.0.81.{number + 1}")
    yield found
    found.end()


@pytest.mark.timeout(300 + 20 * KILLS)
def test_both_have_it_or_neither_whoever_dies_at_whichever_step(scene: Scene) -> None:
    chance = random.Random(20_261_118)
    killed: Counter[tuple[str, str]] = Counter()
    places = itertools.cycle(itertools.product(POINTS, VICTIMS))
    while sum(killed.values()) < KILLS:
        point, victim = next(places)
        scene.send(3)
        is_done = False
        for count, step in enumerate(scene.steps()):
            if is_done:
                continue
            if point in RECOVERY and step == "tell" and count < PATIENCE_COUNT:
                # There is something to recover only if somebody dies between the two phases.
                scene.kill("program", 0)
            elif step == point:
                scene.kill(victim, chance.choice((0, chance.uniform(0, BETWEEN_S))))
                killed[point, victim] += 1
                is_done = True
        scene.check()
        if sum(killed.values()) % 50 == 0:
            print(f"{sum(killed.values())} of {KILLS} kills", flush=True)
    print(f"{sum(killed.values())} kills, {scene.sent} messages, each moved once")
    assert len(killed) == min(KILLS, len(POINTS) * len(VICTIMS))
