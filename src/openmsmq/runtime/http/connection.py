"""One connection of a client of HTTP: bytes in, requests to routes, answers back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from openmsmq.runtime.api.outflow import Outflow
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.http.answers import Answer, problem
from openmsmq.runtime.http.conversation import Conversation, Phase
from openmsmq.runtime.http.heads import Head, Request
from openmsmq.runtime.http.routes import Place, Route, Visitor
from openmsmq.runtime.limits import (
    HTTP_ANSWER_MS,
    HTTP_BODY_MS,
    HTTP_HEAD_MS,
    HTTP_IDLE_MS,
    HTTP_LINGER_MS,
)

if TYPE_CHECKING:
    import ssl

    from openmsmq.runtime.http.server import HttpServer

RETRY_AFTER: Final = ("Retry-After", "1")

PATIENCE_MS: Final = {
    Phase.IDLE: HTTP_IDLE_MS,
    Phase.HEAD: HTTP_HEAD_MS,
    Phase.BODY: HTTP_BODY_MS,
    Phase.OVER: HTTP_LINGER_MS,
}


_TICK_S: Final = 0.002
"""Timers of a loop may come so much before their time."""


def _date() -> str:
    return _date_at(read_clocks().unix_s)


@lru_cache(maxsize=1)
def _date_at(unix_s: int) -> str:
    """Return a moment as headers have it: all answers within a second have the same."""
    return formatdate(unix_s, usegmt=True)


class _UnderWay:
    """A request between its head and its answer."""

    __slots__ = ("due_s", "give_up", "place", "route", "size", "visitor")

    def __init__(self, place: Place, route: Route, visitor: Visitor, size: int) -> None:
        self.place = place
        self.route = route
        self.visitor = visitor
        """Who has made it, if a trusted proxy has brought it for him."""
        self.size = size
        self.give_up: Callable[[], None] = lambda: None
        self.due_s: float | None = None
        """When it has to be answered, by the clock of the loop, once it is there as a whole."""


class HttpConnection(asyncio.Protocol):
    """One connection, from its acceptance to its loss."""

    def __init__(self, server: HttpServer, number: int, address: str) -> None:
        self._server = server
        self.number = number
        self._visitor = Visitor(address, address)
        self._loop = asyncio.get_running_loop()
        self._conversation = Conversation(self._judge, _date, server.count)
        self._transport: asyncio.Transport
        self._outflow: Outflow
        self._under_way: dict[int, _UnderWay] = {}
        self._progress = (Phase.HEAD, 0)
        self._timer: asyncio.TimerHandle | None = None
        """It may be early: then it looks how long it still is."""
        self._timer_s = 0.0
        self._due_s = 0.0
        """When what is waited for is late, by the clock of the loop."""
        self._answers_timer: asyncio.TimerHandle | None = None
        """For the first answer that is due; it stays when that has come."""
        self._is_paused = False
        self._has_written = False
        """What is kept before that is not ours: TLS has tickets for the client, which leave when it
        reads or writes, and it would wait for us while we wait for it."""
        self._is_called = False
        """Whether the loop is to write the answers that have come."""
        self._is_ended = False

    @property
    def peer(self) -> str:
        """Who is at the other end, for the log."""
        return self._visitor.peer

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._outflow = Outflow(self._transport)
        name = transport.get_extra_info("peername")
        tls = cast("ssl.SSLObject | None", transport.get_extra_info("ssl_object"))
        address = self._visitor.address
        self._visitor = Visitor(
            f"{name[0]}:{name[1]}" if name else address,
            address,
            tls is not None,
            (tls.getpeercert(binary_form=True) or b"") if tls is not None else b"",
        )
        self._server.connections[self.number] = self
        self._arm(PATIENCE_MS[Phase.HEAD])

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        if not self._is_ended:
            self._guarded(partial(self._conversation.received, data))

    def eof_received(self) -> bool:
        """Nothing more comes; what is under way is still answered."""
        if not self._is_ended:
            self._guarded(lambda: self._conversation.received(b""))
        return not self._is_ended

    def pause_writing(self) -> None:
        """Let what is to leave wait, and read nothing more."""
        self._outflow.pause()
        self._look_at_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._outflow.resume()
        self._look_at_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._is_ended = True
        self._outflow.drop()
        self._cancel_timer()
        if self._answers_timer is not None:
            self._answers_timer.cancel()
        for number in list(self._under_way):
            self._forget(number).give_up()
        self._server.lost(self, "" if exc is None else str(exc))

    # Requests.

    def _guarded(self, read: Callable[[], list[Request]]) -> None:
        try:
            for request in read():
                self._take(request)
            self._write()
        except Exception as error:
            # A mistake of ours with what one client sent costs that client, and nobody else.
            self._server.note_defect(self.peer, error)
            self.abort()

    def _judge(self, head: Head) -> Answer | None:
        server = self._server
        if server.is_stopping:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "the queue manager is stopping")
        found = server.routes.find(head)
        if isinstance(found, Answer):
            return found
        place, route = found
        visitor = server.proxies.client(head, self._visitor)
        refusal = route.judge(head, place, visitor)
        if refusal is not None:
            return refusal
        size = head.length or 0
        reason, is_its_own = server.burden.why_not(visitor.address, size)
        if reason:
            status = HTTPStatus.TOO_MANY_REQUESTS if is_its_own else HTTPStatus.SERVICE_UNAVAILABLE
            return problem(status, f"{reason}: wait for answers, and try again", "", RETRY_AFTER)
        server.burden.add(visitor.address, size)
        self._under_way[head.number] = _UnderWay(place, route, visitor, size)
        return None

    def _take(self, request: Request) -> None:
        number = request.head.number
        under_way = self._under_way[number]
        self._server.limits.established(self.number)
        under_way.due_s = self._loop.time() + HTTP_ANSWER_MS / 1000
        if self._answers_timer is None:
            self._answers_timer = self._loop.call_at(under_way.due_s, self._answers_are_due)
        give_up = under_way.route.take(
            request, under_way.place, under_way.visitor, partial(self._answer, number)
        )
        # It may be answered by now.
        under_way.give_up = give_up

    def _answer(self, number: int, answer: Answer) -> None:
        if self._is_ended or number not in self._under_way:
            return
        self._forget(number)
        self._conversation.answer(number, answer)
        if not self._is_called:
            # Answers of one turn come together, and leave together: each write costs the kernel
            # more than the answer costs us.
            self._is_called = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_called = False
        if not self._is_ended:
            self._guarded(self._conversation.go_on)

    def _answers_are_due(self) -> None:
        self._answers_timer = None
        late_s = self._loop.time() + _TICK_S
        for number, under_way in list(self._under_way.items()):
            if under_way.due_s is not None and under_way.due_s <= late_s:
                self._answer_is_late(number, under_way)
        due = [each.due_s for each in self._under_way.values() if each.due_s is not None]
        if due:
            self._answers_timer = self._loop.call_at(min(due), self._answers_are_due)

    def _answer_is_late(self, number: int, under_way: _UnderWay) -> None:
        give_up = under_way.give_up
        self._answer(
            number,
            problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the queue manager has not answered in time: whether the message is stored is "
                "not known",
            ),
        )
        give_up()

    def _forget(self, number: int) -> _UnderWay:
        under_way = self._under_way.pop(number)
        self._server.burden.remove(under_way.visitor.address, under_way.size)
        return under_way

    # What leaves.

    def _write(self) -> None:
        data = self._conversation.take_output()
        if data:
            self._outflow.write(data)
            if not self._has_written:
                self._has_written = True
                self._outflow.begin()
        # Those whose bodies will not come to their end hold nothing any more.
        if self._conversation.phase is Phase.OVER:
            kept = set(self._conversation.under_way)
            for number in [each for each in self._under_way if each not in kept]:
                self._forget(number)
        heavy = self._server.limits.buffered(
            self.number,
            self._conversation.held_bytes + self._outflow.unsent_bytes,
            read_clocks(),
        )
        if heavy is not None:
            self._server.cut(heavy, "too many bytes are held for it")
        self._look_at_reading()
        self._look_at_phase()

    def _look_at_reading(self) -> None:
        """Read no more than there is room for."""
        wanted = self._conversation.is_full or (
            self._has_written and self._outflow.unsent_bytes > 0
        )
        if wanted != self._is_paused and not self._transport.is_closing():
            self._is_paused = wanted
            if wanted:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _look_at_phase(self) -> None:
        conversation = self._conversation
        if conversation.is_over and not self._is_ended:
            self._end()
            return
        # A body gets its time from its own head on, a head from its first byte on.
        progress = conversation.progress
        if progress != self._progress or self._timer is None:
            self._progress = progress
            self._arm(PATIENCE_MS[progress[0]])

    def _arm(self, wait_ms: int) -> None:
        self._due_s = self._loop.time() + wait_ms / 1000
        if self._timer is None or self._timer_s > self._due_s:
            self._cancel_timer()
            self._timer_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._late)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self._loop.time() + _TICK_S < self._due_s:
            self._timer_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._late)
            return
        conversation = self._conversation
        if self._is_ended:
            self.abort()
            return
        if conversation.phase is Phase.OVER or (
            conversation.phase is Phase.IDLE and self._under_way
        ):
            # It is we who have to answer; that has a time of its own.
            self._arm(HTTP_IDLE_MS)
            return
        if conversation.phase is not Phase.IDLE:
            self._server.note_broken(self.peer, f"its {conversation.phase.value} came too late")
        conversation.time_out()
        self._write()

    # The end.

    def finish(self) -> None:
        """End the connection in order: what has come is answered, nothing more is read."""
        if not self._is_ended:
            self._conversation.finish()
            self._write()

    def _end(self) -> None:
        """Hang up, once everything is written and read: a reset could overtake the answer."""
        self._is_ended = True
        self._arm(HTTP_LINGER_MS)
        if self._transport.can_write_eof():
            self._outflow.end(self._transport.write_eof)
        else:
            self._outflow.end(self._transport.close)

    def abort(self) -> None:
        """End the connection now."""
        self._transport.abort()
