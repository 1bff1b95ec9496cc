"""What every store promises, shown on each adapter against a pair of plain dictionaries."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from openmsmq.storage import engine
from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.files import FileOps
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, Store, StoreFailed, StoreFull, Taken
from tests.stretches import records_in, within


class Subject(Protocol):
    """A store under test and what can happen to it."""

    store: Store

    def restart(self, *, clean: bool) -> None:
        """Open the store again, after a clean stop or after a crash."""
        ...

    def checkpoint(self) -> None:
        """Let the store tidy up whatever it puts off."""
        ...

    def fill_disk(self, full: bool) -> None:
        """Take the free space away, or give it back."""
        ...

    def dispose(self) -> None:
        """Leave nothing behind."""
        ...


class MemorySubject:
    def __init__(self) -> None:
        self.store = MemoryStore()

    def restart(self, *, clean: bool) -> None:
        survivor = self.store.crash()
        if clean:
            self.store.close()
        self.store = survivor

    def checkpoint(self) -> None:
        pass

    def fill_disk(self, full: bool) -> None:
        if full:
            self.store.fail_next(StoreFull)

    def dispose(self) -> None:
        self.store.close()


class CrampedFiles(FileOps):
    """A file system that can be full: whoever asks for more place then does not get it."""

    full = False

    def allocate(self, file: int, size_bytes: int) -> None:
        if self.full and size_bytes > self.size_bytes(file):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().allocate(file, size_bytes)


class JournaledSubject:
    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="openmsmq-store-"))
        self.files = CrampedFiles()
        self.store = self._open()

    def _open(self) -> JournaledStore:
        return open_store(self.directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES, files=self.files)

    def restart(self, *, clean: bool) -> None:
        if clean:
            self.store.close()
        else:
            self.store.abandon()
        self.store = self._open()

    def checkpoint(self) -> None:
        try:
            self.store.checkpoint()
        except StoreFull:
            assert self.files.full

    def fill_disk(self, full: bool) -> None:
        self.files.full = full

    def dispose(self) -> None:
        self.store.abandon()
        shutil.rmtree(self.directory)


class StayingSubject(JournaledSubject):
    """The same, where whatever is taken stays in its file, however little it is."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(engine, "STAYING_MIN_BYTES", 0)
        super().__init__()

    def dispose(self) -> None:
        super().dispose()
        self._patch.undo()


queue_keys = st.builds(
    lambda kind, queue, number: kind + queue.to_bytes(4, "big") + number.to_bytes(8, "big"),
    st.sampled_from([b"E", b"S"]),
    st.integers(0, 2),
    st.integers(0, 6) | st.integers(2**56, 2**56 + 3),
)
few_keys = st.sampled_from([b"E", b"E1", b"E" + bytes(12), b"E" + bytes(11) + b"\1"])
keys = few_keys | queue_keys | st.binary(min_size=1, max_size=12)
bounds = keys | st.sampled_from([b"", b"E", b"F", b"S", b"\xff" * 14])
values = st.binary(max_size=8) | st.integers(0, 3000).map(bytes)
deletions = st.tuples(keys, st.none())
puts = st.tuples(keys, values)


