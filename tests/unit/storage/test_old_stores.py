"""A queue manager of today opens whole stores of older versions, and goes on with what is there.

The stores in `stores` were written by the sources as they were, and then abandoned, as by a loss of
power: the base has most of it, and the journal the rest. Schema 1 is of commit 683b018, schema 2 of
the one before 093d396, and schema 3 of the first version that sets transactions aside under their
names; it does so from the first byte on. Schema 4 is the third, compacted by the first version that
has bundles, which makes them of two records and of any size. Schema 6 is the fifth, in whose
journal three batches each share a record, as some do on a primary. All have the same in them:

    private$\\orders   plain 1 (reserved by "stream"), plain 2, urgent, plain 3; an express message
    private$\\kept     kept 2, and kept 1 in its journal; its quota is 100 KB
    private$\\ledger   transactional: ledger 1 to 5, and batch 0 of the query "hourly"
    beta               away 1 and away 2 in the outgoing queue of private$\\orders, in one sequence
    dead letters       too late
    prepared           one transaction has received ledger 1, and sends prepared 1, prepared 2 and
                       away 3; one has received ledger 2, and sends never; and two parts of batch 1
                       of "hourly" send batch 1 a, 500 times batch 1 b in one message, and batch 1 c
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.model.clock import Instant
from openmsmq.model.queue import AccessMode
from openmsmq.storage import records
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.layout import SCHEMA_VERSION
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.records import FACTS_BYTES
from openmsmq.wire import message_bytes
from openmsmq.wire.packets import UserMessage, decode
from tests.property import driver
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, bodies

KEPT = r"private$\kept"
AWAY = r"DIRECT=OS:beta\private$\orders"
LONG = b"batch 1 b" * 500
STORES = Path(__file__).parent / "stores"


@pytest.fixture(params=range(1, SCHEMA_VERSION + 1))
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name = f"schema-{request.param}"
    with tarfile.open(STORES / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert check_store(tmp_path / name).schema_version == request.param
    return tmp_path / name


class OldOffice(Office):
    """A queue manager that begins with a store."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.start()

    def start(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(driver, "MemoryStore", lambda: open_store(self._directory, create=False))
            config = ManagerConfig(name="ALPHA")
            self.driver = driver.Driver(config, Instant(0, START_S + 100))
        self.app = self.driver.connect()

    @property
    def store(self) -> JournaledStore:
        store = self.driver.node.store
        assert isinstance(store, JournaledStore)
        return store

    def in_doubt(self) -> dict[tuple[int, int, str], bytes]:
        """Return the prepared transactions, by what they send and receive and their query."""
        return {
            (each.sent_count, each.received_count, each.query): each.unit_of_work
            for each in self.ok(api.ListTransactions()).transactions
        }

    def leaving(self) -> list[tuple[bytes, int]]:
        """Return what waits for beta, with its numbers in the one sequence that there is."""
        found, sequences = [], set()
        for _, value in self.store.scan(*records.kind_range(b"E"), 100):
            packet = value[FACTS_BYTES:]
            message = decode(packet)
            assert isinstance(message, UserMessage)
            if message.properties.body.startswith(b"away"):
                offset = message_bytes.transaction_offset(packet)
                sequence, number, _ = message_bytes.sequence_place(packet, offset)
                found.append((message.properties.body, number))
                sequences.add(sequence)
        assert len(sequences) == 1
        return found


def test_everything_in_an_old_store_is_there(directory: Path) -> None:
    assert check_store(directory).sound
    office = OldOffice(directory)
    assert office.bodies(ORDERS) == [b"urgent", b"plain 2", b"plain 3"]
    assert office.bodies(LEDGER) == [b"ledger 3", b"ledger 4", b"ledger 5", b"batch 0"]
    assert office.bodies(KEPT) == [b"kept 2"]
    assert office.bodies(f"{KEPT};journal") == [b"kept 1"]
    assert office.bodies("system$;deadletter") == [b"too late"]
    [kept] = office.ok(api.GetQueue(KEPT)).queues
    assert (kept.quota_kb, kept.journaling, kept.message_count) == (100, True, 1)
    assert office.ok(api.GetQueue(ORDERS)).queues[0].message_count == 4
    assert office.ok(api.GetQueue(LEDGER)).queues[0].message_count == 6
    assert office.leaving() == [(b"away 1", 1), (b"away 2", 2)]
    doubts = [(3, 1, ""), (1, 1, ""), (2, 0, "hourly"), (1, 0, "hourly")]
    assert sorted(office.in_doubt()) == sorted(doubts)
    assert office.ok(api.GetBatch("hourly")).batch == 0
    office.store.close()
    report = check_store(directory)
    assert (report.sound, report.schema_version) == (True, SCHEMA_VERSION)


@pytest.mark.parametrize("checkpoint", [False, True], ids=["replayed", "moved"])
def test_what_an_old_store_has_begun_goes_on(directory: Path, checkpoint: bool) -> None:
    office = OldOffice(directory)
    if checkpoint:
        office.store.close()
        office.start()
    doubts = office.in_doubt()
    office.ok(api.Resolve(doubts[3, 1, ""], commit=True))
    office.ok(api.Resolve(doubts[1, 1, ""], commit=False))
    parts = [doubts[2, 0, "hourly"], doubts[1, 0, "hourly"]]
    assert office.ok(api.CommitBatch("hourly", 1, parts)) == api.BatchCommitted(False)
    assert office.ok(api.CommitBatch("hourly", 1, parts)) == api.BatchCommitted(True)
    assert office.error(api.CommitBatch("hourly", 0, [])) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    office.send(b"new", name=LEDGER)
    away = office.open(AWAY, AccessMode.SEND)
    packet = Draft(body=b"away 4", transactional=True).packet(r"OS:beta\private$\orders")
    office.ok(api.Send(away, [packet], api.OWN_TRANSACTION))
    office.store.abandon()

    office.start()
    assert office.in_doubt() == {}
    assert office.leaving() == [(b"away %d" % number, number) for number in (1, 2, 3, 4)]
    orders = office.open(ORDERS)
    reserved = office.ok(api.Reserve(orders, "stream", 0, 1))
    assert bodies(office.ok(api.FetchRange(orders, 0, reserved.stop))) == [b"plain 1"]
    assert office.ok(api.Complete(orders, "stream", reserved.stop)) == api.Completed(1, False)
    assert bodies(office.ok(api.Receive(orders, 9))) == [b"urgent", b"plain 2", b"plain 3"]
    ledger = office.ok(api.Receive(office.open(LEDGER), 20))
    assert bodies(ledger) == [
        *(b"ledger 2", b"ledger 3", b"ledger 4", b"ledger 5", b"batch 0"),
        *(b"prepared 1", b"prepared 2", b"batch 1 a", LONG, b"batch 1 c", b"new"),
    ]
    assert [entry.abort_count for entry in ledger.entries] == [1, *[0] * 10]
    assert bodies(office.ok(api.Receive(office.open(KEPT)))) == [b"kept 2"]
    assert office.bodies(f"{KEPT};journal") == [b"kept 1", b"kept 2"]
    office.store.close()
    assert check_store(directory).sound
