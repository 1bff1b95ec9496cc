"""Reading by arrival number: what is seen, what is kept for one reader, and for how long."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.manager.outputs import Persist
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.reads import seek
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.reading.bulk_reads import SLICE_ROWS
from openmsmq.manager.reading.by_arrival import (
    ARRIVALS_FIRST_ROWS,
    ARRIVALS_STEP_BYTES,
    Arrivals,
    by_arrival,
    stored_by_arrival,
)
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MessageNotFound
from openmsmq.model.identity import Guid
from openmsmq.model.limits import READER_NAME_MAX_BYTES
from openmsmq.model.queue import AccessMode, QueueProperties, SeekAction
from openmsmq.storage import records
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import Batch, StoreFull
from openmsmq.storage.records import ARRIVAL_MASK, EntryFacts, ReservationRecord
from openmsmq.wire.packets import UserMessage, decode
from tests.strategies.messages import Draft
from tests.unit.manager.office import LEDGER, ORDERS, START_S, Office, bodies, error_name

EVERYTHING = 1 << 56
READER = "stream"
JOURNAL = ORDERS + ";journal"
ADMIN = r"private$\admin"
ADMIN_NAME = r"OS:ALPHA\private$\admin"
ELSEWHERE = r"DIRECT=OS:BETA\private$\orders"
FULL = "MQ_ERROR_INSUFFICIENT_RESOURCES"
INVALID = "MQ_ERROR_INVALID_PARAMETER"
LOCKED = "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"
SHARING = "MQ_ERROR_SHARING_VIOLATION"
TIMEOUT = "MQ_ERROR_IO_TIMEOUT"
PLACE = struct.Struct(api.PLACE_FORMAT)


@pytest.fixture
def office() -> Office:
    return Office()


def arrivals(office: Office, name: str = ORDERS) -> list[int]:
    """The arrival numbers of a queue, held and reserved messages included."""
    return sorted(lookup_id & ARRIVAL_MASK for lookup_id in office.lookup_ids(name))


def reserve(
    office: Office, start: int = 0, reader: str = READER, name: str = ORDERS, **limits: int
) -> int:
    """Reserve messages; gives where they end."""
    stop = office.ok(api.Reserve(office.open(name), reader, start, **limits)).stop
    assert isinstance(stop, int)
    return stop


def complete(office: Office, stop: int, reader: str = READER, name: str = ORDERS) -> int:
    """Complete what is reserved; gives how many went."""
    handle, count = office.open(name), 0
    while True:
        reply = office.ok(api.Complete(handle, reader, stop))
        count += reply.count
        if not reply.more:
            return count


def split(reply: Any) -> list[tuple[int, tuple[int, int, int, int], bytes]]:
    """Take `Packets` apart: lookup identifier, place and packet of each message."""
    assert isinstance(reply, api.Packets), reply
    ids = [
        int.from_bytes(reply.lookup_ids[at : at + 8], "big")
        for at in range(0, len(reply.lookup_ids), 8)
    ]
    sizes = struct.unpack(f"<{len(reply.sizes) // 4}I", reply.sizes)
    found, at = [], 0
    for lookup_id, size in zip(ids, sizes, strict=True):
        entry = msgspec.msgpack.decode(reply.entries[at : at + size], type=bytes)
        found.append((lookup_id, PLACE.unpack_from(entry), entry[PLACE.size :]))
        at += size
    assert at == len(reply.entries)
    return found


def fetched(office: Office, start: int = 0, stop: int = EVERYTHING, name: str = ORDERS) -> Any:
    """The bodies that a reader of very many gets."""
    handle = office.open(name, AccessMode.PEEK)
    found = split(office.ok(api.FetchPackets(handle, start, stop)))
    packets = [decode(packet) for _, _, packet in found]
    return [packet.properties.body for packet in packets if isinstance(packet, UserMessage)]


def reservation(office: Office, name: str = ORDERS) -> tuple[str, int, int]:
    status = office.ok(api.GetQueue(name)).queues[0]
    return status.reserved_for, status.reserved_start, status.reserved_stop


def count(office: Office, name: str = ORDERS) -> int:
    total = office.ok(api.GetQueue(name)).queues[0].message_count
    assert isinstance(total, int)
    return total


# Looking.


@given(
    st.builds(
        EntryFacts,
        *[st.integers(0, 0xFFFFFFFF)] * 3,
        st.integers(0, 0xFFFF),
        st.integers(0, 0xFF),
        st.integers(0, 0xFF),
    )
)
def test_a_place_is_read_as_the_store_has_it(facts: EntryFacts) -> None:
    stored = records.encode_entry(facts, b"packet")
    assert PLACE.size == records.FACTS_BYTES
    assert PLACE.unpack_from(stored) == (
        facts.arrived_time_s,
        facts.moved_time_s,
        facts.abort_count,
        facts.move_count,
    )


def test_packets_side_by_side_are_those_of_a_range(office: Office) -> None:
    office.send(b"one", b"two", name=LEDGER)
    handle, sub = office.open(LEDGER), LEDGER + ";sub"
    work = office.begin()
    office.ok(api.Receive(handle, transaction=work))
    office.ok(api.Abort(work))
    office.pass_time(5)
    there, back = office.open(sub, AccessMode.MOVE), office.open(LEDGER, AccessMode.MOVE)
    office.ok(api.Move(handle, office.lookup_ids(LEDGER)[0], there))
    office.ok(api.Move(office.open(sub), office.lookup_ids(sub)[0], back))
    peek = office.open(LEDGER, AccessMode.PEEK)
    entries = office.ok(api.FetchRange(peek, 0, EVERYTHING)).entries
    assert (entries[0].abort_count, entries[0].move_count) == (1, 2)
    assert entries[0].moved_time_s == START_S + 5
    assert split(office.ok(api.FetchPackets(peek, 0, EVERYTHING))) == [
        (
            entry.lookup_id,
            (entry.arrived_time_s, entry.moved_time_s, entry.abort_count, entry.move_count),
            entry.packet,
        )
        for entry in entries
    ]


def test_messages_are_fetched_in_the_order_of_their_arrival(office: Office) -> None:
    for priority in (0, 7, 3, 7, 0):
        office.send(b"%d" % priority, priority=priority)
    assert office.bodies() == [b"7", b"7", b"3", b"0", b"0"]
    assert fetched(office) == [b"0", b"7", b"3", b"7", b"0"]
    numbers = arrivals(office)
    assert fetched(office, numbers[1], numbers[3]) == [b"7", b"3"]


@pytest.mark.parametrize(
    ("bytes_max", "expected"), [(0, 1), (1, 1), (100_000, 1), (250_000, 3), (1 << 40, 5)]
)
@pytest.mark.parametrize("fetch", [api.FetchRange, api.FetchPackets])
def test_a_fetch_ends_with_the_message_that_reaches_its_bytes(
    office: Office, fetch: Any, bytes_max: int, expected: int
) -> None:
    office.send(*[bytes(100_000)] * 5)
    reply = office.ok(fetch(office.open(), 0, EVERYTHING, bytes_max=bytes_max))
    found = reply.entries if isinstance(reply, api.Entries) else split(reply)
    assert len(found) == expected


def test_a_fetch_goes_on_behind_messages_that_are_being_removed(office: Office) -> None:
    """Else a reader would take the first of them for the end."""
    office.send(b"one", b"two", b"three", b"four")
    handle, node = office.open(), office.driver.node
    office.driver.request(office.app, api.Receive(handle, 3))
    [persist] = node.take()
    for fetch in (api.FetchPackets(handle, 0, EVERYTHING, 2), api.FetchRange(handle, 0, 99, 2)):
        call = office.driver.request(office.app, fetch)
        node.take()
        reply = node.answers.pop((office.app, call))
        found = reply.entries if isinstance(reply, api.Entries) else split(reply)
        assert len(found) == 1
    assert isinstance(persist, Persist)
    node.commit(persist, office.driver.now)
    office.driver.pump()


@pytest.mark.parametrize(
    "request_", [api.FetchPackets(1, 0, 9, 0), api.FetchRange(1, 0, 9, 0)], ids=repr
)
def test_a_fetch_of_nothing_is_refused(office: Office, request_: api.AnyRequest) -> None:
    assert office.open() == 1
    assert office.error(request_) == INVALID


def test_a_queue_that_is_not_open_for_it_is_neither_read_nor_reserved(office: Office) -> None:
    sender, looker = office.open(access=AccessMode.SEND), office.open(access=AccessMode.PEEK)
    denied = "MQ_ERROR_ACCESS_DENIED"
    assert office.error(api.FetchPackets(sender, 0, 9)) == denied
    assert office.error(api.Measure(sender, 0)) == denied
    for handle in (sender, looker):
        assert office.error(api.Reserve(handle, READER, 0)) == denied
        assert office.error(api.Complete(handle, READER, 9)) == denied
    assert office.error(api.Reserve(99, READER, 0)) == "MQ_ERROR_INVALID_HANDLE"


class Shelf:
    """A queue on a store that counts how often it is asked, and for how many bytes."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        properties = QueueProperties(identifier=Guid(bytes(16)), path_name=ORDERS)
        self.queue = LocalQueue(7, ORDERS, properties, self, Totals())
        self.bytes = 0
        self.looks = 0

    def add(self, lookup_id: int, value: bytes) -> None:
        self.store.commit(Batch([(records.entry_key(7, lookup_id), value)]))
        self.queue.count_many_in([lookup_id], len(value), express=False)
        self.queue.became_available(lookup_id)

    def get(self, key: bytes) -> bytes | None:
        return self.store.get(key)

    def scan(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        rows = self.store.scan(start, stop, limit, reverse=reverse)
        self.looks += 1
        self.bytes += sum(len(value) for _, value in rows)
        return rows


def test_a_few_large_messages_among_many_small_ones_do_not_fill_the_memory() -> None:
    shelf, large = Shelf(), bytes(1 << 20)
    for number in range(3000):
        shelf.add(4 << 56 | number, b"small" if number < 2000 else large)
    shelf.bytes = 0
    assert len(by_arrival(shelf.queue, 2000, 3000, 10_000, 4 << 20)) == 4
    assert shelf.bytes <= ARRIVALS_FIRST_ROWS << 20
    assert len(by_arrival(shelf.queue, 0, 3000, 10_000, 4 << 20)) == 2004


def test_a_level_of_priority_without_messages_is_looked_at_once() -> None:
    shelf = Shelf()
    for number in range(1000):
        shelf.add(3 << 56 | number, b"small")
    assert len(by_arrival(shelf.queue, 0, 1000, 1000)) == 1000
    # One look at each level, and then, in steps of four times as many, at the one that has any.
    assert shelf.looks == 8 + 3


def test_later_steps_bring_what_the_processor_can_keep() -> None:
    shelf, size = Shelf(), 4096
    for number in range(1000):
        shelf.add(3 << 56 | number, bytes(size))
    arrivals, found = Arrivals(shelf.queue, 0, 1000), 0
    while rows := arrivals.take(1000 - found, 1 << 30)[0]:
        found += len(rows)
        assert len(rows) * size <= ARRIVALS_STEP_BYTES + size
    assert found == 1000


@given(
    st.lists(st.tuples(st.sampled_from([0, 3]), st.integers(0, 8)), max_size=30),
    st.integers(1, 60),
    st.integers(1, 400_000),
)
def test_packets_are_what_ranges_are_whatever_their_size(
    sizes: list[tuple[int, int]], count: int, bytes_max: int
) -> None:
    office = Office()
    for priority, size in sizes:
        office.send(b"x" * (size**5), priority=priority)
    handle = office.open(access=AccessMode.PEEK)
    start, entries, packets = 0, [], []
    while start < EVERYTHING:
        limits = (start, EVERYTHING, count, bytes_max)
        entries += office.ok(api.FetchRange(handle, *limits)).entries
        reply = office.ok(api.FetchPackets(handle, *limits))
        found = split(reply)
        assert len(found) <= count
        assert sum(len(packet) for _, _, packet in found[:-1]) < bytes_max
        packets += found
        start = reply.next_start
    assert len(packets) == len(sizes)
    assert [(entry.lookup_id, entry.packet) for entry in entries] == [
        (lookup_id, packet) for lookup_id, _, packet in packets
    ]


@given(
    st.lists(st.sampled_from([0, 3, 7]), max_size=300),
    st.integers(0, 320),
    st.integers(0, 320),
    st.integers(1, 320),
    st.integers(1, 3000),
)
def test_messages_of_all_levels_come_in_the_order_of_their_arrival(
    levels: list[int], start: int, stop: int, count: int, bytes_max: int
) -> None:
    shelf = Shelf()
    everything = [(level << 56 | n, bytes(1 + n % 17)) for n, level in enumerate(levels)]
    for lookup_id, value in everything:
        shelf.add(lookup_id, value)
    expected: list[tuple[int, bytes]] = []
    for row in everything[start:stop][:count]:
        if sum(len(value) for _, value in expected) < bytes_max:
            expected.append(row)
    assert by_arrival(shelf.queue, start, stop, count, bytes_max) == expected
    stored = stored_by_arrival(shelf.queue, start, stop, count, bytes_max)
    assert stored == [(records.entry_key(7, number), value) for number, value in expected]


lookups = st.builds(
    lambda level, number: level << 56 | number, st.sampled_from([0, 4, 7]), st.integers(0, 30)
)
events = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 31), st.integers(0, 31)),
        st.tuples(st.just("hold"), lookups, st.just(0)),
        st.tuples(st.just("release"), lookups, st.just(0)),
        st.tuples(st.just("look"), st.integers(1, 9), lookups),
    ),
    max_size=20,
)