class StoreMachine(RuleBasedStateMachine):
    """Any sequence of batches, reads, crashes and full disks, beside a plain model."""

    make_subject: type[Any]

    def __init__(self) -> None:
        super().__init__()
        self.subject: Subject = self.make_subject()
        self.durable: dict[bytes, bytes] = {}
        self.volatile: dict[bytes, bytes] = {}
        self.aside: dict[bytes, list[bytes]] = {}
        self.names = 0
        self.full = False

    def teardown(self) -> None:
        self.subject.dispose()

    def visible(self) -> dict[bytes, bytes]:
        return self.durable | self.volatile

    def commit(self, batch: Batch) -> None:
        try:
            self.subject.store.commit(batch)
        except StoreFull:
            assert self.full, "the store says it is full on a disk with space"
            if isinstance(self.subject, MemorySubject):
                self.full = False
            return
        for start, stop in batch.ranges:
            for part in (self.durable, self.volatile):
                for key in [key for key in part if start <= key < stop]:
                    del part[key]
        for key, value in [*self.taken(batch), *batch.changes]:
            self.volatile.pop(key, None)
            if value is None:
                self.durable.pop(key, None)
            else:
                self.durable[key] = value
        self.volatile.update(batch.volatile)
        for key in batch.forgotten:
            self.volatile.pop(key, None)

    def taken(self, batch: Batch) -> list[tuple[bytes, bytes]]:
        """Set aside and drop what a batch says; give what it takes."""
        self.aside |= dict(batch.aside)
        found: list[tuple[bytes, bytes]] = []
        for each in batch.taken:
            number = int.from_bytes(each.key[-8:], "big")
            for value in self.aside[each.name][each.first : each.first + each.count]:
                found.append((each.key[:-8] + number.to_bytes(8, "big"), each.prefix + value))
                number += 1
        for name in batch.dropped:
            del self.aside[name]
        return found

    @rule(
        changes=st.lists(puts | deletions, max_size=12),
        volatile=st.lists(puts, max_size=4),
        forgotten=st.lists(deletions, max_size=4),
    )
    def change(
        self,
        changes: list[tuple[bytes, bytes | None]],
        volatile: list[tuple[bytes, bytes]],
        forgotten: list[tuple[bytes, None]],
    ) -> None:
        durable = {*self.durable, *(key for key, _ in changes)}
        self.commit(Batch(changes, volatile, [key for key, _ in forgotten if key not in durable]))

    @rule(
        ranges=st.lists(st.tuples(bounds, bounds), min_size=1, max_size=3),
        changes=st.lists(puts | deletions, max_size=3),
        volatile=st.lists(puts, max_size=2),
    )
    def delete_ranges(
        self,
        ranges: list[tuple[bytes, bytes]],
        changes: list[tuple[bytes, bytes | None]],
        volatile: list[tuple[bytes, bytes]],
    ) -> None:
        self.commit(Batch(changes, volatile, ranges=ranges))

    @rule(queue=st.integers(0, 2), count=st.integers(1, 40), volatile=st.booleans())
    def send(self, queue: int, count: int, volatile: bool) -> None:
        prefix = b"E" + queue.to_bytes(4, "big")
        last = max((key for key in self.visible() if key[:5] == prefix), default=prefix + bytes(8))
        number = int.from_bytes(last[5:13].ljust(8, b"\0"), "big") % 2**60
        records = [
            (prefix + (number + i + 1).to_bytes(8, "big"), b"%d" % i * 20) for i in range(count)
        ]
        self.commit(Batch([], records) if volatile else Batch([*records]))

    @rule(values=st.lists(values, min_size=1, max_size=9), at_once=st.booleans())
    def set_aside(self, values: list[bytes], at_once: bool) -> None:
        self.names += 1
        name = b"T%d" % self.names
        batch = Batch([(b"T", name)], aside=[(name, values)])
        if at_once:
            batch.taken = [Taken(name, 0, len(values), b"E" + bytes(12), b"at once ")]
            batch.dropped = [name]
        self.commit(batch)

    @precondition(lambda self: self.aside)
    @rule(data=st.data(), queue=st.integers(0, 2), prefix=st.binary(max_size=3))
    def take(self, data: st.DataObject, queue: int, prefix: bytes) -> None:
        names = data.draw(st.lists(st.sampled_from(sorted(self.aside)), unique=True, min_size=1))
        batch = Batch([(b"T", None)])
        for name in names:
            count = len(self.aside[name])
            first = data.draw(st.integers(0, count - 1))
            number = data.draw(st.integers(0, 9) | st.just(2**64 - count))
            key = b"E" + queue.to_bytes(4, "big") + number.to_bytes(8, "big")
            batch.taken.append(Taken(name, first, count - first, key, prefix))
            if data.draw(st.booleans()):
                batch.dropped.append(name)
        self.commit(batch)

    @precondition(lambda self: self.aside)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        self.commit(Batch(dropped=[data.draw(st.sampled_from(sorted(self.aside)))]))

    @rule(queue=st.integers(0, 2), count=st.integers(1, 40), reverse=st.booleans())
    def receive(self, queue: int, count: int, reverse: bool) -> None:
        start, stop = (b"E" + (queue + i).to_bytes(4, "big") for i in (0, 1))
        found = self.scanned(start, stop, count, reverse)
        self.commit(Batch([(key, None) for key, _ in found]))

    @rule(start=bounds, stop=bounds, limit=st.integers(0, 60), reverse=st.booleans())
    def scan(self, start: bytes, stop: bytes, limit: int, reverse: bool) -> None:
        self.scanned(start, stop, limit, reverse)

    def scanned(
        self, start: bytes, stop: bytes, limit: int, reverse: bool
    ) -> list[tuple[bytes, bytes]]:
        found = self.subject.store.scan(start, stop, limit, reverse=reverse)
        inside = [item for item in self.visible().items() if start <= item[0] < stop]
        assert found == sorted(inside, reverse=reverse)[:limit]
        return found

    @rule(start=bounds, stop=bounds, limit=st.integers(1, 60), size=st.integers(1, 5000))
    def stretch(self, start: bytes, stop: bytes, limit: int, size: int) -> None:
        found = self.subject.store.stretch(start, stop, limit, size)
        if found is not None:
            inside = sorted(item for item in self.visible().items() if start <= item[0] < stop)
            taken = records_in(found)
            assert taken == within(inside, limit, size)[: len(taken)] != []

    @rule(key=keys)
    def get(self, key: bytes) -> None:
        assert self.subject.store.get(key) == self.visible().get(key)

    @rule()
    def checkpoint(self) -> None:
        self.subject.checkpoint()

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.subject.restart(clean=clean)
        self.volatile = {}
        if isinstance(self.subject, MemorySubject):
            self.full = False

    @precondition(lambda self: not self.full)
    @rule()
    def fill_disk(self) -> None:
        self.subject.fill_disk(True)
        self.full = True

    @precondition(lambda self: self.full)
    @rule()
    def free_disk(self) -> None:
        if isinstance(self.subject, MemorySubject):
            return
        self.subject.fill_disk(False)
        self.full = False

    @invariant()
    def everything_is_there_and_nothing_else(self) -> None:
        records = sorted(self.visible().items())
        for limit in (2, 7, 100_000):
            for reverse in (False, True):
                found = self.subject.store.scan(b"", b"\xff" * 14, limit, reverse=reverse)
                assert found == (records[::-1] if reverse else records)[:limit]


