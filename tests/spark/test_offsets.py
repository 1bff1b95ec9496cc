"""Offsets survive the checkpoint, and say when the messages behind them are gone."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api.messages import Epoch, QueueStatus
from openmsmq.spark.errors import DataLost
from openmsmq.spark.source.offsets import (
    Reached,
    Spot,
    data_lost,
    from_offset,
    problem_with,
    to_offset,
)

numbers = st.integers(0, (1 << 56) - 1)
identities = st.binary(min_size=16, max_size=16).map(bytes.hex)
spots = st.builds(
    Spot,
    address=st.text(),
    queue=st.text(),
    identity=identities,
    next=numbers,
    begin=st.none() | numbers,
    manager=identities,
    epoch=st.text(),
)
IDENTITY = bytes(range(16))
LIVES = [Epoch("first", 10), Epoch("second", 40), Epoch("third", 60)]


def status(last: int = 100, identifier: bytes = IDENTITY) -> QueueStatus:
    return QueueStatus(
        r"private$\a", "DIRECT=OS:A\\private$\\a", identifier, False, False, 0, 0, "", False, 0,
        *(0, 0, 0, 0, 0, 0, 0, 0), last,
    )  # fmt: skip


def spot(place: int, epoch: str = "") -> Spot:
    return Spot("a", r"private$\a", IDENTITY.hex(), place, manager="11" * 16, epoch=epoch)


@given(st.lists(spots, unique_by=lambda spot: spot.key), st.text(), st.booleans())
def test_an_offset_survives_the_checkpoint(
    known: list[Spot], checkpoint: str, is_new: bool
) -> None:
    written = json.loads(json.dumps(to_offset(known, checkpoint, is_new=is_new)))
    expected = {spot.key: spot for spot in known}
    assert from_offset(written) == Reached(expected, checkpoint, is_new and bool(checkpoint))


def test_an_offset_of_an_older_version_is_read() -> None:
    old = {"a\\b": {"qm": "a", "queue": "b", "identity": "00", "next": 7}}
    assert from_offset(old) == Reached({"a\\b": Spot("a", "b", "00", 7)})
    assert to_offset([Spot("a", "b", "00", 7)]) == old


def test_a_checkpoint_without_a_word_of_its_own_always_gets_the_same() -> None:
    first = Reached({"k": spot(7)})
    assert first.query == Reached({"k": spot(7)}).query
    assert first.query != Reached({"k": spot(8)}).query
    assert Reached({"k": spot(7)}, "its own").query == "its own"


def test_a_queue_has_the_same_name_in_an_offset_however_it_is_reached() -> None:
    here = spot(7)
    assert msgspec.structs.replace(here, address="b:1802").key == here.key
    assert msgspec.structs.replace(here, manager="22" * 16).key != here.key


@pytest.mark.parametrize(
    "offset",
    [
        {"k": {"qm": "a", "queue": "b", "identity": "00"}},
        {"k": {"qm": "a", "queue": "b", "identity": "00", "next": "x"}},
        {"k": 7},
        {"checkpoint": 7},
        [],
    ],
)
def test_an_offset_that_makes_no_sense_is_refused_with_what_to_do(offset: object) -> None:
    with pytest.raises(DataLost, match="use the version that wrote it, or a new checkpoint"):
        from_offset(offset)  # type: ignore[arg-type]


def test_a_queue_that_is_the_same_and_has_come_as_far_is_no_problem() -> None:
    for place in (0, 50, 101):
        assert problem_with(spot(place), status(), []) is None


def test_a_queue_that_was_made_again_is_noticed() -> None:
    problem = problem_with(spot(50), status(identifier=bytes(16)), [])
    assert problem == r"queue private$\a at a was deleted and made again since"


def test_an_older_copy_of_a_store_is_noticed() -> None:
    problem = problem_with(spot(102), status(), [])
    assert problem is not None
    assert "has given out only 100: its store was replaced" in problem


@pytest.mark.parametrize(
    ("place", "epoch", "is_good"),
    [
        (39, "first", True),
        (40, "first", True),
        (41, "first", False),
        (60, "second", True),
        (61, "second", False),
        (101, "third", True),
        (61, "lost", False),
        (11, "lost", False),
        (10, "forgotten", True),
        (61, "", True),
    ],
)
def test_an_older_copy_of_a_store_is_noticed_when_it_has_caught_up(
    place: int, epoch: str, is_good: bool
) -> None:
    """A place is good in the lives of the queue manager that the store remembers."""
    problem = problem_with(spot(place, epoch), status(), LIVES)
    assert (problem is None) == is_good


def test_the_error_for_lost_messages_names_both_ways_out() -> None:
    text = str(data_lost("it is gone"))
    assert text.startswith("it is gone. ")
    assert "failOnDataLoss=false" in text
    assert "a new checkpointLocation and a new output" in text
