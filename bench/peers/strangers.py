"""Peers that mean no good, in a process of their own: slow ones, and ones that come in a flood.

    python -m bench.peers.strangers ADDRESS PORT --slow 500 --flood 50

Slow peers keep a connection and use it as little as they can: a third sends its handshake a byte a
second, a third opens a session and sends a packet a byte a second, and a third sends messages and
never reads. Floods come from as many addresses, each with one connection after the other: closed at
once, with garbage, and with garbage behind a good handshake. Each address of a flood keeps a pace,
so that what is measured is the queue manager and not who gets the processor. They go on until they
are terminated; the last line says, as JSON, what they did and how much of a processor it took.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final

from openmsmq.model.identity import Guid
from openmsmq.runtime.clocks import read_clocks
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection, UserMessage, encode

STRANGER: Final = Guid(b"a stranger here ")
ESTABLISH: Final = encode(EstablishConnection(EstablishHeader(STRANGER)))
PARAMETERS: Final = encode(ConnectionParameters(ParametersHeader(500, 20_000, 64)))
ANSWER_BYTES: Final = len(ESTABLISH) + len(PARAMETERS)
TRICKLE_S: Final = 1.0
PER_ADDRESS: Final = 5
"""Slow peers that share an address."""

_SLOW_NETWORK: Final = 80
_FLOOD_NETWORK: Final = 90
_RECEIVE_BYTES: Final = 4096


class Strangers:
    """All of them."""

    def __init__(self, target: tuple[str, int], per_s: float) -> None:
        self.did: Counter[str] = Counter()
        self._target = target
        self._pause_s = 1 / per_s
        self._random = random.Random(1)

    async def run(self, slow: int, flood: int) -> None:
        """Let so many of each kind do what they do."""
        kinds = (self._slow_handshake, self._slow_packet, self._never_reads)
        jobs = [
            self._again(kinds[number % 3], _address(_SLOW_NETWORK, number // PER_ADDRESS))
            for number in range(slow)
        ]
        jobs += [self._flood(_address(_FLOOD_NETWORK, number)) for number in range(flood)]
        await asyncio.gather(*jobs)

    async def _again(self, kind: Callable[[str], Awaitable[None]], address: str) -> None:
        """Be one slow peer, and come back when it was cut."""
        await asyncio.sleep(self._random.random())
        while True:
            with contextlib.suppress(OSError):
                await kind(address)
            self.did["slow peers cut"] += 1
            await asyncio.sleep(TRICKLE_S)

    async def _slow_handshake(self, address: str) -> None:
        with await self._connected(address) as made:
            await self._trickle(made, ESTABLISH + PARAMETERS)

    async def _slow_packet(self, address: str) -> None:
        with await self._connected(address) as made:
            await self._open(made)
            await self._trickle(made, _message(self._target[0], bytes(4000)))

    async def _never_reads(self, address: str) -> None:
        with await self._connected(address) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(made, ESTABLISH + PARAMETERS)
            while True:
                await loop.sock_sendall(made, _message(self._target[0], b"for nobody"))
                self.did["messages for nobody"] += 1
                await asyncio.sleep(TRICKLE_S)

    async def _trickle(self, made: socket.socket, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        for at in range(len(data)):
            await loop.sock_sendall(made, data[at : at + 1])
            self.did["bytes trickled"] += 1
            await asyncio.sleep(TRICKLE_S)

    async def _flood(self, address: str) -> None:
        loop = asyncio.get_running_loop()
        due_s = time.perf_counter() + self._random.random() * self._pause_s
        while True:
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            due_s = max(due_s + self._pause_s, time.perf_counter())
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(TRICKLE_S):
                    with await self._connected(address) as made:
                        self.did["connections of the flood"] += 1
                        match self._random.randrange(3):
                            case 0:
                                pass
                            case 1:
                                await loop.sock_sendall(made, self._random.randbytes(1000))
                                await loop.sock_recv(made, _RECEIVE_BYTES)
                            case _:
                                await self._open(made)
                                await loop.sock_sendall(made, self._random.randbytes(1000))
                                self.did["handshakes of the flood"] += 1

    async def _open(self, made: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(made, ESTABLISH + PARAMETERS)
        heard = 0
        while heard < ANSWER_BYTES:
            data = await loop.sock_recv(made, _RECEIVE_BYTES)
            if not data:
                raise ConnectionResetError
            heard += len(data)

    async def _connected(self, address: str) -> socket.socket:
        made = socket.socket()
        try:
            made.setblocking(False)
            made.bind((address, 0))
            await asyncio.get_running_loop().sock_connect(made, self._target)
        except BaseException:
            made.close()
            raise
        self.did["connections"] += 1
        return made


def _address(network: int, number: int) -> str:
    return f"127.0.{network + number // 250}.{1 + number % 250}"


_NUMBERS: Final[Iterator[int]] = iter(range(1, 1 << 32))


def _message(address: str, body: bytes) -> bytes:
    return encode(
        UserMessage(
            UserHeader(
                STRANGER,
                message_number=next(_NUMBERS),
                sent_time_s=read_clocks().unix_s,
                destination=DirectName(rf"TCP:{address}\private$\nobody"),
            ),
            MessageProperties.of(body),
            BaseHeader(3),
        )
    )


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser("python -m bench.peers.strangers")
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--slow", type=int, default=0, help="slow peers")
    parser.add_argument("--flood", type=int, default=0, help="addresses of a flood")
    parser.add_argument("--per-s", type=float, default=20.0, help="connections of each of those")
    options = parser.parse_args()
    strangers = Strangers((options.address, options.port), options.per_s)
    start_s = time.perf_counter()
    asyncio.run(until_terminated(strangers.run(options.slow, options.flood)))
    spent_s = time.perf_counter() - start_s
    share = time.process_time() / spent_s
    print(json.dumps({"processor": round(share, 3), "seconds": round(spent_s, 1), **strangers.did}))
    return 0


async def until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Say that it begins, and go on until the process is asked to end."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    print("begun", flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await task


if __name__ == "__main__":
    sys.exit(main())
