"""Which batch is new, which comes again, and which cannot be told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.batches import BatchMark, Succession, succession

marks = st.builds(
    BatchMark,
    st.integers(0, 5),
    checkpoint=st.sampled_from(("", "a", "b")),
    row_count=st.integers(-1, 3),
    end=st.sampled_from(("", "x", "y")),
)
SAME_NUMBER = (Succession.AGAIN, Succession.GROWN, Succession.MOVED)


@given(marks, marks)
def test_only_the_last_batch_of_its_own_checkpoint_is_taken_for_a_repetition(
    last: BatchMark, batch: BatchMark
) -> None:
    found = succession(last, batch)
    is_own = last.checkpoint in ("", batch.checkpoint)
    is_last = is_own and batch.batch == last.batch
    assert (found is Succession.FOREIGN) is not is_own
    assert (found in SAME_NUMBER) is is_last
    assert (found is Succession.NEXT) is (is_own and batch.batch > last.batch)


@given(marks, st.integers(-1, 3))
def test_a_repetition_whose_end_is_not_known_has_no_more_rows_than_were_written(
    last: BatchMark, row_count: int
) -> None:
    again = BatchMark(last.batch, last.checkpoint, row_count)
    grew = last.row_count != -1 and row_count > last.row_count
    assert succession(last, again) is (Succession.GROWN if grew else Succession.AGAIN)


@given(marks, st.integers(-1, 3))
def test_a_repetition_ends_where_the_last_batch_ended_whatever_its_rows_are(
    last: BatchMark, row_count: int
) -> None:
    last = BatchMark(last.batch, last.checkpoint, last.row_count, "here")
    for end in ("here", "elsewhere"):
        again = BatchMark(last.batch, last.checkpoint, row_count, end)
        is_same = end == "here" or row_count == last.row_count == 0
        assert succession(last, again) is (Succession.AGAIN if is_same else Succession.MOVED)


@given(marks)
def test_before_the_first_batch_each_is_the_next(batch: BatchMark) -> None:
    assert succession(None, batch) is Succession.NEXT
