"""What encryption costs a message on its whole way: client, two queue managers, client."""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openmsmq
from bench.measure import Effort, Figure
from bench.peers.openmsmq_pair import SOURCE, TARGET, serve_one
from bench.peers.pair import BODY
from bench.peers.process import disk_directory, free_port, processor_s

COUNT: Final = 20_000
ROUNDS: Final = 7
WARM_UP_COUNT: Final = 2_000
ENCRYPTION_BAR: Final = 2.0
_BATCH_COUNT: Final = 256
_WITHIN_S: Final = 30.0
_TCP: Final = re.compile(r"listening door=tcp address=\S+ port=(\d+)")


def run(effort: Effort) -> Iterator[Figure]:
    """Processor time of a 1 KiB message, encrypted and not, from one computer to another."""
    count = max(WARM_UP_COUNT, round(COUNT * effort.rounds / Effort().rounds))
    costs: dict[bool, list[float]] = {False: [], True: []}
    with (
        disk_directory() as directory,
        _enterprise(directory) as (source, target, pids),
        openmsmq.connect(source) as sender,
        openmsmq.connect(target) as receiver,
    ):
        lane = _Lane(sender, receiver, pids)
        for encrypt in costs:
            lane.cost_us(WARM_UP_COUNT, encrypt=encrypt)
        for _ in range(ROUNDS):
            for encrypt, found in costs.items():
                found.append(lane.cost_us(count, encrypt=encrypt))
    plain, encrypted = (statistics.median(costs[kind]) for kind in (False, True))
    yield Figure(
        "recoverable, encrypted to plain, processor", encrypted / plain, "times", bar=ENCRYPTION_BAR
    )
    yield Figure(f"  plain, median of {ROUNDS} times {count:,}", plain, "us")
    yield Figure("  encrypted", encrypted, "us")


class _Lane:
    """One queue of the target, filled from the source."""

    def __init__(
        self,
        sender: openmsmq.QueueManager,
        receiver: openmsmq.QueueManager,
        pids: tuple[int, int],
    ) -> None:
        self._pids = pids
        self._inbox = receiver.create_queue(r"private$\lane")
        self._queue = sender.queue(receiver.names(r"private$\lane").private_name)

    def cost_us(self, count: int, *, encrypt: bool) -> float:
        """Send and receive so many messages; give the processor time of each."""
        before_s = self._used_s()
        self._queue.send_many((BODY for _ in range(count)), recoverable=True, encrypt=encrypt)
        left = count
        while left:
            messages = self._inbox.receive_many(_BATCH_COUNT, _WITHIN_S)
            assert all(message.body_bytes == BODY for message in messages)
            left -= len(messages)
        return (self._used_s() - before_s) / count * 1e6

    def _used_s(self) -> float:
        return time.process_time() + sum(map(processor_s, self._pids))


@contextlib.contextmanager
def _enterprise(directory: Path) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Run two queue managers, the first of which has the directory."""
    session_port = free_port()
    with contextlib.ExitStack() as running:
        source, source_pid = running.enter_context(
            serve_one(directory, "SOURCE", SOURCE, session_port, "--directory-server")
        )
        log = (directory / "source" / "serve.log").read_text()
        found = _TCP.search(log)
        assert found is not None, log
        options = ["--directory", f"{SOURCE}:{found[1]}", "--directory-poll-s", "1"]
        target, target_pid = running.enter_context(
            serve_one(directory, "TARGET", TARGET, session_port, *options)
        )
        _wait_for_keys(source, target)
        yield source, target, (source_pid, target_pid)


def _wait_for_keys(source: str, target: str) -> None:
    """Wait until the source has heard of the key of the target."""
    with openmsmq.connect(source) as here, openmsmq.connect(target) as there:
        wanted = there.context.manager
        deadline_s = time.perf_counter() + _WITHIN_S
        while time.perf_counter() < deadline_s:
            with contextlib.suppress(openmsmq.MsmqError):
                if here.encryption_keys(wanted):
                    return
            time.sleep(0.1)
    raise AssertionError("the target has not published its key")
