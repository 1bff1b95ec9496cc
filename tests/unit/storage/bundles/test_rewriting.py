"""The base with bundles, beside a plain dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.storage.base import Base
from openmsmq.storage.bundles import rewriting
from openmsmq.storage.bundles.bundle import BUNDLE_MAX_BYTES, BUNDLE_MIN_BYTES
from openmsmq.storage.files import FileOps
from openmsmq.storage.port import StoreDamaged
from tests.stretches import records_in, within

QUEUES = (b"Efirst", b"Ethird")
COUNT = 60
SIZES = (0, 300, 3_000, BUNDLE_MIN_BYTES, BUNDLE_MAX_BYTES)


def key(number: int, queue: int = 0) -> bytes:
    return QUEUES[queue] + number.to_bytes(8, "big")


def value(number: int, size_bytes: int = 3_000) -> bytes:
    return number.to_bytes(4, "big") * (size_bytes // 4)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Base]:
    made = Base(FileOps(), tmp_path / "records.mdb", create=True)
    yield made
    made.close()


def filled(base: Base, count: int = COUNT) -> dict[bytes, bytes]:
    records = {key(number): value(number) for number in range(count)}
    base.write(list(records.items()))
    return records


def bundled(base: Base) -> list[int]:
    """Return how many records each bundle has."""
    bundles = base._bundles  # noqa: SLF001 -- they do not show otherwise
    found, place = [], b""
    while bundles is not None and (bundle := bundles.reaching(place)) is not None:
        found.append(len(bundle.keys))
        place = bundle.last + b"\0"
    return found


def test_each_record_is_found_in_its_own_bundle_whichever_was_wanted_before(base: Base) -> None:
    records = filled(base)
    single = key(COUNT + 5)
    base.write([(single, b"alone")])
    records[single] = b"alone"
    assert len(bundled(base)) > 2
    missing = [key(COUNT), key(COUNT + 9), key(3) + b"\0", key(3, 1)]
    wanted = [*records, *missing]
    for step in (1, 7, 31):
        for place in range(len(wanted)):
            each = wanted[place * step % len(wanted)]
            assert base.get(each) == records.get(each)
            assert base.contains(wanted[-place]) == (wanted[-place] in records)


_KEYS = st.builds(key, st.integers(0, COUNT), st.integers(0, 1))
_STRETCHES = st.tuples(
    st.integers(0, COUNT), st.integers(1, 30), st.integers(0, 1), st.integers(1, 3)
).map(lambda drawn: [key(drawn[0] + step * drawn[3], drawn[2]) for step in range(drawn[1])])


@settings(max_examples=150)
@given(st.data())
def test_bundles_do_not_show(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("base") / "records.mdb"
    base = Base(FileOps(), path, create=True)
    model: dict[bytes, bytes] = {}
    hidden: set[bytes] = set()
    for turn in range(data.draw(st.integers(1, 10))):
        what = data.draw(st.sampled_from(["put", "delete", "change", "clear", "hide", "reopen"]))
        keys = data.draw(_STRETCHES)
        new = value(turn + 1, data.draw(st.sampled_from(SIZES)))
        if what == "clear":
            _clear(base, model, keys, data.draw(st.integers(1, 3)))
        elif what == "hide":
            # Only what is deleted hides anything, until the base has deleted it or it is put anew.
            hidden |= {name for name in keys if name in model}
        elif what == "reopen":
            base.close()
            base = Base(FileOps(), path)
        else:
            put = {"put": set(keys), "delete": set()}.get(what)
            if put is None:
                put = set(data.draw(st.lists(st.sampled_from(keys))))
            puts = dict.fromkeys(put, new)
            gone = set(keys) - put
            base.write(sorted([*puts.items(), *((name, None) for name in gone)]))
            model = {name: old for name, old in model.items() if name not in gone} | puts
            hidden -= put | gone
        _compare(base, model, hidden, data)
    base.close()


def _clear(base: Base, model: dict[bytes, bytes], keys: list[bytes], limit: int) -> None:
    start, stop = keys[0], keys[-1]
    while start < stop:
        rest = base.clear(start, stop, limit)
        assert start < rest
        start = rest
    for name in [name for name in model if keys[0] <= name < stop]:
        del model[name]


def _compare(
    base: Base, model: dict[bytes, bytes], hidden: set[bytes], data: st.DataObject
) -> None:
    assert base.count == len(model)
    assert list(base.every_record()) == sorted(model.items())
    name = data.draw(_KEYS)
    assert base.get(name) == model.get(name)
    assert base.contains(name) == (name in model)
    for reverse in (False, True):
        start, stop = sorted(data.draw(st.tuples(_KEYS, _KEYS)))
        limit = data.draw(st.integers(1, 2 * COUNT))
        wanted = sorted(
            record
            for record in model.items()
            if start <= record[0] < stop and record[0] not in hidden
        )
        found = base.records(start, stop, limit, [hidden] if hidden else [], reverse=reverse)
        assert found == (wanted[::-1] if reverse else wanted)[:limit]
        there = sorted(record for record in model.items() if start <= record[0] < stop)
        side_by_side = base.stretch(start, stop, limit, 40_000)
        if side_by_side is not None:
            # Perhaps fewer, if the bundle ends: but the first ones, and none left out.
            taken = records_in(side_by_side)
            assert taken == within(there, limit, 40_000)[: len(taken)] != []


def test_records_that_come_together_are_bundled(base: Base) -> None:
    filled(base)
    assert sum(bundled(base)) == COUNT
    assert len(bundled(base)) < COUNT / 8


@pytest.mark.parametrize("size_bytes", [0, 100, BUNDLE_MAX_BYTES])
def test_few_short_or_large_records_are_kept_one_by_one(base: Base, size_bytes: int) -> None:
    base.write([(key(number), value(1, size_bytes)) for number in range(8)])
    assert bundled(base) == []


def test_records_of_two_queues_are_in_no_bundle_together(base: Base) -> None:
    base.write([(key(number, queue), value(number)) for queue in (0, 1) for number in range(6)])
    assert bundled(base) == [6, 6]


def test_what_lies_between_two_records_keeps_them_out_of_one_bundle(base: Base) -> None:
    base.write([(key(5), b"alone")])
    base.write([(key(number), value(number)) for number in (1, 2, 3, 4, 6, 7)])
    assert bundled(base) == []
    base.write([(key(number), value(number)) for number in range(20, 30)])
    base.write([(key(number), value(number)) for number in (12, 13, 14, 40, 41, 42)])
    assert bundled(base) == [10]


def test_a_bundle_that_is_emptied_piece_by_piece_ends_as_single_records(base: Base) -> None:
    records = filled(base, 8)
    for number in range(5):
        base.write([(key(number), None)])
        assert bundled(base) == ([7 - number] if number < 4 else [])
        del records[key(number)]
        assert list(base.every_record()) == sorted(records.items())


def test_a_record_inside_of_a_bundle_is_changed(base: Base) -> None:
    records = filled(base, 8)
    records |= {key(3): b"new", key(8): b"behind"}
    base.write([(key(3), b"new"), (key(5), None), (key(8), b"behind")])
    del records[key(5)]
    assert list(base.every_record()) == sorted(records.items())
    assert base.records(key(3), key(4), 1, [], reverse=False) == [(key(3), b"new")]


def test_clearing_a_range_leaves_what_is_outside_of_it(base: Base) -> None:
    records = filled(base)
    rest = key(3)
    while rest < key(COUNT - 2):
        rest = base.clear(rest, key(COUNT - 2), 2)
    left = [*range(3), COUNT - 2, COUNT - 1]
    assert list(base.every_record()) == [(key(number), records[key(number)]) for number in left]
    assert base.count == 5


def test_deletions_write_little_at_once(base: Base) -> None:
    filled(base, 400)
    written: list[int] = []
    carry_out = rewriting.Rewriting.carry_out

    def noted(self: rewriting.Rewriting, *others: object) -> None:
        written.append(self.put_bytes)
        carry_out(self, *others)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rewriting.Rewriting, "carry_out", noted)
        base.write([(key(number), None) for number in range(0, 400, 10)])
    assert base.count == 360
    assert len(written) > 1
    assert max(written) <= 1 << 18


def test_a_damaged_bundle_is_an_error_for_every_way_to_read_it(tmp_path: Path) -> None:
    path = tmp_path / "records.mdb"
    base = Base(FileOps(), path, create=True)
    records = [(key(number), value(number)) for number in range(8)]
    base.write([*records[:4], (key(4), b"find me" * 500), *records[5:]])
    base.write([(b"good", b"some value")])
    base.close()
    path.write_bytes(path.read_bytes().replace(b"find me", b"find Me", 1))
    base = Base(FileOps(), path)
    assert base.get(b"good") == b"some value"
    for number in range(8):
        with pytest.raises(StoreDamaged, match="checksum of record"):
            base.get(key(number))
        with pytest.raises(StoreDamaged, match="checksum of record"):
            base.stretch(key(number), key(9), 1, 1)
    for reverse in (False, True):
        with pytest.raises(StoreDamaged, match="openmsmq store check"):
            base.records(b"", b"z", 10, [], reverse=reverse)
    assert list(base.every_record()) == [(key(7), None), (b"good", b"some value")]
    base.close()


@pytest.mark.parametrize("reverse", [False, True])
def test_emptying_a_queue_steps_over_each_deleted_record_once(base: Base, reverse: bool) -> None:
    count, limit = 2_000, 10
    records = [(key(number), value(number, 400)) for number in range(count)]
    base.write(records)
    assert len(bundled(base)) > 10
    asked = 0

    class Counting(set[bytes]):
        def __contains__(self, name: object) -> bool:
            nonlocal asked
            asked += 1
            return super().__contains__(name)

    hidden = Counting()
    wanted = records[::-1] if reverse else records
    for place in range(0, count, limit):
        found = base.records(b"", b"Z", limit, [hidden], reverse=reverse)
        assert found == wanted[place : place + limit]
        hidden.update(name for name, _ in found)
    assert base.records(b"", b"Z", limit, [hidden], reverse=reverse) == []
    assert asked < 10 * count
