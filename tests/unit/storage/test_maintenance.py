from __future__ import annotations

import re
from pathlib import Path

import pytest

from openmsmq.storage.bundles.bundle import BUNDLE_MAX_COUNT
from openmsmq.storage.bundles.pages import PAGES_LOOKED_AT_COUNT
from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES
from openmsmq.storage.maintenance import check_store, compact_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged, StoreInUse

COUNT = 10_000


def key(number: int) -> bytes:
    return b"E%08d" % number


def value(number: int) -> bytes:
    return b"<%d>" % number * 50


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_store(tmp_path)


def make_store(tmp_path: Path) -> Path:
    """A store with 10,000 records in the base, of which the journal deletes most."""
    store = open_store(tmp_path, checkpoint_bytes=64 * CHECKPOINT_MIN_BYTES)
    store.commit(Batch([(key(number), value(number)) for number in range(COUNT)]))
    store.checkpoint()
    store.commit(Batch([(key(number), None) for number in range(COUNT - 100)]))
    store.abandon()
    return tmp_path


def damage(directory: Path) -> bytes:
    path = directory / "records.mdb"
    data = path.read_bytes()
    path.write_bytes(data.replace(value(9950), value(9951)))
    return data


def test_a_check_counts_everything_and_shows_progress(directory: Path) -> None:
    steps: list[tuple[int, int]] = []
    report = check_store(directory, progress=lambda done, total: steps.append((done, total)))
    assert report.sound
    assert report.record_count == COUNT
    assert report.record_bytes == sum(len(key(n)) + len(value(n)) for n in range(COUNT))
    assert (report.applied_sequence, report.journal_batch_count) == (1, 1)
    assert report.journal_change_count == COUNT - 100
    assert steps == sorted(steps)
    assert steps[-1] == (COUNT, COUNT)
    assert len(steps) > 2


def test_a_check_changes_nothing(directory: Path) -> None:
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    check_store(directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_a_check_names_every_damaged_record(directory: Path) -> None:
    damage(directory)
    report = check_store(directory)
    # It is in a bundle, which is damaged as a whole, and is named by the last record of it.
    wrong, missing = report.problems
    (last,) = re.findall("checksum of record ([0-9a-f]+) is wrong", wrong)
    assert key(9950) <= bytes.fromhex(last) < key(COUNT)
    assert f"{COUNT} records are announced, {report.record_count} are there" in missing
    assert COUNT - BUNDLE_MAX_COUNT < report.record_count < COUNT


def test_a_check_looks_at_every_page(directory: Path) -> None:
    store = open_store(directory)
    count = 6 * PAGES_LOOKED_AT_COUNT
    store.commit(Batch([(b"Z%06d" % number, bytes(1500)) for number in range(count)]))
    store.close()
    assert check_store(directory).sound
    path = directory / "records.mdb"
    data = bytearray(path.read_bytes())
    page = data.rindex(b"Z%06d" % (count - 1)) // 4096
    # Two records of the page change places, which no checksum notices.
    start = page * 4096 + 16
    data[start : start + 4] = data[start + 2 : start + 4] + data[start : start + 2]
    path.write_bytes(data)
    report = check_store(directory)
    assert report.problem_count == 2
    assert f"page {page} has keys in the wrong order" in report.problems[0]
    assert "its records were not read" in report.problems[1]


def test_a_check_goes_on_behind_a_damaged_part(directory: Path) -> None:
    journal = directory / "journal-00000001.log"
    journal.unlink()
    (directory / "format.json").write_bytes(b"?")
    report = check_store(directory)
    assert report.record_count == COUNT
    assert [problem.split(" is ")[0][-11:] for problem in report.problems] == ["format.json"]


def test_a_check_of_a_directory_without_a_store_says_so(tmp_path: Path) -> None:
    assert "there is no store" in check_store(tmp_path).problems[0]
    with pytest.raises(StoreDamaged, match="there is no store"):
        check_store(tmp_path / "missing")


def test_compacting_keeps_every_record_and_gives_space_back(directory: Path) -> None:
    steps: list[tuple[int, int]] = []
    report = compact_store(directory, progress=lambda done, total: steps.append((done, total)))
    assert report.record_count == 100
    assert report.after_bytes == (directory / "records.mdb").stat().st_size
    assert report.after_bytes < report.before_bytes / 10
    assert steps[-1] == (100, 100)
    store = open_store(directory)
    found = store.scan(b"", b"\xff", COUNT)
    assert found == [(key(n), value(n)) for n in range(COUNT - 100, COUNT)]
    store.commit(Batch([(key(0), b"again")]))
    store.close()
    assert check_store(directory).sound


def test_a_damaged_store_is_not_compacted(directory: Path) -> None:
    damage(directory)
    with pytest.raises(StoreDamaged, match="nothing was changed"):
        compact_store(directory)
    assert not list(directory.glob("*.compact"))
    assert not check_store(directory).sound


def test_a_store_in_use_is_not_compacted(directory: Path) -> None:
    store = open_store(directory)
    with pytest.raises(StoreInUse):
        compact_store(directory)
    store.close()
