"""What is set aside survives any crash, is taken once, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from openmsmq.storage import aside as module
from openmsmq.storage import engine
from openmsmq.storage.engine import (
    CHECKPOINT_MAX_COUNT,
    CHECKPOINT_MIN_BYTES,
    SLICE_BYTES,
    STAYING_MIN_BYTES,
    JournaledStore,
)
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import SCHEMA_VERSION, aside_name, read_format, write_format
from openmsmq.storage.maintenance import check_store, compact_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged, StoreFailed, StoreFull, Taken
from openmsmq.storage.replication.prepared import BOOKKEEPING_MAX_BYTES
from tests.contracts.test_store import CrampedFiles
from tests.unit.storage.test_engine import FailingFiles
from tests.unit.storage.test_recovery import PageCache

State = dict[bytes, bytes]


def opened(directory: Path, files: FileOps | None = None) -> JournaledStore:
    return open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES, files=files)


def content(store: JournaledStore) -> State:
    return dict(store.scan(b"", b"\xff", 10_000))


def aside_files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("aside-*"))


def entry(number: int) -> bytes:
    return b"E" + bytes(4) + number.to_bytes(8, "big")


def values(letter: bytes, count: int = 5) -> list[bytes]:
    return [letter * (100 + 30 * place) for place in range(count)]


def set_aside(letter: bytes) -> Batch:
    return Batch([(b"T" + letter, b"prepared")], aside=[(letter, values(letter))])


def take(letter: bytes, number: int) -> Batch:
    taken = [Taken(letter, 0, 5, entry(number), b"facts ")]
    return Batch([(b"T" + letter, None)], taken=taken, dropped=[letter])


def filling(number: int) -> Batch:
    """Three of these fill a file of the journal."""
    return Batch([(b"F%d" % (number % 4), bytes([number]) * 1100)])


def history() -> list[tuple[Batch, State, list[bytes]]]:
    """Return batches, and what each of them puts and deletes, told once more in other words."""

    def arrived(letter: bytes, number: int) -> State:
        return {entry(number + i): b"facts " + each for i, each in enumerate(values(letter))}

    def filled(number: int) -> tuple[Batch, State, list[bytes]]:
        return filling(number), {b"F%d" % (number % 4): bytes([number]) * 1100}, []

    at_once = set_aside(b"c")
    at_once.taken = take(b"c", 30).taken
    at_once.dropped = [b"c"]
    return [
        (set_aside(b"a"), {b"Ta": b"prepared"}, []),
        filled(1),
        (set_aside(b"b"), {b"Tb": b"prepared"}, []),
        filled(2),
        (take(b"a", 10), arrived(b"a", 10), [b"Ta"]),
        (Batch([(entry(10), None), (entry(14), None)]), {}, [entry(10), entry(14)]),
        filled(3),
        (at_once, {b"Tc": b"prepared"} | arrived(b"c", 30), []),
        filled(4),
        (Batch([(b"Tb", None)], dropped=[b"b"]), {}, [b"Tb"]),
        filled(5),
        filled(6),
        filled(7),
        # By now files are free that were used before.
        (set_aside(b"d"), {b"Td": b"prepared"}, []),
        filled(8),
        (set_aside(b"e"), {b"Te": b"prepared"}, []),
        (Batch(ranges=[(entry(0), entry(31))]), {}, [entry(i) for i in (11, 12, 13, 30)]),
        filled(9),
        (take(b"d", 40), arrived(b"d", 40), [b"Td"]),
        filled(10),
        filled(11),
        (take(b"e", 50), arrived(b"e", 50), [b"Te"]),
        filled(12),
        filled(13),
        filled(14),
        # What the base has by now may stay in files, and some of it goes and changes.
        (
            Batch([(entry(41), None), (entry(43), b"changed")]),
            {entry(43): b"changed"},
            [entry(41)],
        ),
        (set_aside(b"f"), {b"Tf": b"prepared"}, []),
        *(filled(number) for number in range(15, 20)),
        (take(b"f", 60), arrived(b"f", 60), [b"Tf"]),
        (Batch(ranges=[(entry(44), entry(53))]), {}, [entry(i) for i in (44, 50, 51, 52)]),
        *(filled(number) for number in range(20, 25)),
        (Batch([(entry(i), None) for i in (40, 42, 43)]), {}, [entry(i) for i in (40, 42, 43)]),
        *(filled(number) for number in range(25, 30)),
        (set_aside(b"g"), {b"Tg": b"prepared"}, []),
        filled(30),
    ]


def states() -> list[State]:
    found: list[State] = [{}]
    for _, puts, gone in history():
        found.append({key: each for key, each in found[-1].items() if key not in gone} | puts)
    return found


class PowerCut(BaseException):
    """The power is gone."""


class Fading(PageCache):
    """A disk whose power fails at the n-th request: what was not synced is lost, names as well."""

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.count = 0
        self.fails_at = fails_at
        self.names: list[Path] = []

    def step(self) -> None:
        self.count += 1
        if self.count == self.fails_at:
            raise PowerCut

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> int:
        if create and not path.exists():
            self.names.append(path)
        return super().open(path, create=create, write=write)

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        # Half of it, and then all of it, may have come to the disk's cache.
        self.step()
        data = b"".join(parts)
        super().write(file, [data[: len(data) // 2]], offset)
        self.step()
        super().write(file, [data[len(data) // 2 :]], offset + len(data) // 2)
        self.step()

    def sync(self, file: int) -> None:
        super().sync(file)
        self.step()

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self.names = [name for name in self.names if name.parent != path]
        self.step()

    def remove(self, path: Path) -> None:
        self.step()
        super().remove(path)

    def fail(self, directory: Path) -> None:
        """Lose what was not synced."""
        for path in self.names:
            path.unlink(missing_ok=True)
        self.lose_power([path for path in directory.iterdir() if path.suffix == ".log"])


LEAST = pytest.mark.parametrize("least", [STAYING_MIN_BYTES, 0], ids=["written again", "staying"])
"""From how many bytes on what is taken stays in its files."""


@LEAST
@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_after_a_loss_of_power_anywhere_everything_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stride: int, least: int
) -> None:
    monkeypatch.setattr(engine, "STAYING_MIN_BYTES", least)
    batches = [batch for batch, _, _ in history()]
    expected = states()
    fails_at, cut = 0, True
    while cut:
        fails_at += stride
        directory = tmp_path / str(fails_at)
        opened(directory).close()
        files = Fading(fails_at)
        done, cut = 0, False
        store: JournaledStore | None = None
        try:
            store = opened(directory, files)
            for batch in batches:
                store.commit(batch)
                done += 1
        except PowerCut:
            cut = True
        if store is not None:
            store.abandon()
        if not cut:
            break
        files.fail(directory)
        # Twice, so that what the first start replays is replayed again.
        for _ in range(2):
            assert check_store(directory).sound, fails_at
            store = opened(directory)
            found = content(store)
            assert found in expected[done : done + 2], (fails_at, done)
            store.abandon()
        done = expected.index(found)
        store = opened(directory)
        for batch in batches[done:]:
            store.commit(batch)
            done += 1
            assert content(store) == expected[done], (fails_at, done)
        store.close()
        assert check_store(directory).sound
        store = opened(directory)
        assert content(store) == expected[-1]
        store.close()
    assert fails_at > 100


@LEAST
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_after_a_request_that_fails_anywhere_everything_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, least: int
) -> None:
    monkeypatch.setattr(engine, "STAYING_MIN_BYTES", least)
    batches = [batch for batch, _, _ in history()]
    expected = states()
    fails_at, failed = -2, True
    while failed:
        fails_at += 5
        directory = tmp_path / str(fails_at)
        opened(directory).close()
        files = FailingFiles(fails_at, code)
        store: JournaledStore | None = None
        done = 0
        while done < len(batches):
            try:
                store = store or opened(directory, files)
                assert content(store) in expected[done : done + 2], (fails_at, done)
                done = expected.index(content(store))
                store.commit(batches[done])
                done += 1
            except StoreFull:
                # Nothing of it was applied, and the store goes on.
                assert store is None or content(store) == expected[done], (fails_at, done)
            except StoreFailed:
                if store is not None:
                    store.abandon()
                store = None
        failed = bool(files.failed_request)
        assert store is not None
        assert content(store) == expected[-1]
        store.close()
        store = opened(directory)
        base, _, aside = store.parts
        needed = base.stayed.uses.keys() | {note.file for note in aside.notes.values()}
        store.close()
        assert aside_files(directory) == [aside_name(number) for number in sorted(needed)]
        assert check_store(directory).sound
    assert fails_at > 30


def test_to_take_writes_no_value_again(tmp_path: Path) -> None:
    written: list[bytes] = []

    class Listening(FileOps):
        def write_through(self, file: int, parts: Sequence[bytes], offset: int) -> None:
            written.append(b"".join(parts))
            super().write_through(file, parts, offset)

    store = open_store(tmp_path, files=Listening())
    store.commit(set_aside(b"a"))
    assert sum(values(b"a")[4] in each for each in written) == 1
    store.commit(take(b"a", 1))
    assert sum(values(b"a")[4] in each for each in written) == 1
    assert store.get(entry(5)) == b"facts " + values(b"a")[4]
    store.close()


def test_what_is_set_aside_does_not_stay_in_memory_twice(tmp_path: Path) -> None:
    requests: list[str] = []

    class Listening(FileOps):
        def write_through(self, file: int, parts: Sequence[bytes], offset: int) -> None:
            super().write_through(file, parts, offset)
            requests.append(f"write {Path(f'/proc/self/fd/{file}').readlink().name}")

        def forget(self, file: int) -> None:
            super().forget(file)
            requests.append(f"forget {Path(f'/proc/self/fd/{file}').readlink().name}")

    store = open_store(tmp_path, files=Listening())
    store.commit(set_aside(b"a"))
    # What is not on the disk yet, the kernel would keep.
    assert [each for each in requests if "aside" in each] == [
        "write aside-00000001.log",
        "forget aside-00000001.log",
    ]
    store.abandon()
    store = open_store(tmp_path)
    store.commit(take(b"a", 1))
    assert store.get(entry(5)) == b"facts " + values(b"a")[4]
    store.close()


def test_ranges_are_deleted_before_anything_is_taken_also_by_a_start(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for letter in (b"a", b"b"):
        store.commit(set_aside(letter))
    store.commit(take(b"a", 1))
    batch = take(b"b", 3)
    batch.ranges = [(entry(0), entry(100))]
    store.commit(batch)
    expected = [(entry(3 + i), b"facts " + each) for i, each in enumerate(values(b"b"))]
    for _ in range(2):
        assert store.scan(b"E", b"F", 100) == expected
        store.abandon()
        store = open_store(tmp_path)
    store.close()


def test_a_file_is_not_used_again_while_a_start_would_read_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.commit(set_aside(b"a"))
    store.commit(take(b"a", 1))
    store.commit(set_aside(b"b"))
    assert len(aside_files(tmp_path)) == 2
    expected = content(store)
    store.abandon()
    store = open_store(tmp_path)
    assert content(store) == expected
    store.checkpoint()
    store.commit(take(b"b", 11))
    store.commit(set_aside(b"c"))
    # The base has what was taken first.
    assert aside_files(tmp_path) == ["aside-00000001.log", "aside-00000002.log"]
    store.close()


def test_what_was_dropped_while_a_checkpoint_ran_is_found_by_the_next_start(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    store.commit(set_aside(b"a"))
    for number in range(1, 4):
        store.commit(filling(number))
    assert not store.base_count
    # The other file has begun, and the checkpoint of the one in which it is set aside ends soon.
    store.commit(take(b"a", 1))
    for number in range(20):
        if not store.base_count:
            store.commit(Batch([(b"G%d" % number, bytes(200))]))
    assert store.base_count
    # Its file is not used again: a start reads it, because the base has nothing of the batch yet.
    store.commit(set_aside(b"b"))
    expected = content(store)
    store.abandon()
    assert check_store(tmp_path).sound
    store = opened(tmp_path)
    assert content(store) == expected
    store.close()


def test_what_was_dropped_while_a_checkpoint_ran_is_free_after_the_next_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for letter in (b"a", b"b"):
        store.commit(set_aside(letter))
    for number in range(1, 4):
        store.commit(filling(number))
    store.commit(take(b"a", 1))
    store.checkpoint()
    store.commit(set_aside(b"c"))
    assert aside_files(tmp_path) == ["aside-00000001.log", "aside-00000002.log"]
    store.close()


def test_a_file_waits_for_the_whole_checkpoint_that_has_what_was_taken(tmp_path: Path) -> None:
    """A crash within the checkpoint lets it be read again."""
    store = opened(tmp_path)
    large = [letter * (SLICE_BYTES * 2 // 3) for letter in (b"x", b"y", b"z")]
    # A part of a name does not stay in its file.
    store.commit(Batch(aside=[(b"large", [*large, b"more"])]))
    store.commit(Batch(taken=[Taken(b"large", 0, 3, entry(1))], dropped=[b"large"]))
    number = 0
    while not store.base_count:
        number += 1
        store.commit(Batch([(b"G%d" % number, bytes(200))]))
    assert store.get(entry(3)) == large[2]
    assert store.base_count < 3, "the first slice is there, and not the last"
    store.commit(Batch(aside=[(b"as large", large)]))
    assert aside_files(tmp_path) == ["aside-00000001.log", "aside-00000002.log"]
    expected = content(store)
    store.abandon()
    store = opened(tmp_path)
    assert content(store) == expected
    store.close()


def test_a_start_gives_no_file_to_others_that_is_in_use(tmp_path: Path) -> None:
    """Neither one that the journal tells of, nor one that the base does."""
    for clean in (False, True):
        directory = tmp_path / str(clean)
        store = opened(directory)
        store.commit(set_aside(b"a"))
        store.close() if clean else store.abandon()
        store = opened(directory)
        store.commit(set_aside(b"b"))
        assert len(aside_files(directory)) == 2
        store.abandon()
        store = opened(directory)
        for letter, number in ((b"a", 1), (b"b", 11)):
            store.commit(take(letter, number))
            assert store.get(entry(number)) == b"facts " + values(letter)[0]
        store.close()


def test_a_file_that_is_used_again_grows_and_stays_as_long_as_it_was(tmp_path: Path) -> None:
    store = opened(tmp_path)
    path = tmp_path / "aside-00000001.log"
    for count in (1, 9, 6):
        store.commit(Batch(aside=[(b"a", values(b"a", count))]))
        store.abandon()
        store = opened(tmp_path)
        assert aside_files(tmp_path) == [path.name]
        store.commit(Batch(taken=[Taken(b"a", 0, count, entry(1))], dropped=[b"a"]))
        assert store.get(entry(count)) == values(b"a", count)[-1]
        # The file that grew and is used for little has all of its bytes, and counts with them.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "FREE_MAX_BYTES", path.stat().st_size - (count == 6))
            store.checkpoint()
    assert aside_files(tmp_path) == []
    store.close()


def test_little_that_is_set_aside_does_not_keep_long_files(tmp_path: Path) -> None:
    """Who has much set aside, gives it up and sets little aside, again and again, has little."""
    long_bytes, short_bytes, rounds = 400_000, 1_000, 12
    store = open_store(tmp_path)
    for number in range(rounds):
        much, little = b"much %d" % number, b"little %d" % number
        store.commit(Batch(aside=[(much, [bytes(long_bytes)])]))
        store.commit(Batch(dropped=[much]))
        store.checkpoint()
        store.commit(Batch(aside=[(little, [bytes(short_bytes)])]))
    used_bytes = sum(path.stat().st_size for path in tmp_path.glob("aside-*"))
    store.close()
    assert used_bytes < 2 * long_bytes


def test_a_name_that_is_used_again_has_its_own_values(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for letter in (b"a", b"b"):
        store.commit(Batch(aside=[(b"name", values(letter))]))
        store.commit(Batch(taken=[Taken(b"name", 0, 5, entry(1))], dropped=[b"name"]))
        assert store.get(entry(1)) == values(letter)[0]
    store.abandon()
    store = opened(tmp_path)
    assert store.get(entry(1)) == values(b"b")[0]
    store.close()


def test_a_check_counts_what_is_set_aside_taken_and_dropped(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.commit(Batch(aside=[(b"a", values(b"a"))]))
    store.commit(Batch(taken=[Taken(b"a", 1, 3, entry(1))], dropped=[b"a"]))
    store.abandon()
    report = check_store(tmp_path)
    assert (report.journal_batch_count, report.journal_change_count) == (2, 5)


def test_what_is_taken_needs_a_key_that_ends_with_its_number(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(set_aside(b"a"))
    for key in (bytes(8), bytes(512)):
        with pytest.raises(ValueError, match="gets no key"):
            store.commit(Batch(taken=[Taken(b"a", 0, 5, key)], dropped=[b"a"]))
    store.commit(take(b"a", 1))
    store.close()


def test_what_a_batch_changes_of_what_it_takes_is_changed_also_by_a_start(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(set_aside(b"a"))
    batch = take(b"a", 1)
    batch.changes += [(entry(2), None), (entry(3), b"other")]
    store.commit(batch)
    for _ in range(2):
        found = content(store)
        assert (found.get(entry(2)), found[entry(3)]) == (None, b"other")
        assert found[entry(4)] == b"facts " + values(b"a")[3]
        store.abandon()
        store = opened(tmp_path)
    store.close()


def test_files_that_nobody_speaks_of_are_removed_at_the_start(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(set_aside(b"a"))
    store.abandon()
    (tmp_path / "aside-00000009.log").write_bytes(b"half of it")
    store = opened(tmp_path)
    assert aside_files(tmp_path) == ["aside-00000001.log"]
    store.commit(take(b"a", 1))
    store.close()
    opened(tmp_path).close()
    assert aside_files(tmp_path) == []


def test_few_files_wait_to_be_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path)
    for letter in (b"a", b"b", b"c"):
        store.commit(set_aside(letter))
    size = (tmp_path / "aside-00000001.log").stat().st_size
    monkeypatch.setattr(module, "FREE_MAX_BYTES", 2 * size)
    for number, letter in enumerate((b"a", b"b", b"c")):
        store.commit(take(letter, 10 * number))
    assert len(aside_files(tmp_path)) == 3
    store.checkpoint()
    assert len(aside_files(tmp_path)) == 2
    store.close()


@pytest.mark.parametrize("taken", [False, True], ids=["aside", "taken"])
@pytest.mark.parametrize("harm", ["missing", "cut", "changed", "older"])
def test_a_damaged_file_is_noticed_by_a_start_and_by_a_check(
    tmp_path: Path, harm: str, taken: bool
) -> None:
    store = opened(tmp_path)
    store.commit(Batch(aside=[(b"a", values(b"z"))]))
    path = tmp_path / "aside-00000001.log"
    older = path.read_bytes()
    store.commit(Batch(dropped=[b"a"]))
    store.checkpoint()
    store.commit(set_aside(b"a"))
    if taken:
        store.commit(take(b"a", 1))
    store.abandon()
    data = path.read_bytes()
    if harm == "missing":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(data[:-1])
    elif harm == "changed":
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    else:
        path.write_bytes(older)
    report = check_store(tmp_path)
    assert report.problem_count == 1
    assert "aside-00000001.log" in report.problems[0]
    with pytest.raises(StoreDamaged, match=r"aside-00000001\.log"):
        opened(tmp_path)


def test_files_of_one_batch_that_were_exchanged_are_noticed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(Batch(aside=[(letter, values(letter)) for letter in (b"a", b"b")]))
    store.abandon()
    paths = [tmp_path / name for name in aside_files(tmp_path)]
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, reversed(contents), strict=True):
        path.write_bytes(data)
    assert check_store(tmp_path).problem_count == 2
    with pytest.raises(StoreDamaged, match=r"aside-00000001\.log is not as batch 1 wrote it"):
        opened(tmp_path)


def test_a_full_disk_refuses_what_is_set_aside_and_leaves_no_file(tmp_path: Path) -> None:
    files = CrampedFiles()
    store = opened(tmp_path, files)
    store.commit(set_aside(b"a"))
    files.full = True
    batch = set_aside(b"b")
    batch.aside.append((b"c", values(b"c")))
    with pytest.raises(StoreFull, match="set messages aside"):
        store.commit(batch)
    assert aside_files(tmp_path) == ["aside-00000001.log"]
    # What takes adds little, and is accepted.
    store.commit(take(b"a", 1))
    assert store.get(entry(1)) == b"facts " + values(b"a")[0]
    files.full = False
    store.commit(set_aside(b"b"))
    store.close()


@pytest.mark.parametrize("what", ["aside", "base"])
def test_files_that_nobody_uses_give_way_on_a_full_disk(tmp_path: Path, what: str) -> None:
    class UnlessSpared(FileOps):
        """A disk on which nothing can grow while a file of the store lies there for nothing."""

        def allocate(self, file: int, size_bytes: int) -> None:
            if is_tight and (tmp_path / "aside-00000001.log").exists():
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().allocate(file, size_bytes)

    is_tight = False
    store = opened(tmp_path, UnlessSpared())
    for number, letter in enumerate((b"a", b"b")):
        store.commit(set_aside(letter))
        store.commit(take(letter, 10 * number))
    store.checkpoint()
    assert len(aside_files(tmp_path)) == 2
    is_tight = True
    if what == "aside":
        store.commit(Batch(aside=[(b"c", values(b"c", 50))]))
        assert aside_files(tmp_path) == ["aside-00000003.log"]
    else:
        # More than the base has of the disk.
        for number in range(12):
            store.commit(Batch([(b"F%d" % number, bytes(1 << 20))]))
        store.checkpoint()
        assert aside_files(tmp_path) == []
    store.close()
    assert check_store(tmp_path).problem_count == 0


def test_a_disk_that_becomes_full_between_two_files_keeps_neither(tmp_path: Path) -> None:
    class Last(CrampedFiles):
        def write_through(self, file: int, parts: Sequence[bytes], offset: int) -> None:
            super().write_through(file, parts, offset)
            self.full = True

    files = Last()
    store = opened(tmp_path, files)
    batch = set_aside(b"b")
    batch.aside.append((b"c", values(b"c")))
    with pytest.raises(StoreFull, match="set messages aside"):
        store.commit(batch)
    assert aside_files(tmp_path) == []
    store.close()


def test_a_full_journal_takes_what_ends_a_transaction_and_not_what_sets_aside(
    tmp_path: Path,
) -> None:
    """There is place for a small file, but the last part of the journal is kept for deletions."""

    class FullForLongFiles(CrampedFiles):
        def allocate(self, file: int, size_bytes: int) -> None:
            if size_bytes < 4096:
                FileOps.allocate(self, file, size_bytes)
            else:
                super().allocate(file, size_bytes)

    files = FullForLongFiles()
    store = open_store(tmp_path, checkpoint_bytes=1 << 20, files=files)
    store.commit(set_aside(b"a"))
    store.checkpoint()
    files.full = True
    for size in (200_000, 10_000, 500, 10):
        with contextlib.suppress(StoreFull):
            for number in range(1000):
                store.commit(Batch([(b"G%d %d" % (size, number), bytes(size))]))
    with pytest.raises(StoreFull, match="enlarge the"):
        store.commit(Batch([(b"G10 0", None)], aside=[(b"c", values(b"c"))]))
    assert aside_files(tmp_path) == ["aside-00000001.log"]
    ending = take(b"a", 1)
    ending.changes.append((b"counts", bytes(2 * BOOKKEEPING_MAX_BYTES)))
    store.commit(ending)
    assert store.get(entry(1)) == b"facts " + values(b"a")[0]
    files.full = False
    store.close()


def test_a_batch_that_sets_aside_moves_as_many_into_the_base(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    count = CHECKPOINT_MAX_COUNT
    store.commit(Batch(aside=[(b"all", [b"v" * 10] * count)]))
    store.commit(Batch(taken=[Taken(b"all", 0, count, entry(1))], dropped=[b"all"]))
    many = [b"v" * 10] * 20_000
    for number in range(1, 4):
        store.commit(Batch(aside=[(b"more %d" % number, many)]))
        assert number * 20_000 <= store.base_count <= number * 20_000 + 1
    store.close()


def test_compacting_keeps_what_is_set_aside(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(set_aside(b"a"))
    store.close()
    compact_store(tmp_path)
    assert check_store(tmp_path).sound
    store = opened(tmp_path)
    store.commit(take(b"a", 1))
    assert store.get(entry(3)) == b"facts " + values(b"a")[2]
    store.close()


def test_a_store_of_version_2_is_read_and_becomes_a_new_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(filling(1))
    store.abandon()
    description = read_format(FileOps(), tmp_path)
    assert description is not None
    write_format(FileOps(), tmp_path, msgspec.structs.replace(description, version=2))
    assert check_store(tmp_path).sound
    store = opened(tmp_path)
    assert content(store) == {b"F1": b"\1" * 1100}
    # Earlier versions must not open it any more: they would not see what is set aside.
    again = read_format(FileOps(), tmp_path)
    assert again is not None
    assert (again.version, again.salt, again.mark) == (
        SCHEMA_VERSION,
        description.salt,
        description.mark,
    )
    store.commit(set_aside(b"a"))
    store.abandon()
    store = opened(tmp_path)
    store.commit(take(b"a", 1))
    assert store.get(entry(1)) == b"facts " + values(b"a")[0]
    store.close()
