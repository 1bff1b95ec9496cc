"""The context of a trace in an extension: found where it is one, and never more than that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.client.formatters.nservicebus import read_headers, write_headers
from openmsmq.wire.trace_context import (
    EXTENSION_LOOKED_AT_MAX_BYTES,
    TRACESTATE_MAX_CHARACTERS,
    TraceContext,
    trace_context_in,
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NUMBERS = st.integers(1, (1 << 64) - 1)
STATES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=60)


def parent(trace: int, span: int, flags: int) -> str:
    return f"00-{trace:032x}-{span:016x}-{flags:02x}"


@given(NUMBERS, NUMBERS, st.integers(0, 255), STATES)
@example(1, 1, 0, "a&lt;=<b>&amp;'\"")
def test_a_context_is_found_as_it_was_written(
    trace: int, span: int, flags: int, state: str
) -> None:
    context = TraceContext(parent(trace, span, flags), state)
    extension = write_headers({"NServiceBus.MessageId": "7", **context.headers, "z": "<last>"})
    assert trace_context_in(extension) == context
    assert context.is_sampled == (flags % 2 == 1)
    assert read_headers(extension).items() >= context.headers.items()


def test_zeros_behind_the_headers_do_no_harm() -> None:
    assert trace_context_in(write_headers({"traceparent": PARENT}) + bytes(50)) is not None


@given(st.binary(max_size=2000))
def test_any_bytes_give_a_context_or_none(extension: bytes) -> None:
    trace_context_in(extension)
    found = trace_context_in(write_headers({"traceparent": PARENT})[:-20] + extension)
    assert found is not None
    assert found.traceparent == PARENT


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        PARENT.upper(),
        PARENT + "-01",
        PARENT[:-1],
        PARENT.replace("0af7", "0ag7"),
        "ff" + PARENT[2:],
        f"00-{0:032x}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{0:016x}-01",
        "\N{FULLWIDTH DIGIT ZERO}" + PARENT[1:],
        PARENT + "\n",
    ],
)
def test_what_is_not_exactly_a_context_is_none(wrong: str) -> None:
    assert trace_context_in(write_headers({"traceparent": wrong})) is None


def test_an_extension_of_another_kind_has_none_whatever_it_contains() -> None:
    inner = write_headers({"traceparent": PARENT}).partition(b"<HeaderInfo>")[2]
    assert trace_context_in(b"<Mine><HeaderInfo>" + inner) is None
    assert trace_context_in(b"") is None


def test_it_is_looked_for_at_the_beginning_only() -> None:
    def behind(size: int) -> bytes:
        return write_headers({"long": "x" * size, "traceparent": PARENT})

    frame = len(behind(0))
    assert trace_context_in(behind(EXTENSION_LOOKED_AT_MAX_BYTES - frame)) is not None
    assert trace_context_in(behind(EXTENSION_LOOKED_AT_MAX_BYTES)) is None


def test_a_state_that_is_too_long_or_no_ascii_is_left_out_and_the_rest_stays() -> None:
    for state, kept in (
        ("v=" + "x" * (TRACESTATE_MAX_CHARACTERS - 2), True),
        ("v=" + "x" * (TRACESTATE_MAX_CHARACTERS - 1), False),
        ("v=\N{LATIN SMALL LETTER E WITH ACUTE}", False),
    ):
        found = trace_context_in(write_headers({"traceparent": PARENT, "tracestate": state}))
        assert found == TraceContext(PARENT, state if kept else "")


def test_the_effort_does_not_grow_with_what_only_begins_like_one() -> None:
    lure = b"<Key>traceparent</Key>" + b" " * 31
    extension = b"<ArrayOfHeaderInfo>" + lure * (EXTENSION_LOOKED_AT_MAX_BYTES // len(lure))
    assert all(trace_context_in(extension) is None for _ in range(2_000))
