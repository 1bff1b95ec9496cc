"""Crashes of queue managers that send messages to each other lose none and repeat none."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from openmsmq.client.blocking import QueueManager
from openmsmq.model.errors import ReceiveTimeout
from tests.crash.harness import work_until
from tests.crash.transfer import (
    LEDGER,
    PLAIN,
    Application,
    Books,
    PlainSender,
    Receiver,
    Sender,
)
from tests.crash.worker import number_of
from tests.runtime.computers import (
    Computer,
    explanations,
    neighbours,
    running,
    wait_for,
    waiting_count,
)

KILLS = int(os.environ.get("OPENMSMQ_TRANSFER_KILLS", "4"))
SEED = int(os.environ.get("OPENMSMQ_SEED", "1"))
MESSAGES = 100 + 50 * KILLS
"""At least so many are committed in each direction."""

DONE_WITHIN_S = 90.0


class Enterprise:
    """Two computers, and applications on both that send to the other one and receive."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.alpha, self.beta = neighbours(folder, "ALPHA", "BETA")
        self.stop = threading.Event()
        self.directions = [(self.alpha, self.beta, Books()), (self.beta, self.alpha, Books())]
        self.senders: list[Application] = []
        self.receivers: list[Application] = []
        for source, target, books in self.directions:
            common = books, self.stop
            self.senders += [
                Sender(source, target.queue(LEDGER), *common, self.random.getrandbits(32)),
                PlainSender(source, target.queue(PLAIN), *common, self.random.getrandbits(32)),
            ]
            self.receivers.append(Receiver(target, *common, self.random.getrandbits(32)))

    def begin(self) -> None:
        for computer in (self.alpha, self.beta):
            with computer.connect() as manager:
                manager.create_queue(LEDGER, transactional=True)
                manager.create_queue(PLAIN)
        for application in (*self.senders, *self.receivers):
            application.start()

    def crash(self) -> None:
        """Kill one queue manager, or both, at a moment that nobody chose, and start it again."""
        choices: list[list[Computer]] = [[self.alpha], [self.beta], [self.alpha, self.beta]]
        victims = self.random.choices(choices, weights=(2, 2, 1))[0]
        work_until(self.random.uniform(0.0, 0.6))
        for victim in victims:
            victim.kill()
        for victim in victims:
            victim.launch()
        for victim in victims:
            victim.ready()
        self.raise_problem()

    def raise_problem(self) -> None:
        for application in (*self.senders, *self.receivers):
            if application.problem is not None:
                raise AssertionError(f"{application.name} failed") from application.problem

    def finish(self) -> None:
        """Let everything arrive."""
        self._wait(lambda: all(books.sent_count >= MESSAGES for *_, books in self.directions))
        for sender in self.senders:
            sender.enough.set()
        self._wait(lambda: not any(map(threading.Thread.is_alive, self.senders)))
        self._wait(lambda: not any(map(threading.Thread.is_alive, self.receivers)))
        for source, target, _ in self.directions:
            with source.connect() as manager:
                for name in (target.queue(LEDGER), target.queue(PLAIN)):
                    wait_for(partial(left, manager, name), otherwise=self._why)

    def _wait(self, condition: Callable[[], bool]) -> None:
        wait_for(lambda: condition() or self.stop.is_set(), DONE_WITHIN_S, otherwise=self._why)
        self.raise_problem()

    def _why(self) -> list[str]:
        with self.alpha.connect() as alpha, self.beta.connect() as beta:
            return explanations(alpha, beta)

    def check(self) -> None:
        for _, target, books in self.directions:
            with target.connect() as manager:
                assert manager.queue(LEDGER).count() == 0
                books.check_transactions()
                books.check_plain(rest(manager, PLAIN))


def left(manager: QueueManager, name: str) -> bool:
    return waiting_count(manager, name) == 0


def rest(manager: QueueManager, path: str) -> list[int]:
    """Take everything out of a queue."""
    found: list[int] = []
    queue = manager.queue(path)
    with suppress(ReceiveTimeout):
        while True:
            found += [number_of(message.body_bytes) for message in queue.receive_many(500, 0)]
    return found


@pytest.mark.timeout(7200)
def test_crashes_on_both_sides_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    enterprise = Enterprise(tmp_path, SEED)
    with running(enterprise.alpha, enterprise.beta):
        try:
            enterprise.begin()
            for _ in range(KILLS):
                enterprise.crash()
            enterprise.finish()
        finally:
            enterprise.stop.set()
        enterprise.check()
    for *_, books in enterprise.directions:
        assert books.plain
