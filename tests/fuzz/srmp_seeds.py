"""Where the targets of messages over HTTP start: the posts of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from openmsmq.wire.srmp.compound import read_compound
from tests.fuzz.registry import Repair
from tests.golden import golden_post, golden_request

_NAMES: Final = (
    "mqsrm-4.1-simple",
    "mqsrm-4.2-msmq-element",
    "mqsrm-4.3-both-receipts-wanted",
    "mqsrm-4.3-delivery-receipt",
    "mqsrm-4.3-commitment-receipt",
    "mqsrm-4.4-stream-1",
    "mqsrm-4.4-stream-2",
    "mqsrm-4.4-stream-receipt-1",
    "mqsrm-4.5-multicast",
)


def posts() -> list[bytes]:
    """All examples, each behind a line with its type."""
    found = []
    for name in _NAMES:
        headers, content = golden_post(name)
        found.append(headers["content-type"].encode() + b"\n" + content)
    return found


def envelopes() -> list[bytes]:
    """The envelopes of all examples."""
    found = []
    for name in _NAMES:
        headers, content = golden_post(name)
        found.append(read_compound(headers["content-type"], content).envelope)
    return found


def streams() -> list[bytes]:
    """Requests one behind the other, in pieces and cut; and answers."""
    requests = [golden_request(name) for name in _NAMES]
    pieces = (
        b"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    )
    answers = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the end"
    )
    return [b"".join(requests), requests[0] + pieces + requests[1], requests[2][9:], answers]


SEEDS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "envelopes": envelopes,
    "posts": posts,
    "http-captures": streams,
}
REPAIRS: Final[dict[str, Repair]] = {}
