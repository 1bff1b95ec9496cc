"""What a turn does with entries, taken back: everything is as it was. And settled: as the store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.manager.messages.effects import (
    DeadlinesNoted,
    EntriesDoomed,
    EntriesPlaced,
    EntriesRemoved,
)
from openmsmq.manager.messages.news import News
from openmsmq.manager.outputs import Persist
from openmsmq.manager.queues.entries import EntryState
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.reading.by_arrival import by_arrival
from openmsmq.manager.reading.effects import RangeRemoved
from openmsmq.manager.turn.deadlines import Deadlines
from openmsmq.manager.turn.effects import Effect
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.identity import Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import QueueProperties
from openmsmq.sim.checks import entry_watch
from openmsmq.sim.violation import Violation
from openmsmq.storage import records
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.records import EntryFacts
from tests.unit.manager.office import ORDERS, START_S

FULL = InsufficientResources("the disk is full")
PURGED = MessageClass.NACK_QUEUE_PURGED
TRANSACTION = 7


class Shelf:
    """A queue, its store, and the ledger of its turns."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.ledger = Ledger()
        properties = QueueProperties(identifier=Guid(bytes(16)), path_name=ORDERS)
        totals = Totals(self.ledger.passage)
        self.queue = LocalQueue(7, ORDERS, properties, self.store, totals)
        self.news = News()
        self.clock = Deadlines(self.store)
        self.last = 0

    def new_rows(self, sizes: list[int]) -> list[Row]:
        facts = records.encode_facts(EntryFacts(START_S, INFINITE_S))
        self.last += len(sizes)
        numbers = range(self.last - len(sizes) + 1, self.last + 1)
        return [
            (7 << 56 | at, facts + bytes(size)) for at, size in zip(numbers, sizes, strict=True)
        ]

    def place(self, sizes: list[int], *, express: bool) -> None:
        if sizes:
            rows = self.new_rows(sizes)
            effect = EntriesPlaced(self.news, self.clock, self.queue, rows, [], express=express)
            self.ledger.add(effect)

    def seal(self) -> Persist:
        persist = self.ledger.seal()
        assert persist is not None
        return persist

    def settle(self) -> None:
        persist = self.seal()
        self.store.commit(persist.batch)
        self.ledger.settle(persist.ticket)

    def rows(self, *states: EntryState) -> list[Row]:
        entries = self.queue.entries
        everything = by_arrival(self.queue, 0, 1 << 55, 1000)
        return [row for row in everything if entries.state(row[0]) in states]

    def remembered(self) -> dict[str, Any]:
        """Return all that a queue believes of its entries."""
        queue = self.queue
        entries = queue.entries
        return {
            "held": dict(entries.held),
            "arriving": set(entries.arriving),
            "ranges": list(entries.ranges),
            "doomed": {each: entries.doom_of(each) for each in entries.held},
            "stored": (queue.stored_count, queue.stored_bytes),
            "express": (set(queue.express_ids), queue.express_bytes),
            "totals": (queue.totals.bytes, queue.totals.express_bytes),
            "front": queue.front(1000, 1 << 20),
        }

    def check(self) -> None:
        entry_watch.check("ALPHA", [self.queue], self.store)


sizes = st.lists(st.integers(0, 50), max_size=6)


@st.composite
def shelves(draw: st.DrawFn) -> Shelf:
    """A queue with entries that are available, held, doomed and finished."""
    shelf = Shelf()
    shelf.place(draw(sizes), express=False)
    shelf.place(draw(sizes), express=True)
    if shelf.last:
        shelf.settle()
    for lookup_id, _ in shelf.rows(EntryState.AVAILABLE):
        fate = draw(st.sampled_from(["available", "held", "doomed", "finished"]))
        if fate == "finished":
            shelf.queue.entries.finish([lookup_id])
        elif fate != "available":
            shelf.queue.entries.hold([lookup_id], TRANSACTION)
            if fate == "doomed":
                shelf.queue.entries.doom([lookup_id], PURGED)
    shelf.queue.front(1000, 1 << 20)
    return shelf


