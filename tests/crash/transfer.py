"""Applications on computers whose queue managers crash, and whether their books agree."""

from __future__ import annotations

import abc
import random
import threading
from enum import Enum
from typing import NamedTuple

from openmsmq.client.blocking import Queue, QueueManager, Transaction
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.model.errors import ReceiveTimeout, TransactionSequence
from tests.crash.worker import body, number_of
from tests.runtime.computers import Computer

LEDGER, PLAIN = r"private$\ledger", r"private$\plain"
LAST = -1
"""The number of the message after which nothing comes."""

UNIT_SIZES = (1, 1, 2, 3, 5, 10, 25, 60)
AHEAD_MAX_COUNT = 300
"""Messages that a sender is ahead of its receiver: enough for traffic at any moment."""


class Fate(Enum):
    """What an application knows about something it has done."""

    DONE = "done"
    UNDONE = "undone"
    UNKNOWN = "unknown"
    """The answer was lost."""


class Unit(NamedTuple):
    """Messages that went together, or were to."""

    numbers: list[int]
    fate: Fate


class Books:
    """What the applications at both ends of one direction know."""

    def __init__(self) -> None:
        self.sent: list[Unit] = []
        """Transactions, in their order."""
        self.taken: list[Unit] = []
        """What was received in transactions that are committed, or may be."""
        self.plain: list[Unit] = []
        """Recoverable messages without a transaction."""
        self.sent_count = 0
        self.taken_count = 0

    def consumed(self) -> list[int]:
        """Return what was received for good.

        A receive whose commit got no answer has not happened if its first message came again.
        """
        numbers: list[int] = []
        for place, unit in enumerate(self.taken):
            again = self.taken[place + 1].numbers[0] if place + 1 < len(self.taken) else None
            if unit.fate is Fate.DONE or unit.numbers[0] != again:
                numbers += unit.numbers
        return numbers

    def check_transactions(self) -> None:
        """Each committed message was received once and in order, and no other one."""
        consumed = self.consumed()
        seen = set(consumed)
        assert len(consumed) == len(seen), "a message was received twice"
        expected: list[int] = []
        for unit in self.sent:
            happened = unit.fate is Fate.DONE
            if unit.fate is Fate.UNKNOWN:
                happened = unit.numbers[0] in seen
            if happened:
                expected += unit.numbers
        missing = sorted(set(expected) - seen)
        assert not missing, f"messages of a transaction are lost: {missing}"
        surplus = sorted(seen - set(expected))
        assert not surplus, f"messages that were not sent, or only in part: {surplus}"
        assert consumed == expected, "the order is lost"

    def check_plain(self, found: list[int]) -> None:
        """Each acknowledged message is there, none is twice, and nothing else is."""
        certain = {number for unit in self.plain if unit.fate is Fate.DONE for number in unit[0]}
        possible = {
            number for unit in self.plain if unit.fate is Fate.UNKNOWN for number in unit[0]
        }
        assert len(found) == len(set(found)), "a recoverable message came twice"
        missing = sorted(certain - set(found))
        assert not missing, f"recoverable messages are lost: {missing}"
        surplus = sorted(set(found) - certain - possible)
        assert not surplus, f"recoverable messages that were not sent: {surplus}"


class Application(threading.Thread, abc.ABC):
    """Works with one queue manager, through all its crashes, until it is done."""

    def __init__(self, computer: Computer, books: Books, stop: threading.Event, seed: int) -> None:
        super().__init__(name=f"{type(self).__name__} at {computer.name}", daemon=True)
        self.computer = computer
        self.books = books
        self.stop = stop
        """When set, somebody has failed."""
        self.enough = threading.Event()
        """When set, it is time to come to an end."""
        self.random = random.Random(seed)
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            with self.computer.connect() as manager:
                self.work(manager)
        except BaseException as problem:
            self.problem = problem
            self.stop.set()

    @abc.abstractmethod
    def work(self, manager: QueueManager) -> None:
        """What it does while it is connected."""


