"""Two queue managers with an open session and nothing to do."""

from __future__ import annotations

import time
from pathlib import Path

from openmsmq.client.verbs.transactions import SINGLE_MESSAGE
from tests.runtime.computers import Computer, neighbours, running, wait_for, waiting_count

LEDGER = r"private$\ledger"
WINDOW_S = 2.0
CPU_MAX_SHARE = 0.01
PRIVATE_MAX_BYTES = 80_000_000


def cpu_s(computer: Computer) -> float:
    """The time that the process was on a processor so far."""
    assert computer.process is not None
    tasks = Path(f"/proc/{computer.process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def private_bytes(computer: Computer) -> int:
    """The memory that is the process's own."""
    assert computer.process is not None
    rollup = Path(f"/proc/{computer.process.pid}/smaps_rollup").read_text()
    lines = [line.split() for line in rollup.splitlines()]
    return 1024 * sum(int(line[1]) for line in lines if line[0].startswith("Private_"))


def is_idle(computers: list[Computer]) -> bool:
    """Whether none of them does anything to speak of for a while."""
    before_s = list(map(cpu_s, computers))
    began_s = time.perf_counter()
    time.sleep(WINDOW_S)
    used_s = [
        cpu_s(computer) - before for computer, before in zip(computers, before_s, strict=True)
    ]
    return max(used_s) < CPU_MAX_SHARE * (time.perf_counter() - began_s)


def test_an_idle_pair_costs_next_to_nothing(tmp_path):
    pair = alpha, beta = neighbours(tmp_path, "ALPHA", "BETA")
    with running(*pair), alpha.connect() as sender, beta.connect() as receiver:
        ledger = receiver.create_queue(LEDGER, transactional=True)
        target = beta.queue(LEDGER)
        sender.queue(target).send(b"to open a session", transaction=SINGLE_MESSAGE)
        assert ledger.receive(timeout=30).body_bytes
        wait_for(lambda: waiting_count(sender, target) == 0)
        assert sender.outgoing_queue(target).address == beta.address
        # What goes on right after the traffic, or once in a while, is not idleness.
        wait_for(lambda: is_idle(pair), 8 * WINDOW_S)
        assert sender.outgoing_queue(target).address == beta.address
        assert max(map(private_bytes, pair)) < PRIVATE_MAX_BYTES