@st.composite
def turns(draw: st.DrawFn, shelf: Shelf) -> list[Effect]:
    """Add some effects to a turn; an entry may be doomed and then removed."""
    added: list[Effect] = []
    queue = shelf.queue

    def add(effect: Effect) -> None:
        shelf.ledger.add(effect)
        added.append(effect)

    for kind in draw(st.lists(st.sampled_from(["place", "remove", "doom", "note"]), max_size=5)):
        if kind == "place":
            new = draw(st.lists(st.integers(0, 50), min_size=1, max_size=5))
            express = draw(st.booleans())
            add(
                EntriesPlaced(
                    shelf.news, shelf.clock, queue, shelf.new_rows(new), [], express=express
                )
            )
            continue
        states = [EntryState.HELD, EntryState.DOOMED]
        if kind == "remove":
            states += [EntryState.AVAILABLE, EntryState.FINISHED]
        found = shelf.rows(*states)
        if not found:
            continue
        chosen = draw(st.lists(st.sampled_from(found), min_size=1, unique_by=lambda row: row[0]))
        lookup_ids = [lookup_id for lookup_id, _ in chosen]
        if kind == "remove":
            add(EntriesRemoved(shelf.news, shelf.clock, queue, chosen))
        elif kind == "doom":
            add(EntriesDoomed(queue, lookup_ids, MessageClass.NACK_QUEUE_DELETED))
        else:
            add(DeadlinesNoted(shelf.clock, queue, [(each, START_S) for each in lookup_ids]))
    return added


@given(st.data())
def test_a_turn_that_the_disk_refuses_leaves_nothing_behind(data: st.DataObject) -> None:
    shelf = data.draw(shelves())
    before = shelf.remembered()
    data.draw(turns(shelf))
    shelf.check()
    persist = shelf.ledger.seal()
    # The next turn is built on what is assumed, and falls with it.
    data.draw(turns(shelf))
    if persist is not None:
        shelf.ledger.revoke(persist.ticket, FULL)
        assert shelf.remembered() == before
    shelf.check()


@given(st.data())
def test_a_turn_that_is_durable_is_what_the_store_has(data: st.DataObject) -> None:
    shelf = data.draw(shelves())
    data.draw(turns(shelf))
    persist = shelf.ledger.seal()
    data.draw(turns(shelf))
    shelf.check()
    if persist is not None:
        shelf.store.commit(persist.batch)
        shelf.ledger.settle(persist.ticket)
    shelf.check()
    persist = shelf.ledger.seal()
    if persist is not None:
        shelf.store.commit(persist.batch)
        shelf.ledger.settle(persist.ticket)
    shelf.check()
    assert not shelf.queue.entries.arriving
    assert not shelf.rows(EntryState.LEAVING, EntryState.ARRIVING, EntryState.RECALLED)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8), st.booleans())
def test_a_range_leaves_or_stays_as_a_whole(sizes: list[int], refused: bool) -> None:
    shelf = Shelf()
    shelf.place(sizes, express=False)
    shelf.settle()
    before = shelf.remembered()
    queue, middle = shelf.queue, len(sizes) // 2 + 1
    size = sum(sizes[: middle - 1])
    bounds = (1, middle)
    effect = RangeRemoved(shelf.news, shelf.store, queue, bounds, middle - 1, size)
    shelf.ledger.add(effect)
    shelf.check()
    persist = shelf.seal()
    if refused:
        shelf.ledger.revoke(persist.ticket, FULL)
        assert shelf.remembered() == before
    else:
        shelf.store.commit(persist.batch)
        shelf.ledger.settle(persist.ticket)
        assert len(queue.front(1000, 1 << 20)) == queue.count == len(sizes) - middle + 1
    shelf.check()


def test_an_effect_tells_of_itself_without_what_a_message_contains() -> None:
    shelf = Shelf()
    shelf.place([3, 4], express=True)
    effect = EntriesPlaced(
        shelf.news, shelf.clock, shelf.queue, shelf.new_rows([5]), [], express=False
    )
    assert repr(effect) == f"EntriesPlaced(queue={ORDERS!r}, count=1, bytes=5, express=False)"


def test_what_a_queue_believes_wrongly_is_noticed() -> None:
    shelf = Shelf()
    shelf.place([3, 4], express=False)
    shelf.settle()
    (first, _), _ = shelf.rows(EntryState.AVAILABLE)
    shelf.check()
    shelf.queue.floor = first + 1
    with pytest.raises(Violation, match="nobody looks"):
        shelf.check()
    shelf.queue.floor = 0
    shelf.queue.entries.hold([99], TRANSACTION)
    with pytest.raises(Violation, match="held, and not there"):
        shelf.check()
    shelf.queue.entries.free([99])
    shelf.queue.stored_count += 1
    with pytest.raises(Violation, match="counts 3 messages, and has 2"):
        shelf.check()
