"""The pages of the LMDB file: what LMDB would follow blindly is noticed before."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from openmsmq.storage.base import Base
from openmsmq.storage.bundles.pages import find_damage
from openmsmq.storage.files import FileOps
from openmsmq.storage.port import StoreDamaged
from tests.unit.storage import damaged_pages
from tests.unit.storage.damaged_pages import PAGE_BYTES

SOURCE = Path(__file__).parents[3] / "src"
SEEDS = 150
HEADER = struct.Struct("<QHHHH")
BRANCH, LEAF, OVERFLOW = 1, 2, 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("pages") / "records.mdb"
    damaged_pages.make(path)
    return path.read_bytes()


def problems(data: bytes, pages_max: int | None = None) -> list[str]:
    def read(length: int, offset: int) -> bytes:
        return data[offset : offset + length]

    return list(find_damage(read, len(data), pages_max))


def used_pages(data: bytes, kind: int) -> list[int]:
    """The pages of a kind that the file needs: blanking one of them is noticed."""
    found = []
    for page in range(2, len(data) // PAGE_BYTES):
        number, _, flags, _, _ = HEADER.unpack_from(data, page * PAGE_BYTES)
        blank = bytes(PAGE_BYTES)
        if (number, flags) == (page, kind) and problems(with_page(data, page, blank)):
            found.append(page)
    return found


def page_of(data: bytes, page: int) -> bytes:
    return data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]


def with_page(data: bytes, page: int, content: bytes) -> bytes:
    return data[: page * PAGE_BYTES] + content + data[(page + 1) * PAGE_BYTES :]


def test_a_file_that_lmdb_wrote_is_good_at_every_moment(tmp_path: Path) -> None:
    path = tmp_path / "records.mdb"
    base = Base(FileOps(), path, create=True)
    for step in range(40):
        base.write([(b"%05d" % (step * 37 % 1000 + n), bytes(step * n)) for n in range(60)])
        if step % 3 == 0:
            base.clear(b"%05d" % (step * 5), b"%05d" % (step * 20), 500)
        data = path.read_bytes()
        assert problems(data) == []
        for pages_max in (1, 3, 10_000):
            assert problems(data, pages_max) == []
    base.clear(b"", b"\xff", 100_000)
    assert problems(path.read_bytes()) == []
    base.close()


def test_the_example_is_good_and_has_pages_of_all_kinds(whole: bytes) -> None:
    assert problems(whole) == []
    kinds = [len(used_pages(whole, kind)) for kind in (BRANCH, LEAF, OVERFLOW)]
    assert all(kinds), kinds


def swap_first_keys(page: bytes) -> bytes:
    first, second = struct.unpack_from("<HH", page, 16)
    return page[:16] + struct.pack("<HH", second, first) + page[20:]


def change_header(index: int, value: int) -> Callable[[bytes], bytes]:
    def change(page: bytes) -> bytes:
        fields = list(HEADER.unpack_from(page))
        fields[index] = value
        return HEADER.pack(*fields) + page[16:]

    return change


def set_node(offset: int, value: int) -> Callable[[bytes], bytes]:
    """Change one of the four numbers that the first node begins with."""

    def change(page: bytes) -> bytes:
        place = struct.unpack_from("<H", page, 16)[0] + offset
        return page[:place] + struct.pack("<H", value) + page[place + 2 :]

    return change


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (LEAF, change_header(0, 9999), "says that it is page 9999"),
        (LEAF, change_header(2, BRANCH), "is of kind 1"),
        (BRANCH, change_header(2, LEAF), "is of kind 2"),
        (LEAF, change_header(3, 17), "no valid bounds"),
        (LEAF, change_header(3, 8), "no valid bounds"),
        (LEAF, change_header(4, 5000), "no valid bounds"),
        (LEAF, change_header(3, 16), "is empty"),
        (BRANCH, change_header(3, 18), "is empty"),
        (LEAF, lambda page: page[:16] + struct.pack("<H", 8) + page[18:], "a node outside"),
        (LEAF, lambda page: page[:16] + struct.pack("<H", 4094) + page[18:], "a node outside"),
        (LEAF, set_node(6, 60_000), "does not end inside"),
        (LEAF, set_node(6, 0), "does not end inside"),
        (LEAF, set_node(2, 1), "does not end inside"),
        (LEAF, set_node(4, 4), "a node of kind 4"),
        (LEAF, swap_first_keys, "keys in the wrong order"),
        (BRANCH, set_node(0, 0), "points to page 0, which the file does not have"),
        (BRANCH, set_node(0, 60_000), "points to page 60000, which the file does not have"),
        (BRANCH, set_node(6, 5000), "does not end inside"),
        (OVERFLOW, change_header(0, 3), "which is not the value that it should be"),
        (OVERFLOW, change_header(3, 9), "which is not the value that it should be"),
        (OVERFLOW, change_header(2, LEAF), "which is not the value that it should be"),
    ],
)
def test_each_kind_of_damage_is_named(
    whole: bytes, kind: int, change: Callable[[bytes], bytes], said: str
) -> None:
    page = used_pages(whole, kind)[-1]
    broken = with_page(whole, page, change(page_of(whole, page)))
    assert broken != whole
    assert any(said in problem for problem in problems(broken)), problems(broken)


def test_a_page_that_two_places_point_to_is_noticed(whole: bytes) -> None:
    (page,) = used_pages(whole, BRANCH)[-1:]
    data = page_of(whole, page)
    first, second = struct.unpack_from("<HH", data, 16)
    child = data[second : second + 6]
    broken = with_page(whole, page, data[:first] + child + data[first + 6 :])
    assert any("belongs to something else" in problem for problem in problems(broken))


def test_a_record_that_vanished_is_noticed_by_the_numbers(whole: bytes) -> None:
    page = used_pages(whole, LEAF)[-1]
    number, pad, flags, lower, upper = HEADER.unpack_from(page_of(whole, page))
    shorter = HEADER.pack(number, pad, flags, lower - 2, upper) + page_of(whole, page)[16:]
    (problem,) = problems(with_page(whole, page, shorter))
    assert "should have" in problem


@pytest.mark.parametrize("page", [0, 1])
def test_the_two_pages_at_the_start_must_describe_the_file(whole: bytes, page: int) -> None:
    assert problems(with_page(whole, page, bytes(PAGE_BYTES))) == [
        f"page {page} does not describe the file"
    ]
    # The number of the transaction decides which of the two counts. To go back by one is what a
    # crash does, too: the journal still has it.
    data = bytearray(page_of(whole, page))
    place = 16 + 24 + 2 * 48 + 8
    unnoticed = 0
    for bit in range(64):
        changed = bytearray(data)
        changed[place + bit // 8] ^= 1 << bit % 8
        unnoticed += not problems(with_page(whole, page, bytes(changed)))
    assert unnoticed <= 1


def test_a_look_at_few_pages_reads_few_pages(whole: bytes) -> None:
    reads: list[int] = []

    def read(length: int, offset: int) -> bytes:
        reads.append(length)
        return whole[offset : offset + length]

    assert list(find_damage(read, len(whole), 8)) == []
    assert reads.count(PAGE_BYTES) == 8
    assert list(find_damage(read, len(whole))) == []
    assert reads.count(PAGE_BYTES) > 30


def test_opening_says_which_page_is_damaged_and_what_to_do(whole: bytes, tmp_path: Path) -> None:
    page = used_pages(whole, LEAF)[0]
    path = tmp_path / "records.mdb"
    path.write_bytes(with_page(whole, page, bytes(PAGE_BYTES)))
    with pytest.raises(StoreDamaged, match=rf"records\.mdb is damaged: page {page} .*backup"):
        Base(FileOps(), path)


@pytest.mark.timeout(120)
def test_no_damage_ends_the_process_or_is_read_as_something_else(
    whole: bytes, tmp_path: Path
) -> None:
    source = tmp_path / "whole.mdb"
    source.write_bytes(whole)
    command = [sys.executable, damaged_pages.__file__, str(source), str(tmp_path / "copy.mdb")]
    run = subprocess.run(
        [*command, "0", str(SEEDS)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    outcomes = Counter(line.split()[-1] for line in run.stdout.splitlines())
    assert run.returncode == 0, (run.returncode, run.stdout[-40:], run.stderr)
    assert set(outcomes) == {"whole", "noticed"}
    assert outcomes["noticed"] > SEEDS / 4
