"""A TLS tunnel, as one puts it in front of a computer whose queue manager has no TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from typing import TypeAlias

Place: TypeAlias = tuple[str, int]


class Tunnel:
    """Passes on bytes, with TLS on one side."""

    def __init__(
        self,
        listens: Place,
        target: Place,
        *,
        accepts: ssl.SSLContext | None = None,
        dials: ssl.SSLContext | None = None,
        source: str,
    ) -> None:
        self.count = 0
        """How many connections have come."""
        self._listens = listens
        self._target = target
        self._accepts = accepts
        self._dials = dials
        self._source = source
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    @contextlib.contextmanager
    def running(self) -> Iterator[Tunnel]:
        self._thread.start()
        assert self._ready.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join(10)
            self._loop.close()

    async def _run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(self._loop.create_task(self._pass_on(reader, writer)))

        host, port = self._listens
        server = await asyncio.start_server(arrived, host, port, ssl=self._accepts)
        self._ready.set()
        await self._end.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        host, port = self._target
        try:
            others = await asyncio.open_connection(
                host, port, ssl=self._dials, local_addr=(self._source, 0)
            )
        except OSError:
            writer.transport.abort()
            return
        try:
            await asyncio.gather(_pour(reader, others[1]), _pour(others[0], writer))
        except OSError:
            return
        finally:
            writer.transport.abort()
            others[1].transport.abort()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    # TLS has no half-open connections: the end of one direction is that of both.
    raise ConnectionError
