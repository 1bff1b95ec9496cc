"""A primary: when its turns go to the log, and when what the log has comes to its own disk."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    LeaseTimes,
    LogState,
    Promoted,
    Release,
    Renew,
    Request,
    Trim,
)
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.replication import primary
from openmsmq.runtime.replication.database import Heard
from openmsmq.runtime.replication.primary import CATCH_UP_BYTES, CATCH_UP_S, Primary
from openmsmq.storage import journal
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreError, StoreFailed
from tests.unit.storage.test_engine import FailingFiles

LEASE_MS = 3000


class Loop(asyncio.SelectorEventLoop):
    """An event loop in which it is as late as the test says."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s


class Database:
    """A log that answers when the test wants."""

    name = "ALPHA"

    def __init__(self) -> None:
        self.times = LeaseTimes(lease_ms=LEASE_MS)
        self.asked: list[tuple[Request, Heard]] = []
        self.last = 0
        self.first = 1

    def begin(self, request: Request, heard: Heard) -> None:
        self.asked.append((request, heard))

    def answer(self) -> Request:
        """Do what was asked; nothing else may be under way."""
        [(request, heard)] = self.asked
        self.asked.clear()
        if isinstance(request, Append):
            assert request.number == self.last + 1
            self.last = request.number
        elif isinstance(request, Trim):
            self.first = min(request.backed_up, request.number) + 1
        heard(Answer(LogState("log", 1, "us", self.first, self.last, 0, lease_ended=False)))
        return request

    def close(self) -> None:
        """Have nothing to end."""


class Case:
    """A primary, its log and its store."""

    def __init__(self, store: JournaledStore, loop: Loop) -> None:
        self.store = store
        self.loop = loop
        self.database = Database()
        log = EventLog(write=lambda _: None)
        promoted = Promoted("alpha", "us", 1, LEASE_MS)
        self.primary = Primary(self.database, promoted, store, log, "log")  # type: ignore[arg-type]
        self.done: list[StoreError | None] = []

    def commit(self, value: bytes) -> None:
        assert not self.primary.commit(Batch([(b"k", value)]), self.done.append)

    async def turn(self, value: bytes) -> None:
        """Have a turn that the log takes."""
        self.commit(value)
        self.database.answer()
        await self.later(0)

    async def later(self, pause_s: float) -> None:
        """Let time pass, and do what is due."""
        self.loop.now_s += pause_s
        for _ in range(5):
            await asyncio.sleep(0)


