"""Applications that send numbers in transactions while everything around them fails."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import openmsmq
from openmsmq.client.blocking import QueueManager
from openmsmq.client.errors import ConnectionLost
from openmsmq.model.errors import MsmqError, QueueExists, ReceiveTimeout

QUEUE = r"private$\numbers"
PAUSE_S = 0.05


def connect(address: str | list[str], within_s: float = 90.0) -> QueueManager:
    """Connect as an application that does not give up soon."""
    return openmsmq.connect(
        address,
        connect_timeout_s=4.0,
        call_timeout_s=6.0,
        start_wait_s=within_s,
        reconnect_within_s=within_s,
    )


class Sender:
    """Sends numbers, one in a transaction, and remembers what it was told."""

    def __init__(self, address: str | list[str], destination: str) -> None:
        self.acknowledged: list[int] = []
        self.problem: Exception | None = None
        self._address = address
        self._destination = destination
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the number that is under way."""
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "a sender hangs"
        assert self.problem is None, repr(self.problem)

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:
            self.problem = error

    def _send_all(self) -> None:
        number = 0
        with connect(self._address) as manager:
            queue = manager.queue(self._destination)
            while not self._stopping.wait(PAUSE_S):
                number += 1
                # What was not acknowledged may have been sent all the same: it is not sent again.
                with contextlib.suppress(ConnectionLost, MsmqError):
                    with manager.transaction() as transaction:
                        queue.send(b"%d" % number, transaction=transaction)
                    self.acknowledged.append(number)


def create_queue(address: str | list[str]) -> None:
    """Make the queue that numbers arrive in."""
    with connect(address) as manager, contextlib.suppress(QueueExists):
        manager.create_queue(QUEUE, transactional=True)


def take_all(address: str | list[str], is_done: Callable[[list[int]], bool]) -> list[int]:
    """Take numbers out of the queue, until that is enough or none comes for long."""
    found: list[int] = []
    with connect(address) as manager:
        queue = manager.queue(QUEUE)
        with contextlib.suppress(ReceiveTimeout):
            while not is_done(found):
                found += [int(message.body_bytes) for message in queue.receive_many(500, 60)]
    return found


def check(found: list[int], acknowledged: list[int]) -> None:
    """Compare what has arrived with what was acknowledged."""
    lost = sorted(set(acknowledged) - set(found))
    assert not lost, f"acknowledged and lost: {lost[:10]}"
    assert len(set(found)) == len(found), "some came twice"
    assert found == sorted(found), "some came out of order"
