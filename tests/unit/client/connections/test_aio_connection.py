"""A connection of the asyncio client that is given up leaves nothing open."""

from __future__ import annotations

import asyncio
import contextlib

from openmsmq.client.connections.aio_connection import open_async_connection
from openmsmq.client.settings import Settings

WITHIN_S = 10.0


async def connect_and_give_up() -> bytes:
    """Connect to somebody who never answers, and break the wait off; give what came after Hello."""
    ended: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    greeted = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        greeted.set()
        await reader.read(1 << 16)
        ended.set_result(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        connecting = asyncio.ensure_future(
            open_async_connection(Settings(address=f"127.0.0.1:{port}"), None)
        )
        await greeted.wait()
        connecting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await connecting
        return await asyncio.wait_for(ended, WITHIN_S)


def test_who_breaks_a_connection_attempt_off_closes_the_connection() -> None:
    assert asyncio.run(connect_and_give_up()) == b""
