"""The journal file against crashes in the middle of a write and against damage."""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.files import FileOps
from openmsmq.storage.frames import MARK_BYTES, Framing, encode_changes
from openmsmq.storage.layout import BASE_NAME, JOURNAL_NAMES, read_format
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged

State = list[tuple[bytes, bytes]]
BATCHES = 4
FOREIGN = Framing(bytes(MARK_BYTES - 1) + b"x", salt=0)


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


def framing_of(directory: Path) -> Framing:
    description = read_format(FileOps(), directory)
    assert description is not None
    return Framing(description.mark, description.salt)


def opened(directory: Path) -> JournaledStore:
    return open_store(directory, create=False, checkpoint_bytes=CHECKPOINT_MIN_BYTES)


class Example(NamedTuple):
    """A store whose journal has some batches, and what it contained after each of them."""

    directory: Path
    journal: Path
    states: list[State]
    files: list[bytes]
    bases: list[bytes]
    ends: list[int]
    """Where the record of each batch ends; the first is where the journal began."""


def write_batches(directory: Path, first: int) -> Example:
    store = open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    journal, base = directory / JOURNAL_NAMES[0], directory / BASE_NAME
    states, files, ends = [content(store)], [journal.read_bytes()], [0]
    bases = [base.read_bytes()]
    for number in range(first, first + BATCHES):
        store.commit(batch(number))
        states.append(content(store))
        files.append(journal.read_bytes())
        bases.append(base.read_bytes())
        payload = encode_changes(batch(number).changes)
        ends.append(ends[-1] + FOREIGN.header_bytes + len(payload))
    store.abandon()
    return Example(directory, journal, states, files, bases, ends)


def make_fresh(tmp_path: Path) -> Example:
    """A store whose journal was never used before."""
    return write_batches(tmp_path / "store", 0)


@pytest.fixture
def fresh(tmp_path: Path) -> Example:
    return make_fresh(tmp_path)


@pytest.fixture
def recycled(tmp_path: Path) -> Example:
    return make_recycled(tmp_path)


def make_recycled(tmp_path: Path) -> Example:
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


@pytest.mark.parametrize("kind", ["fresh", "recycled"])
@pytest.mark.parametrize("name", JOURNAL_NAMES)
def test_a_journal_file_that_was_cut_anywhere_is_damage(
    request: pytest.FixtureRequest, kind: str, name: str
) -> None:
    example: Example = request.getfixturevalue(kind)
    path = example.directory / name
    data = path.read_bytes()
    for cut in [*range(0, len(data), 97), *example.ends, len(data) - 1]:
        path.write_bytes(data[:cut])
        with pytest.raises(StoreDamaged, match=rf"{name} is cut: {cut} bytes of {len(data)}"):
            opened(example.directory)
        problems = check_store(example.directory).problems
        assert [problem for problem in problems if f"{name} is cut" in problem], cut
    path.write_bytes(data)
    assert check_store(example.directory).sound


@pytest.mark.parametrize("kind", ["fresh", "recycled"])
def test_a_journal_file_that_was_emptied_in_its_place_is_damage(
    request: pytest.FixtureRequest, kind: str
) -> None:
    example: Example = request.getfixturevalue(kind)
    size = len(example.files[-1])
    other = open_store(example.directory.parent / "other", checkpoint_bytes=size)
    other.commit(batch(1))
    other.abandon()
    foreign = (example.directory.parent / "other" / JOURNAL_NAMES[0]).read_bytes()
    # Zeroes, what stood there before the last start, and the journal of another store.
    for data in (bytes(size), example.files[0], foreign):
        with pytest.raises(StoreDamaged, match="was emptied, replaced"):
            recovered(example, data)
        assert "was emptied, replaced" in check_store(example.directory).problems[0]


def test_after_a_clean_stop_the_journal_holds_nothing_that_could_be_lost(tmp_path: Path) -> None:
    store = open_store(tmp_path, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    for number in range(30):
        store.commit(batch(number))
    expected = content(store)
    store.close()
    for name in JOURNAL_NAMES:
        (tmp_path / name).write_bytes(bytes(CHECKPOINT_MIN_BYTES))
    store = opened(tmp_path)
    assert content(store) == expected
    store.close()


def test_the_journal_is_known_to_reach_what_a_checkpoint_saw(tmp_path: Path) -> None:
    store = open_store(tmp_path, checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    second = tmp_path / JOURNAL_NAMES[1]
    for number in itertools.count():
        store.commit(batch(number))
        if store.base_count:
            break
    store.abandon()
    # The last record of the active file looks like a torn write, but a slice has moved since.
    framing = framing_of(tmp_path)
    data = second.read_bytes()
    last = framing.read_run(data)[-1]
    second.write_bytes(data[: last.offset] + bytes(len(data) - last.offset))
    with pytest.raises(StoreDamaged, match=f"it had batch {number + 1}"):
        opened(tmp_path)


def test_a_write_torn_at_any_byte_is_as_if_it_had_not_begun(recycled: Example) -> None:
    for number in range(BATCHES):
        (recycled.directory / BASE_NAME).write_bytes(recycled.bases[number])
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
    # One batch is missing, or many are.
    last = framing_of(tmp_path).read_run(whole)[-1]
    first.write_bytes(whole[: last.offset] + bytes(len(whole) - last.offset))
    with pytest.raises(StoreDamaged, match=rf"batch {last.sequence} is missing"):
        opened(tmp_path)
    assert not check_store(tmp_path).sound
    first.write_bytes(whole[: len(whole) // 2].ljust(len(whole), b"\0"))
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
    foreign = b"padding" + FOREIGN.header(1000, b"payload") + b"payload"
    assert FOREIGN.find_later(foreign, 0, 5) == (7, 1000)
    store = opened(fresh.directory)
    store.commit(Batch([(b"D", b"before")]))
    expected = content(store)
    before = fresh.journal.read_bytes()
    store.commit(Batch([(b"E", foreign)]))
    store.abandon()
    data = bytearray(fresh.journal.read_bytes())
    changed = next(place for place in range(len(data)) if data[place] != before[place])
    data[changed + 1] ^= 1
    assert foreign in data
    assert recovered(fresh, bytes(data)) == expected


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
