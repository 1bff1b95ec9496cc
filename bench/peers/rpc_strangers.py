"""Those who do their worst at the doors of RPC, in a process of their own.

    python -m bench.peers.rpc_strangers KIND ADDRESS PORT --addresses 50 --per-s 20

Each address has one connection after the other and keeps a pace, so that what is measured is the
queue manager and not who gets the processor. They go on until they are terminated; the last line
says, as JSON, what they did and how much of a processor it took.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from bench.peers.openmsmq_remote import INTERFACE, PASSWORD, USER
from bench.peers.strangers import until_terminated
from openmsmq.client.managing.proving import protection
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import RPC_CALLS_MAX_COUNT, RPC_FRAGMENT_MAX_BYTES
from openmsmq.protocol.rpc.client import ClientAssociation
from openmsmq.protocol.rpc.client_states import Bound, ClientOutput, Failed, Returned
from openmsmq.protocol.rpc.states import Written
from openmsmq.security.authentication.initiators import credentials_of
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.pdus import WHOLE, Flag, Header, PduType, Request, write
from openmsmq.wire.rpc.queue_format import QueueFormat

QUEUE: Final = r"private$\bait"
"""Where endless calls wait."""
VICTIM: Final = "victim"
"""Whose password is guessed."""

_NETWORK: Final = 110
_PATIENCE_S: Final = 5.0
_FOR_EVER_MS: Final = 0xFFFF_FFFF
_HUGE_BYTES: Final = 60_000
_READ_BYTES: Final = 1 << 16


class _Line:
    """One connection, and our side of the association."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, machine: ClientAssociation
    ) -> None:
        self._reader = reader
        self.writer = writer
        self.machine = machine
        machine.connected()

    async def hear(self) -> list[ClientOutput]:
        """Write what is to be written; read, unless there is something to look at already."""
        found: list[ClientOutput] = []
        while not found:
            for output in self.machine.take_outputs():
                if isinstance(output, Written):
                    self.writer.write(output.data)
                else:
                    found.append(output)
            if not found:
                data = await self._reader.read(_READ_BYTES)
                if not data:
                    raise ConnectionResetError
                self.machine.received(data)
        if any(isinstance(each, Failed) for each in found):
            raise ConnectionResetError
        return found

    async def bound(self) -> None:
        """Agree with the server."""
        while not any(isinstance(each, Bound) for each in await self.hear()):
            pass

    async def call(self, operation: int, stub: bytes) -> bytes:
        """Call and wait."""
        number = self.machine.call(operation, stub)
        while True:
            for each in await self.hear():
                if isinstance(each, Returned) and each.call == number:
                    return each.stub

    async def until_closed(self) -> None:
        """Say nothing more."""
        while await self._reader.read(_READ_BYTES):
            pass


class Strangers:
    """All of them."""

    def __init__(self, kind: str, target: tuple[str, int], per_s: float) -> None:
        self.did: Counter[str] = Counter()
        self._kind = KINDS[kind]
        self._target = target
        self._pause_s = 1 / per_s
        self.random = random.Random(1)

    async def run(self, addresses: int) -> None:
        """Let so many do what they do."""
        await asyncio.gather(*(self._again(number) for number in range(addresses)))

    async def pause(self) -> None:
        """Keep the pace."""
        await asyncio.sleep(self._pause_s)

    async def _again(self, number: int) -> None:
        await asyncio.sleep(self.random.random() * self._pause_s)
        while True:
            with contextlib.suppress(OSError, TimeoutError):
                await self._kind(self, f"127.0.{_NETWORK}.{1 + number}")
            self.did["connections ended"] += 1
            await self.pause()

    @contextlib.asynccontextmanager
    async def line(
        self, address: str, user: str = "", password: str = PASSWORD
    ) -> AsyncIterator[_Line]:
        """Connect, as somebody or as nobody."""
        proved = None
        if user:
            proved = protection(credentials_of(user, password), self._target[0])
        async with asyncio.timeout(_PATIENCE_S):
            opened = await asyncio.open_connection(*self._target, local_addr=(address, 0))
        self.did["connections"] += 1
        try:
            yield _Line(*opened, ClientAssociation(INTERFACE, proved))
        finally:
            opened[1].transport.abort()


