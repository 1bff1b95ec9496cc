"""Posts to one URL, in order, over one connection: pipelined, timed, and answered one by one.

Nothing is sent again that may have been received. A server that says it closes has not looked at
what came behind: that is sent again, over the next connection. One that fails gets nothing more
over this connection, and it ends when what has left is answered: the next one may lead to a server
that does better.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.runtime.http.sending.exchange import Answers, Misunderstood, written
from openmsmq.runtime.http.sending.targets import LaneOptions, LanePort, Target, read_url
from openmsmq.runtime.start_errors import os_reason

_SERVER_FAILS: Final = 500
"""From this status on it is the server that has failed, not the post."""
_TICK_S: Final = 0.002
"""Timers of a loop may come so much before their time."""


class Lane(asyncio.Protocol):
    """One connection after the other to one URL."""

    def __init__(
        self,
        target: Target,
        context: Callable[[], ssl.SSLContext],
        options: LaneOptions,
        port: LanePort,
    ) -> None:
        self._target = target
        self._context = context
        self._options = options
        self._port = port
        self._waiting: deque[OutgoingPost] = deque()
        self._sent: deque[OutgoingPost] = deque()
        """What has left and has no answer."""
        self._answers = Answers()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        """It may be early: then it looks how long it still is."""
        self._timer_s = 0.0
        self._due_s = 0.0
        """When what is waited for is late, by the clock of the loop."""
        self._is_closing = False
        """Whether the other side takes no further post over this connection."""
        self._is_spent = False
        """Whether we send no further post over this connection. [MQSRM 3.1.7.2.5]"""
        self._is_paused = False
        self._is_called = False

    def post(self, post: OutgoingPost) -> None:
        """Let a post leave behind those before it."""
        self._waiting.append(post)
        if not self._is_called:
            # What one turn has for it leaves together.
            self._is_called = True
            self._loop.call_soon(self._called)

    def _called(self) -> None:
        self._is_called = False
        self._go_on()

    def give_up(self, call: int) -> bool:
        """Let a post that has not left yet not leave; say whether that was possible."""
        for post in self._waiting:
            if post.call == call:
                self._waiting.remove(post)
                return True
        return False

    def close(self) -> None:
        """End the connection, and all posts with it."""
        if self._connecting is not None:
            self._connecting.cancel()
        self._end(PostFailure.LOST, "the queue manager is stopping")
        self._fail_waiting(PostFailure.UNREACHABLE, "the queue manager is stopping")

    # Sending.

    def _go_on(self) -> None:
        transport = self._transport
        if transport is None:
            if self._waiting and self._connecting is None:
                self._connecting = self._loop.create_task(self._connect())
            return
        pieces: list[bytes] = []
        room = self._options.pipelined_max - len(self._sent)
        is_held = self._is_paused or self._is_closing or self._is_spent
        while self._waiting and room > 0 and not is_held:
            pieces.append(self._written(self._waiting.popleft()))
            room -= 1
        if pieces:
            if len(self._sent) == len(pieces):
                self._arm(self._options.timeout_s)
            transport.write(b"".join(pieces))

    def _written(self, post: OutgoingPost) -> bytes:
        self._sent.append(post)
        return written(
            self._target.authority,
            read_url(post.url)[1],
            post.headers,
            post.body,
            proxy_accept=self._options.proxy_accept,
        )

    async def _connect(self) -> None:
        target = self._target
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._loop.create_connection(
                    lambda: self,
                    target.host,
                    target.port,
                    ssl=self._context() if target.is_secure else None,
                    server_hostname=target.host if target.is_secure else None,
                )
        except ssl.SSLError as error:
            self._not_connected(PostFailure.UNTRUSTED, f"TLS: {error}")
        except TimeoutError:
            self._not_connected(PostFailure.UNREACHABLE, "no connection in time")
        except OSError as error:
            self._not_connected(PostFailure.UNREACHABLE, os_reason(error))
        except ValueError:
            # Before anybody is asked: `a..b`, or a label of more than 63 letters.
            self._not_connected(PostFailure.UNREACHABLE, "no host can have this name")
        finally:
            self._connecting = None

    def _not_connected(self, failure: PostFailure, reason: str) -> None:
        self._fail_waiting(failure, f"{self._target.authority}: {reason}")
        self._port.idle(self._target)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what waits."""
        self._transport = cast(asyncio.Transport, transport)
        # What is written leaves at once: uvloop would keep it until the turn is over, and the other
        # side would wait while we sync.
        self._transport.set_write_buffer_limits(high=1, low=0)
        self._connecting = None
        self._answers = Answers()
        self._is_closing = self._is_spent = self._is_paused = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        """Take answers."""
        answers, at = self._answers, 0
        while self._sent and self._transport is not None and at < len(data):
            try:
                end = answers.read(data, at)
            except Misunderstood as problem:
                self._misunderstood(str(problem))
                return
            if end is None:
                break
            at = end
            post = self._sent.popleft()
            self._is_closing |= answers.closes
            self._is_spent |= answers.status >= _SERVER_FAILS
            self._port.answered(post, answers.status, answers.body)
            if self._is_closing or (self._is_spent and not self._sent):
                self._put_back()
                return
        if at:
            self._arm(self._options.timeout_s if self._sent else self._options.idle_s)
            self._go_on()

    def pause_writing(self) -> None:
        """Send nothing more for now."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Go on."""
        self._is_paused = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._transport is None:
            return
        reason = str(exc) if exc is not None else "the other side has hung up"
        self._end(PostFailure.LOST, f"{self._target.authority}: {reason}")
        if self._waiting:
            self._go_on()
        else:
            self._port.idle(self._target)

    # The end of a connection.

    def _put_back(self) -> None:
        """Send over the next connection what the other side has not looked at."""
        while self._sent:
            self._waiting.appendleft(self._sent.pop())
        self._end(PostFailure.LOST, "")
        if self._waiting:
            self._go_on()
        else:
            self._port.idle(self._target)

    def _misunderstood(self, reason: str) -> None:
        self._port.failed(self._sent.popleft(), PostFailure.MISUNDERSTOOD, reason)
        self._end(PostFailure.LOST, f"{self._target.authority}: the answer before: {reason}")
        self._go_on()

    def _late(self) -> None:
        self._timer = None
        if self._loop.time() + _TICK_S < self._due_s:
            self._timer_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._late)
            return
        if self._sent:
            reason = f"{self._target.authority}: no answer in {self._options.timeout_s:.0f} s"
            self._end(PostFailure.LOST, reason)
            self._go_on()
        else:
            self._end(PostFailure.LOST, "")
        if self._transport is None and self._connecting is None:
            self._port.idle(self._target)

    def _end(self, failure: PostFailure, reason: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        sent, self._sent = self._sent, deque()
        for each in sent:
            self._port.failed(each, failure, reason)

    def _fail_waiting(self, failure: PostFailure, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for post in waiting:
            self._port.failed(post, failure, reason)

    def _arm(self, wait_s: float) -> None:
        self._due_s = self._loop.time() + wait_s
        if self._timer is None or self._timer_s > self._due_s:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_s = self._due_s
            self._timer = self._loop.call_at(self._due_s, self._late)
