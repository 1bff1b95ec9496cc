"""The server's side of one connection, without I/O: bytes to requests, answers to bytes in order.

Each request has an h11 connection of its own: what follows it on the wire is handed to the next
one. So several requests of one peer are under way at once, and their answers leave in the order of
the requests, whenever they come. What is not HTTP is answered once, and ends the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from typing import Final

import h11
import msgspec

from openmsmq.runtime.http.answers import Answer, problem
from openmsmq.runtime.limits import (
    HTTP_DISCARDED_MAX_BYTES,
    HTTP_HEAD_MAX_BYTES,
    HTTP_PIPELINED_MAX_COUNT,
)

_REPEATABLE: Final = frozenset({"accept", "accept-encoding", "cookie", "via", "x-forwarded-for"})
"""Headers that may come several times; of others a second one could hide what the first says."""


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


class Phase(Enum):
    """What a connection waits for, as far as its peer is concerned."""

    IDLE = "idle"
    """For a request, or for the answers to those that have come."""
    HEAD = "head"
    """For the rest of a head."""
    BODY = "body"
    """For the rest of a body."""
    OVER = "over"
    """For nothing: no further request is read."""


class _Exchange:
    """One request and its answer."""

    __slots__ = ("answer", "expects", "head", "is_whole", "parser", "parts", "refusal", "size")

    def __init__(self, parser: h11.Connection, head: Head) -> None:
        self.parser = parser
        self.head = head
        self.parts: list[bytes] = []
        self.size = 0
        self.refusal: Answer | None = None
        """What it is answered when its body has been passed over."""
        self.expects = False
        """Whether the peer sends the body only if it is told to go on."""
        self.is_whole = False
        self.answer: Answer | None = None


Judge = Callable[[Head], Answer | None]
"""Decides by the head whether a request is taken; returns the answer of one that is not."""


class Conversation:
    """Takes bytes, gives requests; takes answers, gives bytes."""

    def __init__(
        self, judge: Judge, date: Callable[[], str], count: Callable[[int], None] = lambda _: None
    ) -> None:
        """`date` gives the time for the headers of answers; `count` hears of their statuses."""
        self._judge = judge
        self._date = date
        self._count = count
        self._parser: h11.Connection | None = _new_parser()
        self._reading: _Exchange | None = None
        self._waiting: deque[_Exchange] = deque()
        """Requests without an answer on the wire, in their order; the last may be incomplete."""
        self._last_number = 0
        self._held = b""
        """What has come while too many requests wait."""
        self._has_begun = False
        """Whether bytes of a head have come that is not whole."""
        self._out: list[bytes] = []
        self.held_bytes = 0
        """Bytes of bodies that are kept."""

    # What comes.

    def received(self, data: bytes) -> list[Request]:
        """Take bytes; return the requests that are whole now. No bytes are the end."""
        if self._parser is None:
            return []
        if self.is_full:
            self._held += data
            return []
        return self._read(data)

    def go_on(self) -> list[Request]:
        """Read what was held back, if there is room for it now."""
        if self._parser is None or self.is_full:
            return []
        held, self._held = self._held, b""
        return self._read(held or None)

    def _read(self, data: bytes | None) -> list[Request]:
        found: list[Request] = []
        try:
            if data is not None and self._parser is not None:
                self._parser.receive_data(data)
            self._take_events(found)
        except h11.RemoteProtocolError as error:
            # What came before it as a whole is a request all the same.
            # Without the line that it is about: that has the form of a value of Python.
            reason = str(error).partition(": bytearray(")[0]
            self._give_up(error.error_status_hint, f"the request cannot be read: {reason}")
        return found

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait that no further one is read."""
        return self._reading is None and len(self._waiting) >= HTTP_PIPELINED_MAX_COUNT

    @property
    def phase(self) -> Phase:
        """What is waited for."""
        if self._parser is None:
            return Phase.OVER
        if self._reading is not None:
            return Phase.BODY
        return Phase.HEAD if self._has_begun else Phase.IDLE

    @property
    def progress(self) -> tuple[Phase, int]:
        """What is waited for, and of which request: as long as that is the same, time passes."""
        return self.phase, self._last_number

    @property
    def is_over(self) -> bool:
        """Whether nothing more is read, and everything is answered."""
        return self._parser is None and not self._waiting

    @property
    def under_way(self) -> list[int]:
        """The numbers of the requests that are whole and have no answer."""
        return [
            each.head.number
            for each in self._waiting
            if each.is_whole and each.answer is None and each.refusal is None
        ]

    def time_out(self) -> None:
        """The rest of a request has not come in time."""
        if self.phase is Phase.IDLE:
            self._parser = None
            return
        self._give_up(HTTPStatus.REQUEST_TIMEOUT, f"the rest of the {self.phase.value} is late")

    def finish(self) -> None:
        """Read nothing more; what has come as a whole is still answered."""
        if self._reading is not None:
            self._forget_reading()
        self._parser = None

    def _take_events(self, found: list[Request]) -> None:
        while self._parser is not None and not self.is_full:
            parser = self._parser
            event = parser.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                self._has_begun = bool(parser.trailing_data[0])
                break
            if isinstance(event, h11.Request):
                self._begin(parser, event)
            elif isinstance(event, h11.Data):
                self._take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                request = self._end(parser)
                if request is not None:
                    found.append(request)
            else:
                self._parser = None

    def _begin(self, parser: h11.Connection, event: h11.Request) -> None:
        self._last_number += 1
        self._has_begun = False
        headers, problems = _headers(event)
        declared = headers.get("content-length")
        head = Head(
            self._last_number,
            event.method.decode("ascii"),
            event.target.decode("ascii"),
            headers,
            None if declared is None else int(declared),
        )
        exchange = self._reading = _Exchange(parser, head)
        self._waiting.append(exchange)
        if "content-length" in headers and "transfer-encoding" in headers:
            problems = "it has both Content-Length and Transfer-Encoding"
        if not event.http_version.startswith(b"1."):
            version = event.http_version.decode("ascii")
            answer = problem(
                HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, f"HTTP/{version} is not spoken here"
            )
            self._refuse_and_end(exchange, answer)
            return
        if problems:
            # Whoever sent this and whoever passed it on may not agree where it ends.
            self._refuse_and_end(exchange, problem(HTTPStatus.BAD_REQUEST, problems))
            return
        if sum(len(name) + len(value) for name, value in event.headers) > HTTP_HEAD_MAX_BYTES:
            # One that comes in one piece is never incomplete, so the parser takes it.
            answer = problem(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the headers have more than {HTTP_HEAD_MAX_BYTES} bytes",
            )
            self._refuse_and_end(exchange, answer)
            return
        expects = parser.they_are_waiting_for_100_continue
        exchange.refusal = self._judge(head)
        if exchange.refusal is None:
            exchange.expects = expects
            self._flush()
        elif head.has_body and (expects or (head.length or 1 << 62) > HTTP_DISCARDED_MAX_BYTES):
            self._refuse_and_end(exchange, exchange.refusal)

    def _take(self, data: bytes) -> None:
        exchange = self._reading
        if exchange is not None and exchange.refusal is None:
            exchange.parts.append(data)
            exchange.size += len(data)
            self.held_bytes += len(data)

    def _end(self, parser: h11.Connection) -> Request | None:
        exchange = self._reading
        assert exchange is not None, "the end of a request follows its head"
        self._reading = None
        exchange.is_whole = True
        if parser.their_state is h11.DONE:
            follows, _ = parser.trailing_data
            self._parser = _new_parser()
            if self.is_full:
                self._held = follows
            elif follows:
                self._parser.receive_data(follows)
                self._has_begun = True
        else:
            self._parser = None
        if exchange.refusal is not None:
            exchange.answer = exchange.refusal
            self._flush()
            return None
        body = b"".join(exchange.parts)
        exchange.parts.clear()
        return Request(exchange.head, body)

    # What leaves.

    def answer(self, number: int, answer: Answer) -> None:
        """Answer a request; it leaves when those before it are answered."""
        for exchange in self._waiting:
            if exchange.head.number == number and exchange.answer is None:
                exchange.answer = answer
                self._let_go(exchange)
                break
        self._flush()

    def take_output(self) -> bytes:
        """Return what is to leave."""
        out, self._out = self._out, []
        return b"".join(out)

    def _flush(self) -> None:
        while self._waiting:
            exchange = self._waiting[0]
            if exchange.answer is None:
                if exchange.expects:
                    exchange.expects = False
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._out.append(exchange.parser.send(go_on) or b"")
                return
            self._waiting.popleft()
            self._write(exchange, exchange.answer)

    def _write(self, exchange: _Exchange, answer: Answer) -> None:
        self._count(answer.status)
        parser = exchange.parser
        is_last = self._parser is None and not self._waiting
        headers = [
            ("Date", self._date()),
            *answer.headers,
            ("Content-Length", str(len(answer.body))),
        ]
        if is_last:
            headers.append(("Connection", "close"))
        response = h11.Response(
            status_code=answer.status,
            headers=headers,
            reason=HTTPStatus(answer.status).phrase.encode(),
        )
        self._out.append(parser.send(response) or b"")
        if answer.body and exchange.head.method != "HEAD":
            self._out.append(parser.send(h11.Data(data=answer.body)) or b"")

    # What goes wrong.

    def _refuse_and_end(self, exchange: _Exchange, answer: Answer) -> None:
        """Answer before the body has come, and read nothing more."""
        self._reading = None
        self._parser = None
        exchange.is_whole = True
        exchange.refusal = exchange.answer = answer
        self._flush()

    def _give_up(self, status: int, reason: str) -> None:
        """Answer what nobody can understand, behind those before it."""
        answer = problem(status, reason)
        if self._reading is not None:
            self._let_go(self._reading)
            self._refuse_and_end(self._reading, answer)
            return
        self._last_number += 1
        # A parser that has met an error can still say one thing.
        parser = self._parser
        assert parser is not None, "an error comes from a parser"
        self._parser = None
        exchange = _Exchange(parser, Head(self._last_number, "GET", "", {}, None))
        exchange.is_whole = True
        exchange.answer = exchange.refusal = answer
        self._waiting.append(exchange)
        self._flush()

    def _forget_reading(self) -> None:
        reading = self._reading
        assert reading is not None
        self._reading = None
        self._let_go(reading)
        self._waiting.remove(reading)

    def _let_go(self, exchange: _Exchange) -> None:
        """Hold the body of a request no longer."""
        self.held_bytes -= exchange.size
        exchange.size = 0
        exchange.parts.clear()


def _new_parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_HEAD_MAX_BYTES)


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