async def _stall(strangers: Strangers, address: str) -> None:
    """Begin to agree, and say nothing more."""
    async with strangers.line(address, USER) as line:
        for output in line.machine.take_outputs():
            line.writer.write(output.data)
        strangers.did["binds that stall"] += 1
        await line.until_closed()


async def _malformed(strangers: Strangers, address: str) -> None:
    """Agree, and send fragments that are none."""
    async with strangers.line(address) as line, asyncio.timeout(_PATIENCE_S):
        await line.bound()
        garbage = strangers.random.randbytes(1_000)
        kind = strangers.random.choice((PduType.REQUEST, PduType.ALTER_CONTEXT, PduType.AUTH3, 99))
        head = Header(kind, WHOLE, 16 + len(garbage), strangers.random.choice((0, 16)), 1)
        line.writer.write(head.encode() + garbage)
        strangers.did["malformed fragments"] += 1
        await line.until_closed()


async def _huge(strangers: Strangers, address: str) -> None:
    """Send a fragment that is too long, or a call in long fragments that never ends."""
    async with strangers.line(address) as line, asyncio.timeout(_PATIENCE_S):
        await line.bound()
        if strangers.random.randrange(2):
            head = Header(PduType.REQUEST, WHOLE, 0xFFFF, 0, 1)
            line.writer.write(head.encode() + bytes(_HUGE_BYTES))
        else:
            part = Request(0, 0, bytes(RPC_FRAGMENT_MAX_BYTES - 24))
            line.writer.write(write(PduType.REQUEST, 1, part, flags=Flag.FIRST))
            for _ in range(_HUGE_BYTES // RPC_FRAGMENT_MAX_BYTES):
                line.writer.write(write(PduType.REQUEST, 1, part, flags=0))
        strangers.did["KB"] += _HUGE_BYTES >> 10
        await line.until_closed()


async def _unproved(strangers: Strangers, address: str) -> None:
    """Call as nobody, again and again."""
    async with strangers.line(address) as line:
        await line.bound()
        while True:
            line.machine.call(rpc.Operation.GET_SERVER_PORT, b"")
            await line.hear()
            strangers.did["calls of nobody"] += 1
            await strangers.pause()


async def _guesses(strangers: Strangers, address: str) -> None:
    """Try another password."""
    async with strangers.line(address, VICTIM, "wrong") as line, asyncio.timeout(_PATIENCE_S):
        strangers.did["wrong passwords"] += 1
        await line.bound()
        line.machine.call(rpc.Operation.GET_SERVER_PORT, b"")
        await line.hear()


async def _endless(strangers: Strangers, address: str) -> None:
    """As one who has an account: have as many reads waiting as can be, and make more calls."""
    async with strangers.line(address, USER) as line:
        await line.bound()
        name = QueueFormat(3, 0, 0, rf"OS:TARGET\{QUEUE}")
        asked = rpc.OpenQueue(name, 1, 0, NIL_GUID, 1, 6, 1, 7600, 1)
        found = await line.call(rpc.Operation.OPEN_QUEUE, rpc.OPEN_QUEUE.encode(asked))
        context = rpc.OPENED.decode(found).context
        for number in range(1, RPC_CALLS_MAX_COUNT - 1):
            read = rpc.StartReceive(context, 0, 0, 0, _FOR_EVER_MS, number, 99, 99)
            line.machine.call(rpc.Operation.START_RECEIVE, rpc.START_RECEIVE.encode(read))
            strangers.did["endless calls"] += 1
        while True:
            await line.call(rpc.Operation.GET_SERVER_PORT, b"")
            strangers.did["further calls"] += 1
            await strangers.pause()


KINDS: Final[dict[str, Callable[[Strangers, str], Awaitable[None]]]] = {
    "stall": _stall,
    "malformed": _malformed,
    "huge": _huge,
    "unproved": _unproved,
    "guesses": _guesses,
    "endless": _endless,
}


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser("python -m bench.peers.rpc_strangers")
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--addresses", type=int, default=50)
    parser.add_argument("--per-s", type=float, default=20.0, help="actions of each address")
    options = parser.parse_args()
    strangers = Strangers(options.kind, (options.address, options.port), options.per_s)
    start_s = time.perf_counter()
    asyncio.run(until_terminated(strangers.run(options.addresses)))
    spent_s = time.perf_counter() - start_s
    share = time.process_time() / spent_s
    print(json.dumps({"processor": round(share, 3), "seconds": round(spent_s, 1), **strangers.did}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
