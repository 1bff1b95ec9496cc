"""The server's side of HTTP without I/O: requests of any pieces, answers in their order."""

from __future__ import annotations

import itertools
import re

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.runtime.http import heads
from openmsmq.runtime.http.answers import Answer, problem
from openmsmq.runtime.http.conversation import Conversation, Phase
from openmsmq.runtime.http.heads import Head, Request, known_head
from openmsmq.runtime.limits import (
    HTTP_HEAD_MAX_BYTES,
    HTTP_KNOWN_HEAD_MAX_BYTES,
    HTTP_KNOWN_HEADS_MAX_COUNT,
    HTTP_PIPELINED_MAX_COUNT,
)


def conversation(refused: frozenset[str] = frozenset()) -> Conversation:
    """Talk to somebody, and refuse some paths by their heads."""

    def judge(head: Head) -> Answer | None:
        return problem(403, "not this one") if head.target in refused else None

    return Conversation(judge, lambda: "now")


def post(number: int, body: bytes = b"", path: str = "", extra: str = "") -> bytes:
    path = path or f"/{number}"
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body


def statuses(data: bytes) -> list[int]:
    return [int(each) for each in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def fed(it: Conversation, data: bytes, cuts: list[int]) -> list[Request]:
    """Hand data in, cut into pieces."""
    found: list[Request] = []
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, stop in itertools.pairwise(places):
        found += it.received(data[start:stop])
    return found


@given(
    st.lists(st.binary(max_size=50), min_size=1, max_size=8),
    st.lists(st.integers(0, 900), max_size=8),
    st.randoms(use_true_random=False),
)
def test_requests_are_the_same_however_they_are_cut_and_answers_keep_their_order(
    bodies: list[bytes], cuts: list[int], chance: object
) -> None:
    it = conversation()
    data = b"".join(post(number, body) for number, body in enumerate(bodies))
    found = fed(it, data, cuts)
    assert [(each.head.target, each.body) for each in found] == [
        (f"/{number}", body) for number, body in enumerate(bodies)
    ]
    assert it.held_bytes == sum(map(len, bodies))
    order = list(found)
    chance.shuffle(order)  # type: ignore[attr-defined]
    out = b""
    for each in order:
        it.answer(each.head.number, Answer(200, body=f"<{each.head.target}>".encode()))
        out += it.take_output()
    assert re.findall(rb"<(/\d)>", out) == [f"/{number}".encode() for number in range(len(bodies))]
    assert (it.held_bytes, it.phase) == (0, Phase.IDLE)


@pytest.mark.parametrize("cut", [1_000, HTTP_HEAD_MAX_BYTES, 1 << 20])
@pytest.mark.parametrize(("over", "status"), [(-100, 200), (1, 431)])
def test_a_head_is_too_long_however_it_is_cut(cut: int, over: int, status: int) -> None:
    it = conversation()
    for request in fed(it, post(1, extra=f"X: {'y' * (HTTP_HEAD_MAX_BYTES + over)}\r\n"), [cut]):
        it.answer(request.head.number, Answer(200))
    assert statuses(it.take_output()) == [status]
    assert it.is_over is (status == 431)


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_any_bytes_in_any_pieces_are_requests_or_an_end(pieces: list[bytes]) -> None:
    it = conversation()
    for piece in pieces:
        for request in it.received(piece):
            it.answer(request.head.number, Answer(200))
    out = it.take_output()
    assert len([each for each in statuses(out) if each >= 400]) <= 1
    assert it.is_over or it.phase is not Phase.OVER


def test_no_more_are_read_than_may_wait() -> None:
    it = conversation()
    count = HTTP_PIPELINED_MAX_COUNT + 5
    found = it.received(b"".join(post(number) for number in range(count)))
    assert len(found) == HTTP_PIPELINED_MAX_COUNT
    assert it.is_full
    it.answer(1, Answer(200))
    (more,) = it.go_on()
    assert more.head.target == f"/{HTTP_PIPELINED_MAX_COUNT}"
    assert it.is_full


def test_what_is_refused_by_its_head_is_passed_over_if_it_is_short() -> None:
    it = conversation(frozenset({"/0"}))
    (found,) = it.received(post(0, b"x" * 100) + post(1, b"y"))
    assert found.head.target == "/1"
    assert statuses(it.take_output()) == [403]
    assert it.held_bytes == 1
    long = conversation(frozenset({"/0"}))
    assert long.received(post(0, b"x" * 100_000) + post(1)) == []
    out = long.take_output()
    assert statuses(out) == [403]
    assert b"connection: close" in out.lower()
    assert long.is_over


def test_an_answer_to_an_error_waits_for_those_before_it() -> None:
    it = conversation()
    (found,) = it.received(post(0) + b"nonsense\r\n\r\n")
    assert it.take_output() == b""
    it.answer(found.head.number, Answer(201))
    assert statuses(it.take_output()) == [201, 400]
    assert it.is_over


def test_the_last_request_closes() -> None:
    it = conversation()
    (found,) = it.received(post(0, extra="Connection: close\r\n") + post(1))
    assert it.phase is Phase.OVER
    it.answer(found.head.number, Answer(201))
    assert b"connection: close" in it.take_output().lower()
    assert it.is_over


@pytest.mark.parametrize(
    ("data", "phase"),
    [(b"", Phase.IDLE), (b"POST", Phase.HEAD), (post(0, b"xy")[:-1], Phase.BODY)],
)
def test_time_is_up_for_what_is_not_whole(data: bytes, phase: Phase) -> None:
    it = conversation()
    it.received(data) if data else None
    assert it.phase is phase
    it.time_out()
    assert statuses(it.take_output()) == ([] if phase is Phase.IDLE else [408])
    assert (it.is_over, it.held_bytes) == (True, 0)


def test_at_the_end_what_is_whole_is_answered() -> None:
    it = conversation()
    (found,) = it.received(post(0, b"x") + post(1, b"yz")[:-1])
    it.finish()
    assert (it.phase, it.under_way, it.held_bytes) == (Phase.OVER, [1], 1)
    it.answer(found.head.number, Answer(201))
    assert statuses(it.take_output()) == [201]
    assert it.is_over


# Heads that come again.


KNOWN = post(7, b"ab", "/known")
HEAD = KNOWN.removesuffix(b"ab")


def test_the_same_head_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def new_parser() -> h11.Connection:
        made.append(len(made))
        return h11.Connection(h11.SERVER)

    monkeypatch.setattr(heads, "new_parser", new_parser)
    it = conversation()
    path = "/read-once"
    found = it.received(b"".join(post(0, b"%d" % number, path) for number in range(5)))
    assert [(each.head.number, each.body) for each in found] == [
        (number + 1, b"%d" % number) for number in range(5)
    ]
    assert len(made) == 1


@pytest.mark.parametrize(
    "extra",
    [
        "Connection: close\r\n",
        "Expect: 100-continue\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Upgrade: x\r\nConnection: upgrade\r\n",
        "Content-Length: 3\r\n",
        "X: y\r\nX: z\r\n",
    ],
)
def test_a_head_that_says_more_than_how_long_it_is_is_not_known(extra: str) -> None:
    head = post(7, b"ab", extra=extra).removesuffix(b"ab")
    assert known_head(head) is None
    for other in (head.replace(b"1.1", b"1.0"), b"HEAD" + HEAD[4:], HEAD[:-1], HEAD + b"a"):
        assert known_head(other) is None
    found = known_head(HEAD)
    assert found is not None
    assert (found.target, found.length, found.headers["host"]) == ("/known", 2, "a")


def test_what_is_remembered_has_a_bound_and_no_secrets() -> None:
    for number in range(HTTP_KNOWN_HEADS_MAX_COUNT + 5):
        assert known_head(post(number)) is not None
    assert len(heads.known_heads) == HTTP_KNOWN_HEADS_MAX_COUNT
    for secret in ("Authorization: Bearer s3cret\r\n", "COOKIE: s3cret\r\n"):
        assert known_head(post(1, extra=secret)) is not None
    assert not any(b"s3cret" in each for each in heads.known_heads)
    # One that is longer is read where it stands, every time.
    long = post(1, extra=f"X: {'y' * HTTP_KNOWN_HEAD_MAX_BYTES}\r\n")
    assert len(conversation().received(long)) == 1
    assert long not in heads.known_heads


def test_an_answer_is_the_same_whoever_has_read_the_head() -> None:
    told = []
    for extra in ("X: y\r\n", f"X: {'y' * HTTP_KNOWN_HEAD_MAX_BYTES}\r\n"):
        out = b""
        it = conversation()
        for number in (1, 2):
            it.received(post(number, b"ab", extra=extra))
            if number == 2:
                it.finish()
            it.answer(number, Answer(202, (("X-Y", "z"),), b"body"))
            out += it.take_output()
        told.append(out)
    assert told[0] == told[1]
    assert told[0].count(b"Connection: close") == 1


def test_who_hangs_up_within_a_body_is_told() -> None:
    it = conversation()
    it.received(KNOWN[:-1])
    assert it.received(b"") == []
    assert statuses(it.take_output()) == [400]
    assert (it.is_over, it.held_bytes) == (True, 0)


def test_who_hangs_up_while_too_many_wait_is_heard_when_they_are_answered() -> None:
    it = conversation()
    count = HTTP_PIPELINED_MAX_COUNT + 1
    assert len(it.received(KNOWN * count)) == count - 1
    assert it.received(b"") == []
    for number in range(1, count):
        it.answer(number, Answer(200))
    assert [each.head.number for each in it.go_on()] == [count]
    it.answer(count, Answer(200))
    assert statuses(it.take_output()) == [200] * count
    assert it.is_over
