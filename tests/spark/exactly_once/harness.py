"""Runs the job while senders send, kills it and its queue manager, and compares at the end."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeVar

import msgspec

import openmsmq as mq
from openmsmq.client.settings import API_PORT
from openmsmq.model.errors import ReceiveTimeout
from openmsmq.spark.pipelines.ingest.parquet_table import MARK
from tests.spark.exactly_once import driver
from tests.spark.exactly_once.checker import Arrived, Outcome
from tests.spark.exactly_once.driver import (
    PLAIN,
    QUEUE_CHECKPOINT,
    STUMBLES,
    TABLE,
    TABLE_CHECKPOINT,
    Job,
    target,
)
from tests.spark.exactly_once.senders import Senders
from tests.spark.foreign_readers import files_of, read_table

Value = TypeVar("Value")

ROOT = Path(__file__).parents[3]
STARTS_WITHIN_S = 180.0
DRAINS_WITHIN_S = 900.0
POLL_S = 0.002
POLLS_MAX_COUNT = 60_000
"""How often a kill looks whether its moment has come; then any moment is right."""

BUSY_MAX_COUNT = 20
"""How often a run puts up with a computer that is too busy for Spark."""

ANY_MOMENT, SINK_COMMITS = "any moment", "sink commits"
MOMENTS = (
    *(ANY_MOMENT, SINK_COMMITS, "queue offsets", "queue commits"),
    *("table offsets", "table commits"),
)


def environment() -> dict[str, str]:
    """Return what child processes need to find the code under test."""
    paths = (ROOT / "src", ROOT, Path(__file__).parent / "quick_start")
    path = os.pathsep.join(map(str, paths))
    return {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}


def line_within(output: IO[bytes], seconds: float) -> str:
    """Read one line, or nothing if none came in time."""
    readable, _, _ = select.select([output], [], [], seconds)
    return output.readline().decode() if readable else ""


def free_address() -> str:
    """Return a loopback address where no queue manager listens; others may run these tests too."""
    first = os.getpid() % 150
    for number in range(first, first + 150):
        address = f"127.0.90.{100 + number % 150}"
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address, API_PORT))
            return address
    raise AssertionError("queue managers listen on all addresses of these tests")


class Manager:
    """A queue manager in a process of its own; it keeps its data when it is killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = free_address()
        self.start()

    def start(self) -> None:
        """Start it, again if need be, and wait until it is ready."""
        self.start_later()
        assert self.process.stdout is not None
        ready = line_within(self.process.stdout, STARTS_WITHIN_S)
        assert ready.startswith("ready"), f"the queue manager did not start: {ready!r}"

    def start_later(self) -> None:
        """Start it, and do not wait."""
        arguments = ("serve", "--name", "ONCE", "--address", self.address)
        with open(self.folder / "queue-manager.log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "openmsmq.cli.app", *arguments),
                    *("--data", str(self.folder / "data"), "--log-level", "warning"),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env=environment(),
            )

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.communicate()


class TooBusy(Exception):
    """Spark has given up because its workers took more than ten seconds to start."""


