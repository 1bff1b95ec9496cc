"""The journal file against crashes in the middle of a write and against damage."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore, open_store
from openmsmq.storage.journal import HEADER_BYTES, encode_changes, find_later, read_run, seal
from openmsmq.storage.layout import JOURNAL_NAMES
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.port import Batch, StoreDamaged

State = list[tuple[bytes, bytes]]
BATCHES = 4


def batch(number: int) -> Batch:
    key = b"E%04d" % number
    return Batch(
        [
            (key + b"a", b"value %d" % number),
            (key + b"b", bytes(number * 7)),
            (b"E%04da" % (number - 2), None),
            (b"count", b"%d" % number),
        ]
    )


def content(store: JournaledStore) -> State:
    return store.scan(b"", b"\xff", 1000)


def opened(directory: Path) -> JournaledStore:
    return open_store(directory, create=False, checkpoint_bytes=CHECKPOINT_MIN_BYTES)


class Example(NamedTuple):
    """A store whose journal has some batches, and what it contained after each of them."""

    directory: Path
    journal: Path
    states: list[State]
    files: list[bytes]
    ends: list[int]
    """Where the record of each batch ends; the first is where the journal began."""


def write_batches(directory: Path, first: int) -> Example:
    store = open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    journal = directory / JOURNAL_NAMES[0]
    states, files, ends = [content(store)], [journal.read_bytes()], [0]
    for number in range(first, first + BATCHES):
        store.commit(batch(number))
        states.append(content(store))
        files.append(journal.read_bytes())
        ends.append(ends[-1] + HEADER_BYTES + len(encode_changes(batch(number).changes)))
    store.abandon()
    return Example(directory, journal, states, files, ends)


@pytest.fixture
def fresh(tmp_path: Path) -> Example:
    return write_batches(tmp_path / "store", 0)


@pytest.fixture
def recycled(tmp_path: Path) -> Example:
    """The same, but the journal file is full of batches that were applied long ago."""
    directory = tmp_path / "store"
    store = open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    for number in range(12):
        store.commit(batch(number))
    store.close()
    return write_batches(directory, 12)


def recovered(example: Example, data: bytes) -> State:
    example.journal.write_bytes(data)
    store = opened(example.directory)
    try:
        return content(store)
    finally:
        store.abandon()


def whole_batches(example: Example, cut: int) -> int:
    return sum(end <= cut for end in example.ends) - 1


def test_a_journal_cut_at_any_byte_gives_the_batches_before(fresh: Example) -> None:
    data = fresh.files[-1]
    for cut in range(fresh.ends[-1] + 2):
        assert recovered(fresh, data[:cut]) == fresh.states[whole_batches(fresh, cut)], cut


def test_a_write_torn_at_any_byte_is_as_if_it_had_not_begun(recycled: Example) -> None:
    for number in range(BATCHES):
        before, after = recycled.files[number], recycled.files[number + 1]
        for cut in range(recycled.ends[number], recycled.ends[number + 1]):
            # Leftovers of the earlier turn may happen to be the bytes that are missing.
            torn = after[:cut] + before[cut:]
            expected = recycled.states[number + (torn == after)]
            assert recovered(recycled, torn) == expected, (number, cut)


def test_after_a_torn_write_the_store_goes_on(recycled: Example) -> None:
    cut = recycled.ends[-1] - 5
    recycled.journal.write_bytes(recycled.files[-1][:cut] + recycled.files[-2][cut:])
    store = opened(recycled.directory)
    store.commit(Batch([(b"later", b"1")]))
    expected = content(store)
    store.abandon()
    store = opened(recycled.directory)
    assert content(store) == expected == sorted([*recycled.states[-2], (b"later", b"1")])
    store.close()


@pytest.mark.parametrize("kind", ["fresh", "recycled"])
def test_a_flipped_bit_is_noticed_unless_it_looks_like_a_torn_write(
    request: pytest.FixtureRequest, kind: str
) -> None:
    example: Example = request.getfixturevalue(kind)
    draw = random.Random(7)
    data = example.files[-1]
    last = example.ends[-2]
    for offset in range(example.ends[-1]):
        flipped = bytearray(data)
        flipped[offset] ^= 1 << draw.randrange(8)
        if offset >= last:
            assert recovered(example, bytes(flipped)) == example.states[-2]
            continue
        with pytest.raises(StoreDamaged, match=r"offset .* is broken.*openmsmq store check"):
            recovered(example, bytes(flipped))
    assert recovered(example, data) == example.states[-1]


def test_a_flipped_bit_behind_the_end_changes_nothing(recycled: Example) -> None:
    draw = random.Random(8)
    data = recycled.files[-1]
    for _ in range(200):
        flipped = bytearray(data)
        flipped[draw.randrange(recycled.ends[-1], len(data))] ^= 1 << draw.randrange(8)
        assert recovered(recycled, bytes(flipped)) == recycled.states[-1]


def test_a_batch_that_is_missing_between_the_files_is_damage(tmp_path: Path) -> None:
    store = open_store(tmp_path, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    second = tmp_path / JOURNAL_NAMES[1]
    number = 0
    while not any(second.read_bytes()):
        store.commit(batch(number))
        number += 1
    store.commit(batch(number))
    store.abandon()
    first = tmp_path / JOURNAL_NAMES[0]
    whole = first.read_bytes()
    first.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreDamaged, match=r"batch \d+ is missing"):
        opened(tmp_path)
    report = check_store(tmp_path)
    assert not report.sound
    assert "is missing" in report.problems[0]
    first.write_bytes(whole)
    assert check_store(tmp_path).sound
    opened(tmp_path).close()


@pytest.mark.parametrize("name", [*JOURNAL_NAMES, "records.mdb", "format.json"])
def test_a_missing_file_is_damage_and_is_not_made_again(fresh: Example, name: str) -> None:
    (fresh.directory / name).unlink()
    with pytest.raises(StoreDamaged, match=name):
        open_store(fresh.directory)
    assert not (fresh.directory / name).exists()


def test_a_message_cannot_contain_a_record_of_the_journal(fresh: Example) -> None:
    # Somebody sends a copy of a journal record with a high number; the write is then torn.
    foreign = b"padding" + seal(1000, b"payload", salt=0) + b"payload"
    assert find_later(foreign, 0, 5, salt=0) is not None
    store = opened(fresh.directory)
    store.commit(Batch([(b"E", foreign)]))
    store.abandon()
    data = bytearray(fresh.journal.read_bytes())
    data[fresh.ends[-1] + 1] ^= 1
    assert recovered(fresh, bytes(data)) == fresh.states[-1]


def test_reading_stops_where_the_numbers_stop() -> None:
    records = [seal(number, b"x", 5) + b"x" for number in (3, 4, 9, 10)]
    assert [record.sequence for record in read_run(b"".join(records), 5)] == [3, 4]
    assert read_run(b"".join(records), 6) == []


def test_a_copy_of_the_directory_opens_elsewhere(fresh: Example, tmp_path: Path) -> None:
    shutil.copytree(fresh.directory, tmp_path / "copy")
    store = opened(tmp_path / "copy")
    assert content(store) == fresh.states[-1]
    store.close()


def test_a_journal_of_another_size_is_taken_over(fresh: Example) -> None:
    store = open_store(fresh.directory, checkpoint_bytes=4 * CHECKPOINT_MIN_BYTES)
    expected = dict(fresh.states[-1])
    for number in range(100):
        store.commit(Batch([(b"N%d" % number, bytes(300))]))
        expected[b"N%d" % number] = bytes(300)
    sizes = {(fresh.directory / name).stat().st_size for name in JOURNAL_NAMES}
    assert sizes == {4 * CHECKPOINT_MIN_BYTES}
    store.abandon()
    store = opened(fresh.directory)
    assert dict(content(store)) == expected
    store.close()
