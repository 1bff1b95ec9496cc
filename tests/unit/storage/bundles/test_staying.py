"""What was set aside stays in its file when the base has it, as safe as in the base itself."""

from __future__ import annotations

import contextlib
import errno
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openmsmq.storage import aside as aside_module
from openmsmq.storage import engine
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.bundles import bundle, environment, rewriting, stayed_files
from openmsmq.storage.bundles.rewriting import Rewriting
from openmsmq.storage.bundles.staying import Stay, parts_of
from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import JOURNAL_NAMES
from openmsmq.storage.maintenance import check_store, compact_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged, Taken
from tests.contracts.test_store import CrampedFiles
from tests.unit.storage.backups import test_snapshot as snapshots
from tests.unit.storage.test_aside import aside_files, content, entry, opened

COUNT = 40
VALUE_BYTES = 2_000
PREFIX = b"facts "
NAME = b"n"


@pytest.fixture(autouse=True)
def _everything_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    let_everything_stay(monkeypatch)


def let_everything_stay(patch: pytest.MonkeyPatch) -> None:
    """Have no batch that takes too little for that."""
    patch.setattr(engine, "STAYING_MIN_BYTES", 0)


@contextlib.contextmanager
def small_bundles() -> Iterator[pytest.MonkeyPatch]:
    """Let two records be a bundle, however small they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "BUNDLE_MIN_COUNT", 2)
        patch.setattr(bundle, "BUNDLE_MIN_BYTES", 1)
        yield patch


class Listening(FileOps):
    """Tells which files were read."""

    def __init__(self) -> None:
        self.read_names: list[str] = []

    def read(self, file: int, length: int, offset: int) -> bytes:
        self.read_names.append(Path(f"/proc/self/fd/{file}").readlink().name)
        return super().read(file, length, offset)


def values(name: bytes = NAME, count: int = COUNT) -> list[bytes]:
    return [name + bytes([place]) * VALUE_BYTES for place in range(count)]


def taken(number: int, name: bytes = NAME, count: int = COUNT) -> dict[bytes, bytes]:
    """What is there when all values of a name were taken."""
    return {entry(number + i): PREFIX + each for i, each in enumerate(values(name, count))}


def take(store: JournaledStore, number: int, name: bytes = NAME, count: int = COUNT) -> None:
    store.commit(Batch(aside=[(name, values(name, count))]))
    store.commit(Batch(taken=[Taken(name, 0, count, entry(number), PREFIX)], dropped=[name]))


def files_of(store: JournaledStore) -> dict[int, int]:
    """How many bytes the base has in each file."""
    base, _, _ = store.parts
    return {number: use.used_bytes for number, use in base.stayed.uses.items()}


def delete(store: JournaledStore, numbers: range) -> None:
    store.commit(Batch([(entry(number), None) for number in numbers]))


def test_what_stays_is_read_and_deleted_like_everything_else(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(Batch([(entry(1), b"before"), (entry(200), b"behind")]))
    take(store, 10)
    store.checkpoint()
    expected = {entry(1): b"before"} | taken(10) | {entry(200): b"behind"}
    assert content(store) == expected
    assert files_of(store) == {1: sum(len(value) + 3 for value in values())}
    assert store.base_count == len(expected)
    backwards = store.scan(b"", b"\xff", 100, reverse=True)
    assert backwards == sorted(expected.items(), reverse=True)
    assert store.get(entry(17)) == expected[entry(17)]
    assert store.get(entry(50)) is None

    for _ in range(2):
        store.close()
        assert check_store(tmp_path).sound
        assert check_store(tmp_path).record_count == len(expected)
        store = opened(tmp_path)
        assert content(store) == expected
    # What is set aside now gets another file, and this one when nothing stays in it any more.
    take(store, 100, b"m")
    assert aside_files(tmp_path) == ["aside-00000001.log", "aside-00000002.log"]
    delete(store, range(10, 10 + COUNT))
    store.checkpoint()
    assert list(files_of(store)) == [2]
    take(store, 300, b"o")
    assert aside_files(tmp_path) == ["aside-00000001.log", "aside-00000002.log"]
    store.checkpoint()
    expected = {entry(1): b"before", entry(200): b"behind"} | taken(100, b"m") | taken(300, b"o")
    assert content(store) == expected
    store.commit(Batch(ranges=[(entry(0), entry(1000))]))
    store.checkpoint()
    assert content(store) == {}
    assert files_of(store) == {}
    store.close()
    opened(tmp_path).close()
    assert aside_files(tmp_path) == []


def test_a_file_in_which_something_stays_is_not_used_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    take(store, 10)
    store.checkpoint()
    take(store, 100, b"m")
    store.checkpoint()
    assert content(store) == taken(10) | taken(100, b"m")
    assert list(files_of(store)) == [1, 2]
    store.close()


def test_it_is_not_written_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.checkpoint()
    base, _, _ = store.parts
    _, before_bytes = base.hold()
    base.let_go()
    take(store, 10, count=250)
    store.checkpoint()
    _, after_bytes = base.hold()
    base.let_go()
    assert after_bytes - before_bytes < 250 * VALUE_BYTES / 10
    assert content(store) == taken(10, count=250)
    store.close()


def test_a_back_up_has_what_stays(tmp_path: Path) -> None:
    store = opened(tmp_path)
    take(store, 10)
    store.checkpoint()
    snapshot = Snapshot(store)
    assert "aside-00000001.log" in [part.name for part in snapshot.parts()]
    delete(store, range(10, 10 + COUNT))
    store.checkpoint()
    before = (tmp_path / "aside-00000001.log").read_bytes()
    take(store, 100, b"m")
    assert (tmp_path / "aside-00000001.log").read_bytes() == before
    snapshot.release()
    take(store, 200, b"o")
    assert (tmp_path / "aside-00000001.log").read_bytes() != before
    store.close()


def test_back_ups_in_the_middle_of_anything_have_what_stays(tmp_path: Path) -> None:
    with small_bundles():
        for seed in range(2):
            snapshots.back_up_in_steps(tmp_path / str(seed), seed, before=60, between=10)


@pytest.mark.parametrize("gone", [(0,), (39,), (0, 1, 2), (7, 8, 20), tuple(range(0, 40, 2))])
def test_what_is_left_stays_where_it_is_when_something_goes_or_changes(
    tmp_path: Path, gone: tuple[int, ...]
) -> None:
    store = opened(tmp_path)
    take(store, 10)
    store.checkpoint()
    changed = {entry(10 + 5): b"changed", entry(10 + 6) + b"between": b"new"}
    deletions = [(entry(10 + place), None) for place in gone]
    store.commit(Batch([*deletions, *changed.items()]))
    store.checkpoint()
    expected = taken(10) | changed
    for key, _ in deletions:
        del expected[key]
    for _ in range(2):
        assert content(store) == expected
        left = COUNT - len({*gone, 5})
        assert files_of(store) == {1: left * (VALUE_BYTES + len(NAME) + 3)}
        store.close()
        assert check_store(tmp_path).sound
        store = opened(tmp_path)
    store.close()


def test_what_goes_out_of_the_middle_needs_no_place_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "GROWTH_BYTES", 0)
    files, count = CrampedFiles(), 2_000
    store = open_store(tmp_path, files=files)
    store.commit(Batch(aside=[(NAME, [bytes(VALUE_BYTES)] * count)]))
    store.commit(Batch(taken=[Taken(NAME, 0, count, entry(0))], dropped=[NAME]))
    store.checkpoint()
    base, _, _ = store.parts
    before_bytes = base.size_bytes
    files.full = True
    for number in range(0, count, 8):
        store.commit(Batch([(entry(number), None)]))
    store.checkpoint()
    # LMDB asks nobody before it makes its file longer.
    assert base.size_bytes == before_bytes
    assert list(content(store)) == [entry(number) for number in range(count) if number % 8]
    store.close()


def test_what_goes_is_not_read(tmp_path: Path) -> None:
    files = Listening()
    store = opened(tmp_path, files)
    take(store, 10)
    store.checkpoint()
    delete(store, range(10, 10 + COUNT))
    store.checkpoint()
    assert files_of(store) == {}
    assert "aside-00000001.log" not in files.read_names
    store.close()


def test_what_changes_before_the_own_disk_has_it_does_not_stay(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    take(store, 10)
    store.show(store.prepare(Batch([(entry(12), b"changed")])))
    store.checkpoint()
    assert content(store) == taken(10) | {entry(12): b"changed"}
    store.close()


class Player:
    """Does anything to a store and to a dictionary."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._directory = directory
        self._rng = random.Random(seed)
        self._snapshot: Snapshot | None = None
        self._turns = 0
        self.store = opened(directory)
        self.model: dict[bytes, bytes] = {}

    def turn(self) -> None:
        """Change something, and do one of the things that a store does by the way."""
        rng = self._rng
        self._turns += 1
        first, count = rng.randrange(900), rng.randrange(1, 60)
        keys = [entry(first + place) for place in range(count)]
        rng.choice((self._take, self._take, self._change, self._change, self._clear))(keys)
        how = rng.random()
        if how < 0.05 and self._snapshot is None:
            self._snapshot = Snapshot(self.store)
        elif how < 0.1 and self._snapshot is not None:
            self._snapshot.release()
            self._snapshot = None
        elif how < 0.15:
            self.store.checkpoint()
        elif how < 0.2 and self._snapshot is None:
            self.store.abandon() if rng.random() < 0.5 else self.store.close()
            assert check_store(self._directory).sound
            self.store = opened(self._directory)

    def _take(self, keys: list[bytes]) -> None:
        rng, name = self._rng, b"%d" % self._turns
        many = [name + bytes(rng.randrange(3_000)) for _ in keys]
        start = rng.choice((0, 0, rng.randrange(len(many))))
        part = Taken(name, start, len(many) - start, keys[0], PREFIX)
        self.store.commit(Batch(aside=[(name, many)]))
        self.store.commit(Batch(taken=[part], dropped=[name]))
        self.model |= {key: PREFIX + v for key, v in zip(keys, many[start:], strict=False)}

    def _change(self, keys: list[bytes]) -> None:
        rng = self._rng
        value = rng.choice((None, b"%d" % self._turns))
        chosen = rng.sample(keys, rng.randrange(1, len(keys) + 1))
        self.store.commit(Batch([(key, value) for key in chosen]))
        for key in chosen:
            self.model.pop(key, None)
            if value is not None:
                self.model[key] = value

    def _clear(self, keys: list[bytes]) -> None:
        start, stop = keys[0], keys[-1]
        self.store.commit(Batch(ranges=[(start, stop)]))
        self.model = {key: v for key, v in self.model.items() if not start <= key < stop}


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_everything_is_as_in_a_dictionary(tmp_path: Path, seed: int) -> None:
    with small_bundles() as patch:
        patch.setattr(stayed_files, "WASTED_MAX_BYTES", 5_000)
        patch.setattr(rewriting, "GATHERED_BYTES", 10_000)
        gathered: list[int] = []
        gathering_of = rewriting.gathering_of

        def listening(file: int, *others: Any) -> Rewriting:
            gathered.append(file)
            return gathering_of(file, *others)

        patch.setattr(rewriting, "gathering_of", listening)
        player = Player(tmp_path, seed)
        for turn in range(150):
            player.turn()
            expected = sorted(player.model.items())
            assert player.store.scan(b"", b"\xff", 10_000) == expected, turn
            backwards = player.store.scan(b"", b"\xff", 10_000, reverse=True)
            assert backwards == expected[::-1], turn
        assert gathered
        player.store.close()
        assert check_store(tmp_path).sound