class Driver:
    """The job in a process group of its own."""

    def __init__(self, job: Job) -> None:
        self.job = job
        with open(job.at("driver.log"), "ab") as log:
            self.process = subprocess.Popen(
                [
                    # As a module: what Spark carries to its tasks must be found there by its name.
                    *(sys.executable, "-c", f"from {driver.__name__} import main; main()"),
                    msgspec.json.encode(job).decode(),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                cwd=ROOT,
                env=environment(),
                start_new_session=True,
            )

    def expect(self, word: str, seconds: float) -> str:
        """Wait for what it says; gives the rest of the line."""
        assert self.process.stdout is not None
        line = line_within(self.process.stdout, seconds)
        if line.startswith("too busy"):
            raise TooBusy
        if not line.startswith(word):
            log = Path(self.job.at("driver.log")).read_text(errors="replace")
            raise AssertionError(f"the job said {line!r}, not {word}:\n{log[-6000:]}")
        return line.removeprefix(word).strip()

    def require_running(self) -> None:
        """Raise if the job has ended by itself."""
        assert self.process.stdout is not None
        if select.select([self.process.stdout], [], [], 0)[0]:
            self.expect("nothing", 0)

    def drain(self) -> None:
        """Let it process all that is there and end."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"drain\n")
        self.expect("drained", DRAINS_WITHIN_S)
        assert self.process.wait(STARTS_WITHIN_S) == 0

    def kill(self) -> None:
        """End Spark and Python at once; what tasks have left behind ends by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for pid in members(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def members(session: int) -> list[int]:
    """Return the processes of a session: workers of Python have a process group of their own."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text()
                fields = text[text.rindex(")") + 2 :].split()
                if int(fields[3]) == session and fields[0] != "Z":
                    found.append(int(entry.name))
    return found


class Checkpoint:
    """What a stream has written down about its batches."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def last(self, log: str) -> int:
        """Return the number of the last batch in `offsets` or `commits`; -1 before the first."""
        try:
            names = os.listdir(self._path / log)
        except FileNotFoundError:
            return -1
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def query(self) -> str:
        """Return the name of the query; empty before it has one."""
        try:
            return str(json.loads((self._path / "metadata").read_text())["id"])
        except (OSError, ValueError):
            return ""


class Scene:
    """A run: a queue manager, a job, senders, and what happened to them."""

    def __init__(self, folder: Path, seed: int, format: str) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.manager = Manager(folder)
        address = self.manager.address
        self.senders = Senders(address, seed)
        self.job = Job(address, str(folder / "job"), format=format)
        Path(self.job.folder).mkdir()
        self.to_table = Checkpoint(self.job.at(TABLE_CHECKPOINT))
        self.to_queue = Checkpoint(self.job.at(QUEUE_CHECKPOINT))
        self.met: Counter[str] = Counter()
        """How often something was met in a certain state when it was killed."""
        with mq.connect(address) as manager:
            manager.create_queue(PLAIN)
            for name in (*self.job.sources, *self._targets()):
                manager.create_queue(name, transactional=True)

    def start_driver(self) -> Driver:
        """Start the job; both streams run, or begin to."""
        job = Driver(self.job)
        try:
            job.expect("ready", STARTS_WITHIN_S)
        except BaseException:
            job.kill()
            raise
        return job

    # When to strike.

    def _written(self, moment: str, manager: mq.QueueManager) -> int:
        """Return the number of the batch that was written last, in the place of a moment."""
        if moment == SINK_COMMITS:
            return manager.last_batch(self.to_queue.query() or "none")
        place, log = moment.split()
        return (self.to_table if place == "table" else self.to_queue).last(log)

    def wait_for(self, moment: str) -> None:
        """Wait until it is time to kill something: a moment ago something was written."""
        if moment == ANY_MOMENT:
            # At the start of a driver, or when it has come to work.
            if self.rng.random() < 0.7:
                self.wait_for(self.rng.choice(MOMENTS[1:]))
            # No clock of ours decides what a killed process was doing: any moment must do.
            time.sleep(self.rng.uniform(0, 3))
            return
        with mq.connect(self.manager.address) as manager:
            before = self._written(moment, manager)
            for _ in range(POLLS_MAX_COUNT):
                if self._written(moment, manager) > before:
                    return
                time.sleep(POLL_S)

    def look(self) -> None:
        """Note in which state the streams were met; the job is dead, the queue manager lives."""
        with mq.connect(self.manager.address) as manager:
            written = manager.last_batch(self.to_queue.query() or "none")
            self.met["parts of batches left prepared"] += len(manager.in_doubt())
        for name, checkpoint in (("table", self.to_table), ("queue", self.to_queue)):
            planned, done = checkpoint.last("offsets"), checkpoint.last("commits")
            if planned == done:
                self.met[f"to {name}: between batches"] += 1
            elif name == "queue" and written == planned:
                self.met[f"to {name}: batch in the queue, not in the checkpoint"] += 1
            else:
                self.met[f"to {name}: in a batch"] += 1

    def life(self, manager_kills: int, moment: str) -> None:
        """Run the job, kill its queue manager meanwhile, and then the job itself."""
        with self.start_driver() as job:
            for _ in range(manager_kills):
                self.wait_for(self.rng.choice(MOMENTS))
                self.manager.kill()
                time.sleep(self.rng.uniform(0, 1))
                self.manager.start()
            self.wait_for(moment)
            job.require_running()
            job.kill()
        self.look()

    def last_life(self) -> None:
        """Run the job to the end of what was sent."""
        with self.start_driver() as job:
            self.wait_for(ANY_MOMENT)
            self.senders.stop()
            job.drain()

    def when_not_busy(self, live: Callable[[], Value]) -> Value:
        """Do something again if the computer was too busy for Spark."""
        for _ in range(BUSY_MAX_COUNT):
            with contextlib.suppress(TooBusy):
                return live()
            self.met["too busy for Spark"] += 1
        return live()

    # What arrived.

    def notes(self, file: str) -> list[str]:
        """Return what tasks have noted in a file."""
        path = Path(self.job.at(file))
        return path.read_text().splitlines() if path.exists() else []

    def check(self) -> dict[str, object]:
        """Compare everything; gives the figures."""
        path = Path(self.job.at(TABLE))
        table = list(table_rows(path, self.job.format))
        require_no_strays(path, self.job.format)
        queues = [list(queue_rows(self.manager.address, name)) for name in self._targets()]
        self.senders.plain.check_table(table)
        self.senders.transacted.check_queues(queues, one_source=len(self.job.sources) == 1)
        require_empty(self.manager.address, (PLAIN, *self.job.sources))
        return self._figures(table, queues)

    def _targets(self) -> list[str]:
        return [target(number) for number in range(self.job.target_count)]

    def _figures(self, table: list[Arrived], queues: list[list[Arrived]]) -> dict[str, object]:
        plain, transacted = self.senders.plain, self.senders.transacted
        late = [each for each in transacted.bundles if each.late and each.outcome is Outcome.SENT]
        return {
            "format": self.job.format,
            "rows in the table": len(table),
            "messages in queues": sum(map(len, queues)),
            "queues with messages": sum(map(bool, queues)),
            "sent to the table": plain.count(Outcome.SENT),
            "sent to queues": transacted.count(Outcome.SENT),
            "priorities": sorted({row.priority for row in table}),
            "sent or not, nobody knows": plain.count(Outcome.UNKNOWN)
            + transacted.count(Outcome.UNKNOWN),
            "aborted by their senders": transacted.count(Outcome.NOT_SENT),
            "taken by others": len(transacted.taken),
            "in transactions that committed late": sum(len(each.messages) for each in late),
            "batches to the table": self.to_table.last("commits") + 1,
            "batches to queues": self.to_queue.last("commits") + 1,
            "tasks failed on purpose": len(self.notes(STUMBLES)),
            **dict(sorted(self.met.items())),
        }


def queue_rows(address: str, name: str) -> Iterator[Arrived]:
    """Take the messages out of a queue where a job has put them."""
    with mq.connect(address) as manager:
        queue = manager.queue(name)
        with contextlib.suppress(ReceiveTimeout):
            while True:
                for message in queue.receive_many(200, 0):
                    sender, _, arrival = message.label.rpartition("@")
                    content = str(message.body).removeprefix("seen ")
                    yield Arrived(message.application_tag, sender, content, 0, int(arrival))


def require_empty(address: str, queues: Sequence[str]) -> None:
    """Everything was processed, and nothing is left of how."""
    with mq.connect(address) as manager:
        assert manager.in_doubt() == [], "parts of batches are left"
        for name in queues:
            status = manager.queue(name).properties()
            assert status.message_count == 0, f"{status.message_count} are left in {name}"
            assert status.reserved_for == "", f"{name} is still reserved"


def table_rows(table: Path, format: str) -> Iterator[Arrived]:
    """Read a table as a program does that knows neither Spark nor us."""
    for row in read_table(table, format).to_pylist():
        yield Arrived(
            row["application_tag"],
            row["label"],
            row["body"].decode(),
            row["priority"],
            row["arrival_number"],
        )


def require_no_strays(table: Path, format: str) -> None:
    """There are no files with rows but those that count."""
    there = {path for path in table.rglob("*.parquet") if "_delta_log" not in path.parts}
    if format == "parquet":
        # Every file counts: so each must be part of a batch that is whole.
        stray = {
            path for path in there if not (table / path.relative_to(table).parts[0] / MARK).exists()
        }
    else:
        stray = there ^ set(files_of(table, format))
    assert not stray, f"files do not count, or are not there: {sorted(stray)[:3]}"


def kill_often(
    folder: Path, *, driver_kills: int, manager_kills: int, seed: int, format: str
) -> dict[str, object]:
    """Kill the job and its queue manager again and again; gives the figures of what was checked."""
    scene = Scene(folder, seed, format)
    try:
        scene.senders.start(PLAIN, scene.job.sources)
        moments = _shuffled(MOMENTS, driver_kills, scene.rng)
        rounds = _shuffled(range(max(1, driver_kills)), manager_kills, scene.rng)
        for number, moment in enumerate(moments):
            scene.when_not_busy(functools.partial(scene.life, rounds.count(number), moment))
        scene.when_not_busy(scene.last_life)
        figures = scene.check()
    finally:
        with contextlib.suppress(BaseException):
            scene.senders.stop()
        scene.manager.kill()
    return {"driver kills": driver_kills, "queue manager kills": manager_kills, **figures}


def _shuffled(values: Sequence[Value], count: int, rng: random.Random) -> list[Value]:
    """Return so many values, each about as often as the others, in no order."""
    found: list[Value] = []
    while len(found) < count:
        found += rng.sample(values, len(values))
    return found[:count]
