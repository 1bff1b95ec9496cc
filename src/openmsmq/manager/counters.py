"""Numbers that are never given twice, not even after a crash.

They are reserved in blocks: the machine record holds a limit, and only numbers below it are given
out. Raising the limit rides on the batch that first needs it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.manager.ledger import Ledger
from openmsmq.model.identity import Guid
from openmsmq.model.limits import MESSAGE_NUMBER_MAX_COUNT
from openmsmq.storage import records
from openmsmq.storage.records import MachineRecord

BLOCK_COUNT: Final = 100_000
_TRANSACTION_NUMBERS: Final = 1 << 20


class Counters:
    """The arrival numbers, message numbers, transaction numbers and queue numbers in use."""

    def __init__(self, machine: MachineRecord, ledger: Ledger) -> None:
        self._machine = machine
        self._durable = machine
        self._ledger = ledger
        self._arrival = machine.arrival_limit
        self._message = machine.message_limit
        self._transaction = machine.transaction_limit

    @property
    def identifier(self) -> Guid:
        """Who this queue manager is."""
        return self._machine.identifier

    @property
    def last_arrival(self) -> int:
        """The arrival number given last."""
        return self._arrival - 1

    def take_arrivals(self, count: int) -> int:
        """Reserve `count` arrival numbers; give the first."""
        first = self._arrival
        self._arrival += count
        if self._arrival > self._machine.arrival_limit:
            self._change(arrival_limit=self._arrival + BLOCK_COUNT)
        return first

    def take_messages(self, count: int) -> list[int]:
        """Give `count` message numbers: 32 bits, never 0, which means "not numbered"."""
        first = self._message
        self._message += count
        if self._message > self._machine.message_limit:
            self._change(message_limit=self._message + BLOCK_COUNT)
        return [(first + i - 1) % MESSAGE_NUMBER_MAX_COUNT + 1 for i in range(count)]

    def take_transaction(self) -> int:
        """Give a transaction number: 20 bits on the wire."""
        number = self._transaction
        self._transaction += 1
        if self._transaction > self._machine.transaction_limit:
            self._change(transaction_limit=self._transaction + BLOCK_COUNT)
        return number % _TRANSACTION_NUMBERS

    def take_queue(self) -> int:
        """Give the number of a new queue."""
        number = self._machine.next_queue
        self._change(next_queue=number + 1)
        return number

    def save(self) -> None:
        """Write the machine record with this turn, as a new queue manager must."""
        self._change()

    def _change(self, **changes: int) -> None:
        changed = msgspec.structs.replace(self._machine, **changes)
        self._machine = changed

        def settled() -> None:
            self._durable = changed

        def refused(_: Exception) -> None:
            # Numbers above the durable limit were never seen by anyone; the next turn that needs
            # one writes the record again.
            self._machine = self._durable

        self._ledger.put(records.MACHINE_KEY, records.encode_record(changed))
        self._ledger.when_done(settled, refused)
