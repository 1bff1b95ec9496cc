"""An entry's life: each pair of the table, runs of entries, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.manager.queues.entries import (
    IN_TRANSIT,
    TRANSITIONS,
    Entries,
    EntryEvent,
    EntryState,
)
from openmsmq.manager.turn.defects import Defect
from openmsmq.manager.turn.passage import Passage
from openmsmq.model.message import MessageClass

PURGED: Final = MessageClass.NACK_QUEUE_PURGED
HOLDER: Final = 5
QUEUE: Final = r"private$\orders"

# Written from what the entries are for, not from the table.
ORACLE: Final = {
    "gone": {"place": "arriving"},
    "arriving": {"arrive": "available", "withdraw": "gone", "remove": "recalled"},
    "available": {"hold": "held", "finish": "finished", "remove": "leaving"},
    "held": {
        "release": "available",
        "doom": "doomed",
        "finish": "finished",
        "remove": "leaving",
    },
    "doomed": {
        "doom": "doomed",
        "reprieve": "held",
        "finish": "finished",
        "remove": "leaving",
    },
    "finished": {"finish": "finished", "remove": "leaving"},
    "leaving": {"go": "gone", "stay": "available"},
    "recalled": {"arrive": "leaving", "stay": "arriving"},
}

PATHS: Final = {
    "arriving": ["place"],
    "available": ["place", "arrive"],
    "held": ["place", "arrive", "hold"],
    "doomed": ["place", "arrive", "hold", "doom"],
    "finished": ["place", "arrive", "finish"],
    "leaving": ["place", "arrive", "remove"],
    "recalled": ["place", "remove"],
}

VERBS: Final[dict[str, Callable[[Entries, list[int]], object]]] = {
    "place": lambda entries, ids: entries.place(ids),
    "arrive": lambda entries, ids: entries.arrive(ids),
    "withdraw": lambda entries, ids: entries.withdraw(ids),
    "hold": lambda entries, ids: entries.hold(ids, HOLDER),
    "release": lambda entries, ids: [entries.release(each) for each in ids],
    "doom": lambda entries, ids: entries.doom(ids, PURGED),
    "reprieve": lambda entries, ids: [entries.reprieve(each) for each in ids],
    "finish": lambda entries, ids: entries.finish(ids),
    "remove": lambda entries, ids: entries.remove(ids),
    "go": lambda entries, ids: entries.gone(ids),
    "stay": lambda entries, ids: entries.stay(ids, {}),
}

states = st.sampled_from(sorted(PATHS))
events = st.sampled_from([event.value for event in EntryEvent])


def entries_in(found: list[str]) -> Entries:
    """Return entries 0, 1, 2 ... that have come to certain states."""
    entries = Entries(QUEUE, Passage())
    for lookup_id, state in enumerate(found):
        for event in PATHS[state]:
            VERBS[event](entries, [lookup_id])
    return entries


@given(st.sampled_from(list(EntryState)), st.sampled_from(list(EntryEvent)))
def test_the_table_has_every_pair_that_may_be_and_no_other(
    state: EntryState, event: EntryEvent
) -> None:
    found = TRANSITIONS.get((state, event))
    assert (None if found is None else found.value) == ORACLE[state.value].get(event.value)


@given(states, events)
def test_an_entry_goes_where_the_table_says_or_not_at_all(state: str, event: str) -> None:
    entries = entries_in([state])
    assert entries.state(0).value == state
    target = ORACLE[state].get(event)
    if state == "available" and event == "place":
        # Without the store nobody can tell an available entry from one that is not there.
        target = "arriving"
    if target is None:
        with pytest.raises(Defect, match=rf"lookup id 0 in .*orders is {state}, .* '{event}'"):
            VERBS[event](entries, [0])
        return
    VERBS[event](entries, [0])
    # What is gone is noted nowhere, as what is available.
    assert entries.state(0).value == ("available" if target == "gone" else target)


@given(st.lists(states, min_size=1, max_size=6), events)
def test_one_entry_that_is_elsewhere_is_noticed_in_a_run(found: list[str], event: str) -> None:
    legal = all(
        event in ORACLE[state] or (state, event) == ("available", "place") for state in found
    )
    entries = entries_in(found)
    if legal:
        VERBS[event](entries, list(range(len(found))))
    else:
        with pytest.raises(Defect):
            VERBS[event](entries, list(range(len(found))))


@given(st.lists(states.filter(lambda state: "remove" in ORACLE[state]), min_size=1, max_size=8))
def test_a_removal_that_the_disk_refuses_leaves_everything_as_it_was(found: list[str]) -> None:
    entries = entries_in(found)
    lookup_ids = list(range(len(found)))
    held, arriving = dict(entries.held), set(entries.arriving)
    before = entries.remove(lookup_ids)
    assert all(map(entries.is_leaving, lookup_ids))
    available = entries.stay(lookup_ids, before)
    assert [entries.state(each).value for each in lookup_ids] == found
    assert (entries.held, entries.arriving) == (held, arriving)
    assert available == [each for each in lookup_ids if found[each] == "available"]
    doomed = [each for each in lookup_ids if entries.doom_of(each) is PURGED]
    assert doomed == [each for each in lookup_ids if found[each] == "doomed"]


@given(st.lists(st.sampled_from(["held", "doomed"]), max_size=8))
def test_a_purge_that_the_disk_refuses_dooms_nothing_new(found: list[str]) -> None:
    entries = entries_in(found)
    lookup_ids = list(range(len(found)))
    before = entries.doom(lookup_ids, MessageClass.NACK_QUEUE_DELETED)
    assert {entries.state(each) for each in lookup_ids} <= {EntryState.DOOMED}
    entries.undo_doom(lookup_ids, before)
    assert [entries.state(each).value for each in lookup_ids] == found
    assert all(entries.doom_of(each) in (None, PURGED) for each in lookup_ids)


def test_what_was_given_back_meanwhile_is_not_doomed_and_stays_so() -> None:
    entries = entries_in(["held"])
    before = entries.doom([0], PURGED)
    entries.free([0])
    entries.undo_doom([0], before)
    assert entries.state(0) is EntryState.AVAILABLE


@given(st.lists(states, max_size=8))
def test_whoever_has_an_entry_can_lose_it_and_nothing_else_changes(found: list[str]) -> None:
    entries = entries_in(found)
    entries.free(range(len(found)))
    after = ["available" if state in ("held", "doomed") else state for state in found]
    assert [entries.state(each).value for each in range(len(found))] == after


@given(st.lists(states, max_size=8))
def test_entries_that_may_be_seen_again_are_known(found: list[str]) -> None:
    entries = entries_in(found)
    wanted = [place for place, state in enumerate(found) if state in ("held", "doomed", "finished")]
    assert sorted(entries.may_return()) == wanted
    leaving = [place for place, state in enumerate(found) if entries.is_leaving(place)]
    hidden = ("finished", "leaving", "recalled")
    assert leaving == [place for place, state in enumerate(found) if state in hidden]


def test_available_entries_cost_nothing() -> None:
    entries = entries_in(["available"] * 100)
    assert not entries.held
    assert not entries.arriving


def test_a_range_leaves_as_a_whole_and_no_two_that_overlap() -> None:
    entries = Entries(QUEUE, Passage())
    entries.remove_range((10, 20))
    assert entries.state(3 << 56 | 15) is EntryState.LEAVING
    assert entries.state(20) is EntryState.AVAILABLE
    with pytest.raises(Defect, match="is leaving"):
        entries.remove_range((19, 25))
    with pytest.raises(Defect, match="is leaving"):
        entries.remove([12])
    entries.remove([20])
    entries.range_gone((10, 20))
    with pytest.raises(Defect):
        entries.range_gone((10, 20))


def test_who_has_an_entry_is_asked_by_name() -> None:
    entries = entries_in(["held", "available"])
    entries.hold([1], IN_TRANSIT)
    assert entries.is_held_by(0, HOLDER)
    assert entries.is_held_by(1, IN_TRANSIT)
    assert not entries.is_held_by(0, IN_TRANSIT)
