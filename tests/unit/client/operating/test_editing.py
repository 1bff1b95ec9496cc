"""What is different between two messages is told, and no longer than people read."""

from __future__ import annotations

from openmsmq.client.messages.outgoing import OutgoingMessage
from openmsmq.client.operating.editing import (
    BODY_COMPARED_CHARACTERS,
    BODY_DIFFERENCE_LINES_COUNT,
    body_difference,
    differences,
    text_of,
)
from openmsmq.model.message import BodyType


def test_what_is_alike_is_no_difference() -> None:
    before = OutgoingMessage(label="a", priority=3)
    after = OutgoingMessage(label="b", priority=3)
    (only,) = differences(before, after)
    assert (only.name, only.before, only.after) == ("label", "a", "b")
    assert differences(before, before) == []


def test_bodies_are_compared_line_by_line() -> None:
    lines = body_difference("a\nb\nc\nd\ne", "a\nb\nX\nd\ne")
    assert lines == ["@@ -2,3 +2,3 @@", " b", "-c", "+X", " d"]


def test_a_long_difference_is_cut_and_a_long_body_not_compared() -> None:
    many = "\n".join(str(number) for number in range(BODY_DIFFERENCE_LINES_COUNT))
    assert len(body_difference(many, "")) == BODY_DIFFERENCE_LINES_COUNT
    half = "x" * (BODY_COMPARED_CHARACTERS // 2)
    assert body_difference(half, half[:-1]) != []
    assert body_difference(half, half + "y") == []


def test_a_body_is_text_if_it_says_so_or_is_utf_8() -> None:
    def text(body: object, body_type: int | None = None) -> str | None:
        return text_of(OutgoingMessage(body=body, body_type=body_type))

    assert text("tea") == "tea"
    assert text("tea".encode("utf-16-le"), BodyType.TEXT) == "tea"
    assert text("ü\n".encode()) == "ü\n"
    assert text(b"\x00\x01") is None
    assert text(b"\xff") is None
    assert text(b"\x00", BodyType.TEXT) is None
    assert text(7) is None
