"""Requests and answers that are no messages: a line, and nothing of the secrets in their heads."""

from __future__ import annotations

from openmsmq.wire.text.tree import Kind, view

REQUEST = (
    b"POST /queues/orders/messages HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n"
    b"Content-Length: 8\r\n\r\ntwo cups"
)
ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


def test_a_request_is_its_first_line_and_how_much_follows() -> None:
    shown = view(REQUEST, Kind.REQUEST)
    assert shown.name == "HttpRequest"
    assert shown.summary == "POST /queues/orders/messages HTTP/1.1, 8 bytes"
    assert [(node.name, node.offset, node.size) for node in shown.nodes] == [
        ("Head", 0, len(REQUEST) - 8),
        ("Content", len(REQUEST) - 8, 8),
    ]


def test_a_token_is_not_shown() -> None:
    assert "secret" not in repr(view(REQUEST, Kind.REQUEST))


def test_an_answer_is_its_first_line() -> None:
    shown = view(ANSWER, Kind.ANSWER)
    assert shown.name == "HttpAnswer"
    assert shown.summary == "HTTP/1.1 201 Created, 2 bytes"


def test_what_has_no_head_is_shown_as_bytes() -> None:
    for kind in (Kind.REQUEST, Kind.ANSWER):
        shown = view(b"POST /queues HTTP/1.1\r\n", kind)
        assert shown.name == "malformed"
        assert shown.problem.endswith(
            "no head with a first line of at most 8 KiB"
            if kind is Kind.REQUEST
            else "an answer begins with its version"
        )