Test = Callable[[Case], Awaitable[None]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a test in a loop whose time stands still, once the lease was renewed."""

    def runs(test: Test, files: FailingFiles | None = None) -> None:
        loop = Loop()
        monkeypatch.setattr(primary, "since_boot_ms", lambda: round(loop.now_s * 1000))
        store = open_store(tmp_path / "store", files=files)

        async def whole() -> None:
            case = Case(store, loop)
            await case.later(0)
            assert isinstance(case.database.answer(), Renew)
            await test(case)
            await case.primary.close()

        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(whole())
        store.abandon()

    return runs


def test_a_record_leaves_in_its_turn_and_is_done_with_the_answer(run: Callable[..., None]) -> None:
    async def test(case: Case) -> None:
        case.commit(b"1")
        assert [type(request) for request, _ in case.database.asked] == [Append]
        assert (case.done, case.store.get(b"k")) == ([], None)
        case.database.answer()
        assert (case.done, case.store.get(b"k")) == ([None], b"1")

    run(test)


def test_a_turn_that_begins_where_one_ends_has_its_record_on_its_way(
    run: Callable[..., None],
) -> None:
    async def test(case: Case) -> None:
        sent: list[int] = []

        def done(_: StoreError | None) -> None:
            case.commit(b"2")
            sent.extend(len(request.record) for request, _ in case.database.asked)  # type: ignore[union-attr]

        assert not case.primary.commit(Batch([(b"k", b"1")]), done)
        case.database.answer()
        assert len(sent) == 1
        case.database.answer()
        assert (case.done, case.store.get(b"k")) == ([None], b"2")

    run(test)


def test_what_others_have_comes_to_the_own_disk_in_time_and_at_once(
    run: Callable[..., None],
) -> None:
    files = FailingFiles(0, 0)

    async def test(case: Case) -> None:
        await case.turn(b"0")
        # The first batch of a journal is noted, too.
        await case.later(CATCH_UP_S)
        before = files.count
        for number in range(1, 11):
            await case.turn(b"%d" % number)
            await case.later(CATCH_UP_S / 11)
        assert (case.store.sequence, files.count) == (1, before)
        # It counts from the oldest, and a write has a sync.
        await case.later(CATCH_UP_S / 10)
        assert (case.store.sequence, files.count) == (11, before + 2)
        await case.turn(b"11")
        await case.later(CATCH_UP_S * 0.9)
        assert case.store.sequence == 11
        await case.later(CATCH_UP_S * 0.2)
        assert case.store.sequence == 12

    run(test, files)


def test_much_of_it_comes_earlier_while_the_next_record_is_on_its_way(
    run: Callable[..., None],
) -> None:
    async def test(case: Case) -> None:
        await case.turn(bytes(CATCH_UP_BYTES // 2))
        await case.turn(bytes(CATCH_UP_BYTES // 3))
        assert case.store.sequence == 0
        await case.turn(bytes(CATCH_UP_BYTES // 3))
        assert case.store.sequence == 0
        case.commit(b"next")
        assert (case.store.sequence, len(case.database.asked)) == (0, 1)
        await case.later(0)
        assert (case.store.sequence, len(case.database.asked)) == (3, 1)

    run(test)


def test_the_log_is_not_trimmed_before_the_own_disk_has_what_it_loses(
    run: Callable[..., None],
) -> None:
    async def test(case: Case) -> None:
        await case.turn(b"1")
        case.primary.backed_up(2)
        case.commit(b"2")
        assert case.store.sequence == 0
        case.database.answer()
        [(request, _)] = case.database.asked
        assert isinstance(request, Trim)
        assert (request.number, case.store.sequence) == (2, 2)

    run(test)


def test_a_disk_that_fails_then_ends_the_primary(run: Callable[..., None]) -> None:
    files = FailingFiles(0, errno.EIO)

    async def test(case: Case) -> None:
        await case.turn(b"1")
        files.fails_at = files.count + 1
        await case.later(CATCH_UP_S)
        over = case.primary.over
        assert over is not None
        assert over.is_damage
        assert "the disk of this computer fails" in over.why

    run(test, files)


def test_a_disk_that_failed_for_somebody_else_ends_the_primary_too(
    run: Callable[..., None],
) -> None:
    files = FailingFiles(0, errno.EIO)

    async def test(case: Case) -> None:
        await case.turn(b"1")
        files.fails_at = files.count + 1
        with pytest.raises(StoreFailed):
            Snapshot(case.store)
        await case.later(CATCH_UP_S)
        over = case.primary.over
        assert over is not None
        assert "the disk of this computer fails" in over.why

    run(test, files)


def test_nothing_is_said_of_an_own_disk_that_fails(run: Callable[..., None]) -> None:
    files = FailingFiles(0, errno.EIO)
    ends: list[str] = []

    async def test(case: Case) -> None:
        case.primary.ended = lambda ended: ends.append(ended.why)
        await case.turn(b"1")
        case.primary.backed_up(2)
        case.commit(b"2")
        files.fails_at = files.count + 1
        case.database.answer()
        assert [type(request) for request, _ in case.database.asked] == []
        assert case.primary.over is not None
        # The lease is given back as before.
        leaving = asyncio.ensure_future(case.primary.leave())
        await case.later(0)
        assert isinstance(case.database.answer(), Release)
        await leaving
        assert len(ends) == 2
        assert ends[1] == "it has handed over"

    run(test, files)


def test_a_defect_on_the_way_to_the_own_disk_ends_the_primary(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(_: object) -> bytes:
        raise MemoryError

    async def test(case: Case) -> None:
        await case.turn(b"1")
        monkeypatch.setattr(journal, "put_together", no_memory)
        await case.later(CATCH_UP_S)
        over = case.primary.over
        assert over is not None
        assert "a defect of its own" in over.why

    run(test)


def test_what_is_only_in_memory_brings_nothing_to_the_own_disk(run: Callable[..., None]) -> None:
    files = FailingFiles(0, 0)

    async def test(case: Case) -> None:
        await case.turn(b"0")
        await case.later(CATCH_UP_S)
        before = files.count
        await case.turn(b"1")
        assert case.primary.commit(Batch([], volatile=[(b"v", b"2")]), case.done.append)
        assert (case.store.get(b"v"), case.store.sequence) == (b"2", 1)
        await case.later(CATCH_UP_S)
        assert (files.count, case.store.sequence) == (before + 2, 2)

    run(test, files)
