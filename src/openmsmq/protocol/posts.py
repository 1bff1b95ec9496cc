"""POST requests of HTTP as values: what came in, what it is answered, and what is to leave.

The core says what a post means; a driver has the sockets, the connections and their limits.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec


class ReceivedPost(msgspec.Struct, frozen=True, gc=False):
    """A post that has come, whole and within the limits, for a queue that its URL may name."""

    number: int
    """The driver's; the answer names it. It is never given twice."""
    queue: str
    r"""The queue that the URL stands for, as in a path name: `private$\orders`."""
    target: str
    """Path and query as they were sent, such as `/msmq/private$/orders?SenderStream=7`."""
    host: str
    """The Host header in lower case, with its port if it has one; one of ours."""
    headers: dict[str, str]
    """The headers that somebody may need, by their names in lower case; see `PASSED_ON`."""
    body: bytes
    address: str
    """The IP address that it came from: of a proxy, if there is one."""
    is_secure: bool = False
    """Whether it came over TLS."""
    certificate: bytes = b""
    """What the peer has proved to have, in DER; empty without one."""


class PostAnswer(msgspec.Struct, frozen=True, gc=False):
    """What a post is answered, once that may be known to others."""

    number: int
    status: int
    body: bytes = b""
    content_type: str = ""
    """Of the body; empty without one."""


class OutgoingPost(msgspec.Struct, frozen=True, gc=False):
    """A post that is to leave."""

    call: int
    """The core's; the outcome names it."""
    url: str
    headers: tuple[tuple[str, str], ...]
    """Without Host, Content-Length and Connection, which the driver adds."""
    body: bytes


class PostFailure(Enum):
    """Why a post has no status."""

    UNREACHABLE = "unreachable"
    """There was no connection: the other side cannot have seen it."""
    UNTRUSTED = "untrusted"
    """TLS did not prove who the other side is, or it refused us: it cannot have seen it."""
    LOST = "lost"
    """The connection ended, or no answer came in time: it may have been received."""
    REFUSED = "refused"
    """It cannot be sent at all: the URL is none, or its host is not allowed."""
    BUSY = "busy"
    """Too many posts wait: nothing was sent."""
    MISUNDERSTOOD = "misunderstood"
    """What came back is no HTTP, or longer than may be: it may have been received."""


PASSED_ON: Final = frozenset({"content-type", "soapaction", "proxy-accept", "user-agent"})
"""Headers of a post that are handed on."""
