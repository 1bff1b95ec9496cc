"""Questions to a directory, beside an answer that is found by going through all of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.directory import questions
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.questions import (
    Comparison,
    Condition,
    SortKey,
    only,
    read_condition,
    read_each,
    read_first,
)
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueuePrivacy, QueueProperties
from openmsmq.model.topology import QueueManagerInfo

OWNER = Guid(b"who owns queues!")


def queue(number: int, **said: Any) -> QueueProperties:
    return QueueProperties(
        identifier=Guid(bytes([number]) * 16),
        path_name=rf"OWNER\q{number}",
        kind=QueueKind.PUBLIC,
        manager=OWNER,
        **said,
    )


queues = st.lists(
    st.builds(
        dict,
        label=st.sampled_from(["", "orders", "Orders", "other"]),
        quota_kb=st.integers(0, 3),
        transactional=st.booleans(),
    ),
    max_size=8,
).map(lambda all_: [queue(number, **said) for number, said in enumerate(all_)])

WORDS = ["EQUALS", "NOT_EQUALS", "LESS", "GREATER", "AT_MOST", "AT_LEAST"]
conditions = st.lists(
    st.tuples(st.just("quota_kb"), st.sampled_from(WORDS), st.integers(0, 3))
    | st.tuples(st.just("label"), st.sampled_from(WORDS), st.sampled_from(["", "ORDERS", "p"]))
    | st.tuples(st.just("transactional"), st.sampled_from(WORDS[:2]), st.booleans()),
    max_size=3,
)


def meets(found: QueueProperties, attribute: str, word: str, wanted: Any) -> bool:
    left: Any = getattr(found, attribute)
    if isinstance(left, str):
        left, wanted = left.lower(), wanted.lower()
    if word == "EQUALS":
        return bool(left == wanted)
    if word == "NOT_EQUALS":
        return bool(left != wanted)
    if word in ("AT_MOST", "AT_LEAST") and left == wanted:
        return True
    return bool(left < wanted) if word in ("LESS", "AT_MOST") else bool(left > wanted)


def asked(said: list[tuple[str, str, Any]]) -> list[Condition]:
    return [Condition(name, Comparison[word], value) for name, word, value in said]


@pytest.mark.spec(
    "MQDMPR-3.1.7.1.20-01",
    "MQDMPR-3.1.7.1.20-02",
    "MQDMPR-3.1.7.1.20-03",
    "MQDMPR-3.1.7.1.20-05",
    "MQDMPR-3.1.7.1.21-01",
    "MQDMPR-3.1.7.1.21-02",
    "MQDMPR-3.1.7.1.21-03",
    "MQBR-3.1.5.9-01",
)
@given(queues, conditions)
def test_an_answer_has_what_meets_all_conditions_and_nothing_else(
    all_: list[QueueProperties], said: list[tuple[str, str, Any]]
) -> None:
    """Without a condition it has all; of other kinds of objects it has none."""
    image = DirectoryImage([*all_, QueueManagerInfo(identifier=OWNER, computer_name="OWNER")])
    expected = [one for one in all_ if all(meets(one, *condition) for condition in said)]
    assert list(read_each(image, ObjectKind.QUEUE, asked(said))) == expected
    first = read_first(image, ObjectKind.QUEUE, asked(said))
    assert first == (expected[0] if expected else None)
    assert list(read_each(image, ObjectKind.SITE)) == []


@pytest.mark.spec("MQDMPR-3.1.7.1.22-01", "MQDMPR-3.1.7.1.23-01", "MQDMPR-3.1.1.17-01")
@given(queues, st.booleans())
def test_an_answer_is_read_one_by_one_in_its_order_until_it_is_left(
    all_: list[QueueProperties], descending: bool
) -> None:
    image = DirectoryImage(all_)
    order = [SortKey("label"), SortKey("quota_kb", descending)]
    expected = sorted(
        all_,
        key=lambda one: (
            one.label.lower(),
            -one.quota_kb if descending else one.quota_kb,
            one.identifier,
        ),
    )
    if descending:
        # Those alike in both keys keep the order of their identifiers among themselves.
        assert [
            (one.label.lower(), one.quota_kb)
            for one in read_each(image, ObjectKind.QUEUE, order=order)  # type: ignore[union-attr]
        ] == [(one.label.lower(), one.quota_kb) for one in expected]
    else:
        assert list(read_each(image, ObjectKind.QUEUE, order=order)) == expected
    reading = read_each(image, ObjectKind.QUEUE)
    image = image.changed([Removal(ObjectKind.QUEUE, one.identifier) for one in all_])
    if all_:
        assert next(reading) == all_[0], "the answer is that of the moment of the question"
    reading.close()
    assert next(reading, None) is None
    assert read_first(image, ObjectKind.QUEUE) is None


@pytest.mark.spec("MQDMPR-3.1.7.1.20-04", "MQDMPR-3.1.7.1.21-04")
def test_of_an_answer_for_some_properties_nothing_else_can_be_used() -> None:
    found = read_first(DirectoryImage([queue(1, label="orders")]), ObjectKind.QUEUE)
    assert found is not None
    assert only(found, ["label", "quota_kb"]) == {"label": "orders", "quota_kb": 0xFFFF_FFFF}
    assert only(found, []) == {}


def test_what_has_no_value_is_neither_more_nor_less_and_comes_first() -> None:
    with_address = queue(1, multicast_address="234.1.1.1:8001")
    image = DirectoryImage([with_address, queue(2)])
    for comparison in (Comparison.LESS, Comparison.AT_LEAST):
        condition = Condition("multicast_address", comparison, "1")
        assert queue(2) not in list(read_each(image, ObjectKind.QUEUE, [condition]))
    by_address = read_each(image, ObjectKind.QUEUE, order=[SortKey("multicast_address")])
    assert list(by_address) == [queue(2), with_address]


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("quota_kb>=100", Condition("quota_kb", Comparison.AT_LEAST, 100)),
        ("quota_kb <= 0x", None),
        (" label = a <= b ", Condition("label", Comparison.EQUALS, "a <= b")),
        ("label!=a=b", Condition("label", Comparison.NOT_EQUALS, "a=b")),
        ("label =", Condition("label", Comparison.EQUALS, "")),
        ("transactional = No", Condition("transactional", Comparison.EQUALS, False)),
        ("transactional = maybe", None),
        ("privacy = body", Condition("privacy", Comparison.EQUALS, QueuePrivacy.BODY)),
        ("privacy < 2", Condition("privacy", Comparison.LESS, QueuePrivacy.BODY)),
        (f"manager = {OWNER}", Condition("manager", Comparison.EQUALS, OWNER)),
        ("manager = OWNER", None),
        ("security_descriptor = x", None),
        ("colour = red", None),
        ("label", None),
        ("", None),
    ],
)
def test_a_condition_is_read_or_refused(text: str, condition: Condition | None) -> None:
    if condition is None:
        with pytest.raises(InvalidParameter):
            read_condition(ObjectKind.QUEUE, text)
    else:
        assert read_condition(ObjectKind.QUEUE, text) == condition


def test_questions_have_their_bounds() -> None:
    image = DirectoryImage([queue(1)])
    one = Condition("quota_kb", Comparison.AT_LEAST, 0)
    limit = questions.CONDITIONS_MAX_COUNT
    assert list(read_each(image, ObjectKind.QUEUE, [one] * limit))
    with pytest.raises(InvalidParameter, match="at most 16"):
        read_each(image, ObjectKind.QUEUE, [one] * (limit + 1))
    with pytest.raises(InvalidParameter, match="sorted by lists"):
        read_each(image, ObjectKind.MANAGER, order=[SortKey("sites")])
    with pytest.raises(InvalidParameter, match="no property"):
        read_each(image, ObjectKind.QUEUE, [Condition("colour", Comparison.EQUALS, 1)])
