"""Sending dead letters again, step by step, so that each step can be repeated.

Where a transaction is possible, a batch is one, under a number that its queue manager remembers;
so a run that was cut off learns whether it took effect. The numbers of a batch have room for
several attempts, because an attempt that leaves letters out is another one.

Letters that are not taken out by the transaction that sends them are held first: two runs never
work on the same ones. What is held is free again when the connection ends.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from openmsmq.client.blocking import Queue, QueueManager, Transaction
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.errors import (
    MessageLocked,
    MessageNotFound,
    MsmqError,
    TransactionSequence,
    TransactionUsage,
)
from openmsmq.model.names import parse_format_name
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.pipelines.replay.audit import Batch, Letter
from openmsmq.spark.pipelines.replay.packets import message_again, packet_again
from openmsmq.wire.errors import DecodeError

ATTEMPTS_MAX_COUNT: Final = 1 << 16
"""Room for the attempts of one batch in its numbers."""

GONE: Final = "its dead letter is not there any more"


class Refused(Exception):
    """A letter cannot be sent; the others can."""

    def __init__(self, letter: Letter, reason: str) -> None:
        super().__init__(reason)
        self.letter = letter
        self.reason = reason


class Staged(msgspec.Struct, frozen=True):
    """A batch that is prepared: it takes effect when it is committed."""

    number: int
    units: list[bytes]
    refused: list[tuple[Letter, str]]
    """The letters that were left out, and why."""


class Sender:
    """Sends dead letters of one queue manager for one run, which it knows by `query`."""

    def __init__(self, manager: QueueManager, query: str) -> None:
        self._manager = manager
        self._query = query
        self._queues: dict[str, Queue] = {}
        self._held: dict[tuple[str, int], ReceivedMessage] = {}

    # Letters.

    def is_there(self, letter: Letter) -> bool:
        """Whether a dead letter is where the plan says."""
        try:
            self._find(letter)
        except Refused as problem:
            return problem.reason != GONE
        return True

    def hold(self, letters: Iterable[Letter]) -> list[Letter]:
        """Keep letters from everybody else; gives those that are there."""
        there: list[Letter] = []
        for letter in letters:
            read = functools.partial(
                self._queue(letter.queue).begin_receive_by_lookup_id, letter.lookup_id
            )
            try:
                self._held[letter.key] = self._checked(letter, read)
            except Refused as problem:
                if problem.reason == GONE:
                    continue
                raise QueueProblem(
                    f"lookup id {letter.lookup_id} in {letter.queue}: {problem.reason}. If another "
                    "process works on the run, wait for it; then repeat the run"
                ) from None
            there.append(letter)
        return there

    def let_go(self) -> None:
        """Give what is still held back to everybody."""
        for queue, lookup_id in self._held:
            self._queue(queue).end_receive(lookup_id, remove=False)
        self._held.clear()

    def remove(self, letters: Iterable[Letter]) -> None:
        """Take letters out that are held, and were sent."""
        for letter in letters:
            if self._held.pop(letter.key, None) is not None:
                self._queue(letter.queue).end_receive(letter.lookup_id)

    def _find(self, letter: Letter) -> ReceivedMessage:
        """Return the dead letter that a plan names; `Refused` if it is not there any more."""
        held = self._held.get(letter.key)
        if held is not None:
            return held
        read = functools.partial(self._queue(letter.queue).peek_by_lookup_id, letter.lookup_id)
        return self._checked(letter, read)

    def _checked(self, letter: Letter, read: Callable[[], ReceivedMessage]) -> ReceivedMessage:
        try:
            message = read()
            if str(message.id) != letter.message_id:
                raise Refused(letter, GONE)
        except MessageNotFound:
            raise Refused(letter, GONE) from None
        except (MessageLocked, TransactionUsage):
            raise Refused(letter, "somebody else is receiving the dead letter") from None
        except DecodeError as error:
            raise Refused(letter, f"it cannot be decoded: {error}") from None
        return message

    # In transactions.

    def committed_attempt(self, batch: Batch) -> int | None:
        """Return the attempt by which a batch has taken effect; None if it has not."""
        last = self._manager.last_batch(self._query)
        first = batch.number * ATTEMPTS_MAX_COUNT
        if last < first:
            return None
        # A later batch is begun only when all of this one is noted.
        return last - first if last < first + ATTEMPTS_MAX_COUNT else batch.last_attempt

    def stage(self, batch: Batch, attempt: int, *, taking: bool) -> Staged:
        """Send the letters of a batch in a transaction, and prepare it.

        With `taking`, the same transaction takes the letters out. What cannot be sent is left out,
        and the transaction begun again, because it cannot give a part of itself up.
        """
        refused: dict[tuple[str, int], tuple[Letter, str]] = {}
        first = batch.number * ATTEMPTS_MAX_COUNT
        # An attempt that was prepared and no more would hold its letters for ever.
        self._manager.abort_batch(self._query, first + ATTEMPTS_MAX_COUNT - 1)
        while True:
            left = [letter for letter in batch.letters if letter.key not in refused]
            transaction = self._manager.begin()
            try:
                self._send_in(transaction, left, taking=taking)
            except Refused as problem:
                transaction.abort()
                refused[problem.letter.key] = problem.letter, problem.reason
            else:
                transaction.prepare(query=self._query, batch=first + attempt)
                unit = bytes(transaction.unit_of_work)
                return Staged(first + attempt, [unit], list(refused.values()))

    def _send_in(
        self, transaction: Transaction, letters: Sequence[Letter], *, taking: bool
    ) -> None:
        for letter in letters:
            self._send(letter, transaction)
        for letter in letters if taking else ():
            queue = self._queue(letter.queue)
            with _refusing(letter):
                queue.receive_by_lookup_id(letter.lookup_id, transaction=transaction)

    def commit(self, staged: Staged) -> None:
        """Let a batch take effect; a second time changes nothing."""
        self._manager.commit_batch(self._query, staged.number, staged.units)

    # Without.

    def send(self, letter: Letter) -> None:
        """Send a letter again, outside of transactions."""
        self._send(letter, None)

    def _send(self, letter: Letter, transaction: Transaction | None) -> None:
        message = self._find(letter)
        target = self._queue(letter.address)
        with _refusing(letter):
            if letter.changes:
                target.send(message_again(message, letter.changes), transaction=transaction)
            else:
                address = parse_format_name(letter.address)
                packet = packet_again(message, address, transactional=transaction is not None)
                target.send_packets([packet], transaction=transaction)

    def _queue(self, name: str) -> Queue:
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = self._manager.queue(name)
        return found


@contextlib.contextmanager
def _refusing(letter: Letter) -> Iterator[None]:
    """Take the refusal of a message for one of its letter; a lost transaction is more."""
    try:
        yield
    except TransactionSequence:
        raise
    except MsmqError as error:
        raise Refused(letter, str(error)) from None
