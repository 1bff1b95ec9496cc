"""Strangers with good handshakes who send what a queue manager might choke on.

    python -m bench.peers.flooders KIND ADDRESS PORT --addresses 20 --per-s 100

Each address keeps one session and a pace, so that what is measured is the queue manager and not who
gets the processor; who is cut comes back after a moment. They go on until they are terminated; the
last line says, as JSON, what they did.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from bench.peers.strangers import until_terminated
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.runtime.clocks import read_clocks
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import ConnectionParameters, EstablishConnection, UserMessage, encode

OPEN: Final = r"private$\open"
OPEN_LEDGER: Final = r"private$\openledger"
NOWHERE: Final = "127.0.130"
"""A network of this computer in which nobody listens."""

_NETWORK: Final = 100
_PAUSE_S: Final = 0.25
_STEP_S: Final = 0.05
_NEGATIVE_ARRIVAL: Final = 0x04
_ALL_ACKNOWLEDGMENTS: Final = 0x0F
_BIG_BYTES: Final = 200_000
_LONGEST_BYTES: Final = 4_000_000
_HALF_PIECES: Final = 15
_SAID_AS_ONE: Final = 10
"""Messages after which a stranger of the kind `senders` is somebody else, in a new session."""


class Sender:
    """One stranger: who he says he is, and how many messages he has made."""

    def __init__(self, number: int, target: str) -> None:
        self.number = number
        self.target = target
        self.guid = self._identity(0)
        self.said = 0
        """What it has said in its present session."""
        self._numbers = itertools.count(1)

    def renew(self, session: int) -> None:
        """Be somebody else from now on."""
        self.guid = self._identity(session)

    def _identity(self, session: int) -> Guid:
        return Guid(self.number.to_bytes(4, "big") + b"stranger" + session.to_bytes(4, "big"))

    def message(
        self,
        queue: str,
        body: bytes,
        *,
        recoverable: bool = True,
        late: bool = False,
        admin: str = "",
        acknowledge: int = 0,
        sequence: int = 0,
        traced: bool = False,
    ) -> bytes:
        """Make a packet; one that is `late` has travelled too long, and its sender hears of it."""
        number = next(self._numbers)
        now_s = read_clocks().unix_s
        transaction = None
        if sequence:
            transaction = TransactionHeader(SequenceId(sequence, now_s), 1, 0, flags=0x02)
        message = UserMessage(
            UserHeader(
                self.guid,
                message_number=number,
                sent_time_s=now_s - 100_000 if late else now_s,
                flags=user.RECOVERABLE if recoverable else 0,
                destination=DirectName(rf"TCP:{self.target}\{queue}"),
                admin_queue=DirectName(f"TCP:{admin}") if admin else None,
            ),
            MessageProperties.of(body, acknowledge=acknowledge),
            BaseHeader(
                (0 if sequence else 3) | (base.TRACE if traced else 0), 1 if late else INFINITE_S
            ),
            transaction,
            debug=DebugHeader(Guid(number.to_bytes(16, "big"))) if traced else None,
        )
        return encode(message)


def _nacks(sender: Sender, count: int) -> bytes:
    admin = rf"{NOWHERE}.{1 + count % 200}\private$\admin"
    return sender.message(OPEN, b"n" * 4_000, late=True, admin=admin, acknowledge=_NEGATIVE_ARRIVAL)


def _queues(sender: Sender, count: int) -> bytes:
    admin = rf"{NOWHERE}.{1 + count % 200}\private$\a{sender.number}-{count}"
    return sender.message(OPEN, b"", late=True, admin=admin, acknowledge=_ALL_ACKNOWLEDGMENTS)


def _senders(sender: Sender, count: int) -> bytes:
    """Begin a sequence with each message; who has said enough comes back as somebody else."""
    queue = OPEN_LEDGER if count % 2 else rf"private$\missing{count}"
    return sender.message(queue, b"s", sequence=1 + count)


def _express(sender: Sender, _count: int) -> bytes:
    return sender.message(OPEN, b"e" * 500, recoverable=False)


def _traces(sender: Sender, count: int) -> bytes:
    admin = rf"{NOWHERE}.{1 + count % 200}\private$\admin"
    return sender.message(
        OPEN, b"t", admin=admin, acknowledge=_ALL_ACKNOWLEDGMENTS, traced=True, recoverable=False
    )


def _big(sender: Sender, _count: int) -> bytes:
    return sender.message(OPEN, bytes(_BIG_BYTES))


def _halves(sender: Sender, _count: int) -> bytes:
    """Return most of a packet that is as long as can be, and then nothing more."""
    if sender.said > _HALF_PIECES:
        return b""
    if sender.said > 1:
        return bytes(_BIG_BYTES)
    return sender.message(OPEN, bytes(_LONGEST_BYTES))[:_BIG_BYTES]


KINDS: Final[dict[str, Callable[[Sender, int], bytes]]] = {
    "nacks": _nacks,
    "queues": _queues,
    "senders": _senders,
    "express": _express,
    "traces": _traces,
    "big": _big,
    "halves": _halves,
}


class Flooders:
    """All strangers of a flood."""

    def __init__(self, kind: str, target: tuple[str, int], per_s: float) -> None:
        self.did: Counter[str] = Counter()
        self._make = KINDS[kind]
        self._said_as_one = _SAID_AS_ONE if kind == "senders" else 0
        self._target = target
        self._per_s = per_s

    async def run(self, addresses: int) -> None:
        """Let so many do what they do."""
        await asyncio.gather(*(self._go_on(number) for number in range(addresses)))

    async def _go_on(self, number: int) -> None:
        sender = Sender(number, self._target[0])
        counts = itertools.count()
        for session in itertools.count():
            if self._said_as_one:
                sender.renew(session)
            with contextlib.suppress(OSError):
                await self._session(sender, counts)
            self.did["sessions ended"] += 1
            await asyncio.sleep(_PAUSE_S)

    async def _session(self, sender: Sender, counts: itertools.count[int]) -> None:
        address = f"127.0.{_NETWORK + sender.number // 250}.{1 + sender.number % 250}"
        reader, writer = await asyncio.open_connection(*self._target, local_addr=(address, 0))
        hearing = asyncio.create_task(_hear(reader))
        try:
            writer.write(encode(EstablishConnection(EstablishHeader(sender.guid))))
            writer.write(encode(ConnectionParameters(ParametersHeader(500, 20_000, 512))))
            await asyncio.sleep(_PAUSE_S)
            owed = 0.0
            sender.said = 0
            due_s = time.perf_counter()
            while not hearing.done() and (not self._said_as_one or sender.said < self._said_as_one):
                owed += self._per_s * _STEP_S
                for _ in range(int(owed)):
                    sender.said += 1
                    packet = self._make(sender, next(counts))
                    writer.write(packet)
                    self.did["messages"] += 1
                    self.did["bytes"] += len(packet)
                owed -= int(owed)
                await writer.drain()
                due_s = max(due_s + _STEP_S, time.perf_counter())
                await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            # An abort would take back what has not been read yet.
            await asyncio.sleep(_PAUSE_S)
        finally:
            hearing.cancel()
            writer.transport.abort()


async def _hear(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(65536):
            pass


def main() -> int:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser("python -m bench.peers.flooders")
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--addresses", type=int, default=20)
    parser.add_argument("--per-s", type=float, default=100.0, help="messages of each address")
    options = parser.parse_args()
    flood = Flooders(options.kind, (options.address, options.port), options.per_s)
    start_s = time.perf_counter()
    asyncio.run(until_terminated(flood.run(options.addresses)))
    spent_s = time.perf_counter() - start_s
    share = time.process_time() / spent_s
    print(json.dumps({"processor": round(share, 3), "seconds": round(spent_s, 1), **flood.did}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
