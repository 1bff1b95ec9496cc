"""Messages by the column are those that their rows would be one by one."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.api.framing import encode_frame
from openmsmq.client.context import ClientContext
from openmsmq.client.formatters import DEFAULT_FORMATTER, XmlFormatter
from openmsmq.client.messages.columns import BodyColumn
from openmsmq.client.messages.outgoing import LabelledBody
from openmsmq.client.queue import QueueHandle
from openmsmq.client.steps import Ahead, Collect, VerbRun
from openmsmq.client.verbs import queue as queue_verbs
from openmsmq.client.verbs.queue import SEND_MAX_BYTES, SEND_MAX_COUNT
from openmsmq.model.errors import LabelTooLong
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.limits import LABEL_MAX_CHARACTERS

MANAGER = Guid(bytes(range(16)))
WELCOME = api.Welcome(1, "OpenMSMQ", "ALPHA", bytes(MANAGER))
OPENED = api.Opened(5, r"private$\q", r"DIRECT=OS:ALPHA\PRIVATE$\q", r"OS:ALPHA\PRIVATE$\q", False)
FRAME_HEAD_BYTES = 4


def column(bodies: list[bytes], labels: list[str] | None = None, skipped: int = 0) -> BodyColumn:
    """Make a column; before its first body stand some bytes of others."""
    ends = list(accumulate(map(len, bodies), initial=skipped))
    data = memoryview(bytes(skipped) + b"".join(bodies))
    if labels is None:
        return BodyColumn(data, ends)
    label_ends = list(accumulate(map(len, labels), initial=0))
    return BodyColumn(data, ends, "".join(labels).encode("ascii"), label_ends)


def sent(bodies: Any, formatter: Any = DEFAULT_FORMATTER, **options: Any) -> list[list[bytes]]:
    """Return the packets of each call that `send_many` makes, as they come to a queue manager."""
    context = ClientContext()
    context.connected(WELCOME)
    run = VerbRun(
        lambda: queue_verbs.send_many(
            QueueHandle(context, r"private$\q", formatter), bodies, **options
        )
    )
    decoder = msgspec.msgpack.Decoder(api.Call)
    run.start()
    calls: list[list[bytes]] = []
    step: Any = run.answered(OPENED)
    while step is not None:
        if isinstance(step, Ahead):
            frame = encode_frame(api.Call(1, step.request))
            request = decoder.decode(frame[FRAME_HEAD_BYTES:]).request
            assert isinstance(request, api.Send)
            assert request.handle == OPENED.handle
            calls.append(request.packets)
            step = run.answered(len(calls) - 1)
        else:
            assert isinstance(step, Collect)
            step = run.answered(api.Sent(list(range(len(calls[step.call]))), 0))
    assert len(run.result) == sum(map(len, calls))
    assert all(isinstance(each, MessageId) for each in run.result)
    return calls


def joined(calls: list[list[bytes]]) -> list[bytes]:
    return list(chain.from_iterable(calls))


ASCII = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=5)
LENGTHS = st.sampled_from([0, 1, 3, 4, 300, 70_000])


@given(st.lists(st.tuples(LENGTHS, ASCII), max_size=12), st.booleans(), st.integers(0, 3))
def test_a_column_is_sent_as_its_rows_would_be(
    rows: list[tuple[int, str]], has_labels: bool, skipped: int
) -> None:
    bodies = [bytes([place]) * length for place, (length, _) in enumerate(rows)]
    labels = [label for _, label in rows]
    if has_labels:
        whole = column(bodies, labels, skipped)
        single: list[Any] = list(map(LabelledBody, bodies, labels))
    else:
        whole = column(bodies, None, skipped)
        single = list(bodies)
    assert list(whole) == single
    assert joined(sent(whole)) == joined(sent(single))


@given(st.lists(st.tuples(LENGTHS, ASCII), min_size=1, max_size=12), st.data())
def test_a_part_of_a_column_has_the_messages_between_two_places(
    rows: list[tuple[int, str]], data: st.DataObject
) -> None:
    bodies = [bytes([place]) * length for place, (length, _) in enumerate(rows)]
    labels = [label for _, label in rows]
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    part = column(bodies, labels).between(start, stop)
    assert len(part) == stop - start
    assert list(part) == list(map(LabelledBody, bodies[start:stop], labels[start:stop]))
    assert joined(sent(part)) == joined(sent(list(part)))


def test_calls_have_so_many_messages_or_bytes_and_no_more() -> None:
    calls = sent(column([b"x"] * (2 * SEND_MAX_COUNT + 1)))
    assert list(map(len, calls)) == [SEND_MAX_COUNT, SEND_MAX_COUNT, 1]
    length = SEND_MAX_BYTES // 4
    assert list(map(len, sent(column([bytes(length)] * 9)))) == [4, 4, 1]


def test_more_lengths_than_are_remembered_are_sent_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("openmsmq.client.messages.columns._KNOWN_MAX_COUNT", 2)
    bodies = [bytes(length % 5) for length in range(20)]
    assert joined(sent(column(bodies))) == joined(sent(list(bodies)))


def test_what_the_column_does_not_say_is_as_the_options_say() -> None:
    """A formatter with other ideas of bytes, and a label that is the same for all."""
    bodies = [b"1", b"2"]
    for options in ({"label": "both"}, {"application_tag": 7}, {"extension": b"more"}):
        assert sent(column(bodies), **options) == sent(bodies, **options)
        labelled = column(bodies, ["a", "b"])
        assert sent(labelled, **options) == sent(list(labelled), **options)
    assert sent(column(bodies), XmlFormatter()) == sent(bodies, XmlFormatter())


def test_a_label_that_no_message_can_have_is_refused_as_in_a_row() -> None:
    label = "x" * (LABEL_MAX_CHARACTERS + 1)
    for messages in (column([b""], [label]), [LabelledBody(b"", label)]):
        with pytest.raises(LabelTooLong):
            sent(messages)