@pytest.mark.parametrize("touched", ["put", "volatile", "deleted", "sealed", "gone", "there"])
def test_where_something_is_or_was_a_moment_ago_nothing_stays(tmp_path: Path, touched: str) -> None:
    store = open_store(tmp_path)
    store.commit(Batch(aside=[(NAME, values())]))
    keys = [entry(number) for number in (12, 900, 901, 902)]
    # Nothing is found there by the way: what comes first is cleared first.
    ranges = [(b"A%d" % number, b"A%d " % number) for number in range(5)]
    if touched in ("put", "there"):
        store.commit(Batch([(keys[0], b"before")]))
    if touched == "there":
        store.checkpoint()
    elif touched == "volatile":
        store.commit(Batch(volatile=[(entry(13), b"before")]))
    elif touched == "gone":
        store.commit(Batch(ranges=[*ranges, (entry(0), entry(13))]))
    elif touched in ("deleted", "sealed"):
        store.commit(Batch([(key, b"before") for key in keys]))
        store.checkpoint()
        store.commit(Batch([(key, None) for key in keys]))
        if touched == "sealed":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(engine, "CHECKPOINT_MAX_COUNT", len(keys))
                store.commit(Batch([(b"F", b"begins another file of the journal")]))
        # The base has cleared them away before it hears that they were deleted before.
        store.commit(Batch(ranges=[(entry(0), entry(13))]))
        assert store.base_count == len(keys) - 1
    store.commit(Batch(taken=[Taken(NAME, 0, COUNT, entry(10), PREFIX)], dropped=[NAME]))
    for _ in range(2):
        found = content(store)
        found.pop(b"F", None)
        assert found == taken(10)
        assert files_of(store) == {}
        store.checkpoint()
    store.close()


