"""Where in a range the base alone says what is there."""

from __future__ import annotations

import pytest

from openmsmq.storage.memtable import Memtable


@pytest.fixture
def memtable() -> Memtable:
    return Memtable(lambda _: True)


def test_what_is_young_ends_it(memtable: Memtable) -> None:
    assert memtable.untouched(b"b", b"x") == b"x"
    memtable.apply([(b"d", b"young")])
    memtable.apply_volatile([(b"f", b"express")])
    assert memtable.untouched(b"b", b"x") == b"d"
    assert memtable.untouched(b"d", b"x") == b"d"
    assert memtable.untouched(b"e", b"x") == b"f"
    assert memtable.untouched(b"g", b"x") == b"x"


def test_what_is_gone_ends_it_and_inside_there_is_nothing(memtable: Memtable) -> None:
    memtable.delete_range(b"d", b"f")
    memtable.delete_range(b"m", b"p")
    assert memtable.untouched(b"b", b"x") == b"d"
    assert memtable.untouched(b"b", b"c") == b"c"
    assert memtable.untouched(b"d", b"x") == b"d"
    assert memtable.untouched(b"e", b"x") == b"e"
    assert memtable.untouched(b"f", b"x") == b"m"
    assert memtable.untouched(b"p", b"x") == b"x"


def test_a_deletion_leaves_nothing_until_it_was_moved(memtable: Memtable) -> None:
    memtable.apply([(b"d", None)])
    assert memtable.untouched(b"m", b"x") == b"m"
    memtable.seal()
    assert memtable.untouched(b"m", b"x") == b"m"
    changes, place = memtable.next_slice(1 << 20)
    memtable.moved(changes, place)
    assert memtable.untouched(b"m", b"x") == b"x"
