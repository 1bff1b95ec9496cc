"""Posts to one URL, in order, over one connection: pipelined, timed, and answered one by one.

Each post has an h11 connection of its own; what follows an answer on the wire belongs to the next
one. Nothing is sent again that may have been received. A server that says it closes has not looked
at what came behind: that is sent again, over the next connection. One that fails gets nothing more
over this connection, and it ends when what has left is answered: the next one may lead to a server
that does better.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Final, cast
from urllib.parse import urlsplit

import h11
import msgspec

from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.runtime.limits import HTTP_ANSWER_MAX_BYTES, HTTP_HEAD_MAX_BYTES
from openmsmq.runtime.start_errors import os_reason

_USER_AGENT: Final = "OpenMSMQ"
_SERVER_FAILS: Final = 500
"""From this status on it is the server that has failed, not the post."""
_PROXY_ACCEPT: Final = ("Proxy-Accept", "NonInteractiveClient")


class BadUrl(ValueError):
    """A URL to which nothing can be posted."""


class Target(msgspec.Struct, frozen=True):
    """Where posts of one lane go."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


@lru_cache(maxsize=1_024)
def read_url(url: str) -> tuple[Target, str]:
    """Return where a post goes, and what stands in its request line; or raise `BadUrl`."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise BadUrl(f"{url[:200]!r} has letters that no URL has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadUrl(f"{url[:200]!r} is no URL: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname or parts.username:
        raise BadUrl(f"{url[:200]!r} is no URL to post to: it begins with http:// or https://")
    is_secure = parts.scheme.lower() == "https"
    path = parts.path or "/"
    target = Target(is_secure, parts.hostname, port or (443 if is_secure else 80), path)
    return target, f"{path}?{parts.query}" if parts.query else path


class LaneOptions(msgspec.Struct, frozen=True):
    """How posts leave."""

    pipelined_max: int
    timeout_s: float
    idle_s: float
    """How long a connection without a post is kept. [MQSRM 3.1.2.4]"""
    proxy_accept: bool


class _Sent:
    """A post that has left, and what reads its answer."""

    __slots__ = ("body", "parser", "post", "status")

    def __init__(self, post: OutgoingPost) -> None:
        self.post = post
        self.parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=HTTP_HEAD_MAX_BYTES)
        self.status = 0
        self.body = b""


class LanePort(msgspec.Struct, frozen=True):
    """Who hears of a lane."""

    answered: Callable[[OutgoingPost, int, bytes], None]
    failed: Callable[[OutgoingPost, PostFailure, str], None]
    idle: Callable[[Target], None]
    """It has no connection and nothing to do."""


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
        self._sent: deque[_Sent] = deque()
        self._transport: asyncio.Transport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
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
            asyncio.get_running_loop().call_soon(self._called)

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
                self._connecting = asyncio.get_running_loop().create_task(self._connect())
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
        sent = _Sent(post)
        _, request_target = read_url(post.url)
        headers = [
            ("Host", self._target.authority),
            ("User-Agent", _USER_AGENT),
            *(each for each in post.headers if each[0].lower() != _PROXY_ACCEPT[0].lower()),
            ("Content-Length", str(len(post.body))),
        ]
        if self._options.proxy_accept:
            headers.append(_PROXY_ACCEPT)
        request = h11.Request(method="POST", target=request_target, headers=headers)
        parts = [sent.parser.send(request) or b""]
        if post.body:
            parts.append(sent.parser.send(h11.Data(data=post.body)) or b"")
        sent.parser.send(h11.EndOfMessage())
        self._sent.append(sent)
        return b"".join(parts)

    async def _connect(self) -> None:
        target = self._target
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await asyncio.get_running_loop().create_connection(
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
        self._is_closing = self._is_spent = self._is_paused = False
        self._go_on()

    def data_received(self, data: bytes) -> None:
        """Take answers."""
        while self._sent and self._transport is not None:
            sent = self._sent[0]
            try:
                sent.parser.receive_data(data)
                is_whole = self._read(sent)
            except h11.RemoteProtocolError as error:
                self._misunderstood(str(error))
                return
            if len(sent.body) > HTTP_ANSWER_MAX_BYTES:
                self._misunderstood(f"an answer of more than {HTTP_ANSWER_MAX_BYTES} bytes")
                return
            if not is_whole:
                return
            self._sent.popleft()
            data = sent.parser.trailing_data[0]
            self._is_closing |= sent.parser.their_state is not h11.DONE
            self._is_spent |= sent.status >= _SERVER_FAILS
            self._port.answered(sent.post, sent.status, sent.body)
            if self._is_closing or (self._is_spent and not self._sent):
                self._put_back()
                return
            self._arm(self._options.timeout_s if self._sent else self._options.idle_s)
            if not data:
                break
        self._go_on()

    def _read(self, sent: _Sent) -> bool:
        """Read events of an answer; say whether it is whole."""
        while True:
            event = sent.parser.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return False
            if isinstance(event, h11.Response):
                sent.status = event.status_code
            elif isinstance(event, h11.Data):
                if len(sent.body) <= HTTP_ANSWER_MAX_BYTES:
                    sent.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return True
            elif isinstance(event, h11.ConnectionClosed):
                return False

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
            self._waiting.appendleft(self._sent.pop().post)
        self._end(PostFailure.LOST, "")
        if self._waiting:
            self._go_on()
        else:
            self._port.idle(self._target)

    def _misunderstood(self, reason: str) -> None:
        sent = self._sent.popleft()
        self._port.failed(sent.post, PostFailure.MISUNDERSTOOD, reason)
        self._end(PostFailure.LOST, f"{self._target.authority}: the answer before: {reason}")
        self._go_on()

    def _late(self) -> None:
        self._timer = None
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
            self._port.failed(each.post, failure, reason)

    def _fail_waiting(self, failure: PostFailure, reason: str) -> None:
        waiting, self._waiting = self._waiting, deque()
        for post in waiting:
            self._port.failed(post, failure, reason)

    def _arm(self, wait_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._late)