class MemoryStoreMachine(StoreMachine):
    make_subject = MemorySubject


class JournaledStoreMachine(StoreMachine):
    make_subject = JournaledSubject


class StayingStoreMachine(StoreMachine):
    make_subject = StayingSubject


TestMemoryStore = MemoryStoreMachine.TestCase
TestMemoryStore.settings = settings(max_examples=60, stateful_step_count=40)
TestJournaledStore = JournaledStoreMachine.TestCase
TestJournaledStore.settings = settings(max_examples=60, stateful_step_count=40)
TestStayingStore = StayingStoreMachine.TestCase
TestStayingStore.settings = settings(max_examples=60, stateful_step_count=40)


@pytest.fixture(
    params=[MemorySubject, JournaledSubject, StayingSubject], ids=["memory", "journaled", "staying"]
)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    made: Subject = request.param()
    yield made
    made.dispose()


def key(number: int) -> bytes:
    return b"E" + bytes(4) + number.to_bytes(8, "big")


def test_a_full_disk_refuses_what_adds_and_keeps_everything_else(subject: Subject) -> None:
    subject.store.commit(Batch([(key(1), b"one")], [(key(2), b"two")]))
    before = subject.store.scan(b"", b"\xff", 10)
    subject.fill_disk(True)
    with pytest.raises(StoreFull):
        subject.store.commit(Batch([(key(1), None), (key(3), bytes(20_000))], [(key(4), b"four")]))
    assert subject.store.scan(b"", b"\xff", 10) == before
    subject.fill_disk(False)
    subject.store.commit(Batch([(key(3), bytes(20_000))]))
    subject.restart(clean=False)
    assert subject.store.scan(b"", b"\xff", 10) == [(key(1), b"one"), (key(3), bytes(20_000))]


