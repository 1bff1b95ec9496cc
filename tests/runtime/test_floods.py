"""A small queue manager as a process, in floods of messages: it lives, and serves its peers.

`make floods` does the same for longer, with a larger quota, and compares speeds.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.floods import disk_mb, peak_mb
from bench.peers.flooders import KINDS, OPEN, OPEN_LEDGER
from openmsmq.client.verbs.transactions import SINGLE_MESSAGE
from openmsmq.model.limits import OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT
from openmsmq.wire.packets import encode
from tests.runtime.computers import Computer, neighbours, running, wait_for
from tests.runtime.test_transfer_hostile import STRANGER, Stranger
from tests.transfer.letters import ARRIVAL_NACK, direct, letter

ROOT = Path(__file__).parents[2]
LEDGER = r"private$\ledger"
FULL = r"private$\full"
QUOTA_KB = 8 * 1024
MEMORY_MB = 300
DISK_MB = 600
NOWHERE = "127.0.0.77"
FLOOD_S = 0.8
"""How long a flood lasts before somebody is served beside it."""
LOOP_SOCKET_COUNT = 2
"""What the loop of a flooder has for itself; the next one goes to the computer."""
COUNT = 40


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Computer, Computer]]:
    alpha, beta = neighbours(tmp_path_factory.mktemp("pair"), "ALPHA", "BETA")
    beta.options = ("--quota-kb", str(QUOTA_KB))
    beta.configure(f'EnableReportMessages = true\n[hosts]\nalpha = "{alpha.address}"\n')
    with running(alpha, beta):
        assert beta.process is not None
        limit = MEMORY_MB << 20
        resource.prlimit(beta.process.pid, resource.RLIMIT_DATA, (limit, limit))
        with beta.connect() as manager:
            manager.create_queue(OPEN)
            manager.create_queue(OPEN_LEDGER, transactional=True)
            manager.create_queue(LEDGER, transactional=True)
        yield alpha, beta


def socket_count(pid: int) -> int:
    """Return how many sockets a process has; what it closes meanwhile does not count."""
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            count += str(descriptor.readlink()).startswith("socket:")
    return count


@contextmanager
def flooding(kind: str, target: Computer) -> Iterator[None]:
    """Let strangers flood a computer while the block lasts, and a little before it."""
    command = [sys.executable, "-m", "bench.peers.flooders", kind]
    command += [target.address, str(target.session_port), "--addresses", "10", "--per-s", "60"]
    place = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": place}
    )
    try:
        wait_for(lambda: socket_count(process.pid) > LOOP_SOCKET_COUNT)
        time.sleep(FLOOD_S)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=30)
    assert json.loads(printed.rpartition("begun")[2])["messages"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_queue_manager_survives_a_flood_and_serves_who_is_known(
    pair: tuple[Computer, Computer], kind: str
) -> None:
    alpha, beta = pair
    bodies = [f"{kind} {number}".encode() for number in range(COUNT)]
    with alpha.connect() as sender, beta.connect() as receiver:
        with flooding(kind, beta):
            queue = sender.queue(beta.queue(LEDGER))
            for body in bodies:
                queue.send(body, transaction=SINGLE_MESSAGE)
            ledger = receiver.queue(LEDGER)
            assert [ledger.receive(timeout=30).body for _ in bodies] == bodies
        status = receiver.status()
    assert beta.is_running
    assert beta.process is not None
    assert peak_mb(beta.process.pid) < MEMORY_MB
    assert disk_mb(beta.data) < DISK_MB
    assert status.message_bytes <= QUOTA_KB * 1024
    assert status.express_memory_bytes <= QUOTA_KB * 1024


def test_what_was_dropped_is_in_the_log_and_in_status(pair: tuple[Computer, Computer]) -> None:
    _, beta = pair
    before = dropped(beta)
    with Stranger(beta) as stranger:
        stranger.open()
        stranger.send(*(stranger.message(r"private$\missing") for _ in range(100)))
        wait_for(lambda: dropped(beta) == before + 100)
    assert "messages dropped" in beta.command("status")
    lines = [line for line in beta.log_lines() if "message-dropped" in line]
    assert any(r"private$\\missing" in line and "127.0.0.9" in line for line in lines)


def dropped(computer: Computer) -> int:
    (status,) = computer.objects("status")
    return sum(
        notice["count"]
        for notice in status["notices"]
        if (notice["event"], notice["reason"]) == ("message-dropped", "no such queue")
    )


def test_broken_connections_do_not_fill_the_log(pair: tuple[Computer, Computer]) -> None:
    _, beta = pair
    before = len(beta.log_lines())
    for _ in range(60):
        with socket.create_connection((beta.address, beta.api_port)) as made:
            made.sendall(b"\xff" * 64)
            made.settimeout(30)
            while made.recv(4096):
                pass
    assert len(beta.log_lines()) - before < 60


def test_reports_that_a_stranger_has_sent_nowhere_stay_within_his_shares(
    pair: tuple[Computer, Computer],
) -> None:
    _, beta = pair
    full = direct(beta.address, FULL)
    with beta.connect() as manager, Stranger(beta) as stranger:
        manager.create_queue(FULL, quota_kb=0)
        stranger.open()
        for number in range(1, 301):
            admin = direct(NOWHERE, rf"private$\a{number % 150}")
            wish: dict[str, Any] = {"acknowledge": ARRIVAL_NACK, "admin_queue": admin}
            message = letter(STRANGER, 1_000_000 + number, full, bytes(9_000), **wish)
            stranger.send(encode(message))
        stranger.send(stranger.message(OPEN, b"that was all"))
        while manager.queue(OPEN).receive(timeout=30).body != b"that was all":
            pass
        made = [queue for queue in manager.outgoing() if NOWHERE in queue.format_name]
        assert 0 < len(made) <= OUTGOING_QUEUES_PER_STRANGER_MAX_COUNT
        assert sum(queue.message_bytes for queue in made) <= QUOTA_KB * 1024 // 8
