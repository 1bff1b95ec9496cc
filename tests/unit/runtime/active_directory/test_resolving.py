"""Lists and aliases of Active Directory stand for the queues that their members are."""

from __future__ import annotations

import random

import pytest

from openmsmq.manager.config import DirectoryConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.published import Published
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.errors import QueueNotFound
from openmsmq.model.identity import Guid
from openmsmq.model.names import DistributionListFormatName
from openmsmq.runtime.active_directory.mapping.entries import Entry
from openmsmq.runtime.active_directory.mapping.image import Entries, read_all
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.records import MachineRecord
from tests.unit.runtime.active_directory.as_served import (
    MANAGER_NAME,
    ROOT,
    SELF,
    computer,
    manager_entry,
    served,
    without,
)

QUEUE, ALIAS, INNER, OUTER, GONE = (Guid(letter * 16) for letter in (b"Q", b"A", b"I", b"O", b"?"))
FAR = "DIRECT=OS:far\\PRIVATE$\\q"


def group(identifier: Guid, *members: Guid) -> Entry:
    values = tuple(f"<GUID={member}>".encode() for member in members)
    name = f"CN={identifier.hex()},CN=Users,{ROOT}"
    return served(name, "group", {"member": values}, identifier)


def alias() -> Entry:
    values = {"msMQ-Recipient-FormatName": (FAR.encode(),)}
    return served(f"CN=far,CN=Users,{ROOT}", "msMQ-Custom-Recipient", values, ALIAS)


def resolved(wanted: Guid, *entries: Entry) -> list[str]:
    """Return the format names of the queues that a list stands for."""
    queue = served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}, QUEUE)
    reading = read_all(Entries([computer(), manager_entry(), queue, *entries]), ROOT)
    ledger = Ledger()
    copy = DirectoryCopy(ledger, MemoryStore())
    copy.found(SELF, list(reading.objects.values()))
    counters = Counters(MachineRecord(SELF, "QM1"), ledger, random.Random(1))
    names = Published(DirectoryConfig(role=DirectoryRole.ORIGINAL), copy, counters)
    return [str(name) for name in names.expanded((DistributionListFormatName(wanted),))]


@pytest.mark.spec("MQDSSM-3.1.6.8-02", "MQDSSM-3.1.6.8-04")
def test_an_alias_stands_for_the_queue_that_it_names() -> None:
    assert resolved(ALIAS, alias()) == [FAR]


@pytest.mark.spec("MQDSSM-3.1.6.9-02", "MQDSSM-3.1.6.9-09")
def test_a_list_stands_for_its_queues_aliases_and_lists() -> None:
    entries = (alias(), group(INNER, ALIAS), group(OUTER, INNER, QUEUE))
    assert set(resolved(OUTER, *entries)) == {f"PUBLIC={QUEUE}", FAR}


@pytest.mark.spec("MQDSSM-3.1.6.9-04")
def test_a_list_that_is_not_there_is_an_error() -> None:
    with pytest.raises(QueueNotFound, match="no such distribution list"):
        resolved(GONE)


@pytest.mark.spec("MQDSSM-3.1.6.9-05", "MQDSSM-3.1.6.9-07", "MQDSSM-3.1.6.9-08")
def test_a_list_with_a_member_that_cannot_be_read_stands_for_nothing() -> None:
    with pytest.raises(QueueNotFound, match="no such distribution list"):
        resolved(INNER, group(INNER, QUEUE, GONE))
    with pytest.raises(QueueNotFound, match="no such distribution list"):
        resolved(OUTER, group(INNER, GONE), group(OUTER, INNER, QUEUE))


@pytest.mark.spec("MQDSSM-3.1.6.9-06")
def test_a_list_with_an_alias_of_nothing_stands_for_nothing() -> None:
    nothing = without(alias(), "msMQ-Recipient-FormatName")
    with pytest.raises(QueueNotFound, match="no such distribution list"):
        resolved(INNER, nothing, group(INNER, QUEUE, ALIAS))