@given(st.sets(lookups, max_size=40), events, st.sampled_from([1, 2, 256]))
def test_readers_see_exactly_what_is_neither_held_nor_reserved(
    places: set[int], history: list[tuple[str, int, int]], rows: int
) -> None:
    """With looks into the store of any size."""
    shelf = Shelf()
    queue = shelf.queue
    for lookup_id in places:
        shelf.add(lookup_id, b"x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("openmsmq.manager.queues.queue.SCAN_ROWS", rows)
        for event, first, second in history:
            free = [
                place
                for place in sorted(places)
                if place not in queue.entries.held
                and not queue.reservation.start <= place & ARRIVAL_MASK < queue.reservation.stop
            ]
            if event == "reserve":
                queue.keep(ReservationRecord(READER, min(first, second), max(first, second)))
            elif event == "hold" and first in free:
                queue.hold([(first, b"x")], 1)
            elif event == "release" and first in queue.entries.held:
                queue.entries.release(first)
                queue.became_available(first)
            elif event == "look":
                assert [place for place, _ in queue.front(first, 1 << 20)] == free[:first]
                assert (
                    found(queue, SeekAction.NEXT, second)
                    == [place for place in free if place > second][:1]
                )
                assert (
                    found(queue, SeekAction.PREVIOUS, second)
                    == [place for place in free if place < second][-1:]
                )


def found(queue: LocalQueue, action: SeekAction, lookup_id: int) -> list[int]:
    try:
        return [seek(queue, action, lookup_id)[0]]
    except MessageNotFound:
        return []


# How far.


@pytest.mark.parametrize("ask", ["measure", "reserve"])
def test_a_range_ends_behind_its_last_message(office: Office, ask: str) -> None:
    def far(start: int, **limits: int) -> int:
        handle = office.open()
        if ask == "measure":
            return int(office.ok(api.Measure(handle, start, **limits)).stop)
        return reserve(office, start, **limits)

    assert far(0) == 0, "there is nothing"
    office.send(b"elsewhere", name=LEDGER)
    assert far(0) == 0, "what comes into other queues is no news"
    office.send(*[bytes(100_000)] * 4, priority=0)
    office.send(*[bytes(100_000)] * 2, priority=7)
    office.send(b"elsewhere", name=LEDGER)
    numbers = arrivals(office)
    assert far(0) == numbers[-1] + 1
    assert far(0, count=3) == numbers[2] + 1
    assert far(numbers[1], count=3) == numbers[3] + 1
    assert far(0, count=100, bytes_max=1) == numbers[0] + 1
    assert far(0, bytes_max=250_000) == numbers[2] + 1
    assert far(0, below=numbers[5]) == numbers[4] + 1
    assert far(0, count=5, below=numbers[2]) == numbers[1] + 1
    assert far(numbers[3], below=numbers[1]) == numbers[3]
    assert far(numbers[-1] + 1) == numbers[-1] + 1


def test_a_limit_also_counts_what_comes_in_the_same_turn(office: Office) -> None:
    office.send(b"one")
    [first] = arrivals(office)
    sender, handle = office.open(access=AccessMode.SEND), office.open()
    office.driver.request(office.app, api.Send(sender, [Draft().packet()] * 10))
    asked = {
        kind: office.driver.request(office.app, request)
        for kind, request in (
            (api.Reserved, api.Reserve(handle, READER, 0, 2)),
            (api.Measured, api.Measure(handle, 0, 2)),
        )
    }
    office.driver.pump()
    answers = office.driver.take_answers()
    for kind, call in asked.items():
        reply = answers[office.app, call]
        assert isinstance(reply, kind)
        assert reply.stop <= first + 2


@pytest.mark.parametrize(
    "wrong", [{"start": -1}, {"count": -1}, {"bytes_max": -1}, {"below": -1}], ids=repr
)
def test_numbers_below_zero_are_refused(office: Office, wrong: dict[str, int]) -> None:
    handle = office.open()
    wishes = {"start": 0, **wrong}
    assert office.error(api.Reserve(handle, READER, **wishes)) == INVALID
    assert office.error(api.Measure(handle, **wishes)) == INVALID


def test_a_place_that_no_message_has_reached_yet_is_refused(office: Office) -> None:
    """The reader has seen another store: it would miss everything up to there."""
    office.send(b"one")
    [number] = arrivals(office)
    handle = office.open()
    assert office.ok(api.Reserve(handle, READER, number + 1)).stop == number + 1
    assert office.error(api.Reserve(handle, READER, number + 2)) == INVALID
    assert office.error(api.Measure(handle, number + 2)) == INVALID


# Others.


def test_what_is_reserved_is_out_of_the_reach_of_others(office: Office) -> None:
    [number, *_] = office.send(b"one", b"two", name=LEDGER)
    identifier = bytes(office.driver.manager.identifier) + number.to_bytes(4, "little")
    stop = reserve(office, name=LEDGER)
    handle, first = office.open(LEDGER), office.lookup_ids(LEDGER)[0]
    target = office.open(LEDGER + ";sub", AccessMode.MOVE)
    cursor = office.ok(api.CreateCursor(handle)).cursor
    work = office.begin()
    reads: list[tuple[api.AnyRequest, str]] = [
        (api.Receive(handle), TIMEOUT),
        (api.Receive(handle, 10, peek=True), TIMEOUT),
        (api.Receive(handle, transaction=work), TIMEOUT),
        (api.Receive(handle, lock=True), TIMEOUT),
        (api.Receive(handle, peek=True, cursor=cursor), TIMEOUT),
        (api.Find(handle, identifier, peek=True), TIMEOUT),
        (api.Find(handle, identifier), TIMEOUT),
        (api.Seek(handle, "first"), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(handle, "last", peek=True), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(handle, "next", first, peek=True), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(handle, "previous", first + 1), "MQ_ERROR_MESSAGE_NOT_FOUND"),
        (api.Seek(handle, "current", first, peek=True), "MQ_ERROR_TRANSACTION_USAGE"),
        (api.Seek(handle, "current", first), LOCKED),
        (api.Move(handle, first, target), LOCKED),
        (api.Move(handle, first, target, work), LOCKED),
    ]
    for read, error in reads:
        assert office.error(read) == error, read
    assert office.ok(api.RemoveRange(handle, 0, EVERYTHING)) == api.Removed(0)
    assert office.ok(api.Purge(handle)) == api.Removed(0)
    assert fetched(office, name=LEDGER) == [b"one", b"two"]
    assert complete(office, stop, name=LEDGER) == 2


def test_a_cursor_on_a_message_that_was_reserved_meanwhile_finds_it_taken(office: Office) -> None:
    office.send(b"one")
    handle = office.open()
    cursor = office.ok(api.CreateCursor(handle)).cursor
    office.ok(api.Receive(handle, peek=True, cursor=cursor))
    reserve(office)
    office.send(b"two")
    taken = office.error(api.Receive(handle, peek=True, cursor=cursor))
    assert taken == "MQ_ERROR_MESSAGE_ALREADY_RECEIVED"
    behind = office.ok(api.Receive(handle, peek=True, cursor=cursor, next=True))
    assert bodies(behind) == [b"two"]


def test_readers_that_wait_get_what_comes_behind_a_reservation(office: Office) -> None:
    office.send(b"one", b"two")
    reserve(office, count=1)
    handle, sender = office.open(), office.open(access=AccessMode.SEND)
    assert bodies(office.ok(api.Receive(handle, 10))) == [b"two"]
    waiting = [
        office.driver.request(office.app, api.Receive(handle, timeout_ms=None, peek=peek))
        for peek in (True, False)
    ]
    office.driver.pump()
    assert office.driver.take_answers() == {}
    office.driver.request(office.app, api.Send(sender, [Draft(body=b"three").packet()]))
    office.driver.pump()
    answers = office.driver.take_answers()
    assert [bodies(answers[office.app, call]) for call in waiting] == [[b"three"]] * 2
    assert fetched(office) == [b"one"]


def test_purge_and_expiry_leave_what_is_reserved(office: Office) -> None:
    office.send(b"one", b"two", b"three", time_to_be_received_s=5)
    first, second, _ = arrivals(office)
    assert reserve(office, count=2) == second + 1
    office.pass_time(10)
    assert office.driver.manager.next_wake_ms(office.driver.now) is None, "nothing is due"
    assert count(office) == 2
    office.send(b"four")
    assert office.ok(api.Purge(office.open())) == api.Removed(1)
    assert fetched(office) == [b"one", b"two"]
    office.restart()
    office.pass_time(10)
    assert fetched(office, first) == [b"one", b"two"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_deleted_queue_takes_its_reservations_with_it(office: Office, restart: bool) -> None:
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    office.send(b"one", b"two")
    office.ok(api.Receive(office.open()))
    for name in (ORDERS, JOURNAL):
        reserve(office, name=name)
    office.ok(api.DeleteQueue(ORDERS))
    if restart:
        office.restart()
    start, stop = records.kind_range(b"R")
    assert office.driver.node.store.scan(start, stop, 9) == []
    start, stop = records.kind_range(b"E")
    assert office.driver.node.store.scan(start, stop, 9) == []
    office.ok(api.CreateQueue(ORDERS))
    office.send(b"new")
    assert reservation(office) == ("", 0, 0)
    assert office.bodies() == [b"new"]


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_message_that_moves_into_a_reserved_range_comes_behind_it(
    office: Office, in_transaction: bool
) -> None:
    """Its reader has seen that range without it, and would take it out unread."""
    office.send(b"one", b"two", b"three", name=LEDGER)
    sub = LEDGER + ";sub"
    there, back = office.open(sub, AccessMode.MOVE), office.open(LEDGER, AccessMode.MOVE)
    second = office.lookup_ids(LEDGER)[1]
    office.ok(api.Move(office.open(LEDGER), second, there))
    work = office.begin() if in_transaction else 0
    if work:
        office.ok(api.Move(office.open(sub), second, back, work))
    stop = reserve(office, name=LEDGER)
    assert fetched(office, 0, stop, LEDGER) == [b"one", b"three"]
    office.ok(api.Commit(work) if work else api.Move(office.open(sub), second, back))
    assert fetched(office, 0, stop, LEDGER) == [b"one", b"three"]
    assert complete(office, stop, name=LEDGER) == 2
    assert fetched(office, stop, name=LEDGER) == office.bodies(LEDGER) == [b"two"]
    assert office.bodies(sub) == []


# The reader.


def test_a_reader_reads_again_what_it_has_not_completed(office: Office) -> None:
    office.send(b"one", b"two", b"three")
    stop = reserve(office, count=2)
    assert fetched(office, 0, stop) == [b"one", b"two"]
    first = arrivals(office)[0]
    for _ in range(2):
        office.restart()
        assert reservation(office) == (READER, 0, stop)
        assert reserve(office, first, count=2) == stop
        assert fetched(office, 0, stop) == [b"one", b"two"]
        assert office.bodies() == [b"three"]
    assert reserve(office, stop) == stop + 1
    assert reservation(office) == (READER, 0, stop + 1)
    assert complete(office, stop) == 2
    assert reservation(office) == (READER, stop, stop + 1)
    office.restart()
    assert complete(office, stop) == 0, "it was completed before"
    assert fetched(office) == [b"three"]
    assert complete(office, EVERYTHING) == 1
    assert reservation(office) == ("", 0, 0)
    office.restart()
    assert count(office) == 0


def test_what_was_not_answered_before_the_power_failed_is_not_reserved(office: Office) -> None:
    office.send(b"one")
    office.driver.request(office.app, api.Reserve(office.open(), READER, 0))
    office.restart(committed=False)
    assert office.bodies() == [b"one"]


def test_a_reservation_ends_before_a_message_that_a_transaction_holds(office: Office) -> None:
    office.send(b"one", b"two", b"three", name=LEDGER)
    handle, numbers = office.open(LEDGER), arrivals(office, LEDGER)
    begun = office.ok(api.Begin())
    second = office.lookup_ids(LEDGER)[1]
    office.ok(api.Seek(handle, "current", second, transaction=begun.transaction))
    assert reserve(office, name=LEDGER) == numbers[1]
    assert reserve(office, numbers[1], name=LEDGER) == numbers[1]
    office.ok(api.Prepare(begun.transaction))
    office.restart()
    assert reserve(office, 0, name=LEDGER) == numbers[1]
    office.ok(api.Resolve(begun.unit_of_work, False))
    assert reserve(office, numbers[0], name=LEDGER) == numbers[2] + 1


def test_a_reservation_ends_before_a_message_that_is_locked(office: Office) -> None:
    office.send(b"one", b"two", b"three")
    handle, numbers = office.open(), arrivals(office)
    second = office.lookup_ids()[1]
    office.ok(api.Seek(handle, "current", second, lock=True))
    assert reserve(office) == numbers[1]
    office.ok(api.EndReceive(handle, second, False))
    assert reserve(office) == numbers[2] + 1


def test_only_one_reader_at_a_time_has_messages_of_a_queue(office: Office) -> None:
    office.send(b"one", b"two")
    handle, numbers = office.open(), arrivals(office)
    stop = reserve(office, numbers[0], count=1)
    refusal = office.ask(api.Reserve(handle, "other", 0))
    assert error_name(refusal) == SHARING
    assert isinstance(refusal, api.Failed)
    assert repr(READER) in refusal.detail
    assert office.error(api.Complete(handle, "other", stop)) == SHARING
    assert office.ok(api.Complete(handle, "other", numbers[0])) == api.Completed(0, False)
    assert complete(office, stop) == 1
    assert reserve(office, 0, "other") == numbers[1] + 1
    assert reservation(office) == ("other", 0, numbers[1] + 1)
    assert office.error(api.Complete(handle, READER, stop)) == SHARING
    assert complete(office, EVERYTHING, "other") == 1
    assert complete(office, stop) == 0, "that is long done"


@pytest.mark.parametrize("place", [-1, 1])
def test_a_reader_that_lost_its_place_is_refused(office: Office, place: int) -> None:
    """Another one uses its name: it would complete what it never read."""
    office.send(*[b"x"] * 5)
    numbers = arrivals(office)
    stop = reserve(office, numbers[1], count=2)
    begins = numbers[0] if place < 0 else numbers[4]
    assert office.error(api.Reserve(office.open(), READER, begins)) == SHARING
    assert reservation(office) == (READER, numbers[1], stop)
    assert reserve(office, numbers[2]) == numbers[4] + 1, "it may have gone on meanwhile"
    assert complete(office, EVERYTHING) == 4


def test_an_empty_reservation_stands_in_nobodys_way(office: Office) -> None:
    office.send(b"one", recoverable=False)
    reserve(office)
    office.restart()
    assert count(office) == 0, "express messages do not survive"
    office.send(b"two")
    assert reserve(office, 0, "other") == arrivals(office)[0] + 1
    assert reservation(office)[0] == "other"


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("", False),
        ("x" * READER_NAME_MAX_BYTES, True),
        ("x" * (READER_NAME_MAX_BYTES + 1), False),
        ("ü" * (READER_NAME_MAX_BYTES // 2), True),
        ("ü" * (READER_NAME_MAX_BYTES // 2 + 1), False),
        ("a query\x1b[2J", False),
    ],
)
def test_a_reader_has_a_name_that_people_can_read(office: Office, name: str, good: bool) -> None:
    handle = office.open()
    for request in (api.Reserve(handle, name, 0), api.Complete(handle, name, 9)):
        assert (error_name(office.ask(request)) != INVALID) is good


def test_nothing_is_reserved_in_an_outgoing_queue(office: Office) -> None:
    sender = office.open(ELSEWHERE, AccessMode.SEND)
    office.ok(api.Send(sender, [Draft().packet(ELSEWHERE.removeprefix("DIRECT="))]))
    handle = office.open(ELSEWHERE, AccessMode.RECEIVE_ADMIN)
    assert office.error(api.Reserve(handle, READER, 0)) == INVALID


@pytest.mark.parametrize("queue", [ORDERS + ";sub", JOURNAL, "system$;deadletter"])
def test_other_queues_of_the_computer_are_reserved_alike(office: Office, queue: str) -> None:
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    office.send(b"one", b"late", time_to_be_received_s=5, journal_on_failure=True)
    handle = office.open()
    if queue.endswith("sub"):
        target = office.open(queue, AccessMode.MOVE)
        for lookup_id in office.lookup_ids():
            office.ok(api.Move(handle, lookup_id, target))
    else:
        office.ok(api.Receive(handle))
        office.pass_time(10)
    number = arrivals(office, queue)[0]
    assert reserve(office, name=queue, count=1) == number + 1
    office.restart()
    assert fetched(office, 0, number + 1, queue) == [b"late" if "dead" in queue else b"one"]
    assert complete(office, number + 1, name=queue) == 1


# Completing.


def test_what_is_completed_counts_as_received(office: Office) -> None:
    office.ok(api.CreateQueue(ADMIN))
    office.ok(api.ChangeQueue(ORDERS, journaling=True))
    office.send(b"one", admin_queue=ADMIN_NAME, acknowledge=0xE)
    stop = reserve(office)
    assert office.classes(ADMIN) == []
    assert complete(office, stop) == 1
    assert office.classes(ADMIN) == [0x4000]
    assert office.bodies(JOURNAL) == [b"one"]


def test_nothing_behind_a_reservation_is_completed(office: Office) -> None:
    office.send(b"one", b"two")
    reserve(office, count=1)
    assert complete(office, EVERYTHING) == 1
    assert office.bodies() == [b"two"]
    assert complete(office, EVERYTHING) == 0
    assert office.bodies() == [b"two"]


def test_very_many_messages_are_removed_in_slices(office: Office) -> None:
    sender, handle = office.open(access=AccessMode.SEND), office.open()
    packets = [Draft(body=b"", recoverable=False).packet()] * (SLICE_ROWS // 2)
    for _ in range(3):
        office.ok(api.Send(sender, packets))
    office.ok(api.Receive(handle, lock=True))
    first = office.ok(api.RemoveRange(handle, 0, EVERYTHING))
    # What somebody holds is passed over. Arrival numbers begin with 1.
    assert first == api.Removed(SLICE_ROWS - 1, SLICE_ROWS + 1)
    rest = office.ok(api.RemoveRange(handle, first.next_start, EVERYTHING))
    assert rest == api.Removed(len(packets))
    assert count(office) == 1


def test_very_many_messages_are_completed_in_slices(office: Office) -> None:
    sender, handle = office.open(access=AccessMode.SEND), office.open()
    packets = [Draft(body=b"", recoverable=False).packet()] * (SLICE_ROWS // 2)
    for _ in range(5):
        office.ok(api.Send(sender, packets))
    stop = reserve(office)
    assert office.ok(api.Complete(handle, READER, stop)) == api.Completed(SLICE_ROWS, True)
    assert count(office) == len(packets) * 3
    assert office.error(api.Receive(handle)) == TIMEOUT, "the rest is still reserved"
    assert office.ok(api.Complete(handle, READER, stop)) == api.Completed(SLICE_ROWS, True)
    rest = api.Completed(len(packets), False)
    assert office.ok(api.Complete(handle, READER, stop)) == rest
    assert (count(office), reservation(office)) == (0, ("", 0, 0))


def fetch_all(office: Office, stop: int, name: str = ORDERS) -> None:
    """Fetch what is reserved below a number, as its reader does, in several answers."""
    handle, start = office.open(name), reservation(office, name)[1]
    while start < stop:
        start = office.ok(api.FetchPackets(handle, start, stop, 3)).next_start


def ranges_of(outputs: list[Any]) -> int:
    """How many ranges were asked of the store."""
    return sum(len(output.batch.ranges) for output in outputs if isinstance(output, Persist))


@pytest.fixture
def quick() -> Office:
    """A queue manager that takes out even a few messages as a range."""
    return Office(range_removal_min=2)


def complete_at_once(office: Office, stop: int, name: str = ORDERS) -> tuple[int, int]:
    """Complete in one turn; gives how many went, and by how many ranges."""
    node = office.driver.node
    call = office.driver.request(office.app, api.Complete(office.open(name), READER, stop))
    taken = node.take()
    for output in taken:
        if isinstance(output, Persist):
            assert node.commit(output, office.driver.now)
    office.driver.pump()
    reply = office.driver.take_answers()[office.app, call]
    assert isinstance(reply, api.Completed)
    assert not reply.more
    return reply.count, ranges_of(taken)


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_fetched_is_taken_out_as_a_range(quick: Office, restart: bool) -> None:
    for priority in (0, 7, 3, 7, 0):
        quick.send(b"%d" % priority, priority=priority)
        quick.send(b"between", name=LEDGER)
    numbers = arrivals(quick)
    stop = reserve(quick, count=4)
    if restart:
        quick.restart()
    fetch_all(quick, stop)
    assert complete_at_once(quick, stop) == (4, 3), "one for each level of priority"
    assert (count(quick), quick.bodies(), fetched(quick)) == (1, [b"0"], [b"0"])
    assert reservation(quick) == ("", 0, 0)
    quick.restart()
    assert (count(quick), arrivals(quick)) == (1, numbers[4:])
    assert count(quick, LEDGER) == 5


@pytest.mark.parametrize(
    "unusual",
    [
        {"recoverable": False},
        {"time_to_be_received_s": 1000},
        {"admin_queue": ADMIN_NAME, "acknowledge": 0x02},
        {"journal_on_failure": True, "time_to_be_received_s": 1000},
    ],
    ids=repr,
)
def test_one_message_whose_end_causes_more_lets_all_go_one_by_one(
    quick: Office, unusual: dict[str, Any]
) -> None:
    quick.ok(api.CreateQueue(ADMIN))
    quick.send(b"one", b"two")
    quick.send(b"three", **unusual)
    stop = reserve(quick)
    fetch_all(quick, stop)
    assert complete_at_once(quick, stop) == (3, 0)
    assert count(quick) == 0
    assert len(quick.classes(ADMIN)) == ("admin_queue" in unusual)


def test_what_a_journal_is_to_have_goes_one_by_one(quick: Office) -> None:
    quick.ok(api.ChangeQueue(ORDERS, journaling=True))
    quick.send(b"one", b"two")
    stop = reserve(quick)
    fetch_all(quick, stop)
    assert complete_at_once(quick, stop) == (2, 0)
    assert count(quick, JOURNAL) == 2


def test_what_was_fetched_only_in_part_goes_one_by_one(quick: Office) -> None:
    quick.send(*[b"x"] * 6)
    stop = reserve(quick)
    fetch_all(quick, stop - 1)
    assert complete_at_once(quick, stop - 2) == (4, 0), "no answer ended there"
    assert complete_at_once(quick, stop) == (2, 0), "nobody has fetched the last one"
    assert count(quick) == 0


def test_what_was_fetched_before_it_was_reserved_counts_for_nothing(quick: Office) -> None:
    """Others could still take messages then."""
    quick.send(*[b"x"] * 4)
    handle, numbers = quick.open(), arrivals(quick)
    quick.ok(api.FetchPackets(handle, numbers[0], numbers[-1] + 1))
    quick.ok(api.Receive(handle))
    stop = reserve(quick, numbers[0])
    assert complete_at_once(quick, stop) == (3, 0)


def test_what_was_fetched_under_an_earlier_reservation_counts_for_nothing(quick: Office) -> None:
    quick.send(*[b"x"] * 4)
    stop = reserve(quick)
    fetch_all(quick, stop)
    quick.ok(api.Release(ORDERS))
    quick.ok(api.Receive(quick.open()))
    assert reserve(quick) == stop
    assert complete_at_once(quick, stop) == (3, 0)
    assert count(quick) == 0


def test_a_range_on_its_way_out_is_out_of_everybodys_sight(quick: Office) -> None:
    quick.send(b"one", b"two", b"three", b"four")
    handle, node = quick.open(), quick.driver.node
    ids = quick.lookup_ids()
    stop = reserve(quick, count=3)
    fetch_all(quick, stop)
    quick.driver.request(quick.app, api.Complete(handle, READER, stop))
    [persist] = node.take()
    assert isinstance(persist, Persist)
    asked = {
        quick.driver.request(quick.app, request): expected
        for request, expected in (
            (api.FetchRange(handle, 0, EVERYTHING), [b"four"]),
            (api.Receive(handle, 9, 0, peek=True), [b"four"]),
            (api.Seek(handle, "last", peek=True), [b"four"]),
            (api.Seek(handle, "current", ids[1], peek=True), None),
            (api.Seek(handle, "previous", ids[3], peek=True), None),
        )
    }
    node.take()
    for call, expected in asked.items():
        reply = node.answers.pop((quick.app, call))
        assert (bodies(reply) if isinstance(reply, api.Entries) else None) == expected
    assert node.commit(persist, quick.driver.now)
    quick.driver.pump()
    assert (count(quick), quick.bodies()) == (1, [b"four"])


def test_a_refused_range_leaves_everything_reserved(quick: Office) -> None:
    quick.send(*[b"x"] * 4)
    before = quick.ok(api.GetQueue(ORDERS))
    stop = reserve(quick)
    fetch_all(quick, stop)
    call = quick.driver.request(quick.app, api.Complete(quick.open(), READER, stop))
    quick.driver.pump(fail=1)
    assert error_name(quick.driver.take_answers()[quick.app, call]) == FULL
    assert reservation(quick) == (READER, 0, stop)
    after = quick.ok(api.GetQueue(ORDERS)).queues[0]
    assert (after.message_count, after.message_bytes) == (4, before.queues[0].message_bytes)
    assert len(fetched(quick)) == 4
    assert complete(quick, stop) == 4
    assert (count(quick), quick.bodies()) == (0, [])


def test_large_messages_are_completed_in_slices(office: Office) -> None:
    for _ in range(6):
        office.send(bytes(4_000_000))
    stop = reserve(office)
    first = office.ok(api.Complete(office.open(), READER, stop))
    assert first.more
    assert 1 <= first.count < 6
    assert complete(office, stop) == 6 - first.count


# Releasing.


def test_what_is_released_is_there_for_everybody(office: Office) -> None:
    office.send(b"one", b"two")
    reserve(office)
    handle = office.open()
    waiting = office.driver.request(office.app, api.Receive(handle, timeout_ms=None))
    office.driver.pump()
    office.driver.request(office.app, api.Release(ORDERS))
    office.driver.pump()
    assert bodies(office.driver.take_answers()[office.app, waiting]) == [b"one"]
    assert reservation(office) == ("", 0, 0)
    assert office.bodies() == [b"two"]
    assert complete(office, EVERYTHING) == 0, "its reader has lost them"
    office.restart()
    assert office.bodies() == [b"two"]
    assert reserve(office, 0, "other") > 0
    office.ok(api.Release(ORDERS))
    office.ok(api.Release(ORDERS))
    assert office.error(api.Release(r"private$\none")) == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.parametrize("restart", [False, True])
def test_what_is_released_expires_again(office: Office, restart: bool) -> None:
    office.send(b"one", time_to_be_received_s=5, journal_on_failure=True)
    office.send(b"two", time_to_be_received_s=500)
    reserve(office)
    office.pass_time(10)
    if restart:
        office.restart()
        office.pass_time(1)
    assert count(office) == 2
    office.ok(api.Release(ORDERS))
    office.pass_time(0)
    assert fetched(office) == [b"two"]
    assert office.bodies("system$;deadletter") == [b"one"]
    office.pass_time(500)
    assert count(office) == 0


def test_a_release_is_heard_of_when_it_is_durable(office: Office) -> None:
    """Else a transaction could take what the reader still has after a refusal."""
    office.send(b"one", name=LEDGER)
    stop = reserve(office, name=LEDGER)
    handle, work = office.open(LEDGER), office.begin()
    [released, taken] = office.fail(api.Release(LEDGER), api.Receive(handle, transaction=work))
    assert (released, taken) == (FULL, TIMEOUT)
    assert reservation(office, LEDGER) == (READER, 0, stop)
    assert complete(office, stop, name=LEDGER) == 1


def test_a_reader_waits_while_its_messages_are_being_released(office: Office) -> None:
    office.send(b"one")
    stop, handle = reserve(office), office.open()
    calls = [
        office.driver.request(office.app, request)
        for request in (
            api.Release(ORDERS),
            api.Reserve(handle, READER, 0),
            api.Complete(handle, READER, stop),
            api.Release(ORDERS),
        )
    ]
    office.driver.pump()
    answers = office.driver.take_answers()
    replies = [answers[office.app, call] for call in calls]
    assert [error_name(reply) for reply in replies] == ["Done", SHARING, "Completed", "Done"]
    assert replies[2] == api.Completed(0, False)
    assert office.bodies() == [b"one"]
    assert reserve(office) == stop


# A full disk.


def test_a_refused_reservation_reserves_nothing(office: Office) -> None:
    office.send(b"one", b"two")
    handle = office.open()
    assert office.fail(api.Reserve(handle, READER, 0, 1)) == [FULL]
    assert reservation(office) == ("", 0, 0)
    assert office.bodies() == [b"one", b"two"]
    stop = reserve(office, count=1)
    assert office.fail(api.Reserve(handle, READER, 0)) == [FULL]
    assert reservation(office) == (READER, 0, stop)
    assert office.bodies() == [b"two"]


def test_a_reader_that_waited_gets_what_the_disk_did_not_let_another_reserve(
    office: Office,
) -> None:
    office.send(b"one")
    handle = office.open()
    assert office.fail(api.Reserve(handle, READER, 0), api.Receive(handle, timeout_ms=None)) == [
        FULL,
        "Entries",
    ]
    assert count(office) == 0


def test_what_the_disk_did_not_let_a_reader_reserve_expires_in_its_time(office: Office) -> None:
    office.send(b"one", time_to_be_received_s=5)
    office.driver.request(office.app, api.Reserve(office.open(), READER, 0))
    node = office.driver.node
    [persist] = node.take()
    assert isinstance(persist, Persist)
    office.driver.now = Instant(5_000, START_S + 5)
    office.driver.wake()
    node.store.fail_next(StoreFull)
    assert not node.commit(persist, office.driver.now)
    office.pass_time(0)
    assert count(office) == 0


def test_a_refused_completion_leaves_everything_reserved(office: Office) -> None:
    office.send(b"one", b"two")
    stop, handle = reserve(office), office.open()
    assert office.fail(api.Complete(handle, READER, stop)) == [FULL]
    assert reservation(office) == (READER, 0, stop)
    assert office.bodies() == []
    assert fetched(office) == [b"one", b"two"]
    assert complete(office, stop) == 2


def test_a_refused_release_leaves_everything_reserved(office: Office) -> None:
    office.send(b"one", time_to_be_received_s=5)
    stop = reserve(office)
    office.pass_time(10)
    assert office.fail(api.Release(ORDERS)) == [FULL]
    office.pass_time(10)
    assert reservation(office) == (READER, 0, stop)
    assert fetched(office) == [b"one"]
    office.ok(api.Release(ORDERS))
    assert count(office) == 0


def test_a_refused_deletion_leaves_everything_reserved(office: Office) -> None:
    office.send(b"one", b"two")
    stop = reserve(office, count=1)
    assert office.fail(api.DeleteQueue(ORDERS)) == [FULL]
    assert reservation(office) == (READER, 0, stop)
    assert office.bodies() == [b"two"]
    for requests in (
        (api.Release(ORDERS), api.DeleteQueue(ORDERS)),
        (api.Complete(office.open(), READER, stop), api.DeleteQueue(ORDERS)),
    ):
        assert office.fail(*requests) == [FULL, FULL]
        assert reservation(office) == (READER, 0, stop)
        assert fetched(office) == [b"one", b"two"]


def test_numbers_of_messages_that_the_disk_refused_are_no_place_to_go_on_from() -> None:
    """After a crash they are given again: a reader behind them would miss those messages."""
    office = Office()
    sender, handle = office.open(access=AccessMode.SEND), office.open()
    assert office.fail(api.Send(sender, [Draft().packet()] * 10)) == [FULL]
    last = office.ok(api.GetQueue(ORDERS)).queues[0].last_arrival_number
    stop = office.ok(api.Measure(handle, 0)).stop
    office.restart()
    office.send(b"one")
    assert arrivals(office)[0] > last
    assert arrivals(office)[0] >= stop


def test_a_message_whose_expiry_the_disk_refused_is_not_reserved(office: Office) -> None:
    """It may be gone at the second look, or be there again after a crash."""
    office.send(b"one", time_to_be_received_s=5)
    office.send(b"two")
    number = arrivals(office)[0]
    handle = office.open()
    office.driver.now = Instant(5_000, START_S + 5)
    office.fail(api.Receive(handle, peek=True, timeout_ms=None))
    assert office.ok(api.Reserve(handle, READER, 0)).stop == 0
    office.restart()
    office.pass_time(1)
    assert reserve(office) == number + 2
    assert fetched(office) == [b"two"]
