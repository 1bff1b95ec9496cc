"""An application that works a queue manager hard and writes down, line by line, what it knows.

Each line is JSON. A line with a question mark is written before the call it announces, the same
word without it after the call succeeded. What stands between the two when the queue manager dies
may have happened or not; everything else is certain.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import openmsmq as mq
from openmsmq.model.errors import ReceiveTimeout

KEPT, PULLED, TRANSACTED = r"private$\kept", r"private$\pulled", r"private$\transacted"
BODY_BYTES = 1024
MUCH_COUNT = 1100
"""Messages of which the store says at once that they stay where they were set aside."""


def queue_names(suffix: str = "") -> tuple[str, str, str]:
    """The queues of a worker; several that work at a time have different ones."""
    return KEPT + suffix, PULLED + suffix, TRANSACTED + suffix


def body(number: int) -> bytes:
    """A body that names its number and fills a kilobyte."""
    return b"%d:" % number + b"x" * (BODY_BYTES - len(str(number)) - 1)


def number_of(raw: bytes) -> int:
    """The number a body names."""
    number, _, filling = raw.partition(b":")
    assert filling.strip(b"x") == b""
    return int(number)


def say(*words: Any) -> None:
    """Write a line that survives this process."""
    os.write(1, json.dumps(words).encode() + b"\n")


class Worker:
    """Sends, receives, commits and aborts at random until something breaks."""

    def __init__(self, address: str, seed: int, first: int, suffix: str = "") -> None:
        self.random = random.Random(seed)
        self.next = first
        self.manager = mq.connect(address)
        self.kept, self.pulled, self.transacted = map(self.manager.queue, queue_names(suffix))

    def numbers(self, count: int = 0) -> list[int]:
        """Reserve so many numbers, or a few."""
        count = count or self.random.randint(1, 40)
        self.next += count
        return list(range(self.next - count, self.next))

    def send_kept(self) -> None:
        """Send what nobody takes."""
        self._send("kept", self.kept)

    def send_pulled(self) -> None:
        """Send what is taken without a transaction."""
        self._send("pulled", self.pulled)

    def _send(self, word: str, queue: mq.Queue) -> None:
        numbers = self.numbers()
        say(f"{word}?", numbers)
        queue.send_many([body(number) for number in numbers], recoverable=True)
        say(word, numbers)

    def pull(self) -> None:
        """Receive without a transaction."""
        count = self.random.randint(1, 30)
        say("pull?", count)
        try:
            found = self.pulled.receive_many(count, 0)
        except ReceiveTimeout:
            found = []
        say("pull", [number_of(message.body_bytes) for message in found])

    def send_transacted(self) -> None:
        """Send in a transaction that commits or aborts."""
        numbers = self.numbers()
        commits = self.random.random() < 0.7
        transaction = self.manager.begin()
        self.transacted.send_many([body(number) for number in numbers], transaction=transaction)
        if not commits:
            say("aborted", numbers)
            transaction.abort()
            return
        say("commit?", numbers)
        transaction.commit()
        say("commit", numbers)

    def send_much(self) -> None:
        """Send very many in a transaction that is prepared before it commits."""
        if self.random.random() < 0.8:
            return
        numbers = self.numbers(MUCH_COUNT)
        transaction = self.manager.begin()
        self.transacted.send_many([body(number) for number in numbers], transaction=transaction)
        # If nobody hears of the end of this, it waits for somebody's word, and is not there.
        transaction.prepare()
        say("commit?", numbers)
        transaction.commit()
        say("commit", numbers)

    def take(self) -> None:
        """Receive in a transaction that commits or aborts."""
        transaction = self.manager.begin()
        try:
            found = self.transacted.receive_many(
                self.random.randint(1, 30), 0, transaction=transaction
            )
        except ReceiveTimeout:
            found = []
        numbers = [number_of(message.body_bytes) for message in found]
        if self.random.random() < 0.3:
            transaction.abort()
            return
        say("take?", numbers)
        transaction.commit()
        say("take", numbers)

    def work(self) -> None:
        """Go on until the connection breaks."""
        actions: list[Callable[[], None]] = [
            self.send_kept,
            self.send_pulled,
            self.pull,
            self.send_transacted,
            self.send_transacted,
            self.send_much,
            self.take,
        ]
        while True:
            self.random.choice(actions)()


def main() -> None:
    """Work until the queue manager is gone, then say how the end looked."""
    address, seed, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        worker = Worker(address, seed, first, *sys.argv[4:])
        say("started")
        worker.work()
    except (ConnectionError, mq.MsmqError) as error:
        say("ended", type(error).__name__, str(error))


if __name__ == "__main__":
    main()