def test_what_was_taken_under_the_same_keys_later_counts(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    take(store, 1010)
    take(store, 10, b"m")
    # Over the end of the first one.
    take(store, 1035, b"o")
    expected = taken(1010) | taken(10, b"m") | taken(1035, b"o")
    for _ in range(2):
        assert content(store) == expected
        store.checkpoint()
    assert list(files_of(store)) == [2, 1]
    # Two names in one batch, of which neither is there.
    store.commit(Batch(aside=[(b"p", values(b"p")), (b"q", values(b"q"))]))
    both = [Taken(name, 0, COUNT, entry(n), PREFIX) for name, n in ((b"p", 2020), (b"q", 2000))]
    store.commit(Batch(taken=both, dropped=[b"p", b"q"]))
    expected = taken(2020, b"p") | taken(2000, b"q")
    for _ in range(2):
        assert dict(store.scan(entry(2000), entry(2100), 100)) == expected
        store.checkpoint()
    store.close()
    assert check_store(tmp_path).sound


def test_a_start_after_a_crash_finds_that_it_stays_already(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    take(store, 10, count=250)
    before = files_of(store)
    store.abandon()
    store = open_store(tmp_path)
    store.checkpoint()
    assert files_of(store) == before
    assert content(store) == taken(10, count=250)
    store.close()


def test_a_start_after_a_crash_takes_again_what_has_gone_since(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    take(store, 10)
    store.commit(Batch(ranges=[(entry(10), entry(40))]))
    take(store, 100, b"m")
    expected = dict(list(taken(10).items())[30:]) | taken(100, b"m")
    # The base has cleared the range by now, and does not know of the batch that deleted it.
    store.abandon()
    for _ in range(2):
        assert check_store(tmp_path).sound
        store = open_store(tmp_path)
        assert content(store) == expected
        store.abandon()
    store = open_store(tmp_path)
    store.checkpoint()
    assert content(store) == expected
    store.close()


def test_little_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "STAYING_MIN_BYTES", COUNT * VALUE_BYTES)
    store = opened(tmp_path)
    take(store, 10, count=COUNT - 1)
    assert files_of(store) == {}
    take(store, 100, b"m")
    assert list(files_of(store)) == [2]
    store.close()


def test_on_a_full_disk_what_is_taken_waits_for_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "GROWTH_BYTES", 0)
    monkeypatch.setattr(environment, "SPARE_BYTES", 1 << 23)
    files = CrampedFiles()
    store = open_store(tmp_path, files=files)
    store.commit(Batch(aside=[(NAME, values())]))
    files.full = True
    store.commit(Batch(taken=[Taken(NAME, 0, COUNT, entry(10), PREFIX)], dropped=[NAME]))
    assert (content(store), files_of(store)) == (taken(10), {})
    # The next start finds that it does not stay.
    store.abandon()
    files.full = False
    store = open_store(tmp_path)
    assert content(store) == taken(10)
    store.checkpoint()
    assert content(store) == taken(10)
    store.close()


@pytest.mark.parametrize("is_long", [False, True])
def test_what_is_long_is_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    monkeypatch.setattr(aside_module, "KEPT_MAX_BYTES", 1 if is_long else 1 << 20)
    files = Listening()
    store = open_store(tmp_path, files=files)
    store.commit(Batch(aside=[(NAME, values())]))
    part = Taken(NAME, 10, 5, entry(10), PREFIX)
    store.commit(Batch(taken=[part], dropped=[NAME]))
    assert ("aside-00000001.log" in files.read_names) == is_long
    assert list(content(store).values()) == [PREFIX + each for each in values()[10:15]]
    store.close()


def test_a_part_of_a_name_does_not_stay(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.commit(Batch(aside=[(NAME, values())]))
    parts = [Taken(NAME, 0, 20, entry(10), PREFIX), Taken(NAME, 20, 20, entry(100), PREFIX)]
    store.commit(Batch(taken=parts, dropped=[NAME]))
    store.checkpoint()
    assert files_of(store) == {}
    assert len(content(store)) == COUNT
    store.close()


def test_the_base_takes_in_what_is_left_of_files_that_are_mostly_in_vain(
    tmp_path: Path,
) -> None:
    wasted_bytes = 3 * 200 * VALUE_BYTES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stayed_files, "WASTED_MAX_BYTES", wasted_bytes)
        store = open_store(tmp_path)
        base, _, _ = store.parts
        expected: dict[bytes, bytes] = {}
        for number in range(12):
            name = b"n%d" % number
            take(store, 1000 * number, name, count=200)
            # The first bundle of each file is left.
            delete(store, range(1000 * number + 16, 1000 * number + 200))
            expected |= dict(sorted(taken(1000 * number, name).items())[:16])
            store.checkpoint()
            store.commit(Batch([(b"F", b"%d" % number)]))
            used_bytes = sum(use.used_bytes for use in base.stayed.uses.values())
            size_bytes = sum(use.size_bytes for use in base.stayed.uses.values())
            assert size_bytes - used_bytes <= used_bytes + wasted_bytes
        assert 0 < len(base.stayed.uses) < 12
        assert content(store) == expected | {b"F": b"11"}
        store.close()
        assert check_store(tmp_path).sound


def test_it_is_taken_in_a_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stayed_files, "WASTED_MAX_BYTES", 10_000)
    monkeypatch.setattr(rewriting, "GATHERED_BYTES", 50_000)
    store = opened(tmp_path)
    take(store, 0, count=250)
    store.checkpoint()
    used_bytes = sum(files_of(store).values())
    delete(store, range(130))
    store.checkpoint()
    steps = []
    while files_of(store):
        [used_bytes] = files_of(store).values()
        store.commit(Batch([(b"F", b"%d" % len(steps))]))
        steps.append(used_bytes - sum(files_of(store).values()))
    assert len(steps) >= 3
    assert max(steps) <= 50_000 + bundle.BUNDLE_MAX_BYTES
    expected = dict(sorted(taken(0, count=250).items())[130:])
    assert content(store) == expected | {b"F": b"%d" % (len(steps) - 1)}
    store.close()
    assert check_store(tmp_path).sound


