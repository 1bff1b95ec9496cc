"""Very many messages that a reader has completed: gone at once, and for good."""

from __future__ import annotations

import signal
from pathlib import Path

from openmsmq.client.blocking import Queue
from openmsmq.storage.maintenance import check_store
from tests.runtime.computers import Computer, running
from tests.runtime.scripted_engine import free_port

ADDRESS = "127.0.0.61"
NAME = r"private$\orders"
COUNT = 20_000
"""More than a journal file holds, so that most of them are in the base."""


def fetch(queue: Queue, stop: int) -> int:
    """Fetch everything below an arrival number; gives how many messages that is."""
    start = found = 0
    while start < stop:
        raw = queue.fetch_packets(start, stop, 8192, 4 << 20)
        start, found = raw.next_start, found + len(raw.sizes) // 4
    return found


def test_what_was_completed_stays_gone_when_the_process_is_killed(tmp_path: Path) -> None:
    computer = Computer(tmp_path, "ALPHA", ADDRESS, free_port(ADDRESS))
    with running(computer):
        with computer.connect() as manager:
            queue = manager.create_queue(NAME)
            queue.send_many((bytes(1024) for _ in range(COUNT)), recoverable=True)
            stop = queue.reserve("reader", 0)
            queue.send(b"later", recoverable=True)
            assert fetch(queue, stop) == COUNT
            assert queue.complete("reader", stop) == COUNT
            assert queue.properties().message_count == 1
        for ending in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
            computer.end(ending)
            computer.start()
            with computer.connect() as manager:
                queue = manager.queue(NAME)
                assert fetch(queue, 1 << 56) == queue.properties().message_count == 1
                assert queue.peek().body == b"later"
        computer.end()
        report = check_store(computer.data / "store")
        assert report.sound
        assert report.record_count < 100, "the others are cleared away"
        computer.start()