def test_a_volatile_value_hides_a_durable_one_until_the_next_start(subject: Subject) -> None:
    subject.store.commit(Batch([(key(1), b"durable")]))
    subject.checkpoint()
    subject.store.commit(Batch([], [(key(1), b"volatile")]))
    assert subject.store.get(key(1)) == b"volatile"
    subject.restart(clean=True)
    assert subject.store.get(key(1)) == b"durable"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_deleting_a_hidden_key_deletes_both_values(subject: Subject, checkpoint: bool) -> None:
    subject.store.commit(Batch([(key(1), b"durable")]))
    if checkpoint:
        subject.checkpoint()
    subject.store.commit(Batch([], [(key(1), b"volatile")]))
    subject.store.commit(Batch([(key(1), None)]))
    assert subject.store.get(key(1)) is None
    subject.restart(clean=False)
    assert subject.store.get(key(1)) is None


def test_forgetting_drops_values_that_are_in_memory_only(subject: Subject) -> None:
    subject.store.commit(Batch([(key(1), b"durable")]))
    subject.store.commit(Batch([], [(key(2), b"volatile"), (key(4), b"volatile")]))
    subject.store.commit(Batch([], [], [key(2), key(3), key(4)]))
    assert subject.store.scan(b"", b"\xff", 10) == [(key(1), b"durable")]


def test_a_durable_value_takes_the_place_of_a_volatile_one_for_good(subject: Subject) -> None:
    subject.store.commit(Batch([], [(key(1), b"volatile")]))
    subject.store.commit(Batch([(key(1), b"durable")]))
    assert subject.store.get(key(1)) == b"durable"
    subject.restart(clean=False)
    assert subject.store.get(key(1)) == b"durable"


def test_in_one_batch_the_last_change_of_a_key_counts(subject: Subject) -> None:
    subject.store.commit(Batch([], [(key(1), b"volatile")]))
    subject.store.commit(
        Batch([(key(1), b"a"), (key(1), None), (key(2), None), (key(2), b"b"), (key(2), b"c")])
    )
    subject.restart(clean=False)
    assert subject.store.scan(b"", b"\xff", 10) == [(key(2), b"c")]


def test_after_a_failure_the_memory_store_refuses_commits_but_can_be_read() -> None:
    store = MemoryStore()
    store.commit(Batch([(key(1), b"one")]))
    store.fail_next(StoreFailed)
    for _ in range(2):
        with pytest.raises(StoreFailed):
            store.commit(Batch([(key(2), b"two")]))
    assert store.scan(b"", b"\xff", 10) == [(key(1), b"one")]
    assert store.crash().scan(b"", b"\xff", 10) == [(key(1), b"one")]


def test_a_failed_write_of_the_memory_store_may_have_reached_the_disk() -> None:
    store = MemoryStore()
    store.fail_next(StoreFailed, reached_disk=True)
    with pytest.raises(StoreFailed):
        store.commit(Batch([(key(1), b"one")], [(key(2), b"volatile")]))
    assert store.crash().scan(b"", b"\xff", 10) == [(key(1), b"one")]
