"""The same loop without the product: what asyncio, MessagePack and one sync per turn allow.

A server that frames, keeps a list, writes what came to a file, syncs it once per turn and then
answers. It checks nothing, knows one queue, and could not recover. Its producer builds packets and
its consumer reads them with the code of OpenMSMQ's client, as both would do with the product too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from bench.peers.pair import BODY, BODY_BYTES, Gate, Job
from bench.peers.process import child, wait_until
from openmsmq.client.formatters import find_formatter
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.wire.outline import BodyFinder

NAME: Final = "the loop without the product"
BATCH_COUNT: Final = 256
CALLS_UNDER_WAY: Final = 4

_LENGTH: Final = struct.Struct("<I")
_FILE_BYTES: Final = 16 << 20
_READ_BYTES: Final = 1 << 20
_START_S: Final = 10.0
_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder().decode


def missing() -> str | None:
    """It is always there."""
    return None


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run the server; gives its address."""
    log = directory / "bound.log"
    address = str(directory / "bound.sock")
    journal = str(directory / "bound.journal")
    command = [sys.executable, "-m", "bench.peers.bound", address, journal]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with child(command, log, environment) as server:
        wait_until(lambda: log.read_bytes().endswith(b"\n"), server, log, _START_S)
        yield address


def prepare(address: str, job: Job) -> None:
    """There is nothing to prepare: the one queue is empty after each job."""


# The server.


class _Turns:
    """What came in since the last turn of the loop, and the file it goes to."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.write(self._file, bytes(_FILE_BYTES))
        os.fsync(self._file)
        self._place = 0
        self._loop = asyncio.get_running_loop()
        self._scheduled = False
        self._written: list[bytes] = []
        self._answers: list[tuple[asyncio.Transport, bytes]] = []
        self._queue: deque[bytes] = deque()
        self._waiting: deque[tuple[asyncio.Transport, int, int]] = deque()

    def take(self, client: asyncio.Transport, frame: bytes) -> None:
        """Take a call: packets to keep, or how many are wanted."""
        call, request = _DECODE(frame)
        if isinstance(request, list):
            self._queue.extend(request)
            self._written.append(frame)
            self._answer(client, call, len(request))
        else:
            self._waiting.append((client, call, request))
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        while self._waiting and self._queue:
            client, call, wanted = self._waiting.popleft()
            found = [self._queue.popleft() for _ in range(min(wanted, len(self._queue)))]
            self._written.append(_LENGTH.pack(len(found)))
            self._answer(client, call, found)
        if self._written:
            data = b"".join(self._written)
            self._written.clear()
            if self._place + len(data) > _FILE_BYTES:
                self._place = 0
            os.pwrite(self._file, data, self._place)
            os.fdatasync(self._file)
            self._place += len(data)
        answers, self._answers = self._answers, []
        for client, data in answers:
            client.write(data)

    def _answer(self, client: asyncio.Transport, call: int, reply: object) -> None:
        body = _ENCODE((call, reply))
        self._answers.append((client, _LENGTH.pack(len(body)) + body))


class _Client(asyncio.BufferedProtocol):
    """One connection."""

    def __init__(self, turns: _Turns) -> None:
        self._turns = turns
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._data = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 -- the loop's own guess
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        frames, self._data = _cut(self._data + self._buffer[:nbytes])
        for frame in frames:
            self._turns.take(self._transport, frame)


def _cut(data: bytes) -> tuple[list[bytes], bytes]:
    """Cut whole frames from the front; gives them and the rest."""
    frames = []
    start = 0
    while len(data) - start >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(data, start)
        begin = start + _LENGTH.size
        if len(data) - begin < length:
            break
        frames.append(data[begin : begin + length])
        start = begin + length
    return frames, data[start:]


async def _serve(address: str, journal: str) -> None:
    turns = _Turns(journal)
    loop = asyncio.get_running_loop()
    server = await loop.create_unix_server(lambda: _Client(turns), address)
    print("ready", flush=True)
    await server.serve_forever()


# The client.


class _Line:
    """A blocking connection."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)
        self._frames: deque[bytes] = deque()
        self._data = b""
        self._call = 0

    def ask(self, request: object) -> None:
        """Begin a call."""
        self._call += 1
        body = _ENCODE((self._call, request))
        self._socket.sendall(_LENGTH.pack(len(body)) + body)

    def answer(self) -> Any:
        """Wait for the next answer; they come in order."""
        while not self._frames:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise ConnectionError("the server is gone")
            frames, self._data = _cut(self._data + data)
            self._frames.extend(frames)
        return _DECODE(self._frames.popleft())[1]


def produce(address: str, job: Job, gate: Gate) -> list[float]:
    """Send the messages of a job."""
    line = _Line(address)
    builder = PacketBuilder(f"OS:bench\\private$\\{job.queue}", "BENCH")
    like = OutgoingMessage(recoverable=job.durable)
    build = builder.series(like, find_formatter(None), transactional=False)

    def send(count: int) -> None:
        under_way = 0
        while count > 0:
            step = min(BATCH_COUNT, count)
            line.ask([build(BODY) for _ in range(step)])
            count -= step
            under_way += 1
            if under_way == CALLS_UNDER_WAY:
                line.answer()
                under_way -= 1
        for _ in range(under_way):
            line.answer()

    send(job.warm_up)
    gate.wait()
    send(job.count)
    return []


def consume(address: str, job: Job, gate: Gate) -> list[float]:
    """Receive the messages of a job."""
    line = _Line(address)
    bodies = BodyFinder()

    def take(count: int) -> None:
        # Two calls under way: one to read while the server fills the other.
        ahead = 0
        while count > 0:
            while ahead < 2 and ahead * BATCH_COUNT < count:
                line.ask(BATCH_COUNT)
                ahead += 1
            found = line.answer()
            ahead -= 1
            count -= len(found)
            for packet in found:
                found_body = bodies.find(packet)
                assert found_body is not None
                assert len(found_body[1]) == BODY_BYTES

    take(job.warm_up)
    gate.wait()
    take(job.count)
    return []


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
