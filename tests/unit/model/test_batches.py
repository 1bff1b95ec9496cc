"""Which batch is new, which comes again, and which cannot be told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.batches import Succession, succession

checkpoints = st.sampled_from(("", "a", "b"))
numbers = st.integers(0, 5)


@given(numbers, checkpoints, numbers, checkpoints)
def test_only_the_last_batch_of_its_own_checkpoint_is_taken_for_a_repetition(
    last: int, last_checkpoint: str, batch: int, checkpoint: str
) -> None:
    found = succession(last, last_checkpoint, batch, checkpoint)
    is_own = last_checkpoint in ("", checkpoint)
    assert (found is Succession.FOREIGN) is not is_own
    assert (found is Succession.AGAIN) is (is_own and batch == last)
    assert (found is Succession.NEXT) is (is_own and batch > last)


@given(checkpoints, numbers, checkpoints)
def test_before_the_first_batch_each_is_the_next(
    last_checkpoint: str, batch: int, checkpoint: str
) -> None:
    assert succession(-1, last_checkpoint, batch, checkpoint) is Succession.NEXT
