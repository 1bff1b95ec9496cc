"""The store under faults: whatever the file system refuses, nothing accepted is lost."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from openmsmq.storage.engine import (
    CHECKPOINT_MIN_BYTES,
    CLEARED_MAX_COUNT,
    SLICE_BYTES,
    JournaledStore,
)
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import SCHEMA_VERSION, StoreFormat, write_format
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import (
    Batch,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreTooNew,
)
from tests.stretches import records_in


class FailingFiles(FileOps):
    """The file system, whose n-th change fails; the request is not carried out."""

    def __init__(self, fails_at: int, code: int) -> None:
        self.count = 0
        self.fails_at = fails_at
        self.code = code
        self.failed_request = ""

    def step(self, request: str) -> None:
        self.count += 1
        if self.count == self.fails_at:
            self.failed_request = request
            raise OSError(self.code, os.strerror(self.code))

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self.step("write")
        super().write(file, parts, offset)

    def write_through(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self.write(file, parts, offset)
        self.sync(file)

    def sync(self, file: int) -> None:
        self.step("sync")
        super().sync(file)

    def sync_directory(self, path: Path) -> None:
        self.step("sync_directory")
        super().sync_directory(path)

    def allocate(self, file: int, size_bytes: int) -> None:
        self.step("allocate")
        super().allocate(file, size_bytes)

    def truncate(self, file: int, size_bytes: int) -> None:
        self.step("truncate")
        super().truncate(file, size_bytes)

    def replace(self, source: Path, target: Path) -> None:
        self.step("replace")
        super().replace(source, target)


def opened(directory: Path, files: FileOps | None = None) -> JournaledStore:
    return open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES, files=files)


def numbered(number: int) -> Batch:
    """Every third message is received in the next batch but one; one is larger than a file."""
    size = 3 * CHECKPOINT_MIN_BYTES if number == 9 else 40 * number
    return Batch(
        [
            (b"M%03d" % number, bytes([number]) * size),
            *([(b"M%03d" % (number - 2), None)] if number % 3 else []),
            (b"count", b"%d" % number),
        ]
    )


def after(count: int) -> dict[bytes, bytes]:
    state: dict[bytes, bytes] = {}
    for number in range(count):
        for key, value in numbered(number).changes:
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
    return state


def content(store: JournaledStore) -> dict[bytes, bytes]:
    return dict(store.scan(b"", b"\xff", 10_000))


def run(directory: Path, files: FileOps, count: int) -> tuple[int, StoreError | None]:
    """Commit numbered batches until one fails; say how many were accepted."""
    try:
        store = opened(directory, files)
    except StoreError as error:
        return 0, error
    accepted = 0
    failure: StoreError | None = None
    while accepted < count and failure is None:
        try:
            store.commit(numbered(accepted))
            accepted += 1
        except StoreError as error:
            failure = error
            # What was readable before stays readable.
            assert content(store) == after(accepted)
    store.abandon()
    return accepted, failure


COUNT = 16


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_any_single_failure_leaves_every_accepted_batch(tmp_path: Path, code: int) -> None:
    fails_at = 0
    requests = set()
    while True:
        fails_at += 1
        directory = tmp_path / str(fails_at)
        files = FailingFiles(fails_at, code)
        accepted, failure = run(directory, files, COUNT)
        if not files.failed_request:
            break
        requests.add(files.failed_request)
        store = opened(directory)
        found = content(store)
        # A batch that failed may be there, but only as a whole.
        assert found in (after(accepted), after(accepted + 1)), (fails_at, files.failed_request)
        if isinstance(failure, StoreFull):
            assert found == after(accepted), (fails_at, files.failed_request)
        store.commit(numbered(accepted))
        store.close()
        assert check_store(directory).sound
    assert accepted == COUNT
    assert requests == {"write", "sync", "sync_directory", "allocate", "truncate", "replace"}


def test_after_a_failed_sync_no_commit_is_accepted_but_reading_goes_on(tmp_path: Path) -> None:
    opened(tmp_path).close()
    files = FailingFiles(0, errno.EIO)
    store = opened(tmp_path, files)
    store.commit(Batch([(b"a", b"1")]))
    files.fails_at = files.count + 2
    with pytest.raises(StoreFailed, match="check the disk"):
        store.commit(Batch([(b"b", b"2")]))
    assert files.failed_request == "sync"
    with pytest.raises(StoreFailed, match="earlier failure"):
        store.commit(Batch([(b"c", b"3")]))
    with pytest.raises(StoreFailed):
        store.commit(Batch([], [(b"d", b"4")]))
    assert content(store) == {b"a": b"1"}
    store.close()
    store = opened(tmp_path)
    assert content(store) in ({b"a": b"1"}, {b"a": b"1", b"b": b"2"})
    store.close()


class FullFiles(FileOps):
    full = False

    def allocate(self, file: int, size_bytes: int) -> None:
        if self.full and size_bytes > self.size_bytes(file):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().allocate(file, size_bytes)


def add_until_full(store: JournaledStore) -> int:
    number = 0
    while True:
        try:
            store.commit(Batch([(b"%06d" % number, bytes(200))]))
        except StoreFull:
            return number
        number += 1


def test_a_full_store_can_be_emptied_and_takes_messages_again(tmp_path: Path) -> None:
    files = FullFiles()
    store = opened(tmp_path, files)
    files.full = True
    number = add_until_full(store)
    assert number > 10
    with pytest.raises(StoreFull, match="free some space"):
        store.commit(Batch([(b"%06d" % number, bytes(200))]))
    assert len(content(store)) == number
    for place in range(number):
        store.commit(Batch([(b"%06d" % place, None)]))
    assert content(store) == {}
    for place in range(10):
        store.commit(Batch([(b"%06d" % place, bytes(200))]))
    files.full = False
    for place in range(200):
        store.commit(Batch([(b"%06d" % place, bytes(200))]))
    store.abandon()
    store = opened(tmp_path)
    assert len(content(store)) == 200
    store.close()


def test_a_message_that_comes_and_goes_never_reaches_the_base(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(300):
        store.commit(Batch([(b"%06d" % number, bytes(100))]))
        store.commit(Batch([(b"%06d" % number, None)]))
    store.abandon()
    report = check_store(tmp_path)
    assert report.applied_sequence > 400
    # Only one that was between its two batches when a journal file was full may be there.
    assert report.record_count <= 1
    assert report.file_bytes < 100 * 1024


def test_a_clean_stop_leaves_nothing_to_replay(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(5):
        store.commit(numbered(number))
    store.close()
    report = check_store(tmp_path)
    assert (report.journal_batch_count, report.applied_sequence) == (0, 5)
    assert report.record_count == len(after(5))


def test_a_file_that_is_made_shorter_never_looks_cut(tmp_path: Path) -> None:
    class Crash(Exception):
        """The process ends here."""

    class Interrupted(FileOps):
        def truncate(self, file: int, size_bytes: int) -> None:
            shrinks = size_bytes < self.size_bytes(file)
            super().truncate(file, size_bytes)
            if shrinks:
                raise Crash

    def commit_all() -> None:
        nonlocal accepted
        while True:
            store.commit(numbered(accepted))
            accepted += 1

    store = open_store(tmp_path, checkpoint_bytes=4 * CHECKPOINT_MIN_BYTES)
    store.commit(Batch([(b"count", b"-")]))
    store.abandon()
    # The journal files were larger than they are to be from now on.
    store = opened(tmp_path, Interrupted())
    accepted = 0
    with pytest.raises(Crash):
        commit_all()
    store.abandon()
    store = opened(tmp_path)
    assert content(store) == after(accepted)
    store.close()


def test_volatile_messages_cause_no_write(tmp_path: Path) -> None:
    files = FailingFiles(0, errno.EIO)
    store = opened(tmp_path, files)
    before = files.count
    store.commit(Batch([], [(b"a", b"1"), (b"b", b"2")]))
    store.commit(Batch([(b"a", None)]))
    assert files.count == before
    assert content(store) == {b"b": b"2"}
    store.close()


def test_one_commit_moves_only_a_part_of_a_checkpoint(tmp_path: Path) -> None:
    size = 4 * SLICE_BYTES
    store = open_store(tmp_path, checkpoint_bytes=size)
    sizes = set()
    for number in range(4 * size // 60_000):
        store.commit(Batch([(b"%06d" % number, bytes(60_000))]))
        sizes.add(store.base_count)
        if number % 20 == 0:
            # A crash in the middle of a checkpoint finds what is moved and what is not.
            store.abandon()
            store = open_store(tmp_path, checkpoint_bytes=size)
            assert [int(key) for key, _ in store.scan(b"", b"\xff", 1000)] == [*range(number + 1)]
    steps = sorted(sizes)
    largest = max(later - earlier for earlier, later in itertools.pairwise(steps))
    assert 0 < largest * 60_000 <= SLICE_BYTES + 60_000
    store.close()


def test_a_range_is_gone_at_once_and_cleared_in_slices(tmp_path: Path) -> None:
    count = 5 * CLEARED_MAX_COUNT // 2
    store = open_store(tmp_path)
    store.commit(Batch([(b"%06d" % number, b"old") for number in range(count + 2)]))
    store.checkpoint()
    store.commit(Batch([], ranges=[(b"000001", b"%06d" % (count + 1))]))
    expected = {b"000000": b"old", b"%06d" % (count + 1): b"old"}
    left = []
    for number in range(1, 5):
        assert content(store) == expected
        # One that comes again in the middle of the range stays.
        again = b"%06d" % (count // number)
        assert store.get(again) == expected.get(again)
        store.commit(Batch([(again, b"new")]))
        expected[again] = b"new"
        left.append(store.base_count)
        # A crash before the range is cleared, and after a part of it was.
        store.abandon()
        store = open_store(tmp_path)
    assert left == [count + 2 - 2 * CLEARED_MAX_COUNT, 2, 2, 2]
    store.close()
    store = open_store(tmp_path)
    assert content(store) == expected
    assert store.base_count == len(expected)
    store.close()


def test_a_range_is_cleared_before_a_younger_value_of_it_is_moved(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    count = 2 * CLEARED_MAX_COUNT
    store.commit(Batch([(b"%06d" % number, b"old") for number in range(count)]))
    store.checkpoint()
    last = b"%06d" % (count - 1)
    store.commit(Batch([(last, b"new")], ranges=[(b"0", b"1")]))
    store.checkpoint()
    assert content(store) == {last: b"new"}
    assert store.base_count == 1
    store.close()


@pytest.mark.parametrize("key", [b"", bytes(512)])
def test_a_key_that_the_base_could_not_take_is_refused_at_once(tmp_path: Path, key: bytes) -> None:
    store = opened(tmp_path)
    for batch in (Batch([(b"a", b"1"), (key, b"2")]), Batch([], [(key, b"2")])):
        with pytest.raises(ValueError, match="1 to 511 bytes"):
            store.commit(batch)
    assert content(store) == {}
    store.commit(Batch([(bytes(511), b"long")]))
    store.close()


def test_a_store_in_use_is_refused_with_the_process_that_uses_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    with pytest.raises(StoreInUse, match=f"process {os.getpid()}"):
        opened(tmp_path)
    with pytest.raises(StoreInUse):
        check_store(tmp_path)
    store.close()
    opened(tmp_path).close()


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    write_format(FileOps(), tmp_path, StoreFormat(SCHEMA_VERSION + 1, "ready", 0))
    with pytest.raises(StoreTooNew, match="schema version 7, this software knows 6"):
        opened(tmp_path)
    with pytest.raises(StoreTooNew):
        check_store(tmp_path)


def test_a_damaged_format_file_is_never_replaced(tmp_path: Path) -> None:
    opened(tmp_path).close()
    path = tmp_path / "format.json"
    good = path.read_bytes()
    for offset in range(len(good) - 1):
        path.write_bytes(good[:offset] + bytes([good[offset] ^ 1]) + good[offset + 1 :])
        with pytest.raises((StoreDamaged, StoreTooNew)):
            opened(tmp_path)
    for data in (b"", b"{}", good[:20]):
        path.write_bytes(data)
        with pytest.raises(StoreDamaged, match=r"format\.json"):
            opened(tmp_path)
    path.write_bytes(good)
    opened(tmp_path).close()


def test_nobody_else_takes_files_of_a_new_store_away(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_store(tmp_path / "store").close()
    finally:
        os.umask(before)
    assert (tmp_path / "store").stat().st_mode & 0o777 == 0o700


def test_without_leave_to_create_a_missing_store_is_an_error(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(StoreDamaged, match="there is no store"):
            open_store(directory, create=False)
    assert not (tmp_path / "missing").exists()


def test_records_side_by_side_are_never_what_others_hide(tmp_path: Path) -> None:
    def key(number: int) -> bytes:
        return b"E0001" + number.to_bytes(8, "big")

    def side_by_side(start: int, stop: int) -> list[int]:
        found = store.stretch(key(start), key(stop), 1000, 1 << 20)
        return [] if found is None else [name[-1] for name, _ in records_in(found)]

    with closing(opened(tmp_path)) as store:
        store.commit(Batch([(key(number), bytes(1000)) for number in range(0, 40, 2)]))
        assert side_by_side(0, 40) == []
        store.checkpoint()
        assert side_by_side(0, 40) == list(range(0, 40, 2))
        assert side_by_side(7, 13) == [8, 10, 12]
        # A younger one ends it; in front of all there is none.
        store.commit(Batch([(key(11), b"young")]))
        assert side_by_side(7, 40) == [8, 10]
        assert side_by_side(11, 40) == []
        assert side_by_side(12, 16) == [12, 14]
        # So does what is gone, and a deletion hides all until it has come to the base.
        store.commit(Batch(ranges=[(key(20), key(30))]))
        assert side_by_side(12, 30) == [12, 14, 16, 18]
        assert side_by_side(20, 30) == []
        store.commit(Batch([(key(2), None)]))
        assert side_by_side(4, 8) == []
        store.checkpoint()
        assert side_by_side(2, 12) == [4, 6, 8, 10, 11]