def test_a_full_disk_does_not_keep_anything_from_being_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stayed_files, "WASTED_MAX_BYTES", 0)
    monkeypatch.setattr(environment, "GROWTH_BYTES", 0)
    monkeypatch.setattr(environment, "SPARE_BYTES", 1 << 16)
    files = CrampedFiles()
    store = opened(tmp_path, files)
    take(store, 0, count=250)
    store.checkpoint()
    delete(store, range(130))
    store.checkpoint()
    # What is left of the file could be taken in, but there is no place for it.
    files.full = True
    store.commit(Batch([(b"F", b"1")]))
    assert list(files_of(store)) == [1]
    store.commit(Batch(ranges=[(entry(0), entry(1000))]))
    assert files_of(store) == {}
    store.checkpoint()
    assert content(store) == {b"F": b"1"}
    store.close()


def test_what_is_taken_begins_another_checkpoint_before_a_start_has_much_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, is_begun in ((engine.TAKEN_MAX_BYTES, False), (100_000, True)):
        monkeypatch.setattr(engine, "TAKEN_MAX_BYTES", limit)
        store = open_store(tmp_path / str(limit))
        begun: list[int] = []
        store.rewriting.append(lambda begun=begun: begun.append(1))  # type: ignore[misc]
        for number in range(5):
            take(store, 100 * number, b"n%d" % number)
        assert bool(begun) == is_begun
        store.close()