class Sender(Application):
    """Sends numbered messages in transactions of several sizes, some of which it aborts."""

    def __init__(
        self, computer: Computer, target: str, books: Books, stop: threading.Event, seed: int
    ) -> None:
        super().__init__(computer, books, stop, seed)
        self.target = target
        self._next = 0

    def work(self, manager: QueueManager) -> None:
        queue = manager.queue(self.target)
        while not self.stop.is_set() and not self.enough.is_set():
            if self.books.sent_count - self.books.taken_count > AHEAD_MAX_COUNT:
                self.enough.wait(0.005)
            else:
                self._send(manager, queue, self._numbers(), commits=self.random.random() < 0.8)
        while not self.stop.is_set() and not self._send(manager, queue, [LAST], commits=True):
            pass

    def _numbers(self) -> list[int]:
        count = self.random.choice(UNIT_SIZES)
        self._next += count
        return list(range(self._next - count, self._next))

    def _send(
        self, manager: QueueManager, queue: Queue, numbers: list[int], *, commits: bool
    ) -> bool:
        fate = Fate.UNDONE
        try:
            transaction = manager.begin()
            for start in range(0, len(numbers), 20):
                bodies = [body(number) for number in numbers[start : start + 20]]
                queue.send_many(bodies, transaction=transaction)
            fate = end(transaction, commits=commits)
        except (ConnectionLost, TransactionSequence):
            # Without a commit nothing has happened.
            pass
        self.books.sent.append(Unit(numbers, fate))
        if fate is Fate.DONE:
            self.books.sent_count += len(numbers)
        return fate is Fate.DONE


class Receiver(Application):
    """Receives in transactions, some of which it aborts, until the last message came."""

    def work(self, manager: QueueManager) -> None:
        queue = manager.queue(LEDGER)
        while not self.stop.is_set() and not self._has_last():
            self._receive(manager, queue)

    def _has_last(self) -> bool:
        taken = self.books.taken
        return bool(taken) and taken[-1].numbers[-1] == LAST and taken[-1].fate is Fate.DONE

    def _receive(self, manager: QueueManager, queue: Queue) -> None:
        try:
            transaction = manager.begin()
            found = queue.receive_many(
                self.random.choice(UNIT_SIZES), timeout=0.2, transaction=transaction
            )
            numbers = [number_of(message.body_bytes) for message in found]
            fate = end(transaction, commits=self.random.random() < 0.85)
        except ReceiveTimeout:
            end(transaction, commits=False)
        except (ConnectionLost, TransactionSequence):
            pass
        else:
            if fate is not Fate.UNDONE:
                self.books.taken.append(Unit(numbers, fate))
                self.books.taken_count += len(numbers)


class PlainSender(Application):
    """Sends recoverable messages without transactions, which stay in their queue."""

    def __init__(
        self, computer: Computer, target: str, books: Books, stop: threading.Event, seed: int
    ) -> None:
        super().__init__(computer, books, stop, seed)
        self.target = target

    def work(self, manager: QueueManager) -> None:
        queue = manager.queue(self.target)
        first = 0
        while not self.stop.is_set() and not self.enough.wait(self.random.uniform(0, 0.05)):
            numbers = list(range(first, first + self.random.randint(1, 8)))
            first = numbers[-1] + 1
            try:
                queue.send_many([body(number) for number in numbers], recoverable=True)
                fate = Fate.DONE
            except OutcomeUnknown:
                fate = Fate.UNKNOWN
            except ConnectionLost:
                fate = Fate.UNDONE
            self.books.plain.append(Unit(numbers, fate))


def end(transaction: Transaction, *, commits: bool) -> Fate:
    """End a transaction; give what is known of it then."""
    try:
        if commits:
            transaction.commit()
            return Fate.DONE
        transaction.abort()
    except OutcomeUnknown:
        # An abort whose answer is lost is one nevertheless.
        return Fate.UNKNOWN if commits else Fate.UNDONE
    except (ConnectionLost, TransactionSequence):
        pass
    return Fate.UNDONE
