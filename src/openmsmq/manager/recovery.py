"""From records to state: how a queue manager begins, the first time and every other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.queues.queue import SYSTEM_QUEUES
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transactions.work import TransactionWork
from openmsmq.model.identity import Guid
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader, StoreTooNew
from openmsmq.storage.records import MachineRecord

if TYPE_CHECKING:
    import random

_ROWS: Final = 1000


def open_machine(config: ManagerConfig, rng: random.Random, reader: StoreReader) -> MachineRecord:
    """Read who this queue manager is, or make it up for a new one."""
    value = reader.get(records.MACHINE_KEY)
    if value is None:
        return MachineRecord(config.identifier or Guid(rng.randbytes(16)), config.name)
    machine = records.decode_record(value, records.MachineRecord)
    if machine.schema > records.SCHEMA_VERSION:
        raise StoreTooNew(
            f"the store has schema {machine.schema}, this version knows "
            f"{records.SCHEMA_VERSION}: run the version that wrote it"
        )
    return machine


def restore_queues(reader: StoreReader, table: QueueTable) -> None:
    """Take in all queues. Children have higher numbers than their parents."""
    for key, value in _all(reader, b"Q"):
        number = records.queue_of(key)
        count, size = _counts(reader, number)
        table.restore(number, records.decode_record(value, records.QueueRecord), count, size)
    for number in SYSTEM_QUEUES.values():
        table.restore_counts(number, *_counts(reader, number))


def restore_transactions(
    reader: StoreReader, work: TransactionWork, transactions: TransactionRequests
) -> None:
    """Take up the prepared transactions; their coordinators will decide."""
    for key, value in _all(reader, b"T"):
        record = records.decode_record(value, records.TransactionRecord)
        adopted = transactions.adopt(Guid(key[1:]), None, record.owner)
        work.restore(adopted, record)
        transactions.staged.take_up(adopted)


def _counts(reader: StoreReader, number: int) -> tuple[int, int]:
    value = reader.get(records.counts_key(number))
    return (0, 0) if value is None else records.decode_counts(value)


def _all(reader: StoreReader, kind: bytes) -> list[tuple[bytes, bytes]]:
    start, stop = records.kind_range(kind)
    found: list[tuple[bytes, bytes]] = []
    while rows := reader.scan(start, stop, _ROWS):
        found += rows
        start = rows[-1][0] + b"\0"
    return found
