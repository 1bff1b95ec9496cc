"""The server's side of one connection, without I/O: bytes to requests, answers to bytes in order.

Each request that h11 reads here has an h11 connection of its own: what follows it on the wire is
left to the next one. So several requests of one peer are under way at once, and their answers leave
in the order of the requests, whenever they come. Where the head of a request is there as a whole
and one that h11 has judged before, its body is counted by what that head declares (`heads`). What
is not HTTP is answered once, and ends the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from typing import Final

import h11

from openmsmq.runtime.http.answers import Answer, problem
from openmsmq.runtime.http.heads import (
    Head,
    Request,
    answer_head,
    bytes_of,
    head_of,
    known_head,
    new_parser,
    response,
)
from openmsmq.runtime.limits import (
    HTTP_DISCARDED_MAX_BYTES,
    HTTP_HEAD_MAX_BYTES,
    HTTP_KNOWN_HEAD_MAX_BYTES,
    HTTP_PIPELINED_MAX_COUNT,
)

_PIECE_BYTES: Final = 1 << 12
"""What h11 is handed at once while it reads a head: what it does not need is copied for nothing."""
_BODY_PIECE_BYTES: Final = 1 << 16
_HEAD_END: Final = b"\r\n\r\n"


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

    def __init__(self, parser: h11.Connection | None, head: Head) -> None:
        self.parser = parser
        """None if its head is known: then the answer need not be told to h11 either."""
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


def _nobody_counts(_: int) -> None:
    """Hear of the status of an answer."""


class Conversation:
    """Takes bytes, gives requests; takes answers, gives bytes."""

    def __init__(
        self, judge: Judge, date: Callable[[], str], count: Callable[[int], None] = _nobody_counts
    ) -> None:
        """`date` gives the time for the headers of answers; `count` hears of their statuses."""
        self._judge = judge
        self._date = date
        self._count = count
        self._is_open = True
        """Whether anything more is read."""
        self._parser: h11.Connection | None = None
        """What reads the request that has begun, if its head is not known."""
        self._reading: _Exchange | None = None
        self._missing = 0
        """What is to come of the body of a request with a known head."""
        self._waiting: deque[_Exchange] = deque()
        """Requests without an answer on the wire, in their order; the last may be incomplete."""
        self._last_number = 0
        self._input = b""
        """What has come and was not read, from `_at` on; all else while too many requests wait."""
        self._at = 0
        self._has_ended = False
        """Whether nothing more comes."""
        self._has_begun = False
        """Whether bytes of a head have come that is not whole."""
        self._out: list[bytes] = []
        self.held_bytes = 0
        """Bytes of bodies that are kept."""

    # What comes.

    def received(self, data: bytes) -> list[Request]:
        """Take bytes; return the requests that are whole now. No bytes are the end."""
        if not self._is_open:
            return []
        if data:
            rest = self._input[self._at :]
            self._input = rest + data if rest else data
            self._at = 0
        else:
            self._has_ended = True
        return self.go_on()

    def go_on(self) -> list[Request]:
        """Read what was held back, if there is room for it now."""
        found: list[Request] = []
        try:
            while self._is_open and not self.is_full and self._read_some(found):
                pass
        except h11.RemoteProtocolError as error:
            # What came before it as a whole is a request all the same. The reason is said without
            # the line that it is about, which has the form of a value of Python.
            reason = str(error).partition(": bytearray(")[0]
            self._give_up(error.error_status_hint, f"the request cannot be read: {reason}")
        if self._at == len(self._input) or not self._is_open:
            self._input, self._at = b"", 0
        return found

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait that no further one is read."""
        return self._reading is None and len(self._waiting) >= HTTP_PIPELINED_MAX_COUNT

    @property
    def phase(self) -> Phase:
        """What is waited for."""
        if not self._is_open:
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
        return not self._is_open and not self._waiting

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
            self._is_open = False
            return
        self._give_up(HTTPStatus.REQUEST_TIMEOUT, f"the rest of the {self.phase.value} is late")

    def finish(self) -> None:
        """Read nothing more; what has come as a whole is still answered."""
        if self._reading is not None:
            self._forget_reading()
        self._is_open = False

    def _read_some(self, found: list[Request]) -> bool:
        """Read the next part of what has come; say whether there may be more."""
        parser, reading = self._parser, self._reading
        if parser is None and reading is None:
            if self._begin_known():
                return True
            if self._at == len(self._input) and not self._has_ended:
                return False
            parser = self._parser = new_parser()
        if parser is None:
            assert reading is not None
            return self._read_counted(reading, found)
        event = parser.next_event()
        if event is h11.NEED_DATA or event is h11.PAUSED:
            self._has_begun = bool(parser.trailing_data[0])
            return self._feed(parser)
        if isinstance(event, h11.Request):
            self._begin(parser, event)
        elif isinstance(event, h11.Data):
            self._keep(bytes_of(event))
        elif isinstance(event, h11.EndOfMessage):
            self._end(parser, found)
        else:
            self._is_open = False
        return True

    def _feed(self, parser: h11.Connection) -> bool:
        """Hand on what has come, if there is something."""
        if self._at < len(self._input):
            size = _PIECE_BYTES if self._reading is None else _BODY_PIECE_BYTES
            piece = self._input[self._at : self._at + size]
            self._at += len(piece)
            parser.receive_data(piece)
            return True
        if self._has_ended and not parser.trailing_data[1]:
            parser.receive_data(b"")
            return True
        return False

    # A request with a head that is known.

    def _begin_known(self) -> bool:
        """Begin with the next request, if its head has come as a whole and is known."""
        end = self._input.find(_HEAD_END, self._at, self._at + HTTP_KNOWN_HEAD_MAX_BYTES)
        if end < 0:
            return False
        end += len(_HEAD_END)
        known = known_head(self._input[self._at : end])
        if known is None:
            return False
        self._at = end
        self._last_number += 1
        self._has_begun = False
        head = Head(self._last_number, known.method, known.target, known.headers, known.length)
        exchange = self._reading = _Exchange(None, head)
        self._missing = head.length or 0
        self._waiting.append(exchange)
        self._look_at(exchange)
        return True

    def _read_counted(self, reading: _Exchange, found: list[Request]) -> bool:
        """Read as much of a body as is there; say whether that was the rest of it."""
        stop = min(self._at + self._missing, len(self._input))
        if stop > self._at:
            self._missing -= stop - self._at
            self._keep(self._input[self._at : stop])
            self._at = stop
        if not self._missing:
            self._reading = None
            self._whole(reading, found)
            return True
        if self._has_ended:
            self._give_up(HTTPStatus.BAD_REQUEST, "the connection has ended within a body")
        return False

    # A request that h11 reads.

    def _begin(self, parser: h11.Connection, event: h11.Request) -> None:
        self._last_number += 1
        self._has_begun = False
        head, problems = head_of(event, self._last_number)
        exchange = self._reading = _Exchange(parser, head)
        self._waiting.append(exchange)
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
        exchange.expects = parser.they_are_waiting_for_100_continue
        self._look_at(exchange)

    def _end(self, parser: h11.Connection, found: list[Request]) -> None:
        exchange = self._reading
        assert exchange is not None, "the end of a request follows its head"
        self._reading = self._parser = None
        if parser.their_state is h11.DONE:
            # What follows was in the last piece, and is for the next one.
            self._at -= len(parser.trailing_data[0])
        else:
            self._is_open = False
        self._whole(exchange, found)

    # Any request.

    def _look_at(self, exchange: _Exchange) -> None:
        """Decide by its head whether a request is taken."""
        head, expects = exchange.head, exchange.expects
        exchange.expects = False
        exchange.refusal = self._judge(head)
        if exchange.refusal is None:
            exchange.expects = expects
            self._flush()
        elif head.has_body and (expects or (head.length or 1 << 62) > HTTP_DISCARDED_MAX_BYTES):
            self._refuse_and_end(exchange, exchange.refusal)

    def _keep(self, data: bytes) -> None:
        exchange = self._reading
        if exchange is not None and exchange.refusal is None:
            exchange.parts.append(data)
            exchange.size += len(data)
            self.held_bytes += len(data)

    def _whole(self, exchange: _Exchange, found: list[Request]) -> None:
        """All of a request has come."""
        exchange.is_whole = True
        if exchange.refusal is not None:
            exchange.answer = exchange.refusal
            self._flush()
            return
        body = b"".join(exchange.parts)
        exchange.parts.clear()
        found.append(Request(exchange.head, body))

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
                if exchange.expects and exchange.parser is not None:
                    exchange.expects = False
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._out.append(exchange.parser.send(go_on) or b"")
                return
            self._waiting.popleft()
            self._write(exchange, exchange.answer)

    def _write(self, exchange: _Exchange, answer: Answer) -> None:
        self._count(answer.status)
        parser, date, size = exchange.parser, self._date(), len(answer.body)
        closes = not self._is_open and not self._waiting
        if parser is None:
            self._out.append(answer_head(date, answer.status, answer.headers, size, closes=closes))
            self._out.append(answer.body)
            return
        event = response(date, answer.status, answer.headers, size, closes=closes)
        self._out.append(parser.send(event) or b"")
        if answer.body and exchange.head.method != "HEAD":
            self._out.append(parser.send(h11.Data(data=answer.body)) or b"")

    # What goes wrong.

    def _refuse_and_end(self, exchange: _Exchange, answer: Answer) -> None:
        """Answer before the body has come, and read nothing more."""
        self._reading = self._parser = None
        self._is_open = False
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
        parser, self._parser = self._parser, None
        assert parser is not None, "an error comes from a parser"
        self._is_open = False
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