def test_a_file_of_which_many_parts_are_taken_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "TAKEN_MAX_BYTES", 2 * COUNT * VALUE_BYTES)
    store = open_store(tmp_path)
    store.commit(Batch(aside=[(NAME, values())]))
    parts = [Taken(NAME, place, 1, entry(10 + place), PREFIX) for place in range(COUNT)]
    store.commit(Batch(taken=parts, dropped=[NAME]))
    store.commit(Batch([(b"F", b"1")]))
    # No checkpoint was begun.
    _, journal, _ = store.parts
    assert journal.active_path.name == JOURNAL_NAMES[0]
    assert content(store) == taken(10) | {b"F": b"1"}
    store.close()


def test_what_is_no_list_of_so_many_values_is_damage() -> None:
    data = b"\xc4\x01a\xc4\x01b"
    stay = Stay(1, 0, len(data), 0, 2, PREFIX)
    assert [part.length for part in parts_of(stay, data, [(0, 1), (1, 2)])] == [3, 3]
    for count in (1, 3):
        with pytest.raises(StoreDamaged, match=r"aside-00000001\.log"):
            parts_of(msgspec.structs.replace(stay, count=count), data, [(0, 1)])


@pytest.mark.parametrize("damage", ["byte", "missing", "cut"])
def test_damage_of_a_file_is_noticed(tmp_path: Path, damage: str) -> None:
    """A file that is missing or cut is noticed by the start, a byte by whoever reads it."""
    store = opened(tmp_path)
    take(store, 10)
    store.close()
    path = tmp_path / "aside-00000001.log"
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(data if damage == "byte" else data[:-50])
    report = check_store(tmp_path)
    assert not report.sound
    # What stays elsewhere in the file is read; the last piece of it is not.
    assert any(entry(49).hex() in problem for problem in report.problems)
    if damage != "byte":
        with pytest.raises(StoreDamaged, match=rf"aside-00000001\.log is {damage}"):
            opened(tmp_path)
    else:
        store = opened(tmp_path)
        with pytest.raises(StoreDamaged, match=r"aside-00000001\.log"):
            content(store)
        assert store.scan(entry(10), entry(20), 5) == sorted(taken(10).items())[:5]
        store.abandon()
    with pytest.raises(StoreDamaged):
        compact_store(tmp_path)


