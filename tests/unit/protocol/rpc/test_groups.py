"""Connections of one client share what its calls have opened, and nobody else keeps it alive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.rpc.groups import GroupEnded, Groups
from openmsmq.security.access.callers import Caller, anonymous

ALICE, BOB = anonymous("a"), anonymous("b")


def test_what_a_caller_has_ends_with_its_last_connection() -> None:
    groups = Groups()
    number = groups.join(1, 0)
    assert number is not None
    groups.seen(1, ALICE)
    assert groups.join(2, number) == number
    groups.seen(2, ALICE)
    assert groups.left(1) == []
    assert groups.left(2) == [GroupEnded(number, ALICE)]


def test_a_stranger_in_a_group_keeps_nothing_alive() -> None:
    groups = Groups()
    number = groups.join(1, 0)
    assert number is not None
    groups.seen(1, ALICE)
    groups.join(2, number)
    groups.seen(2, BOB)
    assert groups.left(1) == [GroupEnded(number, ALICE)]
    assert groups.left(2) == [GroupEnded(number, BOB)]


def test_a_number_is_never_given_twice_and_one_that_has_ended_is_unknown() -> None:
    groups = Groups()
    first = groups.join(1, 0)
    groups.left(1)
    assert first is not None
    assert groups.join(2, first) is None
    assert groups.join(2, 0) not in (None, first)


def test_a_connection_in_no_group_leaves_nothing() -> None:
    assert Groups().left(1) == []


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from([ALICE, BOB])), max_size=20))
def test_every_caller_ends_exactly_once(seen: list[tuple[int, Caller]]) -> None:
    groups = Groups()
    number = groups.join(1, 0)
    assert number is not None
    for connection in (2, 3, 4):
        groups.join(connection, number)
    for connection, caller in seen:
        groups.seen(connection, caller)
    ended = [each.caller for connection in (3, 1, 4, 2) for each in groups.left(connection)]
    assert sorted(map(str, ended)) == sorted({str(caller) for _, caller in seen})
    assert len(groups) == 0
