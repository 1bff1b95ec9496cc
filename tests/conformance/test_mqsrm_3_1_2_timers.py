"""The timers of messages over HTTP: the core's in virtual time, that of connections in ours.

[MQSRM 3.1.2]
"""

from __future__ import annotations

import asyncio
import contextlib

from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.http.sending.client import HttpClient
from tests.conformance.marks import shows
from tests.unit.manager.posts.mailroom import (
    BETA_PLAIN,
    BETA_STREAM,
    Mailroom,
    body_of,
    envelope_of,
    of_stream,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Answers:
    """Hears what became of posts."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def post_answered(self, call: int, status: int, body: bytes) -> None:  # noqa: ARG002
        self.found.append(status)

    def post_failed(self, call: int, failure: PostFailure, reason: str) -> None:
        raise AssertionError(f"{call}: {failure}: {reason}")


def kept_for(**table: int) -> float:
    """Post something to a server that keeps connections; gives how long this one was idle."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[float] = loop.create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(4)
            writer.write(OK)
            began_s = loop.time()
            # Nothing more comes until the other side hangs up.
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            ended.set_result(loop.time() - began_s)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        answers = Answers()
        client = HttpClient(HttpTable(sends=True, **table), "", answers)  # type: ignore[arg-type]
        try:
            client.post(OutgoingPost(1, f"http://127.0.0.1:{port}/msmq/q", (), b"post"))
            async with asyncio.timeout(20):
                found = await ended
            assert answers.found == [200]
            return found
        finally:
            client.close()
            server.close()

    return asyncio.run(main())


def resends_a_post_after(room: Mailroom, ms: int) -> bool:
    """Whether a post without an answer goes again after so long, and not before."""
    (post,) = room.sends(BETA_PLAIN, b"plain")
    room.failed(post)
    before, after = room.passes(ms - 1), room.passes(1)
    assert all(body_of(each) == b"plain" for each in after)
    for each in after:
        room.answered(each)
    return (len(before), len(after)) == (0, 1)


def resends_a_stream_after(room: Mailroom, ms: int) -> bool:
    """Whether a message of a stream without a receipt goes again after so long."""
    (post,) = room.sends(BETA_STREAM, b"stream")
    room.answered(post)
    before, after = room.passes(ms - 1), room.passes(1)
    for each in after:
        room.answered(each)
    return ([*map(body_of, before)], [*map(body_of, after)]) == ([], [b"stream"])


def tells_of_a_stream_after(room: Mailroom, ms: int) -> bool:
    """Whether a receipt for a stream is sent after so long."""
    assert room.post(of_stream(1, start=True)) == 200
    before, after = room.passes(ms - 1), room.passes(1)
    receipts = [envelope_of(each).stream_receipt for each in after]
    return not before and len(receipts) == 1 and receipts[0] is not None


@shows("MQSRM-3.1.2", 1)
def test_there_are_four_timers() -> None:
    # One room for each, so that none is mistaken for another.
    assert resends_a_post_after(Mailroom(), 30_000)
    assert resends_a_stream_after(Mailroom(), 30_000)
    assert tells_of_a_stream_after(Mailroom(), 500)
    assert 1 <= kept_for(send_idle_s=1) < 10


@shows("MQSRM-3.1.2.2", 1)
def test_how_long_a_receipt_is_waited_for_is_configured() -> None:
    for wait_s in (7, 40):
        config = TransferConfig(resend_first_s=wait_s)
        assert resends_a_stream_after(Mailroom(transfer=config), wait_s * 1_000)


@shows("MQSRM-3.1.2.4", 1)
def test_how_long_an_idle_connection_is_kept_is_configured() -> None:
    assert 1 <= kept_for(send_idle_s=1) < 3 <= kept_for(send_idle_s=3)
