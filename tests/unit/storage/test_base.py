"""The LMDB file: hidden records, damage, and full disks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.storage.base import Base
from openmsmq.storage.bundles.checksums import pack, unpack
from openmsmq.storage.files import FileOps
from openmsmq.storage.port import StoreDamaged


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = Base(FileOps(), tmp_path / "records.mdb", create=True)
    yield made
    made.close()


class Counting:
    """A set of hidden keys that counts how often it is asked."""

    def __init__(self, keys: set[bytes]) -> None:
        self.keys = keys
        self.asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return key in self.keys


def key(number: int) -> bytes:
    return b"%06d" % number


def numbers(found: list[tuple[bytes, bytes]]) -> list[int]:
    return [int(key) for key, _ in found]


@pytest.mark.parametrize("reverse", [False, True])
def test_emptying_a_queue_steps_over_each_deleted_record_once(base: Base, reverse: bool) -> None:
    count, limit = 5_000, 10
    base.write([(key(number), b"x") for number in range(count)])
    hidden = Counting(set())
    order = list(range(count))[:: -1 if reverse else 1]
    for place in range(0, count, limit):
        found = base.records(b"", b"9", limit, [hidden], reverse=reverse)
        assert numbers(found) == order[place : place + limit]
        hidden.keys.update(key for key, _ in found)
    assert base.records(b"", b"9", limit, [hidden], reverse=reverse) == []
    assert hidden.asked < 10 * count


def test_a_record_that_is_written_into_a_hidden_run_is_seen(base: Base) -> None:
    base.write([(key(number), b"old") for number in range(100)])
    hidden = {key(number) for number in range(50)}
    assert numbers(base.records(b"", b"9", 1, [hidden], reverse=False)) == [50]
    hidden.remove(key(20))
    base.write([(key(20), b"new"), (key(21), None)])
    assert base.records(b"", b"9", 1, [hidden], reverse=False) == [(key(20), b"new")]
    assert numbers(base.records(b"", key(50), 9, [hidden], reverse=True)) == [20]


@given(st.data())
def test_hidden_runs_never_hide_what_is_visible(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    base = Base(FileOps(), tmp_path_factory.mktemp("base") / "records.mdb", create=True)
    there = set(range(40))
    hidden: set[bytes] = set()
    base.write([(key(number), b"x") for number in there])
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.booleans()):
            hidden |= {key(n) for n in data.draw(st.sets(st.integers(0, 39), max_size=20))}
        if data.draw(st.booleans()):
            shown = data.draw(st.sets(st.integers(0, 39), max_size=3))
            gone = {n for n in data.draw(st.sets(st.integers(0, 39), max_size=8)) - shown}
            gone = {n for n in gone if key(n) in hidden}
            base.write(sorted([(key(n), b"y") for n in shown] + [(key(n), None) for n in gone]))
            there = (there - gone) | shown
            hidden -= {key(n) for n in shown | gone}
        low, high = sorted(data.draw(st.tuples(st.integers(0, 40), st.integers(0, 40))))
        limit, reverse = data.draw(st.integers(1, 6)), data.draw(st.booleans())
        visible = sorted(n for n in there if low <= n < high and key(n) not in hidden)
        found = base.records(key(low), key(high), limit, [hidden], reverse=reverse)
        assert numbers(found) == (visible[::-1] if reverse else visible)[:limit]
    base.close()


@given(st.binary(min_size=1, max_size=20), st.binary(max_size=50), st.data())
def test_a_flipped_bit_in_a_stored_value_is_noticed(
    name: bytes, value: bytes, data: st.DataObject
) -> None:
    stored = bytearray(pack(name, value))
    assert unpack(name, bytes(stored)) == value
    place = data.draw(st.integers(0, len(stored) * 8 - 1))
    stored[place // 8] ^= 1 << place % 8
    assert unpack(name, bytes(stored)) is None
    assert unpack(name + b"x", pack(name, value)) is None


def test_a_damaged_value_is_an_error_for_every_way_to_read_it(tmp_path: Path) -> None:
    path = tmp_path / "records.mdb"
    base = Base(FileOps(), path, create=True)
    base.write([(b"good", b"some value"), (b"ill", b"find me in the file")])
    base.close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"find me in the file", b"find Me in the file"))
    base = Base(FileOps(), path)
    assert base.get(b"good") == b"some value"
    with pytest.raises(StoreDamaged, match="checksum of record 696c6c is wrong"):
        base.get(b"ill")
    with pytest.raises(StoreDamaged, match="openmsmq store check"):
        base.records(b"", b"z", 10, [], reverse=False)
    assert dict(base.every_record()) == {b"good": b"some value", b"ill": None}
    base.close()


def test_a_file_that_was_cut_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "records.mdb"
    base = Base(FileOps(), path, create=True)
    base.write([(b"%d" % number, bytes(5_000)) for number in range(100)])
    base.trim()
    base.close()
    data = path.read_bytes()
    for cut in (0, 100, 4096, 8192, 20_000, len(data) - 4096, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(StoreDamaged, match=r"records\.mdb"):
            Base(FileOps(), path)
    path.write_bytes(data)
    Base(FileOps(), path).close()
