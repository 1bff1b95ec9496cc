"""What is written to a client arrives as it is, in order, however slowly the client reads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.runtime.api.outflow import PIECE_BYTES, Outflow
from tests.runtime.scripted_engine import WITHIN_S, in_loop

LONG = bytes(range(256)) * (8 * PIECE_BYTES // 256)


class Server(asyncio.Protocol):
    """One end of a connection with nothing but an outflow."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.outflow = Outflow(transport)
        self.outflow.begin()
        self.lost = asyncio.Event()

    def pause_writing(self) -> None:
        self.outflow.pause()

    def resume_writing(self) -> None:
        self.outflow.resume()

    def connection_lost(self, _: Exception | None) -> None:
        self.outflow.drop()
        self.lost.set()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Server, socket.socket]]:
    """Yield a server over a socket that takes little, and the socket of its client."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_connection(Server, sock=ours)
    with theirs:
        yield server, theirs
        transport.abort()
        await server.lost.wait()


async def received(client: socket.socket, size: int) -> bytes:
    """Return what a client reads until it has so many bytes, or the connection ends."""
    loop = asyncio.get_running_loop()
    got = bytearray()
    while len(got) < size:
        data = await loop.sock_recv(client, min(size - len(got), 50_000))
        if not data:
            break
        got += data
    return bytes(got)


sizes = st.one_of(
    st.integers(0, 20),
    st.integers(PIECE_BYTES - 1, PIECE_BYTES + 1),
    st.sampled_from([2 * PIECE_BYTES, 3 * PIECE_BYTES + 7]),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(sizes.map(lambda size: ("write", size)), st.just(("read", 90_000)))))
def test_every_byte_arrives_in_order_whenever_the_client_reads(steps: list[tuple[str, int]]):
    async def play() -> None:
        async with connected() as (server, client):
            sent, got = b"", b""
            for number, (step, size) in enumerate(steps):
                if step == "write":
                    data = bytes([number % 251]) * size
                    server.outflow.write(data)
                    sent += data
                elif sent != got:
                    got += await received(client, min(size, len(sent) - len(got)))
                assert server.outflow.unsent_bytes <= len(sent) - len(got)
            got += await received(client, len(sent) - len(got))
            assert got == sent
            assert server.outflow.unsent_bytes == 0

    asyncio.run(asyncio.wait_for(play(), WITHIN_S))


@in_loop
async def test_the_transport_never_has_more_than_a_piece():
    async with connected() as (server, client):
        server.outflow.write(LONG)
        assert 0 < server.transport.get_write_buffer_size() <= PIECE_BYTES
        assert server.outflow.unsent_bytes > len(LONG) - 2 * PIECE_BYTES
        assert await received(client, len(LONG)) == LONG
        assert server.outflow.unsent_bytes == 0


@in_loop
async def test_what_is_short_waits_behind_what_is_long_and_costs_no_more_than_it_is():
    async with connected() as (server, client):
        server.outflow.write(LONG)
        for _ in range(1000):
            server.outflow.write(b"short")
        assert server.outflow.waiting_count == 2
        server.outflow.write(LONG)
        server.outflow.write(b"end")
        expected = LONG + b"short" * 1000 + LONG + b"end"
        assert await received(client, len(expected)) == expected


@in_loop
async def test_the_end_comes_when_everything_has_left():
    async with connected() as (server, client):
        server.outflow.write(LONG)
        server.outflow.write(b"last")
        server.outflow.end(server.transport.write_eof)
        assert server.outflow.unsent_bytes > 0
        assert await received(client, 2 * len(LONG)) == LONG + b"last"


@in_loop
async def test_with_nothing_to_send_the_end_comes_at_once():
    async with connected() as (server, client):
        server.outflow.end(server.transport.write_eof)
        assert await received(client, 1) == b""


@in_loop
async def test_what_waits_for_a_client_that_is_gone_is_forgotten():
    async with connected() as (server, client):
        server.outflow.write(LONG)
        await received(client, 2 * PIECE_BYTES)
        client.close()
        await server.lost.wait()
        assert server.outflow.unsent_bytes == 0


@in_loop
async def test_nothing_is_handed_to_a_transport_that_is_closing():
    async with connected() as (server, _):
        ended: list[str] = []
        server.outflow.write(LONG)
        server.outflow.end(lambda: ended.append("in order"))
        server.transport.abort()
        server.outflow.resume()
        assert server.outflow.unsent_bytes == server.transport.get_write_buffer_size()
        assert not ended
