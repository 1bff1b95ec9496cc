"""What was set aside stays in its file when the base has it, as safe as in the base itself."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.bundles import bundle, rewriting, runs, stayed_files
from openmsmq.storage.engine import JournaledStore, open_store
from openmsmq.storage.maintenance import check_store, compact_store
from openmsmq.storage.port import Batch, StoreDamaged, Taken
from tests.unit.storage import test_aside as aside
from tests.unit.storage.backups import test_snapshot as snapshots
from tests.unit.storage.test_aside import aside_files, content, entry, opened

COUNT = 40
VALUE_BYTES = 2_000
PREFIX = b"facts "
NAME = b"n"


@contextlib.contextmanager
def small_bundles() -> Iterator[None]:
    """Let two records be a bundle, however small they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle, "BUNDLE_MIN_COUNT", 2)
        patch.setattr(bundle, "BUNDLE_MIN_BYTES", 1)
        yield


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


@pytest.mark.parametrize("stride", [11, pytest.param(2, marks=pytest.mark.slow)])
def test_a_loss_of_power_anywhere_leaves_what_stays(tmp_path: Path, stride: int) -> None:
    with small_bundles():
        aside.test_after_a_loss_of_power_anywhere_everything_goes_on(tmp_path, stride)


@pytest.mark.slow
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_a_request_that_fails_anywhere_leaves_what_stays(tmp_path: Path, code: int) -> None:
    with small_bundles():
        aside.test_after_a_request_that_fails_anywhere_everything_goes_on(tmp_path, code)


def test_what_was_changed_since_it_was_taken_does_not_stay(tmp_path: Path) -> None:
    store = opened(tmp_path)
    take(store, 10)
    store.commit(Batch([(entry(12), b"changed"), (entry(30), None)]))
    store.commit(Batch([(entry(31), None), (entry(45), b"\0" * VALUE_BYTES)]))
    store.commit(Batch([(entry(31), b"again")]))
    store.checkpoint()
    expected = taken(10)
    del expected[entry(30)]
    expected |= {entry(12): b"changed", entry(31): b"again", entry(45): b"\0" * VALUE_BYTES}
    assert content(store) == expected
    # Of two and a half pieces each has changed.
    assert files_of(store) == {}
    # And when the base has it already.
    take(store, 100, b"m")
    store.checkpoint()
    store.commit(Batch([(entry(103), b"changed"), (entry(104), None)]))
    store.checkpoint()
    more = taken(100, b"m") | {entry(103): b"changed"}
    del more[entry(104)]
    assert content(store) == expected | more
    [used_bytes] = files_of(store).values()
    assert 0 < used_bytes < sum(map(len, values()))
    store.close()
    assert check_store(tmp_path).sound


def test_what_was_deleted_since_it_was_taken_does_not_stay(tmp_path: Path) -> None:
    store = opened(tmp_path)
    take(store, 10)
    delete(store, range(12, 14))
    store.checkpoint()
    expected = taken(10)
    del expected[entry(12)], expected[entry(13)]
    assert content(store) == expected
    [used_bytes] = files_of(store).values()
    assert used_bytes < sum(map(len, values())) - 14 * VALUE_BYTES
    store.close()


def test_what_was_taken_under_the_same_keys_later_counts(tmp_path: Path) -> None:
    # A journal that is not full before all of it was taken.
    store = open_store(tmp_path)
    take(store, 1010)
    take(store, 10, b"m")
    take(store, 1035, b"o")
    store.checkpoint()
    assert content(store) == taken(1010) | taken(10, b"m") | taken(1035, b"o")
    assert list(files_of(store)) == [2, 3]
    store.close()
    assert check_store(tmp_path).sound


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
        store = opened(tmp_path)
        base, _, _ = store.parts
        expected: dict[bytes, bytes] = {}
        for number in range(12):
            name = b"n%d" % number
            take(store, 1000 * number, name, count=200)
            store.checkpoint()
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


@pytest.mark.parametrize("damage", ["byte", "missing", "cut"])
def test_damage_of_a_file_is_noticed(tmp_path: Path, damage: str) -> None:
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
    store = opened(tmp_path)
    with pytest.raises(StoreDamaged, match=r"aside-00000001\.log"):
        content(store)
    if damage != "missing":
        assert store.scan(entry(10), entry(20), 5) == sorted(taken(10).items())[:5]
    store.abandon()
    with pytest.raises(StoreDamaged):
        compact_store(tmp_path)


def test_compacting_takes_in_what_stays(tmp_path: Path) -> None:
    store = opened(tmp_path)
    take(store, 10)
    store.close()
    compact_store(tmp_path)
    store = opened(tmp_path)
    assert files_of(store) == {}
    assert content(store) == taken(10)
    store.close()
    assert aside_files(tmp_path) == []
    assert check_store(tmp_path).sound


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


def test_only_so_many_pieces_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A name has three pieces here, so this is less than two names have.
    monkeypatch.setattr(runs, "PIECES_MAX_COUNT", 5)
    store = open_store(tmp_path)
    for number in range(3):
        take(store, 100 * number, b"n%d" % number)
    store.checkpoint()
    assert list(files_of(store)) == [3]
    assert len(content(store)) == 3 * COUNT
    store.close()


def test_a_value_of_any_size_is_found_in_its_file(tmp_path: Path) -> None:
    sizes = [0, 1, 255, 256, 65_535, 65_536, 9_000, 3, 3, 3, 0, 20_000, 255, 256, 70_000, 5]
    many = [bytes([place]) * size for place, size in enumerate(sizes * 3)]
    store = opened(tmp_path)
    with small_bundles():
        for count in (2, 5, 14, 15, 16, 48):
            name = bytes(count * 7)
            store.commit(Batch(aside=[(name, many[:count])]))
            first = entry(1000 * count)
            store.commit(Batch(taken=[Taken(name, 0, count, first, PREFIX)], dropped=[name]))
            store.checkpoint()
            found = store.scan(first, entry(1000 * count + 999), 100)
            assert [value for _, value in found] == [PREFIX + each for each in many[:count]]
        assert len(files_of(store)) == 6
    store.close()
    assert check_store(tmp_path).sound
