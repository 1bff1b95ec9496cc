"""Heads of HTTP: of requests, as h11 reads them, and of answers, as it writes them.

Who posts message after message sends the same head again and again, and gets the same one. h11
decides what each means; for bytes that it has judged already, what it said then holds.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Final

import h11
import msgspec

from openmsmq.runtime.limits import HTTP_HEAD_MAX_BYTES, HTTP_KNOWN_HEADS_MAX_COUNT

_REPEATABLE: Final = frozenset({"accept", "accept-encoding", "cookie", "via", "x-forwarded-for"})
"""Headers that may come several times; of others a second one could hide what the first says."""
_TELLING: Final = frozenset({"expect", "transfer-encoding", "upgrade"})
"""Headers that say something about the connection, or about where the request ends."""
_GOES_ON: Final = "keep-alive"
_SECRETS: Final = (b"authorization", b"cookie")
_ANY_REQUEST: Final = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"


class Head(msgspec.Struct, frozen=True):
    """The request line and headers of a request."""

    number: int
    """Its place among the requests of the connection, from 1 on."""
    method: str
    target: str
    """Path and query as they were sent."""
    headers: dict[str, str]
    """By their names in lower case."""
    length: int | None
    """The length of the body as it was declared; None if it was not."""

    @property
    def has_body(self) -> bool:
        """Whether a body follows."""
        return bool(self.length) or "transfer-encoding" in self.headers


class Request(msgspec.Struct, frozen=True):
    """A request that is there as a whole."""

    head: Head
    body: bytes


def new_parser() -> h11.Connection:
    """Return what reads one request, and writes its answer."""
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_HEAD_MAX_BYTES)


def bytes_of(event: h11.Data) -> bytes:
    """Return a part of a body: it is said to be bytes and is none, which compiled code refuses."""
    return bytes(event.data)


def head_of(event: h11.Request, number: int) -> tuple[Head, str]:
    """Return a head, and what is wrong with it."""
    headers, problem = _headers(event)
    if not problem and "content-length" in headers and "transfer-encoding" in headers:
        problem = "it has both Content-Length and Transfer-Encoding"
    declared = headers.get("content-length")
    length = None if declared is None else int(declared)
    method, target = event.method.decode("ascii"), event.target.decode("ascii")
    return Head(number, method, target, headers, length), problem


known_heads: Final[dict[bytes, Head]] = {}


def known_head(data: bytes) -> Head | None:
    """Return a head that is all of `data`; None for one that has to be read with what follows.

    It has no number. The request ends after as many bytes as it declares, the connection goes on,
    and nobody waits for a word of ours before the answer.
    """
    found = known_heads.get(data)
    if found is None:
        found = _read_alone(data)
        if found is not None and not any(secret in data.lower() for secret in _SECRETS):
            if len(known_heads) >= HTTP_KNOWN_HEADS_MAX_COUNT:
                del known_heads[next(iter(known_heads))]
            known_heads[data] = found
    return found


def _read_alone(data: bytes) -> Head | None:
    parser = new_parser()
    try:
        parser.receive_data(data)
        event = parser.next_event()
    except h11.RemoteProtocolError:
        # It is answered where it is read with what follows.
        return None
    if not isinstance(event, h11.Request) or parser.trailing_data[0]:
        return None
    head, problem = head_of(event, 0)
    is_simple = (
        not problem
        and event.http_version == b"1.1"
        and head.method not in ("HEAD", "CONNECT")
        and not _TELLING & head.headers.keys()
        and head.headers.get("connection", _GOES_ON).lower() == _GOES_ON
    )
    return head if is_simple else None


@lru_cache(maxsize=64)
def answer_head(
    date: str, status: int, headers: tuple[tuple[str, str], ...], size: int, *, closes: bool
) -> bytes:
    """Return the head of an answer to a request with a head that is known."""
    parser = new_parser()
    parser.receive_data(_ANY_REQUEST)
    parser.next_event()
    return parser.send(response(date, status, headers, size, closes=closes)) or b""


def response(
    date: str, status: int, headers: tuple[tuple[str, str], ...], size: int, *, closes: bool
) -> h11.Response:
    """Return the head of an answer with a body of so many bytes."""
    lines = [("Date", date), *headers, ("Content-Length", str(size))]
    if closes:
        lines.append(("Connection", "close"))
    return h11.Response(
        status_code=status, headers=lines, reason=HTTPStatus(status).phrase.encode()
    )


def _headers(event: h11.Request) -> tuple[dict[str, str], str]:
    """Return the headers by their names, and what is wrong with them."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in event.headers:
        name = raw_name.decode("ascii")
        try:
            value = raw_value.decode("utf-8")
        except UnicodeDecodeError:
            return headers, f"the header {name} is no UTF-8"
        if name in headers:
            if name not in _REPEATABLE:
                return headers, f"it has the header {name} twice"
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers, ""
