"""Numbers that are never given twice, not even after a crash.

They are reserved in blocks: the machine record holds a limit, and a queue manager that starts goes
on from there. An arrival number is used only in the batch that raises its limit if need be. A
message number is told to the application before anything is stored, so only numbers below a limit
that is already durable are given out, and the limit is raised long before they run short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, MsmqError
from openmsmq.model.identity import SequenceId
from openmsmq.model.limits import EPOCHS_MAX_COUNT, MESSAGE_NUMBER_MAX_COUNT
from openmsmq.storage import records
from openmsmq.storage.records import EpochRecord, MachineRecord

if TYPE_CHECKING:
    import random

BLOCK_COUNT: Final = 200_000
"""How far ahead limits are set; a crash skips what is left of a block."""
_RESERVE_COUNT: Final = 100_000
"""A limit is raised when so many numbers are left, or fewer."""
_TRANSACTION_NUMBERS: Final = 1 << 20
_ORDINAL_MAX: Final = 0xFFFFFFFF
_ORDINAL_FIRST_MAX: Final = 1 << 31
"""The first ordinal of a queue is a random number up to this: there is room for as many more."""


class Counters:
    """The arrival numbers, message numbers, transaction numbers and queue numbers in use."""

    def __init__(self, machine: MachineRecord, ledger: Ledger, rng: random.Random) -> None:
        self._rng = rng
        self.identifier: Final = machine.identifier
        """Who this queue manager is."""
        self.machine = machine
        """The machine record as the current turn leaves it."""
        self.durable = machine
        """The machine record as the disk has it."""
        self._ledger = ledger
        self._arrival = machine.arrival_limit
        self._message = machine.message_limit
        self._transaction = machine.transaction_limit

    @property
    def last_arrival(self) -> int:
        """The arrival number given last, of those that no later message can be given.

        Numbers above the limit were given to messages that the disk refused, and only after a
        crash are they given again.
        """
        return min(self._arrival, self.machine.arrival_limit) - 1

    def take_arrivals(self, count: int) -> int:
        """Reserve `count` arrival numbers; give the first."""
        first = self._arrival
        self._arrival += count
        if self._arrival > self.machine.arrival_limit:
            self._change(arrival_limit=self._arrival + BLOCK_COUNT)
        return first

    def take_messages(self, count: int) -> list[int]:
        """Return `count` message numbers: 32 bits, never 0, which means "not numbered"."""
        first = self._message
        if first + count + _RESERVE_COUNT > self.machine.message_limit:
            self._change(message_limit=first + count + BLOCK_COUNT)
        if first + count > self.durable.message_limit:
            raise InsufficientResources(
                f"no {count} message numbers are reserved on the disk yet: send fewer at once, "
                "or try again when the disk has room"
            )
        self._message += count
        return [(first + i - 1) % MESSAGE_NUMBER_MAX_COUNT + 1 for i in range(count)]

    def take_message_of_turn(self) -> int:
        """Return a message number of which nobody hears before this turn is durable.

        It may be the first above the limit on the disk, which is raised with the same turn.
        """
        number = self._message
        if number + 1 + _RESERVE_COUNT > self.machine.message_limit:
            self._change(message_limit=number + 1 + BLOCK_COUNT)
        self._message += 1
        return (number - 1) % MESSAGE_NUMBER_MAX_COUNT + 1

    def take_transaction(self) -> int:
        """Return a transaction number: 20 bits on the wire."""
        number = self._transaction
        self._transaction += 1
        if self._transaction > self.machine.transaction_limit:
            self._change(transaction_limit=self._transaction + BLOCK_COUNT)
        return number % _TRANSACTION_NUMBERS

    def take_sequence(self, before: SequenceId | None, now: Instant) -> SequenceId:
        """Return the identifier of a new transactional sequence of a queue, after the one before.

        It is greater than all that messages to the same destination ever had, also those of a
        queue that was forgotten. Ordinals go on by one, as the specification has it. Those of a
        queue begin at random and not at 1, so that nobody guesses them; no receiver can tell.
        """
        last_s = self.machine.sequence_time_s
        if before is not None and before.ordinal < _ORDINAL_MAX:
            found = SequenceId(before.ordinal + 1, max(last_s, now.unix_s))
        else:
            found = SequenceId(
                self._rng.randint(1, _ORDINAL_FIRST_MAX), max(last_s + 1, now.unix_s)
            )
        if found.timestamp > last_s:
            self._change(sequence_time_s=found.timestamp)
        return found

    def take_queue(self) -> int:
        """Return the number of a new queue."""
        number = self.machine.next_queue
        self._change(next_queue=number + 1)
        return number

    def open(self, epoch: str = "") -> None:
        """Write the machine record with the first turn, with numbers to go on with.

        `epoch` is a random word for this life of the queue manager, if it is to be told apart.
        """
        if epoch:
            epochs = [*self.machine.epochs, EpochRecord(epoch, self._arrival)]
            self.machine = msgspec.structs.replace(self.machine, epochs=epochs[-EPOCHS_MAX_COUNT:])
        self._change(message_limit=self._message + BLOCK_COUNT)

    def epochs(self) -> list[EpochRecord]:
        """Return the last lives of the queue manager; they are durable with this turn."""
        if self.durable.epochs != self.machine.epochs:
            self._change()
        return self.machine.epochs

    def cover_transactions(self) -> None:
        """Make sure that this turn stores a limit above every transaction number given out."""
        if self._transaction > self.durable.transaction_limit:
            self._change(transaction_limit=self._transaction + BLOCK_COUNT)

    def _change(self, **changes: int) -> None:
        changed = msgspec.structs.replace(self.machine, **changes)
        self._ledger.add(NumbersReserved(self, changed))


class NumbersReserved(Effect):
    """The machine record has other limits: numbers below them may be given out."""

    __slots__ = ("counters", "machine")

    def __init__(self, counters: Counters, machine: MachineRecord) -> None:
        self.counters = counters
        self.machine = machine

    def apply(self) -> None:
        """Go on from the new record."""
        self.counters.machine = self.machine

    def store(self, writes: Writes) -> None:
        """Write the record."""
        writes.put(records.MACHINE_KEY, records.encode_record(self.machine))

    def follow(self) -> None:
        """Give out what waited for a limit on the disk."""
        self.counters.durable = self.machine

    def revert(self, _: MsmqError, /) -> None:
        """Go back to the record on the disk: the next turn that needs a number writes it again.

        The number of a queue that never came to be is not given to another one: it is not
        forgotten everywhere yet.
        """
        assumed = self.counters.machine
        self.counters.machine = msgspec.structs.replace(
            self.counters.durable, next_queue=assumed.next_queue, epochs=assumed.epochs
        )

    def describe(self) -> dict[str, Plain]:
        """Return all limits."""
        return {
            "arrival_limit": self.machine.arrival_limit,
            "message_limit": self.machine.message_limit,
            "transaction_limit": self.machine.transaction_limit,
            "sequence_time_s": self.machine.sequence_time_s,
            "next_queue": self.machine.next_queue,
        }
