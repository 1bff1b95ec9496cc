"""What requests of HTTP are answered: a status, a body, and for what goes wrong a sentence."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec

JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def json_answer(status: int, content: Any, *headers: tuple[str, str]) -> Answer:
    """Return an answer with JSON."""
    return Answer(status, (("Content-Type", JSON), *headers), msgspec.json.encode(content))


def problem(status: int, detail: str, code: str = "", *headers: tuple[str, str]) -> Answer:
    """Return what a request is answered that is not carried out [RFC 9457]; `code` is ours."""
    content = {"title": HTTPStatus(status).phrase, "status": int(status), "detail": detail}
    if code:
        content["code"] = code
    return Answer(status, (("Content-Type", _PROBLEM), *headers), msgspec.json.encode(content))
