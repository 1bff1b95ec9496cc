"""Applications that send during a whole run, and write down in a ledger what became of it.

One sends recoverable messages of all priorities, others send in transactions: short ones, long
ones that commit after many others that began later, and some that abort. One receives in
transactions and mostly gives back what it took.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import openmsmq as mq
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.model.errors import ReceiveTimeout, TransactionSequence
from tests.spark.exactly_once.checker import Bundle, Ledger, Outcome, Sent

PAUSE_S = 0.05
WAITING_MAX_COUNT = 1500
"""Messages in a queue at which its senders wait for the job to catch up."""

RECONNECT_WITHIN_S = 120.0


class Senders:
    """The threads of a run; `stop` ends them and raises what went wrong in one of them."""

    def __init__(self, address: str, seed: int, pause_s: float = PAUSE_S) -> None:
        self.plain = Ledger()
        self.transacted = Ledger()
        self._address = address
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._failures: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        self._seed = seed

    def start(self, plain: str, transacted: tuple[str, ...]) -> None:
        """Begin to send to the queues of these names."""
        self._begin("plain", lambda *given: self._send_plain(plain, *given))
        for place, queue in enumerate(transacted):
            for kind, late in (("quick", False), ("quick-too", False), ("late", True)):
                self._begin(f"{kind}-{place}", self._transacting(queue, late))
            self._begin(f"thief-{place}", self._taking(queue))

    def stop(self) -> None:
        """End all of them: transactions under way are committed or aborted."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(RECONNECT_WITHIN_S)
            assert not thread.is_alive(), f"{thread.name} does not end"
        if self._failures:
            raise self._failures[0]

    def _begin(
        self, name: str, work: Callable[[str, random.Random, mq.QueueManager], None]
    ) -> None:
        rng = random.Random(f"{self._seed} {name}")

        def run() -> None:
            try:
                with mq.connect(self._address, reconnect_within_s=RECONNECT_WITHIN_S) as manager:
                    while not self._stopping.wait(rng.uniform(0, 2 * self._pause_s)):
                        work(name, rng, manager)
            except BaseException as error:
                self._failures.append(error)

        thread = threading.Thread(target=run, name=name)
        self._threads.append(thread)
        thread.start()

    def _is_full(self, queue: mq.Queue) -> bool:
        return queue.count() > WAITING_MAX_COUNT

    # What each of them does, once.

    def _send_plain(
        self, name: str, sender: str, rng: random.Random, manager: mq.QueueManager
    ) -> None:
        queue = manager.queue(name)
        if self._is_full(queue):
            return
        messages = make_messages(self.plain, sender, rng, rng.randint(1, 30))
        bundle = self.plain.begin(messages)
        try:
            queue.send_many(
                [
                    OutgoingMessage(
                        body=each.content.encode(),
                        label=each.sender,
                        priority=each.priority,
                        application_tag=each.number,
                        recoverable=True,
                    )
                    for each in messages
                ]
            )
        except OutcomeUnknown:
            return
        bundle.outcome = Outcome.SENT

    def _transacting(
        self, name: str, late: bool
    ) -> Callable[[str, random.Random, mq.QueueManager], None]:
        def send(sender: str, rng: random.Random, manager: mq.QueueManager) -> None:
            queue = manager.queue(name)
            if not self._is_full(queue):
                count = rng.randint(1, 25)
                messages = make_messages(self.transacted, sender, rng, count)
                bundle = self.transacted.begin(messages, late=late)
                try:
                    self._send_in_transaction(queue, bundle, rng, manager)
                except (ConnectionLost, TransactionSequence):
                    # The connection was lost before the commit was asked for.
                    bundle.outcome = Outcome.NOT_SENT

        return send

    def _send_in_transaction(
        self, queue: mq.Queue, bundle: Bundle, rng: random.Random, manager: mq.QueueManager
    ) -> None:
        transaction = manager.begin()
        half = len(bundle.messages) // 2
        for part in (bundle.messages[:half], bundle.messages[half:]):
            queue.send_many(
                [
                    OutgoingMessage(
                        body=each.content, label=each.sender, application_tag=each.number
                    )
                    for each in part
                ],
                transaction=transaction,
            )
            if bundle.late:
                self._stopping.wait(rng.uniform(0, 1.5))
        if rng.random() < 0.2:
            transaction.abort()
            bundle.outcome = Outcome.NOT_SENT
            return
        try:
            transaction.commit()
        except OutcomeUnknown:
            return
        bundle.outcome = Outcome.SENT

    def _taking(self, name: str) -> Callable[[str, random.Random, mq.QueueManager], None]:
        def take(_: str, rng: random.Random, manager: mq.QueueManager) -> None:
            transaction = manager.begin()
            try:
                found = manager.queue(name).receive_many(
                    rng.randint(1, 8), 0, transaction=transaction
                )
            except ReceiveTimeout:
                transaction.abort()
                return
            except (ConnectionLost, TransactionSequence):
                return
            self._stopping.wait(rng.uniform(0, 0.5))
            self._end_taking(transaction, {each.application_tag for each in found}, rng)

        return take

    def _end_taking(
        self, transaction: mq.Transaction, numbers: set[int], rng: random.Random
    ) -> None:
        keeps = rng.random() < 0.1
        try:
            if not keeps:
                transaction.abort()
                return
            transaction.commit()
            self.transacted.taken.update(numbers)
        except OutcomeUnknown:
            if keeps:
                self.transacted.maybe_taken.update(numbers)
        except (ConnectionLost, TransactionSequence):
            return


def make_messages(ledger: Ledger, sender: str, rng: random.Random, count: int) -> list[Sent]:
    """Make messages with contents that nobody guesses, a few of them long."""
    size = 60_000 if rng.random() < 0.01 else 200
    return [
        Sent(number, sender, f"{number} {rng.randbytes(rng.randint(0, size)).hex()}", priority)
        for number in ledger.numbers(count)
        for priority in (rng.randint(0, 7) if sender == "plain" else 0,)
    ]