def test_compacting_takes_in_what_stays(tmp_path: Path) -> None:
    store = opened(tmp_path)
    take(store, 10)
    store.commit(Batch(aside=[(b"m", values(b"m"))]))
    store.commit(Batch(taken=[Taken(b"m", 0, COUNT, entry(100), PREFIX)]))
    store.close()
    report = compact_store(tmp_path)
    # Both files are in use before, and what may still be taken is there afterwards, too.
    assert report.before_bytes > 2 * COUNT * VALUE_BYTES
    assert aside_files(tmp_path) == ["aside-00000002.log"]
    assert check_store(tmp_path).sound
    store = opened(tmp_path)
    assert files_of(store) == {}
    store.commit(Batch(taken=[Taken(b"m", 0, COUNT, entry(200), PREFIX)], dropped=[b"m"]))
    assert content(store) == taken(10) | taken(100, b"m") | taken(200, b"m")
    store.close()
    assert check_store(tmp_path).sound


class Narrow(FileOps):
    """A disk with room for short files only."""

    def allocate(self, file: int, size_bytes: int) -> None:
        if size_bytes > 1 << 20:
            raise OSError(errno.ENOSPC, "no space")
        super().allocate(file, size_bytes)


def test_compacting_leaves_the_files_that_the_journal_still_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "GROWTH_BYTES", 0)
    monkeypatch.setattr(environment, "SPARE_BYTES", 1 << 16)
    store = open_store(tmp_path, checkpoint_bytes=1 << 23)
    take(store, 10)
    assert list(files_of(store)) == [1]
    store.commit(Batch([(b"F", bytes(2 << 20))]))
    store.abandon()
    # For what is long in the journal there is no room, but for what the base has.
    compact_store(tmp_path, files=Narrow())
    assert check_store(tmp_path).sound
    store = opened(tmp_path)
    assert content(store) == taken(10) | {b"F": bytes(2 << 20)}
    store.close()
    # The next start has removed what nobody needs any more.
    assert check_store(tmp_path).sound
    opened(tmp_path).close()
    assert aside_files(tmp_path) == []


