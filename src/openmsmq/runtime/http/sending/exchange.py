"""The client's side of HTTP without I/O: heads of posts that leave, and answers that come.

h11 writes and reads all of it. Who posts message after message sends the same head again and again
but for the length of the body, and gets the same answer: for what h11 has written or read already,
it is not asked once more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import h11

from openmsmq.runtime.http.heads import bytes_of
from openmsmq.runtime.limits import (
    HTTP_ANSWER_KNOWN_MAX_BYTES,
    HTTP_ANSWER_MAX_BYTES,
    HTTP_HEAD_MAX_BYTES,
)

_USER_AGENT: Final = "OpenMSMQ"
_PROXY_ACCEPT: Final = ("Proxy-Accept", "NonInteractiveClient")
_END: Final = b"\r\n"
_ANY_POST: Final = h11.Request(
    method="POST", target="/", headers=[("Host", "a"), ("Content-Length", "0")]
)
_ITS_END: Final = h11.EndOfMessage()


class Misunderstood(Exception):
    """What came is no answer of HTTP, or longer than may be."""


def written(
    authority: str,
    target: str,
    headers: tuple[tuple[str, str], ...],
    body: bytes,
    *,
    proxy_accept: bool,
) -> bytes:
    """Return a post as bytes."""
    head = _head(authority, target, headers, proxy_accept)
    return b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


@lru_cache(maxsize=256)
def _head(
    authority: str, target: str, headers: tuple[tuple[str, str], ...], proxy_accept: bool
) -> bytes:
    """Return the head of a post, up to where the length of the body is said."""
    lines = [
        ("Host", authority),
        ("User-Agent", _USER_AGENT),
        *(each for each in headers if each[0].lower() != _PROXY_ACCEPT[0].lower()),
    ]
    if proxy_accept:
        lines.append(_PROXY_ACCEPT)
    request = h11.Request(method="POST", target=target, headers=lines)
    return (h11.Connection(h11.CLIENT).send(request) or b"").removesuffix(_END)


class Answers:
    """Reads the answers that come over one connection, to posts."""

    def __init__(self) -> None:
        self.status = 0
        """Of the last answer that is whole."""
        self.body = b""
        self.closes = False
        """Whether the other side takes no further post over this connection."""
        self._parser: h11.Connection | None = None
        """What reads the answer that has begun."""
        self._known = b""
        """The last answer, if it came in one piece and the connection goes on."""

    def read(self, data: bytes, at: int) -> int | None:
        """Read from `at` on; return where the answer ends, or None if more of it is to come."""
        parser, known = self._parser, self._known
        is_new = parser is None
        if parser is None:
            if known and data.startswith(known, at):
                # The same bytes say the same.
                return at + len(known)
            parser = self._parser = h11.Connection(
                h11.CLIENT, max_incomplete_event_size=HTTP_HEAD_MAX_BYTES
            )
            parser.send(_ANY_POST)
            parser.send(_ITS_END)
            self.body = b""
        try:
            parser.receive_data(data[at:])
            is_whole = self._read_events(parser)
        except h11.RemoteProtocolError as error:
            raise Misunderstood(str(error)) from None
        if not is_whole:
            return None
        self._parser = None
        self.closes = parser.their_state is not h11.DONE
        end = len(data) - len(parser.trailing_data[0])
        is_kept = is_new and not self.closes and end - at <= HTTP_ANSWER_KNOWN_MAX_BYTES
        self._known = data[at:end] if is_kept else b""
        return end

    def _read_events(self, parser: h11.Connection) -> bool:
        """Read events of an answer; say whether it is whole."""
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return False
            if isinstance(event, h11.Response):
                self.status = event.status_code
            elif isinstance(event, h11.Data):
                self.body += bytes_of(event)
                if len(self.body) > HTTP_ANSWER_MAX_BYTES:
                    raise Misunderstood(f"an answer of more than {HTTP_ANSWER_MAX_BYTES} bytes")
            elif isinstance(event, h11.EndOfMessage):
                return True
            elif isinstance(event, h11.ConnectionClosed):
                return False
