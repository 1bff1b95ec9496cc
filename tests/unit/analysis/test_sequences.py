"""What messages and order acknowledgments show of a sequence."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.analysis.sequences import Sequence


def test_messages_that_are_missing_are_noticed_and_the_first_number_is_free():
    sequence: Sequence[str] = Sequence()
    assert sequence.sent(5, 4) is None
    assert sequence.sent(6, 5) is None
    assert sequence.sent(9, 8) == 6
    # Numbers may be left out, and what comes late is behind nothing.
    assert sequence.sent(12, 9) is None
    assert sequence.sent(7, 6) is None


def test_an_order_acknowledgment_that_goes_back_is_noticed():
    sequence: Sequence[str] = Sequence()
    assert [sequence.acknowledged(number) for number in (3, 3, 5, 4, 5)] == [
        None,
        None,
        None,
        5,
        None,
    ]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 20)), max_size=60))
def test_a_place_keeps_its_message_and_is_reached_once(steps):
    sequence: Sequence[int] = Sequence()
    placed: dict[int, int] = {}
    reached: list[int] = []
    for step, (is_message, number) in enumerate(steps):
        if is_message:
            assert sequence.place(number, step) == placed.setdefault(number, step)
        else:
            found = sequence.take_up_to(number)
            assert all(placed[place] == message and place <= number for place, message in found)
            reached += [place for place, _ in found]
            assert {place for place in placed if place <= number} <= set(reached)
    assert len(reached) == len(set(reached))