def test_a_check_counts_the_files_in_which_something_stays(tmp_path: Path) -> None:
    store = opened(tmp_path)
    before_bytes = store.parts[0].size_bytes
    take(store, 10)
    store.close()
    assert check_store(tmp_path).file_bytes > before_bytes + COUNT * VALUE_BYTES


def test_there_are_only_so_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "FILES_MAX_COUNT", 2)
    store = opened(tmp_path)
    expected: dict[bytes, bytes] = {}
    for number in range(4):
        take(store, 100 * number, b"n%d" % number)
        expected |= taken(100 * number, b"n%d" % number)
        store.checkpoint()
    assert len(files_of(store)) == 2
    assert content(store) == expected
    store.close()


def test_a_value_of_any_size_is_found_in_its_file(tmp_path: Path) -> None:
    sizes = [0, 1, 255, 256, 65_535, 65_536, 9_000, 3, 3, 3, 0, 20_000, 255, 256, 70_000, 5]
    many = [bytes([place]) * size for place, size in enumerate(sizes * 3)]
    store = opened(tmp_path)
    for place, count in enumerate((1, 2, 5, 14, 15, 16, 48)):
        name = bytes(count * 7)
        store.commit(Batch(aside=[(name, many[:count])]))
        first = entry(1000 * count)
        store.commit(Batch(taken=[Taken(name, 0, count, first, PREFIX)], dropped=[name]))
        store.checkpoint()
        found = store.scan(first, entry(1000 * count + 999), 100)
        assert [value for _, value in found] == [PREFIX + each for each in many[:count]]
        assert len(files_of(store)) == place + 1
    store.close()
    assert check_store(tmp_path).sound


def test_what_stays_in_a_file_is_not_taken_for_what_lies_side_by_side(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    # The number of the next file, 0xC4, is written as bytes in MessagePack begin.
    store.parts[2]._last_file = 0xC3  # noqa: SLF001 -- so many files take long
    take(store, 0, count=150)
    store.checkpoint()
    assert list(files_of(store)) == [0xC4]
    for number in range(0, 150, 7):
        assert store.stretch(entry(number), entry(1000), 100, 1 << 20) is None
    assert len(store.scan(entry(0), entry(1000), 1000)) == 150
    store.close()
